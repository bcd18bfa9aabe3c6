"""The application as coroutines: one proxy for all methods, and the types by which checkers know them.

A call runs in a thread of asyncio's pool. Only waiting for a result does not: a thousand waits must not need a thousand threads.
The protocols repeat the signatures of `Rhythm` and `Handle`; a test holds them to it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

from rhythm.app.approving import AsyncApprovals
from rhythm.app.handle import Handle
from rhythm.app.operating import AsyncOperating
from rhythm.app.part import By
from rhythm.app.rights import AsyncAccess
from rhythm.app.scheduling import AsyncSchedules
from rhythm.app.views import ExecutionView, Page, TracePage, WorkflowView
from rhythm.app.waiting import Patience, look
from rhythm.errors import StoreError
from rhythm.rights import Scope

if TYPE_CHECKING:
    from rhythm.app.application import OnConflict, Queues, Rhythm, Steps, Workers, Workflows
    from rhythm.app.handle import Id


class AsyncHandle(Protocol):
    """`Handle`, with coroutines."""

    id: str
    created: bool

    async def result(self, timeout: float | str | None = None) -> Any: ...
    async def get(self) -> ExecutionView: ...
    async def status(self) -> str: ...
    async def cancel(self) -> bool: ...
    async def signal(self, name: str, payload: Any = None, *, signal_id: str | None = None) -> bool: ...


AsyncHandles = list[AsyncHandle]


class AsyncRhythm(AsyncApprovals, AsyncAccess, AsyncOperating, AsyncSchedules, Protocol):
    """`Rhythm`, with coroutines."""

    async def register(
        self, *sources: str | os.PathLike[str], by: By = None, scope: Scope = None, known: Scope = None
    ) -> tuple[str, ...]: ...
    async def workflows(self, limit: int | None = None, after: str = "") -> Workflows: ...
    async def workflow(self, name: str) -> WorkflowView: ...
    async def start_workflow(
        self,
        name: str,
        inputs: Any = None,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        on_conflict: OnConflict = "return",
        queue: str | None = None,
        priority: int = 0,
        delay: float | str | None = None,
        attributes: Mapping[str, Any] | None = None,
        by: By = None,
        connection: Any = None,
    ) -> AsyncHandle: ...
    async def start_many(
        self, name: str, requests: Iterable[Any], *, on_conflict: OnConflict = "return", by: By = None, connection: Any = None
    ) -> AsyncHandles: ...
    async def queue_task(
        self,
        name: str,
        inputs: Any = None,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        on_conflict: OnConflict = "return",
        queue: str | None = None,
        priority: int = 0,
        delay: float | str | None = None,
        attributes: Mapping[str, Any] | None = None,
        retries: int | None = None,
        timeout: float | str | None = None,
        connection: Any = None,
    ) -> AsyncHandle: ...
    async def queue_many(
        self,
        name: str,
        requests: Iterable[Any],
        *,
        on_conflict: OnConflict = "return",
        retries: int | None = None,
        timeout: float | str | None = None,
        connection: Any = None,
    ) -> AsyncHandles: ...
    async def get(self, id: Id) -> ExecutionView: ...
    async def list(
        self,
        workflow: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        *,
        brief: bool = False,
        scope: Scope = None,
        most_bytes: int | None = None,
    ) -> Page: ...
    async def children(
        self, id: Id, limit: int = 50, cursor: str | None = None, *, brief: bool = False, most_bytes: int | None = None
    ) -> Page: ...
    async def result(self, id: Id, timeout: float | str | None = None) -> Any: ...
    async def trace(self, id: Id) -> Steps: ...
    async def trace_page(self, id: Id, limit: int = 50, cursor: str | None = None, *, most_bytes: int | None = None) -> TracePage: ...
    async def signal(self, id: Id, name: str, payload: Any = None, *, signal_id: str | None = None, by: By = None) -> bool: ...
    async def publish(self, type: str, data: Any = None, *, event_id: str | None = None, by: By = None) -> bool: ...
    async def cancel(self, id: Id, *, by: By = None, insist: bool = True) -> bool: ...
    async def retry(self, id: Id, *, from_start: bool = False, by: By = None) -> AsyncHandle: ...
    async def workers(self) -> Workers: ...
    async def queues(self) -> Queues: ...
    async def pause_queue(self, name: str, reason: str = "", by: By = None) -> bool: ...
    async def resume_queue(self, name: str, by: By = None) -> bool: ...
    async def run(self, name: str, inputs: Any = None, *, id: str | None = None) -> Any: ...
    async def close(self) -> None: ...


class _Proxy:
    """Methods of the object behind it as coroutines, its values as they are."""

    def __init__(self, app: Rhythm, behind: Rhythm | Handle) -> None:
        self._app, self._behind = app, behind

    def __str__(self) -> str:
        return str(self._behind)

    def __repr__(self) -> str:
        return repr(self._behind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Proxy) and self._behind == other._behind

    def __hash__(self) -> int:
        return hash(self._behind)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._behind, name)
        if name.startswith("_") or not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            return self._wrapped(await asyncio.to_thread(found, *args, **kwargs))

        return call

    def _wrapped(self, value: Any) -> Any:
        """Handles that are given back have coroutines too."""
        if isinstance(value, list):
            return [self._wrapped(item) for item in value]
        return _HandleProxy(self._app, value) if isinstance(value, Handle) else value


class _AppProxy(_Proxy):
    async def result(self, id: Id, timeout: float | str | None = None) -> Any:
        return await wait_for_result(self._app, id, timeout)


class _HandleProxy(_Proxy):
    async def result(self, timeout: float | str | None = None) -> Any:
        return await wait_for_result(self._app, str(self._behind), timeout)


async def wait_for_result(app: Rhythm, id: Id, timeout: float | str | None) -> Any:
    """`Rhythm.result`, but nothing is blocked meanwhile, and whoever waits can be cancelled."""
    patience, changed = Patience(timeout, time.monotonic), asyncio.Event()
    with app.changes.heard_by(_setter(changed)):
        while isinstance(found := await asyncio.to_thread(look, app.get, id), StoreError) or not found.ended:
            rest_s = patience.rest_s(found)
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), rest_s)
            changed.clear()
    return found.value()


def _setter(event: asyncio.Event) -> Callable[[], None]:
    """Sets the event from any thread."""
    loop = asyncio.get_running_loop()

    def set_event() -> None:
        with suppress(RuntimeError):  # the loop has just been closed
            loop.call_soon_threadsafe(event.set)

    return set_event


def asynchronous(app: Rhythm) -> AsyncRhythm:
    """The application with coroutines."""
    return cast(AsyncRhythm, _AppProxy(app, app))
