"""Starting: workflows, and tasks on their own, one at a time or many in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, get_args

from rhythm.app.actors import By, acting
from rhythm.app.checks import at_least, start_key, valid_attributes, valid_id, valid_name
from rhythm.app.handle import Handle
from rhythm.app.views import Start
from rhythm.durations import duration_s
from rhythm.engine.payload import dump, load
from rhythm.ir.input_schema import DeclaredInputs
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import TASK, WORKFLOW, OnConflict
from rhythm.store.provenance import dump_authority, provenance_of

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.executions import Executions
    from rhythm.app.workflows import Workflows
    from rhythm.authoring.workflow import Workflow
    from rhythm.ir.program import Program
    from rhythm.store.access import Actor
    from rhythm.store.interfaces.store import Store

P = ParamSpec("P")
R = TypeVar("R")
ON_CONFLICT = get_args(OnConflict)


class Starts:
    """Starts workflows and tasks. Its methods return handles."""

    def __init__(self, context: AppContext, workflows: Workflows, executions: Executions) -> None:
        self._context, self._sizes = context, context.sizes
        self._workflows, self._executions = workflows, executions

    def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Starts a Python workflow with these arguments, and returns its handle.

        The arguments are checked against its signature. `start_workflow` has options.
        """
        return cast("Handle[R]", self.workflow(workflow, workflow.inputs_of(args, kwargs)))

    def workflow(
        self,
        name: str | Workflow[..., Any],
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
        """Starts a workflow in its current version, and returns its handle.

        An `id` or `idempotency_key` that was used before for this workflow starts nothing: the
        execution that has it is returned, whatever its inputs were.

        - `on_conflict`: "fail" raises `Conflict` instead; "replace" cancels the execution that has
          the key, and starts a new one.
        - `by`: who starts it; by default that person may not decide its approvals.
        - `connection`: your own connection to the same database, or session of SQLAlchemy: the
          workflow is started when you commit.
        """
        request = Start(inputs, id, idempotency_key, queue, priority, delay, attributes)
        return self.workflows(
            name, [request], on_conflict=on_conflict, by=by, connection=connection
        )[0]

    def workflows(
        self,
        name: str | Workflow[..., Any],
        requests: Iterable[Any],
        *,
        on_conflict: OnConflict = "return",
        by: By = None,
        connection: Any = None,
    ) -> list[Handle]:
        """Starts a workflow many times in one transaction, and returns the handles.

        It is started once for each of the requests, which are inputs or `rhythm.Start` objects.
        """
        store = self._context.store_on(connection)
        self._context.python.register(store=store)
        program = self._workflows.current(name if isinstance(name, str) else name.name, store)
        asked = [request if isinstance(request, Start) else Start(request) for request in requests]
        declared = program.options.get("inputs")
        inputs = None if declared is None else DeclaredInputs(declared)
        rows = [self._workflow_row(program, inputs, request) for request in asked]
        actor = acting(by) if by else None
        return self._start(
            [_started_by(row, actor) for row in rows] if actor else rows, on_conflict, store, actor
        )

    def _workflow_row(
        self, program: Program, declared: DeclaredInputs | None, request: Start
    ) -> NewExecution:
        queue = request.queue or program.options.get("queue") or "default"
        timeout_s = program.options.get("timeout")
        version = program.version
        row = self._row(
            WORKFLOW, program.name, request, queue, version=version, timeout_s=timeout_s
        )
        if declared is not None:
            declared.check(program.name, load(row.inputs))
        return row

    def task(
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
        """Queues a task on its own, without a workflow, and returns its handle.

        Any worker of its queue runs it. The result of the handle is that of the task.
        """
        request = Start(inputs, id, idempotency_key, queue, priority, delay, attributes)
        return self.tasks(
            name,
            [request],
            on_conflict=on_conflict,
            retries=retries,
            timeout=timeout,
            connection=connection,
        )[0]

    def tasks(
        self,
        name: str,
        requests: Iterable[Any],
        *,
        on_conflict: OnConflict = "return",
        retries: int | None = None,
        timeout: float | str | None = None,
        connection: Any = None,
    ) -> list[Handle]:
        """Queues a task many times in one transaction, and returns the handles.

        It is queued once for each of the requests, which are inputs or `rhythm.Start` objects.
        """
        task = self._context.tasks.get(name)
        options: dict[str, Any] = (
            {} if retries is None else {"retries": at_least(retries, 0, "retries")}
        )
        if timeout is not None:
            options["timeout_s"] = duration_s(timeout)
        attempts = 1 + (retries if retries is not None else task.retries if task else 0)
        given = dump(options, "options")
        name, queue = valid_name(name, "a task's name"), (task and task.queue) or "default"
        asked = [request if isinstance(request, Start) else Start(request) for request in requests]
        rows = [
            self._row(
                TASK, name, request, request.queue or queue, max_attempts=attempts, options=given
            )
            for request in asked
        ]
        return self._start(rows, on_conflict, self._context.store_on(connection))

    def _row(self, type: int, name: str, request: Start, queue: str, **more: Any) -> NewExecution:
        """Returns the row of a start. `more`: other fields of it."""
        key, attributes = request.idempotency_key, request.attributes
        return NewExecution(
            self._context.new_id() if request.id is None else valid_id(request.id),
            type,
            name,
            valid_name(queue, "a queue"),
            dump(request.inputs, "inputs"),
            priority=at_least(request.priority, -(2**31), "priority"),
            delay_s=0.0 if request.delay is None else duration_s(request.delay),
            key=None if key is None else start_key(key, "an idempotency_key"),
            attributes="{}" if attributes is None else valid_attributes(attributes),
            **more,
        )

    def _start(
        self,
        rows: Sequence[NewExecution],
        on_conflict: OnConflict,
        store: Store,
        actor: Actor | None = None,
    ) -> list[Handle]:
        if on_conflict not in ON_CONFLICT:
            raise ValueError(
                f"on_conflict is one of {', '.join(ON_CONFLICT)}, not {on_conflict!r:.80}"
            )
        if on_conflict == "replace":
            keys = [row.key for row in rows]
            if None in keys or len(set(keys)) < len(keys):
                raise ValueError(
                    'on_conflict="replace" needs an idempotency_key, another one for each start'
                )
        for row in rows:
            self._sizes.payload("inputs", row.name, row.id, row.inputs)
        started = store.executions.start(rows, on_conflict, actor)
        self._context.wake_if_committed(store)
        return [Handle(self._executions, found.id, found.created) for found in started]


def _started_by(row: NewExecution, actor: Actor) -> NewExecution:
    """Returns the row with who starts it: name, contributors and authority."""
    provenance = provenance_of(actor)
    authority = dump_authority(provenance.authority)
    return row.replace(
        started_by=actor.name, contributors=provenance.contributors, authority=authority
    )
