"""Values with a format: times, durations, decimals and others, each in the one form that it is
kept in."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from rhythm.durations import duration_s
from rhythm.record import Record

MAX_SECONDS = 86400 * 999_999_999  # of a timedelta


class Format(Record):
    """A format of JSON Schema: the types that may have it, and how it is kept.

    `keep` returns the value as it is kept. It raises ValueError if the value is not in the format.
    """

    types: tuple[str, ...]
    expected: str
    keep: Callable[[Any], Any]


def _shown_time(value: datetime | time) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _date_time(text: str) -> str:
    return _shown_time(datetime.fromisoformat(text))


def _date(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def _time(text: str) -> str:
    return _shown_time(time.fromisoformat(text))


def _duration(value: Any) -> int | float:
    given = value if type(value) in (int, float) and abs(value) < MAX_SECONDS else duration_s(value)
    seconds = timedelta(seconds=given).total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _decimal(value: Any) -> str:
    try:
        number = Decimal(repr(value) if type(value) is float else value)
    except InvalidOperation:
        raise ValueError from None
    if not number.is_finite():
        raise ValueError
    return str(number)


def _uuid(text: str) -> str:
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    if len(digits) != 32:
        raise ValueError
    text = f"{int(digits, 16):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _byte(text: str) -> str:
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode("ascii")
    except binascii.Error:
        raise ValueError from None


FORMATS: dict[str, Format] = {
    "date-time": Format(("string",), 'a date and time such as "2026-01-31T09:30:00Z"', _date_time),
    "date": Format(("string",), 'a date such as "2026-01-31"', _date),
    "time": Format(("string",), 'a time of day such as "09:30:00"', _time),
    "duration": Format(
        ("number", "string"), 'a duration: seconds, or text such as "1h30m"', _duration
    ),
    "decimal": Format(("string", "number"), 'a decimal number such as "12.50"', _decimal),
    "uuid": Format(("string",), "a UUID", _uuid),
    "byte": Format(("string",), "bytes as base64", _byte),
}
