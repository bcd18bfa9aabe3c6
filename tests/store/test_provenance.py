"""Whose data is in an execution, and with which permissions it acts: both travel with the data, in both
databases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rhythm.engine.retry_plan import anew
from rhythm.store.access import GENESIS, Act, Actor, Grant, Head, chained
from rhythm.store.approvals import Decision, NewApproval, Verdict
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal, NewWait
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import FAILED, PAUSED
from rhythm.store.open import open_store
from rhythm.store.provenance import (
    EVERYBODY,
    MAX_AUTHORITY,
    MAX_CONTRIBUTORS,
    NOBODY,
    Provenance,
    bounded,
    dump_provenance,
    is_contributor,
    load_authority,
    load_provenance,
    person,
    provenance_of,
)
from tests.store.test_conformance import Clock, begun, claims, outcome, turn, workflow
from tests.store.test_migrations import Fresh, fresh
from tests.support.stores import Stores, rows

__all__ = ["fresh"]

NAMES = st.text("aAbBé ", min_size=1, max_size=3).filter(lambda name: name.strip())
SETS = st.builds(
    Provenance,
    st.lists(NAMES.map(person), max_size=4).map(bounded),
    st.lists(st.sampled_from([("author",), ("operator",)]), max_size=2).map(
        lambda roles: tuple(sorted(set(roles)))
    ),
)


# laws


@given(SETS, SETS, SETS)
def test_joining_is_a_union(one: Provenance, two: Provenance, three: Provenance) -> None:
    assert one.joined(two) == two.joined(one)
    assert one.joined(two).joined(three) == one.joined(two.joined(three))
    assert one.joined(one) == one == one.joined(NOBODY)
    assert {*one.contributors} <= {*one.joined(two).contributors}
    assert one.joined(two).allows("execution:signal") == (
        one.allows("execution:signal") and two.allows("execution:signal")
    )


@given(SETS)
def test_what_is_stored_comes_back(one: Provenance) -> None:
    assert load_provenance(dump_provenance(one)) == one
    assert (dump_provenance(one) is None) == (one == NOBODY)


def test_too_many_to_keep_stand_for_everybody_and_allow_nothing() -> None:
    crowd = Provenance(
        tuple(f"p{i}" for i in range(MAX_CONTRIBUTORS)),
        tuple((f"r{i}",) for i in range(MAX_AUTHORITY)),
    )
    one_more = crowd.joined(Provenance(("q",), (("operator",),)))
    assert one_more.contributors == (EVERYBODY,)
    assert one_more.joined(Provenance(("r",))).contributors == (EVERYBODY,), "and it stays so"
    assert not one_more.allows("execution:signal")
    assert not EVERYBODY.isprintable(), "so nobody can be called that"


@pytest.mark.parametrize(
    "written",
    [
        "Ann",
        "ANN",
        " ann ",
        "\uff41nn",
        "a\u200bnn",
        "an\u034fn",
        "ann\u3164",
        "ann\ufe0f",
        "a\u00adnn",
    ],
)
def test_one_person_has_one_name_however_it_is_written(written: str) -> None:
    assert person(written) == "ann"
    assert is_contributor(written, ["Ann"])


@given(
    st.text(
        st.one_of(st.characters(), st.sampled_from("e\u0301\u034f\ufe0f\u3164 ßİſΣ")), max_size=12
    )
)
@example("andre\u034f\u0301")
def test_a_name_that_was_made_plain_stays_as_it_is(name: str) -> None:
    assert person(person(name)) == person(name)
    assert is_contributor(name, [person(name)])


def test_who_acts_with_a_token_acts_with_its_roles_and_who_has_the_database_with_all() -> None:
    assert provenance_of(None) == NOBODY
    assert provenance_of(Actor("Ann")) == Provenance(("ann",))
    assert provenance_of(Actor("Ann", token="t", token_roles=("viewer", "author"))) == Provenance(
        ("ann",), (("author", "viewer"),)
    )
    assert Provenance(("ann",)).allows("execution:signal")
    assert not provenance_of(Actor("Ann", token_roles=())).allows("execution:signal")


# in a database


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.empty_store(Clock())


def contributors(store: Store, id: str) -> list[str]:
    return [
        name
        for (name,) in rows(
            store,
            "SELECT person FROM execution_contributors WHERE root_id = ? ORDER BY person",
            [id],
        )
    ]


def started(store: Store, id: str, *people: str, **changes: Any) -> None:
    store.executions.start(
        [workflow(id, contributors=people, started_by=people[0] if people else None, **changes)]
    )


def audited(store: Store) -> list[tuple[str, str, str, str]]:
    return rows(store, "SELECT actor, source, action, object FROM audit ORDER BY n")


def test_a_signal_makes_its_sender_a_contributor_of_the_whole_family(store: Store) -> None:
    child = workflow("p.1", parent_id="p", child_no=1, root_id="p")
    assert (
        outcome(store, turn(begun(store, "p", contributors=("sue",)), starts=(child,))) == "parked"
    )
    assert store.messages.signal(NewSignal("s", "p.1", "go", "1"), 10, Actor("Ann")) == "sent"
    assert store.messages.signal(NewSignal("t", "p.1", "go", "1"), 10) == "sent", "nobody says who"
    assert contributors(store, "p") == ["ann", "sue"]
    assert store.messages.signal(NewSignal("s", "p.1", "go", "1"), 10, Actor("Bob")) == "duplicate"
    assert contributors(store, "p") == ["ann", "sue"], "what is not taken is nobody's data"


def test_an_event_brings_its_publisher_to_who_takes_it_now_and_later(store: Store) -> None:
    assert outcome(store, turn(begun(store, "w"), waits=(NewWait(1, "paid", "{}"),))) == "parked"
    later = begun(store, "x")
    assert store.messages.publish(NewEvent("e", "paid", "1"), Actor("Ann")) == "published"
    assert (contributors(store, "w"), contributors(store, "x")) == (["ann"], [])
    assert outcome(store, turn(later, waits=(NewWait(1, "paid", "{}"),))) == "woken"
    assert contributors(store, "x") == ["ann"]


def test_a_turn_passes_on_everyone_who_had_a_hand_in_its_family(store: Store) -> None:
    store.definitions.register([Definition("ship", "1", "flow", "", "{}", "f", ("paid",))])
    started(store, "to")
    sender = begun(store, "w", contributors=("sue", "ann"), started_by="Sue")
    signals, events = (
        (NewSignal("s", "to", "go", "1", "w"),),
        (NewEvent("e", "paid", "1", execution_id="w"),),
    )
    assert outcome(store, turn(sender, signals=signals, events=events)) == "parked"
    (ship,) = store.reading.find("ship", None, None, 9)
    assert (contributors(store, "to"), contributors(store, ship.id)) == (
        ["ann", "sue"],
        ["ann", "sue"],
    )
    assert audited(store) == [
        ("Sue", "execution:w", "event.publish", "e"),
        ("Sue", "execution:w", "execution.signal", "to"),
    ]
    assert store.access.verify_audit()[1] == []


def test_a_turn_that_is_lost_passes_on_nothing(store: Store) -> None:
    started(store, "to")
    sender = begun(store, "w", contributors=("sue",), started_by="Sue")
    lost = turn(
        sender,
        seq=7,
        signals=(NewSignal("s", "to", "go", "1", "w"),),
        events=(NewEvent("e", "paid", "1", execution_id="w"),),
    )
    assert outcome(store, lost) == "lost"
    assert (contributors(store, "to"), audited(store)) == ([], [])


def test_nobody_has_a_hand_in_what_nobody_says_they_did(store: Store) -> None:
    started(store, "to")
    sender = begun(store, "w")
    assert outcome(store, turn(sender, signals=(NewSignal("s", "to", "go", "1", "w"),))) == "parked"
    assert (contributors(store, "to"), audited(store)) == ([], [])


def test_a_signal_that_its_starter_might_not_send_reaches_nobody(store: Store) -> None:
    started(store, "to")
    sender = begun(store, "w", contributors=("ada",), started_by="Ada", authority='[["author"]]')
    assert outcome(store, turn(sender, signals=(NewSignal("s", "to", "go", "1", "w"),))) == "parked"
    assert store.messages.mail(["to"]) == {}
    assert (contributors(store, "to"), audited(store)) == ([], [])


def test_a_retry_has_the_contributors_of_the_one_before_and_whoever_asked_for_it(
    store: Store,
) -> None:
    claim = begun(store, "old", contributors=("sue",), started_by="sue", authority='[["operator"]]')
    failed = turn(
        claim, end="finish", status=FAILED, value='{"code": "Odd", "message": "odd", "data": null}'
    )
    assert outcome(store, failed) == "finished"
    store.executions.retry(
        "old", lambda family: anew(family, "again", "1"), Actor("Ann", token_roles=("author",))
    )
    assert contributors(store, "again") == ["ann", "sue"]
    (again,) = store.turns.load(["again"])
    assert load_authority(again.authority) == (("author",), ("operator",))


def test_a_resume_contributes_only_with_data(store: Store) -> None:
    started(store, "w")
    for by, data in (("ann", "null"), ("eve", "{}"), ("bob", '{"amount": 1}')):
        store.people.pause(["w"])
        store.people.resume(["w"], data=data, actor=Actor(by))
    assert contributors(store, "w") == ["bob"]


def test_beyond_the_limit_one_stands_for_all(store: Store) -> None:
    crowd = tuple(f"p{i:04}" for i in range(MAX_CONTRIBUTORS))
    claim = begun(store, "w", contributors=crowd)
    store.messages.signal(NewSignal("s", "w", "go", "1"), 10, Actor("Ann"))
    store.messages.signal(NewSignal("t", "w", "go", "1"), 10, Actor("Bob"))
    assert contributors(store, "w") == [EVERYBODY, *crowd]
    store.messages.signal(NewSignal("u", "w", "go", "1"), 10, Actor("p0000"))
    (woken,) = store.claims.extend({"w": claim.fence}, 30).values()
    asked = turn(
        claim.replace(wakes=woken), approvals=(NewApproval(1, "boss", "", "null"),), status=PAUSED
    )
    assert outcome(store, asked) == "parked"
    verdict = store.people.decide("w.1", Decision(Actor("Zoe"), "approve"))
    assert verdict is not None
    assert verdict.refusal == "too_many_contributors"


def test_who_is_known_already_is_not_one_too_many(store: Store) -> None:
    crowd = tuple(f"p{i:04}" for i in range(MAX_CONTRIBUTORS))
    started(store, "w", *crowd)
    store.messages.signal(NewSignal("s", "w", "go", "1"), 10, Actor("p0007"))
    assert contributors(store, "w") == [*crowd]


def test_what_somebody_with_the_database_sends_is_delivered_whatever_their_token_allows(
    store: Store,
) -> None:
    started(store, "to")
    assert (
        store.messages.signal(
            NewSignal("s", "to", "go", "1"), 10, Actor("Ann", token_roles=("viewer",))
        )
        == "sent"
    )
    assert [mail.id for mail in store.messages.mail(["to"])["to"]] == ["s"]


def test_a_loop_that_publishes_and_sends_leaves_a_few_rows_in_the_audit(store: Store) -> None:
    started(store, "to")
    sender = begun(store, "w", contributors=("sue",), started_by="Sue")
    events = tuple(
        NewEvent(f"e{i}", "paid" if i % 3 else "lost", "1", execution_id="w") for i in range(50)
    )
    signals = tuple(NewSignal(f"s{i}", "to", "go", "1", "w") for i in range(50))
    assert outcome(store, turn(sender, signals=signals, events=events)) == "parked"
    assert [row[2:] for row in audited(store)] == [
        ("event.publish", "e0"),
        ("event.publish", "e1"),
        ("execution.signal", "to"),
    ]
    (detail,) = (
        json.loads(text) for (text,) in rows(store, "SELECT detail FROM audit WHERE n = 3")
    )
    assert detail == {"signal": "go", "id": "s0", "count": 50, "last": "s49"}


def test_a_full_mailbox_takes_nothing_of_a_turn_either(store: Store) -> None:
    store.limits = store.limits.replace(signals=5)
    started(store, "to")
    started(store, "other")
    store.messages.signal(NewSignal("s", "to", "go", "1"), 5)
    sender = begun(store, "w", contributors=("sue",), started_by="Sue")
    signals = tuple(
        NewSignal(f"s{i}", "to" if i < 9 else "other", "go", "1", "w") for i in range(11)
    )
    assert outcome(store, turn(sender, signals=signals)) == "parked"
    assert {
        id: [mail.id for mail in box] for id, box in store.messages.mail(["to", "other"]).items()
    } == {
        "to": ["s", "s0", "s1", "s2", "s3"],
        "other": ["s9", "s10"],
    }
    assert [
        json.loads(text)["count"] for (text,) in rows(store, "SELECT detail FROM audit ORDER BY n")
    ] == [4, 2]
    assert store.messages.signal(NewSignal("t", "to", "go", "1"), 5) == "full"


def test_what_is_pruned_takes_its_contributors_along(stores: Stores) -> None:
    clock = Clock()
    store = stores.empty_store(clock)
    assert (
        outcome(store, turn(begun(store, "w", contributors=("ann",)), end="finish", status=5))
        == "finished"
    )
    clock.forward(100)
    assert store.maintenance.prune(10, 10) == 1
    assert contributors(store, "w") == []


# votes


def asking(store: Store, **changes: Any) -> None:
    stages = json.dumps([["board", None, "expire"], ["boss", None, "expire"]])
    approval = NewApproval(1, "boss", "why", "1", quorum=2, stages=stages).replace(**changes)
    assert (
        outcome(
            store,
            turn(begun(store, "w", contributors=("sue",)), approvals=(approval,), status=PAUSED),
        )
        == "parked"
    )


def decide(store: Store, by: str | Actor, decision: str = "approve") -> Verdict:
    verdict = store.people.decide(
        "w.1", Decision(Actor(by) if isinstance(by, str) else by, decision)
    )
    assert verdict is not None
    return verdict.replace(approval=None, after=None, decisions=())


def test_a_stage_that_comes_back_to_a_role_begins_without_votes(store: Store) -> None:
    asking(store)
    assert decide(store, "ann") == Verdict()
    for _ in range(2):
        assert decide(store, "bob", "escalate").refusal == ""
    assert decide(store, "bob") == Verdict(), "ann's vote was for another stage"
    assert decide(store, "ann").by == ("bob", "ann"), "and she may vote again"


def token(store: Store, id: str, name: str) -> Actor:
    store.access.create_token(Grant(id, name, "0" * 64, ("approver",), ("boss",), None))
    return Actor(name, token=id, token_roles=("approver",))


def test_a_vote_of_a_token_that_was_revoked_since_counts_no_more(store: Store) -> None:
    asking(store)
    stolen, bob, fresh_one = (
        token(store, "t1", "Ann"),
        token(store, "t2", "Bob"),
        token(store, "t3", "Ann"),
    )
    assert decide(store, stolen) == Verdict()
    store.access.revoke_token("t1")
    assert decide(store, bob) == Verdict(), "one vote is left"
    assert decide(store, fresh_one).by == ("Bob", "Ann"), (
        "whoever lost a token may vote with another"
    )


@pytest.mark.parametrize("given", [True, False])
def test_a_vote_does_not_count_after_its_voter_has_given_data(store: Store, given: bool) -> None:
    asking(store)
    assert decide(store, "Ann") == Verdict()
    if given:
        store.messages.signal(NewSignal("s", "w", "amount", "1"), 10, Actor("ann"))
    assert decide(store, "bob") == (
        Verdict() if given else Verdict(ended="approved", by=("Ann", "bob"))
    )
    assert decide(store, "Ann").refusal == ("self_approval" if given else "decision_repeated")


def test_a_comment_is_the_data_of_whoever_decides_in_what_is_sent_on_and_not_before(
    store: Store,
) -> None:
    asking(store, quorum=1)
    verdict = store.people.decide("w.1", Decision(Actor("Ann"), "approve", comment='{"amount": 1}'))
    assert verdict is not None
    assert (verdict.ended, verdict.by) == ("approved", ("Ann",))
    claim = claims(store)["w"]
    started(store, "to")
    again = turn(
        claim,
        seq=1,
        signals=(NewSignal("s", "to", "go", "1", "w"),),
        approvals=(NewApproval(2, "boss", "", "null"),),
        status=PAUSED,
    )
    assert outcome(store, again) == "parked"
    assert contributors(store, "to") == ["ann", "sue"]
    verdict = store.people.decide("w.2", Decision(Actor("Ann"), "approve"))
    assert verdict is not None
    assert (verdict.ended, verdict.by) == ("approved", ("Ann",)), (
        "the same person may decide twice in one execution"
    )


def test_a_decision_without_a_comment_gives_no_data(store: Store) -> None:
    asking(store, quorum=1)
    assert decide(store, "Ann").ended == "approved"
    claim = claims(store)["w"]
    started(store, "to")
    assert (
        outcome(store, turn(claim, seq=1, signals=(NewSignal("s", "to", "go", "1", "w"),)))
        == "parked"
    )
    assert contributors(store, "to") == ["sue"]


# what was there before


OLD = """
INSERT INTO events (id, type, n, data, published_at) VALUES ('e', 'paid', 1, '1', 1);
INSERT INTO event_waits (execution_id, n, type, wanted, since, held, status, event_id, ended_at)
 VALUES ('w', 1, 'paid', '{}', 0, (1 = 0), 5, 'e', 1);
INSERT INTO execution_resume_requests (execution_id, triggered_by, triggered_by_id, trigger_data, reason, requested_at)
 VALUES ('w', 'manual', 'Rex', '{}', '', 1), ('w', 'manual', 'Kim', 'null', '', 1), ('w', 'event', 'e', '{}', '', 1);
INSERT INTO schedules (name, workflow, tz, every_us, anchor_at, inputs, overlap, catch_up, origin, paused_by, paused_reason, created_at,
  created_by, updated_at) VALUES ('daily', 'main', 'UTC', 1, 0, 'null', 'skip', 1, '', '', '', 1, 'Max', 1);
INSERT INTO approvals (id, execution_id, n, role, reason, data, quorum, four_eyes, stages, notify, on_deadline, held, created_at, escalated)
 VALUES ('w.9', 'w', 9, 'boss', '', 'null', 2, (1 = 1), '[]', 'null', 'expire', (1 = 0), 1, 1);
INSERT INTO approval_decisions VALUES ('w.9', 0, 'Amy', 'clerk', 'approve', '', '', NULL, NULL, 1),
 ('w.9', 1, 'Amy', 'boss', 'approve', '', '', NULL, NULL, 1);
"""


ACTS = [
    ("Sam", "execution.signal", "w.1"),
    ("Pat", "event.publish", "e"),
    ("Max", "schedule.create", "daily"),
    ("Uli", "schedule.change", "daily"),
]


def old_audit() -> str:
    """The audit as it was written then: the row, then the head."""
    script, head = "", Head(0, GENESIS)
    for actor, action, subject in ACTS:
        (row,) = chained(head, [(Actor(actor), Act(action, subject))], 1)
        head = Head(row.n, row.hash)
        values = ", ".join("NULL" if value is None else f"'{value}'" for value in row.astuple())
        script += (
            f"INSERT INTO audit (n, at, actor, token, source, action, object, detail, prev, "
            f"hash) VALUES ({values});"
        )
    return f"{script} UPDATE audit_head SET n = {head.n}, hash = '{head.hash}';"


def old_execution(
    id: str, by: str | None, parent: str | None = None, retry_of: str | None = None
) -> str:
    texts = [None if each is None else f"'{each}'" for each in (parent, parent or id, retry_of, by)]
    parent_id, root_id, of, started_by = ("NULL" if text is None else text for text in texts)
    return f"""INSERT INTO executions (id, type, name, version, queue, priority, status, parent_id, child_no, root_id, retry_of, attempt,
      max_attempts, held, options, attributes, inputs, created_at, started_by) VALUES (
      '{id}', 0, 'main', '1', 'default', 0, 0, {parent_id}, 1, {root_id}, {of}, 0, 1, (1 = 0), '{{}}', '{{}}', 'null', 1, {started_by});"""


def test_what_was_looked_up_before_is_written_down_by_the_migration(fresh: Fresh) -> None:
    store = open_store(fresh.url)
    try:
        for migration in store.schema.migrations():
            if migration.number == 7:
                made = [
                    ("w", "Sue"),
                    ("w.1", None, "w"),
                    ("again", "Sue", None, "w"),
                    ("timed", "schedule:daily"),
                    ("other", None),
                ]
                fresh.by_hand(OLD + old_audit() + "".join(old_execution(*each) for each in made))
            fresh.by_hand(migration.sql)
        assert contributors(store, "w") == ["Pat", "Rex", "Sam", "Sue"]
        assert contributors(store, "again") == ["Pat", "Rex", "Sam", "Sue"]
        assert (contributors(store, "timed"), contributors(store, "other")) == (["Max", "Uli"], [])
        ((event,),) = rows(store, "SELECT provenance FROM events")
        (daily,) = store.schedules.named(["daily"])[0]
        assert load_provenance(event) == Provenance(("Pat",))
        assert {*load_provenance(daily.provenance).contributors} == {"Max", "Uli"}
        verdict = store.people.decide("w.9", Decision(Actor("Bob"), "approve"))
        assert verdict is not None
        assert verdict.by == ("Amy", "Bob"), "a vote that counted goes on counting, and once"
    finally:
        store.close()


def test_a_new_execution_begins_with_its_contributors_whoever_starts_it(store: Store) -> None:
    new = NewExecution(
        "w", 0, "main", "default", version="1", contributors=("ann",), authority='[["operator"]]'
    )
    store.executions.start([new])
    store.executions.start([new.replace(contributors=("bob",))])
    assert contributors(store, "w") == ["ann"], "who finds it there has given it nothing"
    (loaded,) = store.turns.load(["w"])
    assert loaded.authority == '[["operator"]]'
    assert claims(store).keys() == {"w"}
