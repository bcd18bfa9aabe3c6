"""What several transactions have in common: the lock pass, waking, starting, ending.

Always inside a transaction. Locks are taken in one order: types of events, all ready rows in one
sorted pass, families, contexts and their blobs, executions, timers and signals, approvals,
contributors, the actor's token, and last the head of the audit. Ready rows that are created on the
way (the wake of a parked workflow) may conflict with those of another transaction; then one of the
two is run again.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record
from rhythm.store.access import Actor, StoredToken, authorise
from rhythm.store.approvals import StoredApproval, notice
from rhythm.store.blobs import inline, is_large
from rhythm.store.columns import new_execution, new_executions
from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.interfaces.executions import NewExecution, OutdatedError, Started
from rhythm.store.lifecycle import FREE, TASK, WORKFLOW, StatusNumber, has_ended, is_orderly
from rhythm.store.postgres.connection import SQL, AgainError, Connection
from rhythm.store.provenance import EVERYBODY, MAX_CONTRIBUTORS, Sender, SendingFamily, sending_turn
from rhythm.store.rows import columns, fields, record_of, records, records_with
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
        if asleep := sorted({id for id in ids if id is not None}):
            woken = self.db.do("wake", ids=asleep, now=now)
            self.db.free_later(lambda: [SYSTEM_QUEUE] if (FREE,) in woken.rows else [])

    def wake_live(self, ids: Sequence[str]) -> int:
        """Wakes those of these executions that have not ended; returns the time, 0 if all have.

        An execution that is held back needs no wake: it reads everything when it begins. It is
        locked instead, so that it stays held back until the end of the transaction.
        """
        known = self.db.all("wake_live", ids=list(ids))
        self.keep_back([id for id, held, _, _ in known if held])
        if any(free for _, _, _, free in known):
            self.db.free([SYSTEM_QUEUE])
        return next((int(now) for _, _, now, _ in known), 0)

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
        starts = _starts(executions, not_queued=())
        rows = self.db.all("start_executions", now=now, token=_token_of(actor), **starts)
        if rows:
            _authorise(actor, rows[0][2])
        created, later = {id for id, _, _ in rows}, {new.id: new.later_us for new in executions}
        now = next((created_at - later[id] for id, created_at, _ in rows), 0)
        self._started([new for new in executions if new.id in created], now)
        return created

    def start_alike(
        self,
        alike: NewExecution,
        inputs: Mapping[str, str],
        actor: Actor | None,
        if_current: bool,
    ) -> None:
        """Starts roots that differ only in their ids, which are new, and their inputs, by id.

        Raises `TokenRevoked` or `Denied` if the token of the actor no longer allows it, and with
        `if_current` `OutdatedError` if the version is not the current one of the workflow.
        """
        # Before the start: so the hint travels with it.
        self.db.free([alike.queue] if alike.delay_s <= 0 else [])
        rows = self.db.all(
            "start_alike",
            ids=list(inputs),
            inputs_of=list(inputs.values()),
            if_current=if_current,
            token=_token_of(actor),
            **new_execution(alike),
        )
        if not rows:
            raise OutdatedError
        ((now, token),) = rows
        _authorise(actor, token)
        self.contribute([(id, alike.contributors) for id in inputs if alike.contributors], now)

    def start_children(
        self, executions: Sequence[NewExecution], now: int, not_queued: Container[int] = ()
    ) -> None:
        """Starts children of workflows, whose ids are new.

        They are ready, unless they are held back, or their numbers are among `not_queued`.
        """
        if executions:
            starts = _starts(executions, not_queued)
            self.db.do("start_executions", now=now, token=None, **starts)
            self._started(executions, now, not_queued)

    def _started(
        self, new: Sequence[NewExecution], now: int, not_queued: Container[int] = ()
    ) -> None:
        """Stores what new executions have outside of their own rows, and sends hints for them."""
        self.insert_blobs({each.id: each.snapshot for each in new if each.type == WORKFLOW})
        self.contribute([(each.id, each.contributors) for each in new if each.contributors], now)
        self.db.free(
            each.queue
            for each in new
            if not each.held and each.delay_s <= 0 and each.child_no not in not_queued
        )

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

    def insert_blobs(self, snapshots: Mapping[str, bytes | None]) -> None:
        """Stores those of these snapshots that are large, by execution, in place of what was there
        before."""
        self.db.write(
            "insert_blobs",
            [
                dict(id=id, data=snapshot)
                for id, snapshot in snapshots.items()
                if is_large(snapshot)
            ],
        )

    def make_ready(self, rows: Sequence[dict[str, Any]], now: int) -> None:
        """Creates ready rows, and sends hints for those that can be claimed at once."""
        self.db.write("insert_ready", [{"crashes": 0, **row} for row in rows], now=now)
        self.db.free(row["queue"] for row in rows if row["delay_us"] <= 0)

    def give_back(self, claims: Sequence[dict[str, Any]], delay_us: int = 0) -> None:
        """Releases claims, so that they can be claimed again at once or after a delay."""
        freed = self.db.write("release", claims, delay_us=delay_us)
        if delay_us <= 0:
            self.db.free_later(lambda: [queue for (queue,) in freed.rows])

    def free_delayed(self, ids: Sequence[str]) -> None:
        """Ends the delay of these ready rows."""
        freed = self.db.do("free_delayed", ids=ids)
        self.db.free_later(lambda: [queue for (queue,) in freed.rows])

    # whose data it is

    def contribute(self, given: Iterable[tuple[str, Iterable[str]]], now: int) -> None:
        """Records that these people have given data to these executions, and so to their whole
        families."""
        rows = [dict(id=id, person=person) for id, people in given for person in people]
        self.db.write(
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
        self._announce(ended, now)
        return {id for id, _ in ended}

    def _announce(self, ended: Sequence[tuple[str, str | None]], now: int) -> None:
        """Wakes the parents of executions that end; of those without one, callers are told."""
        self.wake((parent for _, parent in ended), now)
        self.db.end(id for id, parent in ended if parent is None)

    def end_known(self, ends: Sequence[tuple[End, str | None]], now: int) -> None:
        """As `finish`, for executions that have not ended, given with their parents: it asks
        nothing."""
        if ends:
            ended = columns([end for end, _ in ends], *End._fields)
            self.db.do("finish", now=now, **ended)
            self._announce([(end.id, parent) for end, parent in ends], now)

    def end_workflows(self, ends: Sequence[End], now: int, wakes: bool = True) -> None:
        """Ends workflows, with their timers, waits and approvals."""
        self.end_waits(ends, now, wakes)
        self.finish(ends, now)

    def end_waits(self, ends: Sequence[End], now: int, wakes: bool = True) -> None:
        """Ends the timers, waits and approvals of workflows that end.

        The timers of workflows that fail are kept, cancelled, for a retry.
        """
        self.flag([Range(end.id) for end in ends if not is_orderly(end.status)], now, wakes)
        if ends:
            orderly = [end.id for end in ends if is_orderly(end.status)]
            self.db.do("delete_waits", ids=[end.id for end in ends], orderly=orderly, now=now)

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
        if rows := list(rows):
            written = zip(HistoryRow._fields, map(list, zip(*rows, strict=True)), strict=True)
            self.db.do("insert_history", now=now, **dict(written))

    def flag(self, ranges: Sequence[Range], now: int, wakes: bool = True) -> None:
        """Asks children to end.

        A turn never touches its children's ready rows, except to wake a workflow.
        """
        rows = [fields(numbers) for numbers in ranges]
        self.db.write("cancel_timers", rows, now=now)
        self.db.write("cancel_waits", rows, now=now)
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
        self.db.write("release_timers", rows, now=now)
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
        given = [{"metadata": "null", **row} for row in rows]
        self.db.write("insert_resumes", given, now=now)
        if rows:
            freed = self.db.do("queue_again", ids=[row["id"] for row in rows])
            self.db.free_later(lambda: [queue for (queue,) in freed.rows])


def _token_of(actor: Actor | None) -> str | None:
    return None if actor is None else actor.token


def _authorise(actor: Actor | None, token: str | None) -> None:
    """Raises `TokenRevoked` or `Denied` if the token of the actor, which a start returned as JSON,
    does not allow it."""
    if actor is not None and actor.token is not None:
        authorise(actor, record_of(StoredToken, json.loads(token)) if token else None)


def _starts(executions: Sequence[NewExecution], not_queued: Container[int]) -> dict[str, list[Any]]:
    """Returns the columns of executions that start, as `start_executions` takes them."""
    starts = new_executions(executions)
    starts["snapshot"] = [inline(new.snapshot) for new in executions]
    starts["crashes"] = [new.crashes for new in executions]
    starts["ready"] = [not new.held and new.child_no not in not_queued for new in executions]
    return starts


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
