"""Schedules as rows, on every database: a slot is one row and one execution, whoever fires it and
however often."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rhythm.store.access import Act, Actor, Filter
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.schedules import KEPT_SLOTS, Due, Fire, Firing, NewFire, Schedule
from rhythm.store.sqlite.store import SqliteStore
from tests.store.test_conformance import Clock, claims, status, turn
from tests.support.postgres import Schemas
from tests.support.stores import Stores, rows

SLOT = 1_800_000_000_000_000
DEFINITION = Definition("report", "1", "flow", "", "{}")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def made(store: Store, name: str = "s", **changes: Any) -> Schedule:
    schedule = Schedule(
        name, "report", every_us=60_000_000, next_at=SLOT, created_at=1, updated_at=1
    ).replace(**changes)
    after = store.schedules.change(name, lambda before, now: schedule)
    assert after == schedule
    return schedule


def execution(id: str, **changes: Any) -> NewExecution:
    return NewExecution(id, WORKFLOW, "report", "default", version="1").replace(**changes)


def firing(name: str = "s", slot: int = SLOT, id: str | None = "e1", **changes: Any) -> Firing:
    """Starts an execution for a slot."""
    fire = Fire(name, slot, "started" if id else "skipped", id, manual=changes.pop("manual", False))
    start = execution(id, key=changes.pop("key", None)) if id else None
    return Firing(name, 0, slot + 60_000_000, fires=(NewFire(fire, start),)).replace(**changes)


def planned(store: Store, *firings: Firing) -> list[Firing]:
    """For the schedules as they are now; what somebody asks for is for whichever there are."""
    revisions: dict[str, int | None] = {
        due.schedule.name: due.revision
        for due in store.schedules.load_due([each.name for each in firings])
    }
    return [
        each.replace(revision=None if each.fires[0].fire.manual else revisions[each.name])
        for each in firings
    ]


def fire(store: Store, *firings: Firing, actor: Actor | None = None) -> list[Fire]:
    fires, left = store.schedules.fire(planned(store, *firings), actor)
    assert left == []
    return fires


def stored(store: Store, name: str = "s") -> Schedule | None:
    found, _ = store.schedules.named([name])
    return found[0] if found else None


def test_a_schedule_comes_back_as_it_went_in(store: Store, clock: Clock) -> None:
    cron = made(
        store,
        "b",
        cron="0 9 * * *",
        every_us=None,
        tz="Europe/Berlin",
        inputs='{"ä":1}',
        overlap="queue",
        catch_up=7,
        origin="o",
        queued_at=4,
        paused_at=5,
        paused_by="ada",
        paused_reason="why",
        created_by="bob",
    )
    once = made(store, "a", every_us=None, at=9, next_at=None, anchor_at=3)
    assert store.schedules.after("", 9) == [once, cron]
    assert store.schedules.named(["b", "nobody"]) == ([cron], clock.us)
    assert store.schedules.named([]) == ([], clock.us)


def test_it_is_changed_and_deleted_as_it_is_at_that_moment(store: Store, clock: Clock) -> None:
    before = made(store)
    seen: list[Any] = []

    def later(found: Schedule | None, now: int) -> Schedule | None:
        seen.append((found, now))
        return found and found.replace(overlap="allow", updated_at=now)

    after = store.schedules.change("s", later)
    assert (seen, stored(store)) == ([(before, clock.us)], after)
    assert after == before.replace(overlap="allow", updated_at=clock.us)
    assert store.schedules.change("nobody", later) is None
    fire(store, firing())
    assert store.schedules.change("s", lambda found, now: None) is None
    assert (store.schedules.after("", 9), store.schedules.fires("s", 10)) == ([], [])
    assert status(store, "e1") == "pending"


def test_changes_and_runs_that_somebody_asked_for_are_recorded_and_no_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, Act]] = []

    def audit(actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        told.extend((actor.name, act) for act in acts if actor)

    monkeypatch.setattr(store.auditor, "add", audit)
    ada, schedule = Actor("ada"), Schedule("s", "report", cron="0 9 * * *", next_at=SLOT)
    for change, action in (
        (lambda before, now: schedule, "schedule.change"),
        (lambda before, now: before, "schedule.change"),
        (lambda before, now: schedule.replace(paused_at=1, paused_reason="why"), "schedule.pause"),
    ):
        store.schedules.change("s", change, ada, action)
    fire(store, firing(manual=True), actor=ada)
    fire(store, firing(id="e2"))
    store.schedules.change("s", lambda before, now: None, ada)
    assert [(name, act.action, act.object) for name, act in told] == [
        ("ada", f"schedule.{what}", "s") for what in ("create", "pause", "run", "delete")
    ]
    assert told[1][1].detail == (
        '{"workflow": "report", "cron": "0 9 * * *", "tz": "UTC", "overlap": "skip", '
        '"catch_up": 1, "paused_reason": "why"}'
    )
    assert told[2][1].detail == '{"execution": "e1"}'


def test_due_are_those_whose_slot_has_come_and_the_rest_is_waited_for(
    store: Store, clock: Clock
) -> None:
    assert store.schedules.due(10) == ([], None)
    made(store, "late", next_at=SLOT - 1)
    made(store, "now")
    made(store, "soon", next_at=SLOT + 2_500_000)
    made(store, "later", next_at=SLOT + 9_000_000)
    made(store, "paused", paused_at=1)
    made(store, "over", next_at=None)
    assert store.schedules.due(10) == (["late", "now"], 2.5)
    assert store.schedules.due(10, ["late"]) == (["now"], 2.5)
    assert store.schedules.due(1) == (["late"], None)
    clock.forward(2.5)
    assert store.schedules.due(10) == (["late", "now", "soon"], 6.5)


def test_a_queued_slot_is_due_when_what_it_waits_for_has_ended(store: Store) -> None:
    made(store, overlap="queue", next_at=SLOT)
    fire(store, firing(queued_at=SLOT + 5))
    assert store.schedules.due(10) == ([], 60.0)
    claim = claims(store)["e1"]
    store.turns.commit([turn(claim, end="finish", status=5)], [])
    assert store.schedules.due(10) == (["s"], 60.0)
    store.schedules.change("s", lambda before, now: before and before.replace(paused_at=1))
    assert store.schedules.due(10) == ([], None)


def test_a_slot_starts_its_execution_and_moves_the_schedule_on(store: Store, clock: Clock) -> None:
    made(store)
    expected = Fire("s", SLOT, "started", "e1", at=clock.us)
    assert fire(store, firing(queued_at=7)) == [expected]
    assert store.schedules.fires("s", 10) == [expected]
    after = stored(store)
    assert after is not None
    assert (after.next_at, after.queued_at) == (SLOT + 60_000_000, 7)
    assert list(claims(store)) == ["e1"]


def test_the_plan_sees_the_schedule_and_what_runs_of_it(store: Store, clock: Clock) -> None:
    schedule, other = made(store), made(store, "other")
    fire(store, firing(), firing("other", id="o1"))
    fire(store, firing(slot=SLOT + 1, id="e2"), firing("other", slot=SLOT + 1, id=None))
    claim = claims(store)["e1"]
    store.turns.commit([turn(claim, end="finish", status=5)], [])
    moved = SLOT + 1 + 60_000_000
    assert [
        due.replace(revision=0) for due in store.schedules.load_due(["other", "s", "nobody"])
    ] == [
        Due(other.replace(next_at=moved), ("o1",), clock.us),
        Due(schedule.replace(next_at=moved), ("e2",), clock.us),
    ]


def test_a_slot_that_has_its_row_is_never_started_again(store: Store) -> None:
    made(store)
    fire(store, firing())
    again = firing(id="e2", next_at=SLOT + 77)
    assert fire(store, again) == []
    assert set(store.reading.get(["e1", "e2"])) == {"e1"}
    after = stored(store)
    assert after is not None
    assert after.next_at == SLOT + 77


def test_a_slot_whose_execution_was_started_before_the_schedule_was_made_anew_has_that_one(
    store: Store,
) -> None:
    made(store)
    fire(store, firing(key="schedule:s@1"))
    store.schedules.change("s", lambda before, now: None)
    made(store)
    (found,) = fire(store, firing(id="e2", key="schedule:s@1"))
    assert (found.execution_id, found.outcome) == ("e1", "started")
    assert store.schedules.fires("s", 9) == [found]
    assert set(store.reading.get(["e1", "e2"])) == {"e1"}


def test_a_run_that_is_asked_for_again_with_its_key_is_one_row_of_the_past_and_of_the_audit(
    store: Store,
) -> None:
    made(store)
    ada = Actor("ada")
    for id in ("e1", "e2"):
        (found,) = fire(store, firing(id=id, manual=True, key="k"), actor=ada)
        assert found.execution_id == "e1"
    assert [(each.manual, each.execution_id) for each in store.schedules.fires("s", 10)] == [
        (True, "e1")
    ]
    assert [row.action for row in store.access.audit(Filter(), 10)] == ["schedule.run"]


def test_runs_that_somebody_asks_for_at_the_same_moment_are_several(store: Store) -> None:
    made(store)
    ada = Actor("ada")
    fire(store, firing(id="e0"))
    assert [
        fire(store, firing(id=f"e{n}", manual=True), actor=ada)[0].execution_id for n in (1, 2)
    ] == ["e1", "e2"]
    assert [(each.manual, each.execution_id) for each in store.schedules.fires("s", 10)] == [
        (True, "e2"),
        (True, "e1"),
        (False, "e0"),
    ]


def test_executions_that_still_run_are_asked_to_end_with_the_start_of_the_next(
    store: Store,
) -> None:
    made(store)
    fire(store, firing())
    fire(store, firing(slot=SLOT + 1, id="e2", cancels=("e1",)))
    found = store.reading.get(["e1", "e2"])
    assert (found["e1"].cancel_requested_at is not None, found["e2"].cancel_requested_at) == (
        True,
        None,
    )


def test_of_a_plan_that_fails_nothing_is_done(store: Store) -> None:
    made(store)
    twice = firing().replace(fires=(*firing().fires, *firing(id="e2").fires))
    with pytest.raises(Exception, match=r"(?i)unique"):
        fire(store, twice)
    assert (store.schedules.fires("s", 10), store.reading.get(["e1", "e2"])) == ([], {})
    assert stored(store) == made(store)


def test_the_past_of_a_schedule_is_kept_for_a_hundred_slots_and_what_still_runs_for_longer(
    store: Store,
) -> None:
    made(store), made(store, "other")
    fire(store, firing(), firing("other", id="o1"))
    for n in range(1, KEPT_SLOTS + 5):
        fire(store, firing(slot=SLOT + n, id=None))
    kept = [each.slot_at - SLOT for each in store.schedules.fires("s", 1000)]
    assert kept == [*range(KEPT_SLOTS + 4, 4, -1), 0]
    assert len(store.schedules.fires("other", 10)) == 1


def test_a_registration_changes_schedules_of_its_workflows_with_it_or_not_at_all(
    store: Store,
) -> None:
    mine = made(store, "@report", origin="report")
    made(store, "by hand")
    made(store, "@other", origin="other")
    seen: list[Schedule] = []

    def registered(existing: Sequence[Schedule], now: int) -> dict[str, Schedule | None]:
        seen.extend(existing)
        return {"@report": None, "@report.2": mine.replace(name="@report.2", created_at=now)}

    store.definitions.register([DEFINITION], registered)
    assert seen == [mine]
    assert [each.name for each in store.schedules.after("", 9)] == [
        "@other",
        "@report.2",
        "by hand",
    ]

    def bad(existing: Sequence[Schedule], now: int) -> dict[str, Schedule | None]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.definitions.register([DEFINITION.replace(name="new")], bad)
    assert store.definitions.get("new") is None


def test_many_at_once_fire_a_slot_once(stores: Stores, clock: Clock) -> None:
    first = stores.empty_store(clock)
    made(first)
    many = [first, *(stores.store(clock) for _ in range(3))]
    begin = threading.Barrier(len(many))
    found: list[Fire] = []

    def work(n: int, store: Store) -> None:
        begin.wait(120)
        for turn_no in range(20):
            while (due := store.schedules.load_due(["s"])[0]).schedule.next_at == SLOT + turn_no:
                new = firing(
                    slot=SLOT + turn_no,
                    id=f"e{turn_no}-{n}",
                    next_at=SLOT + turn_no + 1,
                    revision=due.revision,
                )
                found.extend(store.schedules.fire([new])[0])

    threads = [threading.Thread(target=work, args=each) for each in enumerate(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(each.slot_at - SLOT for each in found) == list(range(20))
    assert len(rows(first, "SELECT id FROM executions")) == 20


def test_on_postgres_a_schedule_that_another_process_has_is_left_to_it_and_a_person_waits(
    schemas: Schemas, clock: Clock
) -> None:
    """SQLite has one writer at a time."""
    first, stores = schemas.empty_store(clock), schemas
    made(first), made(first, "t")
    other = stores.store(clock)
    inside, go_on, person = threading.Event(), threading.Event(), list[list[Fire]]()

    def slow(before: Schedule | None, now: int) -> Schedule | None:
        inside.set()
        go_on.wait(120)
        return before

    holder = threading.Thread(target=lambda: first.schedules.change("s", slow))
    holder.start()
    inside.wait(120)
    assert [each.schedule for each in fire(other, firing("t", id="t1"))] == ["t"]
    assert other.schedules.fire(planned(other, firing(id="e2"))) == ([], ["s"])
    third = stores.store(clock)
    asks = threading.Thread(
        target=lambda: person.append(fire(third, firing(id="e3", manual=True), actor=Actor("ada")))
    )
    asks.start()
    while asks.is_alive() and not rows(other, "SELECT 1 FROM pg_locks WHERE NOT granted"):
        pass
    go_on.set()
    holder.join(120), asks.join(120)
    assert [each.execution_id for each in person[0]] == ["e3"]
    assert set(first.reading.get(["e2", "e3"])) == {"e3"}


# between the look and the write


def paused(store: Store) -> None:
    store.schedules.change("s", lambda before, now: before and before.replace(paused_at=1))


def with_other_inputs(store: Store) -> None:
    store.schedules.change("s", lambda before, now: before and before.replace(inputs="7"))


def deleted(store: Store) -> None:
    store.schedules.change("s", lambda before, now: None)


def made_anew(store: Store) -> None:
    """In the same microsecond, and the same in all but what it starts."""
    deleted(store)
    made(store, workflow="other")


def registered_again(store: Store) -> None:
    store.definitions.register(
        [DEFINITION],
        lambda existing, now: {
            "s": Schedule("s", "report", every_us=60_000_000, next_at=SLOT, origin="report")
        },
    )


def run_by_somebody(store: Store) -> None:
    fire(store, firing(id="e9", manual=True), actor=Actor("ada"))


def fired_by_another(store: Store) -> None:
    fire(store, firing(id="e9"))


@pytest.mark.parametrize(
    "change",
    [
        paused,
        with_other_inputs,
        deleted,
        made_anew,
        registered_again,
        run_by_somebody,
        fired_by_another,
    ],
    ids=lambda f: f.__name__,
)
def test_a_plan_for_a_schedule_that_has_changed_since_is_dropped(
    store: Store, change: Callable[[Store], None]
) -> None:
    made(store), made(store, "t")
    plans = planned(store, firing(), firing("t", id="t1"))
    change(store)
    before = stored(store), store.schedules.fires("s", 10)
    fires, left = store.schedules.fire(plans)
    assert ([each.schedule for each in fires], left) == (["t"], ["s"])
    assert (stored(store), store.schedules.fires("s", 10)) == before
    assert set(store.reading.get(["e1", "t1"])) == {"t1"}


def test_a_run_that_somebody_asks_for_needs_the_schedule_and_not_its_revision(store: Store) -> None:
    made(store)
    plans = planned(store, firing(id="e1", manual=True))
    with_other_inputs(store)
    assert [each.execution_id for each in store.schedules.fire(plans, Actor("ada"))[0]] == ["e1"]
    after = stored(store)
    assert after is not None
    assert (after.next_at, after.inputs) == (SLOT, "7")
    deleted(store)
    assert store.schedules.fire(plans, Actor("ada")) == ([], ["s"])


def test_whoever_dies_before_the_commit_did_nothing_and_after_it_all_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(store)
    plans = planned(store, firing())

    def dies(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store.auditor, "add", dies)  # the last thing that the transaction does
        with pytest.raises(KeyboardInterrupt):
            store.schedules.fire(plans)
    assert (store.schedules.fires("s", 9), store.reading.get(["e1"])) == ([], {})
    again = [plans[0].replace(fires=firing(id="e2").fires)]
    assert [each.execution_id for each in store.schedules.fire(again)[0]] == ["e2"]
    assert store.schedules.fire(plans) == ([], ["s"])
    assert [each.execution_id for each in store.schedules.fires("s", 9)] == ["e2"]


def test_what_runs_is_read_after_the_schedule(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a run that begins between the two would be in neither: not in what runs, and not in the
    revision."""
    made(store)
    target: Any = getattr(store, "db", None)
    name = "read" if isinstance(store, SqliteStore) else "all"
    ask, asked = getattr(target, name), list[Any]()

    def between(*args: Any, **values: Any) -> Any:
        answer = ask(*args, **values)
        asked.append(None)
        if len(asked) == 1:
            rows(store, "UPDATE schedules SET revision = revision + 1000")
            rows(
                store,
                "INSERT INTO schedule_fires (schedule, slot_at, manual, outcome, execution_id, "
                "detail, at, open) VALUES ('s', 1, (1 = 1), 'started', 'e1', '', 1, (1 = 1))",
            )
        return answer

    store.executions.start([execution("e1")])
    monkeypatch.setattr(target, name, between)
    (due,) = store.schedules.load_due(["s"])
    monkeypatch.undo()
    assert due.running == ("e1",)
    assert due.revision != store.schedules.load_due(["s"])[0].revision


def test_schedules_are_listed_page_by_page_and_briefly_without_their_inputs(store: Store) -> None:
    names = ["A", "Z", "a", "aa", "z", "ä", "🎵"]  # by code point, in any locale
    for name in reversed(names):
        made(store, name, inputs='"large"')
    found: list[Schedule] = []
    while page := store.schedules.after(found[-1].name if found else "", 2, brief=True):
        assert len(page) <= 2
        found += page
    assert [(each.name, each.inputs) for each in found] == [(name, "null") for name in names]
    assert {each.inputs for each in store.schedules.after("A", 9)} == {'"large"'}
