"""Events of CloudEvents 1.0, as requests bring them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent as Event
from cloudevents.v1 import conversion
from cloudevents.v1.http import CloudEvent as OldEvent

from rhythm.engine.cloudevents import BATCH, STRUCTURED, CloudEvent, cloud_events, is_cloud_event
from rhythm.errors import InvalidEvent
from rhythm.limits import DEFAULT_LIMITS

PAID = {"specversion": "1.0", "id": "A-1", "source": "/orders", "type": "order.paid"}
BINARY = {f"ce-{name}": value for name, value in PAID.items()}


def structured(event: Any, kind: str = STRUCTURED) -> list[CloudEvent]:
    return cloud_events({"content-type": f"{kind}; charset=utf-8"}, json.dumps(event).encode())


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"content-type": "application/cloudevents+json; charset=utf-8"}, True),
        ({"content-type": "Application/CloudEvents-Batch+JSON"}, True),
        ({"content-type": "application/json", "ce-specversion": "1.0"}, True),
        ({"content-type": "application/json"}, False),
        ({}, False),
    ],
)
def test_a_request_tells_by_its_headers_that_it_is_an_event(
    headers: dict[str, str], answer: bool
) -> None:
    assert is_cloud_event(headers) == answer


def test_an_event_in_one_document() -> None:
    assert structured({**PAID, "data": {"n": 1}, "subject": "x"}) == [
        CloudEvent("/orders A-1", "order.paid", {"n": 1})
    ]
    assert structured(PAID) == [CloudEvent("/orders A-1", "order.paid", None)]


def test_a_batch_keeps_its_order_and_may_be_empty() -> None:
    assert [event.data for event in structured([{**PAID, "data": n} for n in range(3)], BATCH)] == [
        0,
        1,
        2,
    ]
    assert structured([], BATCH) == []


@pytest.mark.parametrize(
    ("kind", "body", "data"),
    [
        ("application/json", b'{"n": 1}', {"n": 1}),
        ("application/vnd.shop+json; charset=utf-8", b"[1]", [1]),
        ("text/plain", "grüß".encode(), "grüß"),
        ("", b"", None),
        ("", b'{"n": 1}', {"n": 1}),
    ],
)
def test_an_event_in_headers_with_its_data_as_the_body(kind: str, body: bytes, data: Any) -> None:
    assert cloud_events({**BINARY, "content-type": kind}, body) == [
        CloudEvent("/orders A-1", "order.paid", data)
    ]


def test_a_header_is_percent_encoded() -> None:
    (event,) = cloud_events({**BINARY, "ce-id": "Euro%20%E2%82%AC"}, b"")
    assert event.event_id == "/orders Euro €"


def test_the_same_id_of_another_source_is_another_event_however_long() -> None:
    ids = {
        structured({**PAID, "source": source, "id": id})[0].event_id
        for source in ("/a", "/b", "/" + "c" * 300)
        for id in ("1", "2")
    }
    assert len(ids) == 6
    assert all(len(id) <= 200 for id in ids)


@pytest.mark.parametrize(
    ("headers", "body", "why"),
    [
        ({"content-type": STRUCTURED}, b"{", "the body is not JSON"),
        ({"content-type": STRUCTURED}, b"[" * 100_000, "the body is nested more than 66 deep"),
        (
            {"content-type": STRUCTURED},
            b'{"data": NaN}',
            "the body.data is NaN: JSON has no such number",
        ),
        ({"content-type": STRUCTURED}, b"\xff", "the body is not UTF-8 text"),
        ({"content-type": STRUCTURED}, b"[]", "the event is not an object"),
        (
            {"content-type": STRUCTURED},
            json.dumps({**PAID, "id": ""}).encode(),
            "the event has no id",
        ),
        (
            {"content-type": STRUCTURED},
            json.dumps({**PAID, "type": 5}).encode(),
            "the event has no type",
        ),
        (
            {"content-type": STRUCTURED},
            json.dumps({**PAID, "source": "a b"}).encode(),
            "has a source with a space in it",
        ),
        (
            {"content-type": STRUCTURED},
            json.dumps({**PAID, "specversion": "0.3"}).encode(),
            "is of CloudEvents 0.3; 1.0 is known",
        ),
        (
            {"content-type": STRUCTURED},
            json.dumps({**PAID, "data_base64": "aGk="}).encode(),
            "has binary data",
        ),
        ({"content-type": BATCH}, b"{}", "a batch is a list of events"),
        ({"content-type": BATCH}, json.dumps([PAID, 5]).encode(), "event 2 is not an object"),
        ({**BINARY, "content-type": "image/png"}, b"x", "data is JSON or text, not image/png"),
        (BINARY, b"x", "the data is not JSON"),
        (
            {"content-type": STRUCTURED},
            b'{"id": "a", "id": "b"}',
            'the body has the key "id" twice',
        ),
        ({"content-type": BATCH}, b'[{"data": {"n": 1, "n": 2}}]', 'has the key "n" twice'),
        (
            {**BINARY, "content-type": "application/json"},
            b'{"n": 1, "n": 2}',
            'the data has the key "n" twice',
        ),
        ({**BINARY, "content-type": "text/plain"}, b"\xff", "no text in UTF-8"),
        ({"ce-specversion": "1.0"}, b"", "the event has no id"),
    ],
)
def test_what_is_no_event_is_refused_with_the_reason(
    headers: dict[str, str], body: bytes, why: str
) -> None:
    with pytest.raises(InvalidEvent, match=why):
        cloud_events(headers, body)


def test_data_may_be_as_deep_in_its_envelope_as_without_one() -> None:
    deep: Any = 0
    for _ in range(DEFAULT_LIMITS.depth):
        deep = [deep]
    assert structured([{**PAID, "data": deep}], BATCH)[0].data == deep


def made_by_the_sdk() -> dict[str, tuple[dict[str, str], bytes]]:
    """One event as each of the interfaces of the official SDK sends it: headers and body."""
    attributes, data = {"id": "A-1", "source": "/orders", "type": "order.paid"}, {"n": 1}
    old, new = OldEvent({**attributes}, data), Event({**attributes}, data)
    made = {"1 binary": conversion.to_binary(old), "1 structured": conversion.to_structured(old)}
    for name, write in {"2 binary": http.to_binary, "2 structured": http.to_structured}.items():
        message = write(new, JSONFormat())
        made[name] = message.headers, message.body
    return made


@pytest.mark.parametrize("how", ["1 binary", "1 structured", "2 binary", "2 structured"])
def test_what_the_official_sdk_sends_is_taken(how: str) -> None:
    headers, body = made_by_the_sdk()[how]
    lower = {name.lower(): value for name, value in headers.items()}
    assert is_cloud_event(lower)
    assert cloud_events(lower, body) == [CloudEvent("/orders A-1", "order.paid", {"n": 1})]
