"""What several transactions have in common: the lock pass, waking, starting, ending.

Always inside a transaction. Locks are taken in one order: types of events, all ready rows in one
sorted pass, families, contexts and their blobs, executions, timers and signals, approvals,
contributors, the actor's token, and last the head of the audit. Ready rows that are created on the
way (the wake of a parked workflow) may conflict with those of another transaction; then one of the
two is run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record
from rhythm.store.access import Actor, StoredToken, authorise
from rhythm.store.approvals import StoredApproval, notice
from rhythm.store.blobs import inline, is_large
from rhythm.store.columns import new_execution
from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.interfaces.executions import NewExecution, Started
from rhythm.store.lifecycle import FREE, TASK, WORKFLOW, StatusNumber, has_ended, is_orderly
from rhythm.store.postgres.connecting import Row
from rhythm.store.postgres.connection import SQL, AgainError, Connection
from rhythm.store.provenance import EVERYBODY, MAX_CONTRIBUTORS, Sender, SendingFamily, sending_turn
from rhythm.store.rows import fields, record_of, records, records_with
from rhythm.store.verdicts import BY_REQUEST, Ending, HistoryRow, end_of_cancelled

US = 1_000_000
LAST_CHILD = 2**62  # higher than any child number


class PostgresFound(Record):
    """An execution, as a transaction reads it."""

    id: str
    type: int
    status: StatusNumber
    cancelled: bool
    parent_id: str | None
    root_id: str
    now: int


class LockedRow(Record):
    """A ready row under lock."""

    id: str
    kind: int
    state: int
    fence: int | None
    wakes: int
    attempt: int
    claimed_by: str | None
    claim_expires_at: int | None
    crashes: int


class End(Record):
    """An execution that reaches a terminal status. Without a fence, nobody had claimed it."""

    id: str
    status: StatusNumber
    value: str
    fence: int | None = None
    worker: str | None = None
    attempt: int = 0
    took_us: int = 0


class Range(Record):
    """Children `first` to `last` of a workflow."""

    id: str
    first: int = 0
    last: int = LAST_CHILD


class PostgresRows:
    """The shared steps of transactions on one connection."""

    def __init__(self, db: Connection, limits: Limits = DEFAULT_LIMITS) -> None:
        self.db, self.limits = db, limits

    def known(self, ids: Iterable[str]) -> list[PostgresFound]:
        """Returns these executions. Ids that do not exist are left out."""
        return records(PostgresFound, self.db.all("executions_of", ids=list(ids)))

    def lock(self, ids: Iterable[str | None]) -> dict[str, LockedRow]:
        """Locks the ready rows of these executions, in one sorted pass, and returns them by id.

        Executions without a ready row are left out.
        """
        rows = self.db.all("lock", ids=sorted({id for id in ids if id is not None}))
        return {row.id: row for row in records(LockedRow, rows)}

    def lock_free(self, ids: Iterable[str]) -> dict[str, LockedRow]:
        """Locks those ready rows that no other transaction has locked, and returns them by id.

        It waits for nobody. Call it after `lock`, if both are needed.
        """
        return {row.id: row for row in records(LockedRow, self.db.all("lock_free", ids=list(ids)))}

    def wake(self, ids: Iterable[str | None], now: int) -> None:
        """Counts up the wakes of these workflows' ready rows, or creates the rows."""
        asleep = sorted({id for id in ids if id is not None})
        if asleep and (FREE,) in self.db.all("wake", ids=asleep, now=now):
            self.db.free([SYSTEM_QUEUE])

    def wake_live(self, ids: Sequence[str]) -> int:
        """Wakes those of these executions that have not ended; returns the time, 0 if all have.

        An execution that is held back needs no wake: it reads everything when it begins. It is
        locked instead, so that it stays held back until the end of the transaction.
        """
        known = self.db.all("receivers", ids=list(ids))
        now = next((now for _, _, now in known), 0)
        self.wake((id for id, held, _ in known if not held), now)
        self.keep_back([id for id, held, _ in known if held])
        return int(now)

    def keep_back(self, ids: Sequence[str]) -> None:
        """Locks executions that are held back, so that they stay so until the end of the
        transaction. Raises `AgainError` if one was released meanwhile: it must be woken after
        all."""
        if ids and len(self.db.all("lock_held", ids=ids)) < len(ids):
            raise AgainError

    # starting

    def start(
        self, executions: Sequence[NewExecution], now: int | None, actor: Actor | None = None
    ) -> set[str]:
        """Starts executions, and returns the ids of the new ones.

        They are ready, unless they are held back. Without `now` it is the time of the database.
        Raises `TokenRevoked` or `Denied` if the token of the actor no longer allows it.
        """
        created, now = self.insert(executions, now, actor)
        self.make_ready(
            [
                dict(
                    id=new.id,
                    kind=new.type,
                    queue=new.queue,
                    priority=new.priority,
                    attempt=new.attempt,
                    delay_us=int(new.delay_s * US),
                    crashes=new.crashes,
                )
                for new in executions
                if new.id in created and not new.held
            ],
            now,
        )
        return created

    def existing(self, executions: Sequence[NewExecution], created: set[str]) -> list[Started]:
        """Returns the answers to starts, if some executions existed before or are twice in the
        batch.

        Of several with one id, the first has created it.
        """
        asked = [dict(id=new.id, name=new.name, key=new.key) for new in executions]
        existing = {i: (id, name) for i, id, name in self.db.batch("existing_executions", asked)}
        answer = []
        for i, new in enumerate(executions):
            if i not in existing:
                raise AgainError  # it was deleted meanwhile
            id, name = existing[i]
            answer.append(Started(id, created=new.id in created, name=name))
            created.discard(new.id)
        return answer

    def insert(
        self, executions: Sequence[NewExecution], now: int | None, actor: Actor | None = None
    ) -> tuple[set[str], int]:
        """Stores the rows of executions and their contexts, but no ready rows. Returns which are
        new, and the time."""
        rows = self._inserted([new_execution(new) for new in executions], now, actor)
        created, later = {id for id, _ in rows}, {new.id: new.later_us for new in executions}
        now = next((created_at - later[id] for id, created_at in rows), 0)
        contexts = {
            new.id: new.snapshot for new in executions if new.type == WORKFLOW and new.id in created
        }
        self.db.batch(
            "insert_contexts",
            [dict(id=id, snapshot=inline(snapshot)) for id, snapshot in contexts.items()],
            now=now,
        )
        self.insert_blobs(contexts)
        self.contribute(
            [
                (new.id, new.contributors)
                for new in executions
                if new.id in created and new.contributors
            ],
            now,
        )
        return created, now

    def _inserted(
        self, columns: Sequence[dict[str, Any]], now: int | None, actor: Actor | None
    ) -> list[Row]:
        """Inserts executions, and checks the actor's token.

        The token is read by the same statement, so a start with a token costs no more than one
        without.
        """
        if actor is None or actor.token is None:
            return self.db.batch("insert_executions", columns, now=now)
        rows = self.db.batch(
            "insert_executions", columns, "shared_token", now=now, token=actor.token
        )
        if rows:
            _, _, token = rows[0]
            authorise(actor, record_of(StoredToken, json.loads(token)) if token else None)
        return [(id, created_at) for id, created_at, _ in rows]

    def insert_blobs(self, snapshots: Mapping[str, bytes | None]) -> None:
        """Stores those of these snapshots that are large, by execution, in place of what was there
        before."""
        self.db.batch(
            "insert_blobs",
            [
                dict(id=id, data=snapshot)
                for id, snapshot in snapshots.items()
                if is_large(snapshot)
            ],
        )

    def make_ready(self, rows: Sequence[dict[str, Any]], now: int) -> None:
        """Creates ready rows, and sends hints for those that can be claimed at once."""
        self.db.batch("insert_ready", [{"crashes": 0, **row} for row in rows], now=now)
        self.db.free(row["queue"] for row in rows if row["delay_us"] <= 0)

    def give_back(self, claims: Sequence[dict[str, Any]], delay_us: int = 0) -> None:
        """Releases claims, so that they can be claimed again at once or after a delay."""
        freed = self.db.batch("release", claims, delay_us=delay_us)
        self.db.free(queue for (queue,) in freed if delay_us <= 0)

    def free_delayed(self, ids: Sequence[str]) -> None:
        """Ends the delay of these ready rows."""
        self.db.free(queue for (queue,) in self.db.all("free_delayed", ids=ids))

    # whose data it is

    def contribute(self, given: Iterable[tuple[str, Iterable[str]]], now: int) -> None:
        """Records that these people have given data to these executions, and so to their whole
        families."""
        rows = [dict(id=id, person=person) for id, people in given for person in people]
        self.db.batch(
            "insert_contributors", rows, most=MAX_CONTRIBUTORS, everybody=EVERYBODY, now=now
        )

    def senders(self, ids: Iterable[str | None]) -> dict[str, Sender]:
        """Returns the turns of these executions as senders, by execution."""
        asked = sorted({id for id in ids if id is not None})
        rows = self.db.all("senders", ids=asked) if asked else []
        return {id: sending_turn(family) for family, id in records_with(SendingFamily, rows, "id")}

    # ending

    def cancel(self, ids: Sequence[str]) -> dict[str, bool]:
        """Asks executions to end. False: it has ended already. Ids that do not exist are left
        out."""
        known = self.known(ids)
        if not known:
            return {}
        tasks = [(each.id, each.parent_id) for each in known if end_of_cancelled(each.type)]
        workflows = [
            each.id
            for each in known
            if end_of_cancelled(each.type) is None and not has_ended(each.status)
        ]
        self.lock([*workflows, *(id for row in tasks for id in row)])
        now = known[0].now
        self.wake(workflows, now)
        flagged = {
            id
            for (id,) in self.db.all("flag_cancel", ids=sorted(each.id for each in known), now=now)
        }
        self.free_delayed(workflows)
        self.end_unclaimed([id for id, _ in tasks if id in flagged], BY_REQUEST, now)
        return {each.id: each.id in flagged for each in known}

    def finish(self, ends: Sequence[End], now: int) -> set[str]:
        """Ends executions and wakes their parents. Returns the ids of those that had not ended
        before.

        This is the only way to a terminal status.
        """
        ended = self.db.batch("finish", [fields(end) for end in ends], now=now)
        self.wake((parent for _, parent in ended), now)
        return {id for id, _ in ended}

    def end_workflows(self, ends: Sequence[End], now: int, wakes: bool = True) -> None:
        """Ends workflows, with their timers, waits and approvals.

        The timers of workflows that fail are kept, cancelled, for a retry.
        """
        self.flag([Range(end.id) for end in ends if not is_orderly(end.status)], now, wakes)
        if ends:
            orderly = [end.id for end in ends if is_orderly(end.status)]
            self.db.do("delete_waits", ids=[end.id for end in ends], orderly=orderly, now=now)
        self.finish(ends, now)

    def end_unclaimed(self, ids: Sequence[str], ended: Ending, now: int) -> set[str]:
        """Ends tasks that nobody has claimed, and returns their ids.

        Their ready rows and those of their parents must be locked.
        """
        if not ids:
            return set()
        self.db.do("delete_unclaimed", ids=ids)
        return self.finish([end_of(id, ended) for (id,) in self.db.all("not_ready", ids=ids)], now)

    def write_history(self, rows: Iterable[HistoryRow], now: int) -> None:
        """Adds rows to the histories of executions."""
        self.db.batch("insert_history", [row._asdict() for row in rows], now=now)

    def flag(self, ranges: Sequence[Range], now: int, wakes: bool = True) -> None:
        """Asks children to end.

        A turn never touches its children's ready rows, except to wake a workflow.
        """
        rows = [fields(numbers) for numbers in ranges]
        self.db.batch("cancel_timers", rows, now=now)
        self.db.batch("cancel_waits", rows, now=now)
        workflows = [
            id for id, type in self.db.batch("flag_children", rows, now=now) if type == WORKFLOW
        ]
        if workflows and wakes:
            self.free_delayed(workflows)
            self.wake(workflows, now)

    def release(self, ranges: Sequence[Range], now: int) -> list[tuple[str, int]]:
        """Lets timers, approvals and waits begin that were held back. Returns the waits for events
        that are now open."""
        rows = [fields(numbers) for numbers in ranges]
        self.db.batch("release_timers", rows, now=now)
        self.notify(
            [id for (id,) in self.db.batch("release_approvals", rows, now=now)], "requested", now
        )
        return [(id, n) for id, n in self.db.batch("release_waits", rows, now=now)]

    def begin(self, ranges: Sequence[Range], now: int) -> None:
        """Lets executions begin that were held back."""
        rows = [fields(numbers) for numbers in ranges]
        freed = self.db.batch("release_children", rows, now=now)
        self.make_ready(
            [
                dict(
                    zip(("id", "kind", "queue", "priority", "attempt"), row, strict=True),
                    delay_us=0,
                )
                for row in freed
            ],
            now,
        )

    # people

    def approvals(self, ids: Sequence[str], lock: bool = False) -> list[StoredApproval]:
        """Returns these approvals, locked if `lock`. Ids that do not exist are left out."""
        end = b" ORDER BY a.id FOR UPDATE OF a" if lock else b""
        text = SQL["approval"] + b" WHERE a.id = ANY(%(ids)s::text[])" + end
        return records(StoredApproval, self.db.rows(text, {"ids": list(ids)})) if ids else []

    def notify(self, ids: Sequence[str], what: str, now: int) -> None:
        """Starts the tasks that notify people about approvals, where their workflows name one."""
        tasks = [task for each in self.approvals(ids) if (task := notice(each, what))]
        if tasks:
            self.start([NewExecution(type=TASK, **task) for task in tasks], now)

    def resumed(self, rows: Sequence[dict[str, Any]], now: int) -> None:
        """Records what lets paused executions go on, and puts their ready rows back into their
        queues."""
        self.db.batch("insert_resumes", rows, now=now)
        if rows:
            self.db.free(
                queue for (queue,) in self.db.all("queue_again", ids=[row["id"] for row in rows])
            )


def end_of(
    id: str,
    ended: Ending,
    fence: int | None = None,
    worker: str | None = None,
    attempt: int = 0,
    took_us: int = 0,
) -> End:
    """Returns how an execution ends, as a row for `finish`."""
    return End(id, ended.status, ended.value, fence, worker, attempt, took_us)


def claim_rows(claims: Mapping[str, int]) -> list[dict[str, Any]]:
    """Returns claims (id -> fence) as rows for a batch."""
    return [dict(id=id, fence=fence) for id, fence in claims.items()]
