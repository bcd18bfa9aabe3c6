"""What any Rhythm has ever stored, today's loads and runs on: the files of `tests/golden`, one
folder for each format version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rhythm.errors import InvalidProgram
from rhythm.ir.codec import load_program
from rhythm.ir.instructions import IR_VERSION
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.lang.languages import FOUND_IN_FOLDERS, compile_text
from rhythm.vm.interpreter import Blocked, Completed, Continue, Failed, Suspended, Turn, advance
from rhythm.vm.snapshot import SNAPSHOT_VERSION, Snapshot, decode_snapshot
from tests.golden.make import FORMATS, RUNS, decode_inputs

GOLDEN = Path(__file__).parent.parent / "golden"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


STORED = sorted(GOLDEN.glob("v*/*.program.json"))
EXECUTIONS = [
    pytest.param(path, execution, id=f"{path.parent.name}-{path.name.split('.')[0]}-{id}")
    for path in STORED
    for id, execution in read(path.with_name(path.name.replace(".program", "")))[
        "executions"
    ].items()
]


def program_of(path: Path) -> Program:
    return verify(load_program(path.read_bytes()))


def resume(program: Program, snapshot: Snapshot, turns: list[dict[str, Any]]) -> Turn:
    """Takes the recorded turns from the snapshot on; what became of the last."""
    for number, recorded in enumerate(turns, 1):
        turn = advance(program, snapshot, decode_inputs(recorded["inputs"]))
        if not isinstance(turn, Suspended | Continue):
            assert number == len(turns), "it ended too early"
            return turn
        snapshot = turn.snapshot
    raise AssertionError(f"it did not end: {snapshot}")


def ending(turn: Turn) -> tuple[str, Any]:
    match turn:
        case Completed(result=result):
            return "completed", result
        case Blocked(error=error):
            return "blocked", error
        case Failed(error=error, cancelled=cancelled):
            return "cancelled" if cancelled else "failed", error
    raise AssertionError(turn)


@pytest.mark.parametrize(("path", "execution"), EXECUTIONS)
def test_every_stored_snapshot_resumes_to_the_recorded_end(
    path: Path, execution: dict[str, Any]
) -> None:
    program, turns = program_of(path), execution["turns"]
    stored = [execution["begins"], *(turn["snapshot"] for turn in turns[:-1])]
    for taken, snapshot in enumerate(stored):
        end = resume(program, decode_snapshot(snapshot), turns[taken:])
        assert ending(end) == (execution["status"], execution["value"]), (
            f"from the snapshot after {taken} turns"
        )


def test_each_folder_holds_a_stored_run_for_each_workflow() -> None:
    for folder, runs in RUNS.items():
        stored = {path.name.split(".")[0] for path in STORED if path.parent.name == folder}
        assert stored == set(runs)
    sources = [
        [path.with_name(path.name.replace(".program.json", kind)) for kind in FOUND_IN_FOLDERS]
        for path in STORED
    ]
    assert all(sum(path.exists() for path in kinds) == 1 for kinds in sources)


def snapshots() -> list[dict[str, Any]]:
    return [
        json.loads(turn["snapshot"])
        for case in EXECUTIONS
        for turn in case.values[1]["turns"]
        if "snapshot" in turn
    ]  # type: ignore[call-overload, index]


def loops_of(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    plans = [snapshot["awaiting"], *snapshot["locals"].values()]
    return [plan for plan in plans if isinstance(plan, dict) and "taken" in plan]


@pytest.mark.parametrize(
    ("what", "holds"),
    [
        (
            "a group inside a group",
            lambda s: any("items" in item for item in (s["awaiting"] or {}).get("items", [])),
        ),
        ("a fan-out as a range of numbers", lambda s: "first" in json.dumps(s["awaiting"])),
        ("items held back", lambda s: "released" in json.dumps(s["awaiting"])),
        (
            "a signal with a timeout",
            lambda s: (s["awaiting"] or {}).get("op") == "signal" and "timeout" in s["awaiting"],
        ),
        ("an approval", lambda s: (s["awaiting"] or {}).get("op") == "approval"),
        ("the position of a loop", lambda s: any(name.endswith(".i") for name in s["locals"])),
        (
            "a counting loop",
            lambda s: any(isinstance(v, dict) and "range" in v for v in s["locals"].values()),
        ),
        ("a `completed` loop", lambda s: "taken" in json.dumps(s)),
        (
            "a `completed` loop that has taken many items",
            lambda s: s["v"] == 3 and any("+" in str(v.get("taken")) for v in loops_of(s)),
        ),
        (
            "a jump that waits for its finally",
            lambda s: any(n.startswith("$finally") and "to" in v for n, v in s["locals"].items()),
        ),
        (
            "an error that waits for its finally",
            lambda s: any(
                n.startswith("$finally") and "throw" in v for n, v in s["locals"].items()
            ),
        ),
        ("a result that waits for its finally", lambda s: "$return" in s["locals"]),
        ("a cancellation on its way", lambda s: s["cancelled"]),
        ("a limit on its way", lambda s: s["v"] == 2 and s["limit"]),
        ("the context of steps", lambda s: "$context" in s["locals"]),
        ("what was started and not awaited", lambda s: "$started" in s["locals"]),
    ],
)
def test_the_stored_snapshots_hold(what: str, holds: Any) -> None:
    assert any(holds(snapshot) for snapshot in snapshots()), f"no stored snapshot holds {what}"


def test_what_is_in_a_folder_has_the_format_of_the_folder() -> None:
    """What older workers can run stays as they read it."""
    for path in STORED:
        source = next(
            found
            for kind in FOUND_IN_FOLDERS
            if (found := path.with_name(path.name.replace(".program.json", kind))).exists()
        )
        (made, *_) = compile_text(source.read_text(encoding="utf-8"), source.name).programs
        assert load_program(path.read_bytes()).ir == made.ir == FORMATS[path.parent.name][0]


def test_a_program_of_a_newer_format_is_refused_with_what_to_do() -> None:
    newer = {**read(STORED[0]), "ir": IR_VERSION + 1}
    with pytest.raises(
        InvalidProgram,
        match=(
            rf"has IR version {IR_VERSION + 1}, this Rhythm knows up to {IR_VERSION}: upgrade "
            rf"the worker"
        ),
    ):
        load_program(json.dumps(newer))


def test_a_snapshot_of_a_newer_format_is_refused_with_what_to_do() -> None:
    newer = {**snapshots()[0], "v": SNAPSHOT_VERSION + 1, "something": "new"}
    message = (
        rf"has format {SNAPSHOT_VERSION + 1}, this Rhythm knows up to {SNAPSHOT_VERSION}: "
        rf"upgrade the worker"
    )
    with pytest.raises(InvalidProgram, match=message):
        decode_snapshot(json.dumps(newer))


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '"text"',
        "{}",
        '{"v":"1"}',
        '{"v":1,"locals":[]}',
        '{"v":1,"statement_index":"0"}',
        '{"v":1,"odd":1}',
        '{"v":0}',
    ],
)
def test_a_damaged_snapshot_is_refused_as_such(damage: str) -> None:
    with pytest.raises(InvalidProgram, match=r"^not a snapshot: "):
        decode_snapshot(damage)
