"""What a worker makes of the answers to its heartbeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rhythm.store.interfaces.workers import OwnClaims
from rhythm.worker.heartbeat import Answer
from rhythm.worker.liveness import Liveness


def test_a_workflow_whose_commit_is_under_way_is_not_lost_by_a_heartbeat() -> None:
    """The commit may have ended it, and its answer is not read yet: that one says what is true."""
    lost: list[str] = []
    workflows = {
        id: SimpleNamespace(id=id, fence=1, wakes=0, planned=planned)
        for id, planned in (("idle", None), ("committing", object()))
    }
    ownership: Any = SimpleNamespace(
        workflows=workflows, tasks={}, ends=[], sending=[], unsure=False, alive_until=0.0,
        fences=lambda: dict.fromkeys(workflows, 1), lose=lost.append,
    )  # fmt: skip
    answer = Answer(0.0, dict.fromkeys(workflows, 1), False, OwnClaims([], ()))
    heart: Any = SimpleNamespace(
        apart=True, answers=lambda: iter([answer]), settings=SimpleNamespace(trusted_s=1.0)
    )
    context: Any = SimpleNamespace(store=SimpleNamespace(era=0), narrator=None)
    Liveness(context, heart, ownership).catch_up()
    assert lost == ["idle"]
