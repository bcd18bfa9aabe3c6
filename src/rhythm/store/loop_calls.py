"""Calls from a thread to an event loop: plain code uses a connection that belongs to the loop.

The plain code runs in a thread of its own, and waits there for each call. It never waits for a
thread of a pool: callers that wait for each other's locks could occupy all of them.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeVar

T = TypeVar("T")


# What a cancel does to a call. It breaks off a statement, and prevents it. It only prevents a step:
# half of one could not be undone. It never touches what undoes the others.
Kind = Literal["statement", "step", "undo"]


class PreventedError(Exception):
    """A cancel came before a call: nothing of it was done."""


class Calls(Protocol):
    """Runs a call where its connection may be used, and returns its result."""

    def __call__(self, call: Callable[[], Any], kind: Kind = "statement") -> Any: ...


def call_here(call: Callable[[], T], kind: Kind = "statement") -> T:
    """Runs a call in this thread, and returns its result."""
    return call()


class LoopCalls:
    """Runs calls on an event loop, one at a time, for a thread that waits for each."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None  # the statement that is under way

    def __call__(self, call: Callable[[], Any], kind: Kind = "statement") -> Any:
        """Runs the call on the loop, awaits what it returns, and returns that.

        After `cancel` it raises `PreventedError`, unless the call is to undo others.
        """
        awaited = asyncio.run_coroutine_threadsafe(self._run(call, kind), self._loop)
        return awaited.result()

    async def _run(self, call: Callable[[], Any], kind: Kind) -> Any:
        if self._cancelled and kind != "undo":
            raise PreventedError
        self._task = asyncio.current_task() if kind == "statement" else None
        try:
            result = call()
            return await result if inspect.isawaitable(result) else result
        finally:
            self._task = None

    def cancel(self) -> None:
        """Cancels the statement that is under way, and refuses all calls but those that undo."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()


async def run_beside(prepare: Callable[[LoopCalls], Awaitable[Any]], work: Callable[[Any], T]) -> T:
    """Runs `work` in a thread, with what `prepare` returns, and returns its result.

    If this coroutine is cancelled, so is the statement that is under way, and `work` is awaited all
    the same: it must have undone its part before others use the connection again.
    """
    calls = LoopCalls()
    prepared = await prepare(calls)
    done = _in_thread(lambda: work(prepared))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        calls.cancel()
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        done.cancelled() or done.exception()  # nobody else asks for it
        raise


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Runs `work` in a new thread, in the context of the caller."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[T] = loop.create_future()

    def post(end: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(end, value)

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as problem:
            post(done.set_exception, problem)
        else:
            post(done.set_result, result)

    threading.Thread(target=run, name="rhythm caller", daemon=True).start()
    return done
