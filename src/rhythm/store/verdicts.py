"""What becomes of a turn, an attempt, a lost claim, a cancel, a timeout or a signal. Pure.

Both stores ask here: they read rows, ask, and write the answer. No rule about the life of an
execution is written down twice, and none in a store. Verdicts are tuples, which are cheap: every
turn and every end of a task makes some.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, assert_never

from rhythm.store.interfaces.executions import Retry
from rhythm.store.interfaces.turns import Committed, TaskEnd, TurnCommit
from rhythm.store.lifecycle import (
    CANCELLED,
    COMPLETED,
    FAILED,
    PENDING,
    WORKFLOW,
    Delivery,
    StatusNumber,
    has_ended,
)


def result_and_error(status: StatusNumber, value: str) -> tuple[str | None, str | None]:
    """Returns the columns `result` and `error` for the value of an end: only a completed execution
    has a result."""
    return (value, None) if status == COMPLETED else (None, value)


class Ending(NamedTuple):
    """How an execution ends: with a result, or with an error. JSON."""

    status: StatusNumber
    value: str

    @property
    def result(self) -> str | None:
        return result_and_error(self.status, self.value)[0]

    @property
    def error(self) -> str | None:
        return result_and_error(self.status, self.value)[1]


class HistoryRow(NamedTuple):
    """A row of the history, without its time."""

    id: str
    seq: int  # of a task: the attempt
    fence: int
    worker: str | None
    from_status: StatusNumber
    to_status: StatusNumber
    cause: str
    statement: int = 0
    error: str | None = None


def _error(code: str, message: str, data: Any = None) -> str:
    return json.dumps({"code": code, "message": message, "data": data})


BY_REQUEST = Ending(CANCELLED, _error("Cancelled", "it was cancelled"))
BY_FORCE = Ending(CANCELLED, _error("Terminated", "it was terminated"))
BY_TIMEOUT = Ending(FAILED, _error("Timeout", "the task was not done in time"))


# turns


def end_of_turn(turn: TurnCommit, cancelled: bool) -> Ending | None:
    """Returns how the workflow ends with this turn; None: it goes on.

    A cancel that was acknowledged before the result wins over it.
    """
    if turn.end != "finish":
        return None
    if cancelled and turn.status != CANCELLED:
        return BY_REQUEST
    return Ending(turn.status, turn.value)


def turn_row(turn: TurnCommit, before: StatusNumber, ended: Ending | None) -> HistoryRow:
    """Returns the history row of a turn. `before`: the status that it found."""
    status, error = (ended.status, ended.error) if ended else (turn.status, None)
    return HistoryRow(
        turn.id,
        turn.seq + 1,
        turn.fence,
        turn.worker,
        before,
        status,
        turn.cause,
        turn.statement,
        error,
    )


def answer(turn: TurnCommit, left: bool, wakes: int, promoted: Mapping[int, int]) -> Committed:
    """Returns the answer to the owner of a turn that was accepted.

    `left`: the owner no longer has the ready row. `wakes`: those of the row, if the owner still has
    it. A turn that should park, and whose owner still has the row, was woken since the owner
    looked.
    """
    match turn.end:
        case "finish":
            return Committed(turn.id, "finished")
        case "own":
            return Committed(turn.id, "own", wakes, promoted)
        case "park" if not left:
            return Committed(turn.id, "woken", wakes, promoted)
        case "park" | "yield":
            return Committed(turn.id, "parked", 0, promoted)
        case _:
            assert_never(turn.end)


def refused(id: str, refusal: str = "") -> Committed:
    """Returns the answer to the owner of a turn that was refused: nothing of it was done.

    Its claim is lost or, with a `refusal`, it would start more executions than allowed.
    """
    return Committed(id, "full", refusal=refusal) if refusal else Committed(id, "lost")


def answer_to_park(id: str, left: bool, wakes: int | None) -> Committed:
    """Returns the answer to an owner that had nothing to do and wanted to park.

    `left`: its ready row is deleted, so it is parked. Otherwise `wakes` is what the row says, or
    None if another owner has the row.
    """
    if left:
        return Committed(id, "parked")
    return Committed(id, "lost") if wakes is None else Committed(id, "woken", wakes)


# tasks


class Again(NamedTuple):
    """A task is tried again."""

    delay_s: float
    attempt: int  # how many attempts count so far
    row: HistoryRow | None  # the history row of this attempt; None: it does not count


def end_of_attempt(end: TaskEnd, attempt: int, cancelled: bool) -> Again | Ending:
    """Returns whether the task is tried again, and if not, how it ends.

    `attempt`: the number of this one. A task that was asked to end is not tried again, and is
    cancelled unless it delivers a result all the same. An attempt that does not count is given
    back, and leaves no history row.
    """
    if end.retry_s is not None and not cancelled:
        failed = attempt_row(end.id, attempt, end.fence, end.worker, end.value)
        return Again(end.retry_s, attempt - (not end.counts), failed if end.counts else None)
    if cancelled and end.status != COMPLETED:
        return BY_REQUEST
    return Ending(end.status, end.value)


def attempt_row(id: str, attempt: int, fence: int, worker: str, error: str) -> HistoryRow:
    """Returns the history row of a failed attempt."""
    return HistoryRow(id, attempt, fence, worker, PENDING, PENDING, "attempt failed", error=error)


# lost claims


def crashed_attempt_row(id: str, attempt: int, fence: int, worker: str | None) -> HistoryRow:
    """Returns the history row of an attempt whose worker died, and after which another follows."""
    return HistoryRow(id, attempt, fence, worker, PENDING, PENDING, "attempt crashed")


def is_given_up(crashes: int, crash_limit: int) -> bool:
    """Returns whether an execution has crashed too often.

    To try it again would only kill more workers.
    """
    return crashes >= crash_limit


def rescued_task(crashes: int, crash_limit: int) -> Ending | None:
    """Returns how a task ends whose worker died; None: it is free again, however many attempts it
    has left.

    `crashes`: how many workers have died while they had it, including this one.
    """
    return _crashed("its worker died", crashes) if is_given_up(crashes, crash_limit) else None


def rescued_workflow(crashes: int, crash_limit: int) -> Ending | None:
    """Returns how a workflow ends whose worker died; None: it is free again.

    `crashes`: how many workers have died in the same turn, including this one.
    """
    died = "its worker died in the same turn"
    return _crashed(died, crashes) if is_given_up(crashes, crash_limit) else None


def _crashed(what: str, times: int) -> Ending:
    message = f"{what} {times} times; it is not tried again"
    return Ending(FAILED, _error("Crashed", message, {"crashes": times}))


def crash_loop_row(
    id: str,
    seq: int,
    fence: int,
    worker: str | None,
    before: StatusNumber,
    ended: Ending,
) -> HistoryRow:
    """Returns the history row of the turn after `seq`, which ends a workflow that has killed its
    workers."""
    return HistoryRow(id, seq + 1, fence, worker, before, ended.status, "crash loop")


# from outside


def end_of_cancelled(type: int) -> Ending | None:
    """Returns how an execution ends that is asked to end while nobody runs it.

    None: its next turn ends it, so it is woken.
    """
    return None if type == WORKFLOW else BY_REQUEST


def end_of_timed_out(type: int) -> Ending | None:
    """Returns how an execution ends whose time is over while nobody runs it.

    None: its next turn ends it, so it is woken.
    """
    return None if type == WORKFLOW else BY_TIMEOUT


def terminated_row(id: str, seq: int, fence: int, before: StatusNumber) -> HistoryRow:
    """Returns the history row of the turn after `seq`, which ends a workflow by force."""
    status, error = BY_FORCE.status, BY_FORCE.error
    return HistoryRow(id, seq + 1, fence, "", before, status, "terminated", error=error)


def received(status: StatusNumber | None, known: bool, waiting: int, limit: int) -> Delivery:
    """Returns what becomes of a signal to an execution with this status; None: there is no such
    execution.

    `known`: the signal was received before, which counts whatever happened since. `waiting`: how
    many signals have not been consumed.
    """
    if known:
        return "duplicate"
    if status is None:
        return "missing"
    if has_ended(status):
        return "late"
    return "full" if waiting >= limit else "sent"


# retries


def unfinished(retries: Iterable[Retry]) -> str | None:
    """Returns the id of a retry that has not ended; None: there is none.

    While there is one, no other retry is made.
    """
    return next((retry.id for retry in retries if not has_ended(retry.status)), None)


def begins(status: StatusNumber, held: bool) -> bool:
    """Returns whether an execution that a retry stores gets a ready row: it has not ended, and it
    is not held back."""
    return not has_ended(status) and not held


def has_turn(type: int, status: StatusNumber) -> bool:
    """Returns whether an execution that a retry stores has taken a turn, so that it gets a history
    row."""
    return type == WORKFLOW and status != PENDING
