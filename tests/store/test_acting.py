"""Whatever is done with a token is done only if the token allows it in that moment: it is looked up
in the transaction of the act."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, get_type_hints

import psycopg
import pytest

from rhythm.engine.retry_plan import anew
from rhythm.errors import Denied, TokenRevoked
from rhythm.store.access import Actor, Grant
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.schedules import Fire, Firing, NewFire, Schedule
from tests.store.test_audit import within
from tests.store.test_conformance import Clock
from tests.store.test_round_trips import asked
from tests.store.test_tokens import WAITING
from tests.support.around import ROLES
from tests.support.postgres import TABLES, Schemas
from tests.support.stores import Stores, rows

__all__ = ["asked"]

ANN = Actor("ann", token="t1", source="10.0.0.1", token_roles=("operator",))
EVERY = Schedule("daily", "main", every_us=10**9, next_at=2 * 10**15)


def execution(id: str) -> NewExecution:
    return NewExecution(id, WORKFLOW, "main", "default", version="1")


RUN_NOW = Firing(
    "daily",
    None,
    fires=(NewFire(Fire("daily", 1, "started", "run", manual=True), execution("run")),),
)


ACTS: dict[str, Callable[[Store, Actor], Any]] = {
    "register": lambda store, actor: store.definitions.register(
        [Definition("main", "1", "flow", "", "{}")], None, actor
    ),
    "start": lambda store, actor: store.executions.start(
        [execution("new"), execution("live")], "return", actor
    ),
    "pause_queue": lambda store, actor: store.workers.pause_queue("mail", True, actor),
    "signal": lambda store, actor: store.messages.signal(
        NewSignal("live#1", "live", "go", "1"), 10, actor
    ),
    "publish": lambda store, actor: store.messages.publish(NewEvent("e1", "paid", "1"), actor),
    "start_alike": lambda store, actor: store.executions.start_alike(
        execution(""), {"new": "1"}, actor
    ),
    "cancel": lambda store, actor: store.executions.cancel(["live"], actor),
    "terminate": lambda store, actor: store.executions.terminate(["live"], actor),
    "pause": lambda store, actor: store.people.pause(["live"], actor=actor),
    "resume": lambda store, actor: store.people.resume(["held"], actor=actor),
    "retry": lambda store, actor: store.executions.retry(
        "over", lambda family: anew(family, "again", "1"), actor
    ),
    "change": lambda store, actor: store.schedules.change(
        "weekly", lambda before, now: EVERY.replace(name="weekly"), actor
    ),
    "fire": lambda store, actor: store.schedules.fire([RUN_NOW], actor),
    "create_token": lambda store, actor: store.access.create_token(
        Grant("t3", "eve", "h", ("admin",), (), None), actor
    ),
    "revoke_token": lambda store, actor: store.access.revoke_token("t2", actor),
    "change_token": lambda store, actor: store.access.change_token("t2", ("admin",), None, actor),
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return prepared(stores.empty_store(clock))


def prepared(store: Store) -> Store:
    """With something for every act, and the tokens t1 and t2, of which the first is valid for a
    minute."""
    store.definitions.register([Definition("main", "1", "flow", "", "{}")])
    store.executions.start([execution(id) for id in ("live", "held", "over")])
    store.people.pause(["held"])
    store.executions.terminate(["over"])
    store.schedules.change("daily", lambda before, now: EVERY)
    for id in ("t1", "t2"):
        store.access.create_token(Grant(id, "ann", id, ("operator",), (), 60.0))
    return store


def contents(store: Store) -> dict[str, list[str]]:
    """All that is stored, but for tokens."""
    tables = [
        table for table in (*TABLES.split(", "), "audit", "audit_head") if table != "api_tokens"
    ]
    return {table: sorted(map(repr, rows(store, f"SELECT * FROM {table}"))) for table in tables}


def test_every_act_of_a_store_is_one_of_these() -> None:
    roles = [hint for name, hint in get_type_hints(Store).items() if name in ROLES]
    methods = [found for role in roles for found in inspect.getmembers(role, inspect.isfunction)]
    acts = [
        name
        for name, method in methods
        if "actor" in inspect.signature(method).parameters and not name.startswith("_")
    ]
    assert sorted(acts) == sorted(ACTS)


@pytest.mark.parametrize("name", ACTS)
def test_what_a_token_allows_is_done_while_it_does(store: Store, name: str) -> None:
    before = (contents(store), store.access.tokens())
    ACTS[name](store, ANN)
    assert (contents(store), store.access.tokens()) != before or name == "register"


@pytest.mark.parametrize("why", ["revoked", "expired", "unknown"])
@pytest.mark.parametrize("name", ACTS)
def test_nothing_is_done_with_a_token_that_is_not_valid_any_more(
    store: Store, clock: Clock, name: str, why: str
) -> None:
    actor = ANN
    if why == "revoked":
        store.access.revoke_token("t1")
    elif why == "expired":
        clock.forward(60)
    else:
        actor = ANN.replace(token="none")
    before = (contents(store), store.access.tokens())
    with pytest.raises(TokenRevoked, match="is not valid any more"):
        ACTS[name](store, actor)
    assert (contents(store), store.access.tokens()) == before


@pytest.mark.parametrize("name", ACTS)
def test_nothing_is_done_with_a_token_that_has_lost_a_role(store: Store, name: str) -> None:
    actor = ANN.replace(token_roles=("author", "operator"))
    before = (contents(store), store.access.tokens())
    with pytest.raises(
        Denied, match="has lost the role author meanwhile, and nothing was done: ask again"
    ) as refused:
        ACTS[name](store, actor)
    assert refused.value.code == "permission_missing"
    assert (contents(store), store.access.tokens()) == before
    store.access.change_token("t1", ("admin", "author", "operator"), None)
    ACTS[name](store, actor)


@pytest.mark.parametrize("name", ACTS)
def test_a_revocation_waits_for_what_is_done_with_the_token(
    stores: Stores, store: Any, clock: Clock, name: str
) -> None:
    """So the audit never has an act after the revocation of the token that it was done with."""
    other, order = stores.store(clock), list[str]()

    def revoke() -> None:
        other.access.revoke_token("t1")
        order.append("revoked")

    thread = threading.Thread(target=revoke)

    def act() -> None:
        ACTS[name](store, ANN)
        thread.start()
        while (
            isinstance(stores, Schemas)
            and thread.is_alive()
            and not stores.admin.execute(WAITING).fetchall()
        ):
            pass
        order.append("done")

    if isinstance(stores, Schemas):
        within(store, act)
        thread.join()
        assert order == ["done", "revoked"]
    else:  # one transaction at a time: the act has the file
        ACTS[name](store, ANN)
        revoke()


def test_a_start_with_a_token_asks_once_more_than_one_without(
    schemas: Schemas, asked: list[None]
) -> None:
    """Its commit waits until the token is known to allow it."""
    store, counts = schemas.direct_store(), list[int]()
    store.access.create_token(Grant("t1", "ann", "h", ("operator",), (), None))
    for actor in (None, Actor("ann"), ANN):
        del asked[:]
        store.executions.start([execution(f"w{len(counts)}")], "return", actor)
        counts.append(len(asked))
    assert counts == [1, 1, 2]


def test_an_act_with_a_token_asks_once_more_than_one_without(
    schemas: Schemas, asked: list[None]
) -> None:
    store, counts = schemas.direct_store(), list[int]()
    store.access.create_token(Grant("t1", "ann", "h", ("operator",), (), None))
    for name, actor in (("a", Actor("ann")), ("b", ANN)):
        del asked[:]
        store.workers.pause_queue(name, True, actor)
        counts.append(len(asked))
    assert counts == [2, 3]


def test_within_the_transaction_of_a_caller_it_is_the_same(stores: Stores, store: Any) -> None:
    store.access.revoke_token("t1")
    if not isinstance(stores, Schemas):
        return
    with psycopg.connect(stores.url) as connection:
        with pytest.raises(TokenRevoked):
            store.within(connection).executions.start([execution("joined")], "return", ANN)
        store.within(connection).executions.start([execution("other")], "return", Actor("ann"))
    assert (set(store.reading.get(["joined", "other"])), connection.closed) == ({"other"}, True)
