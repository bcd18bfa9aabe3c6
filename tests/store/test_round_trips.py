"""How often PostgreSQL is asked: a fixed number of times for each operation, however many items it
has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import psycopg
import pytest

from rhythm.store.access import Actor, Grant
from rhythm.store.approvals import APPROVE, Decision, NewApproval
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.logs import LOG, NewLine, RootLines
from rhythm.store.interfaces.messages import MailAsked, NewEvent
from rhythm.store.interfaces.turns import (
    Done,
    Needed,
    NewTimer,
    NextEnded,
    NthUnfinished,
    TaskEnd,
    TurnCommit,
)
from rhythm.store.interfaces.workers import Beat, Declaration
from rhythm.store.lifecycle import COMPLETED, TASK, WORKFLOW
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.postgres.wire import Wire
from rhythm.store.schedules import Due, Fire, Firing, NewFire, Schedule
from rhythm.worker.services import Rescuer, ServiceSettings
from tests.engine.driver import World
from tests.support.full_way import short_ways
from tests.support.postgres import Schemas

pytestmark = short_ways

BEAT = Beat("a", "host", 1, ("default", "mail"), 8, 0, False, "1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """As long as the number of times that this thread has waited for an answer of the server."""
    waits: list[None] = []
    here = threading.get_ident()

    def counted(call: Any) -> Any:
        def count(self: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == here:
                waits.append(None)
            return call(self, *args, **kwargs)

        return count

    monkeypatch.setattr(psycopg.Connection, "wait", counted(psycopg.Connection.wait))
    monkeypatch.setattr(Wire, "exchange", counted(Wire.exchange))
    return waits


@pytest.fixture
def store(schemas: Schemas) -> PostgresStore:
    store = schemas.direct_store()
    store.schema.version()  # connects
    return store


def turn(claim: Claim, seq: int, end: str, **changes: Any) -> TurnCommit:
    return TurnCommit(
        claim.id, seq, claim.fence, claim.wakes, end, "a", "turn", snapshot=b"s"
    ).replace(**changes)


def task(id: str, n: int, **changes: Any) -> NewExecution:
    return NewExecution(
        f"{id}.{n}", TASK, "work", "default", parent_id=id, child_no=n, root_id=id
    ).replace(**changes)


def claimed(store: PostgresStore, limit: int = 1000) -> dict[str, Claim]:
    return {claim.id: claim for claim in store.claims.claim("a", ["default", "mail"], limit, 30.0)}


@pytest.mark.parametrize("count", [1, 20])
def test_every_operation_asks_a_fixed_number_of_times(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    found: dict[str, int] = {}

    def measure(name: str, work: Callable[[], Any]) -> Any:
        del asked[:]
        answer = work()
        found[name] = len(asked)
        return answer

    ids = [f"w{i:02}" for i in range(count)]
    measure(
        "start",
        lambda: store.executions.start(
            [NewExecution(id, WORKFLOW, "main", "default") for id in ids]
        ),
    )
    alike = NewExecution("", TASK, "work", "other")
    inputs = {f"t{i:02}": "1" for i in range(count)}
    measure("start alike", lambda: store.executions.start_alike(alike, inputs))
    held = measure("claim", lambda: claimed(store))
    assert list(held) == ids
    fences = {id: claim.fence for id, claim in held.items()}
    measure("load", lambda: store.turns.load(ids))
    measure(
        "outcomes", lambda: store.turns.outcomes([Needed(id, (1, 2), whole=True) for id in ids])
    )
    measure(
        "next ended", lambda: store.turns.next_ended([NextEnded(id, [(1, 9)], 9) for id in ids])
    )
    measure(
        "nth unfinished",
        lambda: store.turns.nth_unfinished([NthUnfinished(id, 1, 9, 1) for id in ids]),
    )
    measure("mail", lambda: store.messages.mail(ids))
    asked_mail = [MailAsked(id, name, 9) for id in ids for name in ("go", None)]
    measure("first mail", lambda: store.messages.first_mail(asked_mail))
    done = (Done(1, "work", "default", "{}", COMPLETED, "1", 1, 0),)
    measure(
        "light_turns",
        lambda: store.turns.commit(
            [turn(claim, 0, "own", done=done) for claim in held.values()], []
        ),
    )
    assert len(measure("extend", lambda: store.claims.extend(fences, 30.0))) == count
    assert len(measure("beat", lambda: store.workers.beat(BEAT, fences, 30.0))) == count
    measure(
        "declare",
        lambda: store.workers.declare(
            [Declaration(id, "default", 1, None, "null", False) for id in ids]
        ),
    )
    queueing = [
        turn(
            claim,
            1,
            "park",
            starts=(task(claim.id, 2), task(claim.id, 3)),
            timers=(NewTimer(4, 60.0),),
        )
        for claim in held.values()
    ]
    answers = measure("turns that queue tasks and park", lambda: store.turns.commit(queueing, []))[
        0
    ]
    assert {answer.outcome for answer in answers} == {"parked"}
    bodies = measure("claim tasks", lambda: store.claims.claim("a", ["default"], 1000, 30.0))
    assert len(bodies.tasks) == 2 * count
    ends = [TaskEnd(claim.id, claim.fence, COMPLETED, "1") for claim in bodies]
    assert len(measure("ends of tasks", lambda: store.turns.commit([], ends))[1]) == 2 * count
    held = claimed(store)
    assert {
        answer.outcome for answer in measure("park", lambda: store.claims.park(list(held.values())))
    } == {"parked"}
    store.executions.cancel(ids)
    held = claimed(store)
    store.executions.start(
        [NewExecution(f"v{i:02}", WORKFLOW, "main", "default") for i in range(count)]
    )
    stepping = [turn(claim, 0, "own", done=done) for claim in claimed(store).values()]
    store.executions.start([NewExecution(f"k{i:02}", TASK, "work", "mail") for i in range(count)])
    tasks = store.claims.claim("a", ["mail"], count, 30.0)
    ends = [TaskEnd(claim.id, claim.fence, COMPLETED, "1") for claim in tasks]
    assert len(measure("ends of light tasks", lambda: store.turns.commit([], ends))[1]) == count
    store.executions.start([NewExecution(f"u{i:02}", TASK, "work", "mail") for i in range(count)])
    tasks = store.claims.claim("a", ["mail"], count, 30.0)
    ends = [TaskEnd(claim.id, claim.fence, COMPLETED, "1") for claim in tasks]
    light = [each.replace(done=()) for each in stepping]
    answers, accepted = measure(
        "ends of light tasks, and light turns", lambda: store.turns.commit(light, ends)
    )
    assert ([answer.outcome for answer in answers], len(accepted)) == (["own"] * count, count)
    store.executions.start(
        [NewExecution(f"x{i:02}", WORKFLOW, "main", "default") for i in range(count)]
    )
    completing = [
        turn(claim, 0, "finish", status=COMPLETED, snapshot=None, owned=None, done=done)
        for claim in claimed(store).values()
    ]
    stepping = [each.replace(seq=1, done=()) for each in stepping]
    answers = measure(
        "light turns that finish, and steps",
        lambda: store.turns.commit([*completing, *stepping], []),
    )[0]
    assert [answer.outcome for answer in answers] == ["finished"] * count + ["own"] * count
    stepping = [each.replace(seq=2) for each in stepping]
    finishing = [turn(claim, 2, "finish", status=COMPLETED) for claim in held.values()]
    answers = measure(
        "turns that finish, and steps", lambda: store.turns.commit([*finishing, *stepping], [])
    )[0]
    assert [answer.outcome for answer in answers] == ["finished"] * count + ["own"] * count
    said = [RootLines(id, (NewLine(id, 0, 0, 0, LOG, 20, 0, "main", "a", "hi"),)) for id in ids]
    measure("lines", lambda: store.logs.write(said))
    assert len(measure("read lines", lambda: store.logs.read(ids[0], 0, 9))) == 1
    assert found == {
        "start": 1,
        "start alike": 1,
        "claim": 1,
        "load": 1,
        "outcomes": 2,
        "next ended": 1,
        "nth unfinished": 1,
        "mail": 1,
        "first mail": 1,
        "light_turns": 1,
        "extend": 1,
        "beat": 2,
        "declare": 1,
        "claim tasks": 1,
        "park": 1,
        "turns that queue tasks and park": 2,
        "ends of tasks": 2,
        "ends of light tasks": 1,
        "ends of light tasks, and light turns": 1,
        "light turns that finish, and steps": 1,
        "turns that finish, and steps": 3,
        "lines": 2,
        "read lines": 1,
    }


@pytest.mark.parametrize("count", [1, 20])
def test_a_worker_asks_once_for_all_that_new_workflows_and_tasks_need_to_begin(
    schemas: Schemas, asked: list[None], count: int
) -> None:
    world = World("return inputs", make_store=schemas.empty_store)
    world.worker.loader.programs = cache(world.program)
    world.handlers.begins = lambda id, inputs: None  # it would ask, too
    world.start()
    world.run()  # connects, beats, and reads the program
    version = world.inner.reading.get(["run"])["run"].version
    found = {}
    for kind, name in ((WORKFLOW, "main"), (TASK, "value")):
        new = NewExecution(name, kind, name, "default", "{}", version)
        world.inner.executions.start([new.replace(id=f"{name}{n}") for n in range(count)])
        del asked[:]
        world.worker.run_round()
        found[name] = len(asked)
    assert found == {"main": 1 + 1, "value": 1}, "a claim and a light finish, a claim"
    assert len(world.handlers.agenda) == count


@pytest.mark.parametrize("count", [1, 100])
def test_all_schedules_that_are_due_are_fired_at_once(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    names = [f"s{i:03}" for i in range(count)]
    for name in names:
        store.schedules.change(
            name, lambda before, now, name=name: Schedule(name, "main", every_us=10**6, next_at=now)
        )  # type: ignore[misc]

    def planned(due: Due) -> Firing:
        start = NewExecution(f"e-{due.schedule.name}", WORKFLOW, "main", "default")
        fire = NewFire(Fire(due.schedule.name, due.now, "started", start.id), start)
        return Firing(due.schedule.name, due.revision, due.now + 10**6, fires=(fire,))

    del asked[:]
    assert store.schedules.due(count)[0] == names
    due = store.schedules.load_due(names)
    assert len(asked) == 1 + 2
    assert len(store.schedules.fire([planned(each) for each in due])[0]) == count
    assert len(asked) == 1 + 2 + 6
    assert len(claimed(store)) == count


def test_an_idle_process_asks_once_for_each_thing(store: PostgresStore, asked: list[None]) -> None:
    store.executions.start([NewExecution(f"w{i}", WORKFLOW, "main", "default") for i in range(50)])
    parking = [
        turn(claim, 0, "park", timers=(NewTimer(1, 3600.0),)) for claim in claimed(store).values()
    ]
    store.turns.commit(parking, [])
    store.workers.beat(BEAT, {}, 30.0)
    idle: list[Callable[[], Any]] = [
        lambda: claimed(store),
        lambda: store.maintenance.fire_timers(100),
        lambda: store.recover(100, 3, True),
        lambda: store.workers.beat(BEAT, {}, 30.0),
        lambda: store.workers.paused_queues(),
        lambda: store.workers.declared(),
        lambda: store.workers.seen(),
        lambda: store.operating.overview(60_000_000, 10),
        lambda: store.operating.failures(5, 100),
        lambda: Rescuer(store, ServiceSettings(), None).run_once(0.0),
    ]
    for work in idle:
        del asked[:]
        work()
        assert len(asked) == 1


@pytest.mark.parametrize("count", [1, 1000])
def test_whatever_an_event_starts_is_started_at_once(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    store.definitions.register(
        [Definition(f"on{i:04}", "1", "flow", "", "{}", on=("paid",)) for i in range(count)]
    )
    del asked[:]
    assert store.messages.publish(NewEvent("e1", "paid", "1")) == "published"
    assert len(asked) == 9
    assert len(claimed(store)) == count


@pytest.mark.parametrize("count", [1, 1000])
def test_whatever_the_events_of_a_turn_start_is_started_at_once(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    store.definitions.register([Definition("ship", "1", "flow", "", "{}", on=("paid",))])
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
    (claim,) = claimed(store).values()
    events = tuple(NewEvent(f"e{i}", "paid", str(i), i, execution_id="w") for i in range(count))
    del asked[:]
    store.turns.commit([turn(claim, 0, "park", events=events)], [])
    assert len(asked) == 9
    assert len(claimed(store)) == count


@pytest.mark.parametrize("count", [1, 100])
def test_however_many_are_terminated_they_end_at_once(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    ids = [f"w{i:03}" for i in range(count)]
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default") for id in ids])
    store.turns.commit(
        [turn(claim, 0, "park", starts=(task(claim.id, 1),)) for claim in claimed(store).values()],
        [],
    )
    found = []
    for work in (
        lambda: store.executions._terminate_named(ids, None),
        lambda: store.executions.end_terminated(1000),
        lambda: store.executions.end_terminated(1000),
    ):
        del asked[:]
        assert work() or len(found) == 2
        found.append(len(asked))
    assert found == [7, 6, 3]


@pytest.mark.parametrize("count", [1, 20])
def test_decisions_ask_for_all_they_depend_on_at_once(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    ids = [f"w{i:02}" for i in range(count)]
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default") for id in ids])
    approval = NewApproval(1, "boss", "", "null", quorum=2)
    store.turns.commit(
        [turn(claim, 0, "park", approvals=(approval,)) for claim in claimed(store).values()], []
    )
    for name, ended in (("ann", 0), ("bob", 1)):  # with the last one the approval ends
        del asked[:]
        decision = Decision(Actor(name, roles=("boss",)), APPROVE)
        verdicts = store.people.decide_all([(f"{id}.1", decision) for id in ids])
        assert {(verdict.refusal, verdict.ended) for verdict in verdicts if verdict} == {
            ("", "approved" if ended else None)
        }
        assert len(asked) == 4


@pytest.mark.parametrize("count", [1, 20])
def test_decisions_with_tokens_and_comments_ask_for_the_tokens_and_write_who_commented(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    ids = [f"w{i:02}" for i in range(count)]
    store.access.create_token(Grant("t1", "ann", "h", ("approver",), ("boss",), None))
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default") for id in ids])
    approval = NewApproval(1, "boss", "", "null")
    store.turns.commit(
        [turn(claim, 0, "park", approvals=(approval,)) for claim in claimed(store).values()], []
    )
    del asked[:]
    decision = Decision(Actor("ann", token="t1"), APPROVE, comment="fine")
    verdicts = store.people.decide_all([(f"{id}.1", decision) for id in ids])
    assert {verdict.ended for verdict in verdicts if verdict} == {"approved"}
    assert len(asked) == 5


@pytest.mark.parametrize("count", [1, 20])
def test_all_who_ask_are_looked_up_at_once(
    store: PostgresStore, asked: list[None], count: int
) -> None:
    ids = [f"t{i:02}" for i in range(count)]
    for id in ids:
        store.access.create_token(Grant(id, id, "h", ("approver",), ("boss",), None))
    store.access.tokens_of(ids)  # connects
    for work in (lambda: store.access.tokens_of(ids), lambda: store.access.touch_tokens(ids)):
        del asked[:]
        work()
        assert len(asked) == 1
    assert all(token.last_used_at for token in store.access.tokens_of(ids).values())
