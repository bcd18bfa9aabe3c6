"""Executions over HTTP: starting them, and reading everything about one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from rhythm.app.checks import PLACES
from rhythm.app.details import ExecutionDetails
from rhythm.app.explain import WhyView
from rhythm.app.log_lines import LogLineView
from rhythm.app.pauses import ResumeRequestView, StatusView
from rhythm.app.views import LARGE_FIELDS, AlikeView, ExecutionView, TraceStep
from rhythm.engine.payload import dump
from rhythm.errors import UnknownWorkflow
from rhythm.filters import STATUSES
from rhythm.http.answers import answer, document, without
from rhythm.http.pages import listed
from rhythm.http.problems import Refused
from rhythm.http.requests import Ask, Cursor, Id, Key, Limit
from rhythm.http.schemas import Body, Json, form_of, object_of, page_of
from rhythm.permissions import READ
from rhythm.vm.snapshot import decode_snapshot

MOST_MEMBERS = 1000  # ids in one request
READ_AT_ONCE = 10  # whole executions that are read at a time: each may be large
Execution = form_of(ExecutionView, "Execution")
Summary = form_of(ExecutionView, "ExecutionSummary", LARGE_FIELDS)
Summaries = page_of(Summary)
Step = form_of(TraceStep)
Steps = page_of(Step, cursors=list[str])
Alike = object_of(
    "AlikeExecutions",
    "What there is many times below an execution.",
    alike=list[form_of(AlikeView, "Alike")],  # type: ignore[misc]  # made when this is run
)
Lines = page_of(form_of(LogLineView, "LogLine"), dropped=int)
Why = form_of(WhyView, "Why")
Where = form_of(StatusView, "ExecutionStatus")
Resumes = page_of(form_of(ResumeRequestView, "ResumeRequest"))
Members = page_of(Execution)
Details = form_of(ExecutionDetails)
Options = object_of(
    "ResumeOptions", "What somebody can do to let an execution go on.", actions=list[str]
)
Started = object_of(
    "Started", "`created` is false if the execution existed before.", id=str, created=bool
)
Snapshot = object_of(
    "Snapshot",
    "The state of a workflow: its next statement, its variables, and what it waits for.",
    id=str,
    statement=int,
    locals=dict[str, Any],
    awaiting=dict[str, Any] | None,
    next_child=int,
)


class NewExecution(Body):
    workflow: str = Field(description="The name of the workflow.")
    inputs: Json = None
    id: str | None = Field(
        default=None, description="An id of your choice. Without it, Rhythm makes one."
    )
    queue: str | None = None
    priority: int = 0
    delay: float | str | None = Field(
        default=None, description='How long to wait before it begins: seconds, or a text like "5m".'
    )
    attributes: dict[str, Json] | None = None
    on_conflict: Literal["return", "fail", "replace"] = Field(
        default="return", description="What to do if the id or the key was used before."
    )


def start(ask: Ask, request: Request, body: NewExecution, key: Key = None) -> Response:
    """Starts a workflow.

    The answer is 201 if it was started, and 200 if this id or `Idempotency-Key` has started it
    before. With `on_conflict: "replace"` the earlier execution is cancelled; this also needs the
    permission `execution:cancel`.
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
    Query(
        description="Only executions with this status.",
        json_schema_extra={"enum": [*STATUSES, None]},
    ),
]
Of = Annotated[str | None, Query(description="Only executions of this workflow.")]


Wanted = Annotated[
    str | None,
    Query(
        description="Only executions that meet this filter, such as "
        "`status:failed attr.customer=acme age>2h`. All of its terms must be true."
    ),
]
Counted = object_of("Counted", "How many executions there are.", count=int)
Whole = Annotated[
    bool, Query(description="Leave out no fields: inputs, result and what it waits for, too.")
]
Some = Annotated[
    list[str],
    Query(alias="id", max_length=MOST_MEMBERS, description="Ids of executions of its family."),
]


def find(
    ask: Ask,
    q: Wanted = None,
    workflow: Of = None,
    status: Status = None,
    whole: Whole = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Lists executions, newest first.

    The list has roots only: no child that a workflow has started. Fields that may be large are
    left out, unless it is asked for `whole` executions. With a filter by `finished`, those that
    have ended last come first.
    """
    page = ask.app.list(
        workflow,
        status,
        limit,
        cursor,
        query=q,
        brief=not whole,
        scope=ask.scope(READ),
        most_bytes=ask.page_bytes,
    )
    items, place = _shown(page.items, whole), PLACES[page.ordered_by]
    return listed(ask, items, page.cursor is not None, lambda n: place(page.items[n]))


def count(ask: Ask, q: Wanted = None, workflow: Of = None, status: Status = None) -> Response:
    """Counts executions.

    It counts roots only. They are counted one by one along an index, so it takes the longer the
    more there are.
    """
    found = ask.app.count(q, workflow=workflow, status=status, scope=ask.scope(READ))
    return answer({"count": found})


def _shown(views: Sequence[ExecutionView], whole: bool) -> list[Any]:
    """Returns executions as a list shows them."""
    return [view if whole else without(view, *LARGE_FIELDS) for view in views]


def get(ask: Ask, id: Id) -> Response:
    """Returns everything about one execution."""
    return answer(ask.app.get(id))


def status(ask: Ask, id: Id) -> Response:
    """Returns the status of an execution.

    If it is paused: also why, at which place, and what happens next.
    """
    return answer(ask.app.status(id))


def why(ask: Ask, id: Id) -> Response:
    """Explains why an execution does not go on.

    The answer says what it waits for, since when, and what would help.
    """
    return answer(ask.app.why(id, scope=ask.scope(READ)))


def resume_options(ask: Ask, id: Id) -> Response:
    """Returns what somebody can do to let an execution go on.

    It is any of approve, reject, escalate, publish and resume. The list is empty if the execution
    waits for nobody.
    """
    return answer({"actions": ask.app.resume_options(id)})


def resumes(ask: Ask, id: Id, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Lists what has let a paused execution go on, oldest first."""
    page = ask.app.resume_page(id, limit, cursor, most_bytes=ask.page_bytes)
    return listed(ask, page.items, page.cursor is not None, lambda n: str(page.items[n].id))


MostAlike = Annotated[
    int | None,
    Query(ge=1, description="Leave out executions that are alike where there are more of them."),
]


def trace(
    ask: Ask,
    id: Id,
    most_alike: MostAlike = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Lists what happened in an execution and in everything below it, oldest first.

    With `most_alike`, executions of one name that are equally deep are left out where there are
    more of them. `cursors` has the cursor of the page that begins after each step.
    """
    page = ask.app.trace_page(id, limit, cursor, most_bytes=ask.page_bytes, most_alike=most_alike)
    more = page.cursor is not None
    return listed(ask, page.items, more, lambda n: page.cursors[n], each=True)


Most = Annotated[
    int, Query(ge=1, description="How many executions that are alike are no group yet.")
]


def alike(ask: Ask, id: Id, most: Most) -> Response:
    """Counts what there is many times below an execution.

    These are executions of one name that are equally deep, where there are more than `most`: those
    that a trace with the same `most_alike` leaves out. The answer also has the first that failed,
    and the slowest.
    """
    return answer({"alike": ask.app.details.alike(id, most)})


Level = Annotated[
    Literal["debug", "info", "warning", "error"],
    Query(description="Only lines from this level on. Progress counts as `info`."),
]


def logs(
    ask: Ask, id: Id, limit: Limit = 50, cursor: Cursor = None, level: Level = "debug"
) -> Response:
    """Lists what an execution and everything below it have said, oldest first.

    These are lines of logs, reports of progress, and heartbeats of tasks. They come in the order of
    storing: to follow them, send the `position` of your last line as `cursor`. `dropped` counts the
    lines that were not kept, because they were too many.
    """
    page = ask.app.logs(id, cursor, limit, level=level, most_bytes=ask.page_bytes)
    more = page.cursor is not None
    return listed(
        ask, page.items, more, lambda n: str(page.items[n].position), dropped=page.dropped
    )


def children(
    ask: Ask, id: Id, whole: Whole = False, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """Lists the tasks and workflows that an execution has started.

    They come in the order in which they were started. Fields that may be large are left out, unless
    it is asked for `whole` executions.
    """
    page = ask.app.children(id, limit, cursor, brief=not whole, most_bytes=ask.page_bytes)
    return listed(
        ask,
        _shown(page.items, whole),
        page.cursor is not None,
        lambda n: page.items[n].id.rpartition(".")[2],
    )


def members(ask: Ask, id: Id, some: Some, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Returns some executions of one family: this one, or executions anywhere below it.

    They are those of the query (`?id=a.1&id=a.1.2`) that exist, sorted by id, with all their
    fields.
    """
    wanted = sorted(each for each in set(some) if each == id or each.startswith(f"{id}."))
    left = [each for each in wanted if cursor is None or each > cursor]
    found, size, read = list[ExecutionView](), 0, 0
    while read < len(left) and len(found) <= limit and size < ask.page_bytes:
        views = ask.app.executions.get_many(left[read : read + READ_AT_ONCE])
        found += [views[each] for each in sorted(views)]
        size += sum(len(document(view)) for view in views.values())
        read += READ_AT_ONCE
    shown, more = found[:limit], read < len(left) or len(found) > limit
    return listed(ask, shown, more, lambda n: shown[n].id)


def details(ask: Ask, id: Id) -> Response:
    """Returns what else there is to know of an execution.

    When its timers are due, where in its source it is, its retries and, if it failed, why a retry
    would be refused.
    """
    return answer(ask.app.details(id))


def snapshot(ask: Ask, id: Id) -> Response:
    """Returns the snapshot of a workflow.

    It has the next statement, the variables, and what the workflow waits for. The answer is 404 if
    the workflow has not begun yet, and for tasks.
    """
    stored = ask.app.details.snapshot(id)
    if stored is None:
        raise Refused(404, "no_snapshot", f"{id} has no snapshot: it is a task, or has not begun")
    found = decode_snapshot(stored)
    known = {"locals": found.locals, "awaiting": found.awaiting, "next_child": found.next_child}
    return answer({"id": id, "statement": found.statement_index, **known})
