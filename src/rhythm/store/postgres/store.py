"""The store on PostgreSQL: every method is one transaction of set-based statements, in the lock order that `rows` tells.

Any thread; a schema of its own, so that several stores share a database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from rhythm.ids import child_id
from rhythm.record import Record
from rhythm.store import base
from rhythm.store.access import Actor, Chain, Head
from rhythm.store.acts import cancel_acts, replaced_acts, retry_acts, sending_acts
from rhythm.store.base import (
    BRIEF,
    BRIEF_OUTCOME,
    FORGOTTEN_S,
    LARGE,
    SHORT_ERROR,
    SYSTEM_QUEUE,
    TASK,
    WORKFLOW,
    Beat,
    ChildOutcome,
    Claim,
    Committed,
    Declaration,
    Definition,
    Execution,
    Family,
    Finding,
    Health,
    Listed,
    Listening,
    Loaded,
    LoadedTask,
    Look,
    Mail,
    Mine,
    Needed,
    NewEvent,
    NewExecution,
    NewSignal,
    NewWait,
    Queue,
    Reach,
    Retry,
    SeenWorker,
    Silent,
    Started,
    StoredExecution,
    StoredSignal,
    StoredTimer,
    TaskEnd,
    Transition,
    TurnCommit,
    asked_by,
    brief_outcome,
    family_range,
    refuse_large,
)
from rhythm.store.blobs import inline
from rhythm.store.doctor import RULES, Judge, bounded_text, examine, verified
from rhythm.store.lifecycle import EVENT_MISSED, Delivery, has_ended
from rhythm.store.postgres.approvals import PostgresApprovals
from rhythm.store.postgres.connecting import Row, connected
from rhythm.store.postgres.connection import SQL, AgainError, Joined, UndoneError
from rhythm.store.postgres.exchange import Exchange
from rhythm.store.postgres.flush import Flush, is_step, mail_row, steps
from rhythm.store.postgres.hints import PostgresListening, channel_of
from rhythm.store.postgres.operating import PostgresOperating
from rhythm.store.postgres.rows import US, Ready, Rows, end_of
from rhythm.store.postgres.schedules import PostgresSchedules
from rhythm.store.postgres.session import alone, service, transaction
from rhythm.store.provenance import provenance_of, sender_of
from rhythm.store.reading import TRACED, TRACED_TURNS, Found, Moment, Place
from rhythm.store.rows import fields, records, records_with
from rhythm.store.schedules import Registered
from rhythm.store.schema import Migration, failed, missing
from rhythm.store.sqlfile import migrations, statements
from rhythm.store.triggers import Trigger
from rhythm.store.verdicts import (
    BY_REQUEST,
    BY_TIMEOUT,
    Ended,
    answer_to_park,
    begins,
    crash_loop_row,
    end_of_cancelled,
    end_of_timed_out,
    has_turn,
    is_given_up,
    received,
    rescued_task,
    rescued_workflow,
    unfinished,
)

PACKAGE = "rhythm.store.postgres"
PRUNED = (
    "ready", "contexts", "executions", "history", "timers", "signals", "blobs", "waits", "approvals", "decisions", "resumes",
    "contributors", "families", "terminations",
)  # fmt: skip
BRIEFLY_ENDED = b"SELECT " + BRIEF_OUTCOME.encode() + b" FROM (" + SQL["ended"] + b") AS outcome"


class Expired(Record):
    """A claim that nobody has prolonged. `ended`: what it holds has ended, or is gone."""

    id: str
    fence: int
    crashes: int
    parent_id: str | None
    ended: bool
    now: int


class PostgresStore(PostgresApprovals, PostgresSchedules, PostgresOperating, base.Store):
    """Executions in one schema of a PostgreSQL database. `clock` replaces the database's clock in tests."""

    lends_connections = True
    package = PACKAGE

    @property
    def era(self) -> int:
        return self.db.era

    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        url, access, channel = self.db.url, self.db.access, channel_of(self.db.schema)
        if not access.notify:
            return Listening()
        if access.pooled and not access.listen_url:
            return Listening("no hint of new work is heard through a pooler (pooled=true): set listen_url to the URL of the server itself")
        tell = lambda: connected(url, access.answer_s, prepares=False)  # noqa: E731 - two of a kind
        return PostgresListening(lambda: connected(access.listen_url or url, access.answer_s), tell, channel, heard)

    # schema

    def migrations(self) -> list[Migration]:
        found = migrations(PACKAGE)
        return [Migration(number, name, _script(self.db.schema, number, name, text)) for number, name, text in found]

    def pending(self) -> list[Migration]:
        return missing(self.migrations(), self.schema_version())

    def migrate(self) -> list[str]:
        return [migration.name for migration in self.pending() if self._migrate(migration)]

    @transaction
    def _migrate(self, migration: Migration) -> bool:
        """Whether it ran. Of many processes one migrates; the others begin when they have the lock, and find it done."""
        self.db.lock(f"rhythm.{self.db.schema}")
        if migration not in missing(self.migrations(), self._schema_version()):
            return False
        try:
            self.db.script(migration.sql)
        except psycopg.Error as problem:
            raise failed(migration, problem) from problem
        return True

    @alone
    def schema_version(self) -> int:
        return self._schema_version()

    def _schema_version(self) -> int:
        """To look into a table makes the session hear of what others have made; the function alone believes what it knew before."""
        if not self.db.query(b"SELECT 1 FROM pg_class WHERE oid = to_regclass('schema_version')").fetchall():
            return 0
        return int(self.db.query(b"SELECT coalesce(max(version), 0) FROM schema_version").fetchall()[0][0])

    # definitions

    @transaction
    def register(self, definitions: Sequence[Definition], schedules: Registered | None = None, actor: Actor | None = None) -> None:
        self.db.do("lock_definitions")
        names = [definition.name for definition in definitions]
        acts = base.registered_acts(definitions, _listed(self.db.all("current_definitions", names=names))) if actor else []
        hashes = base.source_hashes(definitions)
        rows = [{**fields(definition), "source_hash": hashes[definition.source]} for definition in definitions]
        self.db.batch("register_definitions", rows)
        self.db.batch("keep_sources", [{"hash": hash, "text": text} for text, hash in hashes.items()])
        self._set_triggers(definitions)
        if schedules is not None:
            self._register_schedules(definitions, schedules)
        self._authorise(actor)
        self._audit(actor, acts, None)

    def _set_triggers(self, definitions: Sequence[Definition]) -> None:
        """The events that start a workflow are those that it names now."""
        last = {d.name: d for d in definitions}.values()
        triggers = [fields(Trigger(type, d.name, d.version, d.queue, d.timeout_s)) for d in last for type in d.on]
        types, workflows = [row["type"] for row in triggers], [row["workflow"] for row in triggers]
        self.db.do("forget_triggers", names=[d.name for d in last], type=types, workflow=workflows)
        self.db.batch("set_triggers", triggers)

    @alone
    def triggers(self) -> list[Trigger]:
        return records(Trigger, self.db.all("triggers"))

    @alone
    def definition(self, name: str, version: str | None = None) -> Definition | None:
        if version:
            rows = self.db.all("definition_version", name=name, version=version)
        else:
            rows = self.db.all("definition_current", name=name)
        found = records(Definition, rows)
        return found[0] if found else None

    @alone
    def program(self, name: str, version: str) -> str | None:
        rows = self.db.all("program", name=name, version=version)
        return str(rows[0][0]) if rows else None

    @alone
    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        return _listed(self.db.all("current_definitions", names=list(names)))

    @alone
    def definitions(self, after: str, limit: int) -> list[Listed]:
        return records(Listed, self.db.all("definitions_after", after=after, limit=limit))

    # starting

    @transaction
    def start(self, executions: Sequence[NewExecution], on_conflict: str = "return", actor: Actor | None = None) -> list[Started]:
        replaced = self._let_go_of_keys(executions) if on_conflict == "replace" else []
        created = self.rows.start(executions, None, actor)
        if len(created) == len(executions):
            self._audit(actor, replaced_acts(replaced), None)
            return [Started(new.id, created=True) for new in executions]
        started = self._found(executions, created)
        if on_conflict == "replace" and any(found.id != new.id for new, found in zip(executions, started, strict=True)):
            raise AgainError  # another has taken the key meanwhile, and is to be replaced in its turn
        base.refuse_conflicts(executions, started, on_conflict)
        return started

    def _let_go_of_keys(self, executions: Sequence[NewExecution]) -> list[str]:
        """Those who have the keys of the new ones are asked to end, and keep them no longer. Those who had not ended already."""
        keyed = [id for (id,) in self.db.batch("keyed", [dict(name=new.name, key=new.key) for new in executions])]
        cancelled = self._cancel(keyed) if keyed else {}
        if keyed:
            self.db.do("let_go_of_keys", ids=sorted(keyed))
        return [id for id in keyed if cancelled.get(id)]

    def _found(self, executions: Sequence[NewExecution], created: set[str]) -> list[Started]:
        """Some were there before, or twice in the batch: of those with one id, the first has made it."""
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

    def within(self, connection: Any) -> PostgresStore:
        joined = PostgresStore(self.db.url, self.db.schema, self.db.clock, self.db.access)
        joined.db = Joined(base.driver_connection(connection), self.db)
        joined.rows = Rows(joined.db)
        return joined

    # claims

    @alone
    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> list[Claim]:
        wanted = list(dict.fromkeys(queues if SYSTEM_QUEUE in queues else (SYSTEM_QUEUE, *queues)))
        return records(Claim, self.db.all("claim", worker=worker, ttl_us=int(ttl_s * US), queues=wanted, limit=limit))

    @alone
    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        return dict(self.db.batch("extend", _claims(claims), ttl_us=int(ttl_s * US)))

    @alone
    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        self.rows.give_back(_claims(claims), int(delay_s * US))

    @alone
    def held_by(self, worker: str) -> dict[str, int]:
        return dict(self.db.all("held_by", worker=worker))

    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        expired = self._all("expired", dead=dead, limit=limit)
        return self._rescue(records(Expired, expired), crash_limit, dead) if expired else []

    @service
    def _rescue(self, expired: Sequence[Expired], crash_limit: int, dead: bool) -> list[str]:
        """The whole condition is tested once more under the locks, beats too, in a later statement than that which took them.

        What a process has locked that is frozen, or slow, is left for the next time. Parents of what may fail are waited for; they
        come first, so nobody is waited for who waits.
        """
        now, found = expired[0].now, {row.id: row for row in expired}
        if parents := [row.parent_id for row in expired if is_given_up(row.crashes + 1, crash_limit)]:
            self.rows.lock(parents)
        held = [row for id, row in self.rows.lock_free(found).items() if row.fence == found[id].fence]
        silent = self._dead(held, now) if dead else set()
        lost = [row for row in held if _expired(row, now) or row.claimed_by in silent]
        self.db.do("delete_ready", ids=[row.id for row in lost if found[row.id].ended])  # wakes that came too late, not dropped yet
        live = [row for row in lost if not found[row.id].ended]
        self._rescue_tasks([row for row in live if row.kind == TASK], crash_limit, now)
        self._rescue_workflows({row.id: row for row in live if row.kind == WORKFLOW}, crash_limit, now)
        return [row.id for row in lost]

    def _dead(self, held: Sequence[Ready], now: int) -> set[str]:
        """Which holders of these have still not beaten; it matters where a claim has not expired."""
        holders = sorted({row.claimed_by for row in held if row.claimed_by is not None and not _expired(row, now)})
        return {id for (id,) in self.db.all("dead_workers", ids=holders, now=now)} if holders else set()

    def _rescue_tasks(self, lost: Sequence[Ready], crash_limit: int, now: int) -> None:
        """They are free again; a task that was there when so many workers died fails, however many attempts it has left."""
        verdicts = {row.id: rescued_task(row.crashes + 1, crash_limit) for row in lost}
        ends = [end_of(row.id, ended, row.fence, row.claimed_by, row.attempt) for row in lost if (ended := verdicts[row.id])]
        free = [row.id for row in lost if verdicts[row.id] is None]
        self.db.free(queue for (queue,) in self.db.all("rescue_tasks", ids=free))
        self.db.do("delete_ready", ids=[end.id for end in ends])
        self.rows.finish(ends, now)

    def _rescue_workflows(self, lost: Mapping[str, Ready], crash_limit: int, now: int) -> None:
        """They are free again, and a turn of their old owners would find a newer fence. Always the same turn: it fails."""
        raised = {id: (seq, fence) for id, seq, fence in self.db.all("raise_context_fences", ids=sorted(lost))}
        rescued = self.db.batch("rescue_workflows", [dict(id=id, seq=seq) for id, (seq, _) in raised.items()])
        self.db.free(queue for _, _, queue in rescued)
        verdicts = {id: rescued_workflow(times, crash_limit) for id, times, _ in rescued}
        looping = {id: ended for id, ended in verdicts.items() if ended}
        self.db.do("delete_ready", ids=list(looping))
        if looping:
            self._stop_loops(looping, raised, lost, now)

    def _stop_loops(self, looping: Mapping[str, Ended], raised: Mapping[str, tuple[int, int]], lost: Mapping[str, Ready], now: int) -> None:
        self.db.do("skip_turn", ids=list(looping))
        status = {each.id: each.status for each in self.rows.known(looping)}
        told = [crash_loop_row(id, *raised[id], lost[id].claimed_by, status[id], ended) for id, ended in looping.items()]
        self.rows.tell(told, now)
        ends = [end_of(id, ended, raised[id][1], lost[id].claimed_by) for id, ended in looping.items()]
        self.rows.end_workflows(ends, now)

    # workers and queues

    @alone
    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> Mine:
        """The beat is the last that is done, so it was sent if this succeeds; and it is read after the claims were prolonged: what is
        still there under its fence, and was not prolonged, was locked."""
        kept = {id for (id,) in self.db.batch("keep", _claims(claims), ttl_us=int(ttl_s * US))}
        mine = self.db.all("beat", **fields(beat) | {"queues": json.dumps(beat.queues), "dead_after_us": _us(beat.dead_after_s)})
        return Mine(mine, (id for id, fence, _ in mine if id not in kept and claims.get(id) == fence))

    @alone
    def leave(self, *workers: str) -> None:
        self.db.do("leave", workers=list(workers))

    def workers(self) -> list[SeenWorker]:
        return records(SeenWorker, self._all("workers"))

    def paused_queues(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._all("paused_queues"))

    @transaction
    def pause_queue(self, name: str, paused: bool, actor: Actor | None = None, reason: str = "") -> bool:
        base.refuse_system(name, paused)
        by = actor.name if actor else ""
        changed = self.db.all("pause_queue", name=name, by=by, reason=reason) if paused else self.db.all("resume_queue", name=name)
        self.db.free([] if paused else [name])
        self._record(actor, base.queue_acts(name, paused, reason) if changed else ())
        return bool(changed)

    @transaction
    def queues(self) -> list[Queue]:
        self.db.freeze()
        return self._queues(self.db.now())

    def _queues(self, now: int) -> list[Queue]:
        return records(Queue, self._ask("queues", now=now))

    @alone
    def declare(self, declarations: Sequence[Declaration]) -> None:
        self.db.batch("declare", [fields(declaration) for declaration in {each.name: each for each in declarations}.values()])

    def declared(self) -> list[Declaration]:
        return records(Declaration, self._all("declared"))

    def sibling(self) -> PostgresStore:
        return PostgresStore(self.db.url, self.db.schema, self.db.clock, self.db.access)

    # turns and tasks

    @alone
    def load(self, ids: Sequence[str]) -> list[Loaded]:
        return records(Loaded, self.db.all("load", ids=list(ids)))

    @alone
    def load_tasks(self, ids: Sequence[str]) -> list[LoadedTask]:
        return records(LoadedTask, self.db.all("load_tasks", ids=list(ids)))

    def cancelled(self, ids: Sequence[str]) -> set[str]:
        return {id for (id,) in self._all("cancelled", ids=list(ids))}

    @alone
    def outcomes(self, needed: Sequence[Needed], brief: bool = False) -> dict[str, list[ChildOutcome]]:
        groups = [need for need in needed if need.whole and len(need.numbers) > 1]
        asked = [dict(id=need.id, first=min(need.numbers), last=max(need.numbers), fails=need.fails) for need in groups]
        undecided = {id for (id,) in self.db.batch("undecided", asked)}
        found: dict[str, list[ChildOutcome]] = {need.id: [] for need in needed}
        rows = self._ended([need for need in needed if need.id not in undecided], brief)
        for outcome, id in records_with(ChildOutcome, rows, "id"):
            found[id].append(brief_outcome(outcome) if brief else outcome)
        return found

    def _ended(self, needed: Sequence[Needed], brief: bool) -> list[Row]:
        numbers = [(need.id, n) for need in needed for n in need.numbers]
        if brief:
            ids, of, ns = [child_id(id, n) for id, n in numbers], [id for id, _ in numbers], [n for _, n in numbers]
            return self.db.rows(BRIEFLY_ENDED, dict(ids=ids, id=of, n=ns))
        return self.db.batch("ended", [dict(ids=child_id(id, n), id=id, n=n) for id, n in numbers])

    @alone
    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        boxes: dict[str, list[Mail]] = {}
        for mail, id in records_with(Mail, self.db.all("mail", ids=list(ids)), "execution_id"):
            boxes.setdefault(id, []).append(mail)
        return boxes

    @alone
    def mailed(self, id: str) -> list[Mail]:
        return records(Mail, self.db.all("mailed", id=id))

    def commit(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> tuple[list[Committed], set[str]]:
        if len({turn.id for turn in turns}) < len(turns):
            raise ValueError("a commit takes one turn of each workflow")
        plain, others = list[TurnCommit](), list[TurnCommit]()
        for turn in turns:
            (plain if is_step(turn) else others).append(turn)
        return self._flush(others, ends, plain) if others or ends else (self._steps(plain), set())

    @alone
    def _steps(self, turns: Sequence[TurnCommit]) -> list[Committed]:
        return steps(self.rows, turns)

    @transaction
    def _flush(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd], plain: Sequence[TurnCommit]) -> tuple[list[Committed], set[str]]:
        """The steps come last: they see whom the others have woken."""
        flush = Flush(self.rows, turns, ends, self.limits)
        answers, accepted = flush.run()
        answers = [*answers, *(steps(self.rows, plain) if plain else ())]
        for actor, acts in flush.acts:
            self._audit(actor, acts, flush.now)
        return answers, accepted

    def complete_within(self, work: Callable[[Any], TaskEnd | None]) -> str:
        freed: set[str] = set()
        with self.spare.connection() as connection, connection.transaction() as undo:
            end = work(connection)
            connection.answer_s = self.db.access.answer_s
            outcome = self._complete(connection, end, freed)
            if outcome != "kept":
                raise psycopg.Rollback(undo)
        if freed and self.db.access.notify:
            self._notifier.tell(freed)
        return outcome

    def _complete(self, connection: psycopg.Connection[Row], end: TaskEnd | None, freed: set[str]) -> str:
        if end is None:
            return "undone"
        if connection.info.transaction_status is TransactionStatus.INERROR:
            return "aborted"
        joined = Joined(connection, self.db, tells=False)
        _, accepted = joined.transaction(lambda: Flush(Rows(joined), (), [end], self.limits).run())
        freed |= joined.freed
        return "kept" if end.id in accepted else "lost"

    @alone
    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        rows = self.db.batch("park", [dict(id=c.id, fence=c.fence, wakes=c.wakes) for c in claims])
        found = {id: (wakes, parked) for id, wakes, parked in rows}
        lost = (None, False)
        return [answer_to_park(claim.id, left, wakes) for claim in claims for wakes, left in [found.get(claim.id, lost)]]

    @alone
    def drop(self, claims: Mapping[str, int]) -> None:
        self.db.batch("drop", _claims(claims))

    @alone
    def witness(self, id: str, seq: int) -> int | None:
        rows = self.db.all("witness", id=id, seq=seq)
        return int(rows[0][0]) if rows else None

    # from outside

    @transaction
    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        """The wake comes first: it locks the mailbox. Whatever hinders the signal undoes it."""
        id = signal.execution_id
        now = self.rows.call([id])
        status, known, waiting = self.db.all("mailbox", id=id, signal=signal.id)[0]
        if (delivery := received(status, known, waiting, limit)) != "sent":
            raise UndoneError(delivery)
        if not self.db.batch("insert_signals", [mail_row(signal)], most=limit, now=now):
            raise UndoneError("duplicate")
        self.rows.contribute([(id, provenance_of(actor).contributors)], now)
        self._record(actor, sending_acts((), [signal]), now)
        return delivery

    @transaction
    def publish(self, event: NewEvent, actor: Actor | None = None) -> str:
        exchange = Exchange(self.rows, [event])
        self.rows.lock(exchange.waiting())
        now = self.db.now()
        if not exchange.publish([event], {event.id: sender_of(actor)}, now):
            raise UndoneError("duplicate")
        self.rows.contribute(exchange.contributions, now)
        self._record(actor, sending_acts([event], ()))
        return "published"

    @transaction
    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        asked = self._cancel(ids)
        self._record(actor, cancel_acts(id for id, changed in asked.items() if changed))
        return asked

    def _cancel(self, ids: Sequence[str]) -> dict[str, bool]:
        known = self.rows.known(ids)
        if not known:
            return {}
        tasks = [(each.id, each.parent_id) for each in known if end_of_cancelled(each.type)]
        workflows = [each.id for each in known if end_of_cancelled(each.type) is None and not has_ended(each.status)]
        self.rows.lock([*workflows, *(id for row in tasks for id in row)])
        now = known[0].now
        self.rows.wake(workflows, now)
        flagged = {id for (id,) in self.db.all("flag_cancel", ids=sorted(each.id for each in known), now=now)}
        self.rows.free_delayed(workflows)
        self.rows.end_unclaimed([id for id, _ in tasks if id in flagged], BY_REQUEST, now)
        return {each.id: each.id in flagged for each in known}

    @transaction
    def retry(self, id: str, plan: Callable[[Family], Family], actor: Actor | None = None, whole: bool = True) -> Started | None:
        self.db.do("lock_execution", id=id)
        if running := unfinished(records(Retry, self.db.all("retries", id=id))):
            return Started(running, created=False)
        family = self._family(id, Reach.by(self.limits), whole)
        if not family.executions:
            return None
        started = self._store_family(asked_by(plan(family), provenance_of(actor)))
        now = self.db.now()
        self.db.do("copy_contributors", id=started.id, retry_of=id, now=now)
        self.rows.contribute([(started.id, provenance_of(actor).contributors)], now)
        self._record(actor, retry_acts(id, started.id), now)
        return started

    @transaction
    def family(self, id: str, reach: Reach) -> Family:
        return self._family(id, reach)

    def retries(self, id: str) -> list[Retry]:
        return records(Retry, self._all("retries", id=id))

    def _family(self, id: str, reach: Reach, whole: bool = True) -> Family:
        asked = family_range(id, whole)
        ((rows, size),) = self.db.all("family_size", **asked, most=reach.rows + 1)
        refuse_large(id, reach, rows, size)
        return Family(
            tuple(records(StoredExecution, self.db.all("family", **asked, short=SHORT_ERROR))),
            tuple(records(StoredTimer, self.db.all("family_timers", **asked))),
            tuple(records(StoredSignal, self.db.all("family_signals", **asked))),
            tuple(records(Retry, self.db.all("retries", id=id))),
        )

    def _store_family(self, family: Family) -> Started:
        now, rows = self.db.now(), [fields(row) for row in family.executions]
        self.db.batch("insert_stored", rows, now=now)
        workflows = [row for row in rows if row["type"] == WORKFLOW]
        contexts = [row | {"snapshot": inline(row["snapshot"])} for row in workflows]
        self.db.batch("insert_stored_contexts", contexts, now=now)
        self.rows.insert_blobs({row["id"]: row["snapshot"] for row in workflows})
        told = [row for row in workflows if has_turn(row["type"], row["status"])]
        self.db.batch("insert_stored_history", told, now=now)
        ready = [row | dict(kind=row["type"], delay_us=0) for row in rows if begins(row["status"], row["held"])]
        self.rows.make_ready(ready, now)
        self.db.batch("insert_stored_timers", [fields(timer) for timer in family.timers], now=now)
        self.db.batch("insert_stored_signals", [fields(signal) for signal in family.signals])
        return Started(family.executions[0].id, created=True)

    # services

    def fire_timers(self, limit: int, late: Callable[[float], None] | None = None) -> tuple[int, int | None]:
        due, now = self._all("next_due")[0]
        if due is None or due > now:
            return 0, due
        count, fired, due = self._fire_due(limit, now)
        if late is not None:
            for fire_at in fired:
                late((now - fire_at) / US)
        return count, due

    @service
    def _fire_due(self, limit: int, now: int) -> tuple[int, list[int], int | None]:
        """How many, when the timers among them were due, and when the next is."""
        timers = self.db.all("due_timers", now=now, limit=limit)
        waits = self.db.all("due_waits", now=now, limit=limit)
        delayed = [id for (id,) in self.db.all("due_ready", now=now, limit=limit)]
        late = self.db.all("due_timeouts", now=now, limit=limit)
        approvals = self.db.all("due_approvals", now=now, limit=limit)
        pauses = self.db.all("due_pauses", now=now, limit=limit)
        asked = [*(execution_id for _, execution_id in approvals), *(id for id, held in pauses if not held)]
        due = any((timers, waits, delayed, late, asked))
        count, fired = self._fire(timers, waits, delayed, late, asked, now) if due else (0, [])
        if approvals or pauses:
            count += self._fire_people([id for id, _ in approvals], pauses, now)
        return count, fired, self.db.all("next_due")[0][0]

    def _fire(
        self, timers: Sequence[Row], waits: Sequence[Row], delayed: Sequence[str], late: Sequence[Row], asked: Sequence[str], now: int
    ) -> tuple[int, list[int]]:
        """`asked`: those whose approval or pause is over, to be woken too."""
        waiting = [*(id for id, _ in (*timers, *waits)), *asked]
        self.rows.lock([*waiting, *delayed, *(id for id, _, _ in late), *(parent for _, _, parent in late)])
        self.rows.wake([*waiting, *(id for id, type, _ in late if end_of_timed_out(type) is None)], now)
        freed = [queue for (queue,) in self.db.all("free_due", ids=delayed, now=now)]
        self.db.free(freed)
        self.rows.end_unclaimed([id for id, type, _ in late if end_of_timed_out(type)], BY_TIMEOUT, now)
        if late:
            self.db.do("time_out", ids=[id for id, _, _ in late], now=now)
        fired = self.db.batch("fire_timers", [dict(id=id, n=n) for id, n in timers], now=now)
        given_up = [dict(id=id, n=n, event_id=None) for id, n in waits]
        ended = self.db.batch("end_waits", given_up, status=EVENT_MISSED, now=now)
        return len(fired) + len(ended) + len(freed) + len(late), [fire_at for (fire_at,) in fired]

    def sweep(self, limit: int) -> list[str]:
        found = self._all("cancelled_tasks", limit=limit)
        return self._end_cancelled(found) if found else []

    @service
    def _end_cancelled(self, found: Sequence[Row]) -> list[str]:
        self.rows.lock(locked for id, parent_id, _ in found for locked in (id, parent_id))
        now = next(now for _, _, now in found)
        return sorted(self.rows.end_unclaimed([id for id, _, _ in found], BY_REQUEST, now))

    def look(self, dead: bool = False) -> Look:
        (look,) = records(Look, self._all("look", dead=dead, forgotten_us=_us(FORGOTTEN_S)))
        return look

    @alone
    def forget_workers(self, limit: int) -> None:
        self.db.do("forget_workers", forgotten_us=_us(FORGOTTEN_S), limit=limit)

    @alone
    def parked(self, after: str, limit: int) -> list[str]:
        return [id for (id,) in self.db.all("parked", after=after, limit=limit)]

    @alone
    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        return self.db.batch("without_rows", [dict(id=id, n=n) for id, n in children])

    @transaction
    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        """One that has moved on before it was woken here was not stuck; the wake does no harm."""
        made = [id for (id,) in self.db.all("wake_parked", ids=list(stuck))]
        self.db.free([SYSTEM_QUEUE] if made else ())
        seqs = dict(self.db.all("seqs_of", ids=made)) if made else {}
        woken = [id for id in made if seqs.get(id) == stuck[id]]
        self.db.batch("insert_fired", [dict(id=id, n=n) for id, n in timers if id in woken])
        return woken

    @alone
    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        return bool(self.db.all("lease", name=name, holder=holder, ttl_us=int(ttl_s * US)))

    def prune(self, older_than_s: float, limit: int) -> int:
        age_us = int(older_than_s * US)
        roots = [id for (id,) in self._all("old_roots", age_us=age_us, limit=limit)]
        if roots:
            self._prune(roots)
        return len(roots)

    @transaction
    def _prune(self, roots: Sequence[str]) -> None:
        for table in PRUNED:
            self.db.do(f"prune_{table}", ids=roots)

    def prune_events(self, older_than_s: float, limit: int) -> int:
        old = self._all("old_events", age_us=_us(older_than_s), limit=limit)
        return self._prune_events([id for id, _ in old], sorted({type for _, type in old})) if old else 0

    @service
    def _prune_events(self, ids: Sequence[str], types: Sequence[str]) -> int:
        """With their types locked: whoever finds one of these meanwhile has taken it by then."""
        self.db.do("hold_types", types=types)
        return len(self.db.all("delete_events", ids=ids))

    # reading

    def expect(self, threads: int) -> None:
        self.db.expect(threads)

    @alone
    def get(self, ids: Sequence[str]) -> dict[str, Execution]:
        text = SQL["execution"] + b" WHERE e.id = ANY(%(ids)s::text[])"
        return {found.id: found for found in records(Execution, self.db.rows(text, {"ids": list(ids)}))}

    @alone
    def find(
        self,
        name: str | None,
        status: str | None,
        before: tuple[int, str] | None,
        limit: int,
        brief: bool = False,
        names: Sequence[str] | None = None,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        at, id = before or (None, None)
        where, values = [b"parent_id IS NULL"], dict[str, Any](limit=limit, name=name, status=status, at=at, id=id)
        later = b"(created_at, id) < (%(at)s, %(id)s)" if names is None else b"(name, created_at, id) < (n, %(at)s, %(id)s)"
        for condition, value in ((b"name = %(name)s", name), (b"status = %(status)s", status), (later, at)):
            if value is not None:
                where.append(condition)
        order, columns = b" created_at DESC, id DESC LIMIT %(limit)s", BRIEF.encode() if brief else b"e.*"
        text = b"(" + SQL["execution"] + b") e WHERE " + b" AND ".join(where)
        if names is not None:
            # Of each as many as are wanted, however rare they are among others. As a range of names, not as one name: then only the
            # index of names has them in this order, and no planner goes through all that are newer.
            values["names"], one = list(names), b" AND name >= n AND name <= n ORDER BY name DESC," + order
            text = b"unnest(%(names)s::text[]) n CROSS JOIN LATERAL (SELECT e.* FROM " + text + one + b") e"
        text = b"SELECT " + columns + b" FROM " + text + b" ORDER BY" + order
        return self._executions(text, values, brief, most_bytes)

    def names(self, prefixes: Sequence[str]) -> list[str]:
        return [name for (name,) in self._all("names", prefixes=list(prefixes))]

    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._all("root_names", ids=list(ids)))

    @alone
    def children(
        self, id: str, after: int = 0, limit: int | None = None, brief: bool = False, most_bytes: int | None = None
    ) -> Found[Execution]:
        where = b" WHERE e.parent_id = %(id)s AND e.id >= %(first)s AND e.id < %(last)s AND e.child_no > %(after)s ORDER BY e.child_no"
        text = SQL["execution"] + where + b" LIMIT %(limit)s"
        text = b"SELECT " + BRIEF.encode() + b" FROM (" + text + b") e" if brief else text
        values = dict[str, Any](id=id, first=f"{id}.", last=f"{id}/", after=after, limit=limit)
        return self._executions(text, values, brief, most_bytes)

    def _executions(self, text: bytes, values: Mapping[str, Any], brief: bool, most_bytes: int | None) -> Found[Execution]:
        large = ("attributes", "error", "paused_reason", *(() if brief else LARGE))
        rows, cut = self.db.some(text, values, large, most_bytes)
        return Found.of(records(Execution, rows), cut)

    @alone
    def trace(self, id: str, after: Place | None, limit: int, most_bytes: int | None = None) -> Found[Moment]:
        bounds = {"id": id, "first": f"{id}.", "last": f"{id}/", "most": TRACED, "turns": TRACED_TURNS, "limit": limit}
        begin = after or Place(-1, 0, 0, 0, "", 0, 0)
        rows = self.db.all("trace", **bounds, **{f"p_{name}": getattr(begin, name) for name in begin._fields})
        places = records(Place, rows)
        wanted = {name: [getattr(place, name) for place in places] for name in ("id", "kind", "n")}
        found, cut = self.db.some(SQL["moments"], wanted, ("detail", "reason"), most_bytes) if places else ([], False)
        read: list[Any] = records(Moment, found)  # each with the number of its place, from 1 on
        return Found.of((moment.replace(place=places[moment.place - 1]) for moment in read), cut)

    @alone
    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self.db.all("stamps", ids=list(ids)))

    @alone
    def waits(self, id: str) -> list[NewWait]:
        return records(NewWait, self.db.all("waits", id=id))

    @alone
    def due(self, id: str) -> dict[int, int]:
        return dict(self.db.all("due", id=id))

    @alone
    def history(self, id: str) -> list[Transition]:
        return base.with_names(records(Transition, self.db.all("history", id=id)))

    # doctor

    @transaction
    def check(self, grace_s: float, judge: Judge | None = None) -> list[Finding]:
        self.db.freeze()
        return examine(self._ask, doctor_sql(), self.db.now(), grace_s, judge)

    @transaction
    def audit_chain(self, known: Head | None = None, after: Head | None = None, limit: int | None = None, size: int | None = None) -> Chain:
        self.db.freeze()
        return verified(self._ask, known, after, limit, size)

    @transaction
    def health(self) -> Health:
        self.db.freeze()
        now = self.db.now()
        silent = tuple(records(Silent, self._ask("silent", now=now)))
        dead = tuple((table, live, dead) for table, live, dead in self._ask("dead_rows"))
        count, transaction_s, notifications = (
            self._ask(name)[0][0] for name in ("count_executions", "oldest_transaction", "notification_queue")
        )
        return Health(now, count, tuple(self._queues(now)), transaction_s, dead, notifications, server=True, silent=silent)

    def _ask(self, name: str, /, rows: Sequence[tuple[str, int]] | None = None, **values: Any) -> list[Row]:
        columns = {"id": [id for id, _ in rows], "n": [n for _, n in rows]} if rows is not None else {}
        return self.db.rows(doctor_sql()[name], {**values, **columns})


@cache
def doctor_sql() -> dict[str, bytes]:
    texts = statements(PACKAGE, "doctor.sql")
    return {name: (bounded_text(text, "%(limit)s") if name in RULES else text).encode() for name, text in texts.items()}


def _script(schema: str, number: int, name: str, text: str) -> str:
    """A migration with its own record, and with the schema that it is for: run by hand it does the same."""
    quoted = sql.Identifier(schema).as_string(None)
    return (
        f"CREATE SCHEMA IF NOT EXISTS {quoted};\nSET LOCAL search_path = {quoted};\n"
        "CREATE TABLE IF NOT EXISTS schema_version (version int PRIMARY KEY, name text NOT NULL, at bigint NOT NULL);\n\n"
        f"{text.strip()}\n\nINSERT INTO schema_version (version, name, at) VALUES ({number}, '{name}', now_us());\n"
    )


def _claims(claims: Mapping[str, int]) -> list[dict[str, Any]]:
    return [dict(id=id, fence=fence) for id, fence in claims.items()]


def _expired(row: Ready, now: int) -> bool:
    """Once more, now that the row is locked: it may have been extended meanwhile."""
    return row.claim_expires_at is not None and row.claim_expires_at < now


def _us(seconds: float) -> int:
    return int(seconds * US)


def _listed(rows: list[Row]) -> dict[str, Listed]:
    return {listed.name: listed for listed in records(Listed, rows)}
