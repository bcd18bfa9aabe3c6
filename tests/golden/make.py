"""Writes the golden files: programs and snapshots as a released Rhythm has stored them, for every
later one to load.

    python -m tests.golden.make

The files of a format version are never made again once that version is released: they stand for
what is in people's databases. A new format version gets a new folder, next to the old ones. Until
the release, run this after a change of the format.

For each `NAME.flow` and `NAME.steps.json` in the folder it writes `NAME.program.json`, the program
as it is stored, and `NAME.json`: each execution of one run (the workflow, and its branches and
children) with its turns. A turn has the inputs that it took and the snapshot that was stored after
it, as text. Inputs hold all that has ended so far, so that an execution goes on from any of the
snapshots by itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rhythm.ir.codec import dump_program
from rhythm.ir.instructions import IR_VERSION
from rhythm.lang.languages import FOUND_IN_FOLDERS, compile_text
from rhythm.vm.machine import Inputs, Outcome, Signal
from rhythm.vm.snapshot import SNAPSHOT_VERSION, encode_snapshot
from tests.support.world import Execution, World

FOLDERS = Path(__file__).parent
FORMATS = {
    "v1": (1, 1),
    "v2": (2, 1),
    "v3": (2, 2),
    "v4": (2, 3),
}  # of programs and snapshots: what each folder is for

# For each folder: what each workflow is run with, and what happens to it.
RUNS: dict[str, dict[str, dict[str, Any]]] = {
    "v1": {
        "nested_groups": {"inputs": {"xs": [1, 2, 3]}},
        "branch": {"inputs": {"xs": [1, 2]}},
        "signal_timeout": {"signals": [{"at": 4, "name": "go", "payload": {"by": "ann"}}]},
        "finally_pending": {},
        "loop_position": {"inputs": {"words": ["a", "b"], "counts": {"x": 2, "y": 1}}},
        "completed_loop": {"inputs": {"xs": [3, 1, 2]}},
        "approval": {
            "inputs": {"id": 7},
            "decisions": [
                {"decision": "approved", "by": ["ann", "bob"], "comment": "", "at": None}
            ],
        },
        "cancelled": {"cancel_at": 5},
        "steps": {
            "inputs": {"order": {"total": 15000}},
            "decisions": [{"decision": "rejected", "by": ["ann"], "comment": "", "at": None}],
        },
        "started": {"signals": [{"at": 2, "name": "go", "payload": "went"}]},
    },
    "v2": {
        "python_meaning": {"inputs": {"words": ["a", "b"], "counts": {"x": 5, "y": 1}}},
        "declared_inputs": {
            "inputs": {"id": "A", "items": [{"sku": "tea"}, {"sku": "cup", "qty": 2.0}], "wait": 5}
        },
    },
    "v3": {"over_limit": {"inputs": {"n": 7}}},
    "v4": {"long_loop": {"inputs": {"n": 30}}},
}


class Recorder(World):
    """A world that writes down the turns of every execution; those that changed nothing are left
    out."""

    def __init__(self, programs: list[Any]) -> None:
        super().__init__(programs, through_json=True)
        self.executions: dict[str, dict[str, Any]] = {}

    def turn(self, e: Execution) -> None:
        if e.status != "running":
            return
        before = encode_snapshot(e.snapshot).decode()
        record = self.executions.setdefault(
            e.id, {"begins": before, "turns": [], "status": None, "value": None}
        )
        inputs = encode_inputs(self.inputs_of(e))
        super().turn(e)
        after = encode_snapshot(e.snapshot).decode()
        if e.status != "running":
            record["turns"].append({"inputs": inputs})
            record["status"], record["value"] = e.status, e.value
        elif after != before:
            record["turns"].append({"inputs": inputs, "snapshot": after})


def encode_inputs(inputs: Inputs) -> dict[str, Any]:
    """The inputs of a turn as JSON, without what is empty."""
    fields = dict(zip(inputs._fields, inputs.astuple(), strict=True))
    fields["outcomes"] = {
        str(n): [*outcome.astuple()[:3]] for n, outcome in inputs.outcomes.items()
    }
    fields["signals"] = [list(signal.astuple()) for signal in inputs.signals]
    return {name: value for name, value in fields.items() if value}


def decode_inputs(fields: dict[str, Any]) -> Inputs:
    """The inputs that `encode_inputs` wrote."""
    outcomes = {int(n): Outcome(*outcome) for n, outcome in fields.get("outcomes", {}).items()}
    signals = tuple(Signal(*signal) for signal in fields.get("signals", ()))
    return Inputs(**{**fields, "outcomes": outcomes, "signals": signals})


def record(folder: Path, name: str) -> tuple[str, dict[str, Any]]:
    """The stored program of a workflow, and its run."""
    run = RUNS[folder.name][name]
    [path] = [path for path in folder.glob(f"{name}.*") if path.name.endswith(FOUND_IN_FOLDERS)]
    programs = compile_text(path.read_text(encoding="utf-8"), path.name).programs_or_raise()
    world = Recorder(list(programs))
    world.decisions = list(run.get("decisions", []))
    world.run(name, run.get("inputs"), run.get("signals"), cancel_at=run.get("cancel_at"))
    ended = {id: execution for id, execution in world.executions.items() if execution["status"]}
    return dump_program(programs[0]), {"executions": ended}


def main() -> None:
    now = (IR_VERSION, SNAPSHOT_VERSION)
    names = [name for name, formats in FORMATS.items() if formats == now]
    if not names:
        raise SystemExit(f"there is no folder for the formats {now}: make one")
    folder = FOLDERS / names[0]
    for name in RUNS[folder.name]:
        program, run = record(folder, name)
        (folder / f"{name}.program.json").write_text(program + "\n", encoding="utf-8")
        (folder / f"{name}.json").write_text(
            json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
