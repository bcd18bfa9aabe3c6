"""The table of all routes: what is served where, by which function, with which permission, and how
it may be answered.

The permission of a route, and what it must be for, are in the line of the route and nowhere else.
Lines without a permission are public; there are no other public paths (`guard.PUBLIC`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rhythm.http import (
    acting,
    approvals,
    audit,
    bulk,
    events,
    executions,
    health,
    queues,
    schedules,
    streaming,
    workflows,
)
from rhythm.http.objects import (
    APPROVAL,
    BODY,
    EVERYTHING,
    EXECUTION,
    LIST,
    QUEUE,
    SCHEDULE,
    WORKFLOW,
)
from rhythm.http.schemas import Model, object_of
from rhythm.http.sharing import REGISTERING
from rhythm.record import Record

V1 = "/api/v1"
Endpoint = Callable[..., Any]
Health = object_of("Health", "The process lives.", status=str)
Readiness = object_of(
    "Readiness", "`problems` says what is not as it should be.", ready=bool, problems=list[str]
)


class Route(Record):
    """A route of the table.

    `answers` has the schema of each answer that is not an error, `problems` the statuses of errors.
    """

    method: str
    path: str
    endpoint: Endpoint
    permission: str | None
    about: str | None  # what the permission must be for: see `objects`
    answers: dict[int, Model | str | None]  # a schema, or the media type of what is not JSON
    problems: tuple[int, ...] = ()
    # what the OpenAPI document says about a body that the function reads itself
    body: dict[str, Any] | None = None
    # a long computation: of all routes with the same word here, only one runs at a time
    turn: str = ""


READ, PLAN = "execution:read", "schedule:write"
OF_ONE = (404,)  # there may be nothing with this id or name
WITH_BODY = (400, 408, 413, 415, 422)
ACT = (*OF_ONE, *WITH_BODY)

ROUTES = (
    Route("GET", "/healthz", health.healthz, None, None, {200: Health}, (503,)),
    Route("GET", "/readyz", health.readyz, None, None, {200: Readiness, 503: Readiness}),
    Route("GET", "/metrics", health.metrics, READ, EVERYTHING, {200: "text/plain"}),
    Route(
        "POST", f"{V1}/workflows", workflows.register, "workflow:write", BODY,
        {201: workflows.Registered}, WITH_BODY, turn=REGISTERING,
    ),
    Route("GET", f"{V1}/workflows", workflows.find, READ, LIST, {200: workflows.Workflows}, (422,)),
    Route("GET", f"{V1}/workflows/{{name}}", workflows.get, READ, WORKFLOW, {200: workflows.Detail},
        OF_ONE),
    Route("GET", f"{V1}/workflows/{{name}}/graph", workflows.draw, READ, WORKFLOW,
        {200: workflows.Drawn}, OF_ONE),
    Route("GET", f"{V1}/workflows/{{name}}/source", workflows.source, READ, WORKFLOW,
        {200: workflows.Source}, (404, 422)),
    Route("GET", f"{V1}/triggers", workflows.triggers, READ, LIST, {200: workflows.Triggers},
        (422,)),
    Route(
        "POST", f"{V1}/executions", executions.start, "execution:start", BODY,
        {201: executions.Started, 200: executions.Started}, (409, *ACT),
    ),
    Route("GET", f"{V1}/executions", executions.find, READ, LIST, {200: executions.Summaries},
        (422,)),
    Route("GET", f"{V1}/execution-count", executions.count, READ, LIST,
        {200: executions.Counted}, (422,)),
    Route("GET", f"{V1}/executions/{{id}}", executions.get, READ, EXECUTION,
        {200: executions.Execution}, OF_ONE),
    Route("GET", f"{V1}/executions/{{id}}/status", executions.status, READ, EXECUTION,
        {200: executions.Where}, OF_ONE),
    Route("GET", f"{V1}/executions/{{id}}/why", executions.why, READ, EXECUTION,
        {200: executions.Why}, OF_ONE),
    Route("GET", f"{V1}/executions/{{id}}/resume-options", executions.resume_options, READ,
        EXECUTION, {200: executions.Options}, OF_ONE),
    Route("GET", f"{V1}/executions/{{id}}/resume-requests", executions.resumes, READ, EXECUTION,
        {200: executions.Resumes}, (404, 422)),
    Route("GET", f"{V1}/executions/{{id}}/trace", executions.trace, READ, EXECUTION,
        {200: executions.Steps}, (404, 422)),
    Route("GET", f"{V1}/executions/{{id}}/alike", executions.alike, READ, EXECUTION,
        {200: executions.Alike}, (404, 422)),
    Route("GET", f"{V1}/executions/{{id}}/logs", executions.logs, READ, EXECUTION,
        {200: executions.Lines}, (404, 422)),
    Route("GET", f"{V1}/executions/{{id}}/children", executions.children, READ, EXECUTION,
        {200: executions.Summaries}, (404, 422)),
    Route("GET", f"{V1}/executions/{{id}}/members", executions.members, READ, EXECUTION,
        {200: executions.Members}, (404, 422)),
    Route("GET", f"{V1}/executions/{{id}}/details", executions.details, READ, EXECUTION,
        {200: executions.Details}, OF_ONE),
    Route("GET", f"{V1}/executions/{{id}}/snapshot", executions.snapshot, READ, EXECUTION,
        {200: executions.Snapshot}, OF_ONE),
    Route("GET", f"{V1}/executions/{{id}}/stream", streaming.stream, READ, EXECUTION,
        {200: streaming.KIND, 204: None}, (404, 429)),
    Route("POST", f"{V1}/executions/{{id}}/pause", acting.pause, "execution:pause", EXECUTION,
        {200: acting.Changed}, ACT),
    Route("POST", f"{V1}/executions/{{id}}/resume", acting.resume, "execution:resume", EXECUTION,
        {200: acting.Changed}, (409, *ACT)),
    Route("POST", f"{V1}/executions/{{id}}/cancel", acting.cancel, "execution:cancel", EXECUTION,
        {200: acting.Changed}, OF_ONE),
    Route("POST", f"{V1}/executions/{{id}}/terminate", acting.terminate, "execution:cancel",
        EXECUTION, {200: acting.Changed}, OF_ONE),
    Route(
        "POST", f"{V1}/executions/{{id}}/retry", acting.retry, "execution:start", EXECUTION,
        {201: acting.Started, 200: acting.Started}, (409, *ACT),
    ),
    Route("POST", f"{V1}/executions/{{id}}/signals", acting.signal, "execution:signal", EXECUTION,
        {200: acting.Sent}, (409, 429, *ACT)),
    Route("POST", f"{V1}/executions/pause", bulk.pause, "execution:pause", BODY, {200: bulk.Bulk},
        WITH_BODY),
    Route("POST", f"{V1}/executions/resume", bulk.resume, "execution:resume", BODY,
        {200: bulk.Bulk}, WITH_BODY),
    Route("POST", f"{V1}/executions/cancel", bulk.cancel, "execution:cancel", BODY,
        {200: bulk.Bulk}, WITH_BODY),
    Route("POST", f"{V1}/executions/terminate", bulk.terminate, "execution:cancel", BODY,
        {200: bulk.Bulk}, WITH_BODY),
    Route("POST", f"{V1}/executions/retry", bulk.retry, "execution:start", BODY, {200: bulk.Bulk},
        WITH_BODY),
    Route("GET", f"{V1}/approvals", approvals.find, READ, LIST, {200: approvals.Approvals},
        (404, 422)),
    Route("GET", f"{V1}/approvals/{{id}}", approvals.get, READ, APPROVAL, {200: approvals.Approval},
        OF_ONE),
    Route("POST", f"{V1}/approvals/{{id}}/approve", approvals.approve, "approval:decide", APPROVAL,
        {200: approvals.Approval}, (409, *ACT)),
    Route("POST", f"{V1}/approvals/{{id}}/reject", approvals.reject, "approval:decide", APPROVAL,
        {200: approvals.Approval}, (409, *ACT)),
    Route(
        "POST", f"{V1}/approvals/{{id}}/escalate", approvals.escalate, "approval:decide", APPROVAL,
        {200: approvals.Approval}, (409, *ACT),
    ),
    Route("POST", f"{V1}/events", events.publish, "execution:signal", EVERYTHING,
        {200: events.Published}, WITH_BODY, body=events.BODY),
    Route("GET", f"{V1}/queues", queues.find, READ, LIST, {200: queues.Queues}, (422,)),
    Route("POST", f"{V1}/queues/{{name:path}}/pause", queues.pause, "queue:write", QUEUE,
        {200: queues.QueueChanged}, ACT),
    Route("POST", f"{V1}/queues/{{name:path}}/resume", queues.resume, "queue:write", QUEUE,
        {200: queues.QueueChanged}, (404, 422)),
    Route("GET", f"{V1}/schedules", schedules.find, READ, LIST, {200: schedules.Schedules}, (422,)),
    Route("POST", f"{V1}/schedules", schedules.create, PLAN, BODY,
        {201: schedules.Schedule, 200: schedules.Schedule}, (409, *ACT)),
    Route("GET", f"{V1}/schedules/{{name:path}}/times", schedules.times, READ, SCHEDULE,
        {200: schedules.Times}, (404, 422)),
    Route("GET", f"{V1}/schedules/{{name:path}}", schedules.get, READ, SCHEDULE,
        {200: schedules.Schedule}, OF_ONE),
    Route("PATCH", f"{V1}/schedules/{{name:path}}", schedules.change, PLAN, SCHEDULE,
        {200: schedules.Schedule}, (409, *ACT)),
    Route("DELETE", f"{V1}/schedules/{{name:path}}", schedules.delete, PLAN, SCHEDULE, {204: None},
        (404, 409)),
    Route("POST", f"{V1}/schedules/{{name:path}}/pause", schedules.pause, PLAN, SCHEDULE,
        {200: schedules.ScheduleChanged}, ACT),
    Route("POST", f"{V1}/schedules/{{name:path}}/resume", schedules.resume, PLAN, SCHEDULE,
        {200: schedules.ScheduleChanged}, OF_ONE),
    Route(
        "POST", f"{V1}/schedules/{{name:path}}/run", schedules.run, PLAN, SCHEDULE,
        {201: acting.Started, 200: acting.Started}, (404, 422),
    ),
    Route("GET", f"{V1}/audit", audit.find, "audit:read", EVERYTHING, {200: audit.Audit}, (422,)),
    Route("GET", f"{V1}/audit/verify", audit.verify, "audit:read", EVERYTHING, {200: audit.Check},
        (422,)),
    Route("GET", f"{V1}/overview", queues.overview, READ, EVERYTHING, {200: queues.Overview}),
    Route("GET", f"{V1}/workers", queues.workers, READ, EVERYTHING, {200: queues.Workers}, (422,)),
)  # fmt: skip
