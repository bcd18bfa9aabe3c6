"""Queues of a database: what is in them, which workers serve them, and whether they are paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.app.actors import By, acting
from rhythm.app.checks import valid_name, valid_text
from rhythm.app.views import QueueView, WorkerView, queue_view, worker_view

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.store.interfaces.workers import Queue


class Queues:
    """The queues, and the workers that serve them. Calling it lists the queues."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._store = context, context.store

    def __call__(self) -> list[QueueView]:
        """Returns all queues that have work, are paused, or are served by a worker."""
        return [queue_view(queue) for queue in self._store.workers.queues()]

    def counts(self) -> list[Queue]:
        """Returns what is in the queues as the database counts it, for metrics."""
        return self._store.workers.queues()

    def workers(self) -> list[WorkerView]:
        """Returns all workers of the database, in any process. Dead ones are listed for a day."""
        return [worker_view(seen) for seen in self._store.workers.seen()]

    def pause(self, name: str, reason: str = "", by: By = None) -> bool:
        """Pauses a queue: no task or workflow of it begins. Returns False if it was paused already.

        What has begun goes on.
        """
        return self._store.workers.pause_queue(
            valid_name(name, "a queue"), True, acting(by), valid_text(reason, "reason")
        )

    def resume(self, name: str, by: By = None) -> bool:
        """Lets workers take work from a paused queue again. Returns False if it was not paused."""
        changed = self._store.workers.pause_queue(valid_name(name, "a queue"), False, acting(by))
        self._context.wake()
        return changed
