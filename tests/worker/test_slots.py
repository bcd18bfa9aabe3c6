"""How much more a worker may begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rhythm.worker.slots import Slots


def slots(concurrency: int, running: int, *planned: int | None) -> Slots:
    """Of a worker with workflows whose commits under way begin so many tasks."""
    settings = SimpleNamespace(concurrency=concurrency, owner_run=True, queues=("default",))
    context: Any = SimpleNamespace(settings=settings, now=lambda: 0.0)
    attempts: Any = SimpleNamespace(running=range(running))
    workflows = {
        str(n): SimpleNamespace(planned=None if each is None else SimpleNamespace(slots=each))
        for n, each in enumerate(planned)
    }
    ownership: Any = SimpleNamespace(workflows=workflows)
    suspects: Any = SimpleNamespace(waiting=(), keeps_still=False)
    return Slots(context, {}, attempts, ownership, suspects)


def test_tasks_of_turns_that_are_being_committed_have_their_slots_already() -> None:
    assert slots(10, 3).capacity().slots == 7
    assert slots(10, 3, 2, None, 1, 0).capacity().slots == 4
