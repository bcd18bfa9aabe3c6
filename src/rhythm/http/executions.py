"""Executions over HTTP: starting them, and reading everything about one."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from rhythm.app.checks import place_after
from rhythm.app.executions import STATUSES
from rhythm.app.explain import WhyView
from rhythm.app.pauses import ResumeRequestView, StatusView
from rhythm.app.views import LARGE_FIELDS, ExecutionView, TraceStep
from rhythm.engine.payload import dump
from rhythm.errors import UnknownWorkflow
from rhythm.http.answers import answer, without
from rhythm.http.pages import listed
from rhythm.http.problems import Refused
from rhythm.http.requests import Ask, Cursor, Id, Key, Limit
from rhythm.http.schemas import Body, Json, form_of, object_of, page_of
from rhythm.permissions import READ
from rhythm.vm.snapshot import decode_snapshot

Execution = form_of(ExecutionView, "Execution")
Summary = form_of(ExecutionView, "ExecutionSummary", LARGE_FIELDS)
Summaries = page_of(Summary)
Step = form_of(TraceStep)
Steps = page_of(Step)
Why = form_of(WhyView, "Why")
Where = form_of(StatusView, "ExecutionStatus")
Resumes = page_of(form_of(ResumeRequestView, "ResumeRequest"))
Options = object_of("ResumeOptions", "What would let an execution go on.", actions=list[str])
Started = object_of("Started", "`created`: false if it was there before.", id=str, created=bool)
Snapshot = object_of(
    "Snapshot",
    "Where a workflow is.",
    id=str,
    statement=int,
    locals=dict[str, Any],
    awaiting=dict[str, Any] | None,
    next_child=int,
)


class NewExecution(Body):
    workflow: str = Field(description="its name")
    inputs: Json = None
    id: str | None = Field(default=None, description="of your own; else one is made")
    queue: str | None = None
    priority: int = 0
    delay: float | str | None = Field(default=None, description='seconds, or such as "5m"')
    attributes: dict[str, Json] | None = None
    on_conflict: Literal["return", "fail", "replace"] = Field(
        default="return", description="what happens if the id or key was used before"
    )


def start(ask: Ask, request: Request, body: NewExecution, key: Key = None) -> Response:
    """Starts a workflow. 201: it was started; 200: this id or `Idempotency-Key` has started it
    before.

    To `replace` is to cancel, and needs the permission `execution:cancel`, too.
    """
    if not ask.may("execution:start", body.workflow):
        raise UnknownWorkflow(f"there is no workflow `{body.workflow}`", body.workflow)
    if body.on_conflict == "replace":
        ask.must("execution:cancel")
        if not ask.may("execution:cancel", body.workflow):
            ask.refuse("execution:cancel", f"for the workflow `{body.workflow}`")
    given = body.model_dump(exclude={"workflow", "inputs"})
    handle = ask.app.start_workflow(
        body.workflow, body.inputs, idempotency_key=ask.own(key), by=ask.actor, **given
    )
    if not handle.created and key is not None:
        _refuse_other(key, body, handle.get())
    place = f"{request.scope.get('root_path', '')}/api/v1/executions/{quote(handle.id, safe='')}"
    return answer(
        {"id": handle.id, "created": handle.created},
        201 if handle.created else 200,
        {"Location": place},
    )


def _refuse_other(key: str, asked: NewExecution, found: ExecutionView) -> None:
    """Refuses a repeated key with different inputs (422): it is a mistake of the caller."""
    if dump(asked.inputs, "inputs") != dump(found.inputs, "inputs"):
        what = "the id" if found.id == asked.id else f"your key {key!r}"
        raise Refused(
            422,
            "idempotency_key_reused",
            f"{what} has started {found.id} with other inputs",
            id=found.id,
        )


Status = Annotated[
    str | None,
    Query(description="only those that are so", json_schema_extra={"enum": [*STATUSES, None]}),
]
Of = Annotated[str | None, Query(description="only those of this workflow")]


def find(
    ask: Ask, workflow: Of = None, status: Status = None, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """Executions that nobody else started, newest first, without what may be large."""
    page = ask.app.list(
        workflow,
        status,
        limit,
        cursor,
        brief=True,
        scope=ask.scope(READ),
        most_bytes=ask.page_bytes,
    )
    items = [without(view, *LARGE_FIELDS) for view in page.items]
    return listed(ask, items, page.cursor is not None, lambda n: place_after(page.items[n]))


def get(ask: Ask, id: Id) -> Response:
    """Everything about one execution."""
    return answer(ask.app.get(id))


def status(ask: Ask, id: Id) -> Response:
    """Where an execution is; of a paused one why, where, and what comes next."""
    return answer(ask.app.status(id))


def why(ask: Ask, id: Id) -> Response:
    """Why an execution does not go on: what it waits for, since when, and what would help."""
    return answer(ask.app.why(id, scope=ask.scope(READ)))


def resume_options(ask: Ask, id: Id) -> Response:
    """What would let an execution go on: approve, reject, escalate, publish or resume; nothing if
    it needs nobody."""
    return answer({"actions": ask.app.resume_options(id)})


def resumes(ask: Ask, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Whatever has let an execution go on that was paused, oldest first."""
    page = ask.app.resume_page(id, limit, cursor, most_bytes=ask.page_bytes)
    return listed(ask, page.items, page.cursor is not None, lambda n: str(page.items[n].id))


def trace(ask: Ask, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """What has happened in an execution and everything below it, in the order of time."""
    page = ask.app.trace_page(id, limit, cursor, most_bytes=ask.page_bytes)
    return listed(ask, page.items, page.cursor is not None, lambda n: page.cursors[n])


def children(ask: Ask, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The tasks and workflows that an execution has started, in their order, without what may be
    large."""
    page = ask.app.children(id, limit, cursor, brief=True, most_bytes=ask.page_bytes)
    items = [without(view, *LARGE_FIELDS) for view in page.items]
    return listed(
        ask, items, page.cursor is not None, lambda n: page.items[n].id.rpartition(".")[2]
    )


def snapshot(ask: Ask, id: Id) -> Response:
    """Where a workflow is: its next statement, its variables, and what it awaits. 404 as long as it
    has not begun, and for tasks."""
    stored = ask.app.details.snapshot(id)
    if stored is None:
        raise Refused(404, "no_snapshot", f"{id} has no snapshot: it is a task, or has not begun")
    found = decode_snapshot(stored)
    known = {"locals": found.locals, "awaiting": found.awaiting, "next_child": found.next_child}
    return answer({"id": id, "statement": found.statement_index, **known})
