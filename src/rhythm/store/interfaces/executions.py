"""What callers ask of executions: start, cancel, terminate, retry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from rhythm.errors import Conflict, RetryTooLarge
from rhythm.ids import is_personal
from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.lifecycle import OnConflict, StatusNumber
from rhythm.store.provenance import Provenance, dump_authority, load_authority

PASS_SIZE = 500  # executions that a pass of a terminate ends in one transaction
MAX_PASSES = 10  # of one call


class NewExecution(Record):
    """A workflow or task to start."""

    id: str
    type: int
    name: str
    queue: str
    inputs: str = "null"
    version: str = ""  # of the workflow
    priority: int = 0
    parent_id: str | None = None
    child_no: int = 0
    root_id: str = ""
    max_attempts: int = 1
    attempt: int = 0  # attempts already used
    options: str = "{}"  # retry policy and timeout of a task, as its call gave them
    timeout_s: float | None = None  # for the whole execution
    delay_s: float = 0.0
    key: str | None = None
    attributes: str = "{}"
    snapshot: bytes | None = None  # where a branch begins
    held: bool = False  # make the rows, but let nobody run it before a release
    retry_of: str | None = None
    # a child: how long after its parent's turn, so that events of the same turn keep their order
    # with it; less than 0: a task that had begun before
    later_us: int = 0
    failed: str | None = None  # how the attempt ended after which the row is made
    started_by: str | None = None  # of one that nobody else started
    authority: str | None = None  # JSON: the roles of those who asked for it (see `provenance`)
    contributors: tuple[str, ...] = ()  # of a root: whose data it begins with

    @property
    def crashes(self) -> int:
        """Of its attempts, those that ended with their worker."""
        return self.attempt if self.failed is None else 0


class Started(Record):
    """What became of a start: a row that was there already is returned, not changed."""

    id: str
    created: bool
    name: str = ""  # of the workflow or task whose execution was there already


def refuse_conflicts(
    executions: Sequence[NewExecution], started: Sequence[Started], on_conflict: OnConflict
) -> None:
    """`Conflict` for the first start that found something there which the caller did not mean to
    get."""
    for new, found in zip(executions, started, strict=True):
        if found.created:
            continue
        if found.name != new.name:
            raise Conflict(
                (
                    f"{found.id!r} is the id of an execution of something else than "
                    f"`{new.name}`: choose another id"
                ),
                found.id,
            )
        if on_conflict == "fail":
            key = "" if is_personal(new.key or "") else f" {new.key!r}"
            what = (
                f"the id {new.id!r}"
                if found.id == new.id
                else f"the idempotency key{key} of `{new.name}`"
            )
            raise Conflict(
                f"{what} belongs to an execution that was started before: {found.id}", found.id
            )
        if on_conflict == "replace":
            raise Conflict(
                (
                    f"an execution with the id {found.id!r} exists, and an id is used once "
                    f"only: leave it to Rhythm"
                ),
                found.id,
            )


class Execution(Record):
    """An execution as people see it."""

    id: str
    type: int
    name: str
    version: str
    queue: str
    status: str  # `running`: it is claimed, and does not merely wait while somebody looks at it
    inputs: str
    result: str | None
    error: str | None
    parent_id: str | None
    root_id: str
    retry_of: str | None
    attempt: int
    max_attempts: int
    created_at: int
    started_at: int | None
    finished_at: int | None
    cancel_requested_at: int | None
    paused_at: int | None
    statement: int
    awaiting: str
    attributes: str
    paused_reason: str | None = None
    paused_by: str | None = None
    paused_until: int | None = None
    started_by: str | None = None
    turned_at: int | None = None  # of a workflow: when its last turn was committed


class StoredExecution(Record):
    """A row of `executions` with its context: what a retry is made of. Without `created_at`: it
    begins now.

    Inputs, results and the like are not in it, as they may be large: the new row gets those of
    `source`, inside the database.
    """

    id: str
    type: int
    name: str
    version: str
    queue: str
    priority: int
    status: StatusNumber
    parent_id: str | None
    child_no: int
    root_id: str
    retry_of: str | None
    attempt: int
    max_attempts: int
    held: bool
    error: str | None  # of the first whole; of its children if it is short, of others not at all
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    timeout_us: int | None
    cancel_requested_at: int | None
    fence: int | None
    worker: str | None
    started_by: str | None
    authority: str | None
    source: str  # the id of the row that it was read from
    seq: int | None
    statement: int | None
    snapshot: bytes | None  # with `owned`, of the first and of those that did not end well
    owned: str | None
    awaiting: str | None = None  # of a new one
    ends_alike: bool = False  # it has the result and the error of `source`, not this error


class StoredTimer(Record):
    """A row of `timer_tasks`."""

    execution_id: str
    n: int
    delay_us: int | None
    until_at: int | None
    fire_at: int | None  # None: it is held back
    fired_at: int | None
    cancelled_at: int | None
    anew: bool = False  # its delay begins when it is stored


class StoredSignal(Record):
    """A row of `workflow_signals`; what it brings is that of `source`."""

    id: str
    execution_id: str
    n: int
    name: str
    received_at: int
    consumed_seq: int | None
    source: str  # the id of the row that it was read from


class Retry(Record):
    """An execution that is the retry of another."""

    id: str
    status: StatusNumber


class Family(Record):
    """An execution, first, everything below it, and its retries, oldest first."""

    executions: tuple[StoredExecution, ...]
    timers: tuple[StoredTimer, ...] = ()
    signals: tuple[StoredSignal, ...] = ()
    retries: tuple[Retry, ...] = ()


class Reach(Record):
    """How much of a family may be read."""

    rows: int
    bytes: int

    @staticmethod
    def by(limits: Limits) -> Reach:
        return Reach(limits.retry_rows, limits.retry_bytes)


def family_range(id: str, whole: bool) -> dict[str, str]:
    """Which ids are those of a family; without `whole`, only the first."""
    return (
        {"id": id, "first": f"{id}.", "last": f"{id}/"}
        if whole
        else {"id": id, "first": "", "last": ""}
    )


def refuse_large(id: str, reach: Reach, rows: int, size: int) -> None:
    """Before any of a family is read: `rows` are counted up to one more than may be, `size` is in
    bytes."""
    if rows > reach.rows or size > reach.bytes:
        raise RetryTooLarge(
            f"{id} has more below it than a retry may read to go on from there "
            f"({reach.rows:,} rows, {reach.bytes:,} bytes of snapshots): "
            f"{from_start(id)}"
        )


def from_start(id: str) -> str:
    return (
        f"retry it from the start (`rhythm retry {id} --from-start`; in Python `retry(id, "
        f"from_start=True)`)"
    )


def asked_by(family: Family, provenance: Provenance) -> Family:
    """A retry with the authority of whoever asks for it, besides that of those who asked before."""
    if not provenance.authority:
        return family

    def joined(row: StoredExecution) -> str | None:
        before = Provenance(authority=load_authority(row.authority))
        return dump_authority(before.joined(provenance).authority)

    return family.replace(
        executions=tuple(row.replace(authority=joined(row)) for row in family.executions)
    )


class ExecutionStore(ABC):
    """What callers ask of executions: start, cancel, terminate, retry."""

    @abstractmethod
    def start(
        self,
        executions: Sequence[NewExecution],
        on_conflict: OnConflict = "return",
        actor: Actor | None = None,
    ) -> list[Started]:
        """Starts them, unless their id or (name, key) is there already; in the order given.

        What is there already is returned; with "fail" it is a `Conflict`, and nothing is started.
        With "replace" the execution that has the key loses it and is asked to end, which is
        recorded if there is an `actor`. The id of an execution of another name is always a
        `Conflict`.
        """

    @abstractmethod
    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        """Asks executions to end. False: it has ended already; one that does not exist is left
        out."""

    def terminate(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        """Ends executions and everything below them at once: no turn of theirs is taken, no result
        accepted. False: it has ended already; one that does not exist is left out.

        The executions themselves end in one transaction, with the record of who did it. It leaves a
        mark, by which nobody below them gets on; what is below ends in passes of a bounded size. A
        large family is left to the services after some of them.
        """
        ended = self._terminate_named(ids, actor)
        for _ in range(MAX_PASSES if any(ended.values()) else 0):
            if not self.end_terminated(PASS_SIZE):
                break
        return ended

    @abstractmethod
    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        """Ends these, and marks everything below them."""

    @abstractmethod
    def end_terminated(self, limit: int) -> list[str]:
        """Ends some of what is below executions that were terminated: at most so many workflows and
        so many tasks; their ids. None: all have ended, and the marks are gone."""

    @abstractmethod
    def retry(
        self,
        id: str,
        plan: Callable[[Family], Family],
        actor: Actor | None = None,
        whole: bool = True,
    ) -> Started | None:
        """Reads an execution with everything below it, and stores what `plan` makes of them: the
        first one's id. None: there is none.

        A retry of it that has not ended is returned instead, so two at once are one. `plan` is
        pure, and may be called again. Without `whole`, only the execution itself is read.
        `RetryTooLarge` if there is more than `limits` allow, before it is read.
        """

    @abstractmethod
    def family(self, id: str, reach: Reach) -> Family:
        """What `retry` gives to its plan, only to look at it; empty if there is no such execution.
        `RetryTooLarge` beyond the reach."""

    @abstractmethod
    def retries(self, id: str) -> list[Retry]:
        """The retries of an execution, oldest first."""
