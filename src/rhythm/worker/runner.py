"""Runs the executions of one store from one process, until one execution has ended.

`CheckpointingRunner` shares its store with others: it goes on after a crash, and any worker can do
so too. `InProcessRunner` has the store for itself. Nothing comes from outside, so it knows when
nothing can happen any more, and its clock may jump.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from rhythm.engine.payload import dump, load
from rhythm.engine.programs import ProgramCache
from rhythm.engine.rows import Asking
from rhythm.errors import ExecutionFailed, InvalidId, StoreError, UnknownExecution, UnknownWorkflow
from rhythm.ids import encode_id, problem_with_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.approvals import Decision
from rhythm.store.interfaces.executions import Execution, NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task
from rhythm.worker.heartbeat import seconds
from rhythm.worker.lines import LineBuffer, LineWriter
from rhythm.worker.local_workers import release_claims_of_dead_local_workers
from rhythm.worker.loop import Worker
from rhythm.worker.narration import Narrator, Observer
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.stuck import why_stuck

BATCH = 100
Answer = Literal["approve", "reject"]
POLL_INTERVAL_S = 0.05  # how often running handlers are checked: one may be over its time


class Runner:
    """Runs workflows of a store in this process. Subclasses say where programs come from."""

    def __init__(
        self,
        store: Store,
        tasks: Mapping[str, Task[..., Any]],
        settings: WorkerSettings,
        observe: Observer | None,
        now: Callable[[], float],
        clock_us: Callable[[], int],
        name: str = "",
        **more: Any,
    ) -> None:
        """`name`: of the worker; without it, it gets a random one. `more` is passed on to it."""
        self.store, self.settings, self.now, self.clock_us = store, settings, now, clock_us
        self.handlers = Handlers()
        self.narrator = Narrator(observe)
        self.worker = Worker(
            store,
            self.program,
            tasks,
            self.handlers,
            name or secrets.token_hex(6),
            settings,
            now=now,
            rng=random.Random(),
            narrator=self.narrator,
            **more,
        )

    def program(self, name: str, version: str | None) -> Program | None:
        """Returns a program by its version (None: the current one); None if there is none."""
        raise NotImplementedError

    def start(self, name: str, inputs: Any = None, id: str | None = None) -> str:
        """Starts a workflow, unless the id was used before; returns the id of its execution.

        Raises `UnknownWorkflow` if there is no such workflow, and `InvalidId` if it cannot be an
        id.
        """
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
        """Returns an execution. Raises `UnknownExecution` if there is none of this id."""
        execution = self.store.reading.get([id]).get(id)
        if execution is None:
            raise UnknownExecution(f"there is no execution {id!r}")
        return execution


class CheckpointingRunner(Runner):
    """Runs workflows of a store in this process, with a commit at every await.

    After a crash, `resume` goes on.
    """

    def __init__(
        self,
        store: Store,
        tasks: Mapping[str, Task[..., Any]],
        settings: WorkerSettings | None = None,
        observe: Observer | None = None,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        now: Callable[[], float] = seconds,
        log_level: int | None = None,
    ) -> None:
        """`log_level`: what executions say is kept from this level on; None: nothing is."""
        settings = settings or WorkerSettings()
        patience_s, name = settings.patience_s, secrets.token_hex(6)
        lines = None if log_level is None else LineBuffer(log_level, name, now)
        super().__init__(
            store,
            tasks,
            settings,
            observe,
            now,
            clock_us,
            name,
            gives_up=lambda waited_s: waited_s > patience_s,
            lines=lines,
        )
        complain = self.narrator.complain
        self._line_writer = None if lines is None else LineWriter(lines, store, complain)
        if self._line_writer is not None:
            self._line_writer.start()
        self._programs = ProgramCache()
        services = ServiceSettings(crash_limit=self.settings.crash_limit)
        self.services = Services(
            store, services, now, clock_us, self.program, observe, heart=self.worker.heart
        )
        self._busy = True  # something has happened here since the services last ran

    def register(self, programs: Mapping[str, tuple[Program, str]]) -> None:
        """Stores programs with their source, by name."""
        from rhythm.engine.definitions import definition_of

        self.store.definitions.register(
            [definition_of(program, source, name) for name, (program, source) in programs.items()]
        )

    def program(self, name: str, version: str | None) -> Program | None:
        """Returns a program by its version (None: the current one); None if there is none.

        Programs that were loaded are kept.
        """
        return self._programs.get(self.store, name, version)

    def run(self, name: str, inputs: Any = None, id: str | None = None) -> Any:
        """Starts a workflow, runs it to its end, and returns its result.

        With an id that was used before, that execution goes on from where it is. Raises as `resume`
        does.
        """
        return self.resume(self.start(name, inputs, id))

    def resume(self, id: str) -> Any:
        """Runs an execution to its end, from wherever it is, and returns its result.

        Raises `ExecutionFailed` if it ends without a result, and `UnknownExecution` if there is
        none of this id. If the database goes away, it waits for it; it raises `StoreError` if the
        database is not back within `patience_s`.
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
        """Returns an execution; waits up to `patience_s` for a database that does not answer."""
        last = self.now() + self.settings.patience_s
        while True:
            try:
                return self.execution(id)
            except StoreError:
                if self.now() >= last:
                    raise
                self.worker.sleep(POLL_INTERVAL_S)

    def close(self, grace_s: float = 5.0) -> None:
        """Waits up to `grace_s` for what was begun here for others, and gives back the rest."""
        last = self.now() + grace_s
        self.worker.drain()
        while not self.worker.idle and self.now() < last:
            self.worker.run_round(POLL_INTERVAL_S)
        try:
            self.worker.stop()
        except StoreError as problem:
            self.narrator.complain("claims_left", "", f"they expire by themselves: {problem}")
        self.handlers.close()
        if self._line_writer is not None:
            self._line_writer.close(grace_s)

    def _round(self) -> None:
        did, wait_s = self.services.run(self._busy)
        self._busy = self.worker.run_round(
            0.0 if did or self._busy else min(wait_s, POLL_INTERVAL_S)
        )


class Clock:
    """The time of an in-process run. With `fast_forward` it jumps instead of waiting."""

    def __init__(self, fast_forward: bool) -> None:
        self.fast_forward, self._skipped_us = fast_forward, 0

    def us(self) -> int:
        """Returns the time in microseconds since 1970."""
        return time.time_ns() // 1000 + self._skipped_us

    def seconds(self) -> float:
        """Returns seconds that only grow."""
        return time.monotonic() + self._skipped_us / 1e6

    def wait_until(self, us: int) -> None:
        """Waits until a time, or jumps to it."""
        wait_us = max(us - self.us(), 0)
        if self.fast_forward:
            self._skipped_us += wait_us
        else:
            time.sleep(wait_us / 1e6)


class Run(Record):
    """How an execution of an in-process run has ended.

    `status` is completed, failed, cancelled or blocked, and `value` the result or the error. `line`
    and `column` are where in the source it failed or waits.
    """

    id: str
    status: str
    value: Any
    program: Program
    line: int = 1
    column: int = 1


class GivenDecision(Record):
    """A decision that is made when somebody with this role is asked for one."""

    role: str
    decision: Answer
    comment: str = ""


class InProcessRunner(Runner):
    """Runs workflows on a store of its own, to the end of everything that they started.

    `find` returns a program by its name, or raises `UnknownWorkflow` with advice. `make_store`
    makes an empty store on the clock.
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
        self.unasked: list[GivenDecision] = []  # decisions for which nobody has asked yet
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
        """Returns the program of this name; there is only one version."""
        return self.find(name)

    def run(
        self,
        name: str,
        inputs: Any = None,
        signals: Sequence[tuple[str, Any]] = (),
        decisions: Sequence[GivenDecision] = (),
    ) -> Run:
        """Runs a workflow to its end, and returns how it ended.

        The signals are in its mailbox from the start. Each decision is made once, by another
        person, as soon as its role is asked for one.
        """
        id = self.start(name, inputs)
        self.unasked = list(decisions)
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
        """Returns how an execution has ended, once nothing can happen any more.

        One that has not ended by then is stuck: it counts as failed, and the error says what it
        waits for.
        """
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
        """Closes the store."""
        self.store.close()

    def untaken(self, id: str) -> list[str]:
        """Returns the names of the signals that an execution has never taken."""
        return [mail.name for mail in self.store.messages.mail([id]).get(id, ())]

    def _go_on(self) -> bool:
        """Does what is next; returns False when nothing can happen any more."""
        fired, due = self.store.maintenance.fire_timers(BATCH)
        if self.worker.run_round() or fired or self._decide():
            return True
        if self.worker.attempts.running:
            self._wait_for_handlers(due)
        elif not self.store.maintenance.end_cancelled_tasks(BATCH):
            if due is None:
                return False
            self.clock.wait_until(due)
        return True

    def _decide(self) -> bool:
        """Makes the next of the decisions for which somebody is asked now; False if there is none.

        What was asked first is decided first.
        """
        asked = self.store.people.approvals(None, "open", None, None, BATCH) if self.unasked else []
        for approval in reversed(asked):
            for given in self.unasked:
                if given.role == approval.role:
                    self.unasked.remove(given)
                    who = Actor(f"{given.role} {len(self.unasked) + 1}", source="cli")
                    decision = Decision(who, given.decision, given.comment)
                    self.store.people.decide(approval.id, decision)
                    return True
        return False

    def _wait_for_handlers(self, due: int | None) -> None:
        """Runs a round that waits for the end of a handler.

        It waits no longer than until the next timer is due, and `POLL_INTERVAL_S` at most.
        """
        self.worker.run_round(
            POLL_INTERVAL_S
            if due is None
            else max(min((due - self.clock.us()) / 1e6, POLL_INTERVAL_S), 0.0)
        )
