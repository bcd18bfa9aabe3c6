"""Events over HTTP: plain ones, and CloudEvents."""

from __future__ import annotations

from pydantic import Field
from starlette.responses import Response

from rhythm.http.answers import answer
from rhythm.http.asking import Ask, Key
from rhythm.http.schemas import Body, Json, object_of

Published = object_of("Published", "`published`: false if this event was published before.", published=bool)


class NewEvent(Body):
    type: str
    data: Json = None
    id: str | None = Field(
        default=None, description="of your own: the same one twice is one event; else the `Idempotency-Key`, else one is made"
    )


def publish(ask: Ask, body: NewEvent, key: Key = None) -> Response:
    """Publishes an event to everyone who waits for it, or started before it and will wait, and starts what it triggers."""
    return answer({"published": ask.app.publish(body.type, body.data, event_id=body.id or key, by=ask.actor)})
