"""JSON text to values that know their place: offsets, and the JSON pointer.

Reading stops at the first problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from rhythm.limits import INT_MAX, INT_MIN, Limits
from rhythm.record import Record

_SPACE = re.compile(r"[ \t\n\r]*")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON = {"True": "true", "False": "false", "None": "null", "undefined": "null"}


class NoJson(Exception):
    """Says why a text cannot be read as JSON, and where.

    `first` is the place of the first of two equal keys.
    """

    def __init__(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        help: str = "",
        first: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.first = first


class Json(Record):
    """A value of the document, with its place.

    `entries` or `items` are the values in it, `keys` the places of its keys.
    """

    start: int
    end: int
    pointer: str
    value: Any
    entries: dict[str, Json] = {}
    items: tuple[Json, ...] = ()
    keys: dict[str, tuple[int, int]] = {}

    def get(self, key: str) -> Json | None:
        """Returns the entry of a key, or None."""
        return self.entries.get(key)

    def key(self, key: str) -> Json:
        """Returns the key itself, as a place to report a problem at."""
        return Json(*self.keys[key], f"{self.pointer}/{escaped(key)}", key)


def escaped(key: str) -> str:
    """Returns a key as part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def read_document(text: str, limits: Limits) -> Json:
    """Returns the document. Raises `NoJson` if it cannot be read."""
    return _Reader(text, limits).document()


class _Reader:
    def __init__(self, text: str, limits: Limits) -> None:
        self.text, self.limits = text, limits
        self.at = self.values = 0

    def document(self) -> Json:
        self._space()
        if self.at == len(self.text):
            raise NoJson(
                "S001",
                "the file is empty",
                0,
                0,
                'begin with { "workflow_id": "…", "steps": [ … ] }',
            )
        value = self._value("", 0)
        self._space()
        if self.at < len(self.text):
            raise self._unexpected("the end of the file was expected here")
        return value

    def _space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        if self.text.startswith(("//", "/*", "#"), self.at):
            raise NoJson(
                "S001", "JSON has no comments", self.at, self.at + 2, 'say it in a "description"'
            )

    def _value(self, pointer: str, depth: int) -> Json:
        self.values += 1
        if depth > self.limits.nesting or self.values > self.limits.tokens:
            what = (
                f"nested more than {self.limits.nesting} deep"
                if depth > self.limits.nesting
                else f"more than {self.limits.tokens:,} values"
            )
            raise NoJson("S002", what, self.at, self.at + 1, "split it into several workflows")
        start, first = self.at, self.text[self.at : self.at + 1]
        if first == "{":
            return self._object(pointer, depth)
        if first == "[":
            return self._list(pointer, depth)
        if first == '"':
            return Json(start, start, pointer, self._text()).replace(end=self.at)
        return Json(
            start,
            start,
            pointer,
            self._number() if first == "-" or first.isdigit() else self._word(),
        ).replace(end=self.at)

    def _object(self, pointer: str, depth: int) -> Json:
        start, entries, keys = self.at, dict[str, Json](), dict[str, tuple[int, int]]()

        def entry() -> None:
            at, key = self.at, self._key()
            if key in keys:
                raise NoJson(
                    "S003",
                    f'the key "{key}" stands twice',
                    at,
                    self.at,
                    "keep one of them",
                    keys[key],
                )
            keys[key] = at, self.at
            self._space()
            self._sign(":", 'a key is followed by ":"')
            self._space()
            entries[key] = self._value(f"{pointer}/{escaped(key)}", depth + 1)

        self._each("}", entry)
        return Json(
            start,
            self.at,
            pointer,
            {key: inner.value for key, inner in entries.items()},
            entries,
            (),
            keys,
        )

    def _list(self, pointer: str, depth: int) -> Json:
        start, items = self.at, list[Json]()
        self._each("]", lambda: items.append(self._value(f"{pointer}/{len(items)}", depth + 1)))
        return Json(start, self.at, pointer, [inner.value for inner in items], {}, tuple(items))

    def _each(self, closing: str, element: Callable[[], None]) -> None:
        """Reads elements with commas between them, from the opening bracket to the closing one."""
        opened = self.at
        self.at += 1
        self._space()
        if self.text.startswith(closing, self.at):
            self.at += 1
            return
        while True:
            element()
            self._space()
            if self.text.startswith(closing, self.at):
                self.at += 1
                return
            if self.at == len(self.text):
                raise NoJson(
                    "S001",
                    "a bracket that is never closed",
                    opened,
                    opened + 1,
                    f"add the closing {closing}",
                )
            comma = self.at
            self._sign(",", f'"," or "{closing}" was expected here')
            self._space()
            if self.text.startswith(closing, self.at):
                raise NoJson(
                    "S001",
                    "a comma after the last element",
                    comma,
                    comma + 1,
                    "remove it: JSON allows none there",
                )

    def _sign(self, sign: str, expected: str) -> None:
        if not self.text.startswith(sign, self.at):
            raise self._unexpected(expected)
        self.at += 1

    def _key(self) -> str:
        if not self.text.startswith('"', self.at):
            word = _WORD.match(self.text, self.at)
            raise self._unexpected(
                "a key in double quotes was expected here", f'write "{word[0]}"' if word else ""
            )
        return self._text()

    def _text(self) -> str:
        found, start = _TEXT.match(self.text, self.at), self.at
        if not found:
            line_end = min([at for at in (self.text.find("\n", start), len(self.text)) if at >= 0])
            raise NoJson(
                "S001",
                "text that does not end on its line, or has an escape that JSON does not know",
                start,
                line_end,
                r"close it with a double quote; write \\ for a backslash and \n for a line break",
            )
        self.at = found.end()
        value: str = json.loads(found[0])
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise NoJson(
                "S001",
                "half of a surrogate pair is no character",
                start,
                self.at,
                "write the character itself",
            )
        return value

    def _number(self) -> int | float:
        found, start = _NUMBER.match(self.text, self.at), self.at
        if not found or self.text[found.end() : found.end() + 1].isalnum():
            raise self._unexpected(
                "a number was expected here", "JSON numbers look like 12, -0.5 or 1e3"
            )
        self.at = found.end()
        number = (
            float(found[0])
            if found[1] or found[2]
            else int(found[0])
            if len(found[0]) < 25
            else INT_MAX + 1
        )
        if number in (float("inf"), float("-inf")) or (
            isinstance(number, int) and not INT_MIN <= number <= INT_MAX
        ):
            raise NoJson(
                "S002",
                "a number that does not fit",
                start,
                self.at,
                "whole numbers have 64 bits; longer ones are text",
            )
        return number

    def _word(self) -> Any:
        found = _WORD.match(self.text, self.at)
        if found and found[0] in _WORDS:
            self.at = found.end()
            return _WORDS[found[0]]
        meant = _PYTHON.get(found[0]) if found else None
        raise self._unexpected(
            "a value was expected here",
            f"write {meant}" if meant else f'write "{found[0]}"' if found else "",
        )

    def _unexpected(self, message: str, help: str = "") -> NoJson:
        found = _WORD.match(self.text, self.at)
        if self.text.startswith("'", self.at):
            help = "JSON has only double quotes"
        return NoJson(
            "S001",
            message,
            self.at,
            found.end() if found else min(self.at + 1, len(self.text)),
            help,
        )
