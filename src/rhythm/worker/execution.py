"""An execution in memory: what the in-process runner knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rhythm.ir.program import Program
from rhythm.vm import commands as c
from rhythm.vm.machine import Outcome, Signal
from rhythm.vm.plans import items_of
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import at_path
from rhythm.worker.attempts import Job

SHOWN = 5  # waits of one that is stuck
_STARTED: dict[type[Any], tuple[str, str]] = {  # what a command starts, and which of its fields names it
    c.StartTask: ("task", "name"), c.StartWorkflow: ("workflow", "name"), c.WaitEvent: ("event", "type"),
    c.RequestApproval: ("approval", "role"), c.StartBranch: ("branch", ""), c.StartTimer: ("sleep", ""),
}  # fmt: skip


class Execution:
    """The state of one execution between its turns, and what it has asked for that has not ended."""

    def __init__(self, id: str, program: Program, inputs: Any, snapshot: Snapshot, parent: Execution | None, n: int) -> None:
        self.id, self.program, self.inputs, self.snapshot, self.parent, self.n = id, program, inputs, snapshot, parent, n
        self.label = f"branch of {program.name}" if snapshot.statement_index else program.name
        self.outcomes: dict[int, Outcome] = {}
        self.signals: list[Signal] = []
        self.open: dict[int, Any] = {}  # the commands of children that have not ended
        self.children: dict[int, Execution] = {}
        self.jobs: dict[int, Job] = {}
        self.status, self.at = "running", 0
        self.value: Any = None  # the result, or the error
        self.cancel = self.queued = False
        self.events_before = 0  # published before it started: not for it
        self.seen: set[str] = set()  # events, by id
        self.started_at = ""

    def ctx(self) -> dict[str, Any]:
        """What the workflow sees as `ctx`."""
        program, parent_id = self.program, self.parent.id if self.parent else None
        seen = {"id": self.id, "workflow": program.name, "version": program.version, "started_at": self.started_at}
        return {**seen, "attempt": 1, "parent_id": parent_id}

    def failure(self) -> dict[str, Any]:
        """Its error as its parent sees it."""
        message = f"`{self.label}` failed: {self.value['message']}"
        return {"code": "ChildFailed", "message": message, "data": {"id": self.id, "error": self.value}}

    def waits_for(self, n: int) -> bool:
        """Whether how child n ends still matters: to this execution, or to the child, which may outlive it."""
        return n in self.open and (self.status == "running" or n in self.children)

    def takes(self, wait: c.WaitEvent, event: dict[str, Any]) -> bool:
        """Whether the event ends the wait. An execution sees each event once."""
        fits = event["type"] == wait.type and all(at_path(event["data"], path) == value for path, value in wait.where.items())
        if not fits or wait.held or event["id"] in self.seen:
            return False
        self.seen.add(event["id"])
        return True

    def why_stuck(self) -> str:
        """What it waits for, or the child that it waits for does, when nothing can happen any more."""
        leaves = [leaf for leaf in _leaves(self.snapshot.awaiting) if leaf["n"] not in self.outcomes]
        for child in (self.children[leaf["n"]] for leaf in leaves if leaf["n"] in self.children):
            return child.why_stuck()
        waits = list(dict.fromkeys(map(self._wait, leaves)))
        more = f" and {len(waits) - SHOWN} more" if len(waits) > SHOWN else ""
        return (
            f"`{self.program.name}` waits for {', '.join(waits[:SHOWN])}{more}, and nothing can bring it here; a timeout would end the wait"
        )

    def _wait(self, plan: dict[str, Any]) -> str:
        """What a plan waits for, in words, with what would bring it."""
        command = self.open.get(plan["n"])
        if plan["op"] == "signal":
            return f"signal `{plan['name']}` (pass --signal {plan['name']}=JSON)"
        kind, field = _STARTED.get(type(command), (plan["op"], ""))
        name = plan.get("name") or getattr(command, field, "")
        held = ", which has not begun" if command and command.held else ""
        return (f"{kind} `{name}`" if name else f"{kind} {self.id}.{plan['n']}") + held


def _leaves(plan: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The plans in a plan that are not groups."""
    if plan and ("items" in plan or "first" in plan):
        for item in items_of(plan):
            yield from _leaves(item)
    elif plan:
        yield plan
