"""The path from a value down to one of its parts, cheap to build while walking and shown in error
messages."""

from __future__ import annotations

import json
import re

KEY = 40  # characters of a key that a message shows
# About how many characters of a path are shown; of a longer path, only its end.
MAX_PATH_CHARACTERS = 200
_NAME = re.compile(r"[^\W\d]\w*")

# A linked list: each part adds its own key and does not copy the keys above it.
Path = tuple["Path", str | int] | None


def show_path(path: Path) -> str:
    """Returns the path as one would write it in code: `.order.items[3]["unit price"]`.

    Of a long path only the end is shown, after `…`.
    """
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
