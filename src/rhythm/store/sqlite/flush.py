"""The group commit on SQLite: turns of workflows and ends of tasks, all of them together.

Always inside a transaction. What is written for many items is written by one statement that is run
for each (`SqliteSession.many`): that is most of what a turn writes. The rest is written turn by
turn. An item whose claim is lost is left out, and does not affect the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import attrgetter

from rhythm.ids import child_id
from rhythm.record import Record
from rhythm.store.acts import sending_acts
from rhythm.store.approvals import NewApproval, message_of
from rhythm.store.attributes import with_attributes
from rhythm.store.blobs import inline
from rhythm.store.events import key_of
from rhythm.store.families import (
    COUNT_EVERY_US,
    counted,
    full_family,
    many_children,
    may_have_many,
    room,
)
from rhythm.store.interfaces.turns import Committed, Done, TaskEnd, TurnCommit
from rhythm.store.lifecycle import StatusNumber, has_ended
from rhythm.store.light_turns import is_light
from rhythm.store.rows import Row, fields, records
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.exchange import SqliteExchange
from rhythm.store.sqlite.rows import ExecutionEnd, ReleasedExecution, SqliteRows
from rhythm.store.sqlite.session import US, SqliteSession
from rhythm.store.verdicts import (
    Again,
    Ending,
    answer,
    attempt_row,
    end_of_attempt,
    end_of_turn,
    refused,
    result_and_error,
    turn_row,
)

# The names of values in statements that are run for many rows.
MOVED = ("id", "seq", "fence", "statement", "owned", "awaiting", "snapshot", "now")
STATUS = ("id", "status", "fence", "worker", "now")
RESUMED = ("id", "upto", "error", "now")
DONE = (*Done._fields, "id", "parent_id", "root_id", "result", "error", "fence", "worker", "now")
_done = attrgetter(*Done._fields)


class Member(Record):
    """A claimed execution with its claim, and the state of its family."""

    id: str
    status: StatusNumber
    cancelled: bool
    root_id: str
    parent_id: str | None
    started: bool
    fence: int | None
    wakes: int
    family: int | None  # starts in its family, as far as they were counted
    terminated: bool  # it was terminated, or is below an execution that was


class SqliteFlush:
    """Writes the turns and ends of tasks that owners commit."""

    def __init__(
        self, db: SqliteSession, rows: SqliteRows, auditor: SqliteAuditor, exchange: SqliteExchange
    ) -> None:
        self.db, self.rows, self.auditor, self.exchange = db, rows, auditor, exchange

    # ends of tasks

    def end_tasks(self, ends: Sequence[TaskEnd], now: int) -> set[str]:
        """Ends attempts: their tasks end, or are tried again. Returns the ids of the tasks whose
        end was accepted: their claims are not lost."""
        if not ends:
            return set()
        # Of two ends of one task, the older one has lost its claim.
        newest = {end.id: end for end in sorted(ends, key=attrgetter("fence"))}
        fences = json.dumps({end.id: end.fence for end in newest.values()})
        final, again = list[ExecutionEnd](), set[str]()
        for id, attempt, was_cancelled, parent in self.db.all("attempts_of", fences):
            end = newest[id]
            match end_of_attempt(end, attempt, bool(was_cancelled)):
                case Again() as later:
                    self._try_again(end, later, attempt, now)
                    again.add(id)
                case Ending() as ended:
                    final.append(
                        ExecutionEnd(id, ended, parent, end.fence, end.worker, attempt, end.took_us)
                    )
        self.db.many("delete_claimed", (), [(end.id, end.fence) for end in final])
        return again | self.rows.finish_all(final, now)

    def _try_again(self, end: TaskEnd, again: Again, attempt: int, now: int) -> None:
        due_at = now + int(again.delay_s * US)
        self.db.count(
            "delay_task",
            {"id": end.id, "fence": end.fence, "due_at": due_at, "back": attempt - again.attempt},
        )
        noted = {
            "id": end.id,
            "attempt": again.attempt,
            "now": now,
            "worker": end.worker,
            "took_us": end.took_us,
        }
        self.db.all("note_attempt", noted)
        if again.row:
            self.rows.write_history([again.row], now)

    # turns

    def commit_turns(self, turns: Sequence[TurnCommit], now: int, alone: bool) -> list[Committed]:
        """Commits turns, and returns what became of each.

        `alone`: nothing else was written in this transaction.
        """
        if not turns:
            return []
        if firsts := [turn.first for turn in turns if turn.first is not None]:
            # All at one time, no earlier than any of them.
            self.commit_turns(firsts, now - min(turn.waited_us for turn in firsts), alone)
        asked = json.dumps([turn.id for turn in turns])
        known = {row.id: row for row in records(Member, self.db.all("members_of", asked))}
        owned = [turn for turn in turns if _owns(turn, known.get(turn.id))]
        others = [turn for turn in owned if not is_light(turn)]
        answers = self._refusals(others, known, now) if others else {}
        won = self._advance([turn for turn in owned if turn.id not in answers], now)
        self._write_done(won, known, now)
        if others:
            others = [turn for turn in won if not is_light(turn)]
            self._write_others(others, now)
        ended = {
            turn.id: end for turn in others if (end := end_of_turn(turn, known[turn.id].cancelled))
        }
        self._executed(others, ended, known, now)
        self.rows.write_history(
            [turn_row(turn, known[turn.id].status, ended.get(turn.id)) for turn in won], now
        )
        self._finish([turn for turn in others if turn.id in ended], ended, known, now)
        self._suspend([turn for turn in won if turn.id not in ended], known, now)
        promoted = {turn.id: self._promote(turn, now) for turn in others if turn.id not in ended}
        parked = self._leave(others)
        wakes = {} if alone and not others else self._wakes(won)
        for turn in won:
            count = wakes.get(turn.id, known[turn.id].wakes)
            answers[turn.id] = answer(turn, turn.id in parked, count, promoted.get(turn.id, {}))
        return [answers.get(turn.id) or refused(turn.id) for turn in turns]

    def _refusals(
        self, turns: Sequence[TurnCommit], known: Mapping[str, Member], now: int
    ) -> dict[str, Committed]:
        """Returns the refusals of turns that may not be committed.

        A workflow below a terminated one cannot go on, and no turn may start more executions than
        allowed.
        """
        refusals: dict[str, Committed] = {}
        for turn in turns:
            member = known[turn.id]
            if member.terminated:
                refusals[turn.id] = refused(turn.id)
            elif full := self._full(turn, member.root_id, member.family, now):
                refusals[turn.id] = refused(turn.id, full)
        return refusals

    def _full(self, turn: TurnCommit, root: str, started: int | None, now: int) -> str:
        """Returns why the turn must not start its executions.

        If it may, counts them and returns an empty text.
        """
        limits = room(turn, self.rows.limits)
        if not turn.starts:
            return ""
        if may_have_many(turn, limits):
            (alive,) = self.db.one("live_children", {"id": turn.id, "limit": limits.children})
            if alive + len(turn.starts) > limits.children:
                return many_children(limits)
        if started is not None and started > limits.family:
            asked = {"root": root, "limit": limits.family, "now": now, "rest_us": COUNT_EVERY_US}
            alive = self.db.one("recount_family", asked)
            if alive is None or alive[0] > limits.family:
                return full_family(limits)
        if added := counted(turn, limits):
            self.db.all("count_family", {"root": root, "started": added})
        return ""

    def _advance(self, turns: Sequence[TurnCommit], now: int) -> Sequence[TurnCommit]:
        """Moves the contexts on. Returns the turns that were accepted: the others were committed
        before, or a newer owner has their workflows."""
        rows = [
            (
                turn.id,
                turn.seq,
                turn.fence,
                turn.statement,
                turn.owned,
                turn.awaiting,
                inline(turn.snapshot),
                now,
            )
            for turn in turns
        ]
        won = list(compress(turns, self.db.each("advance_context", MOVED, rows)))
        # A new snapshot replaces the blob of the one before.
        changed = [turn for turn in won if turn.snapshot is not None]
        if changed:
            self.db.all("delete_blobs", json.dumps([turn.id for turn in changed]))
        for turn in changed:
            self.rows.insert_blob(turn.id, turn.snapshot)
        return won

    def _write_done(
        self, turns: Sequence[TurnCommit], known: Mapping[str, Member], now: int
    ) -> None:
        """Stores the tasks that the owners of their workflows have run."""
        done = [
            (
                *_done(done),
                child_id(turn.id, done.n),
                turn.id,
                known[turn.id].root_id,
                *result_and_error(done.status, done.value),
                turn.fence,
                turn.worker,
                now,
            )
            for turn in turns
            for done in turn.done
        ]
        self.db.many("insert_done", DONE, done)

    def _write_others(self, turns: Sequence[TurnCommit], now: int) -> None:
        """Writes what turns that are not light ask for."""
        starts = [new for turn in turns for new in turn.starts if new.child_no not in turn.promoted]
        self.rows.start_all(starts, now)
        failed = [
            attempt_row(new.id, new.attempt, turn.fence, turn.worker, new.failed)
            for turn in turns
            for new in turn.starts
            if new.failed is not None
        ]
        self.rows.write_history(failed, now)
        self._set_timers(turns, now)
        for turn in turns:
            self._write_waits(turn, now)
        settled = [(turn.id, n) for turn in turns for n in turn.settled]
        for name in ("delete_settled_timer", "delete_settled_wait", "settle_wait"):
            self.db.many(name, (), settled)
        for turn in turns:
            self._send(turn, now)
            if turn.attributes is not None:
                (before,) = self.db.one("attributes", turn.id)
                self.db.all("set_attributes", with_attributes(before, turn.attributes), turn.id)

    def _set_timers(self, turns: Sequence[TurnCommit], now: int) -> None:
        timers = list[Row]()
        for turn in turns:
            for timer in turn.timers:
                delay_us = _us(timer.delay_s)
                at = now + (delay_us or 0) if timer.until is None else timer.until
                fire_at = None if timer.held else at
                timers.append((turn.id, timer.n, delay_us, timer.until, fire_at))
        self.db.many("insert_timer", (), timers)

    def _write_waits(self, turn: TurnCommit, now: int) -> None:
        """Sets the waits for events and approvals of a turn, and cancels and releases what it
        says."""
        opened = [wait.n for wait in turn.waits if not wait.held]
        for wait in turn.waits:
            place = {
                "id": turn.id,
                "key": key_of(wait.wanted),
                "timeout_us": _us(wait.timeout_s),
                "now": now,
            }
            self.db.all("insert_wait", fields(wait) | place)
        for approval in turn.approvals:
            self._request(turn.id, approval, now)
        for first, last in turn.cancels:
            self.rows.flag(turn.id, first, last, now)
        for first, last in turn.begins:
            self._begin(turn.id, first, last, now)
        for first, last in turn.releases:
            opened += self._release(turn.id, first, last, now)
        if opened:
            self.exchange.match_earlier_events(turn.id, opened, now)

    def _request(self, execution_id: str, new: NewApproval, now: int) -> None:
        id = child_id(execution_id, new.n)
        timeout_us = _us(new.timeout_s)
        place = {"id": id, "execution_id": execution_id, "timeout_us": timeout_us, "now": now}
        self.db.all("insert_approval", fields(new) | place)
        if not new.held:
            self.rows.notify(id, "requested", now)

    def _release(self, id: str, first: int, last: int, now: int) -> list[int]:
        """Lets children begin that were held back. Returns the numbers of the waits for events that
        are now open."""
        self.db.all("release_timers", {"id": id, "first": first, "last": last, "now": now})
        self._release_approvals(id, first, last, now)
        self._begin(id, first, last, now)
        numbers = {"id": id, "first": first, "last": last, "now": now}
        return [n for (n,) in self.db.all("release_waits", numbers)]

    def _begin(self, id: str, first: int, last: int, now: int) -> None:
        """Lets executions begin that were held back."""
        numbers = {"id": id, "first": first, "last": last, "now": now}
        released = records(ReleasedExecution, self.db.all("release_children", numbers))
        self.rows.make_ready(released, now)

    def _release_approvals(self, execution_id: str, first: int, last: int, now: int) -> None:
        for (id,) in self.db.all(
            "release_approvals", {"id": execution_id, "first": first, "last": last, "now": now}
        ):
            self.rows.notify(id, "requested", now)

    def _send(self, turn: TurnCommit, now: int) -> None:
        """Publishes the turn's events, marks the signals that it consumed, and sends its
        signals."""
        sender = self.exchange.sender(turn.id) if turn.events or turn.signals else None
        published = [event for event in turn.events if self.exchange.publish(event, sender, now)]
        for id in turn.consumed:
            if self.db.count("consume_signal", turn.seq + 1, id, turn.id) != 1:
                raise AssertionError(f"signal {id} of {turn.id} was consumed before")
        sent = self.exchange.send(turn.signals, sender, now) if turn.signals else ()
        if sender is not None and (actor := sender.actor(turn.id)):
            self.auditor.add(actor, sending_acts(published, sent), now)

    def _executed(
        self,
        turns: Sequence[TurnCommit],
        ended: Mapping[str, Ending],
        known: Mapping[str, Member],
        now: int,
    ) -> None:
        """Marks the resumes of executions as done by these turns, with the error if the turn
        failed."""
        resumed = list[Row]()
        for turn in turns:
            upto = turn.resumed_upto(known[turn.id].wakes)
            if upto is not None:
                error = ended[turn.id].error if turn.id in ended else None
                resumed.append((turn.id, upto, message_of(error) if error else None, now))
        self.db.many("executed_resumes", RESUMED, resumed)

    def _finish(
        self,
        turns: Sequence[TurnCommit],
        ended: Mapping[str, Ending],
        known: Mapping[str, Member],
        now: int,
    ) -> None:
        """Ends the workflows of these turns."""
        if not turns:
            return
        self.db.many("delete_claimed", (), [(turn.id, turn.fence) for turn in turns])
        ends = [
            ExecutionEnd(turn.id, ended[turn.id], known[turn.id].parent_id, turn.fence, turn.worker)
            for turn in turns
        ]
        self.rows.end_workflows(ends, now)

    def _suspend(self, turns: Sequence[TurnCommit], known: Mapping[str, Member], now: int) -> None:
        """Stores the status of workflows that go on, where it changes, or where this is the first
        turn."""
        suspended = [
            (turn.id, turn.status, turn.fence, turn.worker, now)
            for turn in turns
            if turn.status != known[turn.id].status or not known[turn.id].started
        ]
        self.db.many("suspend_execution", STATUS, suspended)

    def _promote(self, turn: TurnCommit, now: int) -> dict[int, int]:
        """Stores the rows of tasks that are running already, claimed from the beginning. Returns
        their fences by child number."""
        fences: dict[int, int] = {}
        for new in turn.starts:
            if new.child_no in turn.promoted:
                fence = fences[new.child_no] = self.db.one("next_fence")[0]
                self.rows.start(new.replace(held=True), now)
                expires = now + int(turn.claim_ttl_s * US)
                self.db.run(
                    "UPDATE executions SET held = 0, timeout_at = ? + timeout_us WHERE id = ?",
                    (now, new.id),
                )
                claim = dict(worker=turn.worker, expires_at=expires, fence=fence, now=now)
                self.db.all("insert_claimed", {**fields(new), **claim})
        return fences

    def _leave(self, turns: Sequence[TurnCommit]) -> set[str]:
        """Leaves the ready rows of workflows that their turns park or give back. Returns the ids of
        those that were left.

        Parking succeeds only if there was no wake since the owner looked.
        """
        given_back = [turn for turn in turns if turn.end == "yield"]
        for turn in given_back:
            self.db.all("release", {"id": turn.id, "fence": turn.fence, "delay_us": 0})
        parks = [turn for turn in turns if turn.end == "park"]
        rows = [(turn.id, turn.fence, turn.wakes) for turn in parks]
        parked = compress(parks, self.db.each("delete_parked", (), rows))
        return {turn.id for turn in (*given_back, *parked)}

    def _wakes(self, turns: Sequence[TurnCommit]) -> dict[str, int]:
        """Returns the wakes of those workflows whose owners still have them, by id."""
        kept = [turn.id for turn in turns if turn.end in ("own", "park")]
        return dict(self.db.all("wakes_of", json.dumps(kept))) if kept else {}


def _owns(turn: TurnCommit, member: Member | None) -> bool:
    """Returns whether the claim of a turn is still valid, and its workflow has not ended."""
    return member is not None and member.fence == turn.fence and not has_ended(member.status)


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * US)
