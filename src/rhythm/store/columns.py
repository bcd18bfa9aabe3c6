"""The columns of statements, made from the fields of records.

A record has one list of columns for all statements that read or write it, on both databases.

In an `.sql` file the name of a record stands for its columns:

    {Claim}                 id, kind, queue …
    {e.Claim}               e.id AS id, e.kind AS kind, e.queue AS queue …
    {:Claim}                :id, :kind …, or %(id)s, %(kind)s …    the values that are given
    {%Claim}                %(id)s::text[], %(kind)s::bigint[] …   arrays of values (PostgreSQL)
    {$Claim}                json_extract(value, '$.id') AS id …    of a list of objects (SQLite)
    {%old_Claim}            %(old_id)s::text[] …
    {Claim = excluded}      id = excluded.id, kind = excluded.kind …
    {e.Claim but id, kind}  all but these, which the statement gets from elsewhere

Rows are read by name (`rows`), so columns that the statement gets from elsewhere may stand anywhere
in its list, with `AS` and their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from rhythm.record import Record
from rhythm.store.access import AuditRow, Grant, StoredToken
from rhythm.store.approvals import NewApproval, ResumeRequest, StoredApproval, StoredDecision
from rhythm.store.audit_checks import AuditedDecision, TokenAct, TokenRow
from rhythm.store.doctor import Child, Mailed
from rhythm.store.events import Event, Wait
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.definitions import Definition, Listed
from rhythm.store.interfaces.executions import (
    Execution,
    NewExecution,
    Retry,
    StoredExecution,
    StoredSignal,
    StoredTimer,
)
from rhythm.store.interfaces.logs import LogLine, LogTotals
from rhythm.store.interfaces.messages import Mail, NewWait
from rhythm.store.interfaces.operating import Standing
from rhythm.store.interfaces.reading import Transition
from rhythm.store.interfaces.turns import Done, Loaded, LoadedTask
from rhythm.store.interfaces.workers import Beat, Declaration, SeenWorker
from rhythm.store.reading import Place
from rhythm.store.rows import field_types
from rhythm.store.schedules import Fire, Schedule
from rhythm.store.triggers import Trigger

RECORDS: tuple[type[Record], ...] = (
    AuditRow, Beat, Child, Claim, AuditedDecision, Declaration, Definition, Done, Event, Execution,
    Fire,
    Grant, Listed, Loaded, LoadedTask, LogLine, LogTotals, Mail, Mailed, NewApproval,
    NewExecution, NewWait, Place,
    ResumeRequest, Retry, Schedule, SeenWorker, Standing, StoredApproval, StoredDecision,
    StoredExecution, StoredSignal, StoredTimer, StoredToken, TokenAct, TokenRow, Transition,
    Trigger, Wait,
)  # fmt: skip

# Fields that are not columns of the table: other columns are computed from them, or they belong to
# another table.
NO_COLUMNS: Mapping[type[Record], str] = {
    Beat: "worker dead_after_s",
    Definition: "source on queue timeout_s schedules",
    Done: "n value took_us",
    Grant: "expires_s",
    NewApproval: "timeout_s",
    NewExecution: "timeout_s delay_s later_us snapshot failed contributors",
    NewWait: "timeout_s",
    StoredExecution: "source seq statement snapshot owned awaiting ends_alike",
    StoredSignal: "source",
    StoredTimer: "anew",
    StoredToken: "now",
}
US = 1_000_000

# The PostgreSQL names of field types, as the types are written.
TYPES = {
    "str": "text", "int": "bigint", "bool": "bool", "float": "float8", "bytes": "bytea",
    "StatusNumber": "bigint", "AfterDeadline": "text", "ApprovalOutcome": "text", "Choice": "text",
    "LineKind": "bigint",
    "tuple[str, ...]": "text",  # JSON
}  # fmt: skip
PLACEHOLDER = re.compile(
    r"\{(?:(\w+)\.|([:%$])([a-z]+_)?)?([A-Z]\w*)( = excluded)?(?: but ([\w, ]+))?\}"
)


def columns_of(record: type[Record]) -> tuple[str, ...]:
    """Returns the columns of a record, in the order of its fields."""
    others = NO_COLUMNS.get(record, "").split()
    return tuple(name for name in record._fields if name not in others)


COLUMNS = {record.__name__: columns_of(record) for record in RECORDS}
_TYPES = {record.__name__: field_types(record) for record in RECORDS}
_new_execution = attrgetter(*COLUMNS["NewExecution"])


def given(record: Record) -> dict[str, Any]:
    """Returns the values of a record for its columns, by name."""
    return {name: getattr(record, name) for name in COLUMNS[type(record).__name__]}


def new_execution(new: NewExecution) -> dict[str, Any]:
    """Returns the values of a new execution for its columns, and for the columns that are computed
    from other fields, by name."""
    return {name: column[0] for name, column in new_executions([new]).items()}


def new_executions(executions: Sequence[NewExecution]) -> dict[str, list[Any]]:
    """Returns the values of new executions, a list for each column: see `new_execution`."""
    rows = zip(*map(_new_execution, executions), strict=True)
    columns = dict(zip(COLUMNS["NewExecution"], map(list, rows), strict=True))
    columns["root_id"] = [new.root_id or new.id for new in executions]
    columns["timeout_us"] = [_us(new.timeout_s) for new in executions]
    columns["delay_us"] = [int(new.delay_s * US) for new in executions]
    columns["later_us"] = [new.later_us for new in executions]
    return columns


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * US)


def filled(text: str, value: str = ":{}") -> str:
    """Returns a statement with columns in place of the names of records.

    `KeyError` for an unknown record or column. `value`: how the database writes a value that is
    given by name; `{type}` in it is the type's name in PostgreSQL.
    """
    return PLACEHOLDER.sub(lambda found: ", ".join(_columns(found, value)), text)


def _columns(found: re.Match[str], value: str) -> Iterator[str]:
    table, values, prefix, record, excluded, but = found.groups(default="")
    left_out = [name.strip() for name in but.split(",") if name]
    if unknown := {*left_out} - {*COLUMNS[record]}:
        raise KeyError(f"{record} has no column {', '.join(sorted(unknown))}")
    for name in COLUMNS[record]:
        if name in left_out:
            continue
        if excluded:
            yield f"{name} = excluded.{name}"
        elif table:
            yield f"{table}.{name} AS {name}"
        elif values == ":":
            yield value.format(prefix + name, type=_type(_TYPES[record][name]))
        elif values == "%":
            yield f"%({prefix}{name})s::{_type(_TYPES[record][name])}[]"
        elif values == "$":
            yield f"json_extract(value, '$.{name}') AS {name}"
        else:
            yield name


def _type(written: str) -> str:
    """Returns the PostgreSQL name of a field's type."""
    return TYPES[written.removesuffix(" | None")]
