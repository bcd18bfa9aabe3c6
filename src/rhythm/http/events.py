"""Events over HTTP: plain ones, and CloudEvents 1.0 (structured, binary, or many in a batch)."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rhythm.engine.cloudevents import BATCH, STRUCTURED, cloud_events, is_cloud_event
from rhythm.errors import InvalidEvent
from rhythm.http.answers import answer
from rhythm.http.bodies import JSON_KINDS, LIMITS, must_be_json
from rhythm.http.guard import Asker
from rhythm.http.problems import Refused
from rhythm.http.requests import Ask, Key
from rhythm.http.schemas import Body, Json, object_of

MAX_BATCH_EVENTS = 1000  # events in one batch
Published = object_of(
    "Published",
    "How many events were published now, and how many had been published before.",
    published=int,
    repeated=int,
)


class NewEvent(Body):
    """An event to publish."""

    type: str
    data: Json = None
    id: str | None = Field(
        default=None,
        description=(
            "An id of your choice: two events with the same id are one event. Without it, the "
            "Idempotency-Key is the id; without both, Rhythm makes one."
        ),
    )


PLAIN = {"schema": {"$ref": "#/components/schemas/NewEvent"}}
CLOUD = {"schema": {"type": "object", "required": ["specversion", "id", "source", "type"]}}
BODY = {
    "required": True,
    "content": {
        JSON_KINDS[0]: PLAIN,
        STRUCTURED: CLOUD,
        BATCH: {"schema": {"type": "array", "items": CLOUD["schema"]}},
    },
}


async def publish(ask: Ask, request: Request, key: Key = None) -> Response:
    """Publishes an event.

    It reaches every execution that waits for it, and those that are running now and wait for it
    later. It also starts the workflows that have a trigger for it.

    The body is a plain event or CloudEvents 1.0: structured, binary (with `ce-` headers), or a
    batch, in which each event is published on its own.
    """
    headers = dict(request.headers.items())
    if not is_cloud_event(headers):
        must_be_json(request, (*JSON_KINDS, STRUCTURED, BATCH))
        event = _plain(await request.json())
        return await run_in_threadpool(
            _publish, ask, [(event.id or ask.own(key), event.type, event.data)]
        )
    _refuse_attributes_twice(request)
    body = await request.body()
    return await run_in_threadpool(
        lambda: _publish(
            ask, [(one.event_id, one.type, one.data) for one in cloud_events(headers, body, LIMITS)]
        )
    )


def _refuse_attributes_twice(request: Request) -> None:
    """Raises `InvalidEvent` if a header of a binary event comes twice.

    In binary mode a header is a key of the event, and it would be unclear which of the two counts.
    """
    names = [name for name in request.headers if name.startswith("ce-") or name == "content-type"]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidEvent(f"the event has the header {twice!r:.80} twice")


def _plain(value: Any) -> NewEvent:
    """Returns a plain event. Raises `RequestValidationError` if it is not valid."""
    try:
        return NewEvent.model_validate(value)
    except ValidationError as problem:
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in problem.errors(include_url=False)]
        ) from None


def _publish(ask: Asker, events: list[tuple[str | None, str, Any]]) -> Response:
    if len(events) > MAX_BATCH_EVENTS:
        raise Refused(
            422,
            "batch_too_large",
            f"a batch has at most {MAX_BATCH_EVENTS:,} events, not {len(events):,}",
        )
    new = [ask.app.publish(type, data, event_id=id, by=ask.actor) for id, type, data in events]
    return answer({"published": sum(new), "repeated": len(new) - sum(new)})
