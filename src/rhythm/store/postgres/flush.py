"""The group commit on PostgreSQL: turns of workflows and ends of tasks, with a fixed number of
statements for any number of items.

An item whose claim is lost is left out, and does not affect the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.ids import child_id
from rhythm.store.access import Act, Actor
from rhythm.store.acts import sending_acts
from rhythm.store.approvals import message_of
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
from rhythm.store.interfaces.messages import NewEvent, NewSignal
from rhythm.store.interfaces.turns import Committed, Done, TaskEnd, TurnCommit
from rhythm.store.lifecycle import TurnEnd, has_ended
from rhythm.store.postgres.connection import NOTHING, Later
from rhythm.store.postgres.exchange import Exchange
from rhythm.store.postgres.light import first_turns, step_columns
from rhythm.store.postgres.rows import (
    US,
    End,
    LockedRow,
    PostgresFound,
    PostgresRows,
    Range,
    end_of,
)
from rhythm.store.provenance import NOBODY, Sender
from rhythm.store.rows import columns, fields, records
from rhythm.store.verdicts import (
    Again,
    Ending,
    answer,
    attempt_row,
    end_of_attempt,
    end_of_turn,
    refused,
    turn_row,
)


class FamilyMember(PostgresFound):
    """An execution, read after its ready row was locked, and the state of its family."""

    started: int | None  # starts in its family, as far as they were counted
    terminated: bool  # it was terminated, or is below an execution that was


class Flush:
    """One group commit, inside its transaction: a round trip that locks and reads, and one that
    writes and commits.

    Only what few turns do asks more often: events, signals, limits of families, children that are
    released or asked to end.
    """

    def __init__(
        self, rows: PostgresRows, turns: Sequence[TurnCommit], ends: Sequence[TaskEnd]
    ) -> None:
        self.rows = rows
        self.db = rows.db
        self.turns = turns
        self.ends = ends
        self.limits = rows.limits
        self.acts: list[tuple[Actor, list[Act]]] = []  # for the audit
        self.contributions: list[tuple[str, tuple[str, ...]]] = []
        self.exchange = Exchange(
            rows, [event for turn in turns for event in turn.events], self._waited()
        )
        locked = self._lock()
        if firsts := first_turns(turns):
            self.db.do("light_turns", **step_columns(firsts))
        contexts = self._lock_contexts()
        known = records(FamilyMember, self.db.all("members_of", ids=self._ids()))
        self.locked = {row.id: row for row in records(LockedRow, locked.rows)}
        # Turns whose `seq` and `fence` are right.
        self.current = {id for (id,) in contexts.rows}
        self.known = {member.id: member for member in known}
        self.now = known[0].now if known else 0
        self.accepted: set[str] = set()  # tasks whose end was accepted
        self.won: list[TurnCommit] = []  # turns that were accepted
        # For their answers: those that have parked, the wakes of the others, fences of new claims.
        self.left, self.wakes, self.fences = NOTHING, NOTHING, NOTHING
        # Turns that would start more executions than allowed, and why.
        self.full: dict[str, str] = {}
        self.ended: dict[str, Ending] = {}  # how workflows end with their turns

    def _waited(self) -> set[str]:
        """Returns the types of events for which waits begin: new waits, and waits that were held
        back."""
        released = [
            fields(Range(turn.id, *numbers)) for turn in self.turns for numbers in turn.releases
        ]
        opening = {type for (type,) in self.db.batch("held_types", released)}
        return opening | {wait.type for turn in self.turns for wait in turn.waits}

    def _ids(self) -> list[str]:
        return [*(turn.id for turn in self.turns), *(end.id for end in self.ends)]

    def _lock(self) -> Later:
        """Locks the ready rows of everything that is committed or may be woken, in one sorted
        pass."""
        finishing = [turn.id for turn in self.turns if turn.end == "finish"]
        ranges = [
            *(Range(turn.id, *numbers) for turn in self.turns for numbers in turn.cancels),
            *map(Range, finishing),
        ]
        receivers = [
            *(signal.execution_id for turn in self.turns for signal in turn.signals),
            *self.exchange.waiting(),
        ]
        return self.db.do(
            "lock_with_related",
            ids=[*self._ids(), *receivers],
            ending=[*finishing, *(end.id for end in self.ends)],
            id=[each.id for each in ranges],
            first=[each.first for each in ranges],
            last=[each.last for each in ranges],
        )

    def _lock_contexts(self) -> Later:
        if not self.turns:
            return NOTHING
        return self.db.do("lock_contexts", **columns(self.turns, "id", "seq", "fence"))

    def run(self) -> Flush:
        """Writes everything. `accepted` and, after the commit, `answers` say what became of it."""
        self._end_tasks()
        won = self.won = self._advance()
        self.db.write(
            "delete_settled", [dict(id=turn.id, n=n) for turn in won for n in turn.settled]
        )
        self._write_children(won)
        senders = self.rows.senders(turn.id for turn in won if turn.events or turn.signals)
        published = self._publish(won, senders)
        self._promote(won)
        self._consume(won)
        sent = self._deliver([signal for turn in won for signal in turn.signals], senders)
        self.acts = [
            (actor, sending_acts(published.get(id, ()), sent.get(id, ())))
            for id, sender in senders.items()
            if (actor := sender.actor(id))
        ]
        self._set_attributes(
            {turn.id: turn.attributes for turn in won if turn.attributes is not None}
        )
        verdicts = {turn.id: end_of_turn(turn, self.known[turn.id].cancelled) for turn in won}
        self.ended = {id: ended for id, ended in verdicts.items() if ended}
        self._write_history(won)
        self._executed(won)
        self._finish([turn for turn in won if turn.id in self.ended])
        self._suspend([turn for turn in won if turn.id not in self.ended])
        self._leave(won)
        self.rows.contribute([*self.exchange.contributions, *self.contributions], self.now)
        return self

    def _owns(self, item: TurnCommit | TaskEnd) -> bool:
        """Returns whether the claim of a turn or an end is still valid, and neither it nor anything
        above it was terminated."""
        row = self.locked.get(item.id)
        return (
            row is not None
            and row.fence == item.fence
            and item.id in self.known
            and not self.known[item.id].terminated
        )

    # ends of tasks

    def _end_tasks(self) -> None:
        """Ends tasks or delays them for another attempt."""
        owned = [end for end in self.ends if self._owns(end)]
        verdicts = [
            (end, end_of_attempt(end, self.locked[end.id].attempt, self.known[end.id].cancelled))
            for end in owned
        ]
        later = [(end, verdict) for end, verdict in verdicts if isinstance(verdict, Again)]
        final = [(end, verdict) for end, verdict in verdicts if isinstance(verdict, Ending)]
        self._try_again(later)
        if final:
            self.db.do("delete_claimed", **columns([end for end, _ in final], "id", "fence"))
        ends = [
            end_of(end.id, ended, end.fence, end.worker, self.locked[end.id].attempt, end.took_us)
            for end, ended in final
            if not has_ended(self.known[end.id].status)
        ]
        self._end_known(ends)
        self.accepted = {end.id for end, _ in later} | {end.id for end in ends}

    def _end_known(self, ends: Sequence[End]) -> None:
        self.rows.end_known([(end, self.known[end.id].parent_id) for end in ends], self.now)

    def _try_again(self, later: Sequence[tuple[TaskEnd, Again]]) -> None:
        delayed = [
            dict(
                id=end.id, fence=end.fence, delay_us=int(again.delay_s * US), attempt=again.attempt
            )
            for end, again in later
        ]
        self.db.write("delay_tasks", delayed, now=self.now)
        noted = [
            dict(id=end.id, attempt=again.attempt, worker=end.worker, took_us=end.took_us)
            for end, again in later
        ]
        self.db.write("note_attempts", noted, now=self.now)
        self.rows.write_history((again.row for _, again in later if again.row), self.now)

    # turns

    def _advance(self) -> list[TurnCommit]:
        """Moves the contexts on. Returns the turns that were accepted."""
        owned = [
            turn
            for turn in self.turns
            if self._owns(turn)
            and turn.id in self.current
            and not has_ended(self.known[turn.id].status)
        ]
        self.full = self._count([turn for turn in owned if turn.starts])
        won = [turn for turn in owned if turn.id not in self.full]
        if won:
            contexts = columns(won, "id", "fence", "statement", "owned", "awaiting")
            snapshots = [inline(turn.snapshot) for turn in won]
            self.db.do("advance_contexts", now=self.now, snapshot=snapshots, **contexts)
        self.rows.insert_blobs({turn.id: turn.snapshot for turn in won})
        return won

    def _count(self, turns: Sequence[TurnCommit]) -> dict[str, str]:
        """Returns which turns would start more executions than allowed, and why.

        Counts the starts of the others.
        """
        limits = {turn.id: room(turn, self.limits) for turn in turns}
        full = dict[str, str]()
        if many := [turn for turn in turns if may_have_many(turn, limits[turn.id])]:
            most = max(limits[turn.id].children for turn in many)
            alive = dict(self.db.all("live_children", ids=[turn.id for turn in many], limit=most))
            full |= {
                turn.id: many_children(limits[turn.id])
                for turn in many
                if alive[turn.id] + len(turn.starts) > limits[turn.id].children
            }
        families = {
            turn.id: (self.known[turn.id].root_id, limits[turn.id].family) for turn in turns
        }
        over = {
            families[turn.id]
            for turn in turns
            if (self.known[turn.id].started or 0) > limits[turn.id].family
        }
        # The higher limit first: a count that is within it does not stand in the way of another.
        inward = sorted(over, key=lambda family: (family[0], -family[1]))
        crowded = {family for family in inward if self._is_full(*family)}
        full |= {
            turn.id: full_family(limits[turn.id]) for turn in turns if families[turn.id] in crowded
        }
        added = Counter[str]()
        for turn in turns:
            added[self.known[turn.id].root_id] += (
                counted(turn, self.limits) if turn.id not in full else 0
            )
        self.db.write(
            "count_families", [dict(root=root, started=n) for root, n in sorted(added.items()) if n]
        )
        return full

    def _is_full(self, root: str, limit: int) -> bool:
        alive = self.db.all(
            "recount_family", root=root, limit=limit, now=self.now, rest_us=COUNT_EVERY_US
        )
        return not alive or bool(alive[0][0] > limit)

    def _write_children(self, won: Sequence[TurnCommit]) -> None:
        if owners := [turn for turn in won for _ in turn.done]:
            self.db.do(
                "insert_done",
                now=self.now,
                **columns([done for turn in won for done in turn.done], *Done._fields),
                **columns(owners, "fence", "worker"),
                parent_id=[turn.id for turn in owners],
                root_id=[self.known[turn.id].root_id for turn in owners],
            )
        self.rows.start_children(
            [new for turn in won for new in turn.starts if new.child_no not in turn.promoted],
            self.now,
        )
        self._set_timers(won)
        self._set_waits(won)
        self._set_approvals(won)
        self.rows.flag(
            [Range(turn.id, *numbers) for turn in won for numbers in turn.cancels], self.now
        )
        opened = [(turn.id, wait.n) for turn in won for wait in turn.waits if not wait.held]
        released = [Range(turn.id, *numbers) for turn in won for numbers in turn.releases]
        begun = [Range(turn.id, *numbers) for turn in won for numbers in turn.begins]
        self.rows.begin([*begun, *released], self.now)
        opened += self.rows.release(released, self.now)
        self.exchange.match_earlier_events(opened, self.now)

    def _set_waits(self, won: Sequence[TurnCommit]) -> None:
        waits = [
            fields(wait) | dict(id=turn.id, key=key_of(wait.wanted), timeout_us=_us(wait.timeout_s))
            for turn in won
            for wait in turn.waits
        ]
        self.db.write("insert_waits", waits, now=self.now)

    def _set_approvals(self, won: Sequence[TurnCommit]) -> None:
        asked = [(turn.id, new) for turn in won for new in turn.approvals]
        rows = [
            fields(new) | dict(execution_id=id, timeout_us=_us(new.timeout_s)) for id, new in asked
        ]
        self.db.write("insert_approvals", rows, now=self.now)
        self.rows.notify(
            [child_id(id, new.n) for id, new in asked if new.notify != "null" and not new.held],
            "requested",
            self.now,
        )

    def _set_timers(self, won: Sequence[TurnCommit]) -> None:
        timers = [
            dict(
                id=turn.id,
                n=timer.n,
                delay_us=None if timer.delay_s is None else int(timer.delay_s * US),
                until_at=timer.until,
                held=timer.held,
            )
            for turn in won
            for timer in turn.timers
        ]
        self.db.write("insert_timers", timers, now=self.now)

    def _promote(self, won: Sequence[TurnCommit]) -> None:
        """Stores the rows of tasks that are running already, claimed from the beginning."""
        promoted = [
            (turn, new) for turn in won for new in turn.starts if new.child_no in turn.promoted
        ]
        numbers = {new.child_no for _, new in promoted}
        self.rows.start_children(
            [new.replace(held=False) for _, new in promoted], self.now, not_queued=numbers
        )
        claims = [
            dict(
                id=new.id,
                queue=new.queue,
                priority=new.priority,
                worker=turn.worker,
                ttl_us=int(turn.claim_ttl_s * US),
                attempt=new.attempt,
            )
            for turn, new in promoted
        ]
        self.fences = self.db.write("insert_claimed", claims, now=self.now)

    def _consume(self, won: Sequence[TurnCommit]) -> None:
        taken = [
            dict(signal=signal, id=turn.id, seq=turn.seq + 1)
            for turn in won
            for signal in turn.consumed
        ]
        self.db.write("consume_signals", taken)

    def _publish(
        self, won: Sequence[TurnCommit], senders: Mapping[str, Sender]
    ) -> dict[str, list[NewEvent]]:
        """Publishes the events of these turns, with everyone who took part in them. Returns the
        new events by execution."""
        events = {event.id: (turn.id, event) for turn in won for event in turn.events}
        publishers = {id: senders[by] for id, (by, _) in events.items()}
        published: dict[str, list[NewEvent]] = {}
        for new in self.exchange.publish(
            [event for _, event in events.values()], publishers, self.now
        ):
            by, event = events[new.id]
            published.setdefault(by, []).append(event)
        return published

    def _deliver(
        self, signals: Sequence[NewSignal], senders: Mapping[str, Sender]
    ) -> dict[str, list[NewSignal]]:
        """Puts signals into the mailboxes of executions that have not ended and have room. Returns
        the new signals by sending execution.

        The wake comes first: it locks the mailbox.
        """
        delivered: dict[str, list[NewSignal]] = {}
        signals = self._allowed(signals, senders)
        if not signals:
            return delivered
        self.rows.wake_live([signal.execution_id for signal in signals])
        rows = [mail_row(signal) for signal in signals]
        sent = {
            id
            for (id,) in self.db.batch(
                "insert_signals", rows, most=self.limits.signals, now=self.now
            )
        }
        for signal in signals:
            if signal.id in sent and signal.sender is not None:
                self.contributions.append(
                    (signal.execution_id, senders[signal.sender].provenance.contributors)
                )
                delivered.setdefault(signal.sender, []).append(signal)
        return delivered

    def _allowed(
        self, signals: Sequence[NewSignal], senders: Mapping[str, Sender]
    ) -> Sequence[NewSignal]:
        """Returns the signals that everybody who asked for their senders may send.

        The others are not delivered.
        """
        limited = [
            signal
            for signal in signals
            if signal.sender is not None and senders[signal.sender].provenance.limited
        ]
        roots = (
            dict(self.db.all("root_names", ids=[signal.execution_id for signal in limited]))
            if limited
            else {}
        )

        def may(signal: NewSignal) -> bool:
            provenance = senders[signal.sender].provenance if signal.sender is not None else NOBODY
            return provenance.allows("execution:signal", roots.get(signal.execution_id))

        return [signal for signal in signals if may(signal)]

    def _set_attributes(self, new: Mapping[str, str]) -> None:
        if new:
            before = dict(self.db.all("attributes", ids=list(new)))
            self.db.write(
                "set_attributes",
                [
                    dict(id=id, attributes=with_attributes(before[id], new[id]))
                    for id in sorted(new)
                ],
            )

    def _write_history(self, won: Sequence[TurnCommit]) -> None:
        turns = [
            turn_row(turn, self.known[turn.id].status, self.ended.get(turn.id)) for turn in won
        ]
        failed = [
            attempt_row(new.id, new.attempt, turn.fence, turn.worker, new.failed)
            for turn in won
            for new in turn.starts
            if new.failed is not None
        ]
        self.rows.write_history([*turns, *failed], self.now)

    def _executed(self, won: Sequence[TurnCommit]) -> None:
        """Marks the resumes of executions as done by these turns, with the error if the turn
        failed."""
        upto = {turn.id: turn.resumed_upto(self.locked[turn.id].wakes) for turn in won}
        errors = {id: ended.error for id, ended in self.ended.items() if ended.error is not None}
        rows = [
            dict(id=id, upto=last, error=message_of(errors[id]) if id in errors else None)
            for id, last in upto.items()
            if last is not None
        ]
        self.db.write("executed_resumes", rows, now=self.now)

    def _finish(self, turns: Sequence[TurnCommit]) -> None:
        ends = [end_of(turn.id, self.ended[turn.id], turn.fence, turn.worker) for turn in turns]
        self.rows.end_waits(ends, self.now)
        self._end_known(ends)

    def _suspend(self, turns: Sequence[TurnCommit]) -> None:
        if turns:
            stored = columns(turns, "id", "status", "fence", "worker")
            self.db.do("suspend_executions", now=self.now, **stored)

    # how the owners go on

    def _leave(self, won: Sequence[TurnCommit]) -> None:
        """Releases or deletes the ready rows.

        Parking succeeds only if there was no wake since the owner looked. All wakes of this commit
        are counted by now.
        """
        by_end: dict[TurnEnd, list[TurnCommit]] = {"own": [], "park": [], "yield": [], "finish": []}
        for turn in won:
            by_end[turn.end].append(turn)
        if by_end["finish"]:
            self.db.do("delete_claimed", **columns(by_end["finish"], "id", "fence"))
        self.rows.give_back([dict(id=turn.id, fence=turn.fence) for turn in by_end["yield"]])
        if by_end["park"]:
            self.left = self.db.do(
                "delete_parked", **columns(by_end["park"], "id", "fence", "wakes")
            )
        if stay := [turn.id for turn in (*by_end["own"], *by_end["park"])]:
            self.wakes = self.db.do("wakes_of", ids=stay)

    def answers(self) -> list[Committed]:
        """Returns what became of each turn, once all of it is committed."""
        left = {id for (id,) in self.left.rows}
        wakes = {id: wakes for id, _, wakes in self.wakes.rows}
        fences = dict(self.fences.rows)
        answers = {}
        for turn in self.won:
            promoted = {n: fences[child_id(turn.id, n)] for n in turn.promoted}
            woken = wakes.get(turn.id, 0)
            answers[turn.id] = answer(turn, turn.id in left, woken, promoted)
        return [
            answers.get(turn.id) or refused(turn.id, self.full.get(turn.id, ""))
            for turn in self.turns
        ]


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * US)


def mail_row(signal: NewSignal) -> dict[str, Any]:
    """Returns the columns of a signal in its mailbox."""
    return dict(
        id=signal.id, execution_id=signal.execution_id, name=signal.name, payload=signal.payload
    )
