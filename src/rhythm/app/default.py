"""The default application, for programs that have only one: `rhythm.init(…)`, then `await
rhythm.start_workflow(…)` and the others.

Each function calls the coroutine of the same name on the default application (`list_executions`
calls `list`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rhythm.app.aio import AsyncRhythm
from rhythm.app.application import Rhythm
from rhythm.authoring.local import LOCAL
from rhythm.authoring.operations import in_local_run
from rhythm.authoring.workflow import Workflow
from rhythm.errors import NotInitialised
from rhythm.worker.handlers import Task

if TYPE_CHECKING:
    from typing import Unpack, cast, overload

    from rhythm.app.actors import By
    from rhythm.app.approvals import ApprovalView
    from rhythm.app.handle import Id
    from rhythm.settings import Given

    # For type checkers alone: at run time `__getattr__` below makes these functions. `AsyncRhythm`
    # is imported above, at run time too: else mypy gets here before it knows the methods of that
    # class, and takes them for Any.
    _aio = cast(AsyncRhythm, None)
    start = _aio.start
    start_workflow = _aio.start_workflow
    start_many = _aio.start_many
    queue_task = _aio.queue_task
    queue_many = _aio.queue_many
    get = _aio.get
    list_executions = _aio.list
    result = _aio.result
    trace = _aio.trace
    workflows = _aio.workflows.__call__
    publish = _aio.publish

    # These two mean something else in the body of a Python workflow: they wait there.
    @overload
    async def signal(
        name: str, /, *, timeout: float | str | None = None, default: Any = None
    ) -> Any: ...
    @overload
    async def signal(
        id: Id,
        name: str,
        payload: Any = None,
        *,
        signal_id: str | None = None,
        by: By = None,
        connection: Any = None,
    ) -> bool: ...
    async def signal(*args: Any, **kwargs: Any) -> Any: ...

    @overload
    async def approval(id: str | ApprovalView) -> ApprovalView: ...
    @overload
    async def approval(
        *,
        role: str,
        reason: str = "",
        timeout: float | str | None = None,
        quorum: int = 1,
        four_eyes: bool = True,
        data: Any = None,
        escalate: Any = None,
        notify: str | None = None,
    ) -> dict[str, Any]: ...
    async def approval(*args: Any, **kwargs: Any) -> Any: ...

    cancel, pause, resume, retry = _aio.cancel, _aio.pause, _aio.resume, _aio.retry
    approvals = _aio.approvals.__call__
    approve = _aio.approve
    reject = _aio.reject
    escalate = _aio.escalate
    status, resume_options, resume_requests = _aio.status, _aio.resume_options, _aio.resume_requests
    workers = _aio.workers
    queues = _aio.queues.__call__
    pause_queue = _aio.pause_queue
    resume_queue = _aio.resume_queue
    schedule = _aio.schedule
    schedules = _aio.schedules.__call__
    get_schedule = _aio.get_schedule
    next_times = _aio.next_times
    pause_schedule = _aio.pause_schedule
    resume_schedule = _aio.resume_schedule
    run_schedule = _aio.run_schedule
    delete_schedule = _aio.delete_schedule
    terminate, bulk, why = _aio.terminate, _aio.bulk.__call__, _aio.why.__call__

# Functions that also mean something in the body of a Python workflow.
_ALSO_IN_WORKFLOWS = frozenset({"signal", "approval", "publish", "cancel"})
_NAMES = {"list_executions": "list"}  # functions whose method has another name
_app: Rhythm | None = None
_lent: Rhythm | None = None  # the last one that `use` was given: its owner closes it


def init(
    database_url: str | None = None,
    workflow_paths: Iterable[str | os.PathLike[str]] | str | None = None,
    *,
    tasks: Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None = None,
    workflows: Iterable[Workflow[..., Any]] | None = None,
    **settings: Unpack[Given],
) -> Rhythm:
    """Makes the default application and returns it. The arguments are those of `Rhythm`.

    An earlier default application is closed.
    """
    global _app
    made = Rhythm(database_url, workflow_paths, tasks=tasks, workflows=workflows, **settings)
    before, _app = _app, made
    if before is not None and before is not _lent:
        before.close()
    return made


def use(app: Rhythm | None) -> Rhythm | None:
    """Makes this the default application, and returns the one before, which stays open."""
    global _app, _lent
    before, _app, _lent = _app, app, app
    return before


def made() -> Rhythm | None:
    """Returns the default application, or None if `init` has not made one."""
    return _app


def __getattr__(name: str) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        if name in _ALSO_IN_WORKFLOWS and LOCAL.get() is not None and _is_for_the_body(name, args):
            return in_local_run(name, args)
        if _app is None:
            raise NotInitialised(f"rhythm.{name} needs an application: call rhythm.init(…) first")
        return await getattr(_app.aio, _NAMES.get(name, name))(*args, **kwargs)

    if name.startswith("_"):
        raise AttributeError(name)
    if name in _ALSO_IN_WORKFLOWS:
        call.__rhythm_operation__ = name  # type: ignore[attr-defined]  # read by lang/python
    return _documented(call, name)


def _is_for_the_body(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a call in a local run is the body's own: it waits, or there is nobody to tell."""
    return len(args) < 2 if name in ("signal", "approval") else _app is None


def _documented(call: Any, name: str) -> Any:
    """Returns the function with the signature and docstring of the coroutine that it calls.

    They are for `help`, and for editors that ask a running Python.
    """
    method = _NAMES.get(name, name)
    # A room is an attribute of the instance. In the class `Rhythm`, the same name is the method
    # that lists what is in the room.
    like = getattr(AsyncRhythm, method, None) or getattr(Rhythm, method, None)
    call.__name__ = call.__qualname__ = name
    if like is not None:
        signature = inspect.signature(like)
        _, *parameters = signature.parameters.values()
        call.__doc__, call.__signature__ = like.__doc__, signature.replace(parameters=parameters)
    return call
