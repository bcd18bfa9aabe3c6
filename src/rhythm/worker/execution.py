"""An execution in memory: what the in-process runner knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rhythm.ir.program import Program
from rhythm.vm.machine import Outcome, Signal
from rhythm.vm.snapshot import Snapshot
from rhythm.worker.attempts import Job


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

    def why_stuck(self) -> str:
        """What it waits for, or the child that it waits for does, when nothing can happen any more."""
        for child in self.children.values():
            if child.status == "running":
                return child.why_stuck()
        waits = ", ".join(_waits(self.snapshot.awaiting or {}))
        return f"`{self.program.name}` waits for {waits}, and nothing can bring it here; a timeout would end the wait"


def _waits(plan: dict[str, Any]) -> Iterator[str]:
    """What a plan waits for, in words, with what would bring it."""
    for item in plan.get("items", ()):
        yield from _waits(item)
    if plan.get("op") == "signal":
        yield f"signal `{plan['name']}` (pass --signal {plan['name']}=JSON)"
    elif plan.get("op") in ("event", "approval"):
        yield f"{plan['op']} `{plan['name']}`"
