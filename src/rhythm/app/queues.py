"""Queues of a database: what is in them, who takes it, and whether anybody may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.app.actors import By, acting
from rhythm.app.checks import valid_name, valid_text
from rhythm.app.views import QueueView, WorkerView, queue_view, worker_view

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.store.interfaces.workers import Queue


class Queues:
    """The queues, and who serves them. Called, it lists them."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._store = context, context.store

    def __call__(self) -> list[QueueView]:
        """What is in the queues: all that have work, are paused, or are served by a worker."""
        return [queue_view(queue) for queue in self._store.workers.queues()]

    def counts(self) -> list[Queue]:
        """What is in the queues as the database counts it, for metrics."""
        return self._store.workers.queues()

    def workers(self) -> list[WorkerView]:
        """The workers of the database, whatever process they are in; those that died, for a day."""
        return [worker_view(seen) for seen in self._store.workers.seen()]

    def pause(self, name: str, reason: str = "", by: By = None) -> bool:
        """Nothing more of this queue begins: no task, and no workflow. What has begun goes on.
        False: it was paused already."""
        return self._store.workers.pause_queue(
            valid_name(name, "a queue"), True, acting(by), valid_text(reason, "reason")
        )

    def resume(self, name: str, by: By = None) -> bool:
        """Lets workers take from a paused queue again. False: it was not paused."""
        changed = self._store.workers.pause_queue(valid_name(name, "a queue"), False, acting(by))
        self._context.wake()
        return changed
