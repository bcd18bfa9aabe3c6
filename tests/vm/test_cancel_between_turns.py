"""A cancel that comes where a turn was cut for its length, which is no await: wherever that is,
`finally` runs once."""

from __future__ import annotations

import pytest

from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm import commands as c
from rhythm.vm.interpreter import CHUNK, Continue, Failed, Turn, advance
from rhythm.vm.machine import Inputs
from rhythm.vm.snapshot import Snapshot

SHORT = DEFAULT_LIMITS.replace(turn_instructions=1)  # every turn is cut after CHUNK instructions


def cancelled_at_the_cut(text: str) -> tuple[list[str], Turn]:
    """What was logged, and how it ended, when the cancel comes at the first cut."""
    program = compile_flow(text, "main.flow").programs_or_raise()[0]
    snapshot, logged, cancel = Snapshot(), [], False
    while True:
        turn = advance(
            program,
            snapshot,
            Inputs("2026-11-15T09:00:00Z", "seed", ctx={"id": "run"}, cancel=cancel),
            SHORT,
        )
        logged += [command.message for command in turn.commands if isinstance(command, c.Log)]
        if not isinstance(turn, Continue):
            return logged, turn
        snapshot, cancel = turn.snapshot, True


WAYS_OUT = [
    'try { return 1 } finally { log("f") }',
    'while (true) { try { break } finally { log("f") } }\nreturn 1',
    'for (i in range(1)) { try { continue } finally { log("f") } }\nreturn 1',
    'try { try { return 1 } finally { n = 2 } } finally { log("f") }',
    'try { throw "x" } catch (e) { return 1 } finally { log("f") }',
]


@pytest.mark.parametrize("way", WAYS_OUT)
def test_finally_runs_once_wherever_the_cancel_comes(way: str) -> None:
    for before in range(CHUNK - 16, CHUNK):
        logged, turn = cancelled_at_the_cut("let n = 0\n" + "n = 1\n" * before + way)
        assert logged in ([], ["f"]), f"cut after {before} statements"
        assert isinstance(turn, Failed) or logged == ["f"]
