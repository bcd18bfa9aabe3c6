"""Reads an exported audit: each line is one row, or is refused with its number and what is wrong
with it.

The file need not be trusted. A line is read as strictly as a request (no key twice, nothing nested,
no number beyond 64 bits), so that what we hash is what every other reader of the line sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from rhythm.app.audit import AuditCheck, known_head
from rhythm.engine.payload import parse
from rhythm.errors import InvalidPayload
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.access import AuditRow, Links

LONGEST_LINE = 16_000_000  # bytes: longer than any row that Rhythm writes
LIMITS = DEFAULT_LIMITS.replace(payload_bytes=LONGEST_LINE, text_bytes=LONGEST_LINE)
HASH = re.compile("[0-9a-f]{64}")
NUMBERS, HASHES, OPTIONAL = ("n", "at"), ("prev", "hash"), ("token",)


def check_exported(lines: IO[bytes], head: str | None = None) -> AuditCheck:
    """Returns what is wrong with the chain of these lines, as `Audit.verify` does for a database.

    Raises `ValueError` for a line that is not a row of an audit.
    """
    links, problems = Links(*([known_head(head)] if head is not None else ())), list[str]()
    for row in exported_rows(lines):
        problems += [message for _, message in links.follow(row)]
    problems += [message for _, message in links.end(None)]
    return AuditCheck(links.rows, str(links.last), tuple(problems), len(problems))


def exported_rows(lines: IO[bytes]) -> Iterator[AuditRow]:
    """Yields the rows that `rhythm audit export` printed.

    Raises `ValueError` at the first line that is not a row.
    """
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        try:
            yield _row(line)
        except (InvalidPayload, ValueError) as problem:
            raise ValueError(
                f"line {number} is no row of an audit: {problem}; give what `rhythm audit "
                f"export` has printed"
            ) from None


def _row(line: bytes) -> AuditRow:
    """Returns the row of a line.

    Raises `ValueError` or `InvalidPayload` if the line is not a row.
    """
    if len(line) > LONGEST_LINE:
        raise ValueError(f"it is longer than {LONGEST_LINE:,} bytes")
    values = parse(line, "it", LIMITS)
    if not isinstance(values, dict):
        raise ValueError("it is no object")
    for name in AuditRow._fields:
        if name not in values:
            raise ValueError(f"{name} is missing")
        if problem := _problem(name, values[name]):
            raise ValueError(f"{name} is {problem}, not {values[name]!r:.80}")
    if other := sorted(values.keys() - set(AuditRow._fields)):
        raise ValueError(f"{other[0]!r:.80} is none of its keys")
    return AuditRow(**values)


def _problem(name: str, value: Any) -> str:
    """Returns what the value of a field should be, if it is not; else an empty text."""
    if name in NUMBERS:
        return "" if type(value) is int else "a whole number"
    if name in OPTIONAL and value is None:
        return ""
    if not isinstance(value, str):
        return "a text"
    return "a hash of 64 digits" if name in HASHES and not HASH.fullmatch(value) else ""
