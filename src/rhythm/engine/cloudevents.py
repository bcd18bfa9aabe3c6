"""Reads CloudEvents 1.0 over HTTP as events to publish: structured, binary and batched.

Pure: headers and bytes in, values out. In CloudEvents, source and id together identify an event, so
the id under which it is published once is made of both. Nothing else of it is kept (subject, time,
extensions): put what a workflow needs into the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import unquote

from rhythm.engine.payload import parse
from rhythm.errors import InvalidEvent, InvalidPayload
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record

STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
LONGEST_ID = 200  # characters of an event's id; a longer one is hashed
NEEDED = ("specversion", "id", "source", "type")
ENVELOPE = 2  # levels of nesting around the data: the event, and the batch


class CloudEvent(Record):
    """An event to publish."""

    event_id: str
    type: str
    data: Any


def is_cloud_event(headers: Mapping[str, str]) -> bool:
    """Returns whether a request with these headers (names in lower case) carries CloudEvents."""
    return media_type(headers) in (STRUCTURED, BATCH) or "ce-specversion" in headers


def cloud_events(
    headers: Mapping[str, str], body: bytes, limits: Limits = DEFAULT_LIMITS
) -> list[CloudEvent]:
    """Returns the events of a request, in order.

    Raises `InvalidEvent`, which says what is wrong with it.
    """
    kind, limits = media_type(headers), limits.replace(depth=limits.depth + ENVELOPE)
    if kind == STRUCTURED:
        return [_event(_json(body, "the body", limits), "the event")]
    if kind == BATCH:
        found = _json(body, "the body", limits)
        if not isinstance(found, list):
            _refuse("a batch is a list of events")
        return [_event(each, f"event {n}") for n, each in enumerate(found, 1)]
    return [_event({**_attributes(headers), "data": _data(kind, body, limits)}, "the event")]


def media_type(headers: Mapping[str, str]) -> str:
    """Returns the media type of a request, without parameters; empty if it has none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _attributes(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the attributes of an event in binary mode, percent-decoded from its headers."""
    return {name[3:]: unquote(value) for name, value in headers.items() if name.startswith("ce-")}


def _data(kind: str, body: bytes, limits: Limits) -> Any:
    """Returns the data of an event in binary mode; None if the body is empty.

    Without a content type it is JSON, as the JSON format of CloudEvents says. Raises `InvalidEvent`
    if it is neither JSON nor text.
    """
    if not body:
        return None
    if kind in ("", "application/json") or kind.endswith("+json"):
        return _json(body, "the data", limits)
    if not kind.startswith("text/"):
        _refuse(f"data is JSON or text, not {kind}: set content-type to application/json")
    try:
        return body.decode()
    except UnicodeDecodeError:
        _refuse("the data is no text in UTF-8")


def _event(found: Any, what: str) -> CloudEvent:
    if not isinstance(found, dict):
        _refuse(f"{what} is not an object")
    for name in NEEDED:
        if not isinstance(found.get(name), str) or not found[name]:
            _refuse(f"{what} has no {name}")
    if " " in found["source"]:
        _refuse(f"{what} has a source with a space in it, which is no URI")
    if found["specversion"] != "1.0":
        _refuse(f"{what} is of CloudEvents {found['specversion']:.20}; 1.0 is known")
    if "data_base64" in found:
        _refuse(f"{what} has binary data; send JSON, or where to find it")
    return CloudEvent(_event_id(found["source"], found["id"]), found["type"], found.get("data"))


def _event_id(source: str, id: str) -> str:
    """Returns the id under which an event is published: unique for source and id.

    The space between them keeps pairs apart, since a URI has no space in it.
    """
    both = f"{source} {id}"
    return (
        both
        if len(both) <= LONGEST_ID
        else f"sha256:{hashlib.sha256(both.encode('utf-8', 'surrogatepass')).hexdigest()}"
    )


def _json(text: bytes, what: str, limits: Limits) -> Any:
    try:
        return parse(text, what, limits)
    except InvalidPayload as problem:
        raise InvalidEvent(str(problem)) from None


def _refuse(why: str) -> NoReturn:
    raise InvalidEvent(why)
