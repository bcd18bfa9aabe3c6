"""`Rhythm`, the application object: everything that can be asked of executions, on one database.

It reads the environment, opens the database and makes the rooms, which have the methods. A room
checks what callers give, turns calls into rows and rows into views; the store and the engine decide
what happens to executions. The compiler and the engine are imported when they are first needed:
`rhythm list` needs neither.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from rhythm.app.approvals import Approvals
from rhythm.app.audit import Audit
from rhythm.app.bulk import Bulk
from rhythm.app.context import AppContext
from rhythm.app.database import Database
from rhythm.app.delegates import flat
from rhythm.app.details import Details
from rhythm.app.events import Events
from rhythm.app.executions import Executions
from rhythm.app.overview import Overview
from rhythm.app.pauses import Pauses
from rhythm.app.queues import Queues
from rhythm.app.schedules import Schedules
from rhythm.app.starts import Starts
from rhythm.app.tokens import Tokens
from rhythm.app.why import Why
from rhythm.app.workflows import Workflows
from rhythm.errors import StoreError
from rhythm.settings import Settings, load_settings
from rhythm.store.interfaces.store import Store
from rhythm.store.open import open_store
from rhythm.worker.handlers import Task, Tasks, default_tasks

if TYPE_CHECKING:
    from typing import Unpack

    from rhythm.app.aio import AsyncRhythm
    from rhythm.app.handle import Handle
    from rhythm.app.pooled import Pooled, PooledWorker
    from rhythm.authoring.workflow import Workflow
    from rhythm.http import Server
    from rhythm.settings import Given

    P = ParamSpec("P")
    R = TypeVar("R")


class Rhythm:
    """An application on one database. It may be used from any thread.

    Call `close` at the end, or use it in a `with` statement. A setting that is not given comes from
    the `RHYTHM_*` variables, from `rhythm.toml` or `[tool.rhythm]` in `pyproject.toml`, or is the
    default.

    - `tasks`: the tasks that its workers run; those of `@rhythm.task` unless you give your own.
    - `workflows`: its Python workflows; those of `@rhythm.workflow` unless you give your own.
    - `environment`: replaces the variables of the process.
    - `store`: replaces the database of the URL; `close` leaves it open.

    Its methods are grouped in objects, here called rooms: `app.approvals.approve(…)`,
    `app.schedules.pause(…)`. Most of them have a flat name, too: `app.approve(…)`,
    `app.pause_schedule(…)`. Some rooms can be called, most of these to list what is in them:
    `app.approvals()`.
    """

    def __init__(
        self,
        database_url: str | None = None,
        workflow_paths: Iterable[str | os.PathLike[str]] | str | None = None,
        *,
        tasks: Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None = None,
        workflows: Iterable[Workflow[..., Any]] | None = None,
        store: Store | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: Unpack[Given],
    ) -> None:
        given = {"database_url": database_url, "workflow_paths": workflow_paths, **settings}
        self.settings: Settings = load_settings(
            given, os.environ if environment is None else environment
        )
        self.tasks = _tasks(tasks)
        self.opened = store is None  # else the caller opened the store, and closes it
        self.store: Store = _opened(self.settings) if store is None else store
        self._context = context = AppContext(self.store, self.settings, self.tasks, workflows)
        self.changes = context.changes
        self.running = context.running  # workers of this process
        # workers that were made and not started: they have connections to close
        self.unstarted: list[PooledWorker] = []

        self.workflows = Workflows(context)
        self.executions = Executions(context, self.workflows)
        self.starts = Starts(context, self.workflows, self.executions)
        self.pauses = Pauses(context, self.workflows)
        self.approvals = Approvals(context)
        self.events = Events(context)
        self.schedules = Schedules(context, self.workflows, self.executions)
        self.queues = Queues(context)
        self.details = Details(context, self.workflows)
        self.overview = Overview(context)
        self.bulk = Bulk(context, self.executions, self.workflows)
        self.why = Why(context, self.workflows)
        self.tokens = Tokens(context)
        self.audit = Audit(context)
        self.database = Database(context.store)
        try:
            self._prepare()
            context.python.register(self.register(*self.settings.workflow_paths))
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Migrates the tables to this version.

        With `auto_migrate` off, raises `StoreError` instead. A database whose schema is newer than
        this version is refused in either case.
        """
        if self.settings.auto_migrate:
            self.store.schema.migrate()
        elif pending := self.store.schema.pending():
            new = self.store.schema.version() == 0
            lacking = (
                "has no tables of Rhythm yet"
                if new
                else f"lacks {', '.join(m.name for m in pending)}"
            )
            raise StoreError(
                f"the database {lacking}: run `rhythm migrate`, or leave auto_migrate on"
            )

    def close(self) -> None:
        """Stops the workers that this application started, and closes its database connection.

        A store that was passed in stays open. What is asked of the application afterwards raises
        `ApplicationClosed`; to close it again does nothing.
        """
        try:
            for worker in [*self.running, *self.unstarted]:
                worker.stop()
        finally:
            self.changes.close()
            self._context.closing.close()
            if self.opened:
                self.store.close()

    def _refuse_if_closed(self) -> None:
        """Raises `ApplicationClosed` after `close`: for what does not begin with the database."""
        self._context.closing.refuse_if_closed()

    def __enter__(self) -> Self:
        self._refuse_if_closed()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def aio(self) -> AsyncRhythm:
        """The same methods as coroutines."""
        from rhythm.app.aio import AsyncRhythm

        return AsyncRhythm(self)

    def run(self, name: str, inputs: Any = None, *, id: str | None = None) -> Any:
        """Starts a workflow, runs it and its tasks in this thread, and returns its result."""
        from rhythm.app.pooled import worker_settings
        from rhythm.engine.levels import LEVELS
        from rhythm.worker.runner import CheckpointingRunner

        handle = self.starts.workflow(name, inputs, id=id)
        level, settings = LEVELS.get(self.settings.log_level), worker_settings(self.settings)
        runner = CheckpointingRunner(self.store, self.tasks, settings, log_level=level)
        try:
            return runner.resume(handle.id)
        finally:
            runner.close()
            self.changes.notify()

    def worker(self, worker_id: str | None = None, **settings: Unpack[Pooled]) -> PooledWorker:
        """Returns a worker that runs in threads of this process. See `PooledWorker`.

        Use it as `with app.worker(): …`, or call its `start` and `stop`.
        """
        from rhythm.app.pooled import PooledWorker

        self._context.python.register()
        return PooledWorker(worker_id, self, **settings)

    def server(self, *, tokens: bool = True) -> Server:
        """Returns the HTTP interface as an ASGI application, to mount in yours.

        See `rhythm.http.Server`.
        """
        from rhythm.http import Server

        self._refuse_if_closed()
        return Server(self, tokens=tokens)

    # The flat names: each calls the method of a room.

    register = flat(Workflows.register)
    workflow = flat(Workflows.get)
    program = flat(Workflows.program)

    if TYPE_CHECKING:  # the types of a workflow do not pass through `flat`

        def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
            """Starts a Python workflow with these arguments, and returns its handle."""

    else:
        start = flat(Starts.start)
    start_workflow = flat(Starts.workflow)
    start_many = flat(Starts.workflows)
    queue_task = flat(Starts.task)
    queue_many = flat(Starts.tasks)

    get = flat(Executions.get)
    list = flat(Executions.__call__)
    count = flat(Executions.count)
    children = flat(Executions.children)
    result = flat(Executions.result)
    trace = flat(Executions.trace)
    trace_page = flat(Executions.trace_page)
    logs = flat(Executions.logs)
    signal = flat(Executions.signal)
    cancel = flat(Executions.cancel)
    terminate = flat(Executions.terminate)
    retry = flat(Executions.retry)

    pause = flat(Pauses.pause)
    resume = flat(Pauses.resume)
    status = flat(Pauses.status)
    resume_options = flat(Pauses.options)
    resume_requests = flat(Pauses.requests)
    resume_page = flat(Pauses.requests_page)

    approval = flat(Approvals.get)
    approve = flat(Approvals.approve)
    reject = flat(Approvals.reject)
    escalate = flat(Approvals.escalate)

    publish = flat(Events.publish)

    schedule = flat(Schedules.put)
    get_schedule = flat(Schedules.get)
    next_times = flat(Schedules.next_times)
    pause_schedule = flat(Schedules.pause)
    resume_schedule = flat(Schedules.resume)
    run_schedule = flat(Schedules.run)
    delete_schedule = flat(Schedules.delete)

    workers = flat(Queues.workers)
    pause_queue = flat(Queues.pause)
    resume_queue = flat(Queues.resume)

    create_token = flat(Tokens.create)
    change_token = flat(Tokens.change)
    revoke_token = flat(Tokens.revoke)
    authenticate = flat(Tokens.authenticate)

    verify_audit = flat(Audit.verify)

    # In the class these names are methods, for `help` and the like. In an instance they are the
    # rooms.
    if not TYPE_CHECKING:
        workflows = flat(Workflows.__call__)
        approvals = flat(Approvals.__call__)
        schedules = flat(Schedules.__call__)
        queues = flat(Queues.__call__)
        bulk = flat(Bulk.__call__)
        overview = flat(Overview.__call__)
        why = flat(Why.__call__)
        tokens = flat(Tokens.__call__)
        audit = flat(Audit.__call__)


def _opened(settings: Settings) -> Store:
    return open_store(settings.database_url, listen_url=settings.listen_url)


def _tasks(
    given: Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None,
) -> Mapping[str, Task[..., Any]]:
    if given is None:
        return default_tasks
    if isinstance(given, Mapping):
        return given
    tasks = Tasks()
    for task in given:
        tasks.add(task)
    return tasks
