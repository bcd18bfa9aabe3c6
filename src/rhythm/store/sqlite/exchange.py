"""Where signals and events meet those who wait for them. Always inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rhythm.store.events import EVENTS_PAGE, Event, Match, Wait, keys_of, matches
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
        """To everyone whose wait is open; whoever waits later looks for it."""
        n = self.db.one("next_event", event.type)[0]
        provenance = dump_provenance(sender.provenance) if sender else None
        new = Event(event.id, event.type, n, event.data, now + event.later_us, provenance)
        if not self.db.count("insert_event", fields(new)):
            return False
        keys = json.dumps(sorted(keys_of(json.loads(event.data))))
        waits = records(Wait, self.db.all("open_waits", {"type": event.type, "keys": keys}))
        self._end_waits(matches(waits, [new]), now)
        self._trigger(new, sender.name if sender else None, now)
        return True

    def _trigger(self, event: Event, by: str | None, now: int) -> None:
        """Starts the workflows that are registered for it."""
        triggers = records(Trigger, self.db.all("triggers_of", event.type))
        for execution in triggered(triggers, [event], {event.id: by}, now):
            self.rows.start(execution, now)

    def match_earlier_events(self, id: str, numbers: Sequence[int], now: int) -> None:
        """What waits for events from now on may find one that is there already."""
        waits = records(Wait, self.db.all("waits_of", id, json.dumps(list(numbers))))
        seen = set(self.db.all("taken_events", id)) if waits else set()
        for type in dict.fromkeys(wait.type for wait in waits):
            open_ = [wait for wait in waits if wait.type == type]
            after = (min(wait.since for wait in open_), 0)
            while open_ and (
                events := records(Event, self.db.all("events_after", type, *after, EVENTS_PAGE))
            ):
                found = matches(open_, events, seen)
                self._end_waits(found, now)
                open_ = [wait for wait in open_ if wait not in {match.wait for match in found}]
                after = (events[-1].published_at, events[-1].n)

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
        """Signals of a turn: those that were delivered. A mailbox that is full takes no more."""
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
        """Into the mailbox of whoever is still there; to one who has ended it comes too late. The
        same one twice is one.

        What a turn sends that whoever asked for it might not have sent reaches nobody.
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
        if not known.held:  # one that is held back looks when it begins
            self.rows.wake(signal.execution_id, now)
        return True

    def _may_signal(self, sender: Sender, id: str) -> bool:
        if not sender.root_id:  # a person: what they may do was asked before
            return True
        root = self.db.one("root_names", json.dumps([id]))[1] if sender.provenance.limited else None
        return sender.provenance.allows("execution:signal", root)

    def sender(self, id: str) -> Sender:
        (family,) = records(SendingFamily, self.db.all("sender", id))
        return sending_turn(family)
