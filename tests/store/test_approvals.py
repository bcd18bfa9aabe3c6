"""Approvals, pauses and resumes in both databases: what wakes whom, what is written together, and
what is refused without a trace."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from rhythm.engine.retry_plan import anew
from rhythm.store.access import Actor, Grant
from rhythm.store.approvals import Decision, NewApproval, NotTogether, Verdict
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Needed
from rhythm.store.lifecycle import APPROVAL, CANCELLED, COMPLETED, FAILED, PAUSED
from rhythm.store.postgres.store import PostgresStore
from tests.store.test_conformance import NOW, Clock, begun, claims, outcome, status, turn, workflow
from tests.support.postgres import Schemas
from tests.support.stores import Stores, ready_rows, rows

US = 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def asking(n: int = 1, **changes: Any) -> NewApproval:
    return NewApproval(n, "boss", "why", '{"total":7}').replace(**changes)


def parked(store: Store, id: str = "w", *approvals: NewApproval, **changes: Any) -> None:
    """A workflow, started by sue, that waits for approvals."""
    commit = turn(
        begun(store, id, started_by="sue", contributors=("sue",)),
        approvals=approvals or (asking(**changes),),
        status=PAUSED,
    )
    assert outcome(store, commit) == "parked"


def decide(
    store: Store, decision: str = "approve", by: str = "ann", id: str = "w.1", **changes: Any
) -> Verdict:
    verdict = store.people.decide(id, Decision(Actor(by), decision).replace(**changes))
    assert verdict is not None
    return verdict


def ended(store: Store, id: str = "w", n: int = 1) -> tuple[int, Any] | None:
    found = [o for o in store.turns.outcomes([Needed(id, (n,))])[id] if o.type == APPROVAL]
    return (found[0].status, json.loads(found[0].value)) if found else None


APPROVED = {"decision": "approved", "by": ["ann"], "comment": ""}


def everything(store: Store) -> list[Any]:
    tables = (
        "ready",
        "approvals",
        "approval_decisions",
        "execution_resume_requests",
        "audit",
        "executions",
    )
    return [rows(store, f"SELECT * FROM {table}") for table in tables]


def test_a_decision_wakes_one_who_sleeps_and_says_what_let_it_go_on(
    store: Store, clock: Clock
) -> None:
    parked(store)
    assert (ready_rows(store), status(store, "w")) == ([], "paused")
    clock.forward(2)
    assert decide(store).ended == "approved"
    assert ready_rows(store) == [("w", 0, 0)]
    assert ended(store) == (COMPLETED, APPROVED)
    (request,) = store.people.resumes("w")
    assert (request.triggered_by, request.triggered_by_id, request.requested_at) == (
        "approval",
        "w.1",
        NOW + 2 * US,
    )
    assert (json.loads(request.trigger_data), request.executed_at) == (APPROVED, None)


def test_a_decision_counts_up_the_wakes_of_whoever_works_on_it(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", approvals=(asking(),))) == "own"
    decide(store)
    assert ready_rows(store) == [("w", 1, 1)]
    assert outcome(store, turn(claim, 1)) == "woken", (
        "whoever did not see the decision does not sleep"
    )


@pytest.mark.parametrize(
    ("refusal", "change"),
    [
        ("wrong_role", {"actor": Actor("ann", ("clerk",))}),
        ("self_approval", {"actor": Actor("sue", ("boss",))}),
        ("approval_changed", {"content_hash": "0" * 64}),
        ("no_escalation", {"decision": "escalate"}),
        ("role_revoked", {"actor": Actor("ann", ("boss",), token="gone")}),
    ],
)
def test_what_is_refused_leaves_no_trace(
    store: Store, refusal: str, change: dict[str, Any]
) -> None:
    parked(store)
    before = everything(store)
    verdict = store.people.decide("w.1", Decision(Actor("ann"), "approve").replace(**change))
    assert verdict is not None
    assert verdict.refusal in (refusal, "wrong_role")
    assert everything(store) == before


def test_a_verdict_tells_which_row_it_judged(store: Store) -> None:
    parked(store, stages='[["board", null, "expire"]]')
    before = store.people.approval("w.1")
    assert decide(store, by="ann", content_hash="something else").approval == before
    assert decide(store, "escalate").approval == before, (
        "as it was under the lock, before anything followed"
    )
    assert decide(store, actor=Actor("bob", ("clerk",))).approval == store.people.approval("w.1")


@pytest.mark.parametrize(
    ("decision", "changes"),
    [
        ("approve", {}),
        ("approve", {"comment": "fine"}),
        ("reject", {"comment": "no"}),
        ("escalate", {}),
        ("escalate", {"to": "chair"}),
        ("approve", {"key": "k"}),
    ],
)
@pytest.mark.parametrize("quorum", [1, 2])
def test_a_verdict_has_what_is_read_afterwards(
    store: Store, clock: Clock, decision: str, changes: dict[str, Any], quorum: int
) -> None:
    stages = '[["board", 60.0, "escalate"], ["chair", null, "expire"]]'
    parked(store, quorum=quorum, stages=stages, timeout_s=600.0, on_deadline="escalate")
    for by in ("ann", "bob", "ann"):
        clock.forward(1)
        verdict = decide(store, decision, by, **changes)
        assert verdict.after == store.people.approval("w.1")
        assert list(verdict.decisions) == store.people.decisions(["w.1"])


# together


def families(store: Store, *names: str) -> list[Any]:
    """What is stored about these families."""
    return [
        rows(store, f"SELECT * FROM {table} WHERE {column} LIKE ?", (f"{name}%",))
        for name in names
        for table, column in {
            "ready": "id",
            "approvals": "id",
            "approval_decisions": "approval_id",
            "execution_resume_requests": "execution_id",
            "executions": "id",
            "audit": "object",
        }.items()
    ]


def test_decisions_are_made_together_and_each_as_if_it_were_alone(store: Store) -> None:
    for id in ("v", "w", "x", "y"):
        parked(store, id, quorum=2 if id == "y" else 1)
    refused = families(store, "w")
    ann, sue = Actor("ann", source="python"), Actor("sue", source="python")
    verdicts = store.people.decide_all(
        [
            ("y.1", Decision(ann, "approve")),
            ("w.1", Decision(sue, "approve")),
            ("nobody.1", Decision(ann, "approve")),
            ("x.1", Decision(Actor("bob"), "reject", comment="no")),
            ("v.1", Decision(ann, "approve", then_pause=True)),
        ]
    )
    assert [verdict and (verdict.refusal, verdict.ended, verdict.by) for verdict in verdicts] == [
        ("", None, ()),
        ("self_approval", None, ()),
        None,
        ("", "rejected", ("bob",)),
        ("", "approved", ("ann",)),
    ]
    assert families(store, "w") == refused, "what is refused leaves no trace"
    assert [verdict.after for verdict in verdicts if verdict] == [
        store.people.approval(id) for id in ("y.1", "w.1", "x.1", "v.1")
    ]
    assert [row[0] for row in ready_rows(store)] in (["v", "x"], ["v", "x", "y"])
    assert status(store, "v") == "paused"
    assert [
        row
        for row in rows(store, "SELECT object, action, actor FROM audit ORDER BY n")
        if row[1].startswith("approval.")
    ] == [
        ("y.1", "approval.approve", "ann"),
        ("x.1", "approval.reject", "bob"),
        ("v.1", "approval.approve", "ann"),
    ]
    assert store.access.verify_audit()[1] == []


def test_decisions_about_one_family_are_not_made_together(store: Store) -> None:
    parked(store, "w", asking(1), asking(2))
    before = everything(store)
    for other in ("w.1", "w.2", "w.7.1"):
        with pytest.raises(AssertionError, match="about one family"):
            store.people.decide_all(
                [
                    ("w.1", Decision(Actor("ann"), "approve")),
                    (other, Decision(Actor("bob"), "reject")),
                ]
            )
    assert everything(store) == before


def test_who_has_lost_their_token_decides_nothing_together_with_others(store: Store) -> None:
    for id in ("v", "w", "x"):
        parked(store, id)
    for id in ("t1", "t2"):
        grant = Grant(id, f"person {id}", "h", ("approver",), ("boss",), None)
        store.access.create_token(grant)
    store.access.revoke_token("t1")
    before = families(store, "v")
    verdicts = store.people.decide_all(
        [
            ("v.1", Decision(Actor("person t1", token="t1"), "approve")),
            ("w.1", Decision(Actor("person t2", token="t2"), "approve")),
            ("x.1", Decision(Actor("nobody", token="t3"), "approve")),
        ]
    )
    assert [verdict and (verdict.refusal, verdict.ended) for verdict in verdicts] == [
        ("role_revoked", None),
        ("", "approved"),
        ("wrong_role", None),
    ]
    assert families(store, "v") == before


@pytest.mark.parametrize("table", ["ready", "approvals"])
def test_nobody_waits_for_long_for_what_another_needs(schemas: Schemas, table: str) -> None:
    """Together they give up soon, also one, and leave no trace; alone whoever needs it waits."""
    store = schemas.empty_store()
    claim = begun(store, "v", contributors=("sue",))
    assert outcome(store, turn(claim, end="own", approvals=(asking(),))) == "own"
    parked(store)
    before = everything(store)
    wanted = [(id, Decision(Actor("ann"), "approve")) for id in ("v.1", "w.1")]
    with psycopg.connect(schemas.url) as other:
        key = "v" if table == "ready" else "v.1"
        other.execute(
            f"SELECT 1 FROM {schemas.name}.{table} WHERE id = '{key}' FOR UPDATE".encode()
        )
        for some in (wanted, wanted[:1]):
            with pytest.raises(NotTogether):
                store.people.decide_all(some)
        assert everything(store) == before
        assert decide(store).ended == "approved"
    assert decide(store, id="v.1").ended == "approved"


def test_what_nobody_asks_for_cannot_be_decided(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, approvals=(asking(1), asking(2, held=True)))) == "parked"
    before = everything(store)
    assert [
        store.people.decide(id, Decision(Actor("ann"), "approve"))
        for id in ("w.2", "w.9", "nobody.1", "w", "")
    ] == [None] * 5
    assert everything(store) == before


def test_a_decision_whose_answer_was_lost_may_be_sent_again(store: Store) -> None:
    parked(store, quorum=2)
    assert not decide(store, key="k").repeated
    before = everything(store)
    assert decide(store, key="k").repeated
    assert everything(store) == before
    assert decide(store, by="bob").by == ("ann", "bob")
    assert decide(store, key="k").repeated, "also when it is over"
    assert decide(store).refusal == "decision_repeated"
    assert decide(store, by="cee").refusal == "already_decided"


def test_quorum_takes_different_people(store: Store) -> None:
    parked(store, quorum=2)
    assert (decide(store).ended, decide(store).refusal, ended(store)) == (
        None,
        "decision_repeated",
        None,
    )
    assert decide(store, by="bob").ended == "approved"


def test_one_rejection_is_enough(store: Store) -> None:
    parked(store, quorum=3)
    decide(store)
    assert decide(store, "reject", "bob", comment="no").ended == "rejected"
    assert ended(store) == (COMPLETED, {"decision": "rejected", "by": ["bob"], "comment": "no"})


def test_the_starter_of_the_whole_family_is_meant(store: Store) -> None:
    parent = begun(store, "p", started_by="sue", contributors=("sue",))
    child = workflow("p.1", parent_id="p", child_no=1, root_id="p")
    assert outcome(store, turn(parent, starts=(child,))) == "parked"
    assert outcome(store, turn(claims(store)["p.1"], approvals=(asking(),))) == "parked"
    assert decide(store, id="p.1.1", by="sue").refusal == "self_approval"
    assert decide(store, id="p.1.1").ended == "approved"


def test_without_four_eyes_the_starter_may(store: Store) -> None:
    parked(store, four_eyes=False)
    assert decide(store, by="sue").ended == "approved"


def test_an_approval_expires_at_its_time_and_not_before(store: Store, clock: Clock) -> None:
    parked(store, timeout_s=10.0)
    clock.forward(9.999)
    assert store.maintenance.fire_timers(10) == (0, NOW + 10 * US)
    assert ended(store) is None
    clock.forward(0.001)
    assert decide(store).refusal == "approval_expired", "whether or not somebody has told so"
    assert store.maintenance.fire_timers(10)[0] == 1
    assert ended(store) == (COMPLETED, {"decision": "expired", "by": [], "comment": ""})
    assert ready_rows(store) == [("w", 0, 0)]
    assert decide(store).refusal == "approval_expired"
    assert store.maintenance.fire_timers(10) == (0, None)


def test_when_its_time_is_over_it_goes_to_the_next_and_their_time_begins(
    store: Store, clock: Clock
) -> None:
    stages = json.dumps([["chief", 5.0, "escalate"], ["board", 7.0, "expire"]])
    parked(store, timeout_s=10.0, on_deadline="escalate", stages=stages)
    clock.forward(10)
    assert store.maintenance.fire_timers(10)[0] == 1
    approval = store.people.approval("w.1")
    assert approval is not None
    assert (approval.role, approval.deadline_at, approval.escalated) == ("chief", NOW + 15 * US, 1)
    clock.forward(5)
    store.maintenance.fire_timers(10)
    assert decide(store, actor=Actor("ann", ("boss",))).refusal == "wrong_role"
    clock.forward(7)
    store.maintenance.fire_timers(10)
    assert ended(store) == (COMPLETED, {"decision": "expired", "by": [], "comment": ""})


def test_an_escalation_by_hand_may_leave_out_a_role(store: Store) -> None:
    parked(store, stages=json.dumps([["chief", 5.0, "expire"], ["board", 7.0, "expire"]]))
    old = store.people.approval("w.1")
    assert old is not None
    assert decide(store, "escalate", to="boss").refusal == "no_escalation"
    assert decide(store, "escalate", to="board").stage == 1
    new = store.people.approval("w.1")
    assert new is not None
    assert (new.role, json.loads(new.stages), new.deadline_at) == ("board", [], NOW + 7 * US)
    assert new.content_hash != old.content_hash


def test_the_task_that_tells_people_is_queued_with_the_approval_and_once(store: Store) -> None:
    notify = json.dumps({"task": "tell", "queue": "mail", "attempts": 4})
    parked(store, notify=notify, stages=json.dumps([["chief", None, "expire"]]))
    decide(store, "escalate")
    told = rows(
        store,
        (
            "SELECT id, name, queue, max_attempts, inputs FROM executions WHERE name = 'tell' "
            "ORDER BY created_at, id DESC"
        ),
    )
    assert [(id, queue, attempts) for id, _, queue, attempts, _ in told] == [
        ("w 1 requested 0", "mail", 4),
        ("w 1 escalated 1", "mail", 4),
    ]
    assert [(json.loads(row[4])["event"], json.loads(row[4])["role"]) for row in told] == [
        ("requested", "boss"),
        ("escalated", "chief"),
    ]
    assert {"w 1 escalated 1", "w 1 requested 0"} <= claims(store, queues=("mail",)).keys()


def test_an_approval_that_is_held_back_is_asked_when_it_is_released(
    store: Store, clock: Clock
) -> None:
    claim = begun(store)
    notify = json.dumps({"task": "tell", "queue": "mail", "attempts": 1})
    held = asking(2, held=True, timeout_s=3.0, notify=notify)
    assert outcome(store, turn(claim, end="own", approvals=(asking(1), held))) == "own"
    assert [each.id for each in store.people.approvals(None, "open", None, None, 10)] == ["w.1"]
    assert claims(store, queues=("mail",)) == {}
    clock.forward(60)
    assert outcome(store, turn(claim, 1, releases=((2, 2),))) == "parked"
    approval = store.people.approval("w.2")
    assert approval is not None
    assert approval.deadline_at == NOW + 63 * US
    assert list(claims(store, queues=("mail",))) == ["w 2 requested 0"]


def test_an_execution_that_ends_asks_nobody_any_more(store: Store) -> None:
    for id, how in (("a", COMPLETED), ("b", FAILED), ("c", CANCELLED)):
        claim = begun(store, id)
        assert outcome(store, turn(claim, end="own", approvals=(asking(1), asking(2)))) == "own"
        decide(store, id=f"{id}.1")
        assert (
            outcome(store, turn(claim, 1, "finish", status=how, value='{"message": ""}'))
            == "finished"
        )
        assert decide(store, id=f"{id}.2").refusal == "approval_cancelled"
        assert ended(store, id, 1) == (COMPLETED, APPROVED), "who decided what is not forgotten"


def test_a_cancelled_wait_is_not_decided(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", approvals=(asking(1), asking(2)))) == "own"
    assert outcome(store, turn(claim, 1, "own", cancels=((2, 2),))) == "own"
    assert decide(store, id="w.2").refusal == "approval_cancelled"
    assert decide(store).ended == "approved"


def test_a_turn_that_lost_its_claim_asks_nobody(store: Store) -> None:
    claim = begun(store)
    stale = turn(claim, approvals=(asking(),))
    store.claims.release({"w": claim.fence})
    claims(store, "b")
    assert outcome(store, stale) == "lost"
    assert store.people.approvals(None, None, None, None, 10) == []


def test_a_turn_that_is_committed_twice_asks_once(store: Store) -> None:
    claim = begun(store)
    asked = turn(claim, end="own", approvals=(asking(),))
    assert (outcome(store, asked), outcome(store, asked)) == ("own", "lost")
    assert len(store.people.approvals(None, None, None, None, 10)) == 1


def test_what_let_it_go_on_is_done_with_the_turn_that_knew_it(store: Store, clock: Clock) -> None:
    parked(store)
    decide(store)
    claim = claims(store)["w"]
    (loaded,) = store.turns.load(["w"])
    (first,) = json.loads(loaded.resumes or "[]")
    store.people.pause(["w"], actor=Actor("ops"))
    store.people.resume(["w"], data='{"a": 1}', actor=Actor("ops"))
    clock.forward(1)
    assert outcome(store, turn(claim, 1, "own", resumed=first[0])) == "own"
    assert [request.executed_at for request in store.people.resumes("w")] == [NOW + US, None], (
        "the second came later"
    )
    (loaded,) = store.turns.load(["w"])
    assert json.loads(loaded.resumes or "[]")[-1][1] == '{"a": 1}'
    failing = turn(
        claim, 2, "finish", status=FAILED, value='{"message": "no money"}', resumed=first[0] + 1
    )
    assert outcome(store, failing) == "finished"
    assert [request.error_message for request in store.people.resumes("w")] == [None, "no money"]


def test_with_hold_it_is_decided_and_takes_no_turn_until_it_is_resumed(store: Store) -> None:
    parked(store)
    decide(store, then_pause=True)
    (loaded,) = store.turns.load(["w"])
    assert (loaded.paused, store.reading.get(["w"])["w"].paused_reason) == (
        True,
        "approval_decided",
    )
    assert store.people.resume(["w"]) == {"w": True}
    assert store.people.resume(["w"]) == {"w": False}
    assert [request.triggered_by for request in store.people.resumes("w")] == ["approval", "manual"]


@pytest.mark.parametrize(("then", "after"), [("resume", "timeout"), ("cancel", "")])
def test_a_pause_ends_at_its_time(store: Store, clock: Clock, then: str, after: str) -> None:
    parked(store)
    assert store.people.pause(
        ["w", "nobody"], reason="r", actor=Actor("ops"), timeout_s=4.0, then=then
    ) == {"w": True}
    claims(store)
    clock.forward(3.9)
    assert store.maintenance.fire_timers(10) == (0, NOW + 4 * US)
    clock.forward(0.1)
    assert store.maintenance.fire_timers(10)[0] == 1
    (loaded,) = store.turns.load(["w"])
    assert (loaded.paused, loaded.cancel_requested) == (False, then == "cancel")
    assert [request.triggered_by for request in store.people.resumes("w")] == (
        [after] if after else []
    )
    assert store.maintenance.fire_timers(10) == (0, None)


def test_many_are_paused_and_resumed_together(store: Store) -> None:
    store.executions.start([workflow(f"w{i}") for i in range(20)])
    ids = [f"w{i}" for i in range(20)]
    assert store.people.pause([*ids, *ids, "nobody"], actor=Actor("ops")) == dict.fromkeys(
        ids, True
    )
    assert all(row.paused for row in store.turns.load(ids))
    assert store.people.resume(ids, actor=Actor("ops")) == dict.fromkeys(ids, True)
    assert store.people.resume(ids, actor=Actor("ops")) == dict.fromkeys(ids, False)
    assert len(rows(store, "SELECT 1 FROM audit")) == 40


def test_what_is_pruned_takes_its_approvals_with_it(store: Store, clock: Clock) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", approvals=(asking(),))) == "own"
    decide(store)
    assert outcome(store, turn(claim, 1, "finish", status=COMPLETED)) == "finished"
    clock.forward(10)
    assert store.maintenance.prune(5.0, 10) == 1
    assert [
        rows(store, f"SELECT * FROM {table}")
        for table in ("approvals", "approval_decisions", "execution_resume_requests")
    ] == [[]] * 3


@pytest.mark.parametrize("anew", [{}, {"timeout_s": 100.0}, {"timeout_s": 100.0, "then": "cancel"}])
def test_a_pause_that_is_made_anew_at_its_end_does_not_end(
    store: Store, stores: Stores, clock: Clock, anew: dict[str, Any]
) -> None:
    parked(store)
    store.people.pause(["w"], timeout_s=5, then="cancel")
    clock.forward(6)
    if isinstance(store, PostgresStore):
        other, look = stores.store(clock), store.db.all

        def between(name: str, /, **values: Any) -> Any:
            found = look(name, **values)
            if name == "due_pauses" and found:
                other.people.pause(["w"], reason="longer", **anew)
            return found

        store.db.all = between  # type: ignore[method-assign]  # what others do between two of its statements
        store.maintenance.fire_timers(10)
        store.db.all = look  # type: ignore[method-assign]
    else:
        store.people.pause(["w"], reason="longer", **anew)
        store.maintenance.fire_timers(10)
    execution = store.reading.get(["w"])["w"]
    assert (execution.paused_reason, execution.cancel_requested_at, store.people.resumes("w")) == (
        "longer",
        None,
        [],
    )


def test_the_end_of_a_pause_does_not_begin_what_is_held_back(store: Store, clock: Clock) -> None:
    children = [
        workflow(f"p.{n}", parent_id="p", child_no=n, root_id="p", held=n == 2) for n in (1, 2)
    ]
    assert outcome(store, turn(begun(store, "p"), starts=children)) == "parked"
    assert store.people.pause(["p.2"], timeout_s=5) == {"p.2": True}
    clock.forward(6)
    store.maintenance.fire_timers(10)
    assert [id for id, *_ in ready_rows(store)] == ["p.1"]
    assert store.reading.get(["p.2"])["p.2"].paused_at is None
    assert [request.triggered_by for request in store.people.resumes("p.2")] == ["timeout"]


def test_a_resume_after_which_no_turn_came_says_so(store: Store) -> None:
    begun(store)
    store.people.pause(["w"])
    store.people.resume(["w"], data='{"k": 1}')
    store.executions.terminate(["w"])
    (request,) = store.people.resumes("w")
    assert (request.executed_at, request.error_message) == (
        None,
        "the execution ended before it could see this",
    )


def test_a_key_does_not_make_another_decision_the_same(store: Store) -> None:
    parked(store, quorum=2)
    decide(store, key="k")
    assert decide(store, "reject", key="k").refusal == "decision_repeated"


@pytest.mark.parametrize("given", ["p", "p.1", "p.1.1", "p.2"])
def test_whoever_gave_data_to_any_of_the_family_does_not_decide(store: Store, given: str) -> None:
    children = [workflow(f"p.{n}", parent_id="p", child_no=n, root_id="p") for n in (1, 2)]
    assert (
        outcome(
            store, turn(begun(store, "p", started_by="sue", contributors=("sue",)), starts=children)
        )
        == "parked"
    )
    below = workflow("p.1.1", parent_id="p.1", child_no=1, root_id="p")
    assert outcome(store, turn(claims(store)["p.1"], starts=(below,))) == "parked"
    claim = claims(store)["p.1.1"]
    store.people.pause([given])
    store.people.resume([given], data='{"total": 0}', actor=Actor("ann"))
    assert outcome(store, turn(claim, approvals=(asking(),))) in ("parked", "woken")
    assert decide(store, id="p.1.1.1").refusal == "self_approval"
    assert decide(store, id="p.1.1.1", by="bob").ended == "approved"


def test_whoever_gave_data_to_what_is_retried_does_not_decide(store: Store) -> None:
    claim = begun(store, "old", started_by="sue", contributors=("sue",))
    store.people.pause(["old"])
    store.people.resume(["old"], data='{"total": 0}', actor=Actor("ann"))
    failed = turn(
        claim, end="finish", status=FAILED, value='{"code": "Odd", "message": "odd", "data": null}'
    )
    assert outcome(store, failed) == "finished"
    store.executions.retry("old", lambda family: anew(family, "again", "1"))
    assert outcome(store, turn(claims(store)["again"], approvals=(asking(),))) == "parked"
    assert decide(store, id="again.1", by="sue").refusal == "self_approval"
    assert decide(store, id="again.1").refusal == "self_approval"
    assert decide(store, id="again.1", by="bob").ended == "approved"


@pytest.mark.parametrize("how", ["resume", "timeout"])
def test_what_was_paused_before_it_began_waits_in_its_own_queue_again(
    store: Store, clock: Clock, how: str
) -> None:
    store.executions.start([workflow("w", queue="bank", priority=3)])
    store.people.pause(["w"], timeout_s=5)
    (claim,) = store.claims.claim("a", ["bank"], 9, 30)
    assert store.claims.park([claim])[0].outcome == "parked"
    store.workers.pause_queue("bank", True)
    if how == "resume":
        store.people.resume(["w"])
    else:
        clock.forward(6)
        store.maintenance.fire_timers(10)
    assert store.claims.claim("a", ["bank"], 9, 30) == [], "its queue is paused"
    store.workers.pause_queue("bank", False)
    assert [(each.id, each.queue) for each in store.claims.claim("a", ["bank"], 9, 30)] == [
        ("w", "bank")
    ]
