"""Starting: workflows, and tasks on their own, one at a time or many in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, get_args

from rhythm.app.actors import By, acting
from rhythm.app.checks import at_least, start_key, valid_attributes, valid_id, valid_name
from rhythm.app.handle import Handle
from rhythm.app.views import Start
from rhythm.durations import duration_s
from rhythm.engine.payload import dump, load
from rhythm.errors import InvalidInputs
from rhythm.ir.input_schema import DeclaredInputs
from rhythm.store.interfaces.executions import NewExecution, OutdatedError
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
        name = name if isinstance(name, str) else name.name
        asked, actor = _Asked(list(requests), on_conflict), acting(by) if by else None
        # Mostly no newer version was registered since the last start: then one statement does it.
        known = self._context.programs.last_known(name) if asked.alike else None
        if known is not None:
            with suppress(OutdatedError, InvalidInputs):
                return self._start_program(known, asked, store, actor, if_current=True)
        return self._start_program(self._workflows.current(name, store), asked, store, actor)

    def _start_program(
        self,
        program: Program,
        asked: _Asked,
        store: Store,
        actor: Actor | None,
        if_current: bool = False,
    ) -> list[Handle]:
        options = program.options
        common = NewExecution(
            "",
            WORKFLOW,
            program.name,
            options.get("queue") or "default",
            version=program.version,
            timeout_s=options.get("timeout"),
            **(_provenance(actor) if actor else {}),
        )
        declared = DeclaredInputs(options["inputs"]) if "inputs" in options else None
        return self._start(common, asked, store, actor, declared, if_current)

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
        common = NewExecution(
            "",
            TASK,
            valid_name(name, "a task's name"),
            (task and task.queue) or "default",
            max_attempts=attempts,
            options=dump(options, "options"),
        )
        asked = _Asked(list(requests), on_conflict)
        return self._start(common, asked, self._context.store_on(connection))

    def _start(
        self,
        common: NewExecution,
        asked: _Asked,
        store: Store,
        actor: Actor | None = None,
        declared: DeclaredInputs | None = None,
        if_current: bool = False,
    ) -> list[Handle]:
        """Starts an execution for each request. `common`: what does not come from requests."""
        requests = asked.requests
        texts = [_inputs(common.name, request, declared) for request in requests]
        ids = self._context.new_ids(len(requests))
        inputs = dict(zip(ids, texts, strict=True))
        self._sizes.payloads("inputs", common.name, inputs)
        if asked.alike:
            placed = _placed(common, requests[0])
            if store is self._context.store:  # else they begin when the caller commits
                self._context.changes.begin(ids)
            store.executions.start_alike(placed, inputs, actor, if_current)
            handles = [Handle(self._executions, id) for id in ids]
        else:
            rows = [
                _row(_placed(common, request), request, id, text)
                for request, (id, text) in zip(requests, inputs.items(), strict=True)
            ]
            _refuse_without_keys(rows, asked.on_conflict)
            started = store.executions.start(rows, asked.on_conflict, actor) if rows else []
            handles = [Handle(self._executions, found.id, found.created) for found in started]
        self._context.wake_if_committed(store)
        return handles


class _Asked:
    """What is asked of one call: the requests, which are inputs or `Start`, and what is done about
    executions that exist already."""

    def __init__(self, requests: Sequence[Any], on_conflict: OnConflict) -> None:
        if on_conflict not in ON_CONFLICT:
            raise ValueError(
                f"on_conflict is one of {', '.join(ON_CONFLICT)}, not {on_conflict!r:.80}"
            )
        self.requests, self.on_conflict = requests, on_conflict
        # They differ only in their inputs, and none can exist already.
        self.alike = bool(requests) and on_conflict != "replace" and _are_alike(requests)


def _inputs(name: str, request: Any, declared: DeclaredInputs | None) -> str:
    """Returns the inputs of a request as JSON. Raises `InvalidInputs` if they are not as
    declared."""
    text = dump(request.inputs if isinstance(request, Start) else request, "inputs")
    if declared is not None:
        declared.check(name, load(text))
    return text


def _are_alike(requests: Sequence[Any]) -> bool:
    """Returns whether requests differ only in their inputs, and none names its execution."""
    if len(requests) > 1:
        return not any(isinstance(request, Start) for request in requests)
    (request,) = requests
    return not isinstance(request, Start) or request.id is request.idempotency_key is None


def _placed(common: NewExecution, request: Any) -> NewExecution:
    """Returns the execution with what the request says of where and when it runs."""
    queue = request.queue if isinstance(request, Start) else None
    valid_name(queue or common.queue, "a queue")
    if not isinstance(request, Start):
        return common
    attributes = request.attributes
    return common.replace(
        queue=queue or common.queue,
        priority=at_least(request.priority, -(2**31), "priority"),
        delay_s=0.0 if request.delay is None else duration_s(request.delay),
        attributes="{}" if attributes is None else valid_attributes(attributes),
    )


def _row(placed: NewExecution, request: Any, new_id: str, inputs: str) -> NewExecution:
    """Returns the row of a start. `new_id`: its id, unless the request has one."""
    if not isinstance(request, Start):
        return placed.replace(id=new_id, inputs=inputs)
    key = request.idempotency_key
    return placed.replace(
        id=new_id if request.id is None else valid_id(request.id),
        inputs=inputs,
        key=None if key is None else start_key(key, "an idempotency_key"),
    )


def _refuse_without_keys(rows: Sequence[NewExecution], on_conflict: OnConflict) -> None:
    """Raises `ValueError` if existing executions are to be replaced, and rows do not say which."""
    keys = {row.key for row in rows}
    if on_conflict == "replace" and (None in keys or len(keys) < len(rows)):
        raise ValueError(
            'on_conflict="replace" needs an idempotency_key, another one for each start'
        )


def _provenance(actor: Actor) -> dict[str, Any]:
    """Returns who starts it, as fields of the row: name, contributors and authority."""
    provenance = provenance_of(actor)
    return dict(
        started_by=actor.name,
        contributors=provenance.contributors,
        authority=dump_authority(provenance.authority),
    )
