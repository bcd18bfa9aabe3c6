"""What several transactions have in common: starting, waking, ending.

Always inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice
from operator import attrgetter
from typing import NamedTuple

from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record
from rhythm.store.approvals import StoredApproval, notice
from rhythm.store.blobs import inline, is_large
from rhythm.store.columns import COLUMNS, new_execution
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
from rhythm.store.rows import Row, records
from rhythm.store.sqlite.session import SQL, US, SqliteSession
from rhythm.store.verdicts import Ending, HistoryRow, end_of_cancelled, result_and_error

LAST_CHILD = 2**62  # higher than any child number
AT_ONCE = 250  # starts in one text of JSON: with the largest inputs SQLite still takes it


class SqliteFound(Record):
    """An execution, as a transaction reads it."""

    type: int
    status: StatusNumber
    cancelled: bool
    held: bool
    parent_id: str | None


class ExecutionEnd(NamedTuple):
    """How an execution ends, and the parent that it wakes. Without a fence, nobody had claimed
    it."""

    id: str
    ended: Ending
    parent_id: str | None
    fence: int | None = None
    worker: str | None = None
    attempt: int = 0
    took_us: int = 0


# The names of values in statements that are run for many rows.
NEW = (*COLUMNS["NewExecution"], "root", "timeout_us", "delay_us", "later_us", "now")
READY = ("id", "type", "queue", "priority", "attempt", "crashes", "state", "due_at", "now")
ENDED = ("id", "status", "result", "error", "now", "fence", "worker", "attempt", "took_us")
HISTORY = (*HistoryRow._fields, "now")
_new_execution = attrgetter(*COLUMNS["NewExecution"])


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
        return self.start_all([new], now)[0]

    def start_all(self, executions: Sequence[NewExecution], now: int) -> list[Started]:
        """Starts executions, unless their id or (name, key) exists already."""
        rows = [_new_row(new, now) for new in executions]
        created = self.db.each("insert_execution", NEW, rows)
        new_ones = (
            executions if all(created) else [*compress(executions, created)]
        )  # mostly all of them
        workflows = [new for new in new_ones if new.type == WORKFLOW]
        contexts = [(new.id, inline(new.snapshot), now) for new in workflows]
        self.db.many("insert_context", (), contexts)
        for new in workflows:
            self.insert_blob(new.id, new.snapshot)
        for new in new_ones:
            if new.contributors:
                self.contribute(new.id, new.contributors, now)
        self.index_attributes([new.id for new in new_ones if new.attributes != "{}"])
        ready = [_ready_row(new, now, new.delay_s, new.crashes) for new in new_ones if not new.held]
        self.db.many("insert_ready", READY, ready)
        if new_ones is executions:
            return [Started(new.id, True) for new in executions]
        return [
            Started(new.id, True) if is_new else self._existing(new)
            for new, is_new in zip(executions, created, strict=True)
        ]

    def start_alike(self, alike: NewExecution, inputs: Mapping[str, str], now: int) -> None:
        """Starts roots that differ only in their ids, which are new, and their inputs, by id."""
        common, starts = {**new_execution(alike), "now": now}, iter(inputs.items())
        while part := dict(islice(starts, AT_ONCE)):
            given = {**common, "inputs_of": json.dumps(part), "ids": json.dumps([*part])}
            self.db.all("start_alike", given)
            if alike.type == WORKFLOW:
                self.db.all("start_alike_contexts", given)
            self.db.all("start_alike_ready", given)
            self.index_attributes(list(part) if alike.attributes != "{}" else ())
        for id in inputs if alike.contributors else ():
            self.contribute(id, alike.contributors, now)

    def index_attributes(self, ids: Sequence[str]) -> None:
        """Makes the attributes of new executions searchable, if they are roots."""
        if ids:
            self.db.all("index_attributes", json.dumps(ids))

    def _existing(self, new: NewExecution) -> Started:
        """Returns the execution that has the id, or the name and key, of a new one."""
        id, name = self.db.one(
            "existing_execution", {"id": new.id, "name": new.name, "key": new.key}
        )
        return Started(id, created=False, name=name)

    def make_ready(self, begun: Sequence[StoredExecution | ReleasedExecution], now: int) -> None:
        """Puts executions that may begin into their queues."""
        self.db.many("insert_ready", READY, [_ready_row(each, now) for each in begun])

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
        self.wake_all([id], now)

    def wake_all(self, ids: Iterable[str], now: int) -> None:
        """Counts up the wakes of workflows' ready rows, or creates the rows."""
        self.db.many("wake", (), [(id, 0, now) for id in ids])

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
    ) -> None:
        """Ends an execution and wakes its parent, unless it has ended before."""
        if known := self.find(id):
            end = ExecutionEnd(id, ended, known.parent_id, fence, worker, attempt)
            self.finish_all([end], now)

    def finish_all(self, ends: Sequence[ExecutionEnd], now: int) -> set[str]:
        """Ends executions and wakes their parents. Returns the ids of those that had not ended
        before.

        This is the only way to a terminal status.
        """
        rows = [
            (id, ended.status, *result_and_error(*ended), now, fence, worker, attempt, took_us)
            for id, ended, _, fence, worker, attempt, took_us in ends
        ]
        finished = list(compress(ends, self.db.each("finish", ENDED, rows)))
        ids, parents = {end.id for end in finished}, {end.parent_id for end in finished}
        # A parent that ends at the same time has nothing to look at.
        self.wake_all((id for id in parents - ids if id is not None), now)
        return ids

    def end_workflow(
        self, id: str, ended: Ending, now: int, fence: int, worker: str | None, wakes: bool = True
    ) -> None:
        """Ends a workflow, with its timers, waits and approvals."""
        if known := self.find(id):
            end = ExecutionEnd(id, ended, known.parent_id, fence, worker)
            self.end_workflows([end], now, wakes)

    def end_workflows(self, ends: Sequence[ExecutionEnd], now: int, wakes: bool = True) -> None:
        """Ends workflows, with their timers, waits and approvals."""
        orderly = [end.id for end in ends if is_orderly(end.ended.status)]
        # The timers of the others are kept, cancelled, for a retry.
        self.db.all("delete_timers", json.dumps(orderly))
        for end in ends:
            if not is_orderly(end.ended.status):
                self.flag(end.id, 0, LAST_CHILD, now, wakes)
        ids = json.dumps([end.id for end in ends])
        self.db.all("delete_waits", ids)
        self.db.many("cancel_approvals", (), [(now, end.id, 0, LAST_CHILD) for end in ends])
        self.db.all("unseen_resumes", ids)
        self.finish_all(ends, now)

    def write_history(self, rows: Iterable[HistoryRow], now: int) -> None:
        """Adds rows to the history of executions."""
        self.db.many("insert_history", HISTORY, [(*row, now) for row in rows])

    def resumed(
        self,
        id: str,
        by: str,
        by_id: str,
        data: str,
        now: int,
        reason: str = "",
        metadata: str = "null",
    ) -> None:
        """Records what lets a paused execution go on."""
        values = dict(id=id, by=by, by_id=by_id, data=data, reason=reason, metadata=metadata)
        self.db.all("insert_resume", values | {"now": now})

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


def _new_row(new: NewExecution, now: int) -> Row:
    """Returns the values of a new execution, in the order of `NEW`."""
    timeout_us = None if new.timeout_s is None else int(new.timeout_s * US)
    delay_us = int(new.delay_s * US)
    return (*_new_execution(new), new.root_id or new.id, timeout_us, delay_us, new.later_us, now)


def _ready_row(
    begun: NewExecution | StoredExecution | ReleasedExecution,
    now: int,
    delay_s: float = 0.0,
    crashes: int = 0,
) -> Row:
    """Returns the values of the ready row of an execution that may begin, at once or after a delay,
    in the order of `READY`."""
    state, due_at = (DELAYED, now + int(delay_s * US)) if delay_s > 0 else (FREE, None)
    placed = begun.id, begun.type, begun.queue, begun.priority, begun.attempt
    return (*placed, crashes, state, due_at, now)
