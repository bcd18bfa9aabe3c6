"""How tasks were declared, also those whose handlers only other workers have.

The worker that plans a turn must know the queues and retries of the tasks in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rhythm.engine.payload import dump_trusted
from rhythm.errors import StoreError
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.workers import Declaration
from rhythm.worker.handlers import Task

UNKNOWN_TTL_S = 5.0  # before the database is asked again about a task that nobody had declared
KNOWN_S = 60.0  # before known declarations are read again


class Declared:
    """The declarations of tasks: stores those of this worker, reads those of the others.

    They are read when they are first needed.
    """

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], now: Callable[[], float]
    ) -> None:
        self._store, self._tasks, self._now = store, tasks, now
        self._known: dict[str, Declaration] = {}
        self._read_at = float("-inf")

    def publish(self) -> None:
        """Stores how the tasks of this worker are declared, for the other workers."""
        self._store.workers.declare([_declaration(task) for _, task in sorted(self._tasks.items())])

    def find(self, name: str) -> Declaration | None:
        """Returns how a task was declared by some worker.

        None if no worker has declared it, or if the database does not answer and nothing is known
        from before.
        """
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
        # Go on with what is known. If the problem lasts, the commit of the turn meets it too.
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
