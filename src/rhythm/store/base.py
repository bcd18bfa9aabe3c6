"""What the engine asks of a database, in its own words: about two dozen set-based transactions.

Every method is one transaction: it happened, or it did not. All values are already JSON text or bytes; a store knows rows,
not meanings. Times are microseconds since 1970 on the database's clock; what comes in are durations.

The protocol, in short. `ready` holds a row for every workflow that somebody must look at, and for every task that is queued,
delayed or running. A claim draws a `fence` from one sequence; whoever writes as the holder of a claim names it, and zero rows
mean that the claim is lost. Whatever a workflow may be waiting for counts up `wakes` of its ready row, or makes the row, in the
same transaction; parking is the conditional delete of that row. `finish` is the only way to a terminal status, and it wakes
the parent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

from rhythm.errors import Conflict, RetryTooLarge
from rhythm.ids import is_personal
from rhythm.limits import DEFAULT_LIMITS, TEXTS, Limits
from rhythm.record import Record
from rhythm.store.access import AccessStore, Act, Actor, act
from rhythm.store.approvals import ApprovalStore, NewApproval
from rhythm.store.lifecycle import COMPLETED, STATUS_NAMES, SUSPENDED, Delivery, Outcome, TurnEnd
from rhythm.store.operating import OperatingStore
from rhythm.store.provenance import Provenance, dump_authority, load_authority
from rhythm.store.reading import Found, TraceStore
from rhythm.store.schedules import Registered, ScheduleStore
from rhythm.store.schema import Migration

if TYPE_CHECKING:
    from rhythm.store.doctor import Judge
    from rhythm.store.triggers import Trigger

WORKFLOW, TASK = 0, 1  # kinds of ready rows, and types of executions
EVENT = 2  # the type of an outcome that is an event, or the end of the wait for one
APPROVAL = 3  # and of one that people have decided
FREE, CLAIMED, DELAYED = 0, 1, 2  # states of ready rows
EVERY_RESUME = 2**63 - 1  # no resume request has this number
SYSTEM_QUEUE = "system"  # resumes go here; every worker serves it
DEAD_AFTER_S = 30.0  # without a beat for so long a worker counts as dead
FORGOTTEN_S = 86_400.0  # after so long without a beat, and without claims, nobody asks about a worker any more


class Definition(Record):
    """One version of a workflow, as it is stored."""

    name: str
    version: str
    language: str
    source: str
    program: str
    file: str = ""
    on: tuple[str, ...] = ()  # types of events that start it; like what follows, only told when it is registered
    queue: str = "default"
    timeout_s: float | None = None
    schedules: tuple[dict[str, Any], ...] = ()  # what its annotations say


class Listed(Record):
    """The current version of a workflow, without its text and its program, which may be large."""

    name: str
    version: str
    language: str
    file: str
    registered_at: int


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
    later_us: int = 0  # a child: how long after its parent's turn, so that events of the same turn keep their order with it; less
    # than 0: a task that had begun before
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


def refuse_conflicts(executions: Sequence[NewExecution], started: Sequence[Started], on_conflict: str) -> None:
    """`Conflict` for the first start that found something there which the caller did not mean to get."""
    for new, found in zip(executions, started, strict=True):
        if found.created:
            continue
        if found.name != new.name:
            raise Conflict(f"{found.id!r} is the id of an execution of something else than `{new.name}`: choose another id", found.id)
        if on_conflict == "fail":
            key = "" if is_personal(new.key or "") else f" {new.key!r}"
            what = f"the id {new.id!r}" if found.id == new.id else f"the idempotency key{key} of `{new.name}`"
            raise Conflict(f"{what} belongs to an execution that was started before: {found.id}", found.id)
        if on_conflict == "replace":
            raise Conflict(f"an execution with the id {found.id!r} exists, and an id is used once only: leave it to Rhythm", found.id)


def registered_acts(definitions: Sequence[Definition], before: Mapping[str, Listed]) -> list[Act]:
    """Which workflows have another version by now, for the audit."""
    new = [each for each in definitions if each.name not in before or before[each.name].version != each.version]
    return [act("workflow.register", each.name, version=each.version) for each in new]


def source_hashes(definitions: Iterable[Definition]) -> dict[str, str]:
    """The texts of these workflows, each once, and what names them: their SHA-256."""
    from hashlib import sha256

    return {text: sha256(text.encode()).hexdigest() for text in {definition.source for definition in definitions}}


def refuse_system(queue: str, paused: bool) -> None:
    """`ValueError` for a pause of the queue of resumes: workflows would stand still that nobody has paused."""
    if paused and queue == SYSTEM_QUEUE:
        raise ValueError(f"queue `{SYSTEM_QUEUE}` cannot be paused: it has the resumes of all workflows; pause the queue of their tasks")


def queue_acts(queue: str, paused: bool, reason: str) -> list[Act]:
    """What an operator did to a queue, for the audit."""
    return [act("queue.pause", queue, reason=reason) if paused else act("queue.resume", queue)]


def driver_connection(given: Any) -> Any:
    """The driver's own connection behind what a library hands out: a connection or session of SQLAlchemy, a connection of Django."""
    if isinstance(getattr(given, "connection", None), MethodType):  # a session
        given = given.connection()
    behind = getattr(given, "connection", None)
    return given if behind is None else getattr(behind, "driver_connection", behind)


class Claim(Record):
    """Time-limited ownership of a ready row. `wakes` is what its holder has seen before it loads."""

    id: str
    kind: int
    queue: str
    fence: int
    wakes: int
    attempt: int
    crashes: int


class Beat(Record):
    """A worker says that it lives, and how it is."""

    worker: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    draining: bool
    version: str
    machine: str = ""  # within which the process id means something; empty: not known
    dead_after_s: float = DEAD_AFTER_S  # silent for so long, it takes itself for dead; so do the others


class Mine(dict[str, tuple[int, int]]):
    """What a worker has claimed: id -> (fence, wakes)."""

    def __init__(self, claims: Iterable[tuple[str, int, int]], locked: Iterable[str] = ()) -> None:
        """`locked`: by others. It was to be prolonged, and was not."""
        super().__init__({id: (fence, wakes) for id, fence, wakes in claims})
        self.locked = frozenset(locked)


class SeenWorker(Record):
    """A worker as it was when it was last heard of, and how many claims it has `now`."""

    worker: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    draining: bool
    version: str
    started_at: int
    beat_at: int
    claims: int
    now: int
    machine: str = ""
    dead_after_s: float = DEAD_AFTER_S


class Declaration(Record):
    """What a task is, as the worker says that has its handler: whoever plans a turn knows it from here."""

    name: str
    queue: str
    retries: int
    timeout_s: float | None
    backoff: str  # JSON
    transactional: bool


class Look(Record):
    """Whether there is something for `rescue`, for `sweep` and for `forget_workers`; in how long there is for `fire_schedules`; and whether
    there is something for `end_terminated`."""

    lost: bool
    cancelled: bool
    forgotten: bool
    slot_us: int | None = None
    terminated: bool = False


class Recovered(Record):
    """What a look after the lost has done: claims that were taken back, cancelled tasks that were ended."""

    rescued: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    slot_us: int | None = None  # until a schedule has something to do, also if another process has just made it
    terminated: tuple[str, ...] = ()  # what was left below executions that were terminated


class Loaded(Record):
    """A claimed workflow, read after the claim."""

    id: str
    name: str
    version: str
    status: int
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
    resumes: str | None = None  # JSON: what let it go on since its last turn, as [id, data that was given with it]
    authority: str | None = None  # JSON: the roles of those who asked for it

    @property
    def ending(self) -> bool:
        """Whether it is to clean up and end: it was cancelled, or its time is over."""
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
    """What a workflow waits for: children `numbers`. `whole`: nothing follows until all have ended (or, `fails`, one has failed)."""

    id: str
    numbers: Sequence[int]
    whole: bool = False
    fails: bool = False


class ChildOutcome(Record):
    """How a child, a timer or a wait for an event has ended."""

    n: int
    status: int
    value: str  # result or error, JSON; of an event `{id, data, at}`
    ended_at: int
    type: int | None  # of the execution, or EVENT; None for a timer
    name: str  # of the execution, or the event's type


SHORT_ERROR = 1024  # characters of an error that those who only look are told
BRIEF_OUTCOME = (
    f"id, n, status, CASE WHEN status <> {COMPLETED} AND length(value) <= {SHORT_ERROR} THEN value END AS value, ended_at, type, name"
)
_UNTOLD = {EVENT: '{"id":"","data":null,"at":0}', APPROVAL: "{}"}
UNTOLD_ERROR = '{"code":"","message":"","data":null}'


def brief_outcome(read: ChildOutcome) -> ChildOutcome:
    """An outcome of which no more was read than a short error: something of its kind stands for the rest."""
    untold = _UNTOLD.get(read.type or 0, "null" if read.status == COMPLETED else UNTOLD_ERROR)
    return read.replace(value=read.value or untold)


class Mail(Record):
    """A signal that has not been consumed."""

    id: str
    name: str
    payload: str
    received_at: int


class NewTimer(Record):
    n: int
    delay_s: float | None
    until: int | None = None  # microseconds since 1970
    held: bool = False


class NewSignal(Record):
    """A signal to send. The id is the sender's: the same one twice is one signal."""

    id: str
    execution_id: str
    name: str
    payload: str
    sender: str | None = None  # the execution whose turn sends it


class NewWait(Record):
    """A wait for the first event of a type, published since its execution started, whose data has these values at these paths."""

    n: int
    type: str
    wanted: str  # JSON: paths and values
    timeout_s: float | None = None
    held: bool = False


class NewEvent(Record):
    """An event to publish. The id is the publisher's: the same one twice is one event."""

    id: str
    type: str
    data: str  # JSON
    later_us: int = 0  # of several in one turn, and of the children it starts: they happen in their order
    execution_id: str | None = None  # whose turn publishes it


class Done(Record):
    """A task that its workflow's owner has run: the row is born finished."""

    n: int
    name: str
    queue: str
    inputs: str
    status: int
    value: str
    attempt: int
    took_us: int
    options: str = "{}"  # as the call gave them, for a retry of the workflow


class TurnCommit(Record):
    """A turn to commit, and where its workflow goes from there.

    `end`: "own" (its holder goes on), "park" (nothing to do until something wakes it), "yield" (give the claim back), "finish".
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
    status: int = SUSPENDED
    value: str = "null"  # result or error, when it finishes
    done: tuple[Done, ...] = ()
    starts: tuple[NewExecution, ...] = ()
    timers: tuple[NewTimer, ...] = ()
    waits: tuple[NewWait, ...] = ()
    approvals: tuple[NewApproval, ...] = ()
    resumed: int | None = None  # what let it go on, up to this one, is done with this turn
    consumed: tuple[str, ...] = ()
    cancels: tuple[tuple[int, int], ...] = ()
    releases: tuple[tuple[int, int], ...] = ()
    signals: tuple[NewSignal, ...] = ()
    events: tuple[NewEvent, ...] = ()
    attributes: str | None = None
    settled: tuple[int, ...] = ()  # timers and waits for events that nobody will ask about again
    promoted: tuple[int, ...] = ()  # of `starts`: claimed by this worker from the beginning
    claim_ttl_s: float = 0.0

    def resumed_upto(self, wakes: int) -> int | None:
        """`resumed`, given how often it was woken by now: after the last turn there is none for what came since its holder looked."""
        return EVERY_RESUME if self.end == "finish" and wakes != self.wakes else self.resumed


class Committed(Record):
    """What became of a turn: "own", "woken" (it would have parked, but there is more to see), "parked", "finished", "lost", or "full":
    nothing of it was done, since it would start more than there may be."""

    id: str
    outcome: Outcome
    wakes: int = 0
    promoted: Mapping[int, int] = {}  # number -> fence of its claim
    refusal: str = ""  # why it is full


class TaskEnd(Record):
    """The end of an attempt: finished with `status`, or to be tried again after `retry_s`."""

    id: str
    fence: int
    status: int
    value: str
    retry_s: float | None = None
    counts: bool = True  # false: the attempt does not count (asked to be tried later, unknown here)
    worker: str = ""
    took_us: int = 0


class StoredExecution(Record):
    """A row of `executions` with its context: what a retry is made of. Without `created_at`: it begins now.

    Inputs, results and the like are not in it, as they may be large: the new row gets those of `source`, inside the database.
    """

    id: str
    type: int
    name: str
    version: str
    queue: str
    priority: int
    status: int
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
    status: int


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
    return {"id": id, "first": f"{id}.", "last": f"{id}/"} if whole else {"id": id, "first": "", "last": ""}


def refuse_large(id: str, reach: Reach, rows: int, size: int) -> None:
    """Before any of a family is read: `rows` are counted up to one more than may be, `size` is in bytes."""
    if rows > reach.rows or size > reach.bytes:
        raise RetryTooLarge(
            f"{id} has more below it than a retry may read to go on from there ({reach.rows:,} rows, {reach.bytes:,} bytes of snapshots): "
            f"{from_start(id)}"
        )


def from_start(id: str) -> str:
    return f"retry it from the start (`rhythm retry {id} --from-start`; in Python `retry(id, from_start=True)`)"


def asked_by(family: Family, provenance: Provenance) -> Family:
    """A retry with the authority of whoever asks for it, besides that of those who asked before."""
    if not provenance.authority:
        return family

    def joined(row: StoredExecution) -> str | None:
        before = Provenance(authority=load_authority(row.authority))
        return dump_authority(before.joined(provenance).authority)

    return family.replace(executions=tuple(row.replace(authority=joined(row)) for row in family.executions))


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


# Whether somebody must decide is told in lists, too: of a plan no more than that. `%%` is `%` for both databases.
_ASKED = """CASE WHEN status = 'paused' AND awaiting LIKE '%%"op":"approval"%%' THEN '{"op":"approval"}' ELSE 'null' END"""
LARGE = {"inputs": "'null'", "result": "NULL", "awaiting": _ASKED}  # columns of an execution that may be large, and what stands for them
CUT = {"error": 4096, "attributes": TEXTS.attributes_bytes, "paused_reason": TEXTS.reason}  # characters of others that a list reads
# the columns of a list; of those that are cut one character more, which tells that they were
_SHORT = {**LARGE, **{name: f"substr({name}, 1, {most + 1})" for name, most in CUT.items()}}
BRIEF = ", ".join(f"{_SHORT[name]} AS {name}" if name in _SHORT else name for name in Execution._fields)


class Transition(Record):
    """A committed step in the life of an execution."""

    execution_id: str
    seq: int
    fence: int
    worker: str
    from_status: str
    to_status: str
    cause: str
    statement: int
    at: int
    error: str | None = None


def with_names(read: Iterable[Any]) -> list[Transition]:
    """Transitions with the names of their statuses, which were read as they are stored."""
    return [each.replace(from_status=STATUS_NAMES[each.from_status], to_status=STATUS_NAMES[each.to_status]) for each in read]


class Finding(Record):
    """A rule that is broken: `subject` is the id of an execution. Of `of` such findings only the first are told."""

    rule: str
    subject: str
    message: str
    of: int = 1


class Live(Record):
    """A workflow that has not ended, for a judge of waits."""

    id: str
    status: int
    held: bool
    paused: bool
    cancel_requested: bool
    timed_out: bool
    ready: bool  # somebody looks at it, or will
    seq: int
    statement: int
    snapshot: bytes | None
    owned: str
    awaiting: str


class Child(Record):
    """A child and whether it has ended."""

    id: str
    status: int
    finished_at: int | None
    type: int
    name: str


class Timer(Record):
    execution_id: str
    n: int
    fired_at: int | None
    cancelled_at: int | None
    status: int | None  # of a wait for an event; None for a timer


class Mailed(Record):
    """A signal that has not been consumed, without its payload."""

    execution_id: str
    id: str
    name: str
    received_at: int


class Queue(Record):
    """What is in a queue: ready (since when the oldest of it), claimed, claimed by one who has not been heard of in time, delayed.

    `workers`: how many live ones take from it.
    """

    name: str
    ready: int
    oldest_at: int | None
    claimed: int
    expired: int
    delayed: int = 0
    paused_at: int | None = None
    paused_by: str = ""
    paused_reason: str = ""
    workers: int = 0
    now: int = 0


class Silent(Record):
    """A worker that has claims, and has not been heard of for too long, or never: then `beat_at` is None."""

    worker: str
    claims: int
    beat_at: int | None


class Health(Record):
    """How a database is, besides being right. What the database has no such thing of is empty."""

    now: int
    executions: int
    queues: tuple[Queue, ...]
    transaction_s: float | None = None  # the age of the oldest one
    dead_rows: tuple[tuple[str, int, int], ...] = ()  # table, live rows, dead rows
    notifications: float | None = None  # how full their queue is, from 0 to 1
    server: bool = False  # whether its clock is another machine's
    silent: tuple[Silent, ...] = ()


class Listening:
    """What hears of new work, until it is closed. `problem`: why it hears nothing, in words; then work is found by looking for it."""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem

    def close(self) -> None:
        """Nothing more is heard; somebody who is being told may still be told."""


class Store(AccessStore, ApprovalStore, OperatingStore, ScheduleStore, TraceStore):
    """A database that holds executions."""

    lends_connections = False  # whether `complete_within` can be used
    limits: Limits = DEFAULT_LIMITS  # of families
    package: ClassVar[str]  # where its statements and migrations are

    # schema

    @abstractmethod
    def migrations(self) -> list[Migration]:
        """Every migration that this Rhythm knows, in order; asks no database."""

    @abstractmethod
    def pending(self) -> list[Migration]:
        """Those that have not run. `StoreError` if the schema is newer than this Rhythm."""

    @abstractmethod
    def migrate(self) -> list[str]:
        """Runs what is pending; the names of the migrations that ran. Safe when many processes start at once.

        Each is one transaction: one that fails leaves nothing behind, and is a `StoreError`.
        """

    @abstractmethod
    def schema_version(self) -> int:
        """The newest migration that has run; 0 if none has."""

    @abstractmethod
    def close(self) -> None: ...

    @property
    def era(self) -> int:
        """Another number after a connection was lost, whoever met it: behind the next one may be a database that knows less."""
        return 0

    @abstractmethod
    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        """Calls `heard` from another thread, soon after something in these queues can be claimed; without any, it may be in all.

        It is a hint: some are not heard, and some are about what others have taken already. Whenever hearing begins, also after a
        while without a connection, it is called for all queues.
        """

    # definitions

    @abstractmethod
    def register(self, definitions: Sequence[Definition], schedules: Registered | None = None, actor: Actor | None = None) -> None:
        """Stores versions that are new, and makes these the current ones of their names: all, or none.

        From then on events start these, and only by the types that they name now. `schedules` gets those that these workflows'
        annotations have made before, and says what becomes of which. With an `actor`, versions that become current are recorded.
        """

    @abstractmethod
    def definition(self, name: str, version: str | None = None) -> Definition | None:
        """A version of a workflow; the current one if none is named."""

    @abstractmethod
    def program(self, name: str, version: str) -> str | None:
        """The program of a version of a workflow, as it is stored; its text is not read."""

    @abstractmethod
    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        """The current versions of these workflows, as far as there are any."""

    @abstractmethod
    def definitions(self, after: str, limit: int) -> list[Listed]:
        """The current versions of so many workflows, by name: those that come after this one. No text and no program is read."""

    @abstractmethod
    def triggers(self) -> list[Trigger]:
        """Which events start which workflows, by type and name."""

    # starting

    @abstractmethod
    def start(self, executions: Sequence[NewExecution], on_conflict: str = "return", actor: Actor | None = None) -> list[Started]:
        """Starts them, unless their id or (name, key) is there already; in the order given.

        What is there already is returned; with "fail" it is a `Conflict`, and nothing is started. With "replace" the execution
        that has the key loses it and is asked to end, which is recorded if there is an `actor`. The id of an execution of another
        name is always a `Conflict`.
        """

    @abstractmethod
    def within(self, connection: Any) -> Store:
        """The same tables on the caller's own connection: what is started there comes with the caller's commit, or not at all."""

    # claims

    @abstractmethod
    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> list[Claim]:
        """Takes up to `limit` free rows of these queues, in their order; nothing of those that are paused.

        Resumes come first, unless their queue is named in another place.
        """

    @abstractmethod
    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        """Prolongs claims (id -> fence); the `wakes` of those that are still held."""

    @abstractmethod
    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        """Gives claims back, to be taken again at once or after a while. A task gets its attempt back; it was not begun."""

    @abstractmethod
    def held_by(self, worker: str) -> dict[str, int]:
        """The claims of a worker as the database knows them: id -> fence."""

    @abstractmethod
    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        """Takes back claims that have expired; those that crashed too often are failed.

        With `dead` also the claims of workers that have been silent for as long as they said they may be. One of which there is no
        beat is judged by the expiry of its claims alone.
        """

    # workers and queues

    @abstractmethod
    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> Mine:
        """Says that a worker lives, and prolongs claims of it (id -> fence; only those it still has). It waits for nobody: what
        somebody has locked at the moment is not prolonged.

        Everything that it has now, also what it does not know of.
        """

    @abstractmethod
    def leave(self, *workers: str) -> None:
        """These workers are no more: nobody waits for a beat of theirs, and claims that they still have expire now."""

    @abstractmethod
    def workers(self) -> list[SeenWorker]:
        """The workers that have said that they live, the dead ones of the last day among them."""

    @abstractmethod
    def paused_queues(self) -> frozenset[str]: ...

    @abstractmethod
    def pause_queue(self, name: str, paused: bool, actor: Actor | None = None, reason: str = "") -> bool:
        """Nothing of a paused queue is claimed: no workflow of it starts, and no task. Those that have begun go on.

        False: it was paused, or not, already; who paused it first, and why, stays. `ValueError` for the queue of resumes.
        """

    @abstractmethod
    def queues(self) -> list[Queue]:
        """Every queue that has rows, is paused, or is served by a worker: one that is not dead, and not draining."""

    @abstractmethod
    def declare(self, declarations: Sequence[Declaration]) -> None:
        """Stores what tasks are; of several workers that say it, the last one is right."""

    @abstractmethod
    def declared(self) -> list[Declaration]:
        """What all tasks are, by name."""

    @abstractmethod
    def sibling(self) -> Store:
        """The same database on connections of its own; an SQLite database in memory has only one, and is its own sibling."""

    # turns and tasks

    @abstractmethod
    def load(self, ids: Sequence[str]) -> list[Loaded]:
        """The workflows; one that is gone is left out."""

    @abstractmethod
    def load_tasks(self, ids: Sequence[str]) -> list[LoadedTask]: ...

    @abstractmethod
    def cancelled(self, ids: Sequence[str]) -> set[str]:
        """Which of these were asked to end: nothing else of them is read, however large their inputs."""

    @abstractmethod
    def outcomes(self, needed: Sequence[Needed], brief: bool = False) -> dict[str, list[ChildOutcome]]:
        """How the children have ended that are needed; nothing for a workflow that cannot go on yet.

        `brief`, for those who only look: without results, which may be large; an error that is long is told as one without a code.
        """

    @abstractmethod
    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        """The signals that have not been consumed, in the order of sending."""

    @abstractmethod
    def mailed(self, id: str) -> list[Mail]:
        """The same of one workflow, for those who only look: without what they bring."""

    @abstractmethod
    def commit(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> tuple[list[Committed], set[str]]:
        """The group commit. What became of each turn, and the ids of the tasks whose end was accepted."""

    @abstractmethod
    def complete_within(self, work: Callable[[Any], TaskEnd | None]) -> str:
        """Commits the end of a task together with what its handler writes. `work` gets a connection, in a transaction that nobody
        else uses, and returns the end, or None to keep nothing. What became of it: "kept", or nothing was kept: "undone" by `work`,
        "lost" (the claim) or "aborted" (a statement of the handler has failed, and it went on)."""

    @abstractmethod
    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        """Parks workflows for which there was nothing to do."""

    @abstractmethod
    def drop(self, claims: Mapping[str, int]) -> None:
        """Deletes ready rows of workflows that have ended or are gone."""

    @abstractmethod
    def witness(self, id: str, seq: int) -> int | None:
        """The fence with which turn `seq` of a workflow was committed; for the holder that got no answer."""

    # from outside

    @abstractmethod
    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        """Puts a signal into a mailbox: "sent", "duplicate", "late" (it has ended), "missing" or "full".

        One that was received is a "duplicate" whatever came after it: its sender may forget it.
        """

    @abstractmethod
    def publish(self, event: NewEvent, actor: Actor | None = None) -> str:
        """Publishes an event to everyone who waits for it, and to those who live and will, and starts the workflows that are
        registered for it: "published" or "duplicate"."""

    @abstractmethod
    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        """Asks executions to end. False: it has ended already; one that does not exist is left out."""

    @abstractmethod
    def retry(self, id: str, plan: Callable[[Family], Family], actor: Actor | None = None, whole: bool = True) -> Started | None:
        """Reads an execution with everything below it, and stores what `plan` makes of them: the first one's id. None: there is none.

        A retry of it that has not ended is returned instead, so two at once are one. `plan` is pure, and may be called again.
        Without `whole`, only the execution itself is read. `RetryTooLarge` if there is more than `limits` allow, before it is read.
        """

    @abstractmethod
    def family(self, id: str, reach: Reach) -> Family:
        """What `retry` gives to its plan, only to look at it; empty if there is no such execution. `RetryTooLarge` beyond the reach."""

    @abstractmethod
    def retries(self, id: str) -> list[Retry]:
        """The retries of an execution, oldest first."""

    # services

    @abstractmethod
    def fire_timers(self, limit: int, late: Callable[[float], None] | None = None) -> tuple[int, int | None]:
        """Fires what is due, frees what was delayed until now, times executions out: how many, and when the next is due.

        `late` is told of each timer that has fired, by how many seconds it was late.
        """

    @abstractmethod
    def sweep(self, limit: int) -> list[str]:
        """Ends cancelled tasks that nobody holds; their ids."""

    def recover(self, limit: int, crash_limit: int, dead: bool = False) -> Recovered:
        """`rescue`, `sweep`, `end_terminated` and forgetting workers of long ago: one look at the database while there is nothing to do."""
        look = self.look(dead)
        if look.forgotten:
            self.forget_workers(limit)
        rescued = self.rescue(limit, crash_limit, dead) if look.lost else ()
        terminated = self.end_terminated(limit) if look.terminated else ()
        return Recovered(tuple(rescued), tuple(self.sweep(limit)) if look.cancelled else (), look.slot_us, tuple(terminated))

    @abstractmethod
    def look(self, dead: bool = False) -> Look: ...

    @abstractmethod
    def forget_workers(self, limit: int) -> None:
        """Deletes the beats of workers that have been silent for a day and have no claims."""

    @abstractmethod
    def parked(self, after: str, limit: int) -> list[str]:
        """Workflows that nobody looks at and that are not paused, by id, beginning after this one."""

    @abstractmethod
    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Of these children (workflow, number) those of which there is no row: neither an execution nor a timer."""

    @abstractmethod
    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        """Wakes workflows that are still parked at this `seq`; of these it fires the timers whose rows are gone. The ids."""

    @abstractmethod
    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Takes or prolongs the right to do what one process at a time should do. It saves work; nothing is safe because of it."""

    @abstractmethod
    def prune(self, older_than_s: float, limit: int) -> int:
        """Deletes root executions that ended so long ago, with everything below them: how many.

        Those stay of which a child still goes on, or from which an execution was made that has not ended.
        """

    @abstractmethod
    def prune_events(self, older_than_s: float, limit: int) -> int:
        """Deletes events that were published so long ago: how many. Those stay that an execution has taken, until it has gone on."""

    # reading

    def expect(self, threads: int) -> None:
        """So many threads may ask at once from now on: they are not to wait for each other."""

    @abstractmethod
    def get(self, ids: Sequence[str]) -> dict[str, Execution]: ...

    @abstractmethod
    def find(
        self,
        name: str | None,
        status: str | None,
        before: tuple[int, str] | None,
        limit: int,
        brief: bool = False,
        names: Sequence[str] | None = None,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        """Root executions, newest first. `before`: only those that come after the one of this `created_at` and id.

        `brief`: without inputs, results and what they await, which may be large. `names`: only those that have one of these names.
        `most_bytes`: no more than these and one row.
        """

    @abstractmethod
    def names(self, prefixes: Sequence[str]) -> list[str]:
        """The names of root executions that begin with one of these, none of which begins with another: each once."""

    @abstractmethod
    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        """The name of the root of each of these; one that does not exist is left out."""

    @abstractmethod
    def children(
        self, id: str, after: int = 0, limit: int | None = None, brief: bool = False, most_bytes: int | None = None
    ) -> Found[Execution]:
        """In the order of their numbers, beginning after this one."""

    @abstractmethod
    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        """A text for each execution that is another one whenever it has changed; reads nothing large."""

    @abstractmethod
    def waits(self, id: str) -> list[NewWait]:
        """The events that an execution waits for."""

    @abstractmethod
    def due(self, id: str) -> dict[int, int]:
        """When the timers and delayed children of an execution are due, by number; 0 is its own start."""

    @abstractmethod
    def history(self, id: str) -> list[Transition]: ...

    # doctor

    @abstractmethod
    def check(self, grace_s: float, judge: Judge | None = None) -> list[Finding]:
        """What breaks the rules of `store.doctor`, in one snapshot. What takes a moment may be late by `grace_s`.

        The rules about snapshots and waits are the judge's: `engine.doctor.examine` brings it along.
        """

    @abstractmethod
    def health(self) -> Health: ...
