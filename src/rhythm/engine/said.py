"""What executions say, as it is stored: texts of bounded length, for any database. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rhythm.engine.levels import INFO, level_of
from rhythm.engine.payload import dump
from rhythm.limits import LOGS
from rhythm.store.interfaces.logs import LOG, PROGRESS, Said
from rhythm.vm import commands as c

LEFT_OUT_FIELD = "…"  # the name of the field that says what was left out


def said_of(command: c.Log | c.Progress) -> Said:
    """Returns what a workflow says with `log` or `progress`.

    A field `level` of a log line that names a level is its level, and no field.
    """
    match command:
        case c.Log(message, fields):
            level = level_of(fields.get("level")) if "level" in fields else None
            if level is not None:
                fields = {name: value for name, value in fields.items() if name != "level"}
            return Said(LOG, INFO if level is None else level, text_of(message), fields_of(fields))
        case c.Progress(fraction, message):
            return Said(PROGRESS, INFO, text_of(message), fields_of({"fraction": fraction}))


def text_of(text: str, most: int = LOGS.message) -> str:
    """Returns a text that can be stored, cut to a length; it says how long it was."""
    if len(text) > most:
        note = f"… ({len(text):,} characters)"
        text = text[: max(most - len(note), 0)] + note
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\0", "␀")


def fields_of(value: Any, most_bytes: int = LOGS.fields_bytes) -> str | None:
    """Returns the fields of a line as JSON; None if there are none.

    A value that is no object gets the name `value`. What cannot be JSON is described in words, and
    of what is too large only its size is kept.
    """
    if value is None or value == {}:
        return None
    found = value if isinstance(value, Mapping) else {"value": value}
    try:
        text = dump(dict(found), "fields")
    except Exception:  # whatever it is: who says something must not fail because of it
        return dump({LEFT_OUT_FIELD: _described(value)}, "fields")
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return dump({LEFT_OUT_FIELD: f"{size:,} bytes"}, "fields") if size > most_bytes else text


def _described(value: Any) -> str:
    try:
        return text_of(repr(value), LOGS.fields_bytes // 8)
    except Exception:
        return f"a value of type {type(value).__name__}"
