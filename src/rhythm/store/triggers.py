"""Events that start workflows: which executions an event makes. Both stores ask this; they only say
where the rows are.

An event starts each workflow that is registered for its type once: with its data as inputs, in the
transaction that publishes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from rhythm.ids import encode_id
from rhythm.record import Record
from rhythm.store.events import Event
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.provenance import dump_authority, load_provenance


class Trigger(Record):
    """A workflow that events of a type start, in the version that is current."""

    type: str
    workflow: str
    version: str
    queue: str
    timeout_s: float | None


def triggered(
    triggers: Iterable[Trigger], events: Sequence[Event], by: Mapping[str, str | None], now: int
) -> list[NewExecution]:
    """What these events start. `by`: who has published each.

    It lives from after its event: what it waits for is another one. The key lets each event start a
    workflow once, also when the event has been forgotten and is published again.
    """
    of_type: dict[str, list[Trigger]] = {}
    for trigger in triggers:
        of_type.setdefault(trigger.type, []).append(trigger)
    return [
        _execution(event, trigger, by.get(event.id), now)
        for event in events
        for trigger in of_type.get(event.type, ())
    ]


def _execution(event: Event, trigger: Trigger, by: str | None, now: int) -> NewExecution:
    """Whoever had a hand in the event has one in what it starts."""
    provenance = load_provenance(event.provenance)
    return NewExecution(
        _id(event, trigger.workflow),
        WORKFLOW,
        trigger.workflow,
        trigger.queue,
        event.data,
        trigger.version,
        timeout_s=trigger.timeout_s,
        key=f"event:{event.id}",
        later_us=event.published_at - now + 1,
        started_by=by,
        attributes=json.dumps({"event_id": event.id, "event_type": event.type}),
        authority=dump_authority(provenance.authority),
        contributors=provenance.contributors,
    )


def _id(event: Event, workflow: str) -> str:
    """The same for the same event, so no randomness is needed here."""
    digest = hashlib.sha256(f"{event.id}\0{workflow}".encode()).digest()
    return encode_id(event.published_at // 1000, int.from_bytes(digest[:10], "big"))
