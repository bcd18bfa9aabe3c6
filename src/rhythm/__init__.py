"""Rhythm: durable workflows without replay.

Public names are imported when they are first used, so that the command line starts as fast as
Python itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rhythm.app import (
        ExecutionView,
        Handle,
        Page,
        QueueView,
        Rhythm,
        Start,
        TraceStep,
        WorkerView,
        WorkflowView,
    )
    from rhythm.app.aio import AsyncHandle, AsyncRhythm
    from rhythm.app.approvals import ApprovalPage, ApprovalView, DecisionView
    from rhythm.app.audit import AuditCheck, AuditPage, AuditView
    from rhythm.app.bulk import BulkView
    from rhythm.app.default import (
        approval,
        approvals,
        approve,
        bulk,
        cancel,
        delete_schedule,
        escalate,
        get,
        get_schedule,
        init,
        list_executions,
        next_times,
        pause,
        pause_queue,
        pause_schedule,
        publish,
        queue_many,
        queue_task,
        queues,
        reject,
        result,
        resume,
        resume_options,
        resume_queue,
        resume_requests,
        resume_schedule,
        retry,
        run_schedule,
        schedule,
        schedules,
        signal,
        start,
        start_many,
        start_workflow,
        status,
        terminate,
        trace,
        why,
        workers,
        workflows,
    )
    from rhythm.app.explain import WhyView
    from rhythm.app.pauses import ResumeRequestView, StatusView
    from rhythm.app.pooled import PooledWorker, WorkerHealth
    from rhythm.app.schedules import FireView, ScheduleView
    from rhythm.app.tokens import NewToken, TokenView
    from rhythm.authoring.operations import (
        all,
        any,
        completed,
        event,
        gather,
        log,
        progress,
        race,
        run_task,
        run_workflow,
        set_attribute,
        sleep,
        sleep_until,
        timeout,
    )
    from rhythm.authoring.workflow import Workflow, workflow
    from rhythm.errors import (
        AllFailed,
        ApplicationClosed,
        ChildFailed,
        Conflict,
        Denied,
        DuplicateTask,
        DuplicateWorkflow,
        ExecutionFailed,
        FlowError,
        InvalidEvent,
        InvalidId,
        InvalidInputs,
        InvalidPayload,
        InvalidProgram,
        InvalidSchedule,
        InvalidSetting,
        NewerFormat,
        NotDelivered,
        NotInitialised,
        NotInWorkflow,
        NotRetryable,
        ResultTimeout,
        RetryLater,
        RetryTooLarge,
        RhythmError,
        ScheduleChanged,
        ScheduleOfWorkflow,
        ScheduleTaken,
        ServerError,
        StoreError,
        TaskCancelled,
        TaskFailed,
        Timeout,
        TokenRevoked,
        Unavailable,
        Undecidable,
        UnknownApproval,
        UnknownExecution,
        UnknownSchedule,
        UnknownToken,
        UnknownWorkflow,
        WorkflowError,
    )
    from rhythm.store.access import Actor
    from rhythm.worker.current import Current, current
    from rhythm.worker.handlers import Task, task

__version__ = "0.1.0.dev0"

_ERRORS = (
    "AllFailed ApplicationClosed ChildFailed Conflict Denied DuplicateTask DuplicateWorkflow "
    "ExecutionFailed FlowError InvalidEvent InvalidId InvalidInputs "
    "InvalidPayload InvalidProgram InvalidSchedule InvalidSetting NewerFormat NotDelivered "
    "NotInWorkflow NotInitialised NotRetryable ResultTimeout RetryLater RetryTooLarge RhythmError "
    "ScheduleChanged ScheduleOfWorkflow ScheduleTaken ServerError StoreError TaskCancelled "
    "TaskFailed Timeout TokenRevoked Unavailable Undecidable UnknownApproval UnknownExecution "
    "UnknownSchedule UnknownToken UnknownWorkflow WorkflowError"
)
_OF_THE_DEFAULT = (
    "start start_workflow start_many queue_task queue_many get list_executions result trace "
    "workflows "
    "signal publish cancel pause resume retry workers queues pause_queue resume_queue approvals "
    "approval approve reject escalate status resume_options resume_requests schedule schedules "
    "get_schedule next_times pause_schedule resume_schedule run_schedule delete_schedule "
    "terminate bulk why"
)
_OF_THE_APP = "ExecutionView Handle Page QueueView Rhythm Start TraceStep WorkerView WorkflowView"
_OPERATIONS = (
    "all any completed event gather log progress race run_task run_workflow set_attribute sleep "
    "sleep_until timeout"
)
_HOMES = {
    **dict.fromkeys(_ERRORS.split(), "rhythm.errors"),
    "Actor": "rhythm.store.access",
    **dict.fromkeys(("Current", "current"), "rhythm.worker.current"),
    **dict.fromkeys(("Task", "task"), "rhythm.worker.handlers"),
    **dict.fromkeys(("Workflow", "workflow"), "rhythm.authoring.workflow"),
    **dict.fromkeys(_OPERATIONS.split(), "rhythm.authoring.operations"),
    **dict.fromkeys(_OF_THE_APP.split(), "rhythm.app"),
    **dict.fromkeys(("AuditCheck", "AuditPage", "AuditView"), "rhythm.app.audit"),
    **dict.fromkeys(("NewToken", "TokenView"), "rhythm.app.tokens"),
    **dict.fromkeys(("ApprovalPage", "ApprovalView", "DecisionView"), "rhythm.app.approvals"),
    **dict.fromkeys(("ResumeRequestView", "StatusView"), "rhythm.app.pauses"),
    **dict.fromkeys(("PooledWorker", "WorkerHealth"), "rhythm.app.pooled"),
    "BulkView": "rhythm.app.bulk",
    "WhyView": "rhythm.app.explain",
    **dict.fromkeys(("FireView", "ScheduleView"), "rhythm.app.schedules"),
    **dict.fromkeys(("AsyncHandle", "AsyncRhythm"), "rhythm.app.aio"),
    **dict.fromkeys(("init", *_OF_THE_DEFAULT.split()), "rhythm.app.default"),
}

__all__ = [
    "Actor", "AllFailed", "ApplicationClosed", "ApprovalPage", "ApprovalView", "AsyncHandle",
    "AsyncRhythm",
    "AuditCheck", "AuditPage", "AuditView", "BulkView", "ChildFailed", "Conflict", "Current",
    "DecisionView", "Denied", "DuplicateTask", "DuplicateWorkflow", "ExecutionFailed",
    "ExecutionView", "FireView", "FlowError", "Handle", "InvalidEvent", "InvalidId",
    "InvalidInputs",
    "InvalidPayload", "InvalidProgram", "InvalidSchedule", "InvalidSetting", "NewToken",
    "NewerFormat", "NotDelivered", "NotInWorkflow", "NotInitialised", "NotRetryable", "Page",
    "PooledWorker", "QueueView", "ResultTimeout", "ResumeRequestView", "RetryLater",
    "RetryTooLarge", "Rhythm", "RhythmError", "ScheduleChanged", "ScheduleOfWorkflow",
    "ScheduleTaken", "ScheduleView", "ServerError", "Start", "StatusView", "StoreError", "Task",
    "TaskCancelled", "TaskFailed", "Timeout", "TokenRevoked", "TokenView", "TraceStep",
    "Unavailable", "Undecidable", "UnknownApproval", "UnknownExecution", "UnknownSchedule",
    "UnknownToken", "UnknownWorkflow", "WhyView", "WorkerHealth", "WorkerView", "Workflow",
    "WorkflowError",
    "WorkflowView", "all", "any", "approval", "approvals", "approve", "bulk", "cancel",
    "completed", "current", "delete_schedule", "escalate", "event", "gather", "get",
    "get_schedule", "init", "list_executions", "log", "next_times", "pause", "pause_queue",
    "pause_schedule", "progress", "publish", "queue_many", "queue_task", "queues", "race",
    "reject", "result", "resume", "resume_options", "resume_queue", "resume_requests",
    "resume_schedule", "retry", "run_schedule", "run_task", "run_workflow", "schedule",
    "schedules", "set_attribute", "signal", "sleep", "sleep_until", "start", "start_many",
    "start_workflow", "status", "task", "terminate", "timeout", "trace", "why", "workers",
    "workflow", "workflows",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rhythm' has no attribute {name!r}{_meant(name)}", name=name)
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def _meant(name: str) -> str:
    """Returns advice for a name that does not exist: "; did you mean …?", or an empty text.

    Names that begin with an underscore get no advice, so that tools which only probe for special
    names do not pay for the search.
    """
    if name.startswith("_"):
        return ""
    from rhythm.suggest import nearest

    near = nearest(name, __all__)
    return f"; did you mean {near!r}?" if near else ""
