"""What a Python workflow awaits and does: `rhythm.sleep`, `rhythm.all`, `rhythm.signal` and others.

The compiler knows each by its mark, so none of these is called on the engine. They are called when
a body runs in CPython (`workflow.local`), where they do with asyncio what the engine would do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from rhythm.authoring.local import LOCAL, TASKS, call_task
from rhythm.durations import duration_s
from rhythm.errors import NotInWorkflow, Timeout

if TYPE_CHECKING:
    from datetime import datetime, timedelta

T = TypeVar("T")
# As for asyncio.gather, type checkers see the results of a few as a tuple, each with its type.
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


def operation(name: str) -> Callable[[F], F]:
    """Marks a function as one that the compiler of workflows knows under this name."""

    def mark(function: F) -> F:
        function.__rhythm_operation__ = name  # type: ignore[attr-defined]  # read by lang/python
        return function

    return mark


def _here(name: str) -> Mapping[str, Any]:
    """Returns what a local run was given. Raises `NotInWorkflow` if none is going on."""
    found = LOCAL.get()
    if found is None:
        raise NotInWorkflow(
            f"rhythm.{name} is for workflows: call it in an `async def` under @rhythm.workflow"
        )
    return found


def _seconds(duration: Any) -> float:
    return duration.total_seconds() if hasattr(duration, "total_seconds") else duration_s(duration)


@operation("sleep")
async def sleep(duration: float | str | timedelta) -> None:
    """Waits for this long, for years if need be: seconds, or text such as "1h30m"."""
    _here("sleep")
    await asyncio.sleep(_seconds(duration))


@operation("sleep_until")
async def sleep_until(time: datetime | str) -> None:
    """Waits until a time."""
    from datetime import UTC
    from datetime import datetime as clock

    _here("sleep_until")
    moment = clock.fromisoformat(time) if isinstance(time, str) else time
    await asyncio.sleep(max((moment - clock.now(moment.tzinfo or UTC)).total_seconds(), 0))


@operation("event")
async def event(
    type: str,
    *,
    where: Mapping[str, Any] | None = None,
    timeout: float | str | None = None,
    default: Any = None,
) -> Any:
    """Waits for an event of this type, and returns it; `where`: values that its data must have."""
    return _given("event", type)


def _given(what: str, name: str) -> Any:
    """Returns what a local run was given for a wait. Raises `Timeout` if it was given nothing."""
    given = _here(what)
    if name not in given:
        raise Timeout(f"no {what} `{name}` came: a local run gets only what it was given")
    return given[name]


def in_local_run(name: str, args: tuple[Any, ...]) -> Any:
    """Returns what `rhythm.signal` and others, which applications have too, give in a local run.

    Those that send something send nothing there.
    """
    if name not in ("signal", "approval"):
        return None
    return _given(name, str(args[0]) if args else name)


@overload
async def all(
    operations: Iterable[Awaitable[T]],
    *,
    concurrency: int | None = None,
    settle: Literal[False] = False,
    need: int | None = None,
    keep: bool = False,
) -> list[T]: ...
@overload
async def all(
    operations: Mapping[str, Awaitable[T]],
    *,
    concurrency: int | None = None,
    settle: Literal[False] = False,
    need: int | None = None,
    keep: bool = False,
) -> dict[str, T]: ...
@overload
async def all(
    operations: Iterable[Awaitable[Any]],
    *,
    concurrency: int | None = None,
    settle: Literal[True],
    need: int | None = None,
    keep: bool = False,
) -> list[dict[str, Any]]: ...
@overload
async def all(
    operations: Mapping[str, Awaitable[Any]],
    *,
    concurrency: int | None = None,
    settle: Literal[True],
    need: int | None = None,
    keep: bool = False,
) -> dict[str, dict[str, Any]]: ...
@operation("all")
async def all(operations: Any, **options: Any) -> Any:
    """Runs all operations at once, and returns their results in order; the first failure is raised.

    - `concurrency`: at most this many at a time.
    - `settle`: failures are not raised: each item is `{"status", "result" or "error"}`.
    - `need`: returns as soon as this many have completed.
    - `keep`: when one fails, the others go on.
    """
    _here("all")
    if options.get("settle") or options.get("need"):
        raise NotImplementedError("settle= and need= work on the engine, not in a local run")
    if isinstance(operations, Mapping):
        done = await asyncio.gather(*operations.values())
        return dict(zip(operations, done, strict=True))
    return list(await asyncio.gather(*operations))


@overload
async def gather(
    a: Awaitable[A], b: Awaitable[B], /, *, concurrency: int | None = None
) -> tuple[A, B]: ...
@overload
async def gather(
    a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], /, *, concurrency: int | None = None
) -> tuple[A, B, C]: ...
@overload
async def gather(*operations: Awaitable[T], concurrency: int | None = None) -> list[T]: ...
@operation("gather")
async def gather(*operations: Any, concurrency: int | None = None) -> Any:
    """Runs all operations at once, and returns their results in order, like `asyncio.gather`."""
    _here("gather")
    return list(await asyncio.gather(*operations))


@operation("any")
async def any(operations: Any, *, concurrency: int | None = None, keep: bool = False) -> Any:
    """Returns the first that completes: `{"item_id", "key", "result"}`; the rest is cancelled."""
    first = await _first("any", operations)
    return {"item_id": None, "key": first[0], "result": first[1]}


@operation("race")
async def race(operations: Any, *, keep: bool = False) -> Any:
    """Returns the first that ends, as `{"item_id", "key", "status", "result" or "error"}`."""
    key, result = await _first("race", operations)
    return {"item_id": None, "key": key, "status": "completed", "result": result}


async def _first(name: str, operations: Any) -> tuple[Any, Any]:
    _here(name)
    pairs = operations.items() if isinstance(operations, Mapping) else enumerate(operations)
    tasks = {asyncio.ensure_future(each): key for key, each in pairs}
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    first = min(done, key=lambda task: list(tasks).index(task))
    return tasks[first], first.result()


@operation("completed")
async def completed(
    operations: Iterable[Awaitable[Any]], *, concurrency: int | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yields an item for each operation as it ends: `async for done in rhythm.completed([…])`.

    An item is `{"item_id", "key", "status", "result" or "error"}`.
    """
    _here("completed")
    tasks = {asyncio.ensure_future(each): i for i, each in enumerate(operations)}
    pending = set(tasks)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            yield {"key": tasks[task], "status": "completed", "result": task.result()}


@operation("timeout")
class timeout:
    """Limits the awaits inside: `with rhythm.timeout("5m"):`. Late, they raise `rhythm.Timeout`."""

    def __init__(self, limit: float | str | timedelta) -> None:
        self.limit_s = _seconds(limit)

    def __enter__(self) -> None:
        _here("timeout")
        self._task = asyncio.current_task()
        self._late = False
        self._timer = asyncio.get_running_loop().call_later(self.limit_s, self._end)

    def _end(self) -> None:
        self._late = True
        if self._task is not None:
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *raised: Any) -> None:
        self._timer.cancel()
        # Whoever else has cancelled the task wants it to end.
        others = self._task is not None and self._late and self._task.uncancel()
        if self._late and not others and kind is asyncio.CancelledError:
            raise Timeout("it was not done in time")

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *raised: Any) -> None:
        self.__exit__(kind, *raised)


@operation("run_task")
async def run_task(
    name: str,
    inputs: Any = None,
    *,
    retries: int | None = None,
    backoff: Any = None,
    timeout: float | str | None = None,
    queue: str | None = None,
    priority: int | None = None,
) -> Any:
    """Awaits a task by its name, wherever it is defined."""
    _here("run_task")
    return await call_task(name, TASKS[name], **(inputs or {}))


@operation("run_workflow")
async def run_workflow(
    name: str,
    inputs: Any = None,
    *,
    queue: str | None = None,
    priority: int | None = None,
    timeout: float | str | None = None,
    version: str | None = None,
) -> Any:
    """Awaits a workflow by its name: one of Python, of a `.flow` file or of JSON steps."""
    from rhythm.authoring.workflow import default_workflows

    _here("run_workflow")
    return await default_workflows[name].local(**(inputs or {}))


@operation("log")
def log(message: str, fields: Mapping[str, Any] | None = None) -> None:
    """Writes a line to the execution's log."""
    _here("log")
    logging.getLogger("rhythm.workflow").info("%s", message, extra=dict(fields or {}))


@operation("progress")
def progress(fraction: float, message: str = "") -> None:
    """Says how far the execution is, from 0 to 1."""
    _here("progress")


@operation("set_attribute")
def set_attribute(name: str, value: Any) -> None:
    """Sets an attribute of the execution, by which people find it."""
    _here("set_attribute")
