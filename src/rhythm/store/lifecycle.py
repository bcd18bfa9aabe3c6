"""The life of an execution: its statuses, and what leads from one to another. Pure.

This table is the only place that knows. The diagram in the documents is drawn from it, and the
tests take each of its transitions on every database. What becomes of a turn, an attempt or a lost
claim is decided in `verdicts`; a store reads rows, asks, and writes.

Some states are not statuses and are stored beside it: whether somebody has paused an execution
(`paused_at`), whether it was asked to end (`cancel_requested_at`), and whether it is being run (its
ready row).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from rhythm.record import Record

PENDING: Final = 0
SUSPENDED: Final = 1
PAUSED: Final = 2
COMPLETED: Final = 5
FAILED: Final = 6
CANCELLED: Final = 7
BLOCKED: Final = 8
TERMINAL = 5  # this status and all above it are final
WORKFLOW, TASK = 0, 1  # types of executions, and kinds of ready rows
EVENT = 2  # the type of an outcome that is an event, or the end of the wait for one
APPROVAL = 3  # the type of an outcome that is an approval
FREE, CLAIMED, DELAYED = 0, 1, 2  # states of ready rows

StatusNumber = Literal[0, 1, 2, 5, 6, 7, 8]
Type = Literal["workflow", "task"]
TurnEnd = Literal["own", "park", "yield", "finish"]  # where a workflow goes after a turn
Outcome = Literal["own", "woken", "parked", "finished", "lost", "full"]  # what became of a turn
Delivery = Literal["sent", "duplicate", "missing", "late", "full"]  # what became of a signal
Publication = Literal["published", "duplicate"]  # what became of an event
# What became of the end of a task that was to be committed with what its handler wrote.
Completion = Literal["kept", "undone", "lost", "aborted"]
# What a start does if its key or id exists already.
OnConflict = Literal["return", "fail", "replace"]
By = Literal[
    "start",
    "turn",
    "finish",
    "attempt",
    "end",
    "cancel",
    "time out",
    "rescue",
    "terminate",
    "retry",
]


class Status(Record):
    """A status: its stored number and its name."""

    number: StatusNumber
    name: str
    says: str  # of an execution: "it …"
    # After such an end, children that were started and not awaited go on.
    orderly: bool = False

    @property
    def terminal(self) -> bool:
        return has_ended(self.number)


STATUSES = (
    Status(PENDING, "pending", "has not begun, or is a task that has not ended"),
    Status(SUSPENDED, "suspended", "waits for a task, a child, a time or a signal"),
    Status(PAUSED, "paused", "waits for people or for an event"),
    Status(COMPLETED, "completed", "has ended with a result", orderly=True),
    Status(FAILED, "failed", "has ended with an error"),
    Status(CANCELLED, "cancelled", "was asked to end, or ended by force, and has ended"),
    Status(BLOCKED, "blocked", "has ended before its goal, with a reason", orderly=True),
)
STATUS_NAMES: Mapping[int, str] = {status.number: status.name for status in STATUSES}
ORDERLY = tuple(status.number for status in STATUSES if status.orderly)
LIVE = tuple(status.number for status in STATUSES if status.number < TERMINAL)


def has_ended(status: StatusNumber) -> bool:
    """Returns whether this status is final."""
    return status >= TERMINAL


def is_orderly(status: StatusNumber) -> bool:
    """Returns whether the children that a workflow did not await go on when it ends like this."""
    return status in ORDERLY


class StatusTransition(Record):
    """One transition. Without `before` it creates the row."""

    of: Type
    before: StatusNumber | None
    after: StatusNumber
    by: By
    cause: str | None = None  # the cause in the history row; None: no history row is written

    def __str__(self) -> str:
        """Returns the transition in words, for people and for the names of tests."""
        before = "nothing" if self.before is None else STATUS_NAMES[self.before]
        return f"{self.of}: {before} to {STATUS_NAMES[self.after]} by {self.by}"


class Change(Record):
    """Transitions of one kind: from each of `before` to each of `after`.

    Without `before` it creates the row; without `after` the status stays as it is. `cause` is the
    cause in the history row; `OF_TURN` means that the planned turn supplies it.
    """

    of: Type
    before: tuple[StatusNumber, ...]
    after: tuple[StatusNumber, ...]
    by: By
    says: str  # of an execution: "it …"
    cause: str | None = None

    def transitions(self) -> Iterator[StatusTransition]:
        """Yields every transition of this kind."""
        for before in self.before or (None,):
            for after in self.after or (before,):
                assert after is not None, "a change leads somewhere"
                yield StatusTransition(self.of, before, after, self.by, self.cause)


OF_TURN = "…"  # stands for the cause that the planned turn supplies
CHANGES = (
    Change("workflow", (), (PENDING,), "start",
           "is started: from outside, by an event, or by the turn of its parent"),
    Change("workflow", LIVE, (SUSPENDED, PAUSED), "turn",
           "has taken a turn, and awaits something", OF_TURN),
    Change("workflow", LIVE, (COMPLETED, FAILED, CANCELLED, BLOCKED), "finish",
           ("has taken its last turn; one that was asked to end is cancelled, whatever the "
                   "turn says"),
           OF_TURN),
    Change("workflow", LIVE, (), "cancel",
           "is asked to end, and woken: its next turn ends it"),
    Change("workflow", LIVE, (), "time out",
           "has used up its time, and is woken: its next turn ends it"),
    Change("workflow", LIVE, (), "rescue",
           "has lost its worker, and can be claimed again"),
    Change("workflow", LIVE, (FAILED,), "rescue",
           "had as many workers die in the same turn as the limit says", "crash loop"),
    Change("workflow", LIVE, (CANCELLED,), "terminate",
           "is ended by force, with everything below it", "terminated"),
    Change("workflow", (), (PENDING,), "retry",
           "is a retry from the start, or a child of a retry that `concurrency` still holds back"),
    Change("workflow", (), (SUSPENDED, COMPLETED, FAILED, CANCELLED, BLOCKED), "retry",
           "is a retry that goes on where the old one was, or a child that is copied from it",
           "retry"),
    Change("task", (), (PENDING,), "start",
           "is queued by a turn, or started by itself"),
    Change("task", (), (COMPLETED, FAILED, CANCELLED), "turn",
           "was run by the owner of its workflow: the row is made when it has ended"),
    Change("task", (PENDING,), (), "attempt",
           "has failed, and is tried again later", "attempt failed"),
    Change("task", (PENDING,), (COMPLETED, FAILED, CANCELLED), "end",
           "has ended; if it was asked to end and has no result, it is cancelled"),
    Change("task", (PENDING,), (), "cancel",
           "is asked to end while a worker runs it; the worker then ends it"),
    Change("task", (PENDING,), (CANCELLED,), "cancel",
           "is asked to end while nobody runs it"),
    Change("task", (PENDING,), (), "time out",
           "has used up its time while a worker runs it; the worker then ends it"),
    Change("task", (PENDING,), (FAILED,), "time out",
           "has used up its time while nobody runs it"),
    Change("task", (PENDING,), (), "rescue",
           "has lost its worker, and can be claimed again", "attempt crashed"),
    Change("task", (PENDING,), (FAILED,), "rescue",
           "was running on as many workers that died as the limit says"),
    Change("task", (PENDING,), (CANCELLED,), "terminate",
           "is ended by force, or its workflow is"),
    Change("task", (), (PENDING, COMPLETED, FAILED, CANCELLED), "retry",
           "belongs to a retry: it is tried again, or had ended"),
)  # fmt: skip
TRANSITIONS = tuple(each for change in CHANGES for each in change.transitions())

# How a wait for an event ends, unless it is cancelled.
EVENT_CAME, EVENT_MISSED = COMPLETED, FAILED
