"""Lines of logs: their order, their limits, what is kept and for how long, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from rhythm.limits import LogLimits
from rhythm.store import log_lines
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.logs import HEARTBEAT, LOG, PROGRESS, LogTotals, NewLine, RootLines
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TurnCommit
from rhythm.store.lifecycle import COMPLETED, WORKFLOW
from rhythm.store.log_lines import admit, pruned_at_once, size_of_line
from tests.store.test_conformance import NOW, Clock
from tests.support.stores import Stores, rows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def line(id: str = "w", turn: int = 0, n: int = 0, **changes: Any) -> NewLine:
    return NewLine(id, turn, n, 0, LOG, 20, 0, "main", "a", f"{id} {turn} {n}").replace(**changes)


def some(*lines: NewLine, dropped: int = 0) -> RootLines:
    return RootLines(lines[0].execution_id.partition(".")[0] if lines else "w", lines, dropped)


def messages(store: Store, id: str = "w", after: int = 0, limit: int = 100, **more: Any) -> Any:
    return [each.message for each in store.logs.read(id, after, limit, **more)]


# what is kept: pure

SMALL = LogLimits(lines=3, progress=2, bytes=100)
NONE = LogTotals("w")


def kept(lines: Sequence[NewLine], totals: LogTotals = NONE, **more: Any) -> list[str]:
    return [each.message for each in admit(some(*lines), totals, NOW, **more).lines]


def test_lines_get_positions_that_grow_and_are_times() -> None:
    found = admit(some(line(n=0), line(n=1, age_us=5)), LogTotals("w"), NOW)
    assert [each.position for each in found.lines] == [NOW, NOW + 1]
    assert [each.at for each in found.lines] == [NOW, NOW - 5]
    later = admit(some(line(n=2)), found.totals.replace(position=NOW + 9), NOW)
    assert [each.position for each in later.lines] == [NOW + 10]  # a clock that went back


def test_lines_over_the_limit_are_counted_and_progress_has_room_of_its_own() -> None:
    many = [line(n=n, message=str(n)) for n in range(5)]
    progress = [line(n=n, message=f"p{n}", kind=PROGRESS) for n in range(5, 9)]
    assert kept([*many, *progress], limits=SMALL) == ["0", "1", "2", "p5", "p6"]
    found = admit(some(*many, *progress, dropped=7), LogTotals("w", dropped=1), NOW, limits=SMALL)
    assert (found.totals.lines, found.totals.dropped) == (5, 1 + 7 + 4)


def test_a_line_that_is_too_large_leaves_room_for_short_ones() -> None:
    long = line(n=1, message="x" * 101)
    assert kept([line(n=0, message="a"), long, line(n=2, message="b")], limits=SMALL) == ["a", "b"]
    assert size_of_line(line(message="ü", fields='{"a":1}')) == 2 + 7


def test_what_was_written_before_is_left_out_and_not_counted_again() -> None:
    given = some(line(n=0), line(n=1), dropped=3)
    once = admit(given, LogTotals("w"), NOW)
    known = frozenset(map(log_lines.identity, once.lines))
    again = admit(given, once.totals, NOW + 99, known)
    assert (list(again.lines), again.totals) == ([], once.totals)


@pytest.mark.parametrize(
    ("sizes", "fit"), [([], 1), ([9], 1), ([2, 2, 2], 2), ([5, 1], 1), ([1, 9], 1), ([1, 1], 2)]
)
def test_one_root_is_pruned_however_large_it_is(sizes: list[int], fit: int) -> None:
    assert pruned_at_once(sizes, LogLimits(pruned=4)) == fit


# on the databases


def test_lines_come_back_in_the_order_of_writing_from_the_root_and_from_a_child(
    store: Store,
) -> None:
    store.logs.write([some(line("w", 1), line("w.2", 7, attempt=1)), some(line("v"))])
    store.logs.write([some(line("w.2", 9, attempt=2), line("w.2.1"), line("w", 2), line("w.21"))])
    assert messages(store) == ["w 1 0", "w.2 7 0", "w.2 9 0", "w.2.1 0 0", "w 2 0", "w.21 0 0"]
    assert messages(store, "w.2") == ["w.2 7 0", "w.2 9 0", "w.2.1 0 0"]
    assert messages(store, "v") == ["v 0 0"]
    assert messages(store, "nobody") == []


def test_a_page_begins_after_a_position(store: Store) -> None:
    store.logs.write([some(*(line(n=n) for n in range(5)))])
    first = store.logs.read("w", 0, 2)
    assert messages(store, after=first[-1].position, limit=2) == ["w 0 2", "w 0 3"]
    page = store.logs.read("w", 0, 9, most_bytes=1)
    assert (page.cut, [each.n for each in page]) == (True, [0])


def test_levels_and_kinds_and_everything_else_come_back(store: Store, clock: Clock) -> None:
    given = line(
        "w.1", 3, 4, age_us=7, kind=HEARTBEAT, level=30, attempt=2, name="charge", worker="b",
        message="half\u202e\n\x1b[31m \u2028 ü", fields='{"a":"\\u0000"}',
    )  # fmt: skip
    store.logs.write([RootLines("w", (given, line(level=10)))])
    (found,) = store.logs.read("w", 0, 9, 30)
    for name in given._fields:
        assert name == "age_us" or getattr(found, name) == getattr(given, name), name
    assert (found.at, found.position) == (clock.us - 7, clock.us)
    assert store.logs.last_progress("w") == store.logs.last_progress("w.1") == found
    assert store.logs.last_progress("w.2") is None


def test_the_same_lines_written_twice_are_there_once(store: Store) -> None:
    given = [some(line(n=0), line(n=1), dropped=2), some(line("v"))]
    store.logs.write(given)
    store.logs.write(given, again=True)
    assert (messages(store), messages(store, "v")) == (["w 0 0", "w 0 1"], ["v 0 0"])
    assert store.logs.totals("w").replace(position=0) == LogTotals("w", 2, 10, 2)


def test_a_write_that_was_not_committed_is_written_again(store: Store) -> None:
    store.logs.write([some(line(n=0))], again=True)
    assert messages(store) == ["w 0 0"]


def test_what_is_over_the_limit_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(
            f"rhythm.store.{module}.logs.admit",
            lambda *args, **more: admit(*args, **more, limits=SMALL),
        )
    store.logs.write([some(*(line(n=n) for n in range(3)))])
    store.logs.write([some(*(line(n=n) for n in range(3, 6)), dropped=4)])
    store.logs.write([RootLines("w", (), 1)])
    assert messages(store) == ["w 0 0", "w 0 1", "w 0 2"]
    assert store.logs.totals("w").dropped == 3 + 4 + 1
    assert store.logs.totals("v") == LogTotals("v")


def test_writers_at_once_lose_nothing_and_double_no_position(stores: Stores, store: Store) -> None:
    def write(worker: str, other: Store) -> None:
        for turn in range(10):
            lines = [line("w", turn, n, worker=worker) for n in range(3)]
            other.logs.write([some(*lines), some(line(f"v{turn}"))])

    others = [stores.store(Clock()) for _ in range(2)]
    threads = [
        threading.Thread(target=write, args=(f"worker {i}", other))
        for i, other in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.logs.read("w", 0, 1000)
    assert len({each.position for each in found}) == len(found) == 60
    for worker in ("worker 0", "worker 1"):
        own = [(each.turn, each.n) for each in found if each.worker == worker]
        assert own == sorted(own)
    assert store.logs.totals("w").lines == 60


def test_old_lines_are_deleted_and_make_room(store: Store, clock: Clock) -> None:
    store.logs.write([some(line(n=0), line(n=1)), some(line("v"))])
    clock.forward(100)
    store.logs.write([some(line(n=2, fields='{"a":1}'))])
    assert store.logs.prune_lines(200.0, 10) == 0
    assert store.logs.prune_lines(50.0, 10) == 2
    assert (messages(store), messages(store, "v")) == (["w 0 2"], [])
    assert store.logs.totals("w") == LogTotals("w", 1, 12, 0, clock.us)
    assert rows(store, "SELECT root_id FROM log_totals") == [("w",)]
    assert store.logs.prune_lines(50.0, 10) == 0


def test_old_lines_are_deleted_root_by_root(store: Store, clock: Clock) -> None:
    store.logs.write([some(line(f"w{i}")) for i in range(5)])
    clock.forward(100)
    assert [store.logs.prune_lines(50.0, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_lines_go_with_their_executions(store: Store, clock: Clock) -> None:
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default") for id in ("w", "v")])
    (claim,) = store.claims.claim("a", ["default"], 1, 30.0)
    turn = TurnCommit(claim.id, 0, claim.fence, claim.wakes, "finish", "a", "turn", owned=None)
    store.turns.commit([turn.replace(status=COMPLETED)], [])
    store.logs.write([some(line("w.1"), line("w")), some(line("v"))])
    clock.forward(100)
    assert store.maintenance.prune(50.0, 10) == 1
    left = {"w": "v", "v": "w"}[claim.id]
    assert rows(store, "SELECT root_id FROM log_totals") == [(left,)]
    assert {root for (root,) in rows(store, "SELECT root_id FROM log_lines")} == {left}
