"""How tasks were declared, also those whose handlers only other workers have: whoever plans a turn
must know their queues and retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rhythm.engine.payload import dump_trusted
from rhythm.errors import StoreError
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.workers import Declaration
from rhythm.worker.handlers import Task

UNKNOWN_TTL_S = 5.0  # before the database is asked again about a task that nobody had declared
KNOWN_S = 60.0  # before what is known is read anew


class Declared:
    """The declarations of this worker's tasks are stored once; those of others are read when they
    are first needed."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], now: Callable[[], float]
    ) -> None:
        self._store, self._tasks, self._now = store, tasks, now
        self._known: dict[str, Declaration] = {}
        self._read_at = float("-inf")

    def publish(self) -> None:
        """Tells the others what the tasks of this worker are."""
        self._store.workers.declare([_declaration(task) for _, task in sorted(self._tasks.items())])

    def find(self, name: str) -> Declaration | None:
        """How a task was declared elsewhere; None if nobody has done so, or the database cannot be
        asked."""
        age_s = self._now() - self._read_at
        if age_s > (KNOWN_S if name in self._known else UNKNOWN_TTL_S):
            self._read()
        return self._known.get(name)

    def _read(self) -> None:
        self._read_at = self._now()
        try:
            self._known = {
                declaration.name: declaration for declaration in self._store.workers.declared()
            }
        # what is known has to do; whoever commits the turn meets the problem too
        except StoreError:
            return


def _declaration(task: Task[..., Any]) -> Declaration:
    return Declaration(
        task.name,
        task.queue or "",
        task.retries,
        task.timeout_s,
        dump_trusted(task.backoff_s),
        task.transactional,
    )
