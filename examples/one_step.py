"""One step of invoice.flow, in a process of its own: read the state, take one turn, do what it
asks, write the state, exit.

It needs only the pure core: `advance(program, snapshot, inputs)` is a function of its arguments. An
engine does the same with a database for the file, and many workers for this one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import invoice_tasks  # noqa: F401 - registers the tasks

from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.commands import StartTask
from rhythm.vm.interpreter import Blocked, Completed, Failed, advance
from rhythm.vm.machine import Inputs, Outcome
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot
from rhythm.worker.handlers import default_tasks

FLOW = Path(__file__).with_name("invoice.flow")
INPUTS = {"customer": "Acme", "hours": {"Ada": 6, "Grace": 4}}
USAGE = """\
usage: python examples/one_step.py STATE_FILE

Takes one step of examples/invoice.flow and exits. The first step makes the file; run it again
and again, with the same file, until the workflow has ended and the file is gone:

  python examples/one_step.py state.json
"""


def main(args: list[str]) -> int:
    if len(args) != 1 or args[0].startswith("-"):
        print(USAGE, end="")
        return 0 if args in (["-h"], ["--help"]) else 2
    take_step(
        compile_flow(FLOW.read_text(encoding="utf-8"), str(FLOW)).programs_or_raise()[0],
        Path(args[0]),
    )
    return 0


def take_step(program: Program, file: Path) -> None:
    """From the state in the file to the next; the file is removed when the workflow has ended."""
    snapshot, results = load(file)
    outcomes = {n: Outcome("completed", value) for n, value in results.items()}
    turn = advance(
        program,
        snapshot,
        Inputs(now="2026-11-15T09:00:00Z", seed="demo", inputs=INPUTS, outcomes=outcomes),
    )
    print(f"  process {os.getpid():<7}", end="")
    if isinstance(turn, Completed | Failed | Blocked):
        file.unlink(missing_ok=True)
        return print(
            " ended", json.dumps(turn.result if isinstance(turn, Completed) else turn.error)
        )
    results = {
        command.n: run(command) for command in turn.commands if isinstance(command, StartTask)
    }
    save(file, turn.snapshot, results)
    print(f"{'kept':>22}  {kept(program, turn.snapshot, results)}")


def run(command: StartTask) -> Any:
    """Calls the task here and now; its result waits in the file for the next process."""
    result = default_tasks[command.name](**command.inputs)
    print(f" ran   {command.name}({listed(command.inputs)}) = {json.dumps(result)}")
    return result


def kept(program: Program, snapshot: Snapshot, results: dict[int, Any]) -> str:
    """The state in words: the line it waits at, variables, how far loops are, the results that are
    waiting."""
    state = snapshot.locals
    line = program.position(getattr(program.code[snapshot.statement_index], "at", 0))[0]
    variables = listed({name: value for name, value in state.items() if not name.startswith("$")})
    loops = [
        f"loop: {state[name + '.i']} of {len(state[name])}"
        for name in state
        if name + ".i" in state
    ]
    return "; ".join(
        [
            f"line {line}",
            variables,
            *loops,
            f"result: {', '.join(map(json.dumps, results.values()))}",
        ]
    )


def listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in values.items())


def load(file: Path) -> tuple[Snapshot, dict[int, Any]]:
    if not file.exists():
        return Snapshot(), {}
    state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return decode_snapshot(json.dumps(state["snapshot"])), {
        int(n): value for n, value in state["results"].items()
    }


def save(file: Path, snapshot: Snapshot, results: dict[int, Any]) -> None:
    state = {"snapshot": json.loads(encode_snapshot(snapshot)), "results": results}
    file.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
