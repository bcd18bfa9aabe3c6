"""The exceptions of Rhythm, and who each of them is for.

    RhythmError
    ├── FlowError          a workflow's author: the file does not compile; carries its diagnostics
    ├── InvalidProgram     an operator: a stored program or snapshot that this version cannot run
    │   └── NewerFormat    the same, because a newer Rhythm wrote it: upgrade the worker
    ├── TaskFailed         raised by a task: give up now; `catch (e)` sees its code and message
    ├── RetryLater         raised by a task: try again after this long; does not count as a failure
    ├── TaskCancelled      in a task, from `heartbeat`: nobody waits for this attempt any more
    ├── InvalidPayload     a caller: a value that is not JSON, cannot be stored, or is too large
    │   └── InvalidInputs  a caller: inputs that do not fit the signature of the workflow
    ├── ExecutionFailed    a caller that waits for a result: carries the execution's status, error
    ├── UnknownExecution   a caller: there is no execution with this id
    ├── InvalidId          a caller: a text that cannot be the id of an execution (a `ValueError`)
    ├── UnknownWorkflow    a caller: no workflow with this name is registered
    ├── UnknownSchedule    a caller: there is no schedule with this name
    ├── InvalidSchedule    a caller: times, a time zone or a policy that a schedule cannot have
    ├── ScheduleOfWorkflow a caller: the schedule belongs to its workflow's file; change it there
    ├── ScheduleTaken      a caller: the name is used for a workflow that the caller has no role for
    ├── ScheduleChanged    a caller: the schedule was changed since the caller read it
    ├── UnknownToken       a caller: there is no token with this id
    ├── TokenRevoked       a caller: the token is no longer valid
    ├── Conflict           a caller: the id or key belongs to another execution; carries its id
    ├── InvalidEvent       a caller: not a valid CloudEvents event (a `ValueError`)
    ├── NotDelivered       a caller: the signal's target has ended, or its mailbox is full
    ├── NotRetryable       a caller: an execution that cannot be retried; the message says why
    │   └── RetryTooLarge  the same, because too much would have to be read for it
    ├── UnknownApproval    a caller: there is no approval with this id
    ├── Denied             an actor who may not do or decide this: `code` says why
    ├── Undecidable        an actor who decides what cannot be decided now: `code` says why
    ├── ResultTimeout      a caller that waits: no result came in time (a `TimeoutError`)
    ├── NotInitialised     a developer: call `rhythm.init(…)` first
    ├── ApplicationClosed  a developer: the application was closed; make another one
    ├── InvalidSetting     an operator: a setting that does not exist, or a value it cannot have
    ├── StoreError         an operator: the database cannot be used; the message says what to do
    │   └── Unavailable    the same, because it does not answer: it may come back
    ├── ServerError        an operator: a server (`--server`) that cannot be used; says what to do
    ├── WorkflowError      what a Python workflow can catch; has code, message and data
    │   ├── Timeout        a wait was not over in time (a `TimeoutError`)
    │   ├── ChildFailed    a workflow that it awaited has failed
    │   └── AllFailed      all of `rhythm.any` have failed
    ├── NotInWorkflow      a developer: this is only for the body of a workflow
    ├── DuplicateWorkflow  a developer: two Python workflows with the same name
    └── DuplicateTask      a developer: two handlers with the same name

Each exception has a `code` that never changes: it names the problem over HTTP and on the command
line. An error inside a workflow is a value of the interpreter (`{code, message, data}`), not an
exception from this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.durations import duration_s

if TYPE_CHECKING:
    from rhythm.lang.source import Diagnostic


class RhythmError(Exception):
    """The base class of every exception that Rhythm raises on purpose."""

    code = "error"


class FlowError(RhythmError):
    """A workflow file does not compile.

    `diagnostics` holds every problem in it; `str()` shows them all.
    """

    code = "invalid_workflow"

    def __init__(self, diagnostics: list[Diagnostic], rendered: str) -> None:
        super().__init__(rendered)
        self.diagnostics = diagnostics


class InvalidProgram(RhythmError):
    """A stored program or snapshot is damaged, or was written by a newer version of Rhythm."""

    code = "invalid_program"


class NewerFormat(InvalidProgram):
    """A newer Rhythm wrote the program or snapshot: a worker of that version can continue it."""

    code = "newer_format"


class InvalidPayload(RhythmError):
    """A value is not JSON, cannot be stored, or is too large."""

    code = "invalid_payload"


class InvalidInputs(InvalidPayload):
    """The inputs of a start do not fit the signature of the workflow."""

    code = "invalid_inputs"


class ExecutionFailed(RhythmError):
    """The execution ended without a result. `error` is its `{code, message, data}`."""

    code = "execution_failed"

    def __init__(self, id: str, status: str, error: dict[str, Any]) -> None:
        super().__init__(f"{id} {status}: {error['code']}: {error['message']}")
        self.id, self.status, self.error = id, status, error


class UnknownExecution(RhythmError):
    """There is no execution with this id."""

    code = "unknown_execution"


class InvalidId(RhythmError, ValueError):
    """An execution cannot have this id."""

    code = "invalid_id"


class UnknownWorkflow(RhythmError):
    """No workflow with this name is registered. `name` is the name that was asked for, if known."""

    code = "unknown_workflow"

    def __init__(self, message: str, name: Any = None) -> None:
        super().__init__(message)
        self.name = name


class UnknownToken(RhythmError):
    """There is no token with this id."""

    code = "unknown_token"


class TokenRevoked(RhythmError):
    """The token is no longer valid.

    It was revoked, or it stopped being valid between the check of the request and the act itself.
    """

    code = "token_revoked"


class UnknownSchedule(RhythmError):
    """There is no schedule with this name."""

    code = "unknown_schedule"


class InvalidSchedule(RhythmError, ValueError):
    """A schedule cannot have these times, this time zone or these options.

    The message says what to write.
    """

    code = "invalid_schedule"


class ScheduleOfWorkflow(RhythmError):
    """The schedule comes from its workflow's file (`@schedule`), and cannot be deleted alone."""

    code = "schedule_of_workflow"


class ScheduleTaken(RhythmError):
    """A schedule with this name exists, for a workflow that the caller has no permission for."""

    code = "schedule_taken"


class ScheduleChanged(RhythmError):
    """The schedule was changed between the caller's read and its write; nothing was done."""

    code = "schedule_changed"


class Conflict(RhythmError):
    """The id or idempotency key is already used. `id` is the execution that has it."""

    code = "conflict"

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id


class InvalidEvent(RhythmError, ValueError):
    """This is not an event of CloudEvents 1.0, or its data is not JSON."""

    code = "invalid_event"


class NotDelivered(RhythmError):
    """The execution will never see this signal. `code` is `execution_ended` or `mailbox_full`."""

    def __init__(self, message: str, code: str = "execution_ended") -> None:
        super().__init__(message)
        self.code = code


class NotRetryable(RhythmError):
    """The execution cannot be retried. The message says what to do.

    Only an execution that failed or was cancelled can be retried, only once, and only if the retry
    would not fail again at once.
    """

    code = "not_retryable"


class RetryTooLarge(NotRetryable):
    """To retry this execution, more would have to be read than the limits allow."""


class UnknownApproval(RhythmError):
    """There is no approval with this id."""

    code = "unknown_approval"


class Denied(RhythmError):
    """The actor may not do this. `code` says why.

    For a decision: `wrong_role`, `role_revoked`, `self_approval` or `too_many_contributors`. For
    any act: `permission_missing`, if the token does not allow it, or has lost the permission since
    its request was let in.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Undecidable(RhythmError):
    """Nothing was decided. `code` says why.

    For a decision: `already_decided`, `decision_repeated`, `approval_changed`, `approval_expired`,
    `approval_cancelled` or `no_escalation`. For a resume with data: `approval_open`.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ResultTimeout(RhythmError, TimeoutError):
    """The execution did not end within the caller's timeout. It goes on."""

    code = "result_timeout"


class NotInitialised(RhythmError):
    """There is no default application yet: call `rhythm.init(…)` first."""

    code = "not_initialised"


class ApplicationClosed(RhythmError):
    """The application was closed, and can be used no more."""

    code = "application_closed"


class InvalidSetting(RhythmError):
    """There is no such setting, or it cannot have this value."""

    code = "invalid_setting"


class StoreError(RhythmError):
    """The database cannot be used.

    It cannot be opened, does not answer, or is not what this version of Rhythm needs.
    """

    code = "database_refused"


class Unavailable(StoreError):
    """The database, or the server of `--server`, does not answer now; it may come back."""

    code = "database_unavailable"


class ServerError(RhythmError):
    """A server cannot be used over HTTP.

    It refuses the token, is no server of Rhythm or of another version, or its answer is broken.
    """

    code = "server_refused"


class DuplicateTask(RhythmError):
    """Two different functions are registered as tasks under the same name."""

    code = "duplicate_task"


class TaskFailed(RhythmError):
    """A task raises this to fail without a retry.

    The workflow's `catch (e)` sees `code`, `message` and `data`.
    """

    def __init__(self, message: str, *, code: str = "TaskFailed", data: Any = None) -> None:
        super().__init__(message)
        self.message, self.code, self.data = message, code, data


class WorkflowError(RhythmError):
    """A failure that a Python workflow can catch. It has `code`, `message` and `data`."""

    def __init__(self, message: str = "", *, data: Any = None) -> None:
        super().__init__(message)
        self.message, self.data, self.code = message, data, type(self).__name__


class Timeout(WorkflowError, TimeoutError):
    """A wait, or what a workflow awaited, was not over in time."""


class ChildFailed(WorkflowError):
    """A workflow that another one awaited has failed. `data` has its id and error."""


class AllFailed(WorkflowError):
    """Everything that `rhythm.any` waited for has failed. `data` has the errors."""


class NotInWorkflow(RhythmError):
    """Something that only the body of a workflow may call was called elsewhere."""

    code = "not_in_workflow"


class DuplicateWorkflow(RhythmError):
    """Two different functions are registered as workflows under the same name."""

    code = "duplicate_workflow"


class TaskCancelled(RhythmError):
    """Nobody waits for this attempt at the task any more: the task should stop."""

    code = "task_cancelled"


class RetryLater(RhythmError):
    """A task raises this to be tried again after `delay` (seconds, or a duration such as "5m")."""

    def __init__(self, delay: float | str, reason: str = "asked to be tried later") -> None:
        super().__init__(reason)
        self.delay_s = duration_s(delay)
