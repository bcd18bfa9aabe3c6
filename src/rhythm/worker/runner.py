"""Driving one store from one process until an execution has ended."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from rhythm.engine.payload import dump, load
from rhythm.errors import ExecutionFailed, UnknownExecution, UnknownWorkflow
from rhythm.ids import encode_id, problem_with_id
from rhythm.ir.codec import dump_program, load_program
from rhythm.ir.program import Program
from rhythm.store.base import WORKFLOW, Definition, Execution, NewExecution, Store
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.worker import Observer, Worker, WorkerSettings


class CheckpointingRunner:
    """Runs workflows of a store in this process, with a commit at every await; `resume` goes on after a crash."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], settings: WorkerSettings | None = None,
        observe: Observer = lambda what, id, detail: None, clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:  # fmt: skip
        self.store, self.clock_us = store, clock_us
        self._programs: dict[tuple[str, str], Program] = {}
        self.settings = settings or WorkerSettings()
        name = f"{secrets.token_hex(6)}"
        self.worker = Worker(store, self.program, tasks, Handlers(), name, self.settings, time.monotonic, random.Random(), observe)
        self.services = Services(
            store, ServiceSettings(crash_limit=self.settings.crash_limit), time.monotonic, clock_us, self.program, observe
        )
        self._busy = True  # something has happened here since the services looked

    def register(self, programs: Mapping[str, tuple[Program, str]]) -> None:
        self.store.register(
            [Definition(name, p.version, p.language, source, dump_program(p), p.file) for name, (p, source) in programs.items()]
        )

    def program(self, name: str, version: str | None) -> Program | None:
        """A program by its version, loaded once; without a version, the one that is current now."""
        if version is not None and (name, version) in self._programs:
            return self._programs[name, version]
        definition = self.store.definition(name, version)
        if definition is None:
            return None
        key = name, definition.version
        if key not in self._programs:
            self._programs[key] = load_program(definition.program)
        return self._programs[key]

    def start(self, name: str, inputs: Any = None, id: str | None = None) -> str:
        program = self.program(name, None)
        if program is None:
            raise UnknownWorkflow(f"there is no workflow `{name}`")
        if id is not None and (problem := problem_with_id(id)):
            raise UnknownExecution(f"{id!r} cannot be an id: {problem}")
        id = id or encode_id(self.clock_us() // 1000, secrets.randbits(80))
        queue = program.options.get("queue", self.settings.queues[0])
        new = NewExecution(id, WORKFLOW, name, queue, dump(inputs, "inputs"), program.version, timeout_s=program.options.get("timeout"))
        return self.store.start([new])[0].id

    def run(self, name: str, inputs: Any = None, id: str | None = None) -> Any:
        """Starts a workflow and drives it to its end: its result. An id that was used before goes on where it is."""
        return self.resume(self.start(name, inputs, id))

    def resume(self, id: str) -> Any:
        """Drives an execution to its end, wherever it is: its result. `ExecutionFailed` if it has none."""
        while True:
            execution = self.store.get([id]).get(id)
            if execution is None:
                raise UnknownExecution(f"there is no execution {id!r}")
            if execution.finished_at is not None:
                return self._result(execution)
            self._round()

    def _round(self) -> None:
        did, wait_s = self.services.run(self._busy)
        self._busy = self.worker.step(0.0 if did or self._busy else min(wait_s, 0.05))

    def _result(self, execution: Execution) -> Any:
        if execution.status == "completed":
            return load(execution.result or "null")
        raise ExecutionFailed(execution.id, execution.status, load(execution.error or "null"))
