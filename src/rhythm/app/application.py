"""`Rhythm`, the application object: everything that can be asked of executions, on one database.

It validates, and turns calls into rows and rows into views; what happens to executions is decided in the store and the engine.
This is the edge: here the environment is read, ids are drawn, and the database is chosen. The compiler and the engine are imported
when they are first needed: `rhythm list` needs neither.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

from rhythm.app.actors import By, acting
from rhythm.app.approving import Approvals
from rhythm.app.audit import Audit
from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    can_be,
    name_of,
    number_of,
    own_key,
    page_of,
    place_after,
    place_of,
    possible_id,
    start_key,
    trace_cursor,
    trace_place,
    unknown_execution,
    valid_attributes,
    valid_id,
    valid_name,
    valid_text,
)
from rhythm.app.context import AppContext
from rhythm.app.delegates import flat
from rhythm.app.handle import Handle
from rhythm.app.operating import Operating
from rhythm.app.scheduling import Schedules
from rhythm.app.tokens import Tokens
from rhythm.app.views import (
    ExecutionView,
    Page,
    QueueView,
    Start,
    TracePage,
    TraceStep,
    WorkerView,
    WorkflowView,
    brief_view,
    queue_view,
    step,
    view,
    worker_view,
    workflow_view,
)
from rhythm.app.waiting import Patience, look
from rhythm.durations import duration_s
from rhythm.engine.payload import dump
from rhythm.errors import Denied, NotDelivered, NotRetryable, StoreError, UnknownWorkflow
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS
from rhythm.rights import Scope, within
from rhythm.settings import Settings, load_settings
from rhythm.store.base import TASK, WORKFLOW, Listed, NewEvent, NewExecution, NewSignal, Reach, Store
from rhythm.store.open import open_store
from rhythm.store.provenance import dump_authority, provenance_of
from rhythm.store.reading import TURN, Moment
from rhythm.worker.handlers import Task, Tasks, default_tasks

if TYPE_CHECKING:
    from typing import Unpack

    from rhythm.app.aio import AsyncRhythm
    from rhythm.app.handle import Id
    from rhythm.app.pooled import Pooled, PooledWorker
    from rhythm.http import Server
    from rhythm.settings import Given
    from rhythm.store.access import Actor

OnConflict = Literal["return", "fail", "replace"]
ON_CONFLICT = ("return", "fail", "replace")
STATUSES = ("pending", "running", "suspended", "paused", "completed", "failed", "cancelled", "blocked")
TRACED_PROGRAMS = 20  # that are loaded for one page of a trace
Handles = list[Handle]
Steps = list[TraceStep]
Workflows = list[WorkflowView]
Workers = list[WorkerView]
Queues = list[QueueView]


class Rhythm(Approvals, Schedules, Operating):
    """An application on one database. Use it from any thread; `close` it, or use it in a `with` statement.

    What is not given comes from the `RHYTHM_*` variables, `rhythm.toml` or `[tool.rhythm]` of `pyproject.toml`, or is the default.
    `tasks` are those of `@rhythm.task` unless you give your own. `environment` replaces the variables of the process, and `store`,
    which stays open, the database of the URL.
    """

    def __init__(
        self,
        database_url: str | None = None,
        workflow_paths: Iterable[str | os.PathLike[str]] | str | None = None,
        *,
        tasks: Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None = None,
        store: Store | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: Unpack[Given],
    ) -> None:
        given = {"database_url": database_url, "workflow_paths": workflow_paths, **settings}
        self.settings: Settings = load_settings(given, os.environ if environment is None else environment)
        self.tasks = _tasks(tasks)
        self.opened = store is None  # else the store is the caller's
        self.store: Store = open_store(self.settings.database_url, listen_url=self.settings.listen_url) if store is None else store
        self._context = context = AppContext(self.store, self.settings, self.tasks)
        self.changes = context.changes
        self.running = context.running  # workers of this process
        self.unstarted: list[PooledWorker] = []  # and those that were made, and have connections
        self.tokens, self.audit = Tokens(context), Audit(context)
        try:
            self._prepare()
            self.register(*self.settings.workflow_paths)
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """The tables as this version needs them; a newer schema is refused in either case."""
        if self.settings.auto_migrate:
            self.store.migrate()
        elif pending := self.store.pending():
            what = "has no tables of Rhythm yet" if self.store.schema_version() == 0 else f"lacks {', '.join(m.name for m in pending)}"
            raise StoreError(f"the database {what}: run `rhythm migrate`, or leave auto_migrate on")

    def close(self) -> None:
        """Stops the workers that this application started, and closes its connection."""
        for worker in [*self.running, *self.unstarted]:
            worker.stop()
        if self.opened:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def aio(self) -> AsyncRhythm:
        """The same methods as coroutines."""
        from rhythm.app.aio import AsyncRhythm

        return AsyncRhythm(self)

    # workflows

    def register(
        self, *sources: str | os.PathLike[str], by: By = None, scope: Scope = None, known: Scope = None
    ) -> tuple[str, ...]:  # fmt: skip
        """Registers the workflows of files, folders or texts: all, or none if one does not compile. Their names.

        `FlowError` shows every problem of every file. New executions start on the version that was registered last.
        Only with `by` it is recorded in the audit. `Denied` if the name of one fits no pattern of the `scope`. Of other workflows, that
        these call, there are those that are `known`.
        """
        from rhythm.app.flows import compile_flows, read_flows

        actor, texts = acting(by) if by else None, read_flows(sources)
        others = (name for name in (listed.name for listed in self._listed()) if within(known, name))
        definitions = compile_flows(texts, others) if texts else []
        _refuse_others([definition.name for definition in definitions], scope)
        if definitions:
            self.store.register(definitions, self._registered_schedules(definitions, actor), actor)
        return tuple(definition.name for definition in definitions)

    def workflows(self, limit: int | None = None, after: str = "") -> Workflows:
        """The current versions of all workflows by name, or of so many of those that come after this name."""
        if limit is None:
            return [workflow_view(listed) for listed in self._listed(name_of(after))]
        found = self.store.definitions(name_of(after), min(at_least(limit, 1, "limit"), LARGEST_PAGE + 1))
        return [workflow_view(listed) for listed in found]

    def workflow(self, name: str) -> WorkflowView:
        """The current version of a workflow; `UnknownWorkflow` if there is none of this name."""
        found = self.store.current([name]) if can_be(name) else {}
        return workflow_view(found[name]) if name in found else self._no_workflow(name, self.store)

    def _listed(self, after: str = "") -> Iterator[Listed]:
        while page := self.store.definitions(after, LARGEST_PAGE):
            yield from page
            after = page[-1].name

    def program(self, name: str, version: str | None = None) -> Program | None:
        """A program by its version, kept once it is loaded; without a version, the current one."""
        return self._context.programs.get(self.store, name, version) if can_be(name) and (version is None or can_be(version)) else None

    def _current(self, name: str, store: Store) -> Program:
        return (self._context.programs.get(store, name) if can_be(name) else None) or self._no_workflow(name, store)

    def _no_workflow(self, name: str, store: Store) -> NoReturn:
        from rhythm.app.flows import no_workflow

        raise UnknownWorkflow(no_workflow(name, [known.name for known in store.definitions("", LARGEST_PAGE)]), name)

    # starting

    def start_workflow(
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
    ) -> Handle:
        """Starts a workflow in its current version.

        An `id` or `idempotency_key` that was used before for this workflow starts nothing: the execution that has it is returned,
        whatever its inputs were (`on_conflict="fail"`: `Conflict`; `"replace"`: whoever has the key is cancelled and a new one
        starts). `by` says who starts it, and by default may not decide its approvals. With `connection`, your own psycopg or sqlite3
        connection to the same database, it is started by your commit.
        """
        request = Start(inputs, id, idempotency_key, queue, priority, delay, attributes)
        return self.start_many(name, [request], on_conflict=on_conflict, by=by, connection=connection)[0]

    def start_many(
        self, name: str, requests: Iterable[Any], *, on_conflict: OnConflict = "return", by: By = None, connection: Any = None
    ) -> Handles:
        """Starts a workflow many times in one transaction, once for each of these inputs or `rhythm.Start` requests."""
        store = self._store_of(connection)
        program = self._current(name, store)
        asked = [request if isinstance(request, Start) else Start(request) for request in requests]
        rows = [self._workflow_row(program, request) for request in asked]
        actor = acting(by) if by else None
        return self._start([_started_by(row, actor) for row in rows] if actor else rows, on_conflict, store, actor)

    def _workflow_row(self, program: Program, request: Start) -> NewExecution:
        queue = request.queue or program.options.get("queue") or "default"
        row = self._row(WORKFLOW, program.name, request, queue)
        return row.replace(version=program.version, timeout_s=program.options.get("timeout"))

    def queue_task(
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
    ) -> Handle:
        """Queues a task on its own, without a workflow; the handle's result is the task's. Any worker of its queue runs it."""
        request = Start(inputs, id, idempotency_key, queue, priority, delay, attributes)
        return self.queue_many(name, [request], on_conflict=on_conflict, retries=retries, timeout=timeout, connection=connection)[0]

    def queue_many(
        self,
        name: str,
        requests: Iterable[Any],
        *,
        on_conflict: OnConflict = "return",
        retries: int | None = None,
        timeout: float | str | None = None,
        connection: Any = None,
    ) -> Handles:
        """Queues a task many times in one transaction, once for each of these inputs or `rhythm.Start` requests."""
        task = self.tasks.get(name)
        options: dict[str, Any] = {} if retries is None else {"retries": at_least(retries, 0, "retries")}
        if timeout is not None:
            options["timeout_s"] = duration_s(timeout)
        attempts, given = 1 + (retries if retries is not None else task.retries if task else 0), dump(options, "options")
        name, queue = valid_name(name, "a task's name"), (task and task.queue) or "default"
        asked = [request if isinstance(request, Start) else Start(request) for request in requests]
        rows = [self._row(TASK, name, request, request.queue or queue) for request in asked]
        rows = [row.replace(max_attempts=attempts, options=given) for row in rows]
        return self._start(rows, on_conflict, self._store_of(connection))

    def _row(self, type: int, name: str, request: Start, queue: str) -> NewExecution:
        key = request.idempotency_key
        return NewExecution(
            self._new_id() if request.id is None else valid_id(request.id), type, name, valid_name(queue, "a queue"),
            dump(request.inputs, "inputs"), priority=at_least(request.priority, -(2**31), "priority"),
            delay_s=0.0 if request.delay is None else duration_s(request.delay),
            key=None if key is None else start_key(key, "an idempotency_key"), attributes=_attributes(request.attributes),
        )  # fmt: skip

    def _start(self, rows: Sequence[NewExecution], on_conflict: str, store: Store, actor: Actor | None = None) -> Handles:
        if on_conflict not in ON_CONFLICT:
            raise ValueError(f"on_conflict is one of {', '.join(ON_CONFLICT)}, not {on_conflict!r:.80}")
        if on_conflict == "replace":
            keys = [row.key for row in rows]
            if None in keys or len(set(keys)) < len(keys):
                raise ValueError('on_conflict="replace" needs an idempotency_key, another one for each start')
        for row in rows:
            self._context.sizes.payload("inputs", row.name, row.id, row.inputs)
        started = store.start(rows, on_conflict, actor)
        if store is self.store:
            self._wake()
        return [Handle(self, found.id, found.created) for found in started]

    def _store_of(self, connection: Any) -> Store:
        return self.store if connection is None else self.store.within(connection)

    # asking

    def get(self, id: Id) -> ExecutionView:
        """The execution as it is now; `UnknownExecution` if there is none of this id."""
        return view(self._execution(id))

    def list(
        self,
        workflow: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        *,
        brief: bool = False,
        scope: Scope = None,
        most_bytes: int | None = None,
    ) -> Page:
        """Executions that nobody else started, newest first. Give the `cursor` of a page to get the next one.

        With `brief`, inputs, result and what they await are not read, and None; an error that is large is cut (`"cut": true` in it).
        With a `scope`, only those whose names fit one of its patterns, such as `order*`. A page ends early when it has `most_bytes`.
        """
        if status is not None and status not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, not {status!r:.80}")
        limit = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        name = None if workflow is None else valid_name(workflow, "a workflow's name")
        found = self.store.find(name, status, place_of(cursor), limit + 1, brief, self._names(scope), most_bytes)
        rows, more = page_of(found, limit)
        views = tuple(map(brief_view if brief else view, rows))
        return Page(views, place_after(views[-1]) if more else None)

    def children(self, id: Id, limit: int = 50, cursor: str | None = None, *, brief: bool = False, most_bytes: int | None = None) -> Page:
        """What an execution has started, in that order. See `list`."""
        limit, after = min(at_least(limit, 1, "limit"), LARGEST_PAGE), number_of(cursor)
        rows, more = page_of(self.store.children(self._execution(id).id, after, limit + 1, brief, most_bytes), limit)
        views = tuple(map(brief_view if brief else view, rows))
        return Page(views, rows[-1].id.rpartition(".")[2] if more else None)

    def result(self, id: Id, timeout: float | str | None = None) -> Any:
        """Waits until the execution has ended: its result. `ExecutionFailed` if it has none, `ResultTimeout` if it takes too long.

        A database that goes away is waited for; `StoreError` if it has not answered for 30 s, or when the timeout is over.
        """
        patience, changed = Patience(timeout, time.monotonic), threading.Event()
        with self.changes.heard_by(changed.set):
            while isinstance(found := look(self.get, id), StoreError) or not found.ended:
                changed.wait(patience.rest_s(found))
                changed.clear()
        return found.value()

    def trace(self, id: Id) -> Steps:
        """What has happened in an execution and everything below it, in the order of time. See `trace_page`."""
        page = self.trace_page(id, LARGEST_PAGE)
        steps = [*page]
        while page.cursor is not None:
            page = self.trace_page(id, LARGEST_PAGE, page.cursor)
            steps += page
        return steps

    def trace_page(self, id: Id, limit: int = 50, cursor: str | None = None, *, most_bytes: int | None = None) -> TracePage:
        """Some of what has happened in an execution and everything below it, in the order of time. See `list`.

        A trace covers the first 10,000 executions below it, and 100,000 of their turns.
        """
        limit, after = min(at_least(limit, 1, "limit"), LARGEST_PAGE), trace_place(cursor)
        found = self.store.trace(self._execution(id).id, after, limit + 1, most_bytes)
        steps, programs = list[TraceStep](), dict[tuple[str, str], Program | None]()
        for moment in found[:limit]:
            if (key := _program_of(moment)) and key not in programs:
                if len(programs) == TRACED_PROGRAMS:
                    break
                programs[key] = self.program(*key)
            steps.append(step(moment, programs.get(key) if key else None))
        cursors = tuple(trace_cursor(moment.place) for moment in found[: len(steps)])
        more = found.cut or len(found) > len(steps)
        return TracePage(tuple(steps), cursors[-1] if more and steps else None, cursors)

    # changing

    def signal(self, id: Id, name: str, payload: Any = None, *, signal_id: str | None = None, by: By = None) -> bool:
        """Sends a signal; it waits in the mailbox until the workflow asks for it. False: this `signal_id` was sent before.

        `NotDelivered` if the execution has ended or its mailbox is full. Only with `by` it is recorded in the audit.
        """
        id = possible_id(id)
        own = own_key(signal_id, "a signal_id") if signal_id is not None else self._new_id()
        sent = NewSignal(f"{id}#{own}", id, valid_name(name, "a signal's name"), dump(payload, "payload"))
        self._context.sizes.payload("signal", name, id, sent.payload)
        answer = self.store.signal(sent, DEFAULT_LIMITS.signals, acting(by) if by else None)
        if answer == "missing":
            unknown_execution(id)
        if answer not in ("sent", "duplicate"):
            late = answer == "late"
            why = "it has ended" if late else f"{DEFAULT_LIMITS.signals:,} signals wait in its mailbox already"
            raise NotDelivered(f"the signal `{name}` was not delivered to {id}: {why}", "execution_ended" if late else "mailbox_full")
        self._wake()
        return answer == "sent"

    def publish(self, type: str, data: Any = None, *, event_id: str | None = None, by: By = None) -> bool:
        """Publishes an event to everyone who waits for it, or started before it and will wait, and starts the workflows that name it
        with `@on`: `by` says who starts them.

        False: this `event_id` was published before. Only with `by` it is recorded in the audit.
        """
        id = own_key(event_id, "an event_id") if event_id is not None else self._new_id()
        event = NewEvent(id, valid_name(type, "an event's type"), dump(data, "data"))
        self._context.sizes.payload("event", type, id, event.data)
        answer = self.store.publish(event, acting(by) if by else None)
        self._wake()
        return answer == "published"

    def cancel(self, id: Id, *, by: By = None, insist: bool = True) -> bool:
        """Asks an execution to end: its `finally` blocks run, what it started is cancelled. False: it has ended already.

        Whoever asks a second time does not want to wait for that: then it ends at once, as by `terminate`. Not so without `insist`,
        for those who may repeat a call whose answer was lost: then False means that it was asked before, too.
        """
        row = self._execution(id)
        if row.cancel_requested_at is not None and not insist:
            return False
        end = self.store.cancel if row.cancel_requested_at is None else self.store.terminate
        return self._told(id, end([row.id], acting(by)).get(row.id))

    def retry(self, id: Id, *, from_start: bool = False, by: By = None) -> Handle:
        """A new execution that goes on where this one failed or was cancelled, on the same version: what had completed is kept.

        With `from_start` it begins at the beginning, with the same inputs, on the current version. The old one stays as it is.
        A retry of it that is still under way is returned instead of a second one, but not to whoever asks for one `from_start`.
        `NotRetryable` if it would fail again at once, or was retried before: the message says what to do.
        """
        from rhythm.engine.retried import anew, retried

        new_id, row = self._new_id(), self._execution(id)
        version = self._current(row.name, self.store).version if from_start and row.type == WORKFLOW else row.version
        reach = Reach.by(self.store.limits)
        plan = (lambda family: anew(family, new_id, version)) if from_start else (lambda family: retried(family, new_id, reach))
        started = self.store.retry(row.id, plan, acting(by), whole=not from_start)
        if started is None:
            unknown_execution(id)
        if from_start and not started.created:
            raise NotRetryable(f"a retry of {id} is under way: {started.id}; cancel that one first, or wait for its end")
        self._wake()
        return Handle(self, started.id, started.created)

    def _told(self, id: Id, answer: bool | None) -> bool:
        if answer is None:
            unknown_execution(id)
        self._wake()
        return answer

    # workers and queues

    def workers(self) -> Workers:
        """The workers of the database, whatever process they are in; those that died, for a day."""
        return [worker_view(seen) for seen in self.store.workers()]

    def queues(self) -> Queues:
        """What is in the queues: all that have work, are paused, or are served by a worker."""
        return [queue_view(queue) for queue in self.store.queues()]

    def pause_queue(self, name: str, reason: str = "", by: By = None) -> bool:
        """Nothing more of this queue begins: no task, and no workflow. What has begun goes on. False: it was paused already."""
        return self.store.pause_queue(valid_name(name, "a queue"), True, acting(by), valid_text(reason, "reason"))

    def resume_queue(self, name: str, by: By = None) -> bool:
        """Lets workers take from a paused queue again. False: it was not paused."""
        changed = self.store.pause_queue(valid_name(name, "a queue"), False, acting(by))
        self._wake()
        return changed

    # running

    def run(self, name: str, inputs: Any = None, *, id: str | None = None) -> Any:
        """Starts a workflow and drives it to its end in this thread, tasks included: its result."""
        from rhythm.app.pooled import worker_settings
        from rhythm.worker.runner import CheckpointingRunner

        handle = self.start_workflow(name, inputs, id=id)
        runner = CheckpointingRunner(self.store, self.tasks, worker_settings(self.settings))
        try:
            return runner.resume(handle.id)
        finally:
            runner.close()
            self.changes.tell()

    def worker(self, worker_id: str | None = None, **settings: Unpack[Pooled]) -> PooledWorker:
        """A worker in threads of this process: `with app.worker(): …`, or `start` and `stop` it. See `PooledWorker`."""
        from rhythm.app.pooled import PooledWorker

        return PooledWorker(worker_id, self, **settings)

    def server(self, *, tokens: bool = True) -> Server:
        """The HTTP interface as an ASGI application, to be mounted in yours: see `rhythm.http.Server`."""
        from rhythm.http import Server

        return Server(self, tokens=tokens)

    # the names of the rooms' methods, without their rooms

    create_token = flat(Tokens.create)
    change_token = flat(Tokens.change)
    revoke_token = flat(Tokens.revoke)
    authenticate = flat(Tokens.authenticate)
    verify_audit = flat(Audit.verify)


def _started_by(row: NewExecution, actor: Actor) -> NewExecution:
    provenance = provenance_of(actor)
    authority = dump_authority(provenance.authority)
    return row.replace(started_by=actor.name, contributors=provenance.contributors, authority=authority)


def _tasks(given: Mapping[str, Task[..., Any]] | Iterable[Task[..., Any]] | None) -> Mapping[str, Task[..., Any]]:
    if given is None:
        return default_tasks
    if isinstance(given, Mapping):
        return given
    tasks = Tasks()
    for task in given:
        tasks.add(task)
    return tasks


def _refuse_others(names: Sequence[str], scope: Scope) -> None:
    if others := sorted(name for name in names if not within(scope, name)):
        allowed = ", ".join(scope or ())
        raise Denied(f"whoever registers this may not register `{others[0]}`, only what is called {allowed}", "permission_missing")


def _attributes(given: Mapping[str, Any] | None) -> str:
    return valid_attributes({} if given is None else given)


def _program_of(moment: Moment) -> tuple[str, str] | None:
    """The program that knows in which line a turn was taken; None for what is none."""
    return (moment.name, moment.version) if moment.place.kind == TURN and moment.type == WORKFLOW else None
