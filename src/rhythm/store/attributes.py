"""The attributes of an execution after a turn that has set some. Pure."""

from __future__ import annotations

import json
from typing import Any

from rhythm.limits import TEXTS


def with_attributes(before: str, new: str) -> str:
    """Returns the old attributes with the new ones, as JSON.

    If they are too many or too large, the oldest are dropped.
    """
    old, set_now = json.loads(before), json.loads(new)
    merged: dict[str, Any] = {
        name: value for name, value in old.items() if name not in set_now
    } | set_now
    while len(merged) > len(set_now) and (
        len(merged) > TEXTS.attributes or len(_text(merged).encode()) > TEXTS.attributes_bytes
    ):
        del merged[next(iter(merged))]
    return _text(merged)


def _text(attributes: dict[str, Any]) -> str:
    return json.dumps(attributes, ensure_ascii=False, separators=(",", ":"))
