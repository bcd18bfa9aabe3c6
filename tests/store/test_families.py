"""How large a family may become, and how a large one is ended, on every database."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.engine.doctor import examine
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store import families
from rhythm.store.interfaces import executions
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import NewTimer, TurnCommit
from rhythm.store.lifecycle import COMPLETED
from rhythm.worker.services import Rescuer, ServiceSettings
from tests.store.test_conformance import (
    Clock,
    begun,
    claims,
    end,
    outcome,
    send,
    status,
    task,
    turn,
    workflow,
)
from tests.store.test_terminate import child
from tests.support.full_way import short_ways
from tests.support.stores import Stores, ready_rows, rows

SMALL = DEFAULT_LIMITS.replace(family=4, children=3)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def below(id: str, *numbers: int, tasks: bool = False) -> tuple[NewExecution, ...]:
    made = task if tasks else child
    return tuple(made(f"{id}.{n}", root_id=id.partition(".")[0]) for n in numbers)


def grown(store: Store, generations: int = 2, width: int = 3) -> None:
    """A workflow `w` with so many children, each with as many children, and so on; the last ones
    have a task."""
    held = {"w": begun(store)}
    for generation in range(generations):
        for claim in held.values():
            starts = (*below(claim.id, *range(1, width + 1)), *below(claim.id, 99, tasks=True))
            assert outcome(store, turn(claim, starts=starts)) == "parked"
        store.limits = DEFAULT_LIMITS
        found = claims(store, limit=1000)
        held = {id: claim for id, claim in found.items() if not id.endswith(".99")}
        store.claims.release(
            {
                id: claim.fence
                for id, claim in found.items()
                if id not in held or generation == generations - 1
            }
        )


def live(store: Store) -> list[str]:
    return sorted(
        id for (id,) in rows(store, "SELECT id FROM executions WHERE finished_at IS NULL")
    )


def marks(store: Store) -> list[str]:
    return [id for (id,) in rows(store, "SELECT id FROM terminations ORDER BY id")]


# limits


def test_a_family_that_is_full_starts_nothing_more(store: Store, clock: Clock) -> None:
    store.limits = SMALL.replace(children=100)
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", starts=below("w", 1, 2, 3))) == "own"
    assert outcome(store, turn(claim, 1, "own", starts=below("w", 4, 5, tasks=True))) == "own"
    answer = store.turns.commit([turn(claim, 2, "own", starts=below("w", 6))], [])[0][0]
    assert (answer.outcome, "more than 4 children" in answer.refusal) == ("full", True)
    assert (list(store.reading.get(["w.6"])), store.reading.history("w")[-1].seq) == ([], 2)
    inner = claims(store)["w.1"]
    assert outcome(store, turn(inner, starts=below("w.1", 1))) == "full"
    assert outcome(store, turn(inner)) == "parked"


def test_a_family_whose_children_have_ended_goes_on_for_ever(store: Store, clock: Clock) -> None:
    store.limits = SMALL
    claim = begun(store)
    for n in range(1, 30):
        assert outcome(store, turn(claim, n - 1, "own", starts=below("w", n, tasks=True))) == "own"
        assert end(store, claims(store)[f"w.{n}"])
    assert rows(store, "SELECT started <= 5 FROM families") in ([(True,)], [(1,)])


def test_a_full_family_is_counted_again_after_a_while(store: Store, clock: Clock) -> None:
    store.limits = SMALL.replace(children=100)
    claim = begun(store)
    assert (
        outcome(store, turn(claim, end="own", starts=below("w", *range(1, 8), tasks=True))) == "own"
    )
    assert outcome(store, turn(claim, 1, "own", starts=below("w", 8))) == "full"
    for held in claims(store).values():
        assert end(store, held)
    assert outcome(store, turn(claim, 1, "own", starts=below("w", 8))) == "full", (
        "not counted at once again"
    )
    clock.forward(families.COUNT_EVERY_US / 1e6)
    assert outcome(store, turn(claim, 1, "own", starts=below("w", 8))) == "own"


def test_one_execution_has_only_so_many_children_that_live(store: Store) -> None:
    store.limits = SMALL.replace(family=1000)
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", starts=below("w", 1, 2, 3, tasks=True))) == "own"
    answer = store.turns.commit([turn(claim, 1, "own", starts=below("w", 4, tasks=True))], [])[0][0]
    assert (answer.outcome, "more than 3 children of this execution" in answer.refusal) == (
        "full",
        True,
    )
    assert end(store, claims(store)["w.1"])
    assert outcome(store, turn(claim, 1, "own", starts=below("w", 4, tasks=True))) == "own"
    assert outcome(store, turn(claim, 2, "own", starts=below("w", 5, tasks=True))) == "full"


def test_another_family_is_not_concerned(store: Store) -> None:
    store.limits = SMALL.replace(children=100)
    claim, other = begun(store), begun(store, "v")
    assert outcome(store, turn(claim, end="own", starts=below("w", *range(1, 8)))) == "own"
    answers = store.turns.commit(
        [turn(claim, 1, starts=below("w", 9)), turn(other, starts=below("v", 1))], []
    )[0]
    assert {answer.id: answer.outcome for answer in answers} == {"w": "full", "v": "parked"}


def test_small_turns_are_counted_by_samples_and_a_turn_always_the_same() -> None:
    limits = DEFAULT_LIMITS.replace(family=10_000)
    turns = [
        TurnCommit(f"w.{n}", 0, 1, 0, "park", "a", "turn", starts=(workflow(),) * 4)
        for n in range(10_000)
    ]
    total = sum(families.counted(turn, limits) for turn in turns)
    assert 36_000 < total < 44_000
    assert [families.counted(turn, limits) for turn in turns[:500]] == [
        families.counted(turn, limits) for turn in turns[:500]
    ]
    assert families.counted(turns[0].replace(starts=(workflow(),) * 1000), limits) == 1000
    assert sum(families.counted(turn, limits) > 0 for turn in turns) < 800, (
        "most turns write nothing"
    )


# ending


def test_a_large_family_ends_in_passes_and_nobody_is_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "PASS_SIZE", 2)
    grown(store)
    assert store.executions.terminate(["w"]) == {"w": True}
    assert (live(store), marks(store), ready_rows(store)) == ([], [], [])
    assert examine(store, 0.0) == []


def begin_terminate(
    store: Store, monkeypatch: pytest.MonkeyPatch, ids: tuple[str, ...] = ("w",)
) -> None:
    """As if the caller had died after the first transaction."""
    with monkeypatch.context() as context:
        context.setattr(executions, "MAX_PASSES", 0)
        assert set(store.executions.terminate(list(ids)).values()) == {True}


def test_a_family_that_is_being_ended_does_not_grow(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(store, 1)
    held = claims(store)
    begin_terminate(store, monkeypatch)
    assert (status(store, "w"), marks(store)) == ("cancelled", ["w"])
    assert outcome(store, turn(held["w.1"], starts=below("w.1", 1))) == "lost"
    assert outcome(store, turn(held["w.2"], end="finish", status=COMPLETED)) == "lost"
    assert not end(store, held["w.99"]), "no result is accepted"
    assert live(store) == ["w.1", "w.2", "w.3", "w.99"]
    assert [row[0] for row in ready_rows(store)] == ["w.1", "w.2", "w.3", "w.99"]
    found = {finding.rule for finding in examine(store, 0.0)}
    assert found == {"definition_kept"}, "of which there is none here"


@short_ways
@pytest.mark.parametrize(
    "writes",
    [
        {"signals": (NewSignal("s", "other", "go", "1"),)},
        {"events": (NewEvent("e", "paid", "1"),)},
        {"timers": (NewTimer(1, 5.0),)},
        {"attributes": '{"a":1}'},
    ],
    ids=lambda writes: next(iter(writes)),
)
def test_an_owner_in_a_family_that_is_being_ended_only_takes_steps(
    store: Store, monkeypatch: pytest.MonkeyPatch, writes: dict[str, Any]
) -> None:
    """Nothing that others can see comes from below a mark: only a step, which needs no lock, may
    still get through."""
    grown(store, 1)
    store.executions.start([workflow("other")])
    held = claims(store)
    begin_terminate(store, monkeypatch)
    assert outcome(store, turn(held["w.1"], end="own", **writes)) == "lost"
    assert (
        store.messages.mail(["other"]),
        rows(store, "SELECT * FROM events"),
        rows(store, "SELECT * FROM timer_tasks"),
    ) == ({}, [], [])
    assert outcome(store, turn(held["w.1"], end="own")) == "own"


def test_whoever_comes_ends_what_is_left(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    grown(store)
    begin_terminate(store, monkeypatch)
    rescuer = Rescuer(store, ServiceSettings(batch=3), None)
    passes = 0
    while (counts := rescuer.run_once(0.0))["terminated"]:
        assert (counts["terminated"] <= 6, rescuer.rest_s(counts)) == (True, 0.0)
        passes += 1
    assert (live(store), marks(store), ready_rows(store), passes >= 5) == ([], [], [], True)
    assert examine(store, 0.0) == []


def test_the_next_call_ends_what_is_left_of_another(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(store)
    begin_terminate(store, monkeypatch)
    store.executions.start([workflow("v")])
    assert store.executions.terminate(["v"]) == {"v": True}
    assert (live(store), marks(store)) == ([], [])


def test_a_child_that_is_terminated_takes_only_what_is_below_it(store: Store) -> None:
    grown(store)
    assert store.executions.terminate(["w.1"]) == {"w.1": True}
    ended = {id for (id,) in rows(store, "SELECT id FROM executions WHERE finished_at IS NOT NULL")}
    assert ended == {"w.1", "w.1.1", "w.1.2", "w.1.3", "w.1.99"}
    assert (marks(store), "w" in [row[0] for row in ready_rows(store)]) == ([], True)
    assert send(store, "s", "w.2") == "sent"


def test_a_name_that_only_begins_alike_is_not_below(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.executions.start([workflow("w"), workflow("w1"), workflow("w-1")])
    held = claims(store)
    begin_terminate(store, monkeypatch)
    for id in ("w1", "w-1"):
        assert outcome(store, turn(held[id], starts=below(id, 1))) == "parked"
