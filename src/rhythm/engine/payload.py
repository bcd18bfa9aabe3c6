"""The one gate through which every value enters the store.

What passes is JSON that both databases keep alike, within its limits. `dump` is for Python values,
`parse` for JSON text from outside. A value that is refused is refused where it is made, with the
path to what is wrong; a value that has passed cannot fail later. Almost every value is small and
plain, and needs one quick check. Every other value goes through `_Careful`, which knows the user's
types, and can say where and why a value is refused.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import orjson

from rhythm.engine.typed import NoForm, json_form
from rhythm.errors import InvalidPayload
from rhythm.limits import DEFAULT_LIMITS, INT_MAX, INT_MIN, Limits
from rhythm.paths import KEY, Path, show_path
from rhythm.record import Record

SCALARS = frozenset({str, int, bool, type(None)})
_UNCHANGING = SCALARS | {float}
MAX_CONVERSIONS = 5  # steps from a user's type to JSON: an enum of dates takes two
# A text in quotes is one match, even if the closing quote is missing.
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def dump(value: Any, what: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Returns the value as JSON text.

    Raises `InvalidPayload` if it has no JSON form, cannot be stored, or is too large. `what` names
    the value, such as "inputs", in messages (`inputs.items[3].price is NaN`).
    """
    data = _quick(value, limits)
    if data is None:
        data = orjson.dumps(_Careful(what, limits).plain(value, None, 0))
    if len(data) > limits.payload_bytes:
        raise InvalidPayload(
            f"{what} has {len(data):,} bytes; the limit is {limits.payload_bytes:,}: "
            f"store it elsewhere and pass a reference"
        )
    return data.decode()


def parse(text: str | bytes, what: str, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Returns the value of a JSON text from outside.

    Raises `InvalidPayload` if it is no JSON, or JSON that cannot be stored.
    """
    if _exceeds(text, limits.payload_bytes):
        raise InvalidPayload(
            f"{what} has more than {limits.payload_bytes:,} bytes, which is the limit: "
            f"store it elsewhere and pass a reference"
        )
    try:
        text = text.decode() if isinstance(text, bytes) else text
        if _depth(text, limits.depth) > limits.depth:
            raise InvalidPayload(f"{what} is nested more than {limits.depth} deep")
        value = json.loads(
            text,
            parse_constant=_constant,
            parse_int=_int,
            parse_float=_float,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as problem:
        raise InvalidPayload(
            f"{what} is not UTF-8 text: byte {problem.start} cannot be read"
        ) from None
    except ValueError as problem:
        raise InvalidPayload(f"{what} is not JSON: {problem}") from None
    data = _quick(value, limits)
    # If all of it is shorter than the limit of one text, then so is every text in it.
    if data is not None and len(data) <= limits.text_bytes:
        return value
    return _Careful(what, limits).plain(value, None, 0)


def _exceeds(text: str | bytes, most: int) -> bool:
    """Returns whether a text has more than so many bytes.

    Only a text whose length leaves that open is encoded: a character has one to four bytes.
    """
    if isinstance(text, bytes) or not most // 4 < len(text) <= most:
        return len(text) > most
    return len(text.encode(errors="surrogatepass")) > most


def dump_trusted(value: Any) -> str:
    """Returns the JSON text of a value that needs no check.

    The interpreter made it, within its own limits, or Rhythm itself.
    """
    return orjson.dumps(value).decode()


load = orjson.loads  # returns the value of a JSON text that came from the store


def unshared(inputs: Any) -> Any:
    """Returns inputs of a task that nobody else has: its handler may change the lists and objects
    in them, which belong to the workflow.

    An object of plain values is returned as it is, since its keys become named arguments.
    """
    values = inputs.values() if type(inputs) is dict else (inputs,)
    return inputs if _UNCHANGING.issuperset(map(type, values)) else load(dump_trusted(inputs))


# the quick check


def _quick(value: Any, limits: Limits) -> bytes | None:
    """Returns the JSON text of a plain value; None if it needs the careful check."""
    if type(value) not in SCALARS and not _seems_plain(value, limits):
        return None
    try:
        data = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    # A large integer, a key that is no text, half of a surrogate pair: rare, and not always wrong.
    except TypeError:
        return None
    return None if b"\\u0000" in data or b"-0.0" in data else data


def _seems_plain(value: Any, limits: Limits) -> bool:
    """Returns whether a value is made of plain JSON types, within its limits.

    It goes level by level, so that counting the depth costs nothing. It counts the parts, because a
    value that contains the same part many times can be larger than memory.
    """
    parts, level = 1, (value,)
    for _ in range(limits.depth + 1):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind in SCALARS:
                continue
            if kind is dict or kind is list:
                if len(item) > limits.entries:
                    return False
                below += item.values() if kind is dict else item
            elif kind is not float or not math.isfinite(item):
                return False
        if not below:
            return True
        parts += len(below)
        if parts > limits.payload_bytes:
            return False
        level = below  # type: ignore[assignment]  # a tuple at first: cheaper to make
    return False


# the careful check


class Unstorable(Record):
    """Stands in a parsed value where the text had something that cannot be stored."""

    problem: str


class _Careful:
    """Makes a value plain JSON, part by part, or says what is wrong with it and where."""

    def __init__(self, what: str, limits: Limits) -> None:
        self.what, self.limits, self.parts = what, limits, 0

    def plain(self, value: Any, path: Path, depth: int) -> Any:
        """Returns the value as plain JSON. Raises `InvalidPayload` if that is impossible."""
        limits = self.limits
        self.parts += 1
        if self.parts > limits.payload_bytes:
            raise InvalidPayload(
                f"{self.what} has more than {limits.payload_bytes:,} parts: store it "
                f"elsewhere and pass a reference"
            )
        value = self._json(value, path)
        if depth > limits.depth:
            raise InvalidPayload(f"{self.what} is nested more than {limits.depth} deep")
        if type(value) is list:
            self._check_entries(len(value), path)
            return [self.plain(item, (path, i), depth + 1) for i, item in enumerate(value)]
        if type(value) is dict:
            self._check_entries(len(value), path)
            return {
                self._key(key, path): self.plain(item, (path, key), depth + 1)
                for key, item in value.items()
            }
        return self._scalar(value, path)

    def _json(self, value: Any, path: Path) -> Any:
        """Returns the JSON form of a value; one that is plain JSON is returned as it is."""
        for _ in range(MAX_CONVERSIONS):
            kind = type(value)
            if kind in SCALARS or kind is float or kind is list or kind is dict:
                return value
            if kind is Unstorable:
                self._refuse(path, value.problem)
            try:
                value = json_form(value)
            except NoForm:
                self._refuse(
                    path,
                    (
                        f"is of type {kind.__qualname__}, which has no JSON form: make it a "
                        f"dict, list, text or number"
                    ),
                )
            except Exception as problem:
                self._refuse(
                    path, f"cannot be turned into JSON: {type(problem).__name__}: {problem}"
                )
        self._refuse(path, f"is of type {type(value).__qualname__}, which does not become JSON")

    def _scalar(self, value: Any, path: Path) -> Any:
        if type(value) is str:
            self._check_text(value, path)
        elif type(value) is float:
            if not math.isfinite(value):
                self._refuse(path, f"is {_NUMBERS[str(value)]}: JSON has no such number")
            return value or 0.0  # -0.0 becomes 0.0
        elif type(value) is int and not INT_MIN <= value <= INT_MAX:
            self._refuse(path, "is an integer over 64 bits: pass it as text")
        return value

    def _key(self, key: Any, path: Path) -> str:
        if not isinstance(key, str):
            self._refuse(
                path,
                f"has the key {str(key)[:KEY]!r} of type {type(key).__qualname__}: keys are text",
            )
        text = str.__str__(key)
        self._check_text(text, (path, text))
        return text

    def _check_text(self, text: str, path: Path) -> None:
        limit = self.limits.text_bytes
        try:
            size = len(text) if text.isascii() else len(text.encode())
        except UnicodeEncodeError as problem:
            self._refuse(
                path,
                f"has half of a surrogate pair at character {problem.start}: it is no Unicode text",
            )
        if size > limit:
            self._refuse(path, f"is a text of {size:,} bytes; the limit is {limit:,}")
        if "\0" in text:
            self._refuse(
                path,
                (
                    f"has the character NUL at character {text.index(chr(0))}: databases "
                    f"cannot store it"
                ),
            )

    def _check_entries(self, count: int, path: Path) -> None:
        if count > self.limits.entries:
            self._refuse(
                path,
                (
                    f"has {count:,} entries; the limit for one list or object is "
                    f"{self.limits.entries:,}"
                ),
            )

    def _refuse(self, path: Path, problem: str) -> NoReturn:
        raise InvalidPayload(f"{self.what}{show_path(path)} {problem}")


_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


# Called by the JSON parser. It knows no path, so they leave an `Unstorable` in the place of what is
# wrong.


def _constant(name: str) -> Unstorable:
    return Unstorable(f"is {name}: JSON has no such number")


def _int(text: str) -> int | Unstorable:
    return (
        int(text) if len(text) <= 20 else Unstorable("is an integer over 64 bits: pass it as text")
    )


def _float(text: str) -> float | Unstorable:
    number = float(text)
    return (
        number
        if math.isfinite(number)
        else Unstorable(f"is {text[:KEY]}, which is too large for a number")
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Unstorable:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # adds, and is false
    return Unstorable(f"has the key {json.dumps(twice[:KEY])} twice")


def _depth(text: str, enough: int) -> int:
    """Returns how deep a JSON text is nested; 0 if it cannot be deeper than `enough`.

    It is counted before the text is parsed, since parsers fail when their own stacks are full.
    """
    if text.count("[") + text.count("{") <= enough:
        return 0
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        if match[0] in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in ("]", "}"):
            depth -= 1
    return deepest
