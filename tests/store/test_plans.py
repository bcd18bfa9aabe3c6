"""How the databases find the rows of every hot statement: along the index it was written for, never
through a large table.

On PostgreSQL with tables that were analysed when they were full, while they were empty, or never: a
planner that believes in an empty table must not scan one that is full. And with few rows, or with
nothing ready, which is where a quiet system is after each vacuum: a session keeps the plan that it
made then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from rhythm.store.columns import new_execution
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.postgres.claim_cursor import QueuePart
from rhythm.store.postgres.connection import PINNED, SQL
from rhythm.store.postgres.single import OFTEN_SINGLE, for_single_rows
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.rows import columns
from rhythm.store.sqlite.session import ROWS as ROWS_OF_VALUES
from rhythm.store.sqlite.session import SQL as SQLITE
from rhythm.store.sqlite.session import for_rows
from rhythm.store.sqlite.store import SqliteStore
from tests.support.postgres import Schemas

ROWS, FEW = 20_000, 200
# Of the tables, when they were analysed or the statement was planned.
NOTHING_READY, PRUNED = "planned when nothing was ready", "planned when all was pruned"
STATES = (
    "never analysed",
    "analysed when empty",
    "analysed when full",
    "planned when few",
    NOTHING_READY,
)
LARGE = (
    "ready",
    "executions",
    "workflow_execution_context",
    "history",
    "timer_tasks",
    "workflow_signals",
    "log_lines",
    "log_totals",
)

# Half of the executions are workflows, each with one task and a timer; a tenth has not ended.
FILL = """
INSERT INTO executions (id, type, name, version, queue, priority, status, parent_id, child_no, root_id, attempt, max_attempts, held,
  options, attributes, inputs, result, created_at, finished_at, timeout_at, cancel_requested_at, key)
SELECT id, type, name, '1', 'default', 0, CASE WHEN live THEN 0 ELSE 5 END, parent_id, type, root_id, 0, 1, {false}, '', '', '', '1', i,
  CASE WHEN live THEN NULL ELSE i END, i, CASE WHEN i % 7 = 0 THEN i END, CASE WHEN type = 0 THEN id END
FROM (SELECT i, i % 2 AS type, 'name' || (i % 20) AS name, i % 20 < 2 AS live,
        CASE WHEN i % 2 = 0 THEN 'w' || i ELSE 'w' || (i - 1) || '.1' END AS id,
        CASE WHEN i % 2 = 1 THEN 'w' || (i - 1) END AS parent_id, 'w' || (i - i % 2) AS root_id FROM {numbers}) AS x;
INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
SELECT id, 1, 1, 1, 0, NULL, '[]', 'null', 0 FROM executions WHERE type = 0;
INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, at)
SELECT id, n, 1, 'a', 0, 5, 'turn', 0, 0 FROM executions, (SELECT 1 AS n UNION ALL SELECT 2) AS turns;
INSERT INTO timer_tasks (execution_id, n, fire_at, fired_at)
SELECT id, n, created_at, CASE WHEN n = 2 THEN 1 END FROM executions, (SELECT 2 AS n UNION ALL SELECT 3) AS timers WHERE type = 0;
INSERT INTO workflow_signals (id, execution_id, n, name, payload, received_at, consumed_seq)
SELECT 's' || id || n, id, n, 'go', '1', 0, CASE WHEN n = 1 THEN 1 END
FROM executions, (SELECT 1 AS n UNION ALL SELECT 2) AS mails WHERE type = 0;
INSERT INTO log_lines (root_id, position, execution_id, turn, n, at, kind, level, attempt, name, worker, message)
SELECT id, n, id, 0, n, 0, n - 2, 20, 0, name, 'a', 'x' FROM executions, (SELECT 2 AS n UNION ALL SELECT 3) AS said WHERE type = 0;
INSERT INTO log_totals (root_id, lines, bytes, dropped, position, oldest_at) SELECT id, 2, 2, 0, 3, created_at FROM executions WHERE type = 0;
INSERT INTO ready (id, kind, queue, priority, order_key, state, due_at, claimed_by, claim_expires_at, fence)
SELECT 'r' || i, i % 2, 'queue' || (i % 3), 0, i, state, CASE WHEN state = 2 THEN i END, CASE WHEN state = 1 THEN 'worker' || (i % 9) END,
  CASE WHEN state = 1 THEN i END, CASE WHEN state = 1 THEN i END
FROM (SELECT i, CASE WHEN i % 10 < 8 THEN 0 WHEN i % 10 = 8 THEN 1 ELSE 2 END AS state FROM {numbers}) AS x;
"""

IDS = ["w0", "w2", "w4"]
ONES = [1, 1, 1]
TEXTS = ["", "", ""]

ALIKE = new_execution(NewExecution("", WORKFLOW, "name1", "default", timeout_s=1.0))
ALIKE = {n: v for n, v in ALIKE.items() if n not in ("id", "inputs", "root_id", "later_us")}
RANGE = dict(id="w0", first="w0.", last="w0/")
LINES_OF = dict(RANGE, root="w0")
POSTGRES: list[tuple[str, dict[str, Any], str]] = [
    ("claim", dict(worker="a", ttl_us=1, queues=["system", "queue1"], limit=10,
        **columns([QueuePart("system"), QueuePart("queue1", 0, 0, 7, "r7")], *QueuePart._fields)),
        "ready_free ready_pkey queues_pkey"),
    ("extend", dict(id=IDS, fence=ONES, ttl_us=1), "ready_pkey"),
    ("release", dict(id=IDS, fence=ONES, delay_us=1), "ready_pkey"),
    ("park", dict(id=IDS, fence=ONES, wakes=ONES), "ready_pkey"),
    ("drop", dict(id=IDS, fence=ONES), "ready_pkey"),
    ("lock", dict(ids=IDS), "ready_pkey"),
    ("lock_free", dict(ids=IDS), "ready_pkey"),
    ("wake", dict(ids=IDS, now=1), ""),
    ("claimed_by", dict(worker="worker1"), "ready_claimed"),
    ("expired", dict(dead=True, limit=10), "ready_claimed executions_pkey"),
    ("maintenance_due", dict(dead=True, forgotten_us=1), "ready_claimed executions_cancelled"),
    ("dead_workers", dict(ids=IDS, now=1), "worker_heartbeats_pkey"),
    ("forget_workers", dict(forgotten_us=1, limit=10), "ready_claimed"),
    ("workers", {}, "ready_claimed"),
    (
        "beat",
        dict(worker="a", host="", pid=1, queues="[]", concurrency=1, running=1, draining=False,
            version="", machine="", dead_after_us=1),
        "ready_claimed",
    ),
    ("leave", dict(workers=IDS), "ready_claimed ready_pkey worker_heartbeats_pkey"),
    ("keep", dict(id=IDS, fence=ONES, ttl_us=1), "ready_pkey"),
    ("load", dict(ids=IDS),
        "executions_pkey workflow_execution_context_pkey signals_waiting|signals_named"),
    ("load_tasks", {}, "executions_pkey"),
    ("cancelled", dict(ids=IDS), "executions_pkey"),
    ("undecided", dict(id=IDS, first=ONES, last=ONES, fails=[True, True, True]),
        "executions_unfinished executions_failed"),
    ("ended", dict(ids=IDS, id=IDS, n=ONES), "executions_pkey timer_tasks_pkey"),
    ("nth_unfinished", dict(id=IDS, first=ONES, last=ONES, nth=ONES), "executions_unfinished"),
    ("next_ended", dict(id=IDS, ranges=["[[1,9]]"] * 3, limit=ONES),
        "executions_pkey timer_tasks_pkey event_waits_pkey approvals_pkey"),
    ("mail", dict(ids=IDS), "signals_waiting|signals_named"),
    ("first_mail", dict(id=IDS, name=["go", None, "go"], limit=ONES),
        "signals_waiting signals_named"),
    (
        "light_turns",
        dict(id=IDS, seq=ONES, fence=ONES, status=ONES, worker=TEXTS, cause=TEXTS, statement=ONES,
            snapshot=[b"", b"", b""], owned=TEXTS,
             awaiting=TEXTS, waited_us=ONES, done_id=IDS, done_n=ONES, done_name=TEXTS, done_queue=TEXTS,
             done_inputs=TEXTS, done_status=ONES,
             done_value=TEXTS, done_attempt=ONES, done_took_us=ONES, done_options=TEXTS,
             done_fence=ONES, done_worker=TEXTS),
        "workflow_execution_context_pkey executions_pkey ready_pkey",
    ),
    (
        "advance_contexts",
        dict(id=IDS, fence=ONES, statement=ONES, snapshot=[b"", b"", b""], owned=TEXTS,
            awaiting=TEXTS, now=1),
        "workflow_execution_context_pkey",
    ),
    (
        "light_finishes",
        dict(id=IDS, seq=ONES, fence=ONES, wakes=ONES, worker=TEXTS, cause=TEXTS, statement=ONES,
            awaiting=TEXTS, value=TEXTS, first_status=ONES, first_cause=TEXTS, first_statement=ONES,
            first_waited_us=ONES, first_snapshot=[b"", b"", b""], first_owned=TEXTS, done_name=TEXTS, done_queue=TEXTS, done_inputs=TEXTS,
            done_status=ONES, done_attempt=ONES, done_options=TEXTS, done_n=ONES, done_value=TEXTS,
            done_took_us=ONES, done_id=TEXTS, done_fence=ONES, done_worker=TEXTS),
        "ready_pkey workflow_execution_context_pkey executions_pkey",
    ),
    (
        "light_ends",
        dict(id=IDS, fence=ONES, worker=TEXTS, took_us=ONES, status=ONES, result=TEXTS,
            error=TEXTS, stands=[True, True, True], cancelled_status=ONES, cancelled_result=TEXTS,
            cancelled_error=TEXTS),
        "ready_pkey executions_pkey",
    ),
    ("lock_contexts", dict(id=IDS, seq=ONES, fence=ONES), "workflow_execution_context_pkey"),
    ("lock_with_related", dict(ids=IDS, ending=IDS, id=IDS, first=ONES, last=ONES),
        "ready_pkey executions_pkey executions_unfinished"),
    (
        "start_alike",
        dict(ALIKE, ids=IDS, inputs_of=TEXTS, if_current=True, token="t1"),
        "definitions_current api_tokens_pkey",
    ),
    ("executions_of", dict(ids=IDS), "executions_pkey"),
    ("suspend_executions", dict(id=IDS, status=ONES, fence=ONES, worker=TEXTS, now=1),
        "executions_pkey"),
    ("attributes", dict(ids=IDS), "executions_pkey"),
    ("set_attributes", dict(id=IDS, attributes=TEXTS), "executions_pkey"),
    ("delete_parked", dict(id=IDS, fence=ONES, wakes=ONES), "ready_pkey"),
    ("delete_claimed", dict(id=IDS, fence=ONES), "ready_pkey"),
    ("delete_ready", dict(ids=IDS), "ready_pkey"),
    ("delete_unclaimed", dict(ids=IDS), "ready_pkey"),
    ("not_ready", dict(ids=IDS), "ready_pkey"),
    ("wakes_of", dict(ids=IDS), "ready_pkey"),
    ("finish", dict(id=IDS, status=ONES, value=TEXTS, fence=ONES, worker=TEXTS, attempt=ONES,
        took_us=ONES, now=1), "executions_pkey"),
    ("delay_tasks", dict(id=IDS, fence=ONES, delay_us=ONES, attempt=ONES, now=1), "ready_pkey"),
    ("note_attempts", dict(id=IDS, attempt=ONES, worker=TEXTS, took_us=ONES, now=1),
        "executions_pkey"),
    ("cancel_timers", dict(id=IDS, first=ONES, last=ONES, now=1), "timer_tasks_pkey"),
    ("delete_waits", dict(ids=IDS, orderly=IDS, now=1),
        "event_waits_pkey timer_tasks_pkey approvals_pkey resumes_pending"),
    ("release_timers", dict(id=IDS, first=ONES, last=ONES, now=1), "timer_tasks_pkey"),
    ("flag_children", dict(id=IDS, first=ONES, last=ONES, now=1), "executions_unfinished"),
    ("release_children", dict(id=IDS, first=ONES, last=ONES, now=1), "executions_unfinished"),
    ("consume_signals", dict(signal=IDS, id=IDS, seq=ONES), "workflow_signals_pkey"),
    (
        "insert_signals",
        dict(id=IDS, execution_id=IDS, name=TEXTS, payload=TEXTS, most=1, now=1),
        "executions_pkey workflow_signals_execution_id_n_key signals_waiting|signals_named",
    ),
    ("mailbox", dict(id="w0", signal="s"),
        "executions_pkey workflow_signals_pkey signals_waiting|signals_named"),
    ("wake_live", dict(ids=IDS), "executions_pkey"),
    ("flag_cancel", dict(ids=IDS, now=1), "executions_pkey"),
    ("pause", dict(ids=IDS, reason="", by="", timeout_us=1, then="", metadata="", now=1), "executions_pkey"),
    ("unpause", dict(ids=IDS), "executions_pkey"),
    ("decision_context", dict(id=IDS, execution_id=IDS),
        "executions_pkey execution_contributors_pkey approval_decisions_pkey"),
    ("asked_for", dict(ids=IDS), ""),
    ("end_pauses", dict(ids=IDS, now=1), "executions_pkey"),
    ("queue_again", dict(ids=IDS), "ready_pkey executions_pkey workflow_execution_context_pkey"),
    ("due_approvals", dict(now=1, limit=10), "approvals_due"),
    ("due_pauses", dict(now=1, limit=10), "executions_paused"),
    ("free_due", dict(ids=IDS, now=1), "ready_pkey"),
    ("raise_context_fences", dict(ids=IDS), "workflow_execution_context_pkey"),
    ("rescue_workflows", dict(id=IDS, seq=ONES), "ready_pkey"),
    ("rescue_tasks", dict(ids=IDS), "ready_pkey"),
    ("due_timers", dict(now=1, limit=10), "timers_due"),
    ("fire_timers", dict(id=IDS, n=ONES, now=1), "timer_tasks_pkey"),
    ("due_ready", dict(now=1, limit=10), "ready_due"),
    ("due_timeouts", dict(now=1, limit=10), "executions_timeout"),
    ("next_due", {}, "timers_due ready_due executions_timeout executions_paused approvals_due"),
    ("cancelled_tasks", dict(limit=10), "executions_cancelled ready_pkey"),
    ("parked", dict(after="w1", limit=10), "executions_live ready_pkey"),
    ("without_rows", dict(id=IDS, n=ONES), "timer_tasks_pkey executions_pkey"),
    ("wake_parked", dict(ids=IDS), "executions_pkey"),
    ("seqs_of", dict(ids=IDS), "workflow_execution_context_pkey"),
    ("existing_executions", dict(id=IDS, name=TEXTS, key=TEXTS), "executions_pkey executions_key"),
    ("old_roots", dict(age_us=1, limit=10), "executions_ended executions_pkey executions_retries"),
    *[
        (f"prune_{table}", dict(ids=IDS), f"{key}_pkey")
        for table, key in (
            ("ready", "ready"), ("contexts", "workflow_execution_context"),
            ("executions", "executions"), ("history", "history"),
            ("timers", "timer_tasks"),
        )
    ],
    ("due_waits", dict(now=1, limit=10), "waits_due"),
    ("open_waits", dict(type=["paid"], key=["k"]), "waits_open"),
    ("events_after", dict(type=["paid"], at=[1], n=[1], limit=10), "events_of_type"),
    ("waits_of", dict(id=IDS, n=ONES), "event_waits_pkey waits_seen events_pkey"),
    ("taken_events", dict(ids=IDS, events=TEXTS), "waits_taken"),
    (
        "insert_events",
        dict(id=IDS, type=TEXTS, n=ONES, data=TEXTS, published_at=ONES, provenance=TEXTS,
            disorder=1),
        "events_of_type",
    ),
    ("prune_blobs", dict(ids=IDS), "blobs_pkey"),
    ("keyed", dict(name=TEXTS, key=TEXTS), "executions_key"),
    ("retries", dict(id="w0"), "executions_retries"),
    ("family", dict(**RANGE, short=9), "executions_pkey workflow_execution_context_pkey"),
    ("family_size", dict(**RANGE, most=9),
        "executions_pkey workflow_execution_context_pkey timer_tasks_pkey blobs_pkey"),
    ("family_timers", RANGE, "timer_tasks_pkey"),
    ("family_signals", RANGE, "workflow_signals_execution_id_n_key"),
    ("prune_signals", dict(ids=IDS), "workflow_signals_execution_id_n_key"),
    ("due_schedules", dict(limit=9, without=TEXTS),
        "schedules_due schedules_queued fires_open executions_pkey"),
    ("settle_fires", dict(names=TEXTS), "executions_pkey"),
    ("trim_fires", dict(names=TEXTS, kept=100), "fires_newest"),
    ("witness", dict(id="w0", seq=1), "history_pkey"),
    ("stamps", dict(ids=IDS), "executions_pkey ready_pkey workflow_execution_context_pkey"),
    ("due", dict(id="w0"), "ready_pkey|ready_due executions_unfinished timer_tasks_pkey|timers_due"),
    ("history", dict(id="w0"), "history_pkey"),
    ("statements", dict(id="w0"), "history_pkey"),
    ("old_events", dict(age_us=1, limit=10), "events_published waits_taken"),
    ("delete_events", dict(ids=TEXTS), "events_pkey waits_taken"),
    ("members_of", dict(ids=IDS), "executions_pkey"),
    ("live_children", dict(ids=IDS, limit=5), "executions_unfinished"),
    ("recount_family", dict(root="a", limit=5, now=1, rest_us=1), "executions_live ready_pkey"),
    ("terminated_tasks", dict(limit=5), "executions_unfinished"),
    ("terminated_workflows", dict(limit=5), "executions_live"),
    ("tasks_of", dict(ids=IDS, limit=5), "executions_unfinished"),
    ("delete_ended_ready", dict(ids=IDS), "ready_pkey executions_pkey"),
    ("standing", dict(ids=IDS), "ready_pkey"),
    ("overview", dict(window_us=1, most=10, queues=10),
        "executions_live executions_ended executions_newest approvals_open|approvals_newest ready_free"),
    ("newest_failures", dict(characters=10, among=10, limit=10), "executions_ended"),
    ("root_names", dict(ids=IDS), "executions_pkey"),
    ("names", dict(prefixes=TEXTS), "executions_roots"),
    ("senders", dict(ids=IDS), "executions_pkey execution_contributors_pkey"),
    ("insert_contributors", dict(id=IDS, person=TEXTS, most=1000, everybody="*", now=1),
        "executions_pkey execution_contributors_pkey"),
    ("copy_contributors", dict(id="w1", retry_of="w0", now=1), "execution_contributors_pkey"),
    ("known_lines", dict(roots=IDS, ids=IDS), "log_lines_pkey"),
    ("set_log_totals", dict(root_id=IDS, lines=ONES, bytes=ONES, dropped=ONES, position=ONES),
        "log_totals_pkey"),
    ("read_lines", dict(**LINES_OF, after=1, level=1, limit=10), "log_lines_pkey"),
    ("last_progress", LINES_OF, "log_lines_pkey"),
    ("log_totals", dict(id="w0"), "log_totals_pkey"),
    ("old_logs", dict(age_us=1, limit=10), "log_totals_oldest"),
    ("hold_log_totals", dict(ids=IDS), "log_totals_pkey"),
    ("delete_old_lines", dict(ids=IDS, before=1), "log_lines_pkey"),
    ("settle_log_totals", dict(id=IDS, lines=ONES, bytes=ONES), "log_totals_pkey log_lines_pkey"),
    ("delete_empty_logs", dict(ids=IDS), "log_totals_pkey"),
    ("prune_log_lines", dict(ids=IDS), "log_lines_pkey"),
    ("prune_log_totals", dict(ids=IDS), "log_totals_pkey"),
]  # fmt: skip

# Those that are sent with values in place of arrays when they get one row.
SINGLE = [
    (
        name,
        {key: value[:1] if type(value) is list else value for key, value in values.items()},
        indexes,
    )
    for name, values, indexes in POSTGRES
    if name in OFTEN_SINGLE
]


# Statements that may read a whole index of a large table: one that holds but the few rows that they
# are about, or what people and services do seldom.
WHOLE_INDEX = {
    *("expired", "maintenance_due", "next_due", "cancelled_tasks"),
    *("due", "family_signals", "family_size", "keyed", "old_roots"),
}


class Plans:
    """A schema of PostgreSQL with full tables."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def of(self, text: bytes, values: dict[str, Any]) -> str:
        """The plan that is kept for a statement, whatever its values: their names become numbers,
        in the order of the values."""
        numbered = re.sub(
            r"%\((\w+)\)[sb]", lambda name: f"${list(values).index(name[1]) + 1}", text.decode()
        )
        self.connection.execute(f"PREPARE statement AS {numbered}".encode())
        try:
            given = sql.SQL(", ").join(sql.Literal(value) for value in values.values())
            call = (
                sql.SQL("EXPLAIN EXECUTE statement({})").format(given)
                if values
                else sql.SQL("EXPLAIN EXECUTE statement")
            )
            return "\n".join(row[0] for row in self.connection.execute(call).fetchall())
        finally:
            self.connection.execute("DEALLOCATE statement")


@pytest.fixture(
    scope="module",
    params=[*STATES, PRUNED],
)
def plans(request: pytest.FixtureRequest, schemas: Schemas) -> Iterator[Plans]:
    name = f"{schemas.name}_plans"
    store = PostgresStore(schemas.url, name)
    store.schema.migrate()
    store.close()
    options = " ".join(
        f"-c {setting}={value}" for setting, value in {"search_path": name, **PINNED}.items()
    )
    with psycopg.connect(schemas.url, options=options, autocommit=True) as connection:
        for table in LARGE:
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        if request.param == "analysed when empty":
            connection.execute("ANALYZE")
        rows = FEW if request.param == "planned when few" else ROWS
        connection.execute(
            FILL.format(false="false", numbers=f"generate_series(0, {rows - 1}) AS i").encode()
        )
        if request.param in ("analysed when full", NOTHING_READY):
            connection.execute("ANALYZE")
        if request.param == NOTHING_READY:
            connection.execute("DELETE FROM ready")
            connection.execute("VACUUM ANALYZE ready")
        if request.param == PRUNED:
            for table in LARGE:
                connection.execute(f"DELETE FROM {table}".encode())
                connection.execute(f"VACUUM ANALYZE {table}".encode())
        yield Plans(connection)
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def scans(plan: str) -> list[str]:
    """The large tables that a plan reads from one end to the other: all of their rows, or all of an
    index without a condition."""
    without_condition = r"[^\n]*(?:\n(?! +(?:Index Cond|->))|$)"
    whole = [
        *re.findall(r"Seq Scan on (\w+)", plan),
        *re.findall(
            (
                rf"Index(?: Only)? Scan (?:Backward )?using "
                rf"(?:\w+_pkey|executions_unfinished) on (\w+){without_condition}"
            ),
            plan,
        ),
        *re.findall(rf"Bitmap Index Scan on (executions)_unfinished{without_condition}", plan),
    ]
    return [table for table in whole if table in LARGE]


def without_condition(plan: str) -> list[str]:
    """The large tables of which a plan reads a whole index: its line has no condition below it."""
    lines = re.findall(r"using \w+ on (\w+)[^\n]*(?=\n(?! +Index Cond)|$)", plan)
    return [table for table in lines if table in LARGE]


@pytest.mark.parametrize(
    ("name", "values", "indexes"),
    [*POSTGRES, *SINGLE],
    ids=[*(case[0] for case in POSTGRES), *(f"one of {case[0]}" for case in SINGLE)],
)
def test_postgres_goes_along_the_index(
    plans: Plans, name: str, values: dict[str, Any], indexes: str
) -> None:
    text, given = (
        for_single_rows(SQL[name], values) if name in OFTEN_SINGLE else (SQL[name], values)
    )
    plan = plans.of(text, dict(given))
    found = set(re.findall(r"(?:using|Scan on) (\w+)", plan))
    assert all(found & set(one_of.split("|")) for one_of in indexes.split()), plan
    assert scans(plan) == [], plan
    assert name in WHOLE_INDEX or without_condition(plan) == [], plan


def test_tasks_of_a_step_find_their_turn_by_hash(plans: Plans) -> None:
    """As a join it takes a look at every turn for every task: 280 ms for 1,000 of them."""
    (values,) = (values for name, values, _ in POSTGRES if name == "light_turns")
    assert "hashed SubPlan" in plans.of(SQL["light_turns"], values)


READS: list[tuple[Callable[[Store], Any], str]] = [
    (lambda store: store.reading.get(IDS), "executions_pkey"),
    (lambda store: store.reading.children("w0"), "executions_pkey"),
    (
        lambda store: store.people.approvals(None, "open", None, None, 10, ["name1"]),
        "approvals_open|approvals_newest",
    ),  # the second, where there are none
]
READ_BY = ["get", "children", "approvals by names"]


# What people read now and then may take a scan after everything was pruned, until the next analysis.
@pytest.mark.parametrize("plans", STATES, indirect=True)
@pytest.mark.parametrize(("read", "index"), READS, ids=READ_BY)
def test_postgres_reads_along_the_index(
    plans: Plans,
    schemas: Schemas,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Store], Any],
    index: str,
) -> None:
    store = schemas.empty_store()
    asked: list[tuple[bytes, dict[str, Any]]] = []
    query = store.db.query
    monkeypatch.setattr(
        store.db, "query", lambda text, values: asked.append((text, values)) or query(text, values)
    )
    read(store)
    ((text, values),) = asked
    plan = plans.of(
        text, {name: value for name, value in values.items() if f"%({name})".encode() in text}
    )
    assert re.search(rf"(using|Scan on) ({index})\b", plan), plan
    assert scans(plan) == [], plan


# SQLite

# a statement and the index of ours that it goes along; all others go along the key of their table
ALONG = {
    "any_free": "ready_free", "free_rows": "ready_free", "claimed_by": "ready_claimed",
    "expired": "ready_claimed", "due_ready": "ready_due",
    "unfinished_child": "executions_unfinished", "failed_child": "executions_failed",
    "flag_children": "executions_unfinished",
    "release_children": "executions_unfinished", "mail": "signals_waiting",
    "mailed": "signals_waiting", "first_mail": "signals_waiting", "named_mail": "signals_named",
    "nth_unfinished": "executions_unfinished", "last_taken": "waits_seen", "taken_events": "waits_taken",
    "last_published": "events_of_type",
    "unconsumed": "signals_waiting", "due_timers": "timers_due",
    "due_timeouts": "executions_timeout", "next_due": "timers_due",
    "cancelled_tasks": "executions_cancelled", "parked": "executions_live",
    "names": "executions_roots", "existing_execution": "executions_key", "keyed": "executions_key",
    "retries": "executions_retries",
    "expire_claims": "ready_claimed", "old_events": "events_published",
    "forget_waits": "waits_taken",
    "claimed_now": "ready_claimed", "workers": "ready_claimed", "maintenance_due": "ready_claimed",
    "forget_workers": "ready_claimed",
    "old_roots": "executions_ended", "delete_events": "events_published", "due_waits": "waits_due",
    "open_waits": "waits_open",
    "events_after": "events_of_type", "due": "executions_unfinished", "load": "resumes_",
    "concerned": "resumes_of", "resumes": "resumes_of", "last_resumes": "resumes_of",
    "trace": "resumes_of",
    "executed_resumes": "resumes_", "unseen_resumes": "resumes_",
    "due_approvals": "approvals_due",
    "due_pauses": "executions_paused",
    "live_children": "executions_unfinished", "tasks_of": "executions_unfinished",
    "terminated_tasks": "executions_unfinished",
    "terminated_workflows": "executions_live", "recount_family": "executions_live",
    "due_schedules": "schedules_due", "schedules_of": "schedules_origin", "fires": "fires_newest",
    "trim_fires": "fires_newest",
    "keep_sources": "definitions_source",
    "delete_fires": "fires_newest", "running_fires": "fires_", "settle_fires": "fires_open",
    "known_slot": "fires_slot", "old_logs": "log_totals_oldest",
    "overview": "executions_live", "newest_failures": "executions_ended",
}  # fmt: skip
# the last are `terminations` and
SMALL = r"fences|queues|task_declarations|api_tokens|audit_head|event_triggers|terminations|t\b|h\b"
# `worker_heartbeats`
MAY_SCAN = (
    rf"SCAN (\w+ VIRTUAL TABLE|(\d+ )?CONSTANT ROW|w$|json_each|{SMALL}|d USING INDEX "
    rf"definitions_current|r USING INDEX ready_claimed"
    r"|s USING INDEX schedules_queued|\(subquery|schedules USING "
    r"INDEX|line|part|found|family|f$|moments|asked|numbers)"
)
PER_NAME = (
    "SCAN n VIRTUAL TABLE",
    "CORRELATED LIST SUBQUERY",
    "CORRELATED SCALAR SUBQUERY",
    "SCAN a USING INDEX approvals_open",
)
READ_BY_PARTS = {"execution", "approval", "audit"}  # the beginning of several: see `READS`


@pytest.fixture(scope="module", params=["never analysed", "analysed when full"])
def full_file(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path_factory.mktemp("plans") / "full.db"))
    store.schema.migrate()
    store.db.connection.execute("PRAGMA synchronous = OFF")
    numbers = (
        f"(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < "
        f"{ROWS - 1}) SELECT i FROM n) AS n"
    )
    store.db.connection.executescript(FILL.format(false="0", numbers=numbers))
    if request.param == "analysed when full":
        store.db.connection.execute("ANALYZE")
    yield store
    store.close()


def with_values(name: str) -> tuple[str, Any]:
    """A statement, and some values for it."""
    text = SQLITE[name]
    if ROWS_OF_VALUES in text:
        text, _ = for_rows(text, tuple(re.findall(r"\bx\.(\w+)", text)), 3)
    return text, dict.fromkeys(re.findall(r":(\w+)", text), 1) or ["[]"] * text.count("?")


def steps_of(store: SqliteStore, text: str, values: Any) -> list[str]:
    return [row[3] for row in store.db.connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


@pytest.mark.parametrize("name", sorted(SQLITE.keys() - READ_BY_PARTS))
def test_sqlite_goes_along_the_index(full_file: SqliteStore, name: str) -> None:
    steps = steps_of(full_file, *with_values(name))
    assert [
        step for step in steps if step.startswith("SCAN") and not re.match(MAY_SCAN, step)
    ] == []
    found = " ".join(step for step in steps if step.startswith(("SEARCH", "SCAN")))
    assert ALONG.get(name, "") in found
    if name not in ALONG:
        assert not re.search(r"INDEX (?!sqlite_autoindex|definitions_current)\w+ ", found), found


@pytest.mark.parametrize(
    "name", [name for name, text in SQLITE.items() if re.match(r"UPDATE[^;]+\nFROM", text)]
)
def test_update_of_many_rows_goes_through_them_and_not_through_the_table(
    tmp_path: Path, name: str
) -> None:
    """Also if the tables were analysed when they were as good as empty."""
    with closing(SqliteStore(str(tmp_path / "few.db"))) as store:
        store.schema.migrate()
        store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
        store.db.connection.execute("ANALYZE")
    with closing(SqliteStore(str(tmp_path / "few.db"))) as store:
        steps = steps_of(store, *with_values(name))
    assert steps[-1].startswith("SEARCH"), steps


@pytest.mark.parametrize(("read", "index"), READS, ids=READ_BY)
def test_sqlite_reads_along_the_index(
    full_file: SqliteStore, read: Callable[[Store], Any], index: str
) -> None:
    asked: list[str] = []
    read(full_file)  # opens the connection of those who only look
    (reader,) = full_file.db.readers._idle
    reader.set_trace_callback(asked.append)
    read(full_file)
    reader.set_trace_callback(None)
    steps = steps_of(full_file, asked[0], ())
    assert all(
        step.startswith(
            (
                "SEARCH",
                "LIST SUBQUERY",
                "USE TEMP",
                "SCAN e USING INDEX executions_newest",
                "SCAN json_each",
                *PER_NAME,
            )
        )
        for step in steps
    ), steps
    where = str(steps) if "CORRELATED" in str(steps) else steps[0]
    assert re.search(index.replace("executions_pkey", "sqlite_autoindex_executions_1"), where)
