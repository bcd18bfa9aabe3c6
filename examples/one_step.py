"""One step of invoice.flow, in a process of its own: read the state, take one turn, do what it asks, write the state, exit.

It needs only the pure core: `advance(program, snapshot, inputs)` is a function of its arguments. An engine does the same
with a database for the file, and many workers for this one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.commands import StartTask
from rhythm.vm.interpreter import Completed, Failed, advance
from rhythm.vm.machine import Inputs, Outcome
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot

FLOW = Path(__file__).with_name("invoice.flow")
INPUTS = {"customer": "Acme", "hours": [{"person": "Ada", "hours": 6}, {"person": "Grace", "hours": 4}]}

TASKS = {
    "rate_of": lambda person: {"Ada": 90, "Grace": 110}[person],
    "send_invoice": lambda to, total: f"{to}-2026-017",
    "remind": lambda number, reminders: reminders >= 2,
}


def take_step(program: Program, file: Path) -> None:
    """From the state in the file to the next; the file is removed when the workflow has ended."""
    snapshot, outcomes = load(file)
    turn = advance(program, snapshot, Inputs(now="2026-11-15T09:00:00Z", seed="demo", inputs=INPUTS, outcomes=outcomes))
    if isinstance(turn, Completed | Failed):
        report("ended", json.dumps(turn.result if isinstance(turn, Completed) else turn.error))
        return file.unlink()
    for command in turn.commands:
        if isinstance(command, StartTask):
            outcomes[command.n] = Outcome("completed", TASKS[command.name](**command.inputs))
            report("ran", f"{command.name}({', '.join(map(repr, command.inputs.values()))}) = {outcomes[command.n].value!r}")
    save(file, turn.snapshot, outcomes)
    report("kept", encode_snapshot(turn.snapshot).decode())


def load(file: Path) -> tuple[Snapshot, dict[int, Outcome]]:
    if not file.exists():
        return Snapshot(), {}
    state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return decode_snapshot(state["snapshot"].encode()), {int(n): Outcome("completed", value) for n, value in state["results"].items()}


def save(file: Path, snapshot: Snapshot, outcomes: dict[int, Outcome]) -> None:
    results = {n: outcome.value for n, outcome in outcomes.items()}
    file.write_text(json.dumps({"snapshot": encode_snapshot(snapshot).decode(), "results": results}), encoding="utf-8")


def report(what: str, detail: str) -> None:
    print(f"  process {os.getpid():<7} {what:<6} {detail}", flush=True)


if __name__ == "__main__":
    take_step(compile_flow(FLOW.read_text(encoding="utf-8"), str(FLOW)).programs_or_raise()[0], Path(sys.argv[1]))
