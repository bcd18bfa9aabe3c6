"""What a store says of names: which there are, what is at the root of an execution, and lists of
some names only, on every database."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from rhythm.engine.inputs import forbidden
from rhythm.errors import Denied
from rhythm.filters import ExecutionFilter, Term
from rhythm.store.access import Actor, Grant
from rhythm.store.approvals import Decision, NewApproval
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.operating import Selection
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import PAUSED, TASK
from tests.store.test_conformance import Clock, begun, claims, outcome, turn, workflow
from tests.support.stores import Stores

LIVE = ("pending", "running", "suspended", "paused")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def filled(store: Store, clock: Clock, names: str) -> None:
    """An execution of each of these names, one after the other, with ids `0`, `1` …"""
    for i, name in enumerate(names.split()):
        store.executions.start([workflow(str(i), name=name)])
        clock.forward(1)


def test_names_are_those_that_begin_so_each_once(store: Store, clock: Clock) -> None:
    filled(store, clock, "order order_eu order orders Order payment order ord% ördér")
    assert sorted(store.reading.names(["order"])) == ["order", "order_eu", "orders"]
    assert sorted(store.reading.names(["Or", "p"])) == ["Order", "payment"]
    assert sorted(store.reading.names([""])) == sorted(
        {"order", "order_eu", "orders", "Order", "payment", "ord%", "ördér"}
    )
    assert store.reading.names(["ö"]) == ["ördér"]
    assert store.reading.names(["ord%"]) == ["ord%"]
    assert store.reading.names([]) == store.reading.names(["zebra"]) == []


def test_names_are_of_roots_only(store: Store) -> None:
    child = NewExecution(
        "w.1", TASK, "charge", "default", "null", parent_id="w", child_no=1, root_id="w"
    )
    outcome(store, turn(begun(store, "w"), starts=(child,)))
    assert store.reading.names([""]) == ["main"]
    assert store.reading.root_names(["w", "w.1", "nothing"]) == {"w": "main", "w.1": "main"}


def test_executions_of_some_names_come_newest_first_in_whole_pages(
    store: Store, clock: Clock
) -> None:
    filled(store, clock, "a b c a b c a c c c a")
    mixed = store.reading.find(None, None, None, 99, False, ["a", "b"])
    assert [row.id for row in mixed] == ["10", "6", "4", "3", "1", "0"]
    pages, before = list[str](), None
    while page := store.reading.find(None, None, before, 2, True, ["a", "b"]):
        pages, before = [*pages, *(row.id for row in page)], (page[-1].created_at, page[-1].id)
        assert len(page) == 2
    assert pages == ["10", "6", "4", "3", "1", "0"]
    assert store.reading.find(None, None, None, 9, False, []) == []
    assert [row.id for row in store.reading.find("a", None, None, 9, False, ["a", "b"])] == [
        "10",
        "6",
        "3",
        "0",
    ]
    assert store.reading.find("c", None, None, 9, False, ["a", "b"]) == []
    store.executions.cancel(["4"])
    store.executions.terminate(["3", "9"])
    assert [
        row.id for row in store.reading.find(None, "cancelled", None, 9, False, ["a", "b"])
    ] == ["3"]


def test_many_of_some_names_are_counted_and_found(store: Store, clock: Clock) -> None:
    filled(store, clock, "a b c a b c")
    some = Selection(ExecutionFilter((Term("status", values=LIVE),)), names=("a", "b"))
    assert store.operating.count(some)[0] == 4
    assert [id for _, id in store.operating.select(some, (-1, ""), 9)] == ["0", "1", "3", "4"]
    of_c = some.replace(filter=some.filter.joined(Term("workflow", values=("c",))))
    assert [id for _, id in store.operating.select(of_c, (-1, ""), 9)] == []
    assert store.operating.count(some.replace(names=()))[0] == 0, "no name is not every name"


def asking(store: Store, id: str, name: str) -> None:
    assert (
        outcome(
            store,
            turn(
                begun(store, id, name=name),
                approvals=(NewApproval(1, "boss", "", "null"),),
                status=PAUSED,
            ),
        )
        == "parked"
    )


def test_approvals_go_by_the_root_of_the_execution_that_asks(store: Store, clock: Clock) -> None:
    child = workflow("w.1", name="payment", parent_id="w", child_no=1, root_id="w")
    outcome(store, turn(begun(store, "w", name="order"), starts=(child,)))
    assert (
        outcome(
            store,
            turn(
                claims(store)["w.1"], approvals=(NewApproval(1, "boss", "", "null"),), status=PAUSED
            ),
        )
        == "parked"
    )
    clock.forward(1)
    asking(store, "p", "payment")
    assert [row.id for row in store.people.approvals(None, "open", None, None, 9, ["order"])] == [
        "w.1.1"
    ]
    assert [row.id for row in store.people.approvals(None, "open", None, None, 9, ["payment"])] == [
        "p.1"
    ]
    assert [row.id for row in store.people.approvals(None, "open", None, None, 1, ["order"])] == [
        "w.1.1"
    ], "a page is not shorter by others"
    assert store.people.approvals(None, None, "w", None, 9, ["payment"]) == []
    assert store.people.approvals(None, None, None, None, 9, []) == []


@pytest.mark.parametrize(
    ("roles", "refusal"),
    [
        (("approver",), ""),
        (("approver:order*",), ""),
        (("viewer", "approver:ord*"), ""),
        (("approver:payment",), "role_revoked"),  # that of the child which asks, not of its root
        (("approver:", "viewer"), "role_revoked"),
        (("admin:order*",), "role_revoked"),
        (("approver:Order*",), "role_revoked"),
    ],
)
def test_a_decision_goes_by_the_roles_of_the_token_and_the_root(
    store: Store, roles: tuple[str, ...], refusal: str
) -> None:
    child = workflow("w.1", name="payment", parent_id="w", child_no=1, root_id="w")
    outcome(store, turn(begun(store, "w", name="order"), starts=(child,)))
    outcome(
        store,
        turn(claims(store)["w.1"], approvals=(NewApproval(1, "boss", "", "null"),), status=PAUSED),
    )
    store.access.create_token(Grant("t", "ann", "0" * 64, roles, ("boss",), None))
    verdict = store.people.decide("w.1.1", Decision(Actor("ann", token="t"), "approve"))
    assert verdict is not None
    assert (verdict.refusal, verdict.ended) == (refusal, None if refusal else "approved")


# signals


def signal_to(id: str, sender: str | None = None) -> NewSignal:
    return NewSignal(f"{id}#{sender or 'x'}", id, "go", "1", sender)


def test_a_signal_of_somebody_with_a_role_for_some_names_arrives(
    store: Store, clock: Clock
) -> None:
    filled(store, clock, "order")
    store.access.create_token(Grant("t", "ann", "0" * 64, ("operator:order*",), (), None))
    ann = Actor("ann", token="t", token_roles=("operator:order*",))
    assert store.messages.signal(signal_to("0"), 9, ann) == "sent"
    assert [mail.payload for mail in store.messages.mail(["0"])["0"]] == ["1"]


@pytest.mark.parametrize(
    ("roles", "reached"),
    [
        (("operator",), ["order", "order.1", "payment"]),
        (("operator:order*",), ["order", "order.1"]),  # the child, whatever its name, by its root
        (("operator:part",), []),
        (("viewer", "operator:payment"), ["payment"]),
        (("viewer:order*",), []),
    ],
)
def test_a_workflow_reaches_whom_those_who_asked_for_it_might(
    store: Store, roles: tuple[str, ...], reached: list[str]
) -> None:
    child = workflow("order.1", name="part", parent_id="order", child_no=1, root_id="order")
    outcome(store, turn(begun(store, "order", name="order"), starts=(child,)))
    store.executions.start([workflow("payment", name="payment")])
    store.executions.start([workflow("sender", started_by="ann", authority=json.dumps([roles]))])
    sent = tuple(signal_to(id, "sender") for id in ("order", "order.1", "payment"))
    outcome(store, turn(claims(store)["sender"], signals=sent))
    assert sorted(store.messages.mail(["order", "order.1", "payment"])) == reached


@pytest.mark.parametrize(
    ("authority", "expected"),
    [
        (None, set()),
        ([["operator"]], set()),
        # an event reaches everybody; a signal is looked at when it arrives
        ([["operator:order*"]], {"publish"}),
        ([["operator"], ["operator:order*"]], {"publish"}),
        ([["viewer", "author:order*"]], {"publish", "send"}),
        ([["operator"], ["viewer"]], {"publish", "send"}),
    ],
)
def test_what_a_workflow_may_not_do_at_all(
    authority: list[list[str]] | None, expected: set[str]
) -> None:
    assert forbidden(None if authority is None else json.dumps(authority)) == expected


# acts


@pytest.mark.parametrize(
    ("by_then", "allowed"),
    [
        (("operator:order*", "viewer"), True),  # those of before
        (("viewer", "operator"), False),  # what is started goes on with those that were shown
        (("viewer", "operator:payment"), False),
        (("viewer", "operator:order*", "operator:payment"), True),  # and more
        (("viewer:order*",), False),
    ],
)
def test_an_act_takes_the_roles_by_which_it_was_let_in(
    store: Store, clock: Clock, by_then: tuple[str, ...], allowed: bool
) -> None:
    """In the transaction nobody knows what names the guard has looked at: it has all roles of
    then."""
    filled(store, clock, "order")
    before = ("viewer", "operator:order*")
    store.access.create_token(Grant("t", "ann", "0" * 64, before, (), None))
    store.access.change_token("t", by_then, None)
    ann = Actor("ann", token="t", token_roles=before)
    with nullcontext() if allowed else pytest.raises(Denied):
        store.executions.cancel(["0"], ann)
    assert (store.reading.get(["0"])["0"].cancel_requested_at is not None) == allowed
