"""The columns of statements, from the fields of records: one list for each record, whatever reads or writes it, on both databases.

In an `.sql` file the name of a record stands for its columns:

    {Claim}                 id, kind, queue …
    {e.Claim}               e.id AS id, e.kind AS kind, e.queue AS queue …
    {:Claim}                :id, :kind, :queue …                                     the values that are given (SQLite)
    {%Claim}                %(id)s::text[], %(kind)s::bigint[] …                     a column of values each (PostgreSQL)
    {%old_Claim}            %(old_id)s::text[] …
    {Claim = excluded}      id = excluded.id, kind = excluded.kind …
    {e.Claim but id, kind}  all but these, which the statement gets from elsewhere

Rows are read by name (`rows`), so what the statement gets from elsewhere may stand anywhere in its list, with `AS` its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rhythm.record import Record
from rhythm.store.base import Claim, Execution, Loaded, LoadedTask, Mail
from rhythm.store.rows import field_types

RECORDS: tuple[type[Record], ...] = (Claim, Execution, Loaded, LoadedTask, Mail)

# Fields that are no columns, of records that are written or have more to tell than their table.
NO_COLUMNS: Mapping[type[Record], str] = {}

TYPES = {"str": "text", "int": "bigint", "bool": "bool", "float": "float8", "bytes": "bytea"}  # of PostgreSQL
PLACEHOLDER = re.compile(r"\{(?:(\w+)\.|([:%])([a-z]+_)?)?([A-Z]\w*)( = excluded)?(?: but ([\w, ]+))?\}")


def columns_of(record: type[Record]) -> tuple[str, ...]:
    """The columns of a record, in the order of its fields."""
    others = NO_COLUMNS.get(record, "").split()
    return tuple(name for name in record._fields if name not in others)


def given(record: Record) -> dict[str, Any]:
    """What a record has for its columns."""
    return {name: getattr(record, name) for name in COLUMNS[type(record).__name__]}


COLUMNS = {record.__name__: columns_of(record) for record in RECORDS}
_TYPES = {record.__name__: field_types(record) for record in RECORDS}


def filled(text: str) -> str:
    """A statement with its columns in place of the names of records. `KeyError` for a record that is not known."""
    return PLACEHOLDER.sub(_columns, text)


def _columns(found: re.Match[str]) -> str:
    table, values, prefix, record, excluded, but = found.groups(default="")
    names = COLUMNS[record]
    left_out = {name.strip() for name in but.split(",")} - {""}
    if unknown := left_out - {*names}:
        raise KeyError(f"{record} has no column {', '.join(sorted(unknown))}")
    return ", ".join(_column(name, table, values, prefix, excluded, record) for name in names if name not in left_out)


def _column(name: str, table: str, values: str, prefix: str, excluded: str, record: str) -> str:
    if values == "%":
        return f"%({prefix}{name})s::{_type(_TYPES[record][name])}[]"
    if excluded:
        return f"{name} = excluded.{name}"
    return f"{table}.{name} AS {name}" if table else f":{prefix}{name}" if values else name


def _type(written: str) -> str:
    """What PostgreSQL calls the type of a field."""
    return TYPES[written.removesuffix(" | None")]
