"""A Python workflow over a limit: `finally` runs, and no `except` takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm import commands as c
from tests.python.modules import compiled
from tests.support.world import World

SAGA = """
import rhythm

@rhythm.task
async def value(value: str) -> str: ...

async def workflow() -> list[int]:
    undo: list[str] = []
    pages: list[int] = []
    try:
        try:
            for name in ["a", "b", "c"]:
                undo.append(await value(value=name))
                if name == "b":
                    pages = list(range(2000))
                with CONTEXT:
                    await value(value="between")
        except CAUGHT:
            rhythm.log("caught")
        else:
            rhythm.log("else")
    finally:
        while undo:
            rhythm.log("refund " + await value(value=undo.pop()))
    return pages
"""


@pytest.mark.parametrize("caught", ["Exception", "BaseException", "rhythm.WorkflowError"])
@pytest.mark.parametrize("timeout", [True, False], ids=["with", "plain"])
def test_finally_runs_and_no_except_takes_it(caught: str, timeout: bool, tmp_path: Path) -> None:
    context = 'rhythm.timeout("1h")'
    text = SAGA.replace("CAUGHT", caught).replace("CONTEXT", context)
    if not timeout:
        text = text.replace(f"with {context}:", "if True:")
    [program] = compiled(text, tmp_path).programs_or_raise()
    world = World([program], limits=DEFAULT_LIMITS.replace(snapshot_bytes=4096), through_json=True)
    ended = world.run(program.name)
    assert (ended.status, ended.value["code"]) == ("failed", "LimitExceeded")
    said = [entry.message for entry in world.log if isinstance(entry, c.Log)]
    assert said == ["refund b", "refund a"]
