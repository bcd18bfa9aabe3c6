from __future__ import annotations

import pytest

from rhythm.ir import instructions as ir
from rhythm.ir.codec import dump_program, load_program
from rhythm.ir.program import Program, position_of
from tests.ir.samples import compiled

STEPS = (1, "check", "approve"), (3, "approve", "allow"), (6, "allow", None)


@pytest.mark.parametrize(
    ("statement", "position"),
    [
        (0, (None, None)),
        (1, ("check", "approve")),
        (2, ("check", "approve")),
        (3, ("approve", "allow")),
        (5, ("approve", "allow")),
        (6, ("allow", None)),
        (99, ("allow", None)),
    ],
)
def test_the_step_of_a_statement_is_known_from_the_stored_program(
    statement: int, position: tuple[str | None, str | None]
) -> None:
    program = Program("p", "steps", "v", (ir.Return(ir.Const(None)),), steps=STEPS)
    assert position_of(load_program(dump_program(program)), statement) == position


def test_a_program_without_named_steps_has_no_positions() -> None:
    assert position_of(compiled("await sleep(1)"), 0) == (None, None)
