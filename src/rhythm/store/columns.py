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
from operator import attrgetter
from typing import Any

from rhythm.record import Record
from rhythm.store.base import (
    Claim,
    Done,
    Execution,
    Loaded,
    LoadedTask,
    Mail,
    NewExecution,
    Retry,
    StoredExecution,
    StoredSignal,
    StoredTimer,
)
from rhythm.store.rows import field_types

RECORDS: tuple[type[Record], ...] = (
    Claim, Done, Execution, Loaded, LoadedTask, Mail, NewExecution, Retry, StoredExecution, StoredSignal, StoredTimer,
)  # fmt: skip

# Fields that are no columns of the table: others are made of them, or they are of another table.
NO_COLUMNS: Mapping[type[Record], str] = {
    Done: "n value took_us",
    NewExecution: "timeout_s delay_s later_us snapshot failed contributors",
    StoredExecution: "source seq statement snapshot owned awaiting ends_alike",
    StoredSignal: "source",
    StoredTimer: "anew",
}
US = 1_000_000

TYPES = {"str": "text", "int": "bigint", "bool": "bool", "float": "float8", "bytes": "bytea"}  # of PostgreSQL
PLACEHOLDER = re.compile(r"\{(?:(\w+)\.|([:%])([a-z]+_)?)?([A-Z]\w*)( = excluded)?(?: but ([\w, ]+))?\}")


def columns_of(record: type[Record]) -> tuple[str, ...]:
    """The columns of a record, in the order of its fields."""
    others = NO_COLUMNS.get(record, "").split()
    return tuple(name for name in record._fields if name not in others)


COLUMNS = {record.__name__: columns_of(record) for record in RECORDS}
_TYPES = {record.__name__: field_types(record) for record in RECORDS}
_new_execution = attrgetter(*COLUMNS["NewExecution"])


def new_execution(new: NewExecution) -> dict[str, Any]:
    """What a new execution has for its columns, and for those that are made of something else."""
    row = dict(zip(COLUMNS["NewExecution"], _new_execution(new), strict=True))
    row["root_id"] = new.root_id or new.id
    row["timeout_us"] = None if new.timeout_s is None else int(new.timeout_s * US)
    row["delay_us"], row["later_us"] = int(new.delay_s * US), new.later_us
    return row


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
