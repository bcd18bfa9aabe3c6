"""A seeded simulation of several workers with faults: the real worker, a real store (SQLite in
memory, or PostgreSQL), virtual time.

A step of a worker is not atomic here: before and after every store call the other actors may run
(other workers, services, clients, the clock), so that every interleaving of transactions can come
up. `python -m tests.engine.simulation SEEDS [FIRST] [--database sqlite|postgres]`.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rhythm.engine.definitions import definition_of
from rhythm.engine.doctor import examine
from rhythm.errors import StoreError, TaskFailed
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.interfaces.executions import Execution, NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Committed
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.verdicts import BY_FORCE
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, ended_by
from rhythm.worker.handlers import Task
from rhythm.worker.loop import Worker
from rhythm.worker.narration import Narrator
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.settings import WorkerSettings
from tests.engine.driver import Clock, Crashed, VirtualHandlers
from tests.engine.simulated_programs import FIXED, POISON, POISONED
from tests.support.around import Around
from tests.support.full_way import FULL_WAY, take_full_way
from tests.support.generate import program as generated
from tests.support.postgres import Schemas, server
from tests.support.reference import Expected
from tests.support.stores import MakeStore, rob, rows, sqlite_in_memory

TTL_S = 30.0
ACTS = 250  # with faults, of one seed; then everything must come to its end
ROUNDS = 5_000  # without faults
LATE_S = 1e6  # nothing is late while there are faults
DEPTH = 3  # actors inside the store calls of others
FAULTS = (
    "crash", "freeze", "stall", "jump", "lost answer", "failed call", "late commit", "late handler",
    "long handler", "drain", "stop",
    "pause", "cancel",
)  # fmt: skip
# drawn apart, so that older seeds stay what they are
MORE_FAULTS = ("poison", "dead worker", "noise", "prune", "terminate")
# seeds with these of MORE_FAULTS; of the others, half of all
RARE = {"poison": 0.2, "terminate": 0.2}
KILLED = 100  # workers by poison: far more than all the limits together allow
CRASH_LIMIT = 3  # where there is poison; elsewhere no crash counts
# faults after which a body may run again
AWAY = {"crash", "freeze", "stall", "jump", "drain", "stop"}

# What the database itself refuses, whoever writes: each is a violation, raised where it happens.
RULES = (
    ("ended_stays", "UPDATE ON executions",
        "OLD.status >= 5 AND (NEW.status <> OLD.status OR coalesce(NEW.result, '') <> "
     "coalesce(OLD.result, '') OR coalesce(NEW.error, '') <> coalesce(OLD.error, ''))",
     "an outcome was changed"),
    ("fence_grows", "UPDATE ON workflow_execution_context",
        "NEW.fence < OLD.fence OR NEW.seq NOT BETWEEN OLD.seq AND OLD.seq + 1",
     "a fence went back, or a turn was left out"),
    ("only_the_owner", "UPDATE OF owned ON workflow_execution_context",
        "NOT EXISTS (SELECT 1 FROM ready WHERE id = NEW.execution_id AND fence = NEW.fence)",
        "a turn was committed by one who does not hold the claim"),
    ("ended_leaves_the_queue", "UPDATE OF status ON executions",
        "NEW.status >= 5 AND OLD.status < 5 AND NEW.type = 1 AND EXISTS (SELECT 1 FROM ready WHERE "
     "id = NEW.id)", "a task ended under a claim that was not its own"),
    ("consumed_once", "UPDATE OF consumed_seq ON workflow_signals", "OLD.consumed_seq IS NOT NULL",
        "a signal was consumed twice"),
)  # fmt: skip
TABLES = (
    "ready",
    "executions",
    "workflow_execution_context",
    "history",
    "timer_tasks",
    "workflow_signals",
)


def lay_down_rules(store: Store) -> None:
    for name, event, broken, message in RULES:
        if isinstance(store, PostgresStore):
            body = f"BEGIN IF {broken} THEN RAISE EXCEPTION '{message}'; END IF; RETURN NEW; END"
            rows(
                store,
                (
                    f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
                    f"$${body}$$"
                ),
            )
            rows(
                store,
                (
                    f"CREATE OR REPLACE TRIGGER {name} BEFORE {event} FOR EACH ROW EXECUTE "
                    f"FUNCTION {name}()"
                ),
            )
        else:
            rows(
                store,
                (
                    f"CREATE TRIGGER {name} BEFORE {event} WHEN {broken} BEGIN SELECT "
                    f"RAISE(ABORT, '{message}'); END"
                ),
            )


class Violation(AssertionError):
    """A rule of the protocol was broken."""


class Case(NamedTuple):
    text: str
    expected: Expected
    signals: tuple[tuple[str, Any], ...] = ()
    loose: bool = False  # the result is the same if some of its descendants are cancelled


class Report(NamedTuple):
    """What became of one seed: nothing wrong if `problem` is empty."""

    seed: int
    problem: str
    finished: bool
    met: Counter[str]
    acts: int


def case_of(seed: int, chance: random.Random) -> Case:
    if seed % 16 in (3, 10):  # none of the seeds that once found an error
        return Case(*generated(chance, looks=True))
    if seed % 4 == 0:
        text, result, signals = FIXED[seed // 4 % len(FIXED)]
        return Case(text, Expected("completed", result), signals, loose="settle" in text)
    return Case(*generated(chance))


class Handlers(VirtualHandlers):
    """Handlers last as long as chance wants. One that is given up may not notice, and answer all
    the same."""

    def __init__(self, sim: Simulation, process: Virtual, worker: str) -> None:
        super().__init__(sim.clock)
        self.sim, self.process, self.worker = sim, process, worker
        self.begun: dict[str, tuple[float, int, Callable[[], None]]] = {}

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        self.sim.body_begins(self.worker, current.id)
        if self.begun.get(current.id) in self.agenda:
            raise Violation(
                f"a second body of {current.id} began on {self.worker} beside the first"
            )
        self.order += 1

        def run() -> None:
            if task.name == "poison":
                return self.sim.kill(self.process, "poisonous task")
            return report(ended_by(task, lambda: task.function(**(inputs or {}))))

        entry = (self.clock.now() + self.sim.duration(), self.order, run)
        heapq.heappush(self.agenda, entry)
        self.begun[current.id] = entry
        return lambda: self._give_up(current.id, entry)

    def is_quick(self, task: Task[..., Any]) -> bool:
        """Some workers begin a task before its turn is committed, however long it then takes."""
        return self.process.number % 3 != 0

    def _give_up(self, id: str, entry: tuple[float, int, Callable[[], None]]) -> None:
        self.begun.pop(id, None)
        if entry in self.agenda and not self.sim.strikes("late handler", 0.5):
            self.agenda.remove(entry)
            heapq.heapify(self.agenda)


class Virtual:
    """A worker's process."""

    def __init__(self, sim: Simulation, number: int, generation: int) -> None:
        self.sim, self.number = sim, number
        self.dead = self.busy = False
        self.frozen_until = 0.0
        name = f"w{number}.{generation}"
        self.handlers = Handlers(sim, self, name)
        self.worker = Worker(
            Interleaved(sim, self),  # type: ignore[arg-type]  # it passes every call on to a store
            self.program,
            sim.tasks_of(number),
            self.handlers,
            name,
            sim.settings,
            now=sim.clock.now,
            rng=random.Random(f"{sim.seed}.{number}.{generation}"),
            narrator=Narrator(self._saw),
            sleep=lambda seconds: None,
            commits_apart=number % 2 == 1,  # some decide while a commit is under way
        )

    def program(self, name: str, version: str | None) -> Program | None:
        """A turn of the workflow `poison` kills its worker; starting one does not (no version is
        asked for)."""
        if name == "poison" and version is not None:
            self.sim.kill(self, "poisonous turn")
            raise Crashed
        return self.sim.program(name, version)

    def _saw(self, what: str, id: str, detail: str) -> None:
        """A worker outlives its bugs, and what `body_begins` finds is one to it; here there are to
        be none."""
        self.sim.met[f"seen: {what}"] += 1
        if what == "bug":
            self.sim.wrong.append(detail)

    def can_step(self) -> bool:
        return not self.busy and self.frozen_until <= self.sim.clock.now()

    def act(self, what: Callable[[], Any]) -> bool:
        """Does something as this process, which may die of it."""
        self.busy = True
        try:
            return bool(what())
        except Crashed:
            return True
        finally:
            self.busy = False


class Interleaved(Around):
    """The store as one process sees it: others act around each call, and calls go wrong."""

    def __init__(self, sim: Simulation, actor: Virtual | None) -> None:
        super().__init__(sim.inner, self._interleaved)
        self._sim, self._actor = sim, actor

    def _interleaved(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            sim = self._sim
            self._others()
            if sim.strikes("failed call", 0.01):
                raise StoreError(f"no connection for {name}")
            if name == "commit" and sim.strikes("late commit", 0.03):
                sim.later.append(lambda: method(*args, **kwargs))
                sim.note_unanswered(name, args)
                raise StoreError("no answer yet from commit")
            answer = method(*args, **kwargs)
            if name == "begin_commit" and answer is not None:
                return self._under_way(answer(), args)
            sim.note(name, args, answer)
            self._others()
            if sim.strikes("lost answer", 0.02):
                sim.note_unanswered(name, args)
                raise StoreError(f"no answer from {name}")
            return answer

        return call

    def _under_way(self, committed: list[Committed], args: Any) -> Callable[[], list[Committed]]:
        """A commit that was sent, and that the server has made: what waits for its answer.

        Whoever sent it decides on, others act, and the answer may be lost.
        """
        sim = self._sim
        sim.met["under way"] += 1
        sim.note("commit", args, (committed,))

        def answer() -> list[Committed]:
            self._others()
            if sim.strikes("lost answer", 0.1):
                sim.met["answer lost under way"] += 1
                sim.note_unanswered("commit", args)
                raise StoreError("no answer from begin_commit")
            return committed

        self._others()
        return answer

    def _others(self) -> None:
        self._sim.interleave()
        if self._actor and self._actor.dead:
            raise Crashed


class Simulation:
    """One seed: a database, three processes, services, clients, and chance."""

    def __init__(
        self, seed: int, make_store: MakeStore = sqlite_in_memory, more: bool = True
    ) -> None:
        """`more`: with MORE_FAULTS."""
        self.seed, self.chance = seed, random.Random(seed)
        self.case = case_of(seed, self.chance)
        self.clock = Clock()
        self.inner = make_store(self.clock.us)
        lay_down_rules(self.inner)
        self.met: Counter[str] = Counter()
        self.faulty, self.depth, self.acts = True, 0, 0
        self.on = {
            fault for fault in FAULTS if self.chance.random() < (0.15 if fault == "cancel" else 0.5)
        }
        self.on -= AWAY if seed % 5 == 1 else set()
        self.more = random.Random(f"more {seed}")
        self.on |= {
            fault for fault in MORE_FAULTS if more and self.more.random() < RARE.get(fault, 0.5)
        }
        if "poison" in self.on:
            self.case = Case(POISON, Expected("completed", POISONED))
            self.met["poison"] += 1
        self.crash_limit = CRASH_LIMIT if "poison" in self.on else 1000
        self.gone: list[str] = []  # names of workers that have died
        self.given_back: set[str] = set()  # by their owners, and not claimed since
        self.pruned: dict[str, Execution] = {}
        self.often, self.often_others = (
            self.chance.choice((1, 1, 3)),
            self.chance.choice((0.05, 0.15, 0.4)),
        )
        self.later: list[Callable[[], Any]] = []
        self.roots = ["a", "b", "c"][: self.chance.choice((1, 1, 2, 3))]
        self.cancelled: set[str] = set()  # asked for and acknowledged
        self.terminated: set[str] = set()  # of these, the ones that were to end at once
        self.signals = [
            NewSignal(f"{root}{i}", root, name, json.dumps(payload))
            for i, (name, payload) in enumerate(self.case.signals)
            for root in self.roots
        ]
        self.bodies: Counter[str] = Counter()
        self.tries: Counter[str] = Counter()
        self.settings = WorkerSettings(
            claim_ttl_s=TTL_S,
            dead_after_s=self.more.choice((12.0, TTL_S, 1e9)),
            margin_s=1.0,
            crash_limit=self.crash_limit,
            missing_task_grace_s=1e9,
            owner_run=self.chance.random() < 0.7,
            concurrency=self.chance.choice((1, 2, 100)),
            batch=self.chance.choice((1, 3, 100)),
            min_group=1,
        )
        self.tasks = {task.name: task for task in self._tasks()}
        self._start()
        self.generation = 0
        self.workers = [self._boot(number) for number in range(3)]
        self.wrong: list[str] = []
        self.paused: dict[str, int] = {}  # and how many turns they have taken since
        self.services = [self._service() for _ in range(2)]

    def _start(self) -> None:
        programs = compile_flow(self.case.text, "main.flow").programs_or_raise()
        self.programs: dict[str, Program] = {p.name: p for p in programs}
        self.inner.definitions.register([definition_of(p, self.case.text) for p in programs])
        first = programs[0]
        self.inner.executions.start(
            [
                NewExecution(root, WORKFLOW, first.name, "default", "null", first.version)
                for root in self.roots
            ]
        )

    def program(self, name: str, version: str | None) -> Program | None:
        return self.programs.get(name)

    def _boot(self, number: int) -> Virtual:
        self.generation += 1
        return Virtual(self, number, self.generation)

    def tasks_of(self, number: int) -> dict[str, Task[..., Any]]:
        """The last worker lacks a task in some seeds: it must leave that to the others."""
        return {
            name: task
            for name, task in self.tasks.items()
            if name != "double" or number < 2 or self.seed % 3
        }

    def _service(self) -> Services:
        settings = ServiceSettings(
            crash_limit=self.crash_limit,
            batch=self.chance.choice((1, 100)),
            timer_poll_s=1e6,
            sweep_every_s=7.0,
            sweep_batch=2,
        )
        store, holder = Interleaved(self, None), f"services {self.chance.random()}"
        return Services(
            store, settings, self.clock.now, self.clock.us, self.program, self._saw, holder
        )  # type: ignore[arg-type]

    def _saw(self, what: str, id: str, detail: str) -> None:
        """Services outlive whatever goes wrong in one of them; here it must be a lost answer, and
        the sweep must find nothing."""
        self.met[f"seen: {what}"] += 1
        expected = what in ("executions_rescued", "execution_quarantined", "service_recovered")
        if not expected and (
            what == "bug" or not detail.startswith(("no answer", "no connection"))
        ):
            self.wrong.append(f"{what}, {id}: {detail}")

    # chance

    def strikes(self, fault: str, probability: float) -> bool:
        """Whether a fault happens now."""
        struck = (
            self.faulty and fault in self.on and self.chance.random() < probability * self.often
        )
        self.met[fault] += struck
        return struck

    def _also(self, fault: str, probability: float) -> bool:
        """Whether one of MORE_FAULTS happens now."""
        struck = self.faulty and fault in self.on and self.more.random() < probability
        self.met[fault] += struck
        return struck

    def _pause(self, id: str, paused: bool) -> None:
        done = self.inner.people.pause([id]) if paused else self.inner.people.resume([id])
        if done.get(id) and paused:
            self.paused.setdefault(id, 0)
        else:
            self.paused.pop(id, None)

    def _note_turn(self, id: str) -> None:
        """A turn that was being computed when the pause came is committed; another is not begun,
        unless it is to end."""
        self.paused[id] += 1
        ending = (
            f"SELECT 1 FROM executions WHERE id = '{id}' AND (cancel_requested_at IS NOT NULL "
            f"OR timed_out_at IS NOT NULL)"
        )
        if self.paused[id] > 1 and not self._rows(ending):
            self.wrong.append(f"{id} takes turns although it is paused")

    def note_unanswered(self, name: str, args: Any) -> None:
        self.met["promotion without an answer"] += name == "commit" and any(
            turn.promoted for turn in args[0]
        )
        self.met["claim without an answer"] += name == "claim"

    def note(self, name: str, args: Any, answer: Any) -> None:
        if name == "recover":
            self.met["rescued"] += len(answer.rescued)
        if name == "release":
            self.given_back |= set(args[0])
        if name == "commit":
            self.given_back |= {turn.id for turn in args[0] if turn.end == "yield"}
        if name == "claim":
            taken = self.given_back & {claim.id for claim in answer}
            self.met["taken after a release"] += len(taken)
            self.given_back -= taken
        if name == "commit":
            moved = {turn.id for turn in args[0] if turn.cause in ("turn", "continue", "completed")}
            for committed in answer[0]:
                if committed.id in moved & self.paused.keys() and committed.outcome != "lost":
                    self._note_turn(committed.id)
        for committed in answer[0] if name == "commit" else answer if name == "park" else ():
            self.met[f"{name}: {committed.outcome}"] += 1

    def duration(self) -> float:
        if self.strikes("long handler", 0.15):
            return self.chance.choice((2.0, 20.0, 100.0))
        return self.chance.choice((0.0, 0.0, 0.1, 0.5))

    # what happens

    def interleave(self) -> None:
        """Others act while somebody is in a store call."""
        if not self.faulty or self.depth >= DEPTH:
            return
        if self.chance.random() < self.often_others:
            with self._deeper():
                for _ in range(self.chance.choice((1, 1, 2, 5))):
                    self.act()
        if self.strikes("stall", 0.01):
            with self._deeper():
                for _ in range(6):
                    self.clock.seconds += TTL_S / 3
                    self.act()
                    self.act()

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def act(self) -> None:
        """One act of one actor."""
        self.acts += 1
        acts = (
            self._step,
            self._step,
            self._step,
            self._step,
            self._handler,
            self._serve,
            self._tick,
            self._fault,
            self._client,
        )
        self.chance.choice(acts)()
        if self._also("dead worker", 0.05) and self.gone:
            self.met["rescued from the dead"] += len(
                rob(self.inner, *self.gone, crash_limit=self.crash_limit)
            )
        if self._also("noise", 0.03):
            self._noise()
        if self._also("prune", 0.02):
            self._prune(self.more.choice((0.0, 5.0, 100.0)))
        if self._also("terminate", 0.01):
            self._terminate(self.more.choice(self.roots))

    def _terminate(self, root: str) -> None:
        """Whoever did it dies after the first transaction: the services do the rest."""
        if self.inner.executions._terminate_named([root], None).get(root):
            self.cancelled.add(root)
            self.terminated.add(root)

    def _noise(self) -> None:
        """A letter that nobody waits for, to one who lives, has ended, or never was."""
        ids = [row[0] for row in self._rows("SELECT id FROM executions WHERE type = 0 ORDER BY id")]
        signal = NewSignal(f"noise{self.acts}", self.more.choice([*ids, "nobody"]), "noise", "null")
        self.met[f"noise: {self.inner.messages.signal(signal, 1000)}"] += 1

    def _prune(self, older_than_s: float) -> None:
        for id in self.roots:
            execution = self.inner.reading.get([id]).get(id)
            if execution and execution.finished_at is not None:
                self.pruned[id] = execution
        self.met["pruned"] += self.inner.maintenance.prune(older_than_s, 100)

    def _step(self) -> bool:
        able = [virtual for virtual in self.workers if virtual.can_step()]
        return bool(able) and self.step(self.chance.choice(able))

    def step(self, virtual: Virtual) -> bool:
        did = virtual.act(virtual.worker.run_round)
        if virtual.worker.draining and virtual.worker.idle and not virtual.dead:
            self._replace(virtual)
        return did

    def _handler(self) -> bool:
        ended = [
            virtual.handlers.run_due()
            for virtual in self.workers
            if self.chance.random() < 0.7 or not self.faulty
        ]
        return any(ended)

    def _serve(self) -> bool:
        try:
            return self.chance.choice(self.services).run()[0]
        except StoreError:
            return True  # it comes again

    def _tick(self) -> None:
        self.clock.seconds += self.chance.choice(
            (0.0, 0.1, 1.0, 3.0) if self.on & AWAY else (0.0, 0.1, 0.5)
        )
        if self.strikes("jump", 0.05):
            self.clock.seconds += self.chance.choice((TTL_S, 3600.0))
        if self.later and self.chance.random() < 0.5:
            self.later.pop(0)()

    def _fault(self) -> None:
        virtual = self.chance.choice(self.workers)
        if self.strikes("crash", 0.15):
            self._replace(virtual)
        elif self.strikes("freeze", 0.1):
            virtual.frozen_until = self.clock.now() + self.chance.random() * 2 * TTL_S
        elif self.strikes("drain", 0.1):
            virtual.worker.drain()
        elif not virtual.busy and self.strikes("stop", 0.05):
            self._stop(virtual)

    def _stop(self, virtual: Virtual) -> None:
        try:
            virtual.act(virtual.worker.stop)
        except StoreError:
            self.met["stop without an answer"] += 1
        if not virtual.dead:
            self._replace(virtual)

    def kill(self, virtual: Virtual, why: str) -> None:
        """What it ran has killed it."""
        if not virtual.dead:
            self.met[why] += 1
            if self.met[why] > KILLED:
                raise Violation(f"{KILLED} workers were killed by a {why}")
            self._replace(virtual)

    def _replace(self, virtual: Virtual) -> None:
        """The process is gone, also in the middle of a step; another one takes its place."""
        virtual.dead = True
        self.gone.append(virtual.worker.name)
        self.workers[self.workers.index(virtual)] = self._boot(virtual.number)

    def _client(self) -> None:
        if self.signals and self.chance.random() < 0.2:
            self._send(self.signals.pop(0))
        if self.strikes("pause", 0.1):
            self._pause(self._any_of("type = 0"), self.chance.random() < 0.5)
        if self.case.loose and self.strikes("cancel", 0.2):
            self.inner.executions.cancel([self._any_of("parent_id IS NOT NULL")])
            return
        if self.strikes("cancel", 0.05):
            self.cancelled |= {
                id
                for id, accepted in self.inner.executions.cancel(
                    [self.chance.choice(self.roots)]
                ).items()
                if accepted
            }

    def _any_of(self, which: str) -> str:
        """An execution that has not ended; if there is none, one that does not exist."""
        found = self._rows(
            f"SELECT id FROM executions WHERE finished_at IS NULL AND {which} ORDER BY id"
        )
        return str(self.chance.choice(found)[0]) if found else "nobody"

    def _send(self, signal: NewSignal) -> None:
        """Twice, as a sender without an answer does."""
        for _ in range(self.chance.choice((1, 2))):
            self.inner.messages.signal(signal, 1000)

    def body_begins(self, worker: str, id: str) -> None:
        """A body begins only under a claim that is in force, and never after its outcome was
        committed."""
        self.bodies[id] += 1
        execution = self.inner.reading.get([id]).get(id)
        # who terminates does not wait for owners: one may have loaded the task just before
        forced = execution is not None and execution.error == BY_FORCE.value
        if execution and execution.finished_at is not None and not forced:
            raise Violation(f"a body of {id} began on {worker} after its outcome was committed")
        heard = self._rows(f"SELECT beat_at FROM worker_heartbeats WHERE worker_id = '{worker}'")[
            0
        ][0]
        if heard <= self.clock.us() - self.settings.dead_after_s * 1e6:
            raise Violation(f"a body of {id} began on {worker}, which is dead to the others")
        # its claim was taken away, which its owner does not know yet
        if id.partition(".")[0] in self.terminated:
            return
        holds = self.inner.claims.claimed_by(worker)
        if id not in holds and id.rpartition(".")[0] not in holds:
            raise Violation(f"a body of {id} began on {worker}, which holds no claim")

    # the run

    def run(self) -> Report:
        problem, finished = "", False
        try:
            while self.acts < ACTS and not self._ended():
                self.act()
            self._check_rules(LATE_S)
            self._calm()
            finished = self._settle()
            self._check(finished)
        except Exception as wrong:
            problem = (
                f"{type(wrong).__name__}: {wrong}"
                if isinstance(wrong, Violation)
                else traceback.format_exc()
            )
        self.inner.close()
        return Report(self.seed, problem, finished, self.met, self.acts)

    def _calm(self) -> None:
        """No more faults: what was sent late arrives, everybody wakes, nothing is paused."""
        self.faulty = False
        for late in self.later:
            late()
        for signal in self.signals:
            self._send(signal)
        for (id,) in self._rows(
            "SELECT id FROM executions WHERE paused_at IS NOT NULL AND finished_at IS NULL"
        ):
            self._pause(id, False)
        for virtual in self.workers:
            virtual.frozen_until = 0.0

    def _settle(self) -> bool:
        for _ in range(ROUNDS):
            if self._ended():
                return True
            did = [
                self._round_of_services(),
                *[self.step(virtual) for virtual in list(self.workers)],
                self._handler(),
            ]
            if not any(did):
                self._wait()
        return False

    def _round_of_services(self) -> bool:
        did, self.wait_s = self.services[0].run()
        return did

    def _wait(self) -> None:
        """Until the next thing is due; where no claim can expire, nobody comes to look for one
        every few seconds."""
        service = self.services[0]
        if not self._rows("SELECT 1 FROM ready WHERE state = 1 LIMIT 1"):
            self.wait_s = service.wait_s("timers")
        nexts = [
            self.clock.seconds + self.wait_s,
            *(entry[0] for v in self.workers for entry in v.handlers.agenda[:1]),
        ]
        self.clock.seconds = max(self.clock.seconds + 0.001, min(nexts))

    def _ended(self) -> bool:
        return not self._rows(
            "SELECT 1 FROM ready UNION ALL SELECT 1 FROM executions WHERE finished_at IS "
            "NULL LIMIT 1"
        )

    def _rows(self, sql: str) -> list[Any]:
        return rows(self.inner, sql)

    # what must hold at the end

    def _check(self, finished: bool) -> None:
        if self.wrong:
            raise Violation(self.wrong[0])
        if not finished:
            left = self._rows(
                "SELECT id, type, status, held, cancel_requested_at IS NOT NULL FROM "
                "executions WHERE finished_at IS NULL"
            )
            raise Violation(
                f"stuck: {left}, ready "
                f"{self._rows('SELECT id, state, claimed_by, wakes FROM ready')}"
            )
        for root in self.roots:
            self._check_end(self.inner.reading.get([root]).get(root) or self.pruned[root])
        self._check_rules(grace_s=0.0)
        self.met.update(
            {
                f"turn: {cause}": times
                for cause, times in self._rows("SELECT cause, count(*) FROM history GROUP BY cause")
            }
        )
        again = {
            id: times
            for id, times in self.bodies.items()
            if times > 1 and id.partition(".")[0] not in self.terminated
        }
        if (
            again
            and not self.on & {*AWAY, "poison"}
            and "retries" not in self.case.text
            and "flaky" not in self.case.text
        ):
            raise Violation(f"bodies ran again though no worker was away: {again}")
        self._check_poison(again)
        self._check_pruning()

    def _check_poison(self, again: dict[str, int]) -> None:
        """A task that kills its workers is begun as often as the limit says, and not once more.

        A paused workflow is parked, and its crashes are forgotten with its row in `ready`.
        """
        if (
            "poison" in self.on
            and not self.on & {*AWAY, "pause"}
            and (over := {id: n for id, n in again.items() if n > CRASH_LIMIT})
        ):
            raise Violation(
                f"bodies that killed their workers began more than {CRASH_LIMIT} times: {over}"
            )

    def _check_pruning(self) -> None:
        """Whatever has ended can go, and nothing of it stays."""
        self.clock.seconds += 1.0
        self._prune(0.0)
        if left := {
            table: len(found) for table in TABLES if (found := self._rows(f"SELECT 1 FROM {table}"))
        }:
            raise Violation(f"left over after pruning: {left}")

    def _check_end(self, root: Execution) -> None:
        if root.id in self.cancelled:
            if root.status != "cancelled" and not self._taken_for_poison(root):
                raise Violation(f"{root.id}, whose cancel was acknowledged, ended as {root.status}")
            return
        value = (
            json.loads(root.result or "null")
            if root.status == "completed"
            else json.loads(root.error or "{}").get("code")
        )
        if repr(Expected(root.status, value)) != repr(
            self.case.expected
        ) and not self._taken_for_poison(root):
            raise Violation(
                f"{root.id} ended as {root.status} {value!r} ({root.error}), expected "
                f"{self.case.expected}"
            )

    def _taken_for_poison(self, root: Execution) -> bool:
        """Where there is poison, what often was with it on a worker that died, or was rescued as
        often, fails like it."""
        errors = self._rows(
            f"SELECT error FROM executions WHERE error IS NOT NULL AND name <> 'poison' "
            f"AND root_id = '{root.id}'"
        )
        crashed = any("Crashed" in error for (error,) in errors)
        if "poison" not in self.on or not (crashed or root.id in self.pruned):
            return False
        self.met["taken for poison"] += 1
        return True

    def _check_rules(self, grace_s: float) -> None:
        if found := examine(self.inner, grace_s):
            raise Violation(f"the doctor found {found}")

    def _tasks(self) -> list[Task[..., Any]]:
        def fail(code: str = "TaskFailed") -> None:
            raise TaskFailed("it failed", code=code)

        def flaky(x: int, fails: int) -> int:
            self.tries[f"flaky {x}"] += 1
            if self.tries[f"flaky {x}"] <= fails:
                raise ConnectionError("not yet")
            return x

        functions: list[tuple[str, Callable[..., Any], int]] = [
            ("value", lambda value=None: value, 0),
            ("add", lambda a, b: a + b, 0),
            ("double", lambda x: x * 2, 0),
            ("fail", fail, 0),
            ("flaky", flaky, 1000),
            ("poison", lambda n: n, 5),
        ]
        return [
            Task(function, name, "default", retries, None, 1.0)
            for name, function, retries in functions
        ]


def simulate(first: int, seeds: int, make_store: MakeStore = sqlite_in_memory) -> list[Report]:
    return [Simulation(seed, make_store).run() for seed in range(first, first + seeds)]


def summary(reports: list[Report], took_s: float) -> str:
    """What was met and what went wrong, for people."""
    met = sum((report.met for report in reports), start=Counter[str]())
    finished = sum(report.finished for report in reports)
    wrong = [report for report in reports if report.problem]
    faults = [f"{fault} {met[fault]:,}" for fault in (*FAULTS, *MORE_FAULTS)]
    lines = [
        (
            f"{len(reports)} seeds, {len(reports) / took_s:.1f} a second, "
            f"{sum(r.acts for r in reports) / len(reports):.0f} acts a seed"
        ),
        f"{finished / len(reports):.2%} finished, {len(wrong)} with violations",
        "faults: " + ", ".join(faults),
        "met: "
        + ", ".join(
            f"{name} {times:,}"
            for name, times in sorted(met.items())
            if times and name not in (*FAULTS, *MORE_FAULTS)
        ),
        *(f"seed {report.seed}: {report.problem}" for report in wrong[:20]),
    ]
    return "\n".join(lines)


@contextmanager
def stores_of(database: str) -> Iterator[MakeStore]:
    """Makes empty stores. The rules are laid down in a schema of the simulation's own: they would
    refuse what other tests do."""
    if database == "sqlite":
        yield sqlite_in_memory
    else:
        with server() as url:
            schemas = Schemas(url, "simulation")
            yield schemas.empty_store
            schemas.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates workers with faults.")
    parser.add_argument("seeds", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    given = parser.parse_args()
    if FULL_WAY:
        take_full_way()
    with stores_of(given.database) as make_store:
        began = time.monotonic()
        reports = simulate(given.first, given.seeds, make_store)
    print(summary(reports, time.monotonic() - began))
    sys.exit(any(report.problem for report in reports))


if __name__ == "__main__":
    main()
