"""Running handlers: `def` handlers in daemon threads, so that one that never returns cannot hold the process; `async def`
handlers on one event loop, where they can be cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from rhythm.worker.ended import Ended, ended_by
from rhythm.worker.handlers import Task


class Handlers:
    """Runs handlers. `report` is called once for each, from another thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, task: Task[..., Any], inputs: Any, report: Callable[[Ended], None]) -> Callable[[], object]:
        """Starts an attempt; returns what cancels it, as far as that is possible."""
        args, kwargs = task.arguments(inputs)
        if task.is_async:
            future = asyncio.run_coroutine_threadsafe(_awaited(task.body(*args, **kwargs)), self._event_loop())
            future.add_done_callback(lambda done: None if done.cancelled() else report(ended_by(task, done.result())))
            return future.cancel
        threading.Thread(target=lambda: report(ended_by(task, lambda: task.body(*args, **kwargs))), daemon=True, name=task.name).start()
        return lambda: None

    def close(self) -> None:
        if self._loop:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_keep_running, args=(self._loop,), daemon=True, name="async tasks").start()
        return self._loop


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Runs the loop until it is stopped. SystemExit in what a handler started on the side would end it for all the others."""
    while True:
        try:
            return loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue


async def _awaited(handler: Coroutine[Any, Any, Any]) -> Callable[[], Any]:
    """What gives the handler's result, or raises what it raised: in the loop itself SystemExit would end all handlers."""
    try:
        value = await handler
    except BaseException as problem:
        raised = problem
        return lambda: _raise(raised)
    return lambda: value


def _raise(problem: BaseException) -> None:
    raise problem
