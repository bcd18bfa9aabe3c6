"""The background work of a process, on one loop: what must happen by itself.

Timers fire, schedules start workflows, expired claims are taken back, parked workflows that could
go on are woken, and what ended long ago is deleted.

A service does one bounded pass (`run_once`), and says when the next one is due. A service that
fails is tried again, and stops no other. The sweeper, the pruner and the deletion of old events and
lines are for one process at a time, so they ask for a lease. Timers, schedules and rescue are
correct with any number of processes, and never depend on a lease.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar

from rhythm.engine import schedules
from rhythm.engine.inputs import needed
from rhythm.engine.payload import load
from rhythm.engine.recheck import could_go_on, snapshot_of, timers_of
from rhythm.errors import InvalidProgram, StoreError, UnknownWorkflow
from rhythm.ids import encode_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import TERMINAL
from rhythm.store.schedules import Fire, Firing
from rhythm.worker.heartbeat import Heartbeat
from rhythm.worker.loading import Programs

# Between two polls for timers while workflows go on here, which may set earlier ones.
MIN_POLL_INTERVAL_S = 0.01
# Before the next try, when a timer is due here but not yet in the database: our clock is ahead.
SKEW_S = 0.05
BETWEEN_BATCHES_S = 1.0  # between two batches of the sweeper or the pruner
# A service that only polls may run early by this part of its rest, together with others, so that an
# idle process wakes up once for all of them.
TOGETHER = 0.19
LONGEST_REST_S = 5.0  # longest backoff of a service that fails
MAX_NAMED_IDS = 3  # executions that a log line names; the rest is counted
STARTS_AT_ONCE = 200  # executions that schedules start in one transaction
UNREADABLE = "unreadable"  # in place of a program that this process cannot read; another may

Counts = Mapping[str, int]
# Name of the log event, the id or name of what it happened to, detail.
Observer = Callable[[str, str, str], None]


class ServiceSettings(Record):
    """How often the services of a process run, and how much they do at once."""

    batch: int = 100
    crash_limit: int = 3
    timer_poll_s: float = 2.0  # poll interval, for timers that other processes have set
    rescue_every_s: float = 5.0
    sweep_every_s: float = 300.0
    sweep_batch: int = 500
    # Poll interval if no slot is due before. The rescuer finds new schedules of others sooner.
    schedules_every_s: float = 300.0
    prune_every_s: float = 600.0
    retention_s: float | None = None  # how long ended executions are kept; None: for ever
    # How long events are kept for workflows that will wait for them; None: for ever.
    event_retention_s: float | None = None
    log_retention_s: float | None = None  # the same for lines of logs


class ServiceHealth(Record):
    """How a service is doing.

    `succeeded_at` is on the process's own clock; None if it has never succeeded.
    """

    succeeded_at: float | None = None
    failures: int = 0  # failed passes in a row
    problem: str = ""


class Service:
    """One service: `run_once` does a pass, `rest_s` says how long to rest after it."""

    name: ClassVar[str]
    every_s: float
    leased = False

    def run_once(self, now: float) -> Counts:
        """Does one bounded pass; returns how much it did, by kind."""
        raise NotImplementedError

    def rest_s(self, counts: Counts) -> float:
        """Returns the seconds until the next pass, after one that did this much."""
        return self.every_s


class Timers(Service):
    """Fires the timers that are due, and rests until the next one. `late`: see `Services`."""

    name = "timers"

    def __init__(
        self,
        store: Store,
        settings: ServiceSettings,
        clock_us: Callable[[], int],
        late: Callable[[float], None] | None = None,
    ) -> None:
        self.store = store
        self.batch = settings.batch
        self.every_s = settings.timer_poll_s
        self.clock_us = clock_us
        self.late = late
        self.due_us: int | None = None

    def run_once(self, now: float) -> Counts:
        fired, self.due_us = self.store.maintenance.fire_timers(self.batch, self.late)
        return {"fired": fired}

    def rest_s(self, counts: Counts) -> float:
        if counts["fired"] or self.due_us is None:
            return 0.0 if counts["fired"] else self.every_s
        wait_s = (self.due_us - self.clock_us()) / 1e6
        return min(wait_s, self.every_s) if wait_s > 0 else SKEW_S


class Scheduler(Service):
    """Starts what is due by schedules, and rests until the next slot.

    A slot is one row, so any number of processes may try.
    """

    name = "schedules"

    def __init__(
        self,
        store: Store,
        settings: ServiceSettings,
        programs: Programs,
        clock_us: Callable[[], int],
        observe: Observer,
    ) -> None:
        self.store, self.programs, self.clock_us, self.observe = store, programs, clock_us, observe
        self.batch, self.every_s, self.next_s = settings.batch, settings.schedules_every_s, 0.0
        # Schedules that this process cannot fire, and why. They must not keep it from the others.
        self.unable: dict[str, str] = {}
        self._reported: set[tuple[str, str]] = set()

    def run_once(self, now: float) -> Counts:
        names, next_s = self.store.schedules.due(self.batch, list(self.unable))
        fires, again = self._fire(names) if names else ([], [])
        for fire in fires:
            if fire.outcome == "missed":
                self.observe("schedule_missed", fire.schedule, schedules.said(fire))
            elif fire.outcome == "failed":
                self.observe("schedule_failed", fire.schedule, schedules.said(fire))
        self._report_unable()
        if len(names) < self.batch:
            self.unable = {}
        # A schedule that was fired has its next slot now, which may be due too.
        soon = bool(fires) or len(names) == self.batch
        # A schedule that was changed, or fired by another process, meanwhile may still be due.
        rest_s = SKEW_S if again else self.every_s
        self.next_s = 0.0 if soon else rest_s if next_s is None else min(next_s, rest_s)
        return {
            "started": sum(fire.outcome == "started" for fire in fires),
            "others": sum(fire.outcome != "started" for fire in fires),
        }

    def rest_s(self, counts: Counts) -> float:
        return self.next_s

    def _fire(self, names: Sequence[str]) -> tuple[list[Fire], list[str]]:
        """Returns what became of the slots of these schedules, and which must be tried again.

        What to do is worked out here, however long that takes; no transaction is open meanwhile.
        """
        due = self.store.schedules.load_due(names)
        programs = {
            each.schedule.name: self._program(each.schedule.name, each.schedule.workflow)
            for each in due
        }
        known = [each for each in due if programs[each.schedule.name] is not UNREADABLE]
        firings = schedules.plan(known, programs, self._new_id, self.unable)
        done = [self._write(some) for some in _parts(firings)]
        return [fire for fires, _ in done for fire in fires], [
            name for _, again in done for name in again
        ]

    def _write(self, firings: Sequence[Firing]) -> tuple[list[Fire], list[str]]:
        """Writes all firings in one transaction; if one cannot be written, each in its own."""
        try:
            return self.store.schedules.fire(firings)
        except StoreError:
            raise
        except Exception as problem:
            if len(firings) > 1:
                done = [self._write([firing]) for firing in firings]
                return [fire for fires, _ in done for fire in fires], [
                    name for _, again in done for name in again
                ]
            self.unable[firings[0].name] = str(problem)
            return [], []

    def _program(self, name: str, workflow: str) -> Program | str | None:
        """Returns the current program of a schedule's workflow.

        None if there is no such workflow, and `UNREADABLE` if this process cannot read it.
        """
        try:
            return self.programs(workflow, None)
        except UnknownWorkflow:
            return None
        except InvalidProgram as problem:
            self.unable[name] = str(problem)
            return UNREADABLE

    def _report_unable(self) -> None:
        """Reports each schedule that this process cannot fire, once for each reason."""
        for name, why in self.unable.items() - self._reported:
            self.observe("schedule_stuck", name, why)
        self._reported |= {*self.unable.items()}

    def _new_id(self) -> str:
        return encode_id(self.clock_us() // 1000, secrets.randbits(80))


def _parts(firings: Sequence[Firing]) -> Iterator[list[Firing]]:
    """Yields the firings in parts, so that no transaction starts very many executions."""
    part: list[Firing] = []
    for firing in firings:
        if part and sum(len(each.fires) for each in part) + len(firing.fires) > STARTS_AT_ONCE:
            yield part
            part = []
        part.append(firing)
    if part:
        yield part


class Rescuer(Service):
    """Takes back claims that are not extended, and ends what nobody ends otherwise.

    That is cancelled tasks that no worker holds, and what is left of families that were terminated.
    """

    name = "rescue"

    def __init__(
        self,
        store: Store,
        settings: ServiceSettings,
        heart: Heartbeat | None,
        observe: Observer | None = None,
    ) -> None:
        """`heart`: the heartbeats of the worker in this process, if there is one.

        After an outage of the database, no worker must be blamed for heartbeats that none could
        send.
        """
        self.observe, self.heart = observe or _say_nothing, heart
        self.store, self.batch, self.crash_limit = store, settings.batch, settings.crash_limit
        self.every_s, self.slot_s = settings.rescue_every_s, inf

    def run_once(self, now: float) -> Counts:
        if self.heart is not None and not self.heart.settled():
            return {"rescued": 0, "ended": 0, "terminated": 0}
        steady = self.heart is None or self.heart.steady()
        done = self.store.recover(self.batch, self.crash_limit, steady)
        self.slot_s = inf if done.slot_us is None else max(done.slot_us / 1e6, 0.0)
        if done.rescued:
            self._report(done.rescued)
        return {
            "rescued": len(done.rescued),
            "ended": len(done.ended),
            "terminated": len(done.terminated),
        }

    def _report(self, ids: Sequence[str]) -> None:
        """Reports the executions that were taken back, and those that failed by it."""
        some = ", ".join(ids[:MAX_NAMED_IDS]) + (
            f" and {len(ids) - MAX_NAMED_IDS:,} more" if len(ids) > MAX_NAMED_IDS else ""
        )
        self.observe(
            "executions_rescued", "", f"{len(ids):,} taken back from workers that are gone: {some}"
        )
        for id, row in self.store.reading.get(ids).items():
            if row.error is not None and (error := load(row.error))["code"] == "Crashed":
                self.observe("execution_quarantined", id, f"{row.name}: {error['message']}")

    def rest_s(self, counts: Counts) -> float:
        return 0.0 if self.batch in counts.values() or counts["terminated"] else self.every_s


class Sweeper(Service):
    """Checks parked workflows, batch by batch, and wakes those that could go on.

    Each of those is a bug, and is reported as one.
    """

    name, leased = "sweeper", True

    def __init__(
        self, store: Store, settings: ServiceSettings, programs: Programs, observe: Observer
    ) -> None:
        self.store, self.programs, self.observe = store, programs, observe
        self.batch, self.every_s = settings.sweep_batch, settings.sweep_every_s
        self.after = ""  # the id after which the next batch begins

    def run_once(self, now: float) -> Counts:
        ids = self.store.maintenance.parked(self.after, self.batch)
        self.after = ids[-1] if len(ids) == self.batch else ""
        woken = self._recheck(ids) if ids else []
        for id in woken:
            self.observe("bug", id, "it slept although it could go on; it was woken")
        return {"woken": len(woken)}

    def rest_s(self, counts: Counts) -> float:
        return BETWEEN_BATCHES_S if self.after else self.every_s

    def _recheck(self, ids: list[str]) -> list[str]:
        """Wakes those of these workflows that could go on, and returns their ids."""
        rows = {
            row.id: row
            for row in self.store.turns.load(ids)
            if row.status < TERMINAL and not row.paused
        }
        parked = {
            id: snapshot for id, row in rows.items() if (snapshot := snapshot_of(row)) is not None
        }
        outcomes = self.store.turns.outcomes(
            [needed(id, snapshot) for id, snapshot in parked.items()]
        )
        mail = self.store.messages.mail(list(parked))
        awaited = [(id, n) for id, snapshot in parked.items() for n in timers_of(snapshot.awaiting)]
        gone = self.store.maintenance.without_rows(awaited) if awaited else []
        stuck = {id: rows[id].seq for id, _ in gone}
        for id, snapshot in parked.items():
            program = self.programs(rows[id].name, rows[id].version)
            if program and could_go_on(
                rows[id], program, snapshot, outcomes.get(id, ()), mail.get(id, ())
            ):
                stuck[id] = rows[id].seq
        return self.store.maintenance.mend(stuck, gone) if stuck else []


class Pruner(Service):
    """Deletes executions that ended longer ago than the retention."""

    name, leased = "pruner", True

    def __init__(self, store: Store, settings: ServiceSettings, retention_s: float) -> None:
        self.store = store
        self.batch = settings.batch
        self.every_s = settings.prune_every_s
        self.retention_s = retention_s

    def run_once(self, now: float) -> Counts:
        return {"pruned": self.store.maintenance.prune(self.retention_s, self.batch)}

    def rest_s(self, counts: Counts) -> float:
        return BETWEEN_BATCHES_S if counts["pruned"] == self.batch else self.every_s


class Forgetter(Service):
    """Deletes events that are older than the retention."""

    name, leased = "events", True

    def __init__(self, store: Store, settings: ServiceSettings, retention_s: float) -> None:
        self.store = store
        self.batch = settings.batch
        self.every_s = settings.prune_every_s
        self.retention_s = retention_s

    def run_once(self, now: float) -> Counts:
        return {"forgotten": self.store.maintenance.prune_events(self.retention_s, self.batch)}

    def rest_s(self, counts: Counts) -> float:
        return BETWEEN_BATCHES_S if counts["forgotten"] == self.batch else self.every_s


class LogPruner(Service):
    """Deletes lines of logs that are older than the retention."""

    name, leased = "logs", True

    def __init__(self, store: Store, settings: ServiceSettings, retention_s: float) -> None:
        self.store = store
        self.batch = settings.batch
        self.every_s = settings.prune_every_s
        self.retention_s = retention_s

    def run_once(self, now: float) -> Counts:
        return {"pruned": self.store.logs.prune_lines(self.retention_s, self.batch)}

    def rest_s(self, counts: Counts) -> float:
        # A pass may end after few roots, if they have many lines.
        return BETWEEN_BATCHES_S if counts["pruned"] else self.every_s


class Services:
    """The services of one process. `run` does what is due, and says when to call it again.

    Without `programs` there is no sweeper and no scheduler.
    """

    def __init__(
        self,
        store: Store,
        settings: ServiceSettings,
        now: Callable[[], float],
        clock_us: Callable[[], int],
        programs: Programs | None = None,
        observe: Observer | None = None,
        holder: str | None = None,
        heart: Heartbeat | None = None,
        late: Callable[[float], None] | None = None,
    ) -> None:
        """`heart`: the heartbeats of the worker in the same process, if there is one.

        `late` is called for each timer that has fired, with the seconds by which it was late.
        `holder` is the name for leases.
        """
        self.store = store
        self.now = now
        self.observe = observe or _say_nothing
        self.holder = holder or secrets.token_hex(6)
        self.services: list[Service] = [
            Timers(store, settings, clock_us, late),
            Rescuer(store, settings, heart, self.observe),
        ]
        if programs is not None:
            self.services.append(Sweeper(store, settings, programs, self.observe))
            self.services.append(Scheduler(store, settings, programs, clock_us, self.observe))
        if settings.retention_s is not None:
            self.services.append(Pruner(store, settings, settings.retention_s))
        if settings.event_retention_s is not None:
            self.services.append(Forgetter(store, settings, settings.event_retention_s))
        if settings.log_retention_s is not None:
            self.services.append(LogPruner(store, settings, settings.log_retention_s))
        self.health = {service.name: ServiceHealth() for service in self.services}
        self._next = {service.name: now() for service in self.services}
        self._early_s = dict.fromkeys(self._next, 0.0)
        self._polled = now() - MIN_POLL_INTERVAL_S  # when timers were last polled
        self._changed = threading.Condition()
        self._expected = inf  # when a timer that was set in this process is due

    def run(self, busy: bool = True) -> tuple[bool, float]:
        """Runs the services that are due; returns whether they did anything, and seconds to rest.

        `busy`: a workflow that ran here may have set a timer since the last call.
        """
        if busy:
            self._next["timers"] = min(self._next["timers"], self._polled + MIN_POLL_INTERVAL_S)
        did = [self._pass(service) for service in self.services if self._is_due(service.name)]
        return any(did), self.wait_s(*self._next)

    def wait_s(self, *names: str) -> float:
        """Returns the seconds until one of these services is due."""
        due = min(self._next[name] for name in names)
        return max(0.0, (min(due, self._expected) if "timers" in names else due) - self.now())

    def expect(self, delay_s: float) -> None:
        """Notes that something is due for the timers in so many seconds. For any thread."""
        with self._changed:
            due = max(self.now() + delay_s, self._polled + MIN_POLL_INTERVAL_S)
            if due < self._expected:
                self._expected = due
                self._changed.notify_all()

    def run_until(self, stopped: Callable[[], bool], did: Callable[[], object]) -> None:
        """Runs what is due, in a thread of its own, until `stopped` says so and `wake` was called.

        `did` is called after each round that did anything.
        """
        while not stopped():
            busy, _ = self.run(busy=False)
            if busy:
                did()
            with self._changed:
                if not stopped():
                    self._changed.wait(self.wait_s(*self._next))

    def wake(self) -> None:
        """Ends the wait of `run_until`."""
        with self._changed:
            self._changed.notify_all()

    def _is_due(self, name: str) -> bool:
        now = self.now()
        expected = name == "timers" and now >= self._expected
        return expected or now >= self._next[name] - self._early_s[name]

    def _pass(self, service: Service) -> bool:
        """Runs one pass of a service, and plans the next; returns whether it did anything."""
        now = self.now()
        if service.name == "timers":
            self._polled = now
            with self._changed:
                # The pass asks the database for the next one. What is set meanwhile counts anew.
                self._expected = inf
        try:
            counts = service.run_once(now) if self._may(service) else {}
            rest_s = service.rest_s(counts) if counts else service.every_s
        except Exception as problem:  # the other services go on
            return self._failed(service, now, problem)
        if failures := self.health[service.name].failures:
            self.observe(
                "service_recovered",
                service.name,
                f"after {failures} {'failure' if failures == 1 else 'failures'}",
            )
        self.health[service.name] = ServiceHealth(now)
        self._next[service.name] = now + rest_s
        if isinstance(service, Rescuer) and "schedules" in self._next:
            self._next["schedules"] = min(self._next["schedules"], now + service.slot_s)
        self._early_s[service.name] = TOGETHER * rest_s if rest_s >= service.every_s else 0.0
        return any(counts.values())

    def _may(self, service: Service) -> bool:
        """Returns whether the service needs no lease, or has got it."""
        return not service.leased or self.store.workers.lease(
            service.name, self.holder, 2 * service.every_s
        )

    def close(self) -> None:
        """Gives up the leases, so that other processes need not wait for them to expire."""
        for service in self.services:
            if service.leased:
                self.store.workers.lease(service.name, self.holder, 0.0)

    def _failed(self, service: Service, now: float, problem: Exception) -> bool:
        """Reports a pass that failed, and plans the next one, later after each failure."""
        before = self.health[service.name]
        self.health[service.name] = before.replace(
            failures=before.failures + 1, problem=str(problem)
        )
        self._next[service.name] = now + min(0.1 * 2 ** min(before.failures, 10), LONGEST_REST_S)
        self.observe("service_failed", service.name, str(problem))
        return False


def _say_nothing(what: str, id: str, detail: str) -> None: ...
