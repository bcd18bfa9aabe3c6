"""Checks a database: the rules about snapshots and awaits, and advice about its health.

A wake is written in the same transaction as what it is for. So a workflow that is parked although
it could go on is a finding at once: no wake is still on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rhythm.engine.inputs import kinds, needed, outcome_of
from rhythm.engine.payload import load
from rhythm.engine.recheck import has_come
from rhythm.engine.rows import load_owned
from rhythm.errors import InvalidProgram
from rhythm.ids import child_id
from rhythm.ir.awaiting import KINDS, Plan, is_settled, leaves
from rhythm.limits import DEFAULT_LIMITS
from rhythm.record import Record
from rhythm.store.doctor import Child, Evidence, Finding, Live, Mailed, OnProgress, Timer
from rhythm.store.interfaces.operating import Health
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import ChildOutcome
from rhythm.store.interfaces.workers import Queue
from rhythm.store.lifecycle import BLOCKED, CANCELLED, COMPLETED, EVENT, FAILED, PAUSED, SUSPENDED
from rhythm.vm.awaits import release
from rhythm.vm.commands import StartTask
from rhythm.vm.machine import Inputs, Machine, Outcome, Signal
from rhythm.vm.snapshot import Snapshot, decode_snapshot
from rhythm.vm.values import Fault, weigh

PAGE_SIZE = 500  # workflows read at once
NUMBERS = 10_000  # awaited children read at once
NO_ERROR = '{"code": "", "message": "", "data": null}'
# In place of results and errors, which are not read: no rule needs them.
NO_PAYLOAD = {COMPLETED: "null", FAILED: NO_ERROR, BLOCKED: NO_ERROR}
NO_EVENT = '{"id": "", "data": null, "at": 0}'
UNCLAIMED_S = 60  # advice if the oldest ready row of a queue has waited this long
TRANSACTION_S = 60  # advice if a transaction has been open this long
DEAD_ROWS = 10_000  # dead rows of a table; fewer do no harm
NOTIFICATIONS = 0.1  # advice if more than this part of the notification queue is full
CLOCKS_S = 1.0  # advice if clocks differ by more


def examine(
    store: Store, grace_s: float, on_progress: OnProgress = lambda done, of: None
) -> list[Finding]:
    """Returns everything in the database that breaks a rule."""
    return store.operating.check(grace_s, judge, on_progress)


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Yields what is wrong with the snapshots and awaits of workflows that have not ended."""
    for page in evidence.live(PAGE_SIZE):
        readable: list[Waiting] = []
        for live in page:
            try:
                readable.append(Waiting.of(live))
            except (InvalidProgram, ValueError, KeyError, TypeError, AttributeError) as problem:
                yield Finding("snapshot_readable", live.id, str(problem))
        for some in _portions(readable):
            yield from _judge(some, evidence)


class Waiting(Record):
    """A workflow that has not ended, with its snapshot decoded."""

    live: Live
    snapshot: Snapshot
    owned: dict[int, StartTask]
    awaited: dict[int, Plan]  # what it awaits, by number
    numbers: tuple[int, ...]  # of all children and timers that decide whether it can go on

    @staticmethod
    def of(live: Live) -> Waiting:
        """Decodes a workflow. Raises `InvalidProgram` or another error if it cannot be read."""
        snapshot = decode_snapshot(live.snapshot) if live.snapshot else Snapshot()
        awaited = {leaf["n"]: leaf for leaf in leaves(snapshot.awaiting)}
        owned = load_owned(live.owned)
        numbers = tuple(dict.fromkeys((*needed(live.id, snapshot).numbers, *owned)))
        return Waiting(live, snapshot, owned, awaited, numbers)


class KnownNumbers(Record):
    """The rows that exist for the numbers of one workflow, and its mailbox."""

    children: dict[int, Child]
    timers: dict[int, Timer]
    mail: list[Mailed]


def _portions(waiting: Sequence[Waiting]) -> Iterator[list[Waiting]]:
    """Yields the workflows in portions, each small enough for one query."""
    portion: list[Waiting] = []
    size = 0
    for one in waiting:
        if portion and size + len(one.numbers) > NUMBERS:
            yield portion
            portion, size = [], 0
        portion.append(one)
        size += len(one.numbers)
    if portion:
        yield portion


def _judge(waiting: Sequence[Waiting], evidence: Evidence) -> Iterator[Finding]:
    """Reads what these workflows wait for, and yields what is wrong."""
    numbers = [(one.live.id, n) for one in waiting for n in one.numbers]
    known = {one.live.id: KnownNumbers({}, {}, []) for one in waiting}
    for child in evidence.children([child_id(id, n) for id, n in numbers]):
        parent, _, n = child.id.rpartition(".")
        known[parent].children[int(n)] = child
    for timer in evidence.timers(numbers):
        known[timer.execution_id].timers[timer.n] = timer
    for mailed in evidence.mail(list(known)):
        known[mailed.execution_id].mail.append(mailed)
    for one in waiting:
        for rule, message in _verdicts(one, known[one.live.id]):
            yield Finding(rule, one.live.id, message)


def _verdicts(one: Waiting, known: KnownNumbers) -> Iterator[tuple[str, str]]:
    yield from _of_context(one)
    yield from _of_owned(one, known)
    if one.live.status in (SUSPENDED, PAUSED):
        yield from _orphans(one, known)
        if not one.live.ready:
            yield from _asleep(one, known)


def _of_context(one: Waiting) -> Iterator[tuple[str, str]]:
    """Yields what is wrong between the columns of a workflow and its snapshot."""
    snapshot, live = one.snapshot, one.live
    if live.seq and (
        load(live.awaiting) != snapshot.awaiting or live.statement != snapshot.statement_index
    ):
        yield "context_agrees", "what it awaits, or where it stands, is not what its snapshot says"
    try:
        weigh(
            [snapshot.locals, snapshot.awaiting],
            DEFAULT_LIMITS.state_bytes(snapshot.limit is not None),
            "its state",
            DEFAULT_LIMITS.depth + 2,
        )
    except Fault as fault:
        yield "within_limits", str(fault.value()["message"])


def _of_owned(one: Waiting, known: KnownNumbers) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with the tasks that its owner runs without rows."""
    for n in one.owned:
        if n in known.children:
            yield "owned_once", f"task {n} has a row, and its owner would run it too"
        elif n not in one.awaited:
            yield "owned_once", f"its owner would run task {n}, which it does not await"
    if one.owned and not one.live.ready and not one.live.paused:
        yield (
            "owned_once",
            f"it is asleep, and nobody runs its tasks {', '.join(map(str, one.owned))}",
        )


def _orphans(one: Waiting, known: KnownNumbers) -> Iterator[tuple[str, str]]:
    """Yields awaits that nothing can end: there is no row for them.

    Signals, events and decisions come from outside, so they need no row; but their deadline is a
    timer.
    """
    for n, leaf in one.awaited.items():
        there = n in known.children or n in known.timers or n in one.owned
        if not there and (not KINDS[leaf["op"]].from_outside or leaf.get("timeout")):
            yield "no_orphan_wait", f"it awaits {leaf['op']} {n}, of which there is nothing"


def _asleep(one: Waiting, known: KnownNumbers) -> Iterator[tuple[str, str]]:
    """Yields why a parked workflow should not be parked."""
    live = one.live
    if live.cancel_requested and not one.snapshot.cancelled:
        yield "no_lost_wake", "it was cancelled, and sleeps"
    elif live.timed_out and not one.snapshot.cancelled:
        yield "no_lost_wake", "its time is over, and it sleeps"
    elif live.paused and not live.cancel_requested:
        return
    elif one.snapshot.awaiting is None:
        yield "waits_for_something", "it is asleep, and awaits nothing"
    elif _can_go_on(one, known):
        yield "no_lost_wake", "what it awaits has happened, and it sleeps"


def _can_go_on(one: Waiting, known: KnownNumbers) -> bool:
    """Returns whether a turn would do anything.

    That is so if what is awaited has ended, or if something that a limit of concurrency holds back
    may begin.
    """
    plan = one.snapshot.awaiting
    assert plan is not None
    machine = _machine(one, known)
    ended = has_come(machine, plan)
    for each in (plan, *machine.plans.values()):
        if not is_settled(each):
            release(machine, each)
    return ended or bool(machine.commands)


def _machine(one: Waiting, known: KnownNumbers) -> Machine:
    """Returns the interpreter at the beginning of a turn.

    It knows only what decides whether something has ended.
    """
    id, ops = one.live.id, kinds(one.snapshot.awaiting)
    rows = [*map(_of_child, known.children.values()), *map(_of_timer, known.timers.values())]
    outcomes: dict[int, Outcome] = {
        row.n: outcome_of(id, "", row, ops.get(row.n, "")) for row in rows if row.ended_at
    }
    signals = [
        Signal(mailed.id, mailed.name, None, mailed.received_at / 1e6) for mailed in known.mail
    ]
    return Machine(
        one.snapshot,
        Inputs("", "", ctx={"id": id}, outcomes=outcomes, signals=signals),
        DEFAULT_LIMITS,
    )


def _of_child(child: Child) -> ChildOutcome:
    n = int(child.id.rpartition(".")[2])
    return ChildOutcome(
        n,
        child.status,
        NO_PAYLOAD.get(child.status, "null"),
        child.finished_at or 0,
        child.type,
        child.name,
    )


def _of_timer(timer: Timer) -> ChildOutcome:
    ended_at = timer.fired_at or timer.cancelled_at or 0
    if timer.status is not None:
        return ChildOutcome(timer.n, timer.status, NO_EVENT, ended_at, EVENT, "")
    return ChildOutcome(
        timer.n, COMPLETED if timer.fired_at is not None else CANCELLED, "null", ended_at, None, ""
    )


# health


def advice(health: Health, clock_us: int) -> list[str]:
    """Returns what an operator should know, though it breaks no rule.

    `clock_us` is the time on this machine.
    """
    return [
        *_of_queues(health),
        *_of_workers(health),
        *_of_database(health),
        *_of_clocks(health, clock_us),
    ]


def _of_queues(health: Health) -> Iterator[str]:
    for queue in health.queues:
        waited_s = (health.now - queue.oldest_at) / 1e6 if queue.oldest_at is not None else 0.0
        if queue.paused_at is not None and queue.ready + queue.delayed:
            by = f" by {queue.paused_by}" if queue.paused_by else ""
            since = f"it was paused{by} {show_s((health.now - queue.paused_at) / 1e6)} ago"
            why = f" ({queue.paused_reason})" if queue.paused_reason else ""
            yield (
                f"queue {queue.name}: {queue.ready + queue.delayed:,} wait; {since}{why}, and "
                f"nobody takes any until it is resumed"
            )
        elif waited_s >= UNCLAIMED_S:
            yield (
                f"queue {queue.name}: {queue.ready:,} ready, the oldest for "
                f"{show_s(waited_s)}; {_why_unclaimed(queue)}"
            )
        if queue.expired:
            yield (
                f"queue {queue.name}: {queue.expired:,} claims have expired; their workers "
                f"are gone, and a running worker takes them back"
            )


def _why_unclaimed(queue: Queue) -> str:
    if queue.claimed > queue.expired:
        return "its workers are busy: start more of them"
    if queue.workers:
        return "workers serve it, and claim none: look at their logs"
    return "no worker claims any: is one running that serves it?"


def _of_workers(health: Health) -> Iterator[str]:
    for silent in health.silent:
        claims = f"worker {silent.worker} has {silent.claims:,} claims"
        if silent.beat_at is None:
            yield (
                f"{claims}, and no heartbeat: they are taken back when they expire; is it of "
                f"an older Rhythm?"
            )
        else:
            yield (
                f"{claims}, and was last heard of {show_s((health.now - silent.beat_at) / 1e6)} "
                "ago; a running worker takes them back"
            )


def _of_database(health: Health) -> Iterator[str]:
    if health.transaction_s is not None and health.transaction_s >= TRANSACTION_S:
        yield (
            f"a transaction has been open for {show_s(health.transaction_s)}; vacuum waits "
            f"for it: see pg_stat_activity, and end it"
        )
    for table, live, dead in health.dead_rows:
        if dead > max(live, DEAD_ROWS):
            yield (
                f"table {table} has {dead:,} dead rows and {live:,} live ones: is autovacuum "
                f"on, or held up by an old transaction?"
            )
    if health.notifications is not None and health.notifications > NOTIFICATIONS:
        yield (
            f"the notification queue is {health.notifications:.0%} full: a session listens "
            f"and does not read; see pg_stat_activity"
        )


def _of_clocks(health: Health, clock_us: int) -> Iterator[str]:
    apart_s = (health.now - clock_us) / 1e6
    if health.server and abs(apart_s) > CLOCKS_S:
        way = "ahead of" if apart_s > 0 else "behind"
        yield (
            f"the clock of the database is {show_s(abs(apart_s))} {way} that of this machine: "
            f"do both follow the same time server?"
        )


def show_s(seconds: float) -> str:
    """Returns a length of time as text, in its largest unit."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
