"""Answers: JSON documents made of records, values and times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from rhythm.record import Record

JSON = "application/json"


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a response with this value as JSON."""
    return Response(document(value), status, headers, JSON)


def document(value: Any) -> bytes:
    """Returns the value as JSON: a record as the object of its fields, times as ISO 8601 in UTC."""
    return orjson.dumps(value, default=_fields, option=orjson.OPT_UTC_Z)


def _fields(value: Any) -> Any:
    if isinstance(value, Record):
        return {name: getattr(value, name) for name in value._fields}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def without(record: Record, *names: str) -> dict[str, Any]:
    """Returns the fields of a record except for these."""
    return {name: getattr(record, name) for name in record._fields if name not in names}
