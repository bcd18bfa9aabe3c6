"""Rows as records, by the names of their columns.

A row goes to the fields of a record that have the names of its columns, in whatever order either
has them. A column without a field, and a field that must be there without a column, are errors when
a statement is first read, never a wrong value.

What goes where is worked out once for each statement and record; to fill one costs no more than by
position.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from operator import itemgetter
from typing import Any, TypeVar

from rhythm.record import Record

Row = tuple[Any, ...]
R = TypeVar("R", bound=Record)
Reader = Callable[[Row], Any]
Convert = Callable[[Any], Any]


def _names(stored: str | list[str]) -> tuple[str, ...]:
    """Names, which are stored as JSON; PostgreSQL also collects them in an array."""
    return tuple(json.loads(stored) if isinstance(stored, str) else stored)


# What makes a field of this type of what is stored, where that is something else. SQLite has
# numbers for true and false.
STORED: Mapping[str, Convert] = {"tuple[str, ...]": _names}
STORED_WITHOUT_BOOLEANS: Mapping[str, Convert] = {**STORED, "bool": bool}


class Columns:
    """The columns of a statement, and the readers of its rows."""

    def __init__(self, names: Iterable[str], stored: Mapping[str, Convert]) -> None:
        self.names, self._stored = tuple(names), stored
        self._readers: dict[Any, Reader] = {}

    def reader(self, record: type[Record]) -> Reader:
        """What makes a record of a row."""
        return self._readers.get(record) or self._made(record, record, ())

    def reader_with(self, record: type[Record], beside: tuple[str, ...]) -> Reader:
        """What makes a record of a row, and tells the values of columns that are not its own.

        One column is told by its value, several by a tuple.
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
        """`TypeError` unless each column has one place to go to, and each field has a value."""
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
    # as many names as values: both are from one answer
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
    """The fields of a record and their types, as they are written."""
    kinds = (kind for kind in reversed(record.__mro__) if issubclass(kind, Record))
    return {name: str(text) for kind in kinds for name, text in kind.__annotations__.items()}


def fields(record: Record) -> dict[str, Any]:
    """All fields by name, also those that have their default."""
    kind: Any = type(record)
    return {**_defaults(kind), **record.__dict__}


@cache
def _defaults(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record._fields if name not in record._required}


class Result(list[Any]):
    """The rows of a statement, with its columns."""

    columns: Columns


class StatementColumns:
    """The columns of every statement that has had rows, by its text: so they are asked for once."""

    def __init__(self, stored: Mapping[str, Convert]) -> None:
        self._stored = stored
        self._columns: dict[str | bytes, Columns] = {}

    def columns(self, text: str | bytes, row: Row, cursor: Any) -> Columns:
        """The columns of a statement that has this row."""
        known = self._columns.get(text)
        if known is None:
            # A row may be shorter than described: what only bounds a result is cut off at its end.
            described = zip(cursor.description, row, strict=False)
            known = self._columns[text] = Columns(
                (column[0] for column, _ in described), self._stored
            )
        return known

    def result(self, text: str | bytes, rows: list[Any], cursor: Any) -> Result:
        """The rows, of which there are some, with their columns."""
        made = Result(rows)
        made.columns = self._columns.get(text) or self.columns(text, rows[0], cursor)
        return made


def with_columns_of(rows: list[Any], taken: list[Any]) -> list[Any]:
    """Some rows of a result, with its columns."""
    if not isinstance(rows, Result):
        return taken
    made = Result(taken)
    made.columns = rows.columns
    return made


def records(record: type[R], rows: list[Any]) -> list[R]:
    """The rows of a statement as records."""
    if not rows:
        return []
    assert isinstance(rows, Result)
    return list(map(rows.columns.reader(record), rows))


def record_of(record: type[R], named: Mapping[str, Any]) -> R:
    """A record of what the database tells by name itself, in an object of JSON."""
    made: R = Columns(named, STORED).reader(record)(tuple(named.values()))
    return made


def records_with(record: type[R], rows: list[Any], *beside: str) -> list[tuple[R, Any]]:
    """The rows of a statement as records, each with the value of a column that is not its own.

    Of several columns it is a tuple of the values.
    """
    if not rows:
        return []
    assert isinstance(rows, Result)
    return list(map(rows.columns.reader_with(record, beside), rows))
