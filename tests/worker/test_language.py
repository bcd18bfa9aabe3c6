"""The language suite on the engine: what the interpreter's own bench gives, the runners give, on
every database.

Time is the test's: a handler takes as long as its input `took` says (a second, if it says nothing),
signals and cancels come when the case says, and the clock moves when nothing else can happen.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rhythm.errors import ExecutionFailed, TaskFailed, UnknownWorkflow
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.interfaces.messages import NewSignal
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, ended_by
from rhythm.worker.handlers import Task
from rhythm.worker.runner import CheckpointingRunner, Clock, InProcessRunner
from rhythm.worker.settings import WorkerSettings
from tests.support.cases import Case, all_cases
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, Stores, sqlite_in_memory
from tests.support.world import EPOCH, TASKS, TaskError

AWAITING = (
    "approvals branches cancel children completed events finally groups looks "
    "nested_groups recovery signals tasks timers waits_by_id "
    "workflows"
).split()
# of the interpreter's bench: limits of a turn, answers to approvals
ALONE = {"limits", "decisions"}
CASES = [
    case
    for case in all_cases()
    if not ALONE & case.settings.keys() and (case.has_result or case.failure)
]


class Agenda(Clock):
    """A clock that stands still between the things that are to happen."""

    def __init__(self) -> None:
        super().__init__(fast_forward=True)
        self.now_us, self.order = int(EPOCH * 1e6), 0
        self.entries: list[tuple[int, int, Callable[[], None]]] = []

    def us(self) -> int:
        return self.now_us

    def seconds(self) -> float:
        return self.now_us / 1e6

    def after(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        self.order += 1
        entry = (self.now_us + int(seconds * 1e6), self.order, action)
        heapq.heappush(self.entries, entry)
        return lambda: self._remove(entry)

    def _remove(self, entry: tuple[int, int, Callable[[], None]]) -> None:
        if entry in self.entries:
            self.entries.remove(entry)
            heapq.heapify(self.entries)

    def wait_until(self, us: int | None) -> bool:
        """To this time, or to what is to happen before: whether there is anything to wait for."""
        times = [
            time for time in (us, *(entry[0] for entry in self.entries[:1])) if time is not None
        ]
        self.now_us = max([self.now_us, *([min(times)] if times else [])])
        return bool(times)

    def run_due(self) -> bool:
        """All that is due: what happens at the same time is seen together."""
        due = [
            heapq.heappop(self.entries)[2]
            for _ in range(sum(entry[0] <= self.now_us for entry in self.entries))
        ]
        for action in due:
            action()
        return bool(due)


class VirtualHandlers:
    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        took = inputs.get("took", 1) if isinstance(inputs, dict) else 1
        return self.agenda.after(
            took, lambda: report(ended_by(task, lambda: task.function(inputs or {})))
        )

    def is_quick(self, task: Task[..., Any]) -> bool:
        return False

    def close(self) -> None: ...


class AnyTask(Task[..., Any]):
    def problem_with(self, inputs: Any) -> str:
        return ""


def tasks() -> Mapping[str, Task[..., Any]]:
    return {
        name: AnyTask(_raising(function), name, "default", 0, None, None)
        for name, function in TASKS.items()
    }


def _raising(function: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def call(inputs: dict[str, Any]) -> Any:
        try:
            return function(inputs)
        except TaskError as problem:
            raise TaskFailed(
                problem.error["message"], code=problem.error["code"], data=problem.error["data"]
            ) from None

    return call


class InProcess(InProcessRunner):
    """The runner of `rhythm run`, on the test's time."""

    def __init__(self, programs: tuple[Program, ...], make_store: MakeStore) -> None:
        self.agenda = Agenda()
        self.known = {program.name: program for program in programs}
        super().__init__(make_store, self._find, tasks(), lambda name: "no such task", self.agenda)
        self.worker.attempts.handlers = VirtualHandlers(self.agenda)

    def _find(self, name: str) -> Program:
        if name not in self.known:
            raise UnknownWorkflow(f"there is no workflow `{name}`")
        return self.known[name]

    def _go_on(self) -> bool:
        return self.agenda.run_due() or super()._go_on() or self.agenda.wait_until(None)

    def _wait_for_handlers(self, due: int | None) -> None:
        self.agenda.wait_until(due)

    def end(self, id: str) -> tuple[str, Any, Any]:
        while self._go_on():
            pass
        run = self.ended(id)
        return run.status, run.value, (run.line, run.column)


class Checkpointing(CheckpointingRunner):
    """The durable runner, on the test's time."""

    def __init__(self, programs: tuple[Program, ...], make_store: MakeStore, text: str) -> None:
        self.agenda = Agenda()
        one_queue = WorkerSettings(one_queue=True)
        super().__init__(
            make_store(self.agenda.us),
            tasks(),
            one_queue,
            clock_us=self.agenda.us,
            now=self.agenda.seconds,
        )
        self.worker.attempts.handlers = VirtualHandlers(self.agenda)
        self.register({program.name: (program, text) for program in programs})

    def _round(self) -> None:
        did = self.agenda.run_due()
        fired, due = self.store.maintenance.fire_timers(
            100
        )  # the services themselves rest between two looks, and a case counts every moment
        if not (self.worker.run_round() or did or fired):
            assert self.agenda.wait_until(due), "nothing can happen any more"

    def end(self, id: str) -> tuple[str, Any, Any]:
        try:
            return "completed", self.resume(id), None
        except ExecutionFailed as failed:
            return failed.status, failed.error, tuple(failed.error.pop("at"))


def check(case: Case, runner: InProcess | Checkpointing, name: str) -> None:
    id = runner.start(name, case.settings.get("inputs"), "run")
    for i, signal in enumerate(case.settings.get("signals", [])):
        sent = NewSignal(str(i), id, signal["name"], json.dumps(signal.get("payload")))
        runner.agenda.after(
            signal.get("at", 0), lambda sent=sent: runner.store.messages.signal(sent, 1000)
        )
    if "cancel_at" in case.settings:
        runner.agenda.after(
            case.settings["cancel_at"], lambda: runner.store.executions.cancel([id])
        )
    status, value, place = runner.end(id)
    if case.failure:
        code, line, column, message = case.failure
        assert (status, value["code"], place) == ("failed", code, (line, column)), value
        assert message in value["message"]
    elif case.result == "cancelled":
        assert status == "cancelled", value
    else:
        assert (status, value) == ("completed", case.result)


@pytest.mark.parametrize("case", CASES[:: sampled(4, 1)], ids=str)
@sweep
def test_case_in_process(case: Case) -> None:
    programs = compile_flow(case.text, case.file).programs
    runner = InProcess(programs, sqlite_in_memory)
    check(case, runner, programs[0].name)
    runner.store.close()


def is_for_the_store(case: Case) -> bool:
    """Whether it waits for something; a version of a child must be registered, and the case has but
    one."""
    return case.file.removesuffix(".flow") in AWAITING and 'version: "v1"' not in case.text


WAITING = list(filter(is_for_the_store, CASES))


def run_checkpointed(case: Case, make_store: MakeStore) -> None:
    programs = compile_flow(case.text, case.file).programs
    check(case, Checkpointing(programs, make_store, case.text), programs[0].name)


@pytest.mark.parametrize("case", WAITING, ids=str)
def test_case_checkpointed(case: Case) -> None:
    run_checkpointed(case, sqlite_in_memory)


@pytest.mark.parametrize("case", WAITING[:: sampled(8, 1)], ids=str)
@sweep
def test_case_checkpointed_as_users_have_it(case: Case, stores: Stores) -> None:
    """In a file, and on a server."""
    run_checkpointed(case, stores.empty_store)
