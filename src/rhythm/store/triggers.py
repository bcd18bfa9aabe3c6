"""Events that start workflows: which executions an event creates.

Both stores ask this module, and only supply the rows. An event starts each workflow that is
registered for its type once: with its data as inputs, in the transaction that publishes it.
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
    """A workflow that events of a type start, in its current version."""

    type: str
    workflow: str
    version: str
    queue: str
    timeout_s: float | None


def triggered(
    triggers: Iterable[Trigger], events: Sequence[Event], by: Mapping[str, str | None], now: int
) -> list[NewExecution]:
    """Returns the executions that these events start. `by`: who published each event.

    An execution is created just after its event, so it cannot wait for the event that started it.
    Its key lets each event start a workflow once, also when the event has been deleted and is
    published again.
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
    """Returns the execution that this event starts.

    The contributors of the event are those of the execution.
    """
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
    """Returns the same id for the same event and workflow, so no randomness is needed here."""
    digest = hashlib.sha256(f"{event.id}\0{workflow}".encode()).digest()
    return encode_id(event.published_at // 1000, int.from_bytes(digest[:10], "big"))
