"""When what a commit has stored is due, as the worker that has committed it knows."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.engine.due import next_due_s
from rhythm.store.approvals import NewApproval
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewWait
from rhythm.store.interfaces.turns import NewTimer, TaskEnd, TurnCommit
from rhythm.store.lifecycle import FAILED, TASK

TURN = TurnCommit("w", 0, 1, 0, "park", "a", "turn")
START = NewExecution("w.1", TASK, "work", "default")


@pytest.mark.parametrize(
    ("stored", "due_s"),
    [
        ({}, None),
        ({"timers": (NewTimer(1, 60.0), NewTimer(2, 5.0))}, 5.0),
        ({"timers": (NewTimer(1, None, until=1_000_000),)}, 0.0),
        ({"waits": (NewWait(1, "paid", "{}"),)}, None),
        ({"waits": (NewWait(1, "paid", "{}", 7.0),)}, 7.0),
        ({"approvals": (NewApproval(1, "boss", "", "null", timeout_s=8.0),)}, 8.0),
        ({"starts": (START,)}, None),
        ({"starts": (START.replace(delay_s=3.0),)}, 3.0),
        ({"starts": (START.replace(delay_s=3.0, timeout_s=4.0),)}, 3.0),
        ({"starts": (START.replace(timeout_s=4.0),)}, 4.0),
        ({"releases": ((1, 2),)}, 0.0),
        ({"begins": ((1, 2),)}, 0.0),
    ],
)
def test_a_turn_tells_when_the_first_thing_is_due(
    stored: dict[str, Any], due_s: float | None
) -> None:
    assert next_due_s([TURN, TURN.replace(**stored)], []) == due_s


def test_a_task_that_is_tried_again_tells_when() -> None:
    again = TaskEnd("w.1", 1, FAILED, "null", retry_s=2.0)
    assert next_due_s([], [TaskEnd("w.2", 1, FAILED, "null"), again]) == 2.0
    assert next_due_s([TURN.replace(timers=(NewTimer(1, 1.0),))], [again]) == 1.0
