"""Constants: JSON values as they are written in `.flow`, and read from its tree."""

from __future__ import annotations

import json
import re
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def constant_of(node: Node, otherwise: str) -> Any:
    """Returns the JSON value that an expression is.

    Raises ValueError, with the text `otherwise`, if it must be computed.
    """
    if isinstance(node, nodes.Literal):
        return node.value
    if isinstance(node, nodes.ListLiteral):
        return [constant_of(item, otherwise) for item in node.items]
    if isinstance(node, nodes.ObjectLiteral):
        return dict(_entry(entry, otherwise) for entry in node.entries)
    raise ValueError(otherwise)


def _entry(entry: Node, otherwise: str) -> tuple[str, Any]:
    if not isinstance(entry, nodes.Entry):
        raise ValueError(otherwise)
    return entry.key, constant_of(entry.value, otherwise)


def constant_text(value: Any) -> str:
    """Returns a JSON value as it is written."""
    if isinstance(value, dict):
        entries = (f"{key_text(key)}: {constant_text(item)}" for key, item in value.items())
        return f"{{ {', '.join(entries)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(constant_text, value))}]"
    if isinstance(value, str):
        return f'"{escaped(value, chr(34))}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def key_text(key: str) -> str:
    """Returns a key of an object as it is written: a word, or a text."""
    return key if WORD.fullmatch(key) else constant_text(key)


def escaped(text: str, quote: str) -> str:
    """Returns a text with escapes for what cannot stand between these quotes, or be seen."""
    parts = (
        f"\\{char}"
        if char in (quote, "\\")
        else char
        if char.isprintable()
        else json.dumps(char)[1:-1]
        for char in text
    )
    made = "".join(parts)
    return made.replace("${", "\\${") if quote == "`" else made
