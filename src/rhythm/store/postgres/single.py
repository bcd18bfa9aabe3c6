"""Statements over rows, as they are sent when there is one row: its values in place of arrays.

A lone step, start or end is one row. Arrays of one element are written, read and scanned like any
others, which is a tenth of the time that such a statement takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

# Named statements that often get one row, while somebody waits for the answer.
OFTEN_SINGLE = frozenset({"start_alike", "light_turns", "light_finishes", "light_ends"})

_VALUE = rb"%\(\w+\)b::\w+\[\]"
_ROWS = re.compile(rb"unnest\((%s(?:,\s*%s)*)\)\s+AS (\w+)\(([^)]*)\)" % (_VALUE, _VALUE))
_NAME = re.compile(rb"%\((\w+)\)b")


class _Rows(NamedTuple):
    """Rows that a statement reads from arrays, and what stands in their place if there is one."""

    text: bytes
    names: tuple[str, ...]  # of the values that are their columns
    alone: bytes


def for_single_rows(text: bytes, values: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    """Returns the statement and its values with a row wherever it would get rows, but gets one."""
    rows = _rows(text)
    single = tuple([len(values[each.names[0]]) == 1 for each in rows])
    if True not in single:
        return text, values
    names = [name for each, one in zip(rows, single, strict=True) if one for name in each.names]
    return _with_single(text, single), {**values, **{name: values[name][0] for name in names}}


@cache
def _rows(text: bytes) -> tuple[_Rows, ...]:
    return tuple(_rows_of(found) for found in _ROWS.finditer(text))


def _rows_of(found: re.Match[bytes]) -> _Rows:
    values = [each.strip() for each in found[1].split(b",")]
    columns = [each.strip() for each in found[3].split(b",")]
    row = b", ".join(
        b"%s AS %s" % (value.removesuffix(b"[]"), column)
        for value, column in zip(values, columns, strict=True)
    )
    names = tuple(name.decode() for name in _NAME.findall(found[1]))
    return _Rows(found[0], names, b"(SELECT %s) AS %s" % (row, found[2]))


@cache
def _with_single(text: bytes, single: tuple[bool, ...]) -> bytes:
    for each, one in zip(_rows(text), single, strict=True):
        if one:
            text = text.replace(each.text, each.alone)
    return text
