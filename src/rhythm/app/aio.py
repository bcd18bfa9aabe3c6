"""The application as coroutines: `app.aio` has the methods of `Rhythm`, its handles those of
`Handle`.

Each coroutine is made from its method, in the tables below, with the method's signature and
documentation, for people and for type checkers. It runs the method in a thread of asyncio's pool;
on a caller's connection in a thread of its own, which has its statements sent by the event loop.
Only waiting for a result does not use a thread (`in_loop`): a thousand waits must not need a
thousand threads.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from rhythm.app.application import Rhythm
from rhythm.app.approvals import Approvals
from rhythm.app.audit import Audit
from rhythm.app.bulk import Bulk
from rhythm.app.delegates import Delegate
from rhythm.app.details import Details
from rhythm.app.events import Events
from rhythm.app.executions import Executions
from rhythm.app.handle import ExecutionId, Handle, id_of
from rhythm.app.overview import Overview
from rhythm.app.pauses import Pauses
from rhythm.app.queues import Queues
from rhythm.app.schedules import Schedules
from rhythm.app.starts import Starts
from rhythm.app.tokens import Tokens
from rhythm.app.waiting import Ended, PollBackoff
from rhythm.app.why import Why
from rhythm.app.workflows import Workflows
from rhythm.errors import StoreError
from rhythm.store.callers import reach_from_loop
from rhythm.store.loop_calls import run_beside

if TYPE_CHECKING:
    from rhythm.app.handle import Id
    from rhythm.app.handle import R as Result
    from rhythm.authoring.workflow import Workflow
else:
    Result = TypeVar("Result")

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[Any, P], R]
Async = Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]
ITEMS_AT_ONCE = 100  # that a thread reads before it hands them to the event loop


def coroutine(method: Method[P, R]) -> Async[P, R]:
    """Returns a coroutine for a proxy that runs this method of the object behind it in a thread."""
    made: Async[P, R] = _coroutine(method)
    return made


def handle_from(method: Method[P, Handle], shown: str = "AsyncHandle") -> Async[P, AsyncHandle]:
    """Like `coroutine`, for a method that returns a handle: the caller gets an `AsyncHandle`."""
    made: Async[P, AsyncHandle] = _coroutine(method, lambda handle: AsyncHandle(handle), shown)
    return made


def handles_from(method: Method[P, list[Handle]]) -> Async[P, list[AsyncHandle]]:
    """Like `coroutine`, for a method that returns handles: the caller gets `AsyncHandle`s."""
    made: Async[P, list[AsyncHandle]] = _coroutine(
        method, lambda handles: [*map(AsyncHandle, handles)], "list[AsyncHandle]"
    )
    return made


def iterator(method: Method[P, Iterator[R]]) -> Callable[Concatenate[Any, P], AsyncIterator[R]]:
    """Returns an asynchronous generator for a proxy, from a method that yields its items.

    The items are read in a thread, some at a time.
    """

    async def call(self: Proxy, *args: Any, **kwargs: Any) -> AsyncIterator[R]:
        items = method(self._behind, *args, **kwargs)
        while some := await asyncio.to_thread(lambda: list(islice(items, ITEMS_AT_ONCE))):
            for item in some:
                yield item

    signature = inspect.signature(method)
    returned = str(signature.return_annotation).replace("Iterator", "AsyncIterator")
    made: Any = Delegate(call, method, signature.replace(return_annotation=returned))
    return cast(Callable[Concatenate[Any, P], AsyncIterator[R]], made)


def in_loop(method: Method[P, R]) -> Callable[[Async[P, R]], Async[P, R]]:
    """Returns the method as a coroutine that waits without a thread: `in_loop(method)(wait)`.

    `wait` takes the same arguments as the method. These are two calls, so that type checkers
    enforce that: given both at once, they would look for a signature that fits either.
    """

    def made_of(wait: Async[P, R]) -> Async[P, R]:
        async def call(self: Proxy, *args: Any, **kwargs: Any) -> Any:
            return await wait(self._behind, *args, **kwargs)

        made: Any = Delegate(call, method, inspect.signature(method))
        return cast(Async[P, R], made)

    return made_of


async def wait_for_result(
    app: Rhythm | Executions, id: Id, timeout: float | str | None = None
) -> Any:
    """Does what `Rhythm.result` does, without blocking a thread.

    The waiting task can be cancelled.
    """
    changes, changed = app.changes, asyncio.Event()
    patience = PollBackoff(timeout, time.monotonic, lambda: changes.hears_ends)
    id = id_of(id)
    with changes.awaited(id, _setter(changed)):
        if head_start_s := patience.head_start_s(changes.head_start_s(id)):
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), head_start_s)
        while not isinstance(found := await asyncio.to_thread(changes.poll, app.get, id), Ended):
            if not isinstance(found, StoreError) and await asyncio.to_thread(changes.drive, id):
                continue
            rest_s = patience.rest_s(found)
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), rest_s)
            changed.clear()
    return found.value()


async def wait_for_handle(handle: Handle, timeout: float | str | None = None) -> Any:
    """Does what `Handle.result` does, as `wait_for_result`."""
    return await wait_for_result(handle._executions, handle.id, timeout)


def _setter(event: asyncio.Event) -> Callable[[], None]:
    """Returns a function that sets the event from any thread."""
    loop = asyncio.get_running_loop()

    def set_event() -> None:
        with suppress(RuntimeError):  # the loop has just been closed
            loop.call_soon_threadsafe(event.set)

    return set_event


def _coroutine(method: Any, wrapped: Callable[[Any], Any] | None = None, returned: str = "") -> Any:
    signature = inspect.signature(method)
    takes_connection = "connection" in signature.parameters

    async def call(self: Proxy, *args: Any, **kwargs: Any) -> Any:
        run = partial(method, self._behind, *args, **kwargs)
        if takes_connection and kwargs.get("connection") is not None:
            result = await _on_connection(kwargs["connection"], run)
        else:
            result = await asyncio.to_thread(run)
        return result if wrapped is None else wrapped(result)

    return Delegate(
        call, method, signature.replace(return_annotation=returned) if returned else signature
    )


async def _on_connection(given: Any, run: Callable[..., Any]) -> Any:
    """Runs a method on the caller's connection, which belongs to this event loop."""
    return await run_beside(
        lambda calls: reach_from_loop(given, calls), lambda reached: run(connection=reached)
    )


class Proxy:
    """Offers the methods of the object behind it as coroutines, and its values as they are."""

    def __init__(self, behind: Any) -> None:
        self._behind = behind

    def __str__(self) -> str:
        return str(self._behind)

    def __repr__(self) -> str:
        return repr(self._behind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and bool(self._behind == other._behind)

    def __hash__(self) -> int:
        return hash(self._behind)

    if not TYPE_CHECKING:  # type checkers know only the methods in the tables below

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._behind, name)
            if name.startswith("_") or not callable(found):
                return found

            async def call(*args: Any, **kwargs: Any) -> Any:
                return await asyncio.to_thread(found, *args, **kwargs)

            return call


class AsyncHandle(ExecutionId, Proxy, Generic[Result]):
    """`Handle`, with coroutines. It is a text as well: the id of its execution."""

    _behind: Handle[Result]

    def __new__(cls, behind: Handle[Result]) -> Self:
        """Returns the handle with the methods of this one as coroutines."""
        return super().__new__(cls, behind)

    @property
    def id(self) -> str:
        """The id of the execution."""
        return self._behind.id

    @property
    def created(self) -> bool:
        """False if the execution existed before the call that returned this handle."""
        return self._behind.created

    if TYPE_CHECKING:  # what the workflow returns does not pass through `in_loop`

        async def result(self, timeout: float | str | None = None) -> Result:
            """Waits until the execution has ended, and returns its result."""
            raise NotImplementedError

    else:
        result = in_loop(Handle.result)(wait_for_handle)
    get = coroutine(Handle.get)
    status = coroutine(Handle.status)
    cancel = coroutine(Handle.cancel)
    signal = coroutine(Handle.signal)


class AsyncWorkflows(Proxy):
    """`Workflows`, with coroutines."""

    __call__ = coroutine(Workflows.__call__)
    get = coroutine(Workflows.get)
    get_many = coroutine(Workflows.get_many)
    source = coroutine(Workflows.source)
    register = coroutine(Workflows.register)
    program = coroutine(Workflows.program)
    current = coroutine(Workflows.current)


class AsyncExecutions(Proxy):
    """`Executions`, with coroutines."""

    result = in_loop(Executions.result)(wait_for_result)
    __call__ = coroutine(Executions.__call__)
    get = coroutine(Executions.get)
    get_many = coroutine(Executions.get_many)
    count = coroutine(Executions.count)
    children = coroutine(Executions.children)
    trace = coroutine(Executions.trace)
    trace_page = coroutine(Executions.trace_page)
    logs = coroutine(Executions.logs)
    signal = coroutine(Executions.signal)
    cancel = coroutine(Executions.cancel)
    terminate = coroutine(Executions.terminate)
    retry = handle_from(Executions.retry)


class AsyncStarts(Proxy):
    """`Starts`, with coroutines."""

    if not TYPE_CHECKING:
        start = handle_from(Starts.start, "AsyncHandle[R]")
    workflow = handle_from(Starts.workflow)
    workflows = handles_from(Starts.workflows)
    task = handle_from(Starts.task)
    tasks = handles_from(Starts.tasks)


class AsyncPauses(Proxy):
    """`Pauses`, with coroutines."""

    pause = coroutine(Pauses.pause)
    resume = coroutine(Pauses.resume)
    status = coroutine(Pauses.status)
    options = coroutine(Pauses.options)
    requests = coroutine(Pauses.requests)
    requests_page = coroutine(Pauses.requests_page)


class AsyncApprovals(Proxy):
    """`Approvals`, with coroutines."""

    __call__ = coroutine(Approvals.__call__)
    get = coroutine(Approvals.get)
    approve = coroutine(Approvals.approve)
    reject = coroutine(Approvals.reject)
    escalate = coroutine(Approvals.escalate)
    decide = coroutine(Approvals.decide)
    decide_all = coroutine(Approvals.decide_all)


class AsyncEvents(Proxy):
    """`Events`, with coroutines."""

    publish = coroutine(Events.publish)
    triggers = coroutine(Events.triggers)
    starting = coroutine(Events.starting)
    started_by = coroutine(Events.started_by)


class AsyncSchedules(Proxy):
    """`Schedules`, with coroutines."""

    __call__ = coroutine(Schedules.__call__)
    put = coroutine(Schedules.put)
    get = coroutine(Schedules.get)
    next_times = coroutine(Schedules.next_times)
    pause = coroutine(Schedules.pause)
    resume = coroutine(Schedules.resume)
    run = handle_from(Schedules.run)
    delete = coroutine(Schedules.delete)


class AsyncQueues(Proxy):
    """`Queues`, with coroutines."""

    __call__ = coroutine(Queues.__call__)
    counts = coroutine(Queues.counts)
    workers = coroutine(Queues.workers)
    pause = coroutine(Queues.pause)
    resume = coroutine(Queues.resume)


class AsyncDetails(Proxy):
    """`Details`, with coroutines."""

    __call__ = coroutine(Details.__call__)
    root_name = coroutine(Details.root_name)
    children = coroutine(Details.children)
    due = coroutine(Details.due)
    progress = coroutine(Details.progress)
    alike = coroutine(Details.alike)
    position = coroutine(Details.position)
    places = coroutine(Details.places)
    retries = coroutine(Details.retries)
    retry_refusal = coroutine(Details.retry_refusal)
    snapshot = coroutine(Details.snapshot)


class AsyncBulk(Proxy):
    """`Bulk`, with coroutines."""

    __call__ = coroutine(Bulk.__call__)


class AsyncOverview(Proxy):
    """`Overview`, with coroutines."""

    __call__ = coroutine(Overview.__call__)


class AsyncWhy(Proxy):
    """`Why`, with coroutines."""

    __call__ = coroutine(Why.__call__)


class AsyncTokens(Proxy):
    """`Tokens`, with coroutines."""

    __call__ = coroutine(Tokens.__call__)
    create = coroutine(Tokens.create)
    change = coroutine(Tokens.change)
    revoke = coroutine(Tokens.revoke)
    authenticate = coroutine(Tokens.authenticate)
    authenticate_all = coroutine(Tokens.authenticate_all)


class AsyncAudit(Proxy):
    """`Audit`, with coroutines."""

    __call__ = coroutine(Audit.__call__)
    verify = coroutine(Audit.verify)
    export = iterator(Audit.export)


class AsyncRhythm(Proxy):
    """`Rhythm`, with coroutines: in its rooms, and under the flat names."""

    def __init__(self, app: Rhythm) -> None:
        super().__init__(app)
        self.workflows = AsyncWorkflows(app.workflows)
        self.executions = AsyncExecutions(app.executions)
        self.starts = AsyncStarts(app.starts)
        self.pauses = AsyncPauses(app.pauses)
        self.approvals = AsyncApprovals(app.approvals)
        self.events = AsyncEvents(app.events)
        self.schedules = AsyncSchedules(app.schedules)
        self.queues = AsyncQueues(app.queues)
        self.details = AsyncDetails(app.details)
        self.bulk = AsyncBulk(app.bulk)
        self.overview = AsyncOverview(app.overview)
        self.why = AsyncWhy(app.why)
        self.tokens = AsyncTokens(app.tokens)
        self.audit = AsyncAudit(app.audit)

    register = coroutine(Rhythm.register)
    workflow = coroutine(Rhythm.workflow)

    if TYPE_CHECKING:  # the types of a workflow do not pass through `handle_from`

        async def start(
            self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs
        ) -> AsyncHandle[R]:
            """Starts a Python workflow with these arguments, and returns its handle."""
            raise NotImplementedError

    else:
        start = handle_from(Rhythm.start, "AsyncHandle[R]")
    start_workflow = handle_from(Rhythm.start_workflow)
    start_many = handles_from(Rhythm.start_many)
    queue_task = handle_from(Rhythm.queue_task)
    queue_many = handles_from(Rhythm.queue_many)

    result = in_loop(Rhythm.result)(wait_for_result)
    get = coroutine(Rhythm.get)
    list = coroutine(Rhythm.list)
    count = coroutine(Rhythm.count)
    children = coroutine(Rhythm.children)
    trace = coroutine(Rhythm.trace)
    trace_page = coroutine(Rhythm.trace_page)
    logs = coroutine(Rhythm.logs)
    signal = coroutine(Rhythm.signal)
    cancel = coroutine(Rhythm.cancel)
    terminate = coroutine(Rhythm.terminate)
    retry = handle_from(Rhythm.retry)

    pause = coroutine(Rhythm.pause)
    resume = coroutine(Rhythm.resume)
    status = coroutine(Rhythm.status)
    resume_options = coroutine(Rhythm.resume_options)
    resume_requests = coroutine(Rhythm.resume_requests)
    resume_page = coroutine(Rhythm.resume_page)

    approval = coroutine(Rhythm.approval)
    approve = coroutine(Rhythm.approve)
    reject = coroutine(Rhythm.reject)
    escalate = coroutine(Rhythm.escalate)

    publish = coroutine(Rhythm.publish)

    schedule = coroutine(Rhythm.schedule)
    get_schedule = coroutine(Rhythm.get_schedule)
    next_times = coroutine(Rhythm.next_times)
    pause_schedule = coroutine(Rhythm.pause_schedule)
    resume_schedule = coroutine(Rhythm.resume_schedule)
    run_schedule = handle_from(Rhythm.run_schedule)
    delete_schedule = coroutine(Rhythm.delete_schedule)

    workers = coroutine(Rhythm.workers)
    pause_queue = coroutine(Rhythm.pause_queue)
    resume_queue = coroutine(Rhythm.resume_queue)

    create_token = coroutine(Rhythm.create_token)
    change_token = coroutine(Rhythm.change_token)
    revoke_token = coroutine(Rhythm.revoke_token)
    authenticate = coroutine(Rhythm.authenticate)

    verify_audit = coroutine(Rhythm.verify_audit)

    run = coroutine(Rhythm.run)
    close = coroutine(Rhythm.close)
