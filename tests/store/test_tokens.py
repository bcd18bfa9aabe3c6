"""Tokens: what they allow is looked up in the transaction that needs it, and what they lost is
remembered."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from rhythm.store.access import Actor, Filter, Grant
from rhythm.store.interfaces.store import Store
from tests.store.test_audit import within
from tests.store.test_conformance import Clock
from tests.support.postgres import Schemas
from tests.support.stores import Stores

ADMIN = Actor("root", source="cli")
APPROVER = Grant("t1", "ann", "h1", ("approver",), ("finance", "sales"), 60.0)
WAITING = (
    "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND "
    "a.query LIKE '%api_tokens%FOR UPDATE%'"
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def entitled(
    store: Any, token: str | None = "t1", roles: tuple[str, ...] | None = ("own",)
) -> tuple[Any, set[str]]:
    held, taken = within(
        store,
        lambda: store.auditor.business_roles(
            [(Actor("ann", roles, token), "")], store.access.token("t1").now if token else 0
        )[0],
    )
    return None if held is None else set(held), set(taken)


def test_a_token_is_stored_as_it_was_granted(store: Store, clock: Clock) -> None:
    made = store.access.create_token(APPROVER, ADMIN)
    assert made == store.access.token("t1") == store.access.tokens()[0]
    assert made is not None
    assert (made.name, made.hash, made.roles, made.business_roles) == (
        "ann",
        "h1",
        ("approver",),
        ("finance", "sales"),
    )
    assert (made.created_by, made.expires_at, made.status) == (
        "root",
        clock.us + 60_000_000,
        "active",
    )
    assert store.access.token("t2") is None


def test_an_id_is_used_once(store: Store) -> None:
    store.access.create_token(APPROVER)
    assert store.access.create_token(APPROVER.replace(name="bob")) is None
    assert [token.name for token in store.access.tokens()] == ["ann"]


def test_a_token_expires_on_the_clock_of_the_database(store: Store, clock: Clock) -> None:
    store.access.create_token(APPROVER)
    store.access.create_token(APPROVER.replace(id="t2", expires_s=None))
    clock.forward(59.999)
    assert {token.id: token.status for token in store.access.tokens()} == {
        "t1": "active",
        "t2": "active",
    }
    clock.forward(0.001)
    assert {token.id: token.status for token in store.access.tokens()} == {
        "t1": "expired",
        "t2": "active",
    }
    assert entitled(store) == (set(), {"finance", "sales"})


def test_a_token_is_revoked_once(store: Store, clock: Clock) -> None:
    store.access.create_token(APPROVER)
    clock.forward(1)
    assert (
        store.access.revoke_token("t1", ADMIN),
        store.access.revoke_token("t1", Actor("other")),
        store.access.revoke_token("none"),
    ) == (
        True,
        False,
        None,
    )
    token = store.access.token("t1")
    assert token is not None
    assert (token.status, token.revoked_at, token.revoked_by) == ("revoked", clock.us, "root")
    assert entitled(store) == (set(), {"finance", "sales"})


def test_business_roles_that_are_taken_away_are_remembered_until_they_are_given_again(
    store: Store,
) -> None:
    store.access.create_token(APPROVER)
    assert entitled(store) == ({"finance", "sales"}, set())
    store.access.change_token("t1", None, ("sales", "legal"))
    assert entitled(store) == ({"sales", "legal"}, {"finance"})
    store.access.change_token("t1", None, ())
    assert entitled(store) == (set(), {"finance", "sales", "legal"})
    store.access.change_token("t1", None, ("finance",))
    assert entitled(store) == ({"finance"}, {"sales", "legal"})


def test_without_the_right_to_decide_no_business_role_counts(store: Store) -> None:
    store.access.create_token(APPROVER)
    store.access.change_token("t1", ("viewer",), None)
    assert entitled(store) == (set(), {"finance", "sales"})
    store.access.change_token("t1", ("admin",), None)
    assert entitled(store) == ({"finance", "sales"}, set())


def test_without_a_token_the_roles_are_those_that_the_caller_says(store: Store) -> None:
    assert entitled(store, token=None) == ({"own"}, set())
    assert entitled(store, token=None, roles=None) == (None, set())


def test_a_token_that_does_not_exist_has_no_roles_whatever_the_caller_says(store: Any) -> None:
    assert within(
        store, lambda: store.auditor.business_roles([(Actor("ann", ("finance",), "none"), "")], 0)
    ) == [((), ())]


def test_a_revoked_token_stays_as_it_is(store: Store) -> None:
    store.access.create_token(APPROVER)
    store.access.revoke_token("t1")
    changed = store.access.change_token("t1", ("admin",), ())
    assert changed == store.access.token("t1")
    assert changed is not None
    assert changed.roles == ("approver",)
    assert store.access.change_token("none", ("admin",), ()) is None


def test_use_is_noted(store: Store, clock: Clock) -> None:
    store.access.create_token(APPROVER)
    clock.forward(5)
    store.access.touch_tokens(["t1"])
    store.access.touch_tokens(["none"])
    assert [token.last_used_at for token in store.access.tokens()] == [clock.us]


def test_what_is_done_to_tokens_is_recorded_and_nothing_else_is(store: Store) -> None:
    store.access.create_token(APPROVER, ADMIN)
    store.access.create_token(APPROVER, ADMIN)
    store.access.change_token("t1", ("operator",), None, ADMIN)
    store.access.change_token("t1", ("operator",), None, ADMIN)
    store.access.touch_tokens(["t1"])
    store.access.revoke_token("t1", ADMIN)
    store.access.revoke_token("t1", ADMIN)
    found = [
        (row.action, row.object, row.actor, json.loads(row.detail))
        for row in reversed(store.access.audit(Filter(), 10))
    ]
    business = ["finance", "sales"]
    assert [row[:3] for row in found] == [
        ("token.create", "t1", "root"),
        ("token.change", "t1", "root"),
        ("token.revoke", "t1", "root"),
    ]
    assert found[0][3]["business_roles"] == business
    assert found[1][3] == {
        "name": "ann",
        "before": {"roles": ["approver"], "business_roles": business},
        "after": {"roles": ["operator"], "business_roles": business},
    }
    assert "h1" not in str(found)


def test_who_decides_keeps_the_roles_until_the_commit_and_a_revocation_waits_for_it(
    stores: Stores, store: Any
) -> None:
    """So the audit never has a decision after the revocation of the token that it was made with."""
    store.access.create_token(APPROVER)
    other = stores.store(store.db.clock)
    order: list[str] = []

    def revoke() -> None:
        other.access.revoke_token("t1")
        order.append("revoked")

    thread = threading.Thread(target=revoke)

    def decide() -> None:
        ((held, _),) = store.auditor.business_roles([(Actor("ann", token="t1"), "")], 0)
        assert set(held) == {"finance", "sales"}
        thread.start()
        while (
            isinstance(stores, Schemas)
            and thread.is_alive()
            and not stores.admin.execute(WAITING).fetchall()
        ):
            pass
        order.append("decided")

    within(store, decide)
    thread.join()
    assert order == ["decided", "revoked"]


def test_noting_the_use_waits_for_nobody_who_decides(schemas: Schemas) -> None:
    store = schemas.empty_store()
    store.access.create_token(APPROVER)
    other = schemas.store()

    def decide() -> None:
        store.auditor.business_roles([(Actor("ann", token="t1"), "")], 0)
        other.access.touch_tokens(["t1"])

    within(store, decide)
    assert [token.last_used_at for token in store.access.tokens()] == [None]
