"""The group commit on SQLite: the ends of tasks and the turns of workflows, one after the other.

Always inside a transaction.
"""

from __future__ import annotations

from typing import assert_never

from rhythm.ids import child_id
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
from rhythm.store.interfaces.turns import Committed, TaskEnd, TurnCommit
from rhythm.store.lifecycle import has_ended
from rhythm.store.light_turns import is_light
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.exchange import SqliteExchange
from rhythm.store.sqlite.rows import ReleasedExecution, SqliteRows
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


class SqliteFlush:
    """Writes the turns and ends of tasks that owners commit."""

    def __init__(
        self, db: SqliteSession, rows: SqliteRows, auditor: SqliteAuditor, exchange: SqliteExchange
    ) -> None:
        self.db, self.rows, self.auditor, self.exchange = db, rows, auditor, exchange

    def end_task(self, end: TaskEnd, now: int) -> bool:
        """Ends an attempt: the task ends, or is tried again. False: the claim is lost."""
        claimed = self.db.one("attempt_of", end.id, end.fence)
        if claimed is None:
            return False
        attempt, was_cancelled = claimed
        match end_of_attempt(end, attempt, bool(was_cancelled)):
            case Again() as again:
                self._try_again(end, again, attempt, now)
                return True
            case Ending() as ended:
                self.db.count("delete_claimed", end.id, end.fence)
                return self.rows.finish(
                    end.id, ended, now, end.fence, end.worker, attempt, end.took_us
                )

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
            self.rows.write_history(again.row, now)

    def commit_turn(self, turn: TurnCommit, now: int) -> Committed:
        """Commits a turn, and returns what became of it."""
        known = self.rows.find(turn.id)
        fence, wakes = self.db.one("ready_of", turn.id) or (None, 0)
        if fence != turn.fence or known is None or has_ended(known.status):
            return refused(turn.id)
        if not is_light(turn) and (refusal := self._refusal(turn, known.root_id, now)):
            return refusal
        if not self._advance(turn, now):
            return refused(turn.id)
        self._write_children(turn, known.root_id, now)
        self._settle(turn)
        self._send(turn, now)
        if turn.attributes is not None:
            (before,) = self.db.one("attributes", turn.id)
            self.db.all("set_attributes", with_attributes(before, turn.attributes), turn.id)
        ended = end_of_turn(turn, known.cancelled)
        if (upto := turn.resumed_upto(wakes)) is not None:
            self._executed(turn.id, upto, ended.error if ended else None, now)
        self.rows.write_history(turn_row(turn, known.status, ended), now)
        if ended:
            self.db.all("delete_claimed", turn.id, turn.fence)
            self.rows.end_workflow(turn.id, ended, now, turn.fence, turn.worker)
        elif turn.status != known.status or not known.started:
            suspended = {
                "id": turn.id,
                "status": turn.status,
                "now": now,
                "fence": turn.fence,
                "worker": turn.worker,
            }
            self.db.all("suspend_execution", suspended)
        promoted = {} if ended else self._promote(turn, now)
        return answer(turn, *self._leave(turn), promoted)

    def _refusal(self, turn: TurnCommit, root: str, now: int) -> Committed | None:
        """Returns the refusal of a turn; None if it may be committed.

        A workflow below a terminated one cannot go on, and no turn may start more executions than
        allowed.
        """
        started, terminated = self.db.one("family_of", turn.id)
        if terminated:
            return refused(turn.id)
        full = self._full(turn, root, started, now)
        return refused(turn.id, full) if full else None

    def _advance(self, turn: TurnCommit, now: int) -> bool:
        """Moves the context on. False: this turn was committed before, or a newer owner has the
        workflow."""
        moved = dict(id=turn.id, seq=turn.seq, fence=turn.fence, statement=turn.statement, now=now)
        moved |= dict(owned=turn.owned, awaiting=turn.awaiting, snapshot=inline(turn.snapshot))
        if self.db.count("advance_context", moved) == 0:
            return False
        self._keep_blob(turn)
        return True

    def _settle(self, turn: TurnCommit) -> None:
        """Deletes timers and waits that are no longer needed."""
        for n in turn.settled:
            self.db.all("delete_settled_timer", turn.id, n)
            self.db.all("delete_settled_wait", turn.id, n)
            self.db.all("settle_wait", turn.id, n)

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

    def _keep_blob(self, turn: TurnCommit) -> None:
        """Replaces the blob of the snapshot before. An unchanged snapshot keeps its blob."""
        if turn.snapshot is not None:
            self.db.all("delete_blob", turn.id)
        self.rows.insert_blob(turn.id, turn.snapshot)

    def _write_children(self, turn: TurnCommit, root: str, now: int) -> None:
        for done in turn.done:
            result, error = result_and_error(done.status, done.value)
            place = dict(
                id=child_id(turn.id, done.n), parent_id=turn.id, child_no=done.n, root_id=root
            )
            ended = dict(result=result, error=error, fence=turn.fence, worker=turn.worker, now=now)
            self.db.all("insert_done", {**fields(done), **place, **ended})
        for new in turn.starts:
            if new.child_no not in turn.promoted:
                self.rows.start(new, now)
            if new.failed is not None:
                self.rows.write_history(
                    attempt_row(new.id, new.attempt, turn.fence, turn.worker, new.failed), now
                )
        for timer in turn.timers:
            delay_us = None if timer.delay_s is None else int(timer.delay_s * US)
            fire_at = (
                None
                if timer.held
                else timer.until
                if timer.until is not None
                else now + (delay_us or 0)
            )
            self.db.all("insert_timer", turn.id, timer.n, delay_us, timer.until, fire_at)
        opened = [wait.n for wait in turn.waits if not wait.held]
        for wait in turn.waits:
            timeout_us = None if wait.timeout_s is None else int(wait.timeout_s * US)
            place = {
                "id": turn.id,
                "key": key_of(wait.wanted),
                "timeout_us": timeout_us,
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
        timeout_us = None if new.timeout_s is None else int(new.timeout_s * US)
        place = {"id": id, "execution_id": execution_id, "timeout_us": timeout_us, "now": now}
        self.db.all("insert_approval", fields(new) | place)
        if not new.held:
            self.rows.notify(id, "requested", now)

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
        for child in records(ReleasedExecution, self.db.all("release_children", numbers)):
            self.rows.make_ready(child, now)

    def _release_approvals(self, execution_id: str, first: int, last: int, now: int) -> None:
        for (id,) in self.db.all(
            "release_approvals", {"id": execution_id, "first": first, "last": last, "now": now}
        ):
            self.rows.notify(id, "requested", now)

    def _executed(self, id: str, upto: int, error: str | None, now: int) -> None:
        """Marks the resumes of an execution as done by this turn, with the error if the turn
        failed."""
        message = message_of(error) if error else None
        self.db.all("executed_resumes", {"id": id, "upto": upto, "error": message, "now": now})

    def _leave(self, turn: TurnCommit) -> tuple[bool, int]:
        """Returns whether the owner has left the ready row, and the row's wakes if it has not.

        Parking succeeds only if there was no wake since the owner looked.
        """
        match turn.end:
            case "finish":
                return True, 0
            case "yield":
                self.db.all("release", {"id": turn.id, "fence": turn.fence, "delay_us": 0})
                return True, 0
            case "park" if self.db.count("delete_parked", turn.id, turn.fence, turn.wakes):
                return True, 0
            case "park" | "own":
                return False, self.db.one("ready_of", turn.id)[1]
            case _:
                assert_never(turn.end)
