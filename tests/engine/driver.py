"""Drives the real worker and a real store with a clock of our own and handlers that end when we
say.

Nothing sleeps: when nothing can happen, the clock moves to the next thing that is due. A run is the
same every time.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from rhythm.engine.definitions import definition_of
from rhythm.engine.doctor import examine
from rhythm.errors import StoreError
from rhythm.ir.codec import load_program
from rhythm.ir.program import Program
from rhythm.lang.languages import compile_text
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import Execution, NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.workers import Declaration
from rhythm.store.lifecycle import WORKFLOW
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, ended_by
from rhythm.worker.handlers import Task
from rhythm.worker.lines import LineBuffer
from rhythm.worker.loop import Worker
from rhythm.worker.narration import Narrator
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.sizes import Sizes
from tests.support.around import Around
from tests.support.stores import MakeStore, ready_rows, rows, sqlite_in_memory

EPOCH_US = 1_800_000_000_000_000
ROUNDS = 20_000
LOOK_EVERY = 100  # rounds: by then also the slowest service has had its turn


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def us(self) -> int:
        return EPOCH_US + int(self.seconds * 1e6)


class VirtualHandlers:
    """Handlers end after as many virtual seconds as their input `took` says."""

    def __init__(self, clock: Clock, quick: bool = False) -> None:
        """`quick`: the worker takes all tasks for short ones, however long they then last."""
        self.clock, self.quick, self.order = clock, quick, 0
        # told of every body, with its inputs
        self.begins: Callable[[str, Any], None] = lambda id, inputs: None
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        self.order += 1
        self.begins(current.id, inputs)
        entry = (
            self.clock.now() + float((inputs or {}).get("took", 0)),
            self.order,
            lambda: self._run(task, inputs or {}, report),
        )
        heapq.heappush(self.agenda, entry)
        return lambda: (
            self.agenda.remove(entry) or heapq.heapify(self.agenda)
            if entry in self.agenda
            else None
        )

    def _run(
        self, task: Task[..., Any], inputs: dict[str, Any], report: Callable[[AttemptEnd], None]
    ) -> None:
        died: list[Crashed] = []

        def call() -> Any:
            try:
                return task.function(**inputs)
            except Crashed as crashed:
                died.append(crashed)

        ended = ended_by(task, call)
        if died:
            raise died[0]  # a handler that kills its process reports nothing
        report(ended)

    def is_quick(self, task: Task[..., Any]) -> bool:
        return self.quick

    def run_due(self) -> bool:
        due = bool(self.agenda) and self.agenda[0][0] <= self.clock.now()
        if due:
            heapq.heappop(self.agenda)[2]()
        return due

    def close(self) -> None: ...


class Crashed(BaseException):
    """The process is gone: nobody catches this but the test."""


class FaultyStore(Around):
    """A store whose n-th call goes wrong: the process dies before it or after it, or its answer is
    lost."""

    def __init__(self, inner: Store, fail_at: int = 0, mode: str = "") -> None:
        super().__init__(inner, self._faulty)
        self.fail_at, self.mode, self.calls = fail_at, mode, 0
        # what a test does between a call and its answer
        self.after: Callable[[str, Any], None] = lambda name, answer: None

    def _faulty(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls != self.fail_at:
                answer = method(*args, **kwargs)
                self.after(name, answer)
                return answer
            if self.mode == "before":
                raise Crashed
            answer = method(*args, **kwargs)
            if self.mode == "after":
                raise Crashed
            if self.mode == "lost":
                raise StoreError(f"no answer from {name}")
            return answer

        return call


@cache
def definitions(text: str) -> list[Definition]:
    """Compiled once: a test of interruptions makes hundreds of worlds of one text."""
    programs = compile_text(
        text, "main.json" if text.startswith("{") else "main.flow"
    ).programs_or_raise()
    return [definition_of(p, text) for p in programs]


loaded = cache(load_program)


class World:
    """A database, a set of tasks, and one worker at a time."""

    def __init__(
        self,
        text: str,
        fail_at: int = 0,
        mode: str = "",
        make_store: MakeStore = sqlite_in_memory,
        sizes: Sizes | None = None,
        quick: bool = False,
        log_level: int | None = None,
        **settings: Any,
    ) -> None:
        """`log_level`: what is said is kept from this level on; None: nothing is."""
        self.clock, self.quick, self.log_level = Clock(), quick, log_level
        self.inner = make_store(self.clock.us)
        self.store: Any = FaultyStore(self.inner, fail_at, mode)
        self.settings = WorkerSettings(claim_ttl_s=30.0, margin_s=1.0, crash_limit=5).replace(
            **settings
        )
        self.ran: Counter[str] = Counter()  # bodies, by name and input
        self.tasks = {task.name: task for task in self._tasks()}
        self.inner.definitions.register(definitions(text))
        self.signals: list[tuple[float, NewSignal]] = []
        self.given: list[Any] = []  # the inputs of all bodies, also of those whose worker died
        self.generation = 0
        self.sizes = sizes or Sizes()
        self.declared: dict[str, Declaration] = {}  # tasks of other workers
        self.bugs: list[str] = []  # what the sweep has found: nothing, ever
        self._boot()

    def _boot(self) -> None:
        self.generation += 1
        self.handlers = VirtualHandlers(self.clock, self.quick)
        self.handlers.begins = self._begins
        name = f"worker-{self.generation}"
        self.lines = (
            None if self.log_level is None else LineBuffer(self.log_level, name, self.clock.now)
        )
        self.worker = Worker(
            self.store,
            self.program,
            self.tasks,
            self.handlers,
            name,
            self.settings,
            now=self.clock.now,
            rng=random.Random(self.generation),
            narrator=Narrator(complain=self.observe, sizes=self.sizes),
            declared=lambda name: self.declared.get(name),
            sleep=lambda seconds: None,
            lines=self.lines,
        )
        settings = ServiceSettings(crash_limit=self.settings.crash_limit, timer_poll_s=1e6)
        self.services = Services(
            self.store, settings, self.clock.now, self.clock.us, self.program, self.observe
        )

    def observe(self, what: str, id: str, detail: str) -> None:
        if what == "bug":
            self.bugs.append(f"{id}: {detail}")

    def _begins(self, id: str, inputs: Any) -> None:
        """A body begins only under a claim that is in force: its own, or its workflow's."""
        self.given.append(inputs)
        claims = (
            f"id IN ('{id}', '{id.rpartition('.')[0]}') AND claimed_by = '{self.worker.name}' "
            f"AND state = 1"
        )
        until = [
            row[0] for row in rows(self.inner, f"SELECT claim_expires_at FROM ready WHERE {claims}")
        ]
        assert any(at > self.clock.us() for at in until), f"a body of {id} began without a claim"
        heard = rows(
            self.inner,
            f"SELECT beat_at FROM worker_heartbeats WHERE worker_id = '{self.worker.name}'",
        )[0][0]
        assert heard > self.clock.us() - self.settings.dead_after_s * 1e6, (
            f"a body of {id} began on a worker that is dead to the others"
        )

    def program(self, name: str, version: str | None) -> Program | None:
        definition = self.inner.definitions.get(name, version)
        if definition is None:
            return None
        return loaded(definition.program)

    def start(self, name: str = "main", inputs: Any = None, id: str = "run") -> None:
        program = self.program(name, None)
        assert program
        timeout_s = program.options.get("timeout")
        self.inner.executions.start(
            [
                NewExecution(
                    id,
                    WORKFLOW,
                    name,
                    "default",
                    json.dumps(inputs),
                    program.version,
                    timeout_s=timeout_s,
                )
            ]
        )

    def signal(self, at: float, name: str, payload: Any, id: str = "run") -> None:
        self.signals.append((at, NewSignal(f"s{len(self.signals)}", id, name, json.dumps(payload))))

    def run(self, id: str = "run") -> Execution:
        """Until the execution has ended, and everything that it started; then no rule may be
        broken."""
        asleep = False
        for number in range(ROUNDS):
            execution = self.inner.reading.get([id])[id]
            if execution.finished_at is not None and self._quiet():
                self.doctor()
                assert self.bugs == []
                return execution
            if number % LOOK_EVERY == 0:
                before, asleep = asleep, self._asleep()
                if before and asleep:
                    break
            self.round()
        raise AssertionError(f"{id} never ended: {self.inner.reading.get([id])[id]}")

    def doctor(self, grace_s: float = 0.0) -> None:
        """No rule is broken. Nothing is under way in a quiet world, so nothing may be late; only
        the sweep comes now and then."""
        self.inner.maintenance.end_cancelled_tasks(1000)
        found = examine(self.inner, grace_s)
        assert not found, found

    def _quiet(self) -> bool:
        """Whether nothing is under way, and nothing is left that anybody could do."""
        return self.worker.idle and not ready_rows(self.inner)

    def _asleep(self) -> bool:
        """Whether nothing will ever happen again by itself."""
        return (
            self._quiet()
            and not self.signals
            and not self.handlers.agenda
            and self.inner.maintenance.fire_timers(0)[1] is None
        )

    def round(self) -> None:
        try:
            for at, signal in [due for due in self.signals if due[0] <= self.clock.now()]:
                self.signals.remove((at, signal))
                self.inner.messages.signal(signal, 1000)
            did, wait_s = self.services.run()
            did = self.worker.run_round() or did
            did = self.handlers.run_due() or did
            if self.lines is not None:
                self.lines.write(self.store)
            if not did:
                self._wait(wait_s)
        except Crashed:
            self._boot()
        except StoreError:
            return  # a service had no answer: it comes again

    def _wait(self, wait_s: float) -> None:
        nexts = [
            self.clock.seconds + wait_s,
            *(at for at, _ in self.signals),
            *(entry[0] for entry in self.handlers.agenda[:1]),
        ]
        self.clock.seconds = max(self.clock.seconds + 0.001, min(nexts))

    def _tasks(self) -> list[Task[..., Any]]:
        def value(x: Any = None, took: float = 0) -> Any:
            self.ran[f"value({x!r})"] += 1
            return x

        def flaky(x: int, fails: int, took: float = 0) -> int:
            self.ran[f"flaky({x!r})"] += 1
            if self.ran[f"flaky({x!r})"] <= fails:
                raise ConnectionError("not yet")
            return x

        def fail(took: float = 0) -> None:
            self.ran["fail()"] += 1
            raise ValueError("broken")

        return [
            Task(value, "value", "default", 0, None, None),
            Task(flaky, "flaky", "default", 9, None, 1.0),
            Task(fail, "fail", "default", 0, None, None),
        ]
