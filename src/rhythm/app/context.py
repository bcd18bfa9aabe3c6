"""What the rooms of an application share: its database, settings and tasks, and the workers of this
process.

A room is a class for one subject, made from this context by the constructor of `Rhythm`. What
several rooms need of a database is here; nothing is set afterwards.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from rhythm.app.checks import parse_execution_id, unknown_execution
from rhythm.app.closing import StoreUntilClosed
from rhythm.app.python_workflows import PythonRegistration
from rhythm.app.waiting import Changes
from rhythm.engine.programs import ProgramCache
from rhythm.ids import RANDOM, encode_id, encode_ids
from rhythm.permissions import Scope, prefixes, within
from rhythm.worker.sizes import Sizes

if TYPE_CHECKING:
    from rhythm.app.handle import Id
    from rhythm.app.pooled import PooledWorker
    from rhythm.authoring.workflow import Workflow
    from rhythm.settings import Settings
    from rhythm.store.interfaces.executions import Execution
    from rhythm.store.interfaces.store import Store
    from rhythm.worker.handlers import Task


class AppContext:
    """The database of an application, its settings and tasks, and what this process caches."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        tasks: Mapping[str, Task[..., Any]],
        workflows: Iterable[Workflow[..., Any]] | None = None,
    ) -> None:
        self.closing = StoreUntilClosed(store)
        self.store = cast("Store", self.closing)  # it has all that the store has
        self.settings, self.tasks = settings, tasks
        self.python = PythonRegistration(self.store, workflows)
        self.programs, self.sizes, self.changes = ProgramCache(), Sizes(), Changes(self.store)
        self.running: list[PooledWorker] = []  # workers of this process

    def new_id(self) -> str:
        """Returns a new id."""
        return encode_id(time.time_ns() // 1_000_000, secrets.randbits(80))

    def new_ids(self, count: int) -> list[str]:
        """Returns so many new ids, in rising order."""
        return encode_ids(time.time_ns() // 1_000_000, secrets.token_bytes(RANDOM * count))

    def wake(self) -> None:
        """Makes the workers of this process look for work at once.

        Workers of other processes find it when they poll next.
        """
        for worker in list(self.running):
            worker.wake()

    def store_on(self, connection: Any) -> Store:
        """Returns the store, on the caller's own connection if there is one."""
        return self.store if connection is None else self.store.within(connection)

    def wake_if_committed(self, store: Store) -> None:
        """Like `wake`, unless the store is on a caller's connection.

        What was written there is not committed yet: workers hear of it from the database.
        """
        if store is self.store:
            self.wake()

    def execution(self, id: Id) -> Execution:
        """Returns the row of an execution.

        Raises `UnknownExecution` if there is none with this id.
        """
        id = parse_execution_id(id)
        found = self.store.reading.get([id]).get(id)
        return found if found is not None else unknown_execution(id)

    def names_in(self, scope: Scope) -> tuple[str, ...] | None:
        """Returns the names in this scope of all roots (executions that were started from outside).

        None means all names. From here on, databases are asked for names, not for patterns: only
        one function says what a pattern means.
        """
        if scope is None:
            return None
        return tuple(
            name for name in self.store.reading.names(prefixes(scope)) if within(scope, name)
        )
