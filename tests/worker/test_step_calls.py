"""What a step costs the worker's Python: deciding a turn, the largest part of it, is counted in
calls, which are the same on a busy machine."""

from __future__ import annotations

from unittest.mock import patch

from tests.engine.driver import World
from tests.support.calls import calls

STEPS = """
workflow main(inputs) {
  let total = 0
  for (i in range(inputs)) {
    let x = await task("value", { x: i })
    total += x
  }
  return total
}
"""
MOST = 283  # raise it only for what every step needs


def deciding(steps: int) -> int:
    """How many functions are called to decide all turns of a workflow of so many steps."""
    world, counted = World(STEPS), 0
    decide = world.worker.turns.decide

    def watched(most: int) -> object:
        nonlocal counted
        decided: list[object] = []
        counted += calls(lambda: decided.append(decide(most)))
        return decided[0]

    world.start(inputs=steps)
    with patch.object(world.worker.turns, "decide", watched):
        assert world.run().result == str(sum(range(steps)))
    return counted


def test_a_step_is_decided_with_few_calls() -> None:
    deciding(10)  # what is compiled and looked up once
    few, many = deciding(10), deciding(110)
    assert (many - few) / 100 <= MOST
