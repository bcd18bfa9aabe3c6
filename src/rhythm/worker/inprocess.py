"""Runs one workflow in this process, to the end, against the tasks registered here. Nothing is stored.

Turns run in the calling thread, handlers beside it, all at once. With `fast_forward` the clock jumps to the next timer or
retry whenever no handler is running.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from rhythm.durations import show_duration
from rhythm.ir.program import Program
from rhythm.vm import commands as c
from rhythm.vm.interpreter import Completed, Continue, Failed, Suspended, advance
from rhythm.vm.machine import Inputs, Outcome, Signal
from rhythm.vm.snapshot import Snapshot
from rhythm.worker.attempts import Attempts, Job, brief
from rhythm.worker.clock import Clock
from rhythm.worker.execution import Execution
from rhythm.worker.handlers import Task

EXPIRED: dict[str, Any] = {"decision": "expired", "by": [], "comment": "", "at": None}
Finder = Callable[[str], Program | str]  # a workflow by its name, or why there is none
Observer = Callable[[float, str, str, str], None]  # seconds since the start, what happened, execution id, detail


class InProcessRun:
    def __init__(self, find_program: Finder, tasks: Mapping[str, Task[..., Any]], fast_forward: bool, observer: Observer) -> None:
        self.find_program, self.observer = find_program, observer
        self.clock = Clock(fast_forward)
        self.attempts = Attempts(tasks, self.clock)
        self.ready: deque[Execution] = deque()
        self.executions: dict[str, Execution] = {}
        self.events: list[dict[str, Any]] = []

    def run(self, program: Program, inputs: Any, signals: list[tuple[str, Any]]) -> Execution:
        """The ended execution: `status` completed, failed or cancelled, `value` its result or error, `at` where it failed."""
        root = self._begin(f"run-{secrets.token_hex(4)}", program, inputs, Snapshot())
        root.signals = [Signal(str(i), name, payload, 0.0) for i, (name, payload) in enumerate(signals)]
        while self._step():
            pass
        if root.status == "running":
            root.at = getattr(root.program.code[root.snapshot.statement_index], "at", 0)
            self._finish(root, "failed", {"code": "Stuck", "message": root.why_stuck(), "data": None})
        self.attempts.close()
        return root

    def _begin(self, id: str, program: Program, inputs: Any, snapshot: Snapshot, parent: Execution | None = None, n: int = 0) -> Execution:
        execution = self.executions[id] = Execution(id, program, inputs, snapshot, parent, n)
        execution.started_at, execution.events_before = self.clock.moment(), len(self.events)
        self._tell(execution, "start", execution.label)
        self._wake(execution)
        if (timeout_s := program.options.get("timeout")) and execution.label == program.name:
            late = {"code": "Timeout", "message": f"`{program.name}` took longer than {show_duration(timeout_s)}", "data": None}
            self.clock.after(timeout_s, lambda: self._finish(execution, "failed", late), lambda: execution.status == "running")
        return execution

    def _step(self) -> bool:
        """Does the next thing there is to do; false when nothing can happen any more."""
        if not self.ready:
            return self.clock.step(self.attempts.inbox, busy=self.attempts.running > 0)
        self._turn(self.ready.popleft())
        return True

    def _after(self, delay_s: float, e: Execution, n: int, status: str, value: Any = None) -> None:
        """Ends child n after the delay, unless something else has."""
        self.clock.after(delay_s, lambda: self._end(e, n, status, value), lambda: e.waits_for(n))

    def _fail_after(self, timeout_s: float | None, e: Execution, n: int, what: str) -> None:
        if timeout_s is not None:
            late = {"code": "Timeout", "message": f"{what} {show_duration(timeout_s)}", "data": None}
            self.clock.after(timeout_s, lambda: self._cancel(e, [n], "failed", late), lambda: e.waits_for(n))

    def _tell(self, e: Execution, what: str, detail: str) -> None:
        self.observer(self.clock.now(), what, e.id, detail)

    def _wake(self, e: Execution) -> None:
        if not e.queued:
            e.queued = True
            self.ready.append(e)

    def _turn(self, e: Execution) -> None:
        e.queued = False
        if e.status != "running":
            return
        inputs = Inputs(self.clock.moment(), secrets.token_hex(8), e.inputs, e.ctx(), e.outcomes, e.signals, e.cancel)
        turn = advance(e.program, e.snapshot, inputs)
        for command in turn.commands:
            self._carry_out(e, command)
        if isinstance(turn, Suspended | Continue):
            e.snapshot = turn.snapshot
            if isinstance(turn, Continue):
                self._wake(e)
            elif (plan := turn.snapshot.awaiting) and plan.get("op") == "signal":
                self._tell(e, "wait", f"signal {plan['name']}")
        elif isinstance(turn, Completed):
            self._finish(e, "completed", turn.result)
        elif isinstance(turn, Failed):
            e.at = turn.at
            self._finish(e, "cancelled" if turn.cancelled else "failed", turn.error)

    def _finish(self, e: Execution, status: str, value: Any) -> None:
        e.status, e.value = status, value
        self._tell(e, status, e.label if status != "failed" else f"{e.label}: {value['message']}")
        if status != "completed":
            self._cancel(e, list(e.open))
        if e.parent:
            self._end(e.parent, e.n, status, e.failure() if status == "failed" else value)

    def _end(self, e: Execution, n: int, status: str, value: Any = None) -> None:
        if e.open.pop(n, None) is not None:
            e.outcomes[n] = Outcome(status, value, self.clock.now())
            self._wake(e)

    def _carry_out(self, e: Execution, command: Any) -> None:
        if hasattr(command, "n"):
            e.open[command.n] = command
            if command.held:
                return
        match command:
            case c.StartTask():
                self._start_task(e, command)
            case c.StartWorkflow(n, name, inputs, options):
                self._child(e, n, self.find_program(name), inputs, Snapshot())
                self._fail_after(options.get("timeout_s"), e, n, f"workflow `{name}` took longer than")
            case c.StartBranch(n, branch, locals):
                self._child(e, n, e.program, e.inputs, Snapshot(e.program.branches[branch], locals))
            case c.StartTimer(n, delay_s, until, _, signal):
                wait_s = self.clock.until(until) if until else delay_s or 0.0
                if not signal:
                    self._tell(e, "timer", show_duration(wait_s))
                self._after(wait_s, e, n, "completed")
            case c.WaitEvent(n, type, _, timeout_s):
                self._tell(e, "wait", f"event {type}")
                if event := next((event for event in self.events[e.events_before :] if e.takes(command, event)), None):
                    self._end(e, n, "completed", event)
                self._fail_after(timeout_s, e, n, f"no event `{type}` came in")
            case c.RequestApproval(n, role, timeout_s=timeout_s):
                self._tell(e, "approval", role)
                if timeout_s is not None:
                    self._after(timeout_s, e, n, "completed", EXPIRED)
            case c.Release(first, last):
                for held in [e.open[n] for n in range(first, last + 1) if n in e.open and e.open[n].held]:
                    self._carry_out(e, held.replace(held=False))
            case c.Cancel(first, last):
                self._cancel(e, [n for n in e.open if first <= n <= last])
            case c.TakeSignal(id):
                taken = next(signal for signal in e.signals if signal.id == id)
                e.signals.remove(taken)
                self._tell(e, "signal", f"{taken.name} = {brief(taken.payload)}")
            case c.Publish(type, data):
                self._publish({"id": secrets.token_hex(8), "type": type, "data": data, "at": self.clock.moment()})
            case c.Send(to, name, payload) if to in self.executions:
                self.executions[to].signals.append(Signal(secrets.token_hex(8), name, payload, self.clock.now()))
                self._wake(self.executions[to])
            case c.Log(message, fields):
                self._tell(e, "log", f"{message} {brief(fields, 200) if fields else ''}".rstrip())
            case c.SetAttribute(name, value):
                self._tell(e, "log", f"{name} = {value}")
            case c.Progress(fraction, message):
                self._tell(e, "progress", f"{fraction:.0%} {message}".rstrip())

    def _start_task(self, e: Execution, command: c.StartTask) -> None:
        def end(status: str, value: Any) -> None:
            self._end(e, command.n, status, value)

        e.jobs[command.n] = job = Job(command, end, lambda: command.n in e.open, lambda what, detail: self._tell(e, what, detail))
        self.attempts.start(job)

    def _child(self, e: Execution, n: int, program: Program | str, inputs: Any, snapshot: Snapshot) -> None:
        if isinstance(program, str):
            self._end(e, n, "failed", {"code": "ChildFailed", "message": program, "data": None})
        else:
            e.children[n] = self._begin(f"{e.id}.{n}", program, inputs, snapshot, e, n)

    def _cancel(self, e: Execution, numbers: list[int], status: str = "cancelled", value: Any = None) -> None:
        """Ends children at once with this status, and stops what they are doing; a child workflow may still run its `finally`."""
        for n in numbers:
            if n in e.children:
                e.children[n].cancel = True
                self._wake(e.children[n])
            if n not in e.children or status != "cancelled":
                self._end(e, n, status, value)
            if n in e.jobs:
                e.jobs.pop(n).stop()

    def _publish(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        for e in self.executions.values():
            for wait in [wait for wait in e.open.values() if isinstance(wait, c.WaitEvent) and e.takes(wait, event)]:
                self._end(e, wait.n, "completed", event)
