"""How many generations there may be below an execution: its id tells how many are above it."""

from __future__ import annotations

import pytest

from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm.interpreter import Failed, Suspended, advance
from rhythm.vm.machine import Inputs
from rhythm.vm.snapshot import Snapshot

DEEPEST = "root" + ".1" * DEFAULT_LIMITS.generations
STARTS = [
    'await workflow("w")',
    "await all([branch { return 1 }])",
    'workflow("w")',
    'await race([workflow("w"), sleep(1)])',
]


@pytest.mark.parametrize("start", STARTS)
def test_workflows_and_branches_end_at_the_limit(start: str) -> None:
    (program,) = compile_flow(
        f"workflow w {{ try {{ let x = {start} }} catch (e) {{ return e }}\nawait sleep(1) }}"
    ).programs_or_raise()
    inputs = Inputs("2026-11-15T09:00:00Z", "seed")
    above = advance(program, Snapshot(), inputs.replace(ctx={"id": DEEPEST.removesuffix(".1")}))
    turn = advance(program, Snapshot(), inputs.replace(ctx={"id": DEEPEST}))
    assert isinstance(above, Suspended)
    assert isinstance(turn, Failed)
    assert turn.error["code"] == "LimitExceeded"


def test_ids_of_the_deepest_fit_every_index() -> None:
    """PostgreSQL takes keys of some 2,700 bytes; a root's id has up to 200 characters, and a number
    up to 19 digits."""
    assert 4 * 200 + (DEFAULT_LIMITS.generations + 1) * 20 < 2700
