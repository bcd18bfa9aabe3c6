"""The one gate through which every value enters the store: JSON that both databases keep alike, within its size.

What is refused here is refused at its producer, with a message for whoever wrote it; nothing that has passed can fail later.
"""

from __future__ import annotations

from typing import Any

import orjson

from rhythm.errors import InvalidPayload
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.vm.values import json_problem


def dump(value: Any, what: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """The value as JSON text; `InvalidPayload` if it is no JSON value, cannot be stored or is too large."""
    if problem := json_problem(value):
        raise InvalidPayload(f"{what} cannot be stored: {problem}")
    text = orjson.dumps(value)
    if len(text) > limits.payload_bytes:
        raise InvalidPayload(
            f"{what} has {len(text):,} bytes; the limit is {limits.payload_bytes:,}: store it elsewhere and pass a reference"
        )
    return text.decode()


def dump_trusted(value: Any) -> str:
    """The JSON text of a value that the interpreter made: it has been through its own limits."""
    return orjson.dumps(value).decode()


def load(text: str | bytes) -> Any:
    return orjson.loads(text)
