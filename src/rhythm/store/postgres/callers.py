"""Connections of callers to PostgreSQL: statements, on each driver.

Our statements are written for psycopg, with named placeholders (`%(name)b`). The other drivers get
them in their own way of writing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import psycopg
from psycopg.adapt import AdaptersMap, PyFormat
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from rhythm.store.callers import (
    CallerConnection,
    Driver,
    FetchedRows,
    commits_by_itself,
    refuse_other,
)
from rhythm.store.loop_calls import Calls, Kind

PLACEHOLDER = re.compile(r"%\((\w+)\)[bs]")
CACHED_STATEMENTS = 512  # each is there once for every combination of types
# The type of a value, as psycopg names it to the server. A list has the type of its first value.
TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "bigint",
    float: "float8",
    str: "text",
    bytes: "bytea",
}
Values = Mapping[str, Any]


class PostgresCaller(Protocol):
    """A caller's connection."""

    def refuse_autocommit(self) -> None:
        """Raises `ValueError` if there is no transaction to take part in."""

    def query(self, text: bytes, values: Values, prepares: bool) -> FetchedRows:
        """Runs a statement. Returns its rows."""

    def script(self, statements: Sequence[str], kind: Kind = "step") -> None:
        """Runs statements without values in one round trip, and drops their rows."""


class Column(ListBinaryDumper):
    """A list of values of one type. psycopg would check all of them, several times, to find that
    out."""

    def _find_list_element(self, L: list[Any], format: PyFormat) -> Any:
        return next((item for item in L if item is not None), None)


def with_our_types(adapters: AdaptersMap) -> None:
    """Makes a connection or a cursor send integers and lists as our statements want them."""
    # One type for all integers: otherwise the size of a number would decide the plan.
    for dumper in (Int8Dumper, Int8BinaryDumper):
        adapters.register_dumper(int, dumper)
    adapters.register_dumper(list, Column)


class PsycopgCaller:
    """A connection of psycopg 3."""

    def __init__(self, connection: Any, calls: Calls) -> None:
        self._connection, self._calls = connection, calls

    def refuse_autocommit(self) -> None:
        _refuse_pipeline(self._connection)
        _refuse_idle(self._connection, "with connection.transaction(): …")

    def query(self, text: bytes, values: Values, prepares: bool) -> FetchedRows:
        # A cursor of ours: that of the caller's connection may bind values itself (Django's).
        cursor = psycopg.Cursor(self._connection, row_factory=tuple_row)
        with_our_types(cursor.adapters)
        cursor.execute(text, values, binary=True, prepare=None if prepares else False)
        return FetchedRows(cursor.fetchall() if cursor.description else [], cursor.description)

    def script(self, statements: Sequence[str], kind: Kind = "step") -> None:
        psycopg.Cursor(self._connection).execute(_joined(statements), prepare=False)


class AsyncPsycopgCaller:
    """An asynchronous connection of psycopg 3."""

    def __init__(self, connection: Any, calls: Calls) -> None:
        self._connection, self._calls = connection, calls

    def refuse_autocommit(self) -> None:
        _refuse_pipeline(self._connection)
        _refuse_idle(self._connection, "async with connection.transaction(): …")

    def query(self, text: bytes, values: Values, prepares: bool) -> FetchedRows:
        answer: FetchedRows = self._calls(lambda: self._fetched(text, values, prepares))
        return answer

    async def _fetched(self, text: bytes, values: Values, prepares: bool) -> FetchedRows:
        cursor = psycopg.AsyncCursor(self._connection, row_factory=tuple_row)
        with_our_types(cursor.adapters)
        await cursor.execute(text, values, binary=True, prepare=None if prepares else False)
        return FetchedRows(
            await cursor.fetchall() if cursor.description else [], cursor.description
        )

    def script(self, statements: Sequence[str], kind: Kind = "step") -> None:
        text = _joined(statements)
        cursor = psycopg.AsyncCursor(self._connection)
        self._calls(lambda: cursor.execute(text, prepare=False), kind)


class Psycopg2Caller:
    """A connection of psycopg2, which writes values into the text of a statement."""

    def __init__(self, connection: Any, calls: Calls) -> None:
        self._connection, self._calls = connection, calls

    def refuse_autocommit(self) -> None:
        _refuse_idle(self._connection, "connection.autocommit = False")

    def query(self, text: bytes, values: Values, prepares: bool) -> FetchedRows:
        with self._cursor() as cursor:
            cursor.execute(PLACEHOLDER.sub(r"%(\1)s", text.decode()), values)
            return FetchedRows(cursor.fetchall() if cursor.description else [], cursor.description)

    def script(self, statements: Sequence[str], kind: Kind = "step") -> None:
        with self._cursor() as cursor:
            cursor.execute("; ".join(statements))

    def _cursor(self) -> Any:
        """Returns a cursor that gives plain rows, whatever the caller's connection gives."""
        plain = sys.modules["psycopg2.extensions"].cursor
        return self._connection.cursor(cursor_factory=plain)


class AsyncpgCaller:
    """A connection of asyncpg, which wants numbered placeholders, and to know their types."""

    def __init__(self, connection: Any, calls: Calls) -> None:
        self._connection, self._calls = connection, calls

    def refuse_autocommit(self) -> None:
        if not self._connection.is_in_transaction():
            raise commits_by_itself("async with connection.transaction(): …")

    def query(self, text: bytes, values: Values, prepares: bool) -> FetchedRows:
        types = tuple((name, type_of(value)) for name, value in values.items())
        numbered, names = numbered_placeholders(text, types)
        given = [values[name] for name in names]
        rows = self._calls(lambda: self._connection.fetch(numbered, *given))
        columns = [*rows[0].keys()] if rows else []  # a record of asyncpg iterates over its values
        return FetchedRows([tuple(row) for row in rows], [(name,) for name in columns] or None)

    def script(self, statements: Sequence[str], kind: Kind = "step") -> None:
        self._calls(lambda: self._connection.execute("; ".join(statements)), kind)


def type_of(value: Any) -> str:
    """Returns the type of PostgreSQL for a value; empty if the statement must say it."""
    if isinstance(value, list):
        first = next((item for item in value if item is not None), None)
        return f"{type_of(first)}[]" if first is not None else ""
    return next((name for kind, name in TYPES.items() if isinstance(value, kind)), "")


@lru_cache(CACHED_STATEMENTS)
def numbered_placeholders(
    text: bytes, types: tuple[tuple[str, str], ...]
) -> tuple[str, tuple[str, ...]]:
    """Returns a statement with placeholders `$1`, `$2` … of these types, and their names in order.

    Without its type, the server would have to guess it from the first place that a value is used.
    """
    names: list[str] = []
    known = dict(types)

    def placeholder(match: re.Match[str]) -> str:
        name = match[1]
        if name not in names:
            names.append(name)
        type = known[name]
        return f"${names.index(name) + 1}" + (f"::{type}" if type else "")

    return PLACEHOLDER.sub(placeholder, text.decode()).replace("%%", "%"), tuple(names)


def _refuse_idle(connection: Any, how: str) -> None:
    """Raises `ValueError` for a connection that commits each statement, and is in no transaction.

    psycopg and psycopg2 have the same attributes here, and the same numbers.
    """
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise commits_by_itself(how)


def _refuse_pipeline(connection: Any) -> None:
    """Raises `ValueError` for a connection of psycopg that does not wait for answers."""
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise ValueError("`connection` is in a pipeline: leave the block of `pipeline()` first")


def _joined(statements: Sequence[str]) -> bytes:
    return "; ".join(statements).encode()


CALLERS: Mapping[Driver, Callable[[Any, Calls], PostgresCaller]] = {
    "psycopg": PsycopgCaller,
    "async psycopg": AsyncPsycopgCaller,
    "psycopg2": Psycopg2Caller,
    "asyncpg": AsyncpgCaller,
}


def caller_of(reached: CallerConnection) -> PostgresCaller:
    """Returns the caller's connection. Raises `TypeError` for one that is not of PostgreSQL."""
    refuse_other(reached, CALLERS, "PostgreSQL")
    return CALLERS[reached.driver](reached.connection, reached.calls)
