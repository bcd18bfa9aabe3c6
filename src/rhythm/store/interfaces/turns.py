"""What the owner of a workflow or task reads, and the group commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rhythm.record import Record
from rhythm.store.approvals import NewApproval
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.logs import Said
from rhythm.store.interfaces.messages import NewEvent, NewSignal, NewWait
from rhythm.store.lifecycle import (
    APPROVAL,
    COMPLETED,
    EVENT,
    SUSPENDED,
    Completion,
    Outcome,
    StatusNumber,
    TurnEnd,
)

EVERY_RESUME = 2**63 - 1  # larger than the number of any resume request


class Loaded(Record):
    """A claimed workflow, read after the claim."""

    id: str
    name: str
    version: str
    status: StatusNumber
    queue: str
    priority: int
    inputs: str
    parent_id: str | None
    root_id: str
    retry_of: str | None
    created_at: int
    cancel_requested: bool
    paused: bool
    timed_out: bool
    seq: int
    fence: int
    snapshot: bytes | None
    owned: str  # JSON: the tasks that it awaits and that have no row yet
    now: int
    # Whether there is a signal that it has not consumed. It is read with the rest, so after the
    # claim: a signal that comes later counts a wake, and then the workflow is loaded again.
    has_mail: bool
    # JSON: the resumes since its last turn, as [id, data that was given with it]
    resumes: str | None = None
    authority: str | None = None  # JSON: the roles of everybody who asked for it

    @property
    def ending(self) -> bool:
        """Whether it must clean up and end: it was cancelled, or its time is over."""
        return self.cancel_requested or self.timed_out


class LoadedTask(Record):
    """A claimed task, read after the claim."""

    id: str
    name: str
    queue: str
    inputs: str
    options: str
    max_attempts: int
    parent_id: str | None
    age_us: int
    cancel_requested: bool
    timed_out: bool
    ended: bool


class Needed(Record):
    """The children `numbers` that a workflow waits for.

    `whole`: it cannot go on until all of them, which are a range in ascending order, have ended or,
    with `fails`, until one has failed.
    """

    id: str
    numbers: Sequence[int]
    whole: bool = False
    fails: bool = False


class NthUnfinished(Record):
    """Which child of a workflow, from number `first` to number `last`, is the nth not to have
    ended."""

    id: str
    first: int
    last: int
    nth: int


class Unfinished(Record):
    """The nth child in a range that has not ended, None if there are fewer, and whether one has
    failed."""

    n: int | None
    failed: bool


class NextEnded(Record):
    """The children of a workflow in these ranges of numbers, of which the first to end are asked.

    `limit`: at most as many of them.
    """

    id: str
    ranges: Sequence[tuple[int, int]]
    limit: int


class ChildOutcome(Record):
    """How a child, a timer or a wait for an event has ended."""

    n: int
    status: StatusNumber
    value: str  # result or error, JSON; of an event `{id, data, at}`
    ended_at: int
    type: int | None  # of the execution, or EVENT; None for a timer
    name: str  # of the execution, or the event's type


SHORT_ERROR = 1024  # the longest error, in characters, that is read for display


BRIEF_OUTCOME = (
    f"id, n, status, CASE WHEN status <> {COMPLETED} AND length(value) <= {SHORT_ERROR} THEN "
    f"value END AS value, ended_at, type, name"
)


_UNREAD = {EVENT: '{"id":"","data":null,"at":0}', APPROVAL: "{}"}


UNREAD_ERROR = '{"code":"","message":"","data":null}'


def brief_outcome(read: ChildOutcome) -> ChildOutcome:
    """Returns an outcome that was read for display, with an empty value of the right kind where the
    value was not read."""
    unread = _UNREAD.get(read.type or 0, "null" if read.status == COMPLETED else UNREAD_ERROR)
    return read.replace(value=read.value or unread)


class NewTimer(Record):
    """A timer to set: after `delay_s`, or at the time `until`."""

    n: int
    delay_s: float | None
    until: int | None = None  # microseconds since 1970
    held: bool = False


class Done(Record):
    """A task that the owner of its workflow has run.

    Its row is stored only now that it has ended.
    """

    n: int
    name: str
    queue: str
    inputs: str
    status: StatusNumber
    value: str
    attempt: int
    took_us: int
    options: str = "{}"  # as the call gave them, for a retry of the workflow


class TurnCommit(Record):
    """A turn to commit, and where its workflow goes from there.

    `end`: "own" (its owner goes on), "park" (nothing to do until something wakes it), "yield" (give
    the claim back), "finish".

    `first`: the turn before it, which is light and was not committed by itself. It is committed
    right before this one, in the same transaction.
    """

    id: str
    seq: int
    fence: int
    wakes: int
    end: TurnEnd
    worker: str
    cause: str
    statement: int = 0
    snapshot: bytes | None = None  # None: unchanged
    owned: str | None = "[]"  # None: unchanged
    awaiting: str = "null"
    status: StatusNumber = SUSPENDED
    value: str = "null"  # result or error, when it finishes
    done: tuple[Done, ...] = ()
    starts: tuple[NewExecution, ...] = ()
    timers: tuple[NewTimer, ...] = ()
    waits: tuple[NewWait, ...] = ()
    approvals: tuple[NewApproval, ...] = ()
    resumed: int | None = None  # this turn has handled the resumes up to this number
    consumed: tuple[str, ...] = ()
    cancels: tuple[tuple[int, int], ...] = ()
    begins: tuple[tuple[int, int], ...] = ()  # executions that were held and may begin
    releases: tuple[tuple[int, int], ...] = ()  # the same for whatever has these numbers
    signals: tuple[NewSignal, ...] = ()
    events: tuple[NewEvent, ...] = ()
    attributes: str | None = None
    settled: tuple[int, ...] = ()  # timers and waits for events that are no longer needed
    promoted: tuple[int, ...] = ()  # numbers of those `starts` that this worker claims at once
    claim_ttl_s: float = 0.0
    cleanup: bool = False  # it is over a limit, and runs its `finally` blocks
    first: TurnCommit | None = None
    waited_us: int = 0  # how long the commit has waited since the turn was taken
    # No part of the transaction: its owner writes it once the turn is committed (`LogStore`).
    said: tuple[Said, ...] = ()

    def resumed_upto(self, wakes: int) -> int | None:
        """Returns up to which number the turn marks resumes as done: `resumed`, or all of them.

        It is all of them if this is the last turn and the workflow was woken since its owner
        looked: no later turn would mark the new ones.
        """
        return EVERY_RESUME if self.end == "finish" and wakes != self.wakes else self.resumed


class Committed(Record):
    """What became of a turn.

    "own": its owner goes on. "woken": it would have parked, but there is more to see. "parked".
    "finished". "lost": the claim is lost. "full": nothing of it was done, because it would start
    more executions than allowed.
    """

    id: str
    outcome: Outcome
    wakes: int = 0
    promoted: Mapping[int, int] = {}  # number of the child -> fence of its claim
    refusal: str = ""  # why it is full
    # Of a light turn whose claim is lost: it was committed all the same, as nobody had taken a turn
    # in its place.
    written: bool = False


class TaskEnd(Record):
    """The end of an attempt: finished with `status`, or to be tried again after `retry_s`."""

    id: str
    fence: int
    status: StatusNumber
    value: str
    retry_s: float | None = None
    # False: the attempt does not count (the task asked to be tried later, or is unknown here).
    counts: bool = True
    worker: str = ""
    took_us: int = 0


class TurnStore(ABC):
    """What the owner of a workflow or task reads, and the group commit.

    `commits_apart`: a commit can be on its way while its caller goes on (`begin_commit`).
    """

    commits_apart = False

    @abstractmethod
    def load(self, ids: Sequence[str]) -> list[Loaded]:
        """Returns workflows that were claimed before, and about which there may be something new.

        Those that no longer exist are left out.
        """

    @abstractmethod
    def cancelled(self, ids: Sequence[str]) -> set[str]:
        """Returns the ids of those that were asked to end.

        Nothing else is read of them, however large their inputs are.
        """

    @abstractmethod
    def outcomes(
        self, needed: Sequence[Needed], brief: bool = False
    ) -> dict[str, list[ChildOutcome]]:
        """Returns how the needed children have ended, by workflow.

        What is needed as a whole and cannot go on yet gets nothing. `brief`, for display: without
        results, which may be large, and a long error becomes one without a code.
        """

    @abstractmethod
    def next_ended(self, asked: Sequence[NextEnded]) -> dict[str, list[ChildOutcome]]:
        """Returns how the first children to end have ended, by workflow, in the order of ends.

        Each workflow asks once.
        """

    @abstractmethod
    def nth_unfinished(self, asked: Sequence[NthUnfinished]) -> list[Unfinished]:
        """Returns how far each range has come. Only executions count."""

    @abstractmethod
    def commit(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]
    ) -> tuple[list[Committed], set[str]]:
        """Commits all turns and ends of tasks in one transaction: the group commit. Returns what
        became of each turn, and the ids of the tasks whose end was accepted."""

    def begin_commit(
        self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]
    ) -> Callable[[], list[Committed]] | None:
        """Sends a group commit. Returns what waits for its answer, and must be called once.

        None: nothing was sent, since it takes more than one answer. `commit` commits it.
        """
        return None

    @abstractmethod
    def complete_within(self, work: Callable[[Any], TaskEnd | None]) -> Completion:
        """Commits the end of a task together with what its handler wrote. Returns what became of
        it.

        `work` gets a connection, in a transaction that nobody else uses. It returns the end, or
        None to keep nothing. "kept": all was committed. In all other cases nothing was: "undone"
        (by `work`), "lost" (the claim), or "aborted" (a statement of the handler failed, and the
        handler went on).
        """

    @abstractmethod
    def witness(self, id: str, seq: int) -> int | None:
        """Returns the fence with which turn `seq` of a workflow was committed. None: it was not.

        For an owner that got no answer to its commit.
        """

    @abstractmethod
    def statements(self, id: str) -> list[int]:
        """Returns the statements at which a workflow has waited, each once, however many turns
        there were: the last one comes last."""
