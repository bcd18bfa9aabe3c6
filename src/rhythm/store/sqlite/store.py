"""The store on SQLite: every method is one transaction, and the only writer while it lasts (`session`)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import Any, assert_never

from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.record import Record
from rhythm.store import base
from rhythm.store.access import Actor, Chain, Head
from rhythm.store.acts import cancel_acts, replaced_acts, retry_acts, sending_acts, terminate_acts
from rhythm.store.attributes import with_attributes
from rhythm.store.base import (
    BRIEF,
    BRIEF_OUTCOME,
    FORGOTTEN_S,
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
    brief_outcome,
    family_range,
    refuse_large,
)  # fmt: skip
from rhythm.store.blobs import inline
from rhythm.store.columns import given
from rhythm.store.doctor import RULES, Ask, Judge, bounded_text, examine, verified
from rhythm.store.events import PAGE, Event, Match, Wait, key_of, keys_of, matches
from rhythm.store.families import COUNT_EVERY_US, counted, full_family, many_children, may_have_many
from rhythm.store.lifecycle import EVENT_CAME, EVENT_MISSED, Delivery, has_ended, is_orderly
from rhythm.store.provenance import (
    Sender,
    SendingFamily,
    dump_provenance,
    load_provenance,
    provenance_of,
    sender_of,
    sending_turn,
)
from rhythm.store.reading import TRACED, TRACED_TURNS, Found, Moment, Place
from rhythm.store.rows import fields, records, records_with
from rhythm.store.schedules import Registered
from rhythm.store.schema import Migration, failed, missing
from rhythm.store.sqlfile import migrations, statements
from rhythm.store.sqlite.approvals import SqliteApprovals
from rhythm.store.sqlite.operating import SqliteOperating
from rhythm.store.sqlite.rows import Known
from rhythm.store.sqlite.schedules import SqliteSchedules
from rhythm.store.sqlite.session import NAMED, PACKAGE, SQL, US, connect
from rhythm.store.triggers import Trigger, triggered
from rhythm.store.verdicts import (
    BY_FORCE,
    BY_REQUEST,
    Again,
    Ended,
    HistoryRow,
    answer,
    answer_to_park,
    attempt_row,
    begins,
    crash_loop_row,
    end_of_attempt,
    end_of_cancelled,
    end_of_timed_out,
    end_of_turn,
    has_turn,
    received,
    refused,
    rescued_task,
    rescued_workflow,
    result_and_error,
    terminated_row,
    turn_row,
    unfinished,
)

LAST = 2**62  # a child number beyond all others


class Expired(Record):
    """A claim that nobody has prolonged, and the status of what it holds; None: it is gone."""

    id: str
    kind: int
    fence: int
    attempt: int
    worker: str
    crashes: int
    status: int | None


class SqliteStore(SqliteApprovals, SqliteSchedules, SqliteOperating, base.Store):
    """Executions in one SQLite file, or in memory (`:memory:`)."""

    package = PACKAGE

    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        """Those who share a database in memory share a process, too, and tell each other."""
        from rhythm.store.sqlite.listening import SqliteListening

        return Listening() if self.path == ":memory:" else SqliteListening(lambda: connect(self.path, "ro"), heard)

    # schema

    def migrations(self) -> list[Migration]:
        return [Migration(number, name, _script(number, name, text)) for number, name, text in migrations(PACKAGE)]

    def pending(self) -> list[Migration]:
        return missing(self.migrations(), self.schema_version())

    def migrate(self) -> list[str]:
        return [migration.name for migration in self.pending() if self._migrate(migration)]

    def _migrate(self, migration: Migration) -> bool:
        """Whether it ran. The lock is taken first: of many processes one migrates, and the others find it done."""
        try:
            with self._transaction():
                if migration not in self.pending():
                    return False
                for statement in _statements(migration.sql):
                    self._db.execute(statement)
                return True
        except sqlite3.Error as problem:
            raise failed(migration, problem) from problem

    def schema_version(self) -> int:
        try:
            with self._lock:
                if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
                    return 0
                return int(self._db.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0])
        except sqlite3.Error as problem:
            raise StoreError(f"cannot read the SQLite database {self.path}: {problem}") from problem

    # definitions

    def register(self, definitions: Sequence[Definition], schedules: Registered | None = None, actor: Actor | None = None) -> None:
        with self._transaction():
            names = json.dumps([definition.name for definition in definitions])
            acts = base.registered_acts(definitions, _listed(self._all("current_definitions", names))) if actor else []
            hashes = base.source_hashes(definitions)
            rows = [{**given(d), "source_hash": hashes[d.source]} for d in definitions]
            self._all("register_definitions", {"definitions": json.dumps(rows)})
            self._all("keep_sources", {"sources": json.dumps({hash: text for text, hash in hashes.items()})})
            self._set_triggers(definitions)
            if schedules is not None:
                self._register_schedules(definitions, schedules)
            self._authorise(actor, self.clock())
            self._audit(actor, acts, self.clock())

    def _set_triggers(self, definitions: Sequence[Definition]) -> None:
        """The events that start a workflow are those that it names now."""
        last = {d.name: d for d in definitions}
        named = (Trigger(type, d.name, d.version, d.queue, d.timeout_s) for d in last.values() for type in d.on)
        triggers = json.dumps([fields(trigger) for trigger in named])
        self._all("forget_triggers", {"names": json.dumps(list(last)), "triggers": triggers})
        self._all("set_triggers", {"triggers": triggers})

    def triggers(self) -> list[Trigger]:
        return records(Trigger, self._read(SQL["triggers"]))

    def definition(self, name: str, version: str | None = None) -> Definition | None:
        asked = ("definition_version", (name, version)) if version else ("definition_current", (name,))
        found = records(Definition, self._read(SQL[asked[0]], asked[1]))
        return found[0] if found else None

    def program(self, name: str, version: str) -> str | None:
        rows = self._read(SQL["program"], (name, version))
        return rows[0][0] if rows else None

    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        return _listed(self._read(SQL["current_definitions"], (json.dumps(list(names)),)))

    def definitions(self, after: str, limit: int) -> list[Listed]:
        return records(Listed, self._read(SQL["definitions_after"], {"after": after, "limit": limit}))

    # starting

    def start(self, executions: Sequence[NewExecution], on_conflict: str = "return", actor: Actor | None = None) -> list[Started]:
        with self._transaction():
            now = self.clock()
            replaced = [id for new in executions if on_conflict == "replace" for id in self._let_go_of_key(new, now)]
            started = [self._start(execution, now) for execution in executions]
            base.refuse_conflicts(executions, started, on_conflict)
            if any(found.created for found in started):
                self._authorise(actor, now)
            self._audit(actor, replaced_acts(replaced), now)
            return started

    def within(self, connection: Any) -> SqliteStore:
        from rhythm.store.sqlite.joined import JoinedStore

        return JoinedStore(self.path, self.clock, base.driver_connection(connection))

    def _let_go_of_key(self, new: NewExecution, now: int) -> list[str]:
        """Whoever has the key of the new one is asked to end, and keeps it no longer. Those who had not ended already."""
        keyed = [id for (id,) in self._all("keyed", new.name, new.key)]
        cancelled = [id for id in keyed if self._cancel(id, self._find(id), now)]
        for id in keyed:
            self._all("let_go_of_key", id)
        return cancelled

    # claims

    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> list[Claim]:
        wanted = list(dict.fromkeys(queues if SYSTEM_QUEUE in queues else (SYSTEM_QUEUE, *queues)))
        if not self._one("any_free", json.dumps(wanted)):
            return []
        with self._transaction():
            ids: list[str] = []
            for (queue,) in self._all("open_queues", json.dumps(wanted)):
                if len(ids) < limit:
                    ids += [id for (id,) in self._all("free_rows", queue, limit - len(ids))]
            if not ids:
                return []
            fence, expires = self._one("fences_up", len(ids))[0] - len(ids), self.clock() + int(ttl_s * US)
            taken = (self._all("claim_row", worker, expires, fence + i, id) for i, id in enumerate(ids, 1))
            return [claim for row in taken for claim in records(Claim, row)]

    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        with self._transaction():
            return self._extend(claims, ttl_s)

    def _extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        expires = self.clock() + int(ttl_s * US)
        found = {id: self._one("extend", expires, id, fence) for id, fence in claims.items()}
        return {id: row[0] for id, row in found.items() if row}

    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        with self._transaction():
            for id, fence in claims.items():
                self._all("release", {"id": id, "fence": fence, "delay_us": int(delay_s * US)})

    def held_by(self, worker: str) -> dict[str, int]:
        return dict(self._all("held_by", worker))

    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        asked = {"dead": dead, "limit": limit}
        if not self._all("expired", asked):
            return []
        with self._transaction():
            now, expired = self.clock(), records(Expired, self._all("expired", asked))
            for row in expired:
                if row.status is None or has_ended(row.status):  # its holder died before it dropped a wake that came too late
                    self._all("delete_held", row.id, row.fence)
                elif row.kind == TASK:
                    self._rescue_task(row.id, row.fence, row.attempt, row.worker, row.crashes + 1, crash_limit, now)
                else:
                    self._rescue_workflow(row.id, row.fence, row.worker, crash_limit, now)
            return [row.id for row in expired]

    def _rescue_task(self, id: str, fence: int, attempt: int, worker: str, crashes: int, crash_limit: int, now: int) -> None:
        """It is free again; one that was there when so many workers died fails."""
        if ended := rescued_task(crashes, crash_limit):
            self._all("delete_held", id, fence)
            self._finish(id, ended, now, fence, worker, attempt)
        else:
            self._all("rescue_task", id, fence)

    def _rescue_workflow(self, id: str, fence: int, worker: str, crash_limit: int, now: int) -> None:
        raised = self._one("next_fence")[0]
        seq = self._one("raise_context_fence", raised, id)[0]
        crashes = self._one("rescue_workflow", {"id": id, "fence": fence, "seq": seq})[0]
        if ended := rescued_workflow(crashes, crash_limit):
            (found,) = self._known([id]).values()
            self._all("delete_ready", id)
            self._all("skip_turn", id)
            self._tell(crash_loop_row(id, seq, raised, worker, found.status, ended), now)
            self._end_workflow(id, ended, now, raised, worker)

    # workers and queues

    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> Mine:
        with self._transaction():
            told = {"queues": json.dumps(beat.queues), "dead_after_us": _us(beat.dead_after_s)}
            self._all("beat", fields(beat) | told)
            self._extend(claims, ttl_s)
            return Mine(self._all("held_now", beat.worker))

    def leave(self, *workers: str) -> None:
        with self._transaction():
            for worker in workers:
                self._all("expire_claims", worker)
                self._all("leave", worker)

    def workers(self) -> list[SeenWorker]:
        return records(SeenWorker, self._read(SQL["workers"], (self.clock(),)))

    def paused_queues(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._read(SQL["paused_queues"]))

    def pause_queue(self, name: str, paused: bool, actor: Actor | None = None, reason: str = "") -> bool:
        base.refuse_system(name, paused)
        with self._transaction():
            by = actor.name if actor else ""
            changed = bool(self._count("pause_queue", name, by, reason) if paused else self._count("resume_queue", name))
            self._record(actor, base.queue_acts(name, paused, reason) if changed else (), self.clock())
            return changed

    def queues(self) -> list[Queue]:
        with self._snapshot() as ask:
            return _queues(ask, self.clock())

    def declare(self, declarations: Sequence[Declaration]) -> None:
        known = set(self.declared())
        new = [each for each in {each.name: each for each in declarations}.values() if each not in known]
        if not new:
            return
        with self._transaction():
            for declaration in new:
                self._all("declare", fields(declaration))

    def declared(self) -> list[Declaration]:
        return records(Declaration, self._read(SQL["declared"]))

    def sibling(self) -> SqliteStore:
        return self if self.path == ":memory:" else SqliteStore(self.path, self.clock, create=False)

    # turns and tasks

    def load(self, ids: Sequence[str]) -> list[Loaded]:
        return records(Loaded, self._all("load", json.dumps(list(ids))))

    def load_tasks(self, ids: Sequence[str]) -> list[LoadedTask]:
        return records(LoadedTask, self._all("load_tasks", json.dumps(list(ids))))

    def cancelled(self, ids: Sequence[str]) -> set[str]:
        return {id for (id,) in self._read(SQL["cancelled"], (json.dumps(list(ids)),))}

    def outcomes(self, needed: Sequence[Needed], brief: bool = False) -> dict[str, list[ChildOutcome]]:
        found: dict[str, list[ChildOutcome]] = {need.id: [] for need in needed}
        decided = [need for need in needed if not need.whole or len(need.numbers) == 1 or self._all_ended(need)]
        numbers = [(need.id, n) for need in decided for n in need.numbers]
        asked = {"ended_children": (json.dumps([child_id(id, n) for id, n in numbers]),), "ended_waits": {"numbers": json.dumps(numbers)}}
        for name, args in asked.items():
            rows = self._read(f"SELECT {BRIEF_OUTCOME} FROM ({SQL[name]})", args) if brief else self._run(SQL[name], args)[0]
            for outcome, id in records_with(ChildOutcome, rows, "id"):
                found[id].append(brief_outcome(outcome) if brief else outcome)
        return found

    def _all_ended(self, need: Needed) -> bool:
        """Whether there is anything to decide: one index look-up that stops at the first unfinished child."""
        first, last = min(need.numbers), max(need.numbers)
        if not self._all("unfinished_child", need.id, first, last):
            return True
        return need.fails and bool(self._all("failed_child", need.id, first, last))

    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        boxes: dict[str, list[Mail]] = {}
        for mail, id in records_with(Mail, self._all("mail", json.dumps(list(ids))), "execution_id"):
            boxes.setdefault(id, []).append(mail)
        return boxes

    def mailed(self, id: str) -> list[Mail]:
        return records(Mail, self._read(SQL["mailed"], (id,)))

    def commit(self, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]) -> tuple[list[Committed], set[str]]:
        if len({turn.id for turn in turns}) < len(turns):
            raise ValueError("a commit takes one turn of each workflow")
        with self._transaction():
            now = self.clock()
            accepted = {end.id for end in ends if self._end_task(end, now)}
            return [self._commit_turn(turn, now) for turn in turns], accepted

    def _commit_turn(self, turn: TurnCommit, now: int) -> Committed:
        known, (fence, wakes) = self._find(turn.id), self._one("ready_of", turn.id) or (None, 0)
        moved = dict(id=turn.id, seq=turn.seq, fence=turn.fence, statement=turn.statement, now=now)
        moved |= dict(owned=turn.owned, awaiting=turn.awaiting, snapshot=inline(turn.snapshot))
        if fence != turn.fence or known is None or has_ended(known.status):
            return refused(turn.id)
        if turn.end != "own" or turn.starts:
            started, terminated = self._one("family_of", turn.id)
            if terminated:
                return refused(turn.id)
            if refusal := self._full(turn, known.root_id, started, now):
                return refused(turn.id, refusal)
        if self._count("advance_context", moved) == 0:
            return refused(turn.id)
        self._keep_blob(turn)
        self._write_children(turn, known.root_id, now)
        for n in turn.settled:
            self._all("delete_settled_timer", turn.id, n)
            self._all("delete_settled_wait", turn.id, n)
            self._all("settle_wait", turn.id, n)
        sender = self._sender(turn.id) if turn.events or turn.signals else None
        published = [event for event in turn.events if self._publish(event, sender, now)] if turn.events else ()
        for id in turn.consumed:
            if self._count("consume_signal", turn.seq + 1, id, turn.id) != 1:
                raise AssertionError(f"signal {id} of {turn.id} was consumed before")
        sent = self._send(turn.signals, sender, now) if turn.signals else ()
        if sender is not None and sender.started_by is not None:
            self._audit(Actor(sender.started_by, source=f"execution:{turn.id}"), sending_acts(published, sent), now)
        if turn.attributes is not None:
            (before,) = self._one("attributes", turn.id)
            self._all("set_attributes", with_attributes(before, turn.attributes), turn.id)
        ended = end_of_turn(turn, known.cancelled)
        if (upto := turn.resumed_upto(wakes)) is not None:
            self._executed(turn.id, upto, ended.error if ended else None, now)
        self._tell(turn_row(turn, known.status, ended), now)
        if ended:
            self._all("delete_held", turn.id, turn.fence)
            self._end_workflow(turn.id, ended, now, turn.fence, turn.worker)
        elif turn.status != known.status or not known.started:
            suspended = {"id": turn.id, "status": turn.status, "now": now, "fence": turn.fence, "worker": turn.worker}
            self._all("suspend_execution", suspended)
        promoted = {} if ended else self._promote(turn, now)
        return answer(turn, *self._leave(turn), promoted)

    def _tell(self, row: HistoryRow, now: int) -> None:
        """Adds to the history of an execution."""
        self._all("insert_history", *row, now)

    def _full(self, turn: TurnCommit, root: str, started: int | None, now: int) -> str:
        """Why the turn must not start what it wants to; empty if it may, and then it is counted."""
        limits = self.limits
        if not turn.starts:
            return ""
        if may_have_many(turn, limits):
            (alive,) = self._one("live_children", {"id": turn.id, "limit": limits.children})
            if alive + len(turn.starts) > limits.children:
                return many_children(limits)
        if started is not None and started > limits.family:
            asked = {"root": root, "limit": limits.family, "now": now, "rest_us": COUNT_EVERY_US}
            alive = self._one("recount_family", asked)
            if alive is None or alive[0] > limits.family:
                return full_family(limits)
        if added := counted(turn, limits):
            self._all("count_family", {"root": root, "started": added})
        return ""

    def _keep_blob(self, turn: TurnCommit) -> None:
        """A new snapshot takes the place of the one before; one that is unchanged keeps its blob."""
        if turn.snapshot is not None:
            self._all("delete_blob", turn.id)
        self._insert_blob(turn.id, turn.snapshot)

    def _leave(self, turn: TurnCommit) -> tuple[bool, int]:
        """Whether the holder has left, and how often it was woken if not. Parking succeeds only if nothing
        has happened since it looked."""
        match turn.end:
            case "finish":
                return True, 0
            case "yield":
                self._all("release", {"id": turn.id, "fence": turn.fence, "delay_us": 0})
                return True, 0
            case "park" if self._count("delete_parked", turn.id, turn.fence, turn.wakes):
                return True, 0
            case "park" | "own":
                return False, self._one("ready_of", turn.id)[1]
            case _:
                assert_never(turn.end)

    def _write_children(self, turn: TurnCommit, root: str, now: int) -> None:
        for done in turn.done:
            result, error = result_and_error(done.status, done.value)
            place = dict(id=child_id(turn.id, done.n), parent_id=turn.id, child_no=done.n, root_id=root)
            ended = dict(result=result, error=error, fence=turn.fence, worker=turn.worker, now=now)
            self._all("insert_done", {**fields(done), **place, **ended})
        for new in turn.starts:
            if new.child_no not in turn.promoted:
                self._start(new, now)
            if new.failed is not None:
                self._tell(attempt_row(new.id, new.attempt, turn.fence, turn.worker, new.failed), now)
        for timer in turn.timers:
            delay_us = None if timer.delay_s is None else int(timer.delay_s * US)
            fire_at = None if timer.held else timer.until if timer.until is not None else now + (delay_us or 0)
            self._all("insert_timer", turn.id, timer.n, delay_us, timer.until, fire_at)
        opened = [wait.n for wait in turn.waits if not wait.held]
        for wait in turn.waits:
            timeout_us = None if wait.timeout_s is None else int(wait.timeout_s * US)
            place = {"id": turn.id, "key": key_of(wait.wanted), "timeout_us": timeout_us, "now": now}
            self._all("insert_wait", fields(wait) | place)
        for approval in turn.approvals:
            self._request(turn.id, approval, now)
        for first, last in turn.cancels:
            self._flag(turn.id, first, last, now)
        for first, last in turn.releases:
            opened += self._release(turn.id, first, last, now)
        if opened:
            self._look(turn.id, opened, now)

    def _promote(self, turn: TurnCommit, now: int) -> dict[int, int]:
        """Tasks that are running already get their rows, claimed from the beginning, with fences of their own."""
        fences: dict[int, int] = {}
        for new in turn.starts:
            if new.child_no in turn.promoted:
                fence = fences[new.child_no] = self._one("next_fence")[0]
                self._start(new.replace(held=True), now)
                expires = now + int(turn.claim_ttl_s * US)
                self._run("UPDATE executions SET held = 0, timeout_at = ? + timeout_us WHERE id = ?", (now, new.id))
                self._all("insert_claimed", new.id, new.queue, new.priority, now, turn.worker, expires, fence, new.attempt)
        return fences

    def _flag(self, id: str, first: int, last: int, now: int, wakes: bool = True) -> None:
        """Asks children to end. A turn never touches its children's ready rows, but for the wake of a workflow."""
        self._all("cancel_timers", now, id, first, last)
        self._all("cancel_waits", now, id, first, last)
        self._all("cancel_approvals", now, id, first, last)
        for child, type in self._all("flag_children", {"id": id, "first": first, "last": last, "now": now}):
            if type == WORKFLOW and wakes:
                self._all("free_delayed", child)
                self._wake(child, now)

    def _release(self, id: str, first: int, last: int, now: int) -> list[int]:
        """Lets children begin that were held back; the waits for events that are open from now on."""
        self._all("release_timers", {"id": id, "first": first, "last": last, "now": now})
        self._release_approvals(id, first, last, now)
        for child, type, queue, priority, attempt in self._all("release_children", {"id": id, "first": first, "last": last, "now": now}):
            self._make_ready(child, type, queue, priority, attempt, now)
        return [n for (n,) in self._all("release_waits", {"id": id, "first": first, "last": last, "now": now})]

    def _end_workflow(self, id: str, ended: Ended, now: int, fence: int, worker: str | None, wakes: bool = True) -> None:
        if is_orderly(ended.status):
            self._all("delete_timers", id)
        else:  # its timers are kept, cancelled, for a retry
            self._flag(id, 0, LAST, now, wakes)
        self._all("delete_waits", id)
        self._all("cancel_approvals", now, id, 0, LAST)
        self._all("unseen_resumes", id)
        self._finish(id, ended, now, fence, worker)

    def _finish(
        self,
        id: str,
        ended: Ended,
        now: int,
        fence: int | None = None,
        worker: str | None = None,
        attempt: int = 0,
        took_us: int = 0,
    ) -> bool:
        """The one way to a terminal status; it wakes the parent. Without fence: nobody held it."""
        result, error = result_and_error(ended.status, ended.value)
        row = self._one(
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
            self._wake(row[0], now)
        return row is not None

    def _end_task(self, end: TaskEnd, now: int) -> bool:
        held = self._one("attempt_of", end.id, end.fence)
        if held is None:
            return False
        attempt, was_cancelled = held
        match end_of_attempt(end, attempt, bool(was_cancelled)):
            case Again() as again:
                self._try_again(end, again, attempt, now)
                return True
            case Ended() as ended:
                self._count("delete_held", end.id, end.fence)
                return self._finish(end.id, ended, now, end.fence, end.worker, attempt, end.took_us)

    def _try_again(self, end: TaskEnd, again: Again, attempt: int, now: int) -> None:
        due_at = now + int(again.delay_s * US)
        self._count("delay_task", {"id": end.id, "fence": end.fence, "due_at": due_at, "back": attempt - again.attempt})
        noted = {"id": end.id, "attempt": again.attempt, "now": now, "worker": end.worker, "took_us": end.took_us}
        self._all("note_attempt", noted)
        if again.row:
            self._tell(again.row, now)

    def complete_within(self, work: Callable[[Any], TaskEnd | None]) -> str:
        raise StoreError("transactional tasks need PostgreSQL: SQLite has one writer, who would wait for the handler")

    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        with self._transaction():
            return [self._park(claim) for claim in claims]

    def _park(self, claim: Claim) -> Committed:
        left = bool(self._count("delete_parked", claim.id, claim.fence, claim.wakes))
        fence, wakes = (not left and self._one("ready_of", claim.id)) or (None, None)
        return answer_to_park(claim.id, left, wakes if fence == claim.fence else None)

    def drop(self, claims: Mapping[str, int]) -> None:
        with self._transaction():
            for id, fence in claims.items():
                self._all("delete_held", id, fence)

    def witness(self, id: str, seq: int) -> int | None:
        row = self._one("witness", id, seq)
        return int(row[0]) if row else None

    # from outside

    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        with self._transaction():
            found, id = self._find(signal.execution_id), signal.execution_id
            known, waiting = bool(self._one("signal_known", signal.id)), self._one("unconsumed", id)[0]
            if (delivery := received(found.status if found else None, known, waiting, limit)) != "sent":
                return delivery
            self._deliver(signal, sender_of(actor), self.clock())
            self._record(actor, sending_acts((), [signal]), self.clock())
            return delivery

    def _send(self, signals: Sequence[NewSignal], sender: Sender | None, now: int) -> list[NewSignal]:
        """Signals of a turn: those that were delivered. A mailbox that is full takes no more."""
        room, sent = dict[str, int](), list[NewSignal]()
        for signal in signals:
            to = signal.execution_id
            if to not in room:
                room[to] = self.limits.signals - self._one("unconsumed", to)[0]
            if room[to] > 0 and self._deliver(signal, sender, now):
                room[to] -= 1
                sent.append(signal)
        return sent

    def _deliver(self, signal: NewSignal, sender: Sender | None, now: int) -> bool:
        """Into the mailbox of whoever is still there; to one who has ended it comes too late. The same one twice is one.

        What a turn sends that whoever asked for it might not have sent reaches nobody.
        """
        known = self._find(signal.execution_id)
        if known is None or has_ended(known.status) or (sender and not self._may_signal(sender, signal.execution_id)):
            return False
        mail = dict(id=signal.id, execution_id=signal.execution_id, name=signal.name, payload=signal.payload, now=now)
        if not self._count("insert_signal", mail):
            return False
        self._contribute(signal.execution_id, sender.provenance.contributors if sender else (), now)
        if not known.held:  # one that is held back looks when it begins
            self._wake(signal.execution_id, now)
        return True

    def _may_signal(self, sender: Sender, id: str) -> bool:
        if not sender.root_id:  # a person: what they may do was asked before
            return True
        root = self._one("root_names", json.dumps([id]))[1] if sender.provenance.limited else None
        return sender.provenance.allows("execution:signal", root)

    def _sender(self, id: str) -> Sender:
        (family,) = records(SendingFamily, self._all("sender", id))
        return sending_turn(family)

    def publish(self, event: NewEvent, actor: Actor | None = None) -> str:
        with self._transaction():
            if not self._publish(event, sender_of(actor), self.clock()):
                return "duplicate"
            self._record(actor, sending_acts([event], ()), self.clock())
            return "published"

    def _publish(self, event: NewEvent, sender: Sender | None, now: int) -> bool:
        """To everyone whose wait is open; whoever waits later looks for it."""
        n, provenance = self._one("next_event", event.type)[0], dump_provenance(sender.provenance) if sender else None
        new = Event(event.id, event.type, n, event.data, now + event.later_us, provenance)
        if not self._count("insert_event", fields(new)):
            return False
        keys = json.dumps(sorted(keys_of(json.loads(event.data))))
        waits = records(Wait, self._all("open_waits", {"type": event.type, "keys": keys}))
        self._end_waits(matches(waits, [new]), now)
        self._trigger(new, sender.name if sender else None, now)
        return True

    def _trigger(self, event: Event, by: str | None, now: int) -> None:
        """Starts the workflows that are registered for it."""
        triggers = records(Trigger, self._all("triggers_of", event.type))
        for execution in triggered(triggers, [event], {event.id: by}, now):
            self._start(execution, now)

    def _look(self, id: str, numbers: Sequence[int], now: int) -> None:
        """What waits for events from now on may find one that is there already."""
        waits = records(Wait, self._all("waits_of", id, json.dumps(list(numbers))))
        seen = set(self._all("taken_events", id)) if waits else set()
        for type in dict.fromkeys(wait.type for wait in waits):
            open_ = [wait for wait in waits if wait.type == type]
            after = (min(wait.since for wait in open_), 0)
            while open_ and (events := records(Event, self._all("events_after", type, *after, PAGE))):
                found = matches(open_, events, seen)
                self._end_waits(found, now)
                open_ = [wait for wait in open_ if wait not in {match.wait for match in found}]
                after = (events[-1].published_at, events[-1].n)

    def _end_waits(self, found: Sequence[Match], now: int) -> None:
        for match in found:
            wait = match.wait
            self._count("end_wait", {"id": wait.execution_id, "n": wait.n, "status": EVENT_CAME, "event_id": match.event.id, "now": now})
            self._resumed(wait.execution_id, "event", match.event.id, json.dumps({"type": match.event.type}), now)
            self._contribute(wait.execution_id, load_provenance(match.event.provenance).contributors, now)
            self._wake(wait.execution_id, now)

    def cancel(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        with self._transaction():
            now = self.clock()
            asked = {id: self._cancel(id, known, now) for id in dict.fromkeys(ids) if (known := self._find(id))}
            self._record(actor, cancel_acts(id for id, changed in asked.items() if changed), now)
            return asked

    def _cancel(self, id: str, known: Known | None, now: int) -> bool:
        if known is None or has_ended(known.status):
            return False
        self._all("flag_cancel", {"id": id, "now": now})
        ended = end_of_cancelled(known.type)
        if ended is None:
            self._all("free_delayed", id)
            self._wake(id, now)
        elif not self._runs(id):
            self._all("delete_ready", id)
            self._finish(id, ended, now)
        return True

    def _runs(self, id: str) -> bool:
        return bool(self._run("SELECT 1 FROM ready WHERE id = ? AND state = 1", (id,))[0])

    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        with self._transaction():
            now = self.clock()
            known = {id: self._find(id) for id in sorted(ids)}
            live = {id: found for id, found in known.items() if found and not has_ended(found.status)}
            workflows = {id: found.status for id, found in live.items() if found.type == WORKFLOW}
            for id in workflows:
                self._all("mark_terminated", {"id": id, "now": now})
            self._terminate(workflows, [id for id in live if id not in workflows], now)
            self._record(actor, terminate_acts(id for id in dict.fromkeys(ids) if id in live), now)
            return {id: id in live for id in ids if known[id]}

    def end_terminated(self, limit: int) -> list[str]:
        with self._transaction():
            tasks = [id for (id,) in self._all("terminated_tasks", limit)]
            workflows = {} if tasks else dict(self._all("terminated_workflows", limit))
            tasks = tasks or [id for (id,) in self._all("tasks_of", json.dumps(list(workflows)), limit)]
            workflows = workflows if len(tasks) < limit else {}  # those of whom there may be more tasks are for a later pass
            if not tasks and not workflows:
                self._all("forget_terminations")
            self._terminate(workflows, tasks, self.clock())
            return [*tasks, *workflows]

    def _terminate(self, workflows: Mapping[str, int], tasks: Sequence[str], now: int) -> None:
        """Ends them: whoever holds one finds a newer fence, or no row. Nobody below is woken: it is marked, and gets on no more."""
        for id, status in workflows.items():
            self._end_at_once(id, status, now)
        for id in tasks:
            self._all("delete_ready", id)
            self._finish(id, BY_FORCE, now)
        for id in workflows:
            self._all("delete_ready", id)
        self._all("delete_ended_ready", json.dumps([*tasks, *workflows]))

    def _end_at_once(self, id: str, status: int, now: int) -> None:
        fence = self._one("next_fence")[0]
        seq = self._one("raise_context_fence", fence, id)[0]
        self._all("skip_turn", id)
        self._tell(terminated_row(id, seq, fence, status), now)
        self._end_workflow(id, BY_FORCE, now, fence, None, wakes=False)

    def retry(self, id: str, plan: Callable[[Family], Family], actor: Actor | None = None, whole: bool = True) -> Started | None:
        with self._transaction():
            if running := unfinished(self.retries(id)):
                return Started(running, created=False)
            family = self._family(id, Reach.by(self.limits), self._all, whole)
            if not family.executions:
                return None
            started, now = self._store_family(base.asked_by(plan(family), provenance_of(actor))), self.clock()
            self._all("copy_contributors", {"id": started.id, "retry_of": id, "now": now})
            self._contribute(started.id, provenance_of(actor).contributors, now)
            self._record(actor, retry_acts(id, started.id), now)
            return started

    def family(self, id: str, reach: Reach) -> Family:
        return self._family(id, reach, lambda name, args: self._read(SQL[name], args))

    def retries(self, id: str) -> list[Retry]:
        return records(Retry, self._all("retries", id))

    def _family(self, id: str, reach: Reach, read: Callable[[str, Any], list[Any]], whole: bool = True) -> Family:
        asked = family_range(id, whole)
        ((rows, size),) = read("family_size", asked | {"most": reach.rows + 1})
        refuse_large(id, reach, rows, size)
        return Family(
            tuple(records(StoredExecution, read("family", asked | {"short": SHORT_ERROR}))),
            tuple(records(StoredTimer, read("family_timers", asked))),
            tuple(records(StoredSignal, read("family_signals", asked))),
            tuple(self.retries(id)),
        )

    def _store_family(self, family: Family) -> Started:
        now = self.clock()
        for row in family.executions:
            values = fields(row) | {"now": now}
            self._all("insert_stored", values)
            if row.type == WORKFLOW:
                self._all("insert_stored_context", values | {"snapshot": inline(row.snapshot)})
                self._insert_blob(row.id, row.snapshot)
            if has_turn(row.type, row.status):
                self._all("insert_stored_history", values)
            if begins(row.status, row.held):
                self._make_ready(row.id, row.type, row.queue, row.priority, row.attempt, now)
        for name, rows in (("insert_stored_timer", family.timers), ("insert_stored_signal", family.signals)):
            for item in rows:
                self._all(name, fields(item) | {"now": now})
        return Started(family.executions[0].id, created=True)

    # services

    def fire_timers(self, limit: int, late: Callable[[float], None] | None = None) -> tuple[int, int | None]:
        due, now = self._one("next_due")
        if due is None or due > now:
            return 0, due
        with self._transaction():
            now = self.clock()
            timers = self._all("due_timers", now, limit)
            for id, n, _ in timers:
                self._all("fire_timer", now, id, n)
                self._wake(id, now)
            waits = self._all("due_waits", now, limit)
            for id, n in waits:
                self._count("end_wait", {"id": id, "n": n, "status": EVENT_MISSED, "event_id": None, "now": now})
                self._wake(id, now)
            delayed = self._all("due_ready", now, limit)
            for (id,) in delayed:
                self._all("free_delayed", id)
            over = self._all("due_timeouts", now, limit)
            for id, type in over:
                self._time_out(id, type, now)
            people = self._fire_approvals(limit, now) + self._fire_pauses(limit, now)
            next_due = self._one("next_due")[0]
        if late is not None:
            for _, _, fire_at in timers:
                late((now - fire_at) / US)
        return len(timers) + len(waits) + len(delayed) + len(over) + people, next_due

    def _time_out(self, id: str, type: int, now: int) -> None:
        """A workflow's next turn sees that its time is over; a task that nobody runs ends here."""
        ended = end_of_timed_out(type)
        if ended is None:
            self._wake(id, now)
        elif not self._runs(id):
            self._all("delete_ready", id)
            self._finish(id, ended, now)
        self._all("time_out", now, id)

    def sweep(self, limit: int) -> list[str]:
        if not self._all("cancelled_tasks", limit):
            return []
        with self._transaction():
            found, now = [id for (id,) in self._all("cancelled_tasks", limit)], self.clock()
            for id in found:
                self._all("delete_ready", id)
                self._finish(id, BY_REQUEST, now)
            return found

    def look(self, dead: bool = False) -> Look:
        (look,) = records(Look, self._all("look", {"dead": dead, "forgotten_us": _us(FORGOTTEN_S)}))
        return look

    def forget_workers(self, limit: int) -> None:
        with self._transaction():
            self._all("forget_workers", {"forgotten_us": _us(FORGOTTEN_S), "limit": limit})

    def parked(self, after: str, limit: int) -> list[str]:
        return [id for (id,) in self._all("parked", after, limit)]

    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        return self._all("without_rows", json.dumps(children))

    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        with self._transaction():
            woken = [id for id, seq in stuck.items() if self._one("wake_parked", id, seq)]
            for id, n in timers:
                if id in woken:
                    self._all("insert_fired", id, n)
            return woken

    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        with self._transaction():
            return self._one("lease", {"name": name, "holder": holder, "ttl_us": int(ttl_s * US)}) is not None

    def prune(self, older_than_s: float, limit: int) -> int:
        with self._transaction():
            age_us = int(older_than_s * US)
            roots = self._all("old_roots", age_us, limit)
            for (root,) in roots:
                for table, column in (
                    ("executions", "id"), ("workflow_execution_context", "execution_id"), ("history", "execution_id"),
                    ("timer_tasks", "execution_id"), ("workflow_signals", "execution_id"), ("blobs", "execution_id"),
                    ("event_waits", "execution_id"), ("approvals", "execution_id"), ("approval_decisions", "approval_id"),
                    ("execution_resume_requests", "execution_id"), ("ready", "id"), ("families", "root_id"), ("terminations", "id"),
                    ("execution_contributors", "root_id"),
                ):  # fmt: skip
                    self._run(f"DELETE FROM {table} WHERE {column} = ? OR ({column} >= ? AND {column} < ?)", (root, f"{root}.", f"{root}/"))
            return len(roots)

    def prune_events(self, older_than_s: float, limit: int) -> int:
        with self._transaction():
            old = json.dumps([id for (id,) in self._all("old_events", self.clock() - _us(older_than_s), limit)])
            self._all("forget_waits", old)
            return self._count("forget_events", old)

    # reading

    def get(self, ids: Sequence[str]) -> dict[str, Execution]:
        text = f"{SQL['execution']} WHERE e.id IN (SELECT value FROM json_each(?))"
        return {found.id: found for found in records(Execution, self._read(text, (json.dumps(list(ids)),)))}

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
        where, args = ["parent_id IS NULL"], list[Any]()
        for condition, *values in (("name = ?", name), ("status = ?", status), ("(created_at, id) < (?, ?)", *(before or [None]))):
            if values[0] is not None:
                where.append(condition)
                args += values
        columns, order = BRIEF if brief else "*", "ORDER BY created_at DESC, id DESC LIMIT ?"
        text = f"FROM ({SQL['execution']}) WHERE {' AND '.join(where)}"
        if names is not None:  # of each as many as are wanted, along the index: however rare they are among others
            text = f"""FROM ({SQL["execution"]}) WHERE id IN (SELECT f.id FROM json_each(?) n CROSS JOIN executions f ON f.id IN (
                SELECT id {text} AND name = n.value {order}))"""
            args = [json.dumps(names), *args, limit]
        return self._executions(f"SELECT {columns} {text} {order}", (*args, limit), most_bytes)

    def names(self, prefixes: Sequence[str]) -> list[str]:
        return [name for (name,) in self._read(SQL["names"], (json.dumps(prefixes),))]

    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._read(SQL["root_names"], (json.dumps(ids),)))

    def children(
        self, id: str, after: int = 0, limit: int | None = None, brief: bool = False, most_bytes: int | None = None
    ) -> Found[Execution]:
        where = "WHERE e.parent_id = ? AND e.id >= ? AND e.id < ? AND e.child_no > ? ORDER BY e.child_no LIMIT ?"
        text, args = f"{SQL['execution']} {where}", (id, f"{id}.", f"{id}/", after, -1 if limit is None else limit)
        return self._executions(f"SELECT {BRIEF} FROM ({text})" if brief else text, args, most_bytes)

    def _executions(self, text: str, args: Any, most_bytes: int | None) -> Found[Execution]:
        rows, cut = self._read_some(text, args, most_bytes)
        return Found.of(records(Execution, rows), cut)

    def trace(self, id: str, after: Place | None, limit: int, most_bytes: int | None = None) -> Found[Moment]:
        bounds = {"id": id, "first": f"{id}.", "last": f"{id}/", "most": TRACED, "turns": TRACED_TURNS, "limit": limit}
        begin = after or Place(-1, 0, 0, 0, "", 0, 0)
        after_it = {f"p_{name}": getattr(begin, name) for name in begin._fields}
        places = records(Place, self._read(SQL["trace"], {**bounds, **after_it}))
        wanted = json.dumps([[place.id, place.kind, place.n] for place in places])
        rows, cut = self._read_some(SQL["moments"], (wanted,), most_bytes)
        read: list[Any] = records(Moment, rows)  # each with the number of its place
        return Found.of((moment.replace(place=places[moment.place]) for moment in read), cut)

    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._read(SQL["stamps"], (json.dumps(list(ids)),)))

    def waits(self, id: str) -> list[NewWait]:
        return records(NewWait, self._read(SQL["waits"], (id,)))

    def due(self, id: str) -> dict[int, int]:
        return dict(self._read(SQL["due"], {"id": id}))

    def history(self, id: str) -> list[Transition]:
        return base.with_names(records(Transition, self._read(SQL["history"], (id,))))

    # doctor

    def check(self, grace_s: float, judge: Judge | None = None) -> list[Finding]:
        with self._snapshot() as ask:
            return examine(ask, doctor_sql(), self.clock(), grace_s, judge)

    def audit_chain(self, known: Head | None = None, after: Head | None = None, limit: int | None = None, size: int | None = None) -> Chain:
        with self._snapshot() as ask:
            return verified(ask, known, after, limit, size)

    def health(self) -> Health:
        with self._snapshot() as ask:
            now = self.clock()
            silent = tuple(records(Silent, ask("silent", now=now)))
            return Health(now, ask("count_executions")[0][0], tuple(_queues(ask, now)), silent=silent)

    @contextmanager
    def _snapshot(self) -> Iterator[Ask]:
        """A read transaction. Of a file it has a connection of its own: whoever works with the store need not wait for it."""
        try:
            if self.path == ":memory:":
                with self._lock:
                    yield from self._reading(self._db)
            else:
                with closing(connect(self.path, "ro")) as db:
                    yield from self._reading(db)
        except sqlite3.Error as problem:
            raise StoreError(f"cannot read the SQLite database {self.path}: {problem}") from problem

    @staticmethod
    def _reading(db: sqlite3.Connection) -> Iterator[Ask]:
        def ask(name: str, /, rows: Sequence[tuple[str, int]] | None = None, **values: Any) -> list[Any]:
            lists = {key: json.dumps(value) for key, value in {**values, "rows": rows}.items() if isinstance(value, list)}
            cursor = db.execute(doctor_sql()[name], {**values, **lists})
            found = cursor.fetchall()
            return NAMED.result(doctor_sql()[name], found, cursor) if found else found

        db.execute("BEGIN DEFERRED")
        try:
            yield ask
        finally:
            db.execute("ROLLBACK")


def _queues(ask: Ask, now: int) -> list[Queue]:
    return records(Queue, ask("queues", now=now))


def _us(seconds: float) -> int:
    return int(seconds * US)


@cache
def doctor_sql() -> dict[str, str]:
    return {name: bounded_text(text, ":limit") if name in RULES else text for name, text in statements(PACKAGE, "doctor.sql").items()}


def _script(number: int, name: str, text: str) -> str:
    """A migration with its own record, in the words of SQLite itself: our functions are not there when it is run by hand."""
    now_us = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    return (
        "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL, at INTEGER NOT NULL);\n\n"
        f"{text.strip()}\n\nINSERT INTO schema_version (version, name, at) VALUES ({number}, '{name}', {now_us});\n"
    )


def _statements(script: str) -> Iterator[str]:
    """One at a time: `executescript` would commit what has been done before."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _listed(rows: list[Any]) -> dict[str, Listed]:
    return {listed.name: listed for listed in records(Listed, rows)}
