"""A small deterministic world that drives programs: virtual clock, tasks as plain functions,
children, signals, events.

It is the interpreter's test bench, not an engine: one process, no storage. It can put every
snapshot and every value through JSON on the way, and it can let tasks end in any order, which must
never change a result that does not ask for it.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from typing import Any

from rhythm.ir.codec import dump_program, load_program
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.vm import commands as c
from rhythm.vm.builtins import parse_time
from rhythm.vm.interpreter import Blocked, Completed, Continue, Failed, Suspended, advance
from rhythm.vm.machine import Inputs, Outcome, Signal
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot

EPOCH = parse_time("2026-11-15T09:00:00Z").timestamp()


class TaskError(Exception):
    def __init__(self, code: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


def _fail(inputs: dict[str, Any]) -> Any:
    raise TaskError(
        inputs.get("code", "TaskFailed"), inputs.get("message", "it failed"), inputs.get("data")
    )


TASKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "echo": lambda i: i,  # gives back its inputs
    "value": lambda i: i["value"],
    "add": lambda i: i["a"] + i["b"],
    "double": lambda i: i["x"] * 2,
    "upper": lambda i: i["text"].upper(),
    "fail": _fail,
    "nothing": lambda i: None,
}


class Execution:
    def __init__(
        self,
        id: str,
        program: Program,
        inputs: Any,
        snapshot: Snapshot,
        parent: Execution | None,
        n: int,
    ) -> None:
        self.id, self.program, self.inputs, self.snapshot, self.parent, self.n = (
            id,
            program,
            inputs,
            snapshot,
            parent,
            n,
        )
        self.outcomes: dict[int, Outcome] = {}
        self.signals: list[Signal] = []
        self.held: dict[int, c.Command] = {}
        self.open: set[int] = set()
        self.children: dict[int, Execution] = {}
        self.status = "running"
        self.value: Any = None
        self.at = 0
        self.cancel = False
        self.turns = 0
        self.events_before = 0  # published before it started: not for it
        self.seen: set[str] = set()  # events: each once


class World:
    """Runs one execution, and all it starts, to the end. `shuffle` seeds how long tasks take;
    `through_json` round-trips state."""

    def __init__(
        self,
        programs: list[Program],
        *,
        through_json: bool = False,
        shuffle: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        tasks: dict[str, Callable[[dict[str, Any]], Any]] | None = None,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.over = over
        self.tasks = {**TASKS, **(tasks or {})}
        self.programs = {
            p.name: load_program(dump_program(p)) if through_json else p for p in programs
        }
        self.through_json, self.limits = through_json, limits
        self.random = random.Random(shuffle) if shuffle is not None else None
        self.clock = 0.0
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0
        self.events: list[dict[str, Any]] = []
        self.waits: list[tuple[Execution, c.WaitEvent]] = []
        self.decisions: list[Any] = []
        self.log: list[Any] = []
        self.commands: list[c.Command] = []
        self.root: Execution | None = None

    def run(
        self,
        name: str,
        inputs: Any = None,
        signals: list[dict[str, Any]] | None = None,
        *,
        cancel_at: float | None = None,
    ) -> Execution:
        root = self.root = Execution("run", self.programs[name], inputs, Snapshot(), None, 0)
        for i, signal in enumerate(signals or []):
            self.at(
                signal.get("at", 0),
                lambda i=i, signal=signal: self.deliver(
                    root, str(i), signal["name"], signal.get("payload")
                ),
            )
        if cancel_at is not None:
            self.at(cancel_at, lambda: self.cancel(root))
        self.at(0, lambda: self.turn(root))
        while self.agenda and root.status == "running":
            self.clock, _, action = heapq.heappop(self.agenda)
            action()
        return root

    def at(self, time: float, action: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.agenda, (max(time, self.clock), self.order, action))

    def json(self, value: Any) -> Any:
        return json.loads(json.dumps(value)) if self.through_json else value

    @staticmethod
    def moment(clock: float) -> str:
        at = parse_time("2026-11-15T09:00:00Z").fromtimestamp(
            EPOCH + clock, tz=parse_time("2026-11-15").tzinfo
        )
        return at.isoformat().replace("+00:00", "Z")

    def inputs_of(self, e: Execution) -> Inputs:
        """What the next turn of the execution takes."""
        ctx = {
            "id": e.id,
            "workflow": e.program.name,
            "version": e.program.version,
            "started_at": "2026-11-15T09:00:00Z",
            "attempt": 1,
            "parent_id": e.parent.id if e.parent else None,
            "resume_data": None,
        }
        now, seed = self.moment(self.clock), f"{e.id}/{e.turns + 1}"
        return Inputs(now, seed, e.inputs, ctx, e.outcomes, tuple(e.signals), e.cancel)

    def turn(self, e: Execution) -> None:
        if e.status != "running":
            return
        inputs = self.inputs_of(e)
        e.turns += 1
        turn = advance(e.program, e.snapshot, inputs, self.limits, over=self.over)
        self.commands += turn.commands
        for command in turn.commands:
            self.carry_out(e, command)
        if isinstance(turn, Suspended | Continue):
            e.snapshot = (
                decode_snapshot(encode_snapshot(turn.snapshot))
                if self.through_json
                else turn.snapshot
            )
            if isinstance(turn, Continue):
                self.at(self.clock, lambda: self.turn(e))
        elif isinstance(turn, Completed):
            self.finish(e, "completed", self.json(turn.result))
        elif isinstance(turn, Blocked):
            e.at = turn.at
            self.finish(e, "blocked", self.json(turn.error))
        elif isinstance(turn, Failed):
            e.at = turn.at
            self.cancel_children(e, 1, 10**9)
            self.finish(e, "cancelled" if turn.cancelled else "failed", self.json(turn.error))

    def finish(self, e: Execution, status: str, value: Any) -> None:
        e.status, e.value = status, value
        if e.parent is None:
            return
        if status in ("failed", "blocked"):
            child = (
                f"a branch of `{e.program.name}`"
                if e.program is e.parent.program
                else f"`{e.program.name}`"
            )
            message = (
                f"{child} {'failed' if status == 'failed' else 'was blocked'}: {value['message']}"
            )
            status, value = (
                "failed",
                {"code": "ChildFailed", "message": message, "data": {"id": e.id, "error": value}},
            )
        self.end(e.parent, e.n, Outcome(status, value, self.clock))

    def end(self, e: Execution, n: int, outcome: Outcome) -> None:
        """Child n has ended: once only, and the parent looks."""
        if n not in e.outcomes:
            e.open.discard(n)
            e.outcomes[n] = outcome
            self.at(self.clock, lambda: self.turn(e))

    def carry_out(self, e: Execution, command: c.Command) -> None:
        n = getattr(command, "n", None)
        if n is not None:
            e.open.add(n)
            if command.held:  # type: ignore[attr-defined]  # every numbered command has it
                e.held[n] = command.replace(held=False)
                return
        match command:
            case c.StartTask():
                took = (
                    self.random.choice([1.0, 2.0, 3.0, 5.0])
                    if self.random
                    else float(self._took(command))
                )
                self.at(self.clock + took, lambda: self.task_done(e, command))
            case c.StartWorkflow(n, name, inputs):
                self.child(e, n, self.programs.get(name, name), inputs, Snapshot())
            case c.StartBranch(n, branch, locals):
                self.child(
                    e,
                    n,
                    e.program,
                    e.inputs,
                    Snapshot(e.program.branches[branch], self.json(locals)),
                )
            case c.StartTimer(n, delay, until):
                due = (
                    self.clock + delay
                    if delay is not None
                    else parse_time(until).timestamp() - EPOCH
                )
                self.at(due, lambda: self.end(e, n, Outcome("completed", None, self.clock)))
            case c.WaitEvent():
                self.wait_event(e, command)
            case c.RequestApproval(n):
                decision = self.decisions.pop(0) if self.decisions else None
                if decision:
                    self.at(
                        self.clock + 1,
                        lambda: self.end(e, n, Outcome("completed", decision, self.clock)),
                    )
                elif command.timeout_s is not None:
                    expired = {
                        "decision": "expired",
                        "by": [],
                        "comment": "",
                        "at": self.moment(self.clock + command.timeout_s),
                    }
                    self.at(
                        self.clock + command.timeout_s,
                        lambda: self.end(e, n, Outcome("completed", expired, self.clock)),
                    )
            case c.Release(first, last):
                for number in range(first, last + 1):
                    assert number in e.held or number in e.outcomes, (
                        f"child {number} is released, but it was not held"
                    )
                for number in [k for k in sorted(e.held) if first <= k <= last]:
                    self.carry_out(e, e.held.pop(number))
            case c.Cancel(first, last):
                self.cancel_children(e, first, last)
            case c.TakeSignal(id):
                e.signals = [signal for signal in e.signals if signal.id != id]
            case c.Publish(type, data):
                self.publish(type, data)
            case c.Send(target, name, payload):
                if receiver := self.living(target):
                    self.deliver(receiver, f"sent{self.order}", name, payload)
            case c.Log() | c.Progress() | c.SetAttribute():
                self.log.append(command)

    def living(self, id: str) -> Execution | None:
        """The execution of that id, unless it has ended."""
        found = self.root
        for n in id.split(".")[1:]:
            found = found and found.children.get(int(n) if n.isdigit() else 0)
        return found if found and found.id == id and found.status == "running" else None

    @staticmethod
    def _took(command: c.StartTask) -> float:
        return command.inputs.get("took", 1) if isinstance(command.inputs, dict) else 1

    def task_done(self, e: Execution, command: c.StartTask) -> None:
        try:
            outcome = Outcome(
                "completed",
                self.json(self.tasks[command.name](self.json(command.inputs) or {})),
                self.clock,
            )
        except TaskError as problem:
            outcome = Outcome("failed", problem.error, self.clock)
        self.end(e, command.n, outcome)

    def child(
        self, e: Execution, n: int, program: Program | str, inputs: Any, snapshot: Snapshot
    ) -> None:
        if isinstance(program, str):
            error = {
                "code": "ChildFailed",
                "message": f"there is no workflow `{program}`",
                "data": None,
            }
            return self.end(e, n, Outcome("failed", error, self.clock))
        child = e.children[n] = Execution(f"{e.id}.{n}", program, self.json(inputs), snapshot, e, n)
        child.events_before = len(self.events)
        return self.at(self.clock, lambda: self.turn(child))

    def cancel(self, e: Execution) -> None:
        e.cancel = True
        self.at(self.clock, lambda: self.turn(e))

    def cancel_children(self, e: Execution, first: int, last: int) -> None:
        for n in [n for n in sorted(e.open) if first <= n <= last]:
            e.held.pop(n, None)
            if n in e.children and e.children[n].status == "running":
                self.cancel(e.children[n])
            else:
                self.end(e, n, Outcome("cancelled", None, self.clock))

    def deliver(self, e: Execution, id: str, name: str, payload: Any) -> None:
        e.signals.append(Signal(id, name, self.json(payload), self.clock))
        self.at(self.clock, lambda: self.turn(e))

    def publish(self, type: str, data: Any) -> None:
        event = {
            "id": f"event{len(self.events)}",
            "type": type,
            "data": self.json(data),
            "at": self.clock,
        }
        self.events.append(event)
        for e, wait in list(self.waits):
            self.match(e, wait, event)

    def wait_event(self, e: Execution, wait: c.WaitEvent) -> None:
        self.waits.append((e, wait))
        for event in self.events[e.events_before :]:
            self.match(e, wait, event)
        if wait.timeout_s is not None:
            error = {
                "code": "Timeout",
                "message": f"no event `{wait.type}` came in time",
                "data": None,
            }
            self.at(
                self.clock + wait.timeout_s,
                lambda: self.end(e, wait.n, Outcome("failed", error, self.clock)),
            )

    def match(self, e: Execution, wait: c.WaitEvent, event: dict[str, Any]) -> None:
        fits = event["type"] == wait.type and all(
            (event["data"] or {}).get(path) == value for path, value in wait.where.items()
        )
        if fits and wait.n not in e.outcomes and event["id"] not in e.seen:
            e.seen.add(event["id"])
            self.end(e, wait.n, Outcome("completed", event, self.clock))
