"""What callers ask of executions: start, cancel, terminate, retry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from rhythm.errors import Conflict, RetryTooLarge
from rhythm.ids import is_personal
from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.lifecycle import OnConflict, StatusNumber
from rhythm.store.provenance import Provenance, dump_authority, load_authority

PASS_SIZE = 500  # how many executions one pass of `terminate` ends in one transaction
MAX_PASSES = 10  # passes of one `terminate` call


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
    attempt: int = 0  # attempts that were used before
    options: str = "{}"  # retry policy and timeout of a task, as its call gave them
    timeout_s: float | None = None  # for the whole execution
    delay_s: float = 0.0
    key: str | None = None
    attributes: str = "{}"
    snapshot: bytes | None = None  # of a branch: where it begins
    held: bool = False  # store the rows, but run nothing until the execution is released
    retry_of: str | None = None
    # Of a child: how long after its parent's turn it starts, so that the children and events of one
    # turn keep their order. Negative: a task that had begun before the turn.
    later_us: int = 0
    # the error of the last attempt, if the row is stored after one failed
    failed: str | None = None
    started_by: str | None = None  # of a root: who started it
    authority: str | None = None  # JSON: the roles of everybody who asked for it (see `provenance`)
    contributors: tuple[str, ...] = ()  # of a root: whose data it begins with

    @property
    def crashes(self) -> int:
        """How many of its attempts ended because their worker died."""
        return self.attempt if self.failed is None else 0


class Started(Record):
    """The answer to a start. An execution that existed already is returned, not changed."""

    id: str
    created: bool
    name: str = ""  # of the workflow or task, if the execution existed already


class OutdatedError(Exception):
    """The version of a workflow that was to be started is not the current one, or is gone."""


def refuse_conflicts(
    executions: Sequence[NewExecution], started: Sequence[Started], on_conflict: OnConflict
) -> None:
    """Raises `Conflict` for the first start that found an existing execution which its caller did
    not ask for."""
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
    # `running` means that it is claimed for work. A workflow that waits stays `suspended` or
    # `paused` while a worker checks it.
    status: str
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
    paused_metadata: str | None = None  # JSON


class StoredExecution(Record):
    """A row of `executions` with its context: the material for a retry.

    `created_at` None: the new execution begins now. Inputs, results and the like are left out, as
    they may be large: the database copies them from row `source` into the new row.
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
    # Of the first execution the whole error. Of its children only a short one. Of all others None.
    error: str | None
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    timeout_us: int | None
    cancel_requested_at: int | None
    fence: int | None
    worker: str | None
    started_by: str | None
    authority: str | None
    source: str  # the id of the row that was read
    seq: int | None
    statement: int | None
    # Read, with `owned`, for the first execution and for those that are neither completed nor
    # blocked.
    snapshot: bytes | None
    owned: str | None
    awaiting: str | None = None  # set for new executions
    # the result and the error are copied from `source`; `error` is ignored
    ends_alike: bool = False


class StoredTimer(Record):
    """A row of `timer_tasks`."""

    execution_id: str
    n: int
    delay_us: int | None
    until_at: int | None
    fire_at: int | None  # None: it is held back
    fired_at: int | None
    cancelled_at: int | None
    anew: bool = False  # its delay begins when the row is stored


class StoredSignal(Record):
    """A row of `workflow_signals`. Its payload is copied from row `source`."""

    id: str
    execution_id: str
    n: int
    name: str
    received_at: int
    consumed_seq: int | None
    source: str  # the id of the row that was read


class Retry(Record):
    """A retry of an execution, with its status."""

    id: str
    status: StatusNumber


class Family(Record):
    """An execution (the first one), everything below it, and its retries, oldest first."""

    executions: tuple[StoredExecution, ...]
    timers: tuple[StoredTimer, ...] = ()
    signals: tuple[StoredSignal, ...] = ()
    retries: tuple[Retry, ...] = ()


class Reach(Record):
    """How much of a family may be read for a retry: rows, and bytes of snapshots."""

    rows: int
    bytes: int

    @staticmethod
    def by(limits: Limits) -> Reach:
        """Returns the bounds that these limits set for a retry."""
        return Reach(limits.retry_rows, limits.retry_bytes)


def family_range(id: str, whole: bool) -> dict[str, str]:
    """Returns the parameters that select the ids of a family.

    Without `whole` they select only the first execution.
    """
    return (
        {"id": id, "first": f"{id}.", "last": f"{id}/"}
        if whole
        else {"id": id, "first": "", "last": ""}
    )


def refuse_large(id: str, reach: Reach, rows: int, size: int) -> None:
    """Raises `RetryTooLarge` if a family is larger than `reach` allows.

    Called before the family is read. `rows` is counted up to one more than the bound; `size` is in
    bytes.
    """
    if rows > reach.rows or size > reach.bytes:
        raise RetryTooLarge(
            f"{id} has more below it than a retry may read to go on from there "
            f"({reach.rows:,} rows, {reach.bytes:,} bytes of snapshots): "
            f"{from_start(id)}"
        )


def from_start(id: str) -> str:
    """Returns the advice to retry an execution from its start."""
    return (
        f"retry it from the start (`rhythm retry {id} --from-start`; in Python `retry(id, "
        f"from_start=True)`)"
    )


def asked_by(family: Family, provenance: Provenance) -> Family:
    """Returns the family with the authority of the caller who asks for the retry, added to the
    authority of everybody who asked before."""
    if not provenance.authority:
        return family

    def joined(row: StoredExecution) -> str | None:
        before = Provenance(authority=load_authority(row.authority))
        return dump_authority(before.joined(provenance).authority)

    return family.replace(
        executions=tuple(row.replace(authority=joined(row)) for row in family.executions)
    )


class ExecutionStore(ABC):
    """Starts, cancels, terminates and retries executions for callers."""

    @abstractmethod
    def start(
        self,
        executions: Sequence[NewExecution],
        on_conflict: OnConflict = "return",
        actor: Actor | None = None,
    ) -> list[Started]:
        """Starts executions, unless their id or (name, key) exists already. Returns the answers in
        the given order.

        An execution that exists already is returned. With "fail" it raises `Conflict` instead, and
        nothing is started. With "replace" the execution that has the key loses it and is cancelled,
        which the audit records if there is an `actor`. If the id belongs to an execution of another
        name, it is always a `Conflict`.
        """

    @abstractmethod
    def start_alike(
        self,
        alike: NewExecution,
        inputs: Mapping[str, str],
        actor: Actor | None = None,
        if_current: bool = False,
    ) -> None:
        """Starts roots that differ only in their ids and their inputs, which are given by id.

        All else is as in `alike`. The ids must be new: nobody looks for executions that have them,
        or a key. So it takes a fraction of the time of `start`.

        With `if_current` it raises `OutdatedError`, and nothing is started, if the version is not
        the current one of the workflow.
        """

    @abstractmethod
    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        """Asks executions to end. False: it has ended already. Ids that do not exist are left
        out."""

    def terminate(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        """Ends executions and everything below them at once. False: it has ended already. Ids that
        do not exist are left out.

        None of them takes another turn, and no result of theirs is accepted. The named executions
        end in one transaction, with the audit record. It leaves a mark that stops everything below
        them. What is below ends in passes of a bounded size; after `MAX_PASSES` the rest of a large
        family is left to the services.
        """
        ended = self._terminate_named(ids, actor)
        for _ in range(MAX_PASSES if any(ended.values()) else 0):
            if not self.end_terminated(PASS_SIZE):
                break
        return ended

    @abstractmethod
    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        """Ends these executions, and marks everything below them."""

    @abstractmethod
    def end_terminated(self, limit: int) -> list[str]:
        """Ends some executions below terminated ones: at most `limit` workflows and `limit` tasks.
        Returns their ids.

        An empty list means that all have ended and the marks are deleted.
        """

    @abstractmethod
    def retry(
        self,
        id: str,
        plan: Callable[[Family], Family],
        actor: Actor | None = None,
        whole: bool = True,
    ) -> Started | None:
        """Reads an execution with everything below it, stores what `plan` returns for it, and
        returns the new execution. None: there is no such execution.

        If a retry of it has not ended, that retry is returned instead, so two calls at once make
        one retry. `plan` is pure, and may be called again. Without `whole`, only the execution
        itself is read. Raises `RetryTooLarge`, before reading, if there is more than `limits`
        allow.
        """

    @abstractmethod
    def family(self, id: str, reach: Reach, whole: bool = True) -> Family:
        """Returns what `retry` gives to its plan, without storing anything. Empty if there is no
        such execution. Raises `RetryTooLarge` beyond the reach."""

    @abstractmethod
    def retries(self, id: str) -> list[Retry]:
        """Returns the retries of an execution, oldest first."""
