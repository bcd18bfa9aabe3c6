"""That work grows in step with the number of items, on every database: groups with a limit, loops
over what has ended, over a long mailbox, over many events.

Nothing is timed. What a worker does is counted for few items and for ten times as many: calls of
functions, the bytes of its snapshots, and what the database does: on SQLite the steps of its
machine, on PostgreSQL the rows that it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from rhythm.engine import reading
from rhythm.record import Record
from rhythm.store.interfaces.messages import NewEvent, NewSignal
from rhythm.store.interfaces.turns import TaskEnd, TurnCommit
from rhythm.store.sqlite.store import SqliteStore
from tests.engine.driver import World
from tests.support.calls import calls
from tests.support.counting import Asked, counting
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore

FEW, MANY = sampled((24, 240), (200, 2000))
NOT_MORE = 1.3  # times as much for each item
STEPS = 10  # of SQLite's machine: how many are counted as one
Feed = Callable[[World, int], None]

ITEMS = 'task("value", { x }) for x in range(N)'
GROUPS = {
    "all, some at a time": f"let r = await all([{ITEMS}], {{ concurrency: 5 }})\nreturn len(r)",
    "all, some at a time, until a deadline": f"""
      let r = await race([all([{ITEMS}], {{ concurrency: 5 }}), sleep(5)])
      return len(r.result)""",
    "all at once": f"let r = await all([{ITEMS}])\nreturn len(r)",
    "a group behind": f"""
      workflow main() {{
        let group = all([{ITEMS}], {{ concurrency: 5 }})
        for (i in range(N)) {{ await task("value", {{ x: i }}) }}
        let r = await group
        return len(r)
      }}""",
    "completed, some at a time": f"""
      let seen = 0
      for (r in completed([{ITEMS}], {{ concurrency: 5 }})) {{ seen += 1 }}
      return seen""",
    "completed, a task for each": f"""
      let seen = 0
      for (r in completed([{ITEMS}], {{ concurrency: 5 }})) {{
        let x = await task("value", {{ x: r.result }})
        seen += 1
      }}
      return seen""",
    "completed, all have ended": f"""
      let seen = 0
      for (r in completed([{ITEMS}])) {{
        if (seen == 0) {{ await sleep(5) }}
        let x = await task("value", {{ x: r.result }})
        seen += 1
      }}
      return seen""",
}
MAILBOX = {
    "signals": 'for (i in range(N)) { await signal("go") }\nreturn N',
    "signals, a task for each": """
      for (i in range(N)) {
        let x = await signal("go")
        await task("value", { x })
      }
      return N""",
    "signals of two names, in turn": """
      for (i in range(N / 2)) {
        let x = await signal("go")
        let y = await signal("other")
        await sleep(1)
      }
      return N""",
}
EVENTS = 'for (i in range(N)) { await event("thing") }\nreturn N'


class Work(Record):
    """What the worker and its database did for a number of items."""

    calls: int
    bytes: int
    database: int

    def each(self, count: int) -> list[float]:
        return [self.calls / count, self.bytes / count, self.database / count]


class Watched:
    """A world whose worker is watched."""

    def __init__(self, text: str, count: int, make_store: MakeStore) -> None:
        self.world = World(text.replace("N", str(count)), make_store=make_store)
        self.count, self.calls, self.bytes, self.steps, self.rows = count, 0, 0, 0, 0
        self.round, self.commit = self.world.worker.run_round, self.world.inner.turns.commit

    def run(self, feed: Feed) -> Work:
        """Runs the workflow to its end; `feed` gives it what it waits for."""
        self.world.start()
        feed(self.world, self.count)
        with (
            counting(self.world.inner) as asked,
            patch.object(self.world.worker, "run_round", lambda: self._round(asked)),
            patch.object(self.world.inner.turns, "commit", self._commit),
        ):
            assert self.world.run().result == str(self.count)
        return Work(self.calls, self.bytes, self.steps or self.rows)

    def _round(self, asked: Asked) -> bool:
        did, before = list[bool](), asked.rows
        with self._steps():
            self.calls += calls(lambda: did.append(self.round()))
        self.rows += asked.rows - before
        return did[0]

    @contextmanager
    def _steps(self) -> Iterator[None]:
        store = self.world.inner
        if isinstance(store, SqliteStore):
            store.db.connection.set_progress_handler(self._step, STEPS)
        yield
        if isinstance(store, SqliteStore):
            store.db.connection.set_progress_handler(None, 0)

    def _step(self) -> None:
        self.steps += 1

    def _commit(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> Any:
        self.bytes += sum(len(turn.snapshot or b"") for turn in turns)
        return self.commit(turns, ends)


def grows_linearly(
    text: str,
    make_store: MakeStore,
    feed: Feed = lambda world, count: None,
) -> None:
    few, many = (Watched(text, count, make_store).run(feed) for count in (FEW, MANY))
    ratios = [b / a for a, b in zip(few.each(FEW), many.each(MANY), strict=True)]
    assert max(ratios) <= NOT_MORE, (ratios, few, many)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few signals are several pages, too."""
    monkeypatch.setattr(reading, "NEXT_SIGNALS", 10)


@sweep
@pytest.mark.parametrize("name", GROUPS)
def test_groups_take_as_much_for_each_item_however_many_there_are(
    name: str, make_store: MakeStore
) -> None:
    grows_linearly(GROUPS[name], make_store)


@sweep
@pytest.mark.parametrize("name", MAILBOX)
def test_a_mailbox_takes_as_much_for_each_signal_however_many_wait(
    name: str, make_store: MakeStore
) -> None:
    def feed(world: World, count: int) -> None:
        for n in range(count):
            for name in ("go", "other"):
                signal = NewSignal(f"{name}{n}", "run", name, str(n))
                assert world.inner.messages.signal(signal, 10_000) == "sent"

    grows_linearly(MAILBOX[name], make_store, feed)


@sweep
def test_events_take_as_much_for_each_however_many_were_published(make_store: MakeStore) -> None:
    def feed(world: World, count: int) -> None:
        for n in range(count):
            world.inner.messages.publish(NewEvent(f"e{n}", "thing", str(n)))
        world.clock.seconds += 1

    grows_linearly(EVENTS, make_store, feed)
