"""What several transactions have in common: starting and waking. Always inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable

from rhythm.record import Record
from rhythm.store.base import DELAYED, FREE, WORKFLOW, NewExecution, Started
from rhythm.store.blobs import inline, is_large
from rhythm.store.columns import new_execution
from rhythm.store.provenance import EVERYBODY, MAX_CONTRIBUTORS
from rhythm.store.sqlite.session import US, Session


class Known(Record):
    """An execution, as a transaction finds it."""

    type: int
    status: int
    cancelled: bool
    held: bool
    root_id: str
    started: bool


class Rows(Session):
    """The shared steps of transactions."""

    def _find(self, id: str) -> Known | None:
        return self._first(Known, "status_of", id)

    def _start(self, new: NewExecution, now: int) -> Started:
        row = new_execution(new) | {"now": now}
        if not self._one("insert_execution", row):
            id, name = self._one("existing_execution", row)
            return Started(id, created=False, name=name)
        if new.type == WORKFLOW:
            self._all("insert_context", new.id, inline(new.snapshot), now)
            self._insert_blob(new.id, new.snapshot)
        self._contribute(new.id, new.contributors, now)
        if not new.held:
            self._make_ready(new.id, new.type, new.queue, new.priority, new.attempt, now, new.delay_s, new.crashes)
        return Started(new.id, created=True)

    def _make_ready(
        self, id: str, kind: int, queue: str, priority: int, attempt: int, now: int, delay_s: float = 0.0, crashes: int = 0
    ) -> None:
        state, due_at = (DELAYED, now + int(delay_s * US)) if delay_s > 0 else (FREE, None)
        self._all("insert_ready", id, kind, queue, priority, now, state, due_at, attempt, crashes)

    def _contribute(self, id: str, people: Iterable[str], now: int) -> None:
        """These people have given data to an execution: to all of its family."""
        for person in people:
            values = {"id": id, "person": person, "most": MAX_CONTRIBUTORS, "everybody": EVERYBODY, "now": now}
            self._all("insert_contributor", values)

    def _wake(self, id: str, now: int) -> None:
        self._all("wake", id, 0, now)

    def _insert_blob(self, id: str, snapshot: bytes | None) -> None:
        if is_large(snapshot):
            self._all("insert_blob", id, snapshot)
