"""What several transactions have in common: starting, waking, ending.

Always inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record
from rhythm.store.approvals import StoredApproval, notice
from rhythm.store.blobs import inline, is_large
from rhythm.store.columns import new_execution
from rhythm.store.interfaces.executions import NewExecution, Started, StoredExecution
from rhythm.store.lifecycle import (
    DELAYED,
    FREE,
    TASK,
    WORKFLOW,
    StatusNumber,
    has_ended,
    is_orderly,
)
from rhythm.store.provenance import EVERYBODY, MAX_CONTRIBUTORS
from rhythm.store.rows import records
from rhythm.store.sqlite.session import SQL, US, SqliteSession
from rhythm.store.verdicts import Ending, HistoryRow, end_of_cancelled, result_and_error

LAST_CHILD = 2**62  # higher than any child number


class SqliteFound(Record):
    """An execution, as a transaction reads it."""

    type: int
    status: StatusNumber
    cancelled: bool
    held: bool
    root_id: str
    started: bool


class ReleasedExecution(Record):
    """An execution that was held back and may begin: the values for its ready row."""

    id: str
    type: int
    queue: str
    priority: int
    attempt: int


class SqliteRows:
    """The shared steps of transactions on one connection."""

    def __init__(self, db: SqliteSession, limits: Limits = DEFAULT_LIMITS) -> None:
        self.db, self.limits = db, limits

    def find(self, id: str) -> SqliteFound | None:
        """Returns an execution. None: it does not exist."""
        return self.db.first(SqliteFound, "status_of", id)

    def known(self, ids: Sequence[str]) -> dict[str, SqliteFound]:
        """Returns these executions by id. Ids that do not exist are left out."""
        return {id: found for id in ids if (found := self.find(id))}

    def start(self, new: NewExecution, now: int) -> Started:
        """Starts an execution, unless its id or (name, key) exists already."""
        row = new_execution(new) | {"now": now}
        if not self.db.one("insert_execution", row):
            id, name = self.db.one("existing_execution", row)
            return Started(id, created=False, name=name)
        if new.type == WORKFLOW:
            self.db.all("insert_context", new.id, inline(new.snapshot), now)
            self.insert_blob(new.id, new.snapshot)
        self.contribute(new.id, new.contributors, now)
        if not new.held:
            self.make_ready(new, now, new.delay_s, new.crashes)
        return Started(new.id, created=True)

    def make_ready(
        self,
        begun: NewExecution | StoredExecution | ReleasedExecution,
        now: int,
        delay_s: float = 0.0,
        crashes: int = 0,
    ) -> None:
        """Puts an execution that may begin into its queue, at once or after a delay."""
        state, due_at = (DELAYED, now + int(delay_s * US)) if delay_s > 0 else (FREE, None)
        ready = {
            "id": begun.id,
            "type": begun.type,
            "queue": begun.queue,
            "priority": begun.priority,
            "attempt": begun.attempt,
            "crashes": crashes,
            "state": state,
            "due_at": due_at,
            "now": now,
        }
        self.db.all("insert_ready", ready)

    def contribute(self, id: str, people: Iterable[str], now: int) -> None:
        """Records that these people have given data to an execution, and so to its whole family."""
        for person in people:
            values = {
                "id": id,
                "person": person,
                "most": MAX_CONTRIBUTORS,
                "everybody": EVERYBODY,
                "now": now,
            }
            self.db.all("insert_contributor", values)

    def wake(self, id: str, now: int) -> None:
        """Counts up the wakes of a workflow's ready row, or creates the row."""
        self.db.all("wake", id, 0, now)

    def insert_blob(self, id: str, snapshot: bytes | None) -> None:
        """Stores a snapshot in `blobs` if it is large."""
        if is_large(snapshot):
            self.db.all("insert_blob", id, snapshot)

    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        """Extends claims (id -> fence). Returns the `wakes` of those that are still held."""
        expires = self.db.clock() + int(ttl_s * US)
        found = {id: self.db.one("extend", expires, id, fence) for id, fence in claims.items()}
        return {id: row[0] for id, row in found.items() if row}

    def cancel(self, id: str, known: SqliteFound | None, now: int) -> bool:
        """Asks an execution to end. False: it has ended, or does not exist."""
        if known is None or has_ended(known.status):
            return False
        self.db.all("flag_cancel", {"id": id, "now": now})
        ended = end_of_cancelled(known.type)
        if ended is None:
            self.db.all("free_delayed", id)
            self.wake(id, now)
        elif not self.runs(id):
            self.db.all("delete_ready", id)
            self.finish(id, ended, now)
        return True

    def runs(self, id: str) -> bool:
        """Returns whether an execution is claimed."""
        return bool(self.db.run("SELECT 1 FROM ready WHERE id = ? AND state = 1", (id,))[0])

    def flag(self, id: str, first: int, last: int, now: int, wakes: bool = True) -> None:
        """Asks children to end.

        A turn never touches its children's ready rows, except to wake a workflow.
        """
        self.db.all("cancel_timers", now, id, first, last)
        self.db.all("cancel_waits", now, id, first, last)
        self.db.all("cancel_approvals", now, id, first, last)
        for child, type in self.db.all(
            "flag_children", {"id": id, "first": first, "last": last, "now": now}
        ):
            if type == WORKFLOW and wakes:
                self.db.all("free_delayed", child)
                self.wake(child, now)

    def finish(
        self,
        id: str,
        ended: Ending,
        now: int,
        fence: int | None = None,
        worker: str | None = None,
        attempt: int = 0,
        took_us: int = 0,
    ) -> bool:
        """Ends an execution and wakes its parent. False: it had ended before.

        This is the only way to a terminal status. Without a fence, nobody had claimed it.
        """
        result, error = result_and_error(ended.status, ended.value)
        row = self.db.one(
            "finish",
            {
                "id": id,
                "status": ended.status,
                "result": result,
                "error": error,
                "now": now,
                "fence": fence,
                "worker": worker,
                "attempt": attempt,
                "took_us": took_us,
            },
        )
        if row and row[0]:
            self.wake(row[0], now)
        return row is not None

    def end_workflow(
        self, id: str, ended: Ending, now: int, fence: int, worker: str | None, wakes: bool = True
    ) -> None:
        """Ends a workflow, with its timers, waits and approvals."""
        if is_orderly(ended.status):
            self.db.all("delete_timers", id)
        # Its timers are kept, cancelled, for a retry.
        else:
            self.flag(id, 0, LAST_CHILD, now, wakes)
        self.db.all("delete_waits", id)
        self.db.all("cancel_approvals", now, id, 0, LAST_CHILD)
        self.db.all("unseen_resumes", id)
        self.finish(id, ended, now, fence, worker)

    def write_history(self, row: HistoryRow, now: int) -> None:
        """Adds a row to the history of an execution."""
        self.db.all("insert_history", {**row._asdict(), "now": now})

    def resumed(self, id: str, by: str, by_id: str, data: str, now: int, reason: str = "") -> None:
        """Records what lets a paused execution go on."""
        self.db.all(
            "insert_resume",
            {"id": id, "by": by, "by_id": by_id, "data": data, "reason": reason, "now": now},
        )

    def queue_again(self, ids: Iterable[str]) -> None:
        """Puts the ready rows of resumed executions back into their queues."""
        for id in ids:
            self.db.all("queue_again", id)

    def approval(self, id: str) -> StoredApproval | None:
        """Returns an approval. None: there is no such approval."""
        rows, _ = self.db.run(f"{SQL['approval']} WHERE a.id = ?", (id,))
        found = records(StoredApproval, rows)
        return found[0] if found else None

    def notify(self, id: str, what: str, now: int) -> None:
        """Starts the task that notifies people about an approval, if its workflow names one."""
        approval = self.approval(id)
        task = notice(approval, what) if approval else None
        if task:
            self.start(NewExecution(type=TASK, **task), now)
