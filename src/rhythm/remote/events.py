"""Events of a server: published under an id of their own, so that the same request twice is one
event."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from rhythm.app.checks import own_key, valid_name
from rhythm.engine.payload import dump
from rhythm.ids import encode_id

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.remote.client import Client


class RemoteEvents:
    """What is published, and which workflows it starts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def publish(
        self, type: str, data: Any = None, *, event_id: str | None = None, by: By = None
    ) -> bool:
        """Publishes an event. Returns False if this `event_id` was published before."""
        drawn = encode_id(time.time_ns() // 1_000_000, secrets.randbits(80))
        id = drawn if event_id is None else own_key(event_id, "an event_id")
        dump(data, "data")
        body = {"type": valid_name(type, "an event's type"), "data": data, "id": id}
        check = "the same --event-id publishes it once"
        done = self._client.post("events", body=body, again=True, check=check)
        new: int = self._client.part(done, "published", int)
        return bool(new) or event_id is None  # it was published by a request whose answer was lost

    def starting(self, workflow: str) -> list[str]:
        """Returns the types of the events that start a workflow."""
        found = self._client.all("triggers", workflow=workflow)
        return [self._client.part(item, "event", str) for item in found]

    def started_by(self, type: str) -> list[str]:
        """Returns the names of the workflows that an event of this type starts."""
        found = self._client.all("triggers", event=type)
        return [self._client.part(item, "workflow", str) for item in found]
