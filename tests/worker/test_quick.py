"""Quick tasks: which they are, that the deciding thread runs them, and what happens if one of them
holds that thread up."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rhythm.worker import quick
from rhythm.worker.attempts import NOT_BEGUN_S, Attempt, Attempts
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task
from rhythm.worker.quick import MAX_POINTS, MIN_POINTS, PATIENCE_S, QUICK_POINTS, QUICK_S, Paces
from tests.support.full_way import short_ways

pytestmark = short_ways

TASK = Task(lambda: None, "task")


def made_quick(paces: Paces, task: Task[..., Any]) -> Task[..., Any]:
    for _ in range(QUICK_POINTS):
        paces.note(task, 0.0)
    return task


def test_a_task_is_quick_after_enough_short_attempts() -> None:
    paces = Paces()
    for _ in range(QUICK_POINTS - 1):
        paces.note(TASK, QUICK_S)
        assert not paces.is_quick(TASK)
    paces.note(TASK, QUICK_S)
    assert paces.is_quick(TASK)


def test_a_few_long_attempts_end_that_and_one_that_held_up_for_a_thousand_more() -> None:
    paces = Paces()
    for _ in range(2 * MAX_POINTS):
        paces.note(TASK, 0.0)
    for long in range(1, 10):
        paces.note(TASK, 2 * QUICK_S)
        assert paces.is_quick(TASK) == (MAX_POINTS - 10 * long >= QUICK_POINTS)
    paces.note(TASK, 2 * PATIENCE_S)
    for _ in range(QUICK_POINTS - MIN_POINTS - 1):
        paces.note(TASK, 0.0)
    assert not paces.is_quick(TASK)
    paces.note(TASK, 0.0)
    assert paces.is_quick(TASK)


def test_a_task_that_is_defined_anew_begins_anew_and_a_transactional_one_is_never_quick() -> None:
    paces = Paces()
    made_quick(paces, TASK)
    assert not paces.is_quick(Task(lambda: None, "task"))
    writes = Task(lambda: None, "writes", transactional=True)
    assert not paces.is_quick(made_quick(paces, writes))


class Deciding:
    """Handlers, and who has taken over deciding from this thread."""

    def __init__(self) -> None:
        self.taken_over = threading.Event()
        self.refusing = False
        self.handlers = Handlers(self.take_over)
        self.attempts = Attempts(self.handlers, time.monotonic)

    def take_over(self) -> None:
        if self.refusing:
            raise RuntimeError("can't start new thread")
        self.taken_over.set()

    def begin(self, n: int, function: Callable[[], object], name: str = "task") -> None:
        task = made_quick(self.handlers._paces, Task(function, name))
        self.attempts.start(Attempt(f"w.{n}", task, {}, {}, 1, self.attempts.now()))

    def results(self, count: int) -> dict[str, str]:
        found = dict[str, str]()
        while len(found) < count:
            found |= {attempt.id: end.result for attempt, end in self.attempts.ended(60.0)}
        return found


@pytest.fixture
def deciding() -> Iterator[Deciding]:
    made = Deciding()
    yield made
    made.handlers.close()


def test_the_deciding_thread_runs_quick_tasks_itself_and_no_others(deciding: Deciding) -> None:
    here = threading.get_ident()
    deciding.begin(1, lambda: threading.get_ident() == here)
    unknown = Task(lambda: threading.get_ident() == here, "unknown")
    deciding.attempts.start(Attempt("w.2", unknown, {}, {}, 1, 0.0))
    assert deciding.handlers.run_quick()
    assert deciding.results(2) == {"w.1": "true", "w.2": "false"}


def test_no_quick_task_runs_where_nobody_could_take_over() -> None:
    handlers = Handlers()
    attempts = Attempts(handlers, time.monotonic)
    here = threading.get_ident()
    task = made_quick(handlers._paces, Task(lambda: threading.get_ident() == here, "task"))
    attempts.start(Attempt("w.1", task, {}, {}, 1, 0.0))
    [(_, ended)] = attempts.ended(60.0)
    assert ended.result == "false"
    assert handlers.run_quick()


def test_a_task_that_was_cancelled_while_it_waited_does_not_run(deciding: Deciding) -> None:
    ran = list[int]()
    deciding.begin(1, lambda: ran.append(1))
    deciding.attempts.stop("w.1")
    assert deciding.handlers.run_quick()
    assert ran == []


def test_a_call_that_holds_up_the_deciding_thread_makes_another_one_decide(
    deciding: Deciding,
) -> None:
    """Also if it waits for what only a worker that goes on deciding can do. What waits behind it
    goes to other threads."""
    deciding.begin(1, lambda: deciding.taken_over.wait(60.0), "waits")
    deciding.begin(2, lambda: 2)
    assert deciding.handlers.run_quick() is False
    assert deciding.results(2) == {"w.1": "true", "w.2": "2"}
    deciding.begin(3, lambda: 3, "other")
    assert deciding.handlers.run_quick(), "whoever decides now may run quick tasks again"
    assert deciding.results(1) == {"w.3": "3"}


def test_the_thread_goes_on_deciding_if_no_other_can_be_had(deciding: Deciding) -> None:
    deciding.refusing = True
    asked = threading.Event()

    def refuse() -> None:
        asked.set()
        raise RuntimeError("can't start new thread")

    assert deciding.handlers._quick is not None
    deciding.handlers._quick._take_over = refuse
    deciding.begin(1, lambda: asked.wait(60.0))
    deciding.begin(2, lambda: 2)
    assert deciding.handlers.run_quick()
    while deciding.handlers._quick._waiting:
        assert deciding.handlers.run_quick()
    assert deciding.results(2) == {"w.1": "true", "w.2": "2"}


def test_without_a_thread_for_the_watch_a_quick_task_is_put_back(
    deciding: Deciding, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails)
    deciding.begin(1, lambda: 1)
    [(_, ended)] = deciding.attempts.ended()
    assert ended.delay_s == NOT_BEGUN_S


def test_a_round_comes_between_many_calls(
    deciding: Deciding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "BATCH_S", 0.0)
    deciding.begin(1, lambda: 1)
    assert deciding.handlers.run_quick()
    assert deciding.attempts.ended() == []
    monkeypatch.undo()
    assert deciding.handlers.run_quick()
    assert deciding.results(1) == {"w.1": "1"}


# handlers on the event loop


def test_the_deciding_thread_runs_the_event_loop_until_a_handler_waits_on_it(
    deciding: Deciding,
) -> None:
    """All handlers of all times share one loop: what they keep on it stays usable."""
    here, loops = threading.get_ident(), set[asyncio.AbstractEventLoop]()

    async def handler(seconds: float | None = None) -> bool:
        loops.add(asyncio.get_running_loop())
        async with asyncio.timeout(60.0):
            if seconds is not None:
                await asyncio.sleep(seconds)
        return threading.get_ident() == here

    def begin(n: int, inputs: Any) -> None:
        attempt = Attempt(f"w.{n}", Task(handler, "handler"), inputs, {}, 1, 0.0)
        attempt.timeout_s = None
        deciding.attempts.start(attempt)
        assert deciding.handlers.run_quick()

    begin(1, {})
    begin(2, {})
    assert deciding.results(2) == {"w.1": "true", "w.2": "true"}
    assert deciding.handlers.lag_s() is None
    begin(3, {"seconds": 0.01})
    begin(4, {})
    assert deciding.results(2) == {"w.3": "false", "w.4": "false"}
    assert len(loops) == 1
    assert deciding.handlers.lag_s() is not None


@pytest.mark.parametrize("kind", ["task", "timer", "exit"])
def test_what_a_handler_leaves_on_the_loop_goes_on(deciding: Deciding, kind: str) -> None:
    done = threading.Event()

    async def leave() -> None:
        done.set()
        if kind == "exit":
            raise SystemExit

    async def handler() -> None:
        loop = asyncio.get_running_loop()
        if kind == "timer":
            loop.call_later(0.01, done.set)
        else:
            left.append(asyncio.ensure_future(leave()))
            left[0].add_done_callback(lambda ended: ended.exception())

    left = list[Any]()
    deciding.attempts.start(Attempt("w.1", Task(handler, "handler"), {}, {}, 1, 0.0))
    assert deciding.handlers.run_quick()
    assert deciding.results(1) == {"w.1": "null"}
    assert done.wait(60.0)


def test_a_handler_that_waits_can_be_cancelled_after_the_deciding_thread_began_it(
    deciding: Deciding,
) -> None:
    cancelled = threading.Event()

    async def handler() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    deciding.attempts.start(Attempt("w.1", Task(handler, "handler"), {}, {}, 1, 0.0))
    assert deciding.handlers.run_quick()
    deciding.attempts.stop("w.1")
    assert cancelled.wait(60.0)


def test_a_handler_that_blocks_the_loop_makes_another_thread_decide(deciding: Deciding) -> None:
    async def handler(n: int) -> int:
        if n == 1:
            deciding.taken_over.wait(60.0)
        return n

    for n in (1, 2):
        task = Task(handler, "handler")
        deciding.attempts.start(Attempt(f"w.{n}", task, {"n": n}, {}, 1, 0.0))
    assert deciding.handlers.run_quick() is False
    assert deciding.results(2) == {"w.1": "1", "w.2": "2"}


def test_the_watch_ends_with_the_handlers(deciding: Deciding) -> None:
    deciding.begin(1, lambda: 1)
    assert deciding.handlers.run_quick()
    assert deciding.handlers._quick is not None
    watch = deciding.handlers._quick._watch
    assert watch is not None
    assert watch.is_alive()
    deciding.handlers.close()
    watch.join(60.0)
    assert not watch.is_alive()


@pytest.mark.parametrize("how", ["returns", "raises", "exits", "async"])
def test_a_process_that_a_handler_forks_never_decides(deciding: Deciding, how: str) -> None:
    """It has the name and the claims of this worker. It ends where it comes back."""
    here = os.getpid()

    def fork() -> int:
        child = os.fork()
        if child == 0 and how == "raises":
            raise ValueError("in the child")
        if child == 0 and how == "exits":
            raise SystemExit(0)
        return child

    async def fork_async() -> int:
        return fork()

    deciding.begin(1, fork_async if how == "async" else fork)
    deciding.handlers.run_quick()
    if os.getpid() != here:
        os._exit(77)  # it would decide now
    [result] = deciding.results(1).values()
    _, status = os.waitpid(int(result), 0)
    assert os.waitstatus_to_exitcode(status) == (how in ("raises", "exits"))
