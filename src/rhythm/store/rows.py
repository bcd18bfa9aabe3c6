"""Rows as records, by the names of their columns.

A column fills the field of the same name, in whatever order either stands. A column without a
field, or a required field without a column, is an error when a statement is first read, never a
wrong value.

Which column fills which field is worked out once for each statement and record. Filling a record
then costs no more than by position.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from rhythm.record import Record

Row = tuple[Any, ...]
R = TypeVar("R", bound=Record)
Reader = Callable[[Row], Any]
Convert = Callable[[Any], Any]


def _names(stored: str | list[str]) -> tuple[str, ...]:
    """Returns names, which are stored as JSON; PostgreSQL also collects them in an array."""
    return tuple(json.loads(stored) if isinstance(stored, str) else stored)


# Conversions from the stored value to a field of this type, where the two differ. SQLite stores
# true and false as numbers.
STORED: Mapping[str, Convert] = {"tuple[str, ...]": _names}
STORED_WITHOUT_BOOLEANS: Mapping[str, Convert] = {**STORED, "bool": bool}


class Columns:
    """The columns of a statement, and the readers of its rows."""

    def __init__(self, names: Iterable[str], stored: Mapping[str, Convert]) -> None:
        self.names, self._stored = tuple(names), stored
        self._readers: dict[Any, Reader] = {}

    def reader(self, record: type[Record]) -> Reader:
        """Returns the function that makes a record of a row."""
        return self._readers.get(record) or self._made(record, record, ())

    def reader_with(self, record: type[Record], beside: tuple[str, ...]) -> Reader:
        """Returns the function that makes a record of a row, and returns it with the columns
        `beside` that are not fields of the record.

        One such column is returned as its value, several as a tuple.
        """
        return self._readers.get((record, beside)) or self._made((record, beside), record, beside)

    def _made(self, key: Any, record: type[Record], beside: tuple[str, ...]) -> Reader:
        self._refuse(record, beside)
        types = field_types(record)
        converts = [
            (name, self._stored[types[name]])
            for name in self.names
            if types.get(name) in self._stored
        ]
        make = self._readers[key] = _reader(record, self.names, converts, beside)
        return make

    def _refuse(self, record: type[Record], beside: tuple[str, ...]) -> None:
        """Raises `TypeError` unless each column has exactly one field, and each required field has
        a column."""
        own = {*self.names} - {*beside}
        twice = {name for name in self.names if self.names.count(name) > 1}
        wrong = (
            twice | (own - record._known) | (record._required - own) | ({*beside} - {*self.names})
        )
        if wrong:
            wanted, there = " and ".join((record.__name__, *beside)), ", ".join(self.names)
            raise TypeError(
                f"{wanted} cannot be read from the columns {there}: {', '.join(sorted(wrong))}"
            )


def _reader(
    record: type[Record],
    names: tuple[str, ...],
    converts: list[tuple[str, Convert]],
    beside: tuple[str, ...],
) -> Reader:
    # There are as many names as values: both come from one result.
    new, named = object.__new__, partial(zip, names)

    def read(row: Row) -> Any:
        made = new(record)
        made.__dict__.update(named(row))
        return made

    def read_converted(row: Row) -> Any:
        made = new(record)
        fields = made.__dict__
        fields.update(named(row))
        for name, convert in converts:
            fields[name] = convert(fields[name])
        return made

    def read_with(row: Row) -> Any:
        made = new(record)
        fields = made.__dict__
        fields.update(named(row))
        for name, convert in converts:
            fields[name] = convert(fields[name])
        for name in beside:
            del fields[name]
        return made, others(row)

    if beside:
        others = itemgetter(*map(names.index, beside))
        return read_with
    return read_converted if converts else read


def field_types(record: type[Record]) -> dict[str, str]:
    """Returns the fields of a record and their types, as the source has them."""
    kinds = (kind for kind in reversed(record.__mro__) if issubclass(kind, Record))
    return {name: str(text) for kind in kinds for name, text in kind.__annotations__.items()}


def columns(records: Sequence[Record], *names: str) -> dict[str, list[Any]]:
    """Returns these fields of the records, a list for each."""
    if not records or len(names) < 2:
        return {name: [getattr(each, name) for each in records] for name in names}
    rows = map(attrgetter(*names), records)  # much faster than field by field
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def fields(record: Record) -> dict[str, Any]:
    """Returns all fields by name, also those with their default."""
    kind: Any = type(record)
    return {**_defaults(kind), **record.__dict__}


@cache
def _defaults(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record._fields if name not in record._required}


class Result(list[Any]):
    """The rows of a statement, with its columns."""

    columns: Columns


class StatementColumns:
    """The columns of every statement that has returned rows, by its text, so that they are worked
    out once."""

    def __init__(self, stored: Mapping[str, Convert]) -> None:
        self._stored = stored
        self._columns: dict[str | bytes, Columns] = {}

    def columns(self, text: str | bytes, row: Row, cursor: Any) -> Columns:
        """Returns the columns of a statement that has returned this row."""
        known = self._columns.get(text)
        if known is None:
            # A row may have fewer values than described: a last column that only bounds the result
            # is cut off.
            described = zip(cursor.description, row, strict=False)
            known = self._columns[text] = Columns(
                (column[0] for column, _ in described), self._stored
            )
        return known

    def result(self, text: str | bytes, rows: list[Any], cursor: Any) -> Result:
        """Returns the rows with their columns. There must be at least one row."""
        made = Result(rows)
        made.columns = self._columns.get(text) or self.columns(text, rows[0], cursor)
        return made


def with_columns_of(rows: list[Any], taken: list[Any]) -> list[Any]:
    """Returns some rows of a result, with its columns."""
    if not isinstance(rows, Result):
        return taken
    made = Result(taken)
    made.columns = rows.columns
    return made


def records(record: type[R], rows: list[Any]) -> list[R]:
    """Returns the rows of a statement as records."""
    if not rows:
        return []
    assert isinstance(rows, Result)
    return list(map(rows.columns.reader(record), rows))


def record_of(record: type[R], named: Mapping[str, Any]) -> R:
    """Returns a record made from a JSON object of the database."""
    made: R = Columns(named, STORED).reader(record)(tuple(named.values()))
    return made


def records_with(record: type[R], rows: list[Any], *beside: str) -> list[tuple[R, Any]]:
    """Returns the rows of a statement as records, each with the value of the column `beside` that
    is not its field.

    For several columns it is a tuple of values.
    """
    if not rows:
        return []
    assert isinstance(rows, Result)
    return list(map(rows.columns.reader_with(record, beside), rows))
