"""Where a caught error arose: it survives every cut of the execution, and costs nothing where
nobody throws it again."""

from __future__ import annotations

from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm.interpreter import Continue, Failed, Suspended, advance
from rhythm.vm.machine import ORIGINS, Inputs, Outcome
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot

RETHROWS = """workflow w {
  let failed = null
  try {
    throw "arose here"
  } catch (e) {
    failed = e
  }
  for (i in range(40)) { log(i) }
  await sleep(1)
  throw failed
}"""
ONLY_CATCHES = RETHROWS.replace("throw failed", "return failed")


def compiled(text: str) -> Program:
    return compile_flow(text, "w.flow").programs_or_raise()[0]


def suspended(program: Program) -> Snapshot:
    turn = advance(program, Snapshot(), Inputs("2026-01-01T00:00:00Z", "seed"))
    assert isinstance(turn, Suspended)
    return turn.snapshot


def test_the_place_survives_a_turn_that_ends_wherever_it_may() -> None:
    program, cuts = compiled(RETHROWS), set[int]()
    for fuel in range(1, 300, 7):
        limits = DEFAULT_LIMITS.replace(turn_instructions=fuel)
        snapshot, now = Snapshot(), "2026-01-01T00:00:00Z"
        while True:
            inputs = Inputs(now, "seed", outcomes={1: Outcome("completed")})
            turn = advance(program, snapshot, inputs, limits)
            if not isinstance(turn, Suspended | Continue):
                break
            cuts.add(turn.snapshot.statement_index)
            snapshot = decode_snapshot(encode_snapshot(turn.snapshot))
        assert isinstance(turn, Failed)
        assert program.position(turn.at) == (4, 5)
    assert len(cuts) == 3  # at the `catch`, in the loop, at the await


def test_a_snapshot_holds_the_place_only_if_some_throw_may_need_it() -> None:
    program = compiled(RETHROWS)
    assert suspended(program).locals[ORIGINS] == [["failed", program.offset(4, 5)]]
    assert ORIGINS not in suspended(compiled(ONLY_CATCHES)).locals


def test_a_snapshot_of_a_rhythm_that_kept_no_places_goes_on_and_points_at_the_throw() -> None:
    program = compiled(RETHROWS)
    now = suspended(program)
    earlier = now.replace(
        locals={name: value for name, value in now.locals.items() if name != ORIGINS}
    )
    turn = advance(program, earlier, Inputs("", "", outcomes={1: Outcome("completed")}))
    assert isinstance(turn, Failed)
    assert (turn.error["message"], program.position(turn.at)) == ("arose here", (10, 3))
