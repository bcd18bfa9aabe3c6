"""Every column of every table has a field in the record that is made of its rows, or stands on a
list of those that need none.

Whoever adds a column decides about it here: a test turns red until it is read, or is said not to
be.
"""

from __future__ import annotations

import re

import pytest

from rhythm.record import Record
from rhythm.store.access import AuditRow, Head, StoredToken
from rhythm.store.approvals import ResumeRequest, StoredApproval, StoredDecision
from rhythm.store.events import Event, Wait
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import Execution, StoredExecution, StoredSignal, StoredTimer
from rhythm.store.interfaces.logs import LogLine, LogTotals
from rhythm.store.interfaces.reading import Transition
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Loaded
from rhythm.store.interfaces.workers import Declaration, SeenWorker
from rhythm.store.schedules import Fire, Schedule
from rhythm.store.sqlfile import statements
from rhythm.store.triggers import Trigger
from tests.support.stores import KINDS, Stores, rows

# A table, the record, and the columns that have no field in it.
READ: list[tuple[str, type[Record], str]] = [
    (  # as people see it
        "executions", Execution,
        ("authority child_no fence held key options paused_then priority timed_out_at "
                "timeout_at timeout_us worker"),
    ),
    # as a retry takes it over: what may be large, and what people may have set, is copied within
    # the database or begins anew
    (
        "executions", StoredExecution,
        ("attributes inputs key options paused_at paused_by paused_reason paused_then paused_metadata "
                "paused_until result timed_out_at timeout_at"),
    ),
    ("workflow_execution_context", Loaded, "awaiting execution_id format statement updated_at"),
    ("ready", Claim, "claim_expires_at claimed_by crash_seq due_at order_key priority state"),
    ("history", Transition, ""),
    ("log_lines", LogLine, ""),
    ("log_totals", LogTotals, "oldest_at"),
    ("timer_tasks", StoredTimer, ""),
    ("workflow_signals", StoredSignal, "payload"),
    ("events", Event, ""),
    ("event_waits", Wait, "deadline_at ended_at event_id held key settled status timeout_us"),
    ("event_triggers", Trigger, ""),
    ("approvals", StoredApproval, ""),
    ("approval_decisions", StoredDecision, ""),
    ("execution_resume_requests", ResumeRequest, ""),
    ("schedules", Schedule, "revision"),
    ("schedule_fires", Fire, "n open"),
    ("api_tokens", StoredToken, ""),
    ("audit", AuditRow, ""),
    ("audit_head", Head, "one"),
    ("worker_heartbeats", SeenWorker, "dead_after_us worker_id"),
    ("task_declarations", Declaration, "declared_at"),
    ("workflow_definitions", Definition, "registered_at registration source_hash"),
]  # fmt: skip
# Tables of two or three columns, each with a meaning of its own to the statements that use it.
SMALL = (
    "blobs event_types execution_attributes execution_contributors families fences leases queues schema_version "
    "terminations workflow_sources"
).split()


@pytest.fixture
def tables(stores: Stores) -> dict[str, set[str]]:
    """The columns of every table, as the database knows them."""
    store = stores.empty_store(lambda: 1)
    found: dict[str, set[str]] = {}
    for table, column in rows(store, CATALOGUE[kind_of(store)]):
        found.setdefault(table, set()).add(column)
    return found


CATALOGUE = {
    "sqlite": (
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE "
        "m.type = 'table'"
    ),
    "postgres": (
        "SELECT table_name::text, column_name::text FROM information_schema.columns JOIN "
        "information_schema.tables USING (table_schema, table_name) WHERE "
        "table_schema = current_schema() AND table_type = 'BASE TABLE'"
    ),
}


def kind_of(store: Store) -> str:
    return store.package.rpartition(".")[2]


def test_every_table_is_read_as_a_record_or_is_small(tables: dict[str, set[str]]) -> None:
    assert tables.keys() - {"fences"} == {table for table, _, _ in READ} | {*SMALL} - {"fences"}


@pytest.mark.parametrize(
    ("table", "record", "others"),
    READ,
    ids=[f"{table}-{record.__name__}" for table, record, _ in READ],
)
def test_every_column_has_a_field_or_needs_none(
    tables: dict[str, set[str]], table: str, record: type[Record], others: str
) -> None:
    without, listed = tables[table] - set(record._fields), set(others.split())
    assert without - listed == set(), f"columns of {table} that {record.__name__} lacks"
    # SQLite numbers the rows of schedule_fires itself
    assert listed - without <= {"n"}, "columns that are gone, or are read"


@pytest.mark.parametrize("kind", KINDS)
def test_retry_keeps_every_column_that_a_new_execution_has(kind: str) -> None:
    """But for the key: the first one keeps that."""
    sql = statements(f"rhythm.store.{kind}", "queries.sql")
    start = "insert_execution" if kind == "sqlite" else "start_executions"
    new, alike, stored = (inserted(sql, name) for name in (start, "start_alike", "insert_stored"))
    assert new - stored == {"key"}
    assert alike == new


def inserted(sql: dict[str, str], name: str) -> set[str]:
    """The columns of executions that a statement fills."""
    text = sql.get(name) or sql[f"{name}s"]
    (columns,) = re.findall(r"INSERT INTO executions \(([^)]+)\)", text)
    return set(re.findall(r"\w+", columns))
