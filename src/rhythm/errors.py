"""The exceptions of Rhythm, for its three readers.

    RhythmError
    ├── FlowError          a workflow's author: the file does not compile; carries its diagnostics
    ├── InvalidProgram     an operator: a stored program or snapshot that this version cannot run
    │   └── NewerFormat    the same, because a newer Rhythm wrote it: upgrade the worker
    ├── TaskFailed         raised by a task: give up now; `catch (e)` sees its code and message
    ├── RetryLater         raised by a task: try again after this long; it counts as no failure
    ├── TaskCancelled      in a task, from `heartbeat`: nobody waits for this attempt any more
    ├── InvalidPayload     a caller: a value that is no JSON, cannot be stored, or is too large
    ├── ExecutionFailed    a caller who waits for a result: carries the execution's status and error
    ├── UnknownExecution   a caller: there is no execution with this id
    ├── InvalidId          a caller: a text that cannot be the id of an execution (a `ValueError`)
    ├── UnknownWorkflow    a caller: no workflow of this name is registered
    ├── UnknownSchedule    a caller: there is no schedule of this name
    ├── InvalidSchedule    a caller: times, a zone or a policy that no schedule can have
    ├── ScheduleOfWorkflow a caller: a schedule that comes with its workflow, and stays with it
    ├── UnknownToken       a caller: there is no token with this id
    ├── TokenRevoked       a caller: a token that is not valid any more, and does nothing
    ├── Conflict           a caller: the id or key belongs to another execution; carries its id
    ├── InvalidEvent       a caller: an event that is none by CloudEvents (a `ValueError`)
    ├── NotDelivered       a caller: a signal to one that has ended, or whose mailbox is full
    ├── NotRetryable       a caller: an execution that cannot be retried; the message says why
    │   └── RetryTooLarge  the same, because too much would have to be read for it
    ├── UnknownApproval    a caller: there is no approval with this id
    ├── Denied             someone who wants to act or decide and may not: `code` says why
    ├── Undecidable        someone who decides what cannot be decided: `code` says why
    ├── ResultTimeout      a caller who waits: no result came in time (a `TimeoutError`)
    ├── NotInitialised     a developer: `rhythm.init(…)` comes first
    ├── InvalidSetting     an operator: a setting that does not exist, or a value it cannot have
    ├── StoreError         an operator: the database cannot be used; the message says what to do
    │   └── Unavailable    the same, because it does not answer: it may come back
    └── DuplicateTask      a developer: two handlers of one name

Each has a `code` that stays as it is: over HTTP and on the command line it names what went wrong.
What goes wrong inside a workflow is a value of the interpreter (`{code, message, data}`), not an
exception here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.durations import duration_s

if TYPE_CHECKING:
    from rhythm.lang.source import Diagnostic


class RhythmError(Exception):
    """The root of everything Rhythm raises on purpose."""

    code = "error"


class FlowError(RhythmError):
    """A workflow file does not compile. `diagnostics` holds every problem in it; `str()` shows them
    all."""

    code = "invalid_workflow"

    def __init__(self, diagnostics: list[Diagnostic], rendered: str) -> None:
        super().__init__(rendered)
        self.diagnostics = diagnostics


class InvalidProgram(RhythmError):
    """A stored program or snapshot is damaged, or was written by a newer version of Rhythm."""

    code = "invalid_program"


class NewerFormat(InvalidProgram):
    """A stored program or snapshot was written by a newer Rhythm: a worker of that version can go
    on with it."""

    code = "newer_format"


class InvalidPayload(RhythmError):
    """A value cannot be stored."""

    code = "invalid_payload"


class ExecutionFailed(RhythmError):
    """The execution ended without a result. `error` is `{code, message, data}`, as the workflow
    left it."""

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
    """No workflow of this name is registered."""

    code = "unknown_workflow"

    def __init__(self, message: str, name: Any = None) -> None:
        super().__init__(message)
        self.name = name


class UnknownToken(RhythmError):
    """There is no token with this id."""

    code = "unknown_token"


class TokenRevoked(RhythmError):
    """The token is revoked, and stays so; or it was valid when its owner was let in, and was not
    when it came to the act."""

    code = "token_revoked"


class UnknownSchedule(RhythmError):
    """There is no schedule of this name."""

    code = "unknown_schedule"


class InvalidSchedule(RhythmError, ValueError):
    """A schedule cannot be like this. The message says what to write instead."""

    code = "invalid_schedule"


class ScheduleOfWorkflow(RhythmError):
    """The schedule comes with its workflow, and goes with it."""

    code = "schedule_of_workflow"


class ScheduleTaken(RhythmError):
    """A schedule of this name starts a workflow that whoever asks may not see."""

    code = "schedule_taken"


class ScheduleChanged(RhythmError):
    """The schedule is not as it was when its change was asked for."""

    code = "schedule_changed"


class Conflict(RhythmError):
    """The id or idempotency key is taken. `id` is the execution that has it."""

    code = "conflict"

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id


class InvalidEvent(RhythmError, ValueError):
    """What was sent is no event of CloudEvents 1.0, or one whose data is no JSON."""

    code = "invalid_event"


class NotDelivered(RhythmError):
    """A signal that the execution will never see. `code` is `execution_ended` or `mailbox_full`."""

    def __init__(self, message: str, code: str = "execution_ended") -> None:
        super().__init__(message)
        self.code = code


class NotRetryable(RhythmError):
    """The execution has not ended without a result, was retried already, or would only fail again.
    The message says what to do."""

    code = "not_retryable"


class RetryTooLarge(NotRetryable):
    """What would have to be read to go on from there is more than may be."""


class UnknownApproval(RhythmError):
    """There is no approval with this id."""

    code = "unknown_approval"


class Denied(RhythmError):
    """Whoever wants to decide may not. `code`: `wrong_role`, `role_revoked`, `self_approval` or
    `too_many_contributors`; of any act `permission_missing`, if a token does not allow it, or has
    lost what it takes since its owner was let in."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Undecidable(RhythmError):
    """Nothing was decided. `code`: `already_decided`, `decision_repeated`, `approval_changed`,
    `approval_expired`, `approval_cancelled` or `no_escalation`; of a resume with data
    `approval_open`."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ResultTimeout(RhythmError, TimeoutError):
    """The execution did not end in the time one was ready to wait; it goes on."""

    code = "result_timeout"


class NotInitialised(RhythmError):
    """There is no default application yet: call `rhythm.init(…)` first."""

    code = "not_initialised"


class InvalidSetting(RhythmError):
    """A setting that does not exist, or a value that it cannot have."""

    code = "invalid_setting"


class StoreError(RhythmError):
    """The database cannot be opened, does not answer, or is not what this version of Rhythm
    needs."""

    code = "database_refused"


class Unavailable(StoreError):
    """The database does not answer now; it may come back."""

    code = "database_unavailable"


class DuplicateTask(RhythmError):
    """Two different functions are registered as tasks under the same name."""

    code = "duplicate_task"


class TaskFailed(RhythmError):
    """The task gives up: no retry. The workflow's `catch (e)` sees `code`, `message` and `data`."""

    def __init__(self, message: str, *, code: str = "TaskFailed", data: Any = None) -> None:
        super().__init__(message)
        self.message, self.code, self.data = message, code, data


class TaskCancelled(RhythmError):
    """Nobody waits for this attempt at the task any more."""

    code = "task_cancelled"


class RetryLater(RhythmError):
    """The task asks to be tried again after `delay` (seconds or a duration such as "5m")."""

    def __init__(self, delay: float | str, reason: str = "asked to be tried later") -> None:
        super().__init__(reason)
        self.delay_s = duration_s(delay)
