"""What a worker makes of the answers to its heartbeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rhythm.store.interfaces.workers import OwnClaims
from rhythm.worker.heartbeat import Answer
from rhythm.worker.liveness import Liveness


class Owned:
    """What a worker owns: a workflow that is idle, and one whose commit is under way."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.workflows = {
            id: SimpleNamespace(id=id, fence=1, wakes=0, planned=planned, deadline=5.0)
            for id, planned in (("idle", None), ("committing", object()))
        }
        ownership: Any = SimpleNamespace(
            workflows=self.workflows, tasks={}, ends=[], sending=[], unsure=False, alive_until=0.0,
            fences=lambda: dict.fromkeys(self.workflows, 1), lose=self.lost.append,
            deadline=lambda since: since + 10.0,
        )  # fmt: skip
        self.ownership = ownership

    def take(self, *claims: tuple[str, int, int]) -> None:
        """Acts on a heartbeat that was sent at 100 s, and found these claims of the worker."""
        own = OwnClaims(claims, ())
        answer = Answer(100.0, dict.fromkeys(self.workflows, 1), True, own)
        heart: Any = SimpleNamespace(
            apart=True, answers=lambda: iter([answer]), settings=SimpleNamespace(trusted_s=1.0)
        )
        context: Any = SimpleNamespace(store=SimpleNamespace(era=0), narrator=None)
        Liveness(context, heart, self.ownership).catch_up()


def test_a_workflow_whose_commit_is_under_way_is_not_lost_by_a_heartbeat() -> None:
    """The commit may have ended it, and its answer is not read yet: that one says what is true."""
    owned = Owned()
    owned.take()
    assert owned.lost == ["idle"]


def test_a_claim_that_a_heartbeat_did_not_find_is_not_relied_on_for_longer() -> None:
    """The worker was frozen after its commit: another one may own the workflow, and nothing may
    begin for it here."""
    owned = Owned()
    owned.take()
    assert owned.workflows["committing"].deadline == 5.0
    owned.take(("committing", 2, 0))
    assert owned.workflows["committing"].deadline == 5.0
    owned.take(("idle", 1, 0), ("committing", 1, 0))
    assert owned.workflows["committing"].deadline == 110.0
