"""Delivers events to the executions that wait for them, inside a transaction that locked the types
first.

Under that lock no other transaction opens a wait or publishes an event of these types. Waits may
still end meanwhile (a timeout, a cancel). Each such end holds the ready row of its workflow, and so
does this module before it ends one, by waking the workflow first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rhythm.store.events import (
    EVENTS_PAGE,
    FIRST_EVENTS,
    MAX_DISORDER_US,
    Event,
    Match,
    Wait,
    keys_of,
    matches,
    search_after,
)
from rhythm.store.interfaces.messages import NewEvent
from rhythm.store.lifecycle import EVENT_CAME
from rhythm.store.postgres.connection import AgainError
from rhythm.store.postgres.rows import LAST_CHILD, PostgresRows
from rhythm.store.provenance import Sender, dump_provenance, load_provenance
from rhythm.store.rows import records, records_with
from rhythm.store.triggers import Trigger, triggered


class Exchange:
    """The events of one transaction, and the waits that they and older ones end."""

    def __init__(
        self, rows: PostgresRows, events: Sequence[NewEvent], waited: Iterable[str] = ()
    ) -> None:
        """Locks the types of the events that are published, and of those that are `waited` for from
        now on."""
        self.rows, self.db, self.events = rows, rows.db, events
        # Whose data goes to which execution, to be stored at the end.
        self.contributions: list[tuple[str, tuple[str, ...]]] = []
        counts = Counter(dict.fromkeys(waited, 0))
        counts.update(event.type for event in events)
        locks = [dict(type=type, count=count) for type, count in sorted(counts.items())]
        self.last: dict[str, int] = dict(self.db.batch("lock_types", locks))

    def waiting(self) -> list[str]:
        """Returns the executions that the published events will probably wake: it is read before
        the locks."""
        events = [
            Event(event.id, event.type, n, event.data, LAST_CHILD)
            for n, event in enumerate(self.events)
        ]
        return [match.wait.execution_id for match in matches(self._open_waits(), events)]

    def publish(
        self, events: Sequence[NewEvent], publishers: Mapping[str, Sender], now: int
    ) -> list[Event]:
        """Publishes the events that are new, and returns them.

        `publishers`: by the id of the event.
        """
        provenances = {
            id: dump_provenance(publisher.provenance) for id, publisher in publishers.items()
        }
        new = records(
            Event,
            self.db.batch(
                "insert_events",
                self._numbered(events, provenances, now),
                disorder=MAX_DISORDER_US,
            ),
        )
        if new:
            self._end(matches(self._open_waits(), new), now)
            self._trigger(new, publishers, now)
        return new

    def _trigger(self, new: Sequence[Event], publishers: Mapping[str, Sender], now: int) -> None:
        """Starts the workflows that are registered for these events."""
        triggers = records(
            Trigger, self.db.all("triggers_of", types=sorted({event.type for event in new}))
        )
        if triggers:
            self.rows.start(
                triggered(triggers, new, {id: each.name for id, each in publishers.items()}, now),
                now,
            )

    def match_earlier_events(self, opened: Sequence[tuple[str, int]], now: int) -> None:
        """Ends new waits that match an event which was published before."""
        rows = self.db.batch("waits_of", [dict(id=id, n=n) for id, n in opened])
        begun = records_with(Wait, rows, "published_at", "event_n", "taken_at")
        waits = [wait for wait, _ in begun]
        places: dict[str, tuple[int, int]] = {}
        for wait, last in begun:
            place = search_after(wait, None if last[0] is None else last)
            places[wait.type] = min(place, places.get(wait.type, place))
        after = {type: dict(type=type, at=at, n=n) for type, (at, n) in places.items()}
        found, limit = list[Match](), FIRST_EVENTS
        while after and (
            page := records(Event, self.db.batch("events_after", list(after.values()), limit=limit))
        ):
            limit = EVENTS_PAGE
            new = matches(waits, page, self._seen(waits, page))
            waits = [wait for wait in waits if wait not in {match.wait for match in new}]
            last = {
                event.type: event
                for event in sorted(page, key=lambda event: (event.published_at, event.n))
            }
            wanted = {wait.type for wait in waits} & last.keys()
            after = {
                type: dict(type=type, at=last[type].published_at, n=last[type].n) for type in wanted
            }
            found += new
        self._end(found, now)

    def _seen(self, waits: Sequence[Wait], events: Sequence[Event]) -> set[tuple[str, str]]:
        """Returns which of these executions have taken which of these events before."""
        ids = sorted({wait.execution_id for wait in waits})
        return set(self.db.all("taken_events", ids=ids, events=[event.id for event in events]))

    def _open_waits(self) -> list[Wait]:
        """Returns the open waits that may take one of the events."""
        wanted = {
            (event.type, key) for event in self.events for key in keys_of(json.loads(event.data))
        }
        return records(
            Wait,
            self.db.batch("open_waits", [dict(type=type, key=key) for type, key in sorted(wanted)]),
        )

    def _numbered(
        self, events: Sequence[NewEvent], provenances: Mapping[str, str | None], now: int
    ) -> list[dict[str, object]]:
        """Returns the rows of new events, each with its number within its type.

        `last` has the highest number of each type, in which these events are already counted.
        """
        left = Counter(event.type for event in events)
        rows = []
        for event in events:
            n = self.last[event.type] - left[event.type] + 1
            left[event.type] -= 1
            row = dict(
                id=event.id,
                type=event.type,
                n=n,
                data=event.data,
                published_at=now + event.later_us,
            )
            rows.append({**row, "provenance": provenances.get(event.id)})
        return rows

    def _end(self, found: Sequence[Match], now: int) -> None:
        self.rows.wake((match.wait.execution_id for match in found), now)
        rows = [
            dict(id=match.wait.execution_id, n=match.wait.n, event_id=match.event.id)
            for match in found
        ]
        if len(self.db.batch("end_waits", rows, status=EVENT_CAME, now=now)) < len(rows):
            # A wait has ended while we waited for the lock of its workflow: another wait may be the
            # one to take the event.
            raise AgainError
        given = (
            (match.wait.execution_id, load_provenance(match.event.provenance).contributors)
            for match in found
        )
        self.contributions += [(id, people) for id, people in given if people]
