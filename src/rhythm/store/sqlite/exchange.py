"""Delivers signals and events to the executions that wait for them. Always inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rhythm.store.events import (
    EVENTS_PAGE,
    FIRST_EVENTS,
    MAX_DISORDER_US,
    Event,
    Match,
    Wait,
    key_of,
    keys_of,
    matches,
    search_after,
)
from rhythm.store.interfaces.messages import NewEvent, NewSignal
from rhythm.store.lifecycle import EVENT_CAME, has_ended
from rhythm.store.provenance import (
    Sender,
    SendingFamily,
    dump_provenance,
    load_provenance,
    sending_turn,
)
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.session import SqliteSession
from rhythm.store.triggers import Trigger, triggered


class SqliteExchange:
    """Delivers signals and events, and ends the waits for them."""

    def __init__(self, db: SqliteSession, rows: SqliteRows) -> None:
        self.db, self.rows = db, rows

    def publish(self, event: NewEvent, sender: Sender | None, now: int) -> bool:
        """Publishes an event to every open wait that it matches. False: an event with this id
        exists.

        A wait that begins later looks for the event itself (`match_earlier_events`).
        """
        n = self.db.one("next_event", event.type)[0]
        provenance = dump_provenance(sender.provenance) if sender else None
        last, published_at = self.db.one("last_published", event.type)[0], now + event.later_us
        if last is not None and published_at < last - MAX_DISORDER_US:
            published_at = last  # the clock was set back; those who wait look only after `last`
        new = Event(event.id, event.type, n, event.data, published_at, provenance)
        if not self.db.count("insert_event", fields(new)):
            return False
        keys = json.dumps(sorted(keys_of(json.loads(event.data))))
        waits = records(Wait, self.db.all("open_waits", {"type": event.type, "keys": keys}))
        self._end_waits(matches(waits, [new]), now)
        self._trigger(new, sender.name if sender else None, now)
        return True

    def _trigger(self, event: Event, by: str | None, now: int) -> None:
        """Starts the workflows that are registered for this event."""
        triggers = records(Trigger, self.db.all("triggers_of", event.type))
        for execution in triggered(triggers, [event], {event.id: by}, now):
            self.rows.start(execution, now)

    def match_earlier_events(self, id: str, numbers: Sequence[int], now: int) -> None:
        """Ends new waits that match an event which was published before."""
        waits = records(Wait, self.db.all("waits_of", id, json.dumps(list(numbers))))
        for type in dict.fromkeys(wait.type for wait in waits):
            open_ = [wait for wait in waits if wait.type == type]
            first = {wait.wanted: wait for wait in open_}.values()
            after, limit = min(map(self._search_after, first)), FIRST_EVENTS
            while open_ and (
                events := records(Event, self.db.all("events_after", type, *after, limit))
            ):
                ids = json.dumps([event.id for event in events])
                seen = set(self.db.all("taken_events", {"id": id, "events": ids}))
                found = matches(open_, events, seen)
                self._end_waits(found, now)
                open_ = [wait for wait in open_ if wait not in {match.wait for match in found}]
                after, limit = (events[-1].published_at, events[-1].n), EVENTS_PAGE

    def _search_after(self, wait: Wait) -> tuple[int, int]:
        asked = {"id": wait.execution_id, "type": wait.type, "key": key_of(wait.wanted)}
        return search_after(wait, self.db.one("last_taken", asked | {"wanted": wait.wanted}))

    def _end_waits(self, found: Sequence[Match], now: int) -> None:
        for match in found:
            wait = match.wait
            self.db.count(
                "end_wait",
                {
                    "id": wait.execution_id,
                    "n": wait.n,
                    "status": EVENT_CAME,
                    "event_id": match.event.id,
                    "now": now,
                },
            )
            self.rows.resumed(
                wait.execution_id,
                "event",
                match.event.id,
                json.dumps({"type": match.event.type}),
                now,
            )
            self.rows.contribute(
                wait.execution_id, load_provenance(match.event.provenance).contributors, now
            )
            self.rows.wake(wait.execution_id, now)

    def send(
        self, signals: Sequence[NewSignal], sender: Sender | None, now: int
    ) -> list[NewSignal]:
        """Delivers the signals of a turn, and returns those that were delivered.

        A full mailbox takes no more.
        """
        room, sent = dict[str, int](), list[NewSignal]()
        for signal in signals:
            to = signal.execution_id
            if to not in room:
                room[to] = self.rows.limits.signals - self.db.one("unconsumed", to)[0]
            if room[to] > 0 and self.deliver(signal, sender, now):
                room[to] -= 1
                sent.append(signal)
        return sent

    def deliver(self, signal: NewSignal, sender: Sender | None, now: int) -> bool:
        """Puts a signal into a mailbox. False: it was not delivered.

        A signal is not delivered if the execution has ended or does not exist, if the signal was
        delivered before, or if it comes from a turn and somebody who asked for that turn's
        execution may not send signals there.
        """
        known = self.rows.find(signal.execution_id)
        if (
            known is None
            or has_ended(known.status)
            or (sender and not self._may_signal(sender, signal.execution_id))
        ):
            return False
        mail = dict(
            id=signal.id,
            execution_id=signal.execution_id,
            name=signal.name,
            payload=signal.payload,
            now=now,
        )
        if not self.db.count("insert_signal", mail):
            return False
        self.rows.contribute(
            signal.execution_id, sender.provenance.contributors if sender else (), now
        )
        # An execution that is held back checks its mailbox when it begins.
        if not known.held:
            self.rows.wake(signal.execution_id, now)
        return True

    def _may_signal(self, sender: Sender, id: str) -> bool:
        # A person: what they may do was checked before.
        if not sender.root_id:
            return True
        root = self.db.one("root_names", json.dumps([id]))[1] if sender.provenance.limited else None
        return sender.provenance.allows("execution:signal", root)

    def sender(self, id: str) -> Sender:
        """Returns the turn of an execution as a sender."""
        (family,) = records(SendingFamily, self.db.all("sender", id))
        return sending_turn(family)
