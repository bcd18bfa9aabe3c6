"""Driving one store from one process until an execution has ended.

`CheckpointingRunner` shares its store with others: it goes on after a crash, and so may anybody
else. `InProcessRunner` has the store for itself: nothing comes from outside, so it knows when
nothing can happen any more, and its clock may jump.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rhythm.engine.payload import dump, load
from rhythm.engine.programs import ProgramCache
from rhythm.engine.rows import Asking
from rhythm.errors import ExecutionFailed, InvalidId, StoreError, UnknownExecution, UnknownWorkflow
from rhythm.ids import encode_id, problem_with_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.interfaces.executions import Execution, NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task
from rhythm.worker.heartbeat import seconds
from rhythm.worker.local_workers import release_claims_of_dead_local_workers
from rhythm.worker.loop import Worker
from rhythm.worker.narration import Narrator, Observer
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.stuck import why_stuck

BATCH = 100
POLL_INTERVAL_S = 0.05  # between two polls at what runs: a handler may be over its time


class Runner:
    """What runs workflows of a store in this process. Those that derive from it say where programs
    come from."""

    def __init__(
        self,
        store: Store,
        tasks: Mapping[str, Task[..., Any]],
        settings: WorkerSettings,
        observe: Observer | None,
        now: Callable[[], float],
        clock_us: Callable[[], int],
        **more: Any,
    ) -> None:
        """`more`: what else the worker is given."""
        self.store, self.settings, self.now, self.clock_us = store, settings, now, clock_us
        self.handlers = Handlers()
        self.narrator = Narrator(observe)
        self.worker = Worker(
            store,
            self.program,
            tasks,
            self.handlers,
            secrets.token_hex(6),
            settings,
            now=now,
            rng=random.Random(),
            narrator=self.narrator,
            **more,
        )

    def program(self, name: str, version: str | None) -> Program | None:
        """A program by its version; without a version, the one that is current now."""
        raise NotImplementedError

    def start(self, name: str, inputs: Any = None, id: str | None = None) -> str:
        """Starts a workflow, unless the id was used before: the id of its execution."""
        program = self.program(name, None)
        if program is None:
            raise UnknownWorkflow(f"there is no workflow `{name}`")
        if id is not None and (problem := problem_with_id(id)):
            raise InvalidId(f"{id!r} cannot be an id: {problem}")
        id = id or encode_id(self.clock_us() // 1000, secrets.randbits(80))
        queue = (
            self.settings.queues[0]
            if self.settings.one_queue
            else program.options.get("queue", self.settings.queues[0])
        )
        new = NewExecution(
            id,
            WORKFLOW,
            name,
            queue,
            dump(inputs, "inputs"),
            program.version,
            timeout_s=program.options.get("timeout"),
        )
        return self.store.executions.start([new])[0].id

    def execution(self, id: str) -> Execution:
        execution = self.store.reading.get([id]).get(id)
        if execution is None:
            raise UnknownExecution(f"there is no execution {id!r}")
        return execution


class CheckpointingRunner(Runner):
    """Runs workflows of a store in this process, with a commit at every await; `resume` goes on
    after a crash."""

    def __init__(
        self,
        store: Store,
        tasks: Mapping[str, Task[..., Any]],
        settings: WorkerSettings | None = None,
        observe: Observer | None = None,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        now: Callable[[], float] = seconds,
    ) -> None:
        settings = settings or WorkerSettings()
        patience_s = settings.patience_s
        super().__init__(
            store,
            tasks,
            settings,
            observe,
            now,
            clock_us,
            gives_up=lambda waited_s: waited_s > patience_s,
        )
        self._programs = ProgramCache()
        services = ServiceSettings(crash_limit=self.settings.crash_limit)
        self.services = Services(
            store, services, now, clock_us, self.program, observe, heart=self.worker.heart
        )
        self._busy = True  # something has happened here since the services looked

    def register(self, programs: Mapping[str, tuple[Program, str]]) -> None:
        from rhythm.engine.definitions import definition_of

        self.store.definitions.register(
            [definition_of(program, source, name) for name, (program, source) in programs.items()]
        )

    def program(self, name: str, version: str | None) -> Program | None:
        """A program by its version, kept once it is loaded; without a version, the one that is
        current now."""
        return self._programs.get(self.store, name, version)

    def run(self, name: str, inputs: Any = None, id: str | None = None) -> Any:
        """Starts a workflow and drives it to its end: its result. An id that was used before goes
        on where it is."""
        return self.resume(self.start(name, inputs, id))

    def resume(self, id: str) -> Any:
        """Drives an execution to its end, wherever it is: its result. `ExecutionFailed` if it has
        none.

        A database that goes away is waited for; `StoreError` if it does not come back within
        `patience_s`.
        """
        self._asked(id)
        with suppress(StoreError):
            release_claims_of_dead_local_workers(self.store, self.settings.crash_limit)
        while (execution := self._asked(id)).finished_at is None:
            self._round()
        if execution.status == "completed":
            return load(execution.result or "null")
        raise ExecutionFailed(execution.id, execution.status, load(execution.error or "null"))

    def _asked(self, id: str) -> Execution:
        last = self.now() + self.settings.patience_s
        while True:
            try:
                return self.execution(id)
            except StoreError:
                if self.now() >= last:
                    raise
                self.worker.sleep(POLL_INTERVAL_S)

    def close(self, grace_s: float = 5.0) -> None:
        """Lets end what was begun here for others, and gives back the rest."""
        last = self.now() + grace_s
        self.worker.drain()
        while not self.worker.idle and self.now() < last:
            self.worker.run_round(POLL_INTERVAL_S)
        try:
            self.worker.stop()
        except StoreError as problem:
            self.narrator.complain("claims_left", "", f"they expire by themselves: {problem}")
        self.handlers.close()

    def _round(self) -> None:
        did, wait_s = self.services.run(self._busy)
        self._busy = self.worker.run_round(
            0.0 if did or self._busy else min(wait_s, POLL_INTERVAL_S)
        )


class Clock:
    """The time of an in-process run. With `fast_forward` it jumps over what would be waited for."""

    def __init__(self, fast_forward: bool) -> None:
        self.fast_forward, self._skipped_us = fast_forward, 0

    def us(self) -> int:
        return time.time_ns() // 1000 + self._skipped_us

    def seconds(self) -> float:
        return time.monotonic() + self._skipped_us / 1e6

    def wait_until(self, us: int) -> None:
        wait_us = max(us - self.us(), 0)
        if self.fast_forward:
            self._skipped_us += wait_us
        else:
            time.sleep(wait_us / 1e6)


class Run(Record):
    """How an execution of an in-process run has ended: completed, failed, cancelled or blocked,
    with its result or error."""

    id: str
    status: str
    value: Any
    program: Program
    line: int = 1
    column: int = 1


class InProcessRunner(Runner):
    """Runs workflows on a store that nobody else has, to the end of everything that they started.

    `find`: a program by its name, or `UnknownWorkflow` with advice. `make_store`: an empty store on
    the clock.
    """

    def __init__(
        self,
        make_store: Callable[[Callable[[], int]], Store],
        find: Callable[[str], Program],
        tasks: Mapping[str, Task[..., Any]],
        why_missing: Callable[[str], str],
        clock: Clock,
        observe: Observer | None = None,
    ) -> None:
        self.clock, self.find = clock, find
        settings = WorkerSettings(
            concurrency=200,
            one_queue=True,
            claim_ttl_s=1e9,
            dead_after_s=1e9,
            beat_s=1e9,
            missing_task_grace_s=0.0,
            asking=Asking(None),
        )
        super().__init__(
            make_store(clock.us),
            tasks,
            settings,
            observe,
            clock.seconds,
            clock.us,
            why_missing=why_missing,
        )

    def program(self, name: str, version: str | None) -> Program | None:
        return self.find(name)

    def run(self, name: str, inputs: Any = None, signals: Sequence[tuple[str, Any]] = ()) -> Run:
        """How the workflow has ended. The signals are in its mailbox from the start."""
        id = self.start(name, inputs)
        for i, (signal, payload) in enumerate(signals):
            self.store.messages.signal(
                NewSignal(f"given-{i}", id, signal, dump(payload, f"the signal `{signal}`")),
                len(signals),
            )
        try:
            while self._go_on():
                pass
        finally:
            self.handlers.close()
        return self.ended(id)

    def ended(self, id: str) -> Run:
        """How an execution has ended. One that has not, now that nothing can happen any more, is
        stuck."""
        execution = self.execution(id)
        program = self.find(execution.name)
        if execution.finished_at is None:
            at = program.position(getattr(program.code[execution.statement], "at", 0))
            error = {"code": "Stuck", "message": why_stuck(self.store, execution), "data": None}
            return Run(id, "failed", error, program, *at)
        if execution.status == "completed":
            return Run(id, "completed", load(execution.result or "null"), program)
        error = load(execution.error or "null")
        return Run(id, execution.status, error, program, *error.pop("at", (1, 1)))

    def close(self) -> None:
        """Closes its store."""
        self.store.close()

    def untaken(self, id: str) -> list[str]:
        """The names of signals that an execution has never taken."""
        return [mail.name for mail in self.store.messages.mail([id]).get(id, ())]

    def _go_on(self) -> bool:
        """Does what there is to do next; false when nothing can happen any more."""
        fired, due = self.store.maintenance.fire_timers(BATCH)
        if self.worker.run_round() or fired:
            return True
        if self.worker.attempts.running:
            self._wait_for_handlers(due)
        elif not self.store.maintenance.end_cancelled_tasks(BATCH):
            if due is None:
                return False
            self.clock.wait_until(due)
        return True

    def _wait_for_handlers(self, due: int | None) -> None:
        """Until one ends, or something is due, or for a moment."""
        self.worker.run_round(
            POLL_INTERVAL_S
            if due is None
            else max(min((due - self.clock.us()) / 1e6, POLL_INTERVAL_S), 0.0)
        )
