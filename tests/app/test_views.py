"""What one commit did has one time; a trace tells it in the order in which it followed."""

from __future__ import annotations

from datetime import UTC, datetime

from rhythm.app.views import TraceStep, in_order

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def step(at: datetime, id: str, what: str) -> TraceStep:
    return TraceStep(at, id, what, "x")


def test_children_end_then_the_workflow_turns_then_children_start() -> None:
    told = [
        step(EARLY, "w", "started"),
        step(EARLY, "w", "turn"),
        step(EARLY, "w.1", "started"),
        step(LATE, "w.1", "completed"),
        step(LATE, "w", "turn"),
        step(LATE, "w.2", "started"),
        step(LATE, "w.2", "completed"),
    ]
    assert in_order(sorted(told, key=lambda step: step.execution_id)) == told


def test_grandchild_ends_before_the_child_and_the_child_before_the_workflow() -> None:
    told = [step(EARLY, "w", "started"), *(step(LATE, id, "cancelled") for id in ("w.1.1", "w.1", "w"))]
    assert in_order([told[0], *reversed(told[1:])]) == told
