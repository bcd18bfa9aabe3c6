"""The way from a value down to one of its parts: made for every part that is looked at, and written
out for the one that is wrong."""

from __future__ import annotations

import json
import re

KEY = 40  # characters of a key that a message shows
MAX_PATH_CHARACTERS = 200  # characters of a path, about: of a longer one its end
_NAME = re.compile(r"[^\W\d]\w*")

# linked: each part adds its own key, and copies none of those above it
Path = tuple["Path", str | int] | None


def show_path(path: Path) -> str:
    """The way down to a part, as one would write it: `.order.items[3]["unit price"]`."""
    steps: list[str] = []
    size = 0
    while path is not None and size < MAX_PATH_CHARACTERS:
        path, key = path
        steps.append(_step(key))
        size += len(steps[-1])
    return ("" if path is None else "…") + "".join(reversed(steps))


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    text = key[:KEY]
    return f".{text}" if _NAME.fullmatch(text) else f"[{json.dumps(text)}]"
