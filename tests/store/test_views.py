"""The views for people with SQL: the same on both databases and on their page, true, quick where the
page says so, and never in the way of a migration."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rhythm.app.views import paused_at, paused_reason
from rhythm.errors import StoreError
from rhythm.ir.awaiting import KINDS as KINDS_OF_AWAITS
from rhythm.store import views as made
from rhythm.store.access import Actor
from rhythm.store.interfaces.store import Store
from rhythm.store.postgres import connection
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlfile import migrations
from rhythm.store.sqlite.store import SqliteStore
from tests.store.test_plans import FILL, ROWS
from tests.support.postgres import Schemas
from tests.support.stores import KINDS, rows, sqlite_in_memory

NOW = 1_800_000_000_000_000
BEAT = int(datetime.now(UTC).timestamp() * 1e6) + 10**9  # of workers that live, on any clock
PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
VIEWS = list(made.views())
NEWEST = migrations("rhythm.store.sqlite")[-1][0]
# the types of the page, as PostgreSQL has them
TYPES = {
    "text": {"text"},
    "number": {"bigint", "integer", "smallint"},
    "time": {"timestamp with time zone"},
    "JSON": {"json"},
    "boolean": {"boolean"},
    "seconds": {"double precision"},
    "µs": {"bigint"},
}


# what the page says


def documented() -> dict[str, dict[str, str]]:
    """The columns of each view and their types, as the page has them."""
    parts = re.split(r"^### (\w+)\n", PAGE.partition("## The views")[2], flags=re.MULTILINE)[1:]
    line = re.compile(r"^\| `(\w+)` \| (\S+) \| \S.*\. \|$", re.MULTILINE)
    return {
        name: dict(line.findall(text.partition("\n## ")[0]))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_page_has_a_sentence_for_each_column_of_each_view_in_their_order(schemas: Schemas) -> None:
    schemas.empty_store()
    found: dict[str, dict[str, str]] = {}
    for view, column, kind in schemas.admin.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE "
        "table_schema = %s AND table_name = ANY(%s) ORDER BY table_name, ordinal_position",
        [schemas.name, VIEWS],
    ):
        found.setdefault(view, {})[column] = kind
    said = documented()
    assert list(said) == VIEWS
    assert {view: list(columns) for view, columns in said.items()} == {
        view: list(found[view]) for view in VIEWS
    }
    wrong = [
        (view, column, kind, found[view][column])
        for view, columns in said.items()
        for column, kind in columns.items()
        if found[view][column] not in TYPES[kind]
    ]
    assert wrong == []


def test_page_grants_all_views() -> None:
    (grant,) = re.findall(r"GRANT SELECT ON (.*?) TO reporting;", PAGE, re.DOTALL)
    assert re.findall(r"rhythm\.(\w+)", grant) == VIEWS


# what they show


def put(store: Store, table: str, **columns: Any) -> None:
    marks = ", ".join("(1 = 1)" if value is True else "(1 = 0)" if value is False else "?"
                      for value in columns.values())  # fmt: skip
    rows(
        store,
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",
        [value for value in columns.values() if type(value) is not bool],
    )


def execution(store: Store, id: str, **columns: Any) -> None:
    parent, _, n = id.rpartition(".")
    known = dict(
        id=id, type=1 if parent else 0, name="work" if parent else "order", version="v1", queue="default",
        priority=0, status=0, parent_id=parent or None, child_no=int(n) if parent else 0,
        root_id=id.partition(".")[0], attempt=0, max_attempts=1, options="{}", attributes="{}",
        inputs="null", created_at=NOW,
    )  # fmt: skip
    put(store, "executions", **{**known, **columns})


def context(store: Store, id: str, **columns: Any) -> None:
    known = dict(
        execution_id=id, seq=1, fence=1, format=1, statement=3, snapshot=b'{"v":1}', owned="[]",
        awaiting="null", updated_at=NOW + 5,
    )  # fmt: skip
    put(store, "workflow_execution_context", **{**known, **columns})


HOSTILE = "\x1b[31m\u202e'\";--" + "x" * 1_000_000
ERROR = json.dumps({"code": "Boom", "message": "a\0b", "data": None})


def fill(store: Store) -> None:
    """Rows of every table, with what is rare and what is odd."""
    execution(
        store,
        "A",
        status=1,
        started_at=NOW + 1,
        key="k",
        started_by="ann",
        attributes='{"customer":"c1"}',
        inputs='{"n": 1}',
        timeout_us=1_500_000,
        priority=2,
    )
    context(store, "A", awaiting='{"op":"task","n":1,"name":"work"}')
    execution(store, "A.1", attempt=1, max_attempts=5)
    put(store, "ready", id="A.1", kind=1, queue="default", priority=2, order_key=NOW, state=2,
        due_at=NOW + 7_000_001, attempt=2)  # fmt: skip
    execution(store, "A.2", status=5, result='{"ok":true}', started_at=NOW + 10,
              finished_at=NOW + 2_000_010, worker="w1")  # fmt: skip
    execution(store, "B", status=2, started_at=NOW)
    context(
        store,
        "B",
        awaiting='{"op":"race","n":1,"items":[{"op":"approval","n":2,"name":"finance"}]}',
    )
    execution(store, "C", status=1, paused_at=NOW + 9, paused_reason="", paused_by="bob",
              paused_until=NOW + 10**6, paused_metadata='{"ticket":7}')  # fmt: skip
    context(store, "C", awaiting='{"op":"sleep","n":1}', snapshot=b"zcompressed")
    execution(store, "D", status=6, error=ERROR, finished_at=NOW, retry_of="A")
    context(store, "D", snapshot=None)
    execution(store, "E", status=0)
    put(store, "ready", id="E", kind=0, queue="system", priority=0, order_key=NOW, state=1,
        claimed_by="w1", claim_expires_at=1, fence=1)  # fmt: skip
    execution(store, "F", status=2)
    context(store, "F", awaiting='{"op":"event","n":1,"name":"paid"}', snapshot=b"@")
    put(store, "blobs", execution_id="F", data=b"zzz")
    execution(store, "G", status=7, finished_at=10**18, created_at=-1, started_at=-(10**18),
              error='{"code":"a\\u0000","message":"\\ud800","data":null}')  # fmt: skip
    execution(store, "H", name=HOSTILE[:200], inputs=json.dumps(HOSTILE), paused_at=NOW, paused_reason=HOSTILE[:1000],
              status=8, finished_at=NOW)  # fmt: skip
    put(store, "history", execution_id="A", seq=1, fence=1, worker="w1", from_status=0, to_status=1,
        cause="start", statement=3, at=NOW)  # fmt: skip
    put(store, "history", execution_id="A.1", seq=1, fence=1, worker="w1", from_status=0, to_status=0,
        cause="attempt failed", statement=0, at=NOW, error=ERROR)  # fmt: skip
    asked = dict(execution_id="B", role="finance", reason=HOSTILE[:4000], data="[1]", quorum=2, four_eyes=True,
                 stages="[]", notify="null", on_deadline="expire", created_at=NOW)  # fmt: skip
    put(store, "approvals", id="B.2", n=2, held=False, deadline_at=NOW + 1, **asked)
    put(store, "approvals", id="B.3", n=3, held=True, **asked)
    put(store, "approvals", id="B.4", n=4, held=False, ended_at=NOW + 500_000, status=7, **asked)
    put(store, "approvals", id="B.5", n=5, held=False, ended_at=NOW, status=5, decision="approved",
        decided_by='["ann","bob"]', comment="ok", **asked)  # fmt: skip
    put(store, "approval_decisions", approval_id="B.5", n=1, actor="ann", role="finance", decision="approve",
        comment="", shown="abc", at=NOW, stage=0)  # fmt: skip
    put(store, "timer_tasks", execution_id="A", n=3, delay_us=30_000_000, fire_at=NOW + 30_000_000)
    put(store, "timer_tasks", execution_id="A", n=4, until_at=-5, fire_at=-5, fired_at=NOW)
    put(store, "timer_tasks", execution_id="A", n=5, delay_us=1, cancelled_at=NOW)
    put(store, "timer_tasks", execution_id="A", n=6, delay_us=1)
    put(store, "workflow_signals", id="s1", execution_id="A", n=1, name="go", payload='"x"', received_at=NOW,
        consumed_seq=2)  # fmt: skip
    put(
        store,
        "workflow_signals",
        id="s2",
        execution_id="A",
        n=2,
        name="go",
        payload="null",
        received_at=NOW,
    )
    put(store, "events", id="e1", type="paid", n=1, data='{"id":7}', published_at=NOW)
    for n, status, event, held, ended in (
        (1, None, None, False, None), (2, None, None, True, None), (3, 5, "e1", False, NOW),
        (4, 6, None, False, NOW), (5, 7, None, False, NOW),
    ):  # fmt: skip
        put(store, "event_waits", execution_id="F", n=n, type="paid", wanted='{"id":7}', since=NOW, held=held,
            status=status, event_id=event, ended_at=ended)  # fmt: skip
    resume = dict(execution_id="A", reason="", requested_at=NOW)
    put(store, "execution_resume_requests", triggered_by="manual", triggered_by_id="ann", trigger_data='{"x":1}',
        executed_at=NOW, error_message="no", metadata='{"t":1}', **resume)  # fmt: skip
    put(
        store,
        "execution_resume_requests",
        triggered_by="event",
        triggered_by_id="e1",
        trigger_data='{"y":2}',
        **resume,
    )
    beat = dict(
        pid=7,
        host="h",
        machine="",
        concurrency=8,
        running=1,
        version="1",
        started_at=NOW,
        dead_after_us=30_000_000,
    )
    put(
        store,
        "worker_heartbeats",
        worker_id="w1",
        queues='["default", "mail", "mail"]',
        draining=False,
        beat_at=BEAT,
        **beat,
    )
    put(
        store,
        "worker_heartbeats",
        worker_id="w2",
        queues='["mail"]',
        draining=True,
        beat_at=BEAT,
        **beat,
    )
    put(
        store,
        "worker_heartbeats",
        worker_id="w3",
        queues='["mail"]',
        draining=False,
        beat_at=5,
        **beat,
    )
    put(store, "queues", name="slow", paused_at=NOW, paused_by="ann", paused_reason=HOSTILE[:1000])
    for n, version in ((1, "v1"), (2, "v2")):
        put(store, "workflow_sources", hash=f"hash{n}", text=f"text {n}")
        put(store, "workflow_definitions", name="order", version=version, language="flow", file="f.flow", registered_at=NOW,
            registration=n, source_hash=f"hash{n}", program="{}")  # fmt: skip
    put(store, "schedules", name="s", workflow="order", tz="UTC", every_us=60_000_000, anchor_at=0, inputs="{}", overlap="skip",
        catch_up=1, origin="", next_at=NOW, paused_by="", paused_reason="", created_at=NOW, created_by="", updated_at=NOW)  # fmt: skip
    put(store, "schedule_fires", schedule="s", slot_at=NOW, manual=False, outcome="started", execution_id="A", detail="", at=NOW,
        open=True)  # fmt: skip


@pytest.fixture
def filled(schemas: Schemas) -> tuple[PostgresStore, SqliteStore]:
    postgres, sqlite = schemas.empty_store(lambda: NOW), sqlite_in_memory(lambda: NOW)
    for store in (postgres, sqlite):
        fill(store)
        store.workers.pause_queue("default", True, Actor("ann"), "why")
    return postgres, sqlite


def in_postgres(schemas: Schemas, text: str) -> list[dict[str, Any]]:
    schemas.admin.execute(f"SET search_path = {schemas.name}".encode())
    cursor = schemas.admin.execute(text.encode())
    names = [column.name for column in cursor.description or ()]
    return [
        {
            name: value.astimezone(UTC) if isinstance(value, datetime) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in cursor
    ]


def in_sqlite(store: SqliteStore, text: str) -> list[dict[str, Any]]:
    cursor = store.db.connection.execute(text)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def alike(row: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """A row of SQLite as PostgreSQL would give it to Python."""
    plain: dict[str, Callable[[Any], Any]] = {
        "time": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
        "JSON": json.loads,
        "boolean": bool,
    }
    return {
        name: value if value is None else plain.get(kinds[name], lambda same: same)(value)
        for name, value in row.items()
    }


@pytest.mark.parametrize("view", VIEWS)
def test_both_databases_show_the_same(
    filled: tuple[PostgresStore, SqliteStore], schemas: Schemas, view: str
) -> None:
    text = f"SELECT * FROM {view}"
    ours = [alike(row, documented()[view]) for row in in_sqlite(filled[1], text)]
    theirs = in_postgres(schemas, text)
    for row in (*ours, *theirs):
        row.pop("silent_s", None)  # goes on
        if view == "rhythm_resume_requests":
            row.pop("id")  # PostgreSQL never gives a number twice
    assert theirs
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)
    assert [list(row) for row in ours] == [list(row) for row in theirs]


def shown(
    filled: tuple[PostgresStore, SqliteStore], view: str, *columns: str, order: str
) -> list[Any]:
    text = f"SELECT {', '.join(columns)} FROM {view} ORDER BY {order}"
    return [tuple(row.values()) for row in in_sqlite(filled[1], text)]


def test_statuses_and_pauses_are_those_that_people_see_elsewhere(
    filled: tuple[PostgresStore, SqliteStore],
) -> None:
    found = in_sqlite(filled[1], "SELECT * FROM rhythm_executions WHERE created_us > 0")
    known = filled[1].reading.get([row["id"] for row in found])
    assert {row["status"] for row in found} == {
        "pending", "running", "suspended", "paused", "completed", "failed", "blocked",
    }  # fmt: skip
    for row in found:
        execution = known[row["id"]]
        assert (row["status"], row["attempt"]) == (execution.status, execution.attempt)
        since = paused_at(execution)
        assert row["paused_at"] == (since and f"{since:%Y-%m-%dT%H:%M:%S.%fZ}"), row["id"]
        assert (row["paused_reason"] or "") == paused_reason(execution)
    assert {row["id"]: row["paused_reason"] for row in found if row["paused_at"]} == {
        "B": "approval_required",
        "C": "manual",
        "F": "event",
    }


def test_rows_say_how_things_ended(filled: tuple[PostgresStore, SqliteStore]) -> None:
    assert shown(filled, "rhythm_approvals", "status", order="n") == [
        ("open",), ("held",), ("cancelled",), ("approved",),
    ]  # fmt: skip
    assert shown(filled, "rhythm_timers", "status", "delay_s", order="n") == [
        ("waiting", 30.0), ("fired", None), ("cancelled", 1e-6), ("held", 1e-6),
    ]  # fmt: skip
    assert shown(filled, "rhythm_event_waits", "status", order="n") == [
        ("waiting",), ("held",), ("came",), ("missed",), ("cancelled",),
    ]  # fmt: skip
    assert shown(filled, "rhythm_workers", "worker_id", "state", order="worker_id") == [
        ("w1", "live"), ("w2", "draining"), ("w3", "dead"),
    ]  # fmt: skip
    assert shown(filled, "rhythm_queues", "name", "ready", "delayed", "expired", "workers", "paused", order="name") == [
        ("default", 0, 1, 0, 1, 1), ("mail", 0, 0, 0, 1, 0), ("slow", 0, 0, 0, 0, 1),
        ("system", 0, 0, 1, 1, 0),
    ]  # fmt: skip
    assert shown(filled, "rhythm_definitions", "id", "is_current", "source", order="version") == [
        ("order@v1", 0, "text 1"), ("order@v2", 1, "text 2"),
    ]  # fmt: skip
    where = ("execution_id", "awaiting_task_id", "state", "state_bytes")
    assert shown(filled, "rhythm_contexts", *where, order="execution_id") == [
        ("A", "A.1", '{"v":1}', 7), ("B", None, '{"v":1}', 7), ("C", None, None, 11),
        ("D", None, None, None), ("F", None, None, 3),
    ]  # fmt: skip


def test_times_and_durations_are_exact_and_impossible_ones_are_left_out(
    filled: tuple[PostgresStore, SqliteStore],
) -> None:
    columns = ("id", "error_code", "duration_s", "scheduled_at", "finished_at")
    found = {id: row for id, *row in shown(filled, "rhythm_executions", *columns, order="id")}
    minute = "2027-01-15T08:00"
    assert found["A.1"] == [None, None, f"{minute}:07.000001Z", None]
    assert found["A.2"] == [None, 2.0, f"{minute}:00.000000Z", f"{minute}:02.000010Z"]
    assert found["G"] == [None, 2e12, "1969-12-31T23:59:59.999999Z", None]


def test_resume_data_are_the_last_that_were_given(
    filled: tuple[PostgresStore, SqliteStore],
) -> None:
    columns = ("id", "resume_data", "resume_error_message")
    first = shown(filled, "rhythm_executions", *columns, order="id")[0]
    assert first == ("A", '{"x":1}', None)


# privileges


def test_reader_may_read_the_views_and_nothing_else(
    filled: tuple[PostgresStore, SqliteStore], schemas: Schemas
) -> None:
    (block,) = (
        text
        for text in re.findall(r"```sql postgres\n(.*?)```", PAGE, re.DOTALL)
        if "GRANT" in text
    )
    role = f"{schemas.name}_reader"
    script = re.sub(r"\breporting\b", role, block).replace("rhythm.", f"{schemas.name}.")
    schemas.admin.execute(script.replace("SCHEMA rhythm", f"SCHEMA {schemas.name}").encode())
    try:
        with psycopg.connect(schemas.url, autocommit=True) as reader:
            reader.execute(f"SET ROLE {role}; SET search_path = {schemas.name}".encode())
            for view in VIEWS:
                assert reader.execute(f"SELECT * FROM {view}".encode()).fetchall(), view
            for refused in (
                "SELECT * FROM executions", "SELECT * FROM api_tokens", "SELECT * FROM audit_head",
                "UPDATE rhythm_workers SET version = ''", "DELETE FROM rhythm_timers",
                "INSERT INTO rhythm_events (id) VALUES ('x')", "DROP VIEW rhythm_events",
            ):  # fmt: skip
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    reader.execute(refused.encode())
    finally:
        schemas.admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


# migrations


@contextmanager
def later(monkeypatch: pytest.MonkeyPatch, store: Store, *texts: str) -> Iterator[None]:
    """A later Rhythm, with these migrations."""
    kind = "sqlite" if isinstance(store, SqliteStore) else "postgres"
    found = migrations(f"rhythm.store.{kind}")
    more = [(NEWEST + 1 + n, f"{NEWEST + 1 + n:04}_later", text) for n, text in enumerate(texts)]
    with monkeypatch.context() as patched:
        module = sys.modules[type(store.schema).__module__]
        patched.setattr(module, "migrations", lambda package: [*found, *more])
        yield


CHANGES = {
    "postgres": (
        "ALTER TABLE executions DROP COLUMN paused_then;",
        "ALTER TABLE events ADD COLUMN more text;",
    ),
    "sqlite": (
        "CREATE TABLE newer (id TEXT PRIMARY KEY NOT NULL, type TEXT NOT NULL, n INTEGER NOT NULL, data TEXT NOT NULL, "
        "published_at INTEGER NOT NULL, provenance TEXT);\nINSERT INTO newer SELECT * FROM events;\nDROP TABLE events;\n"
        "ALTER TABLE newer RENAME TO events;",
        "ALTER TABLE events ADD COLUMN more TEXT;",
    ),
}


@pytest.fixture(params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store with a schema of its own, not migrated."""
    if request.param == "sqlite":
        store: Store = SqliteStore(":memory:", lambda: NOW)
        yield store
        store.close()
        return
    schemas = request.getfixturevalue("schemas")
    name = f"{schemas.name}_views"
    store = PostgresStore(schemas.url, name, lambda: NOW)
    yield store
    store.close()
    schemas.admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


def test_views_stand_in_the_way_of_no_migration(
    own: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.schema.migrate()
    fill(own)
    before = {view: len(rows(own, f"SELECT * FROM {view}")) for view in VIEWS}
    kind = "sqlite" if isinstance(own, SqliteStore) else "postgres"
    first, second = CHANGES[kind]
    if kind == "postgres":
        with pytest.raises((psycopg.Error, StoreError), match="depend"):
            rows(own, first)
    with later(monkeypatch, own, first, second):
        assert len(own.schema.migrate()) == 2
    assert {view: len(rows(own, f"SELECT * FROM {view}")) for view in VIEWS} == before


def test_privileges_and_views_of_others_survive_a_migration(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{schemas.name}_kept"
    store = PostgresStore(schemas.url, name, lambda: NOW)
    try:
        store.schema.migrate()
        fill(store)
        schemas.admin.execute(
            f"SET search_path = {name}; CREATE ROLE {name}_reader; GRANT SELECT ON rhythm_executions TO {name}_reader; "
            "CREATE VIEW mine AS SELECT id FROM rhythm_executions; CREATE VIEW rhythm_mine AS SELECT id FROM events".encode()
        )
        asked = f"SELECT has_table_privilege('{name}_reader', '{name}.rhythm_executions', 'SELECT'), (SELECT count(*) FROM {name}.mine)"
        (before,) = schemas.admin.execute(asked.encode())
        between: list[Any] = []
        with later(
            monkeypatch, store, "ALTER TABLE executions DROP COLUMN paused_then;", "SELECT 1;"
        ):
            store.schema.migrate(lambda ran: between.extend(schemas.admin.execute(asked.encode())))
        assert between == [(True, 0), before]
        assert before[0] is True
        assert schemas.admin.execute(
            f"SELECT count(*) FROM {name}.rhythm_mine".encode()
        ).fetchall() == [(1,)]
    finally:
        store.close()
        schemas.admin.execute(
            f"DROP SCHEMA {name} CASCADE; DROP ROLE IF EXISTS {name}_reader".encode()
        )


def test_migration_that_waits_for_a_reader_gives_up_and_can_run_again(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.BOUNDED, "lock_timeout", "50ms")
    name = f"{schemas.name}_read"
    store = PostgresStore(schemas.url, name, lambda: NOW)
    try:
        store.schema.migrate()
        with later(monkeypatch, store, "SELECT 1;"):
            with psycopg.connect(schemas.url) as reader:
                reader.execute(f"SELECT * FROM {name}.rhythm_workers".encode())
                with pytest.raises(StoreError, match="has waited too long for what others"):
                    store.schema.migrate()
                assert store.schema.version() == NEWEST
            assert len(store.schema.migrate()) == 1
    finally:
        store.close()
        schemas.admin.execute(f"DROP SCHEMA {name} CASCADE".encode())


@pytest.mark.parametrize("oldest", [1, 6, 13])
def test_database_of_an_older_rhythm_gets_the_views(
    own: Store, monkeypatch: pytest.MonkeyPatch, oldest: int
) -> None:
    known = own.schema.migrations()
    with monkeypatch.context() as patched:
        patched.setattr(own.schema, "migrations", lambda: known[:oldest])
        own.schema.migrate()
    execution(own, "A", status=6, error=ERROR, finished_at=NOW)
    execution(own, "A.1")
    put(own, "events", id="e1", type="paid", n=1, data="{}", published_at=NOW)
    own.schema.migrate()
    assert rows(own, "SELECT id, status, error_code FROM rhythm_executions ORDER BY id") == [
        ("A", "failed", "Boom"),
        ("A.1", "pending", None),
    ]
    for view in VIEWS:
        rows(own, f"SELECT * FROM {view}")


MADE = Path(__file__).with_name("views.sha256")


def test_change_of_the_views_comes_with_a_migration() -> None:
    """Databases make the views anew only when a migration runs. After a change of `views.sql` or of
    what `views.py` fills in, add a migration, and a line here: its number, and the hash of the
    views as they are now."""
    for kind, dialect in (("sqlite", made.SQLITE), ("postgres", made.POSTGRES)):
        text = "\n".join(
            f"{name} {made.filled(body, dialect)}" for name, body in made.views().items()
        )
        lines = [line.split() for line in MADE.read_text(encoding="utf-8").splitlines()]
        numbers = [int(number) for number, of, _ in lines if of == kind]
        assert lines[-1 if kind == "postgres" else -2][1:] == [
            kind,
            hashlib.sha256(text.encode()).hexdigest(),
        ]
        assert numbers == sorted({*numbers})
        assert numbers[0] == made.FIRST_MIGRATION
        assert numbers[-1] <= NEWEST


def test_what_has_an_execution_of_its_own_is_what_the_table_of_awaits_says() -> None:
    rows_of = {kind.op for kind in KINDS_OF_AWAITS.values() if kind.row in ("task", "execution")}
    assert {*made.AWAITED} == rows_of


def test_every_view_of_the_file_is_found() -> None:
    text = (resources.files("rhythm.store") / "views.sql").read_text("utf-8")
    assert re.findall(r"CREATE VIEW (\w+)", text) == VIEWS
    assert len(VIEWS) == 18
    with pytest.raises(KeyError):
        made.filled("{nothing x}", made.SQLITE)


# plans

QUICK = [
    ("rhythm_executions", "id = 'w2'", "executions_pkey"),
    ("rhythm_executions", "id >= 'w2.' AND id < 'w2/'", "executions_pkey"),
    ("rhythm_steps", "execution_id = 'w2' AND id >= 'w2.' AND id < 'w2/'", "executions_pkey"),
    ("rhythm_turns", "execution_id = 'w2'", "history_pkey"),
    ("rhythm_timers", "execution_id = 'w2'", "timer_tasks_pkey"),
    ("rhythm_signals", "execution_id = 'w2'", "workflow_signals_execution_id_n_key|signals_"),
    ("rhythm_contexts", "execution_id = 'w2'", "workflow_execution_context_pkey"),
    ("rhythm_executions", "parent_id IS NULL ORDER BY created_us DESC LIMIT 20", "executions_newest"),
    ("rhythm_executions", "parent_id IS NULL AND name = 'name1' AND created_us >= 19900", "executions_roots|executions_newest"),
    ("rhythm_executions", "parent_id IS NULL AND finished_us >= 19990", "executions_ended"),
    ("rhythm_executions", "parent_id IS NULL AND finished_us IS NULL", "executions_open"),
    ("rhythm_executions", "status_number IN (6, 7, 8)", "executions_failed"),
    ("rhythm_executions", "name = 'name1' AND idempotency_key = 'w1'", "executions_key"),
    ("rhythm_timers", "fired_us IS NULL AND cancelled_us IS NULL AND fire_us <= 5", "timers_due"),
]  # fmt: skip
# tables that are empty there, where PostgreSQL would rather read all of nothing
QUICK_ON_SQLITE = [
    *QUICK,
    ("rhythm_approvals", "ended_us IS NULL ORDER BY created_us", "approvals_open"),
    ("rhythm_approvals", "execution_id = 'w2'", "approvals_pkey"),
    ("rhythm_event_waits", "execution_id = 'w2'", "event_waits_pkey"),
    ("rhythm_events", "id = 'e'", "events_pkey"),
    ("rhythm_audit", "actor = 'ann' ORDER BY n", "audit_actor"),
]
ALL = "id, status, paused_at, paused_reason, inputs, created_at"


def columns_of(view: str) -> str:
    return ALL if view == "rhythm_executions" else "*"


@pytest.fixture(scope="module")
def full(schemas: Schemas) -> Iterator[psycopg.Connection]:
    """A schema with full tables, and a session like those of other programs."""
    name = f"{schemas.name}_quick"
    with closing(PostgresStore(schemas.url, name)) as store:
        store.schema.migrate()
    options = f"-c search_path={name}"
    with psycopg.connect(schemas.url, options=options, autocommit=True) as connection:
        connection.execute(
            FILL.format(false="false", numbers=f"generate_series(0, {ROWS - 1}) AS i").encode()
        )
        connection.execute("ANALYZE")
        yield connection
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


@pytest.mark.parametrize(("view", "where", "index"), QUICK)
def test_postgres_finds_quickly_what_the_page_says(
    full: psycopg.Connection, view: str, where: str, index: str
) -> None:
    plan = "\n".join(
        row[0]
        for row in full.execute(
            f"EXPLAIN SELECT {columns_of(view)} FROM {view} WHERE {where}".encode()
        )
    )
    assert re.search(rf"(using|Scan on) ({index})", plan), plan
    assert "Seq Scan on executions" not in plan, plan
    assert "Seq Scan on history" not in plan, plan


@pytest.mark.parametrize(("view", "where", "index"), QUICK_ON_SQLITE)
def test_sqlite_finds_quickly_what_the_page_says(view: str, where: str, index: str) -> None:
    store = sqlite_in_memory(lambda: NOW)
    steps = [
        row[3]
        for row in rows(
            store, f"EXPLAIN QUERY PLAN SELECT {columns_of(view)} FROM {view} WHERE {where}"
        )
    ]
    own = re.sub(r"\w+_(pkey|n_key)\b", r"sqlite_autoindex_\\w+|PRIMARY KEY", index)
    assert re.search(own, steps[0]), steps
    assert not [step for step in steps if re.match(r"SCAN (?!e USING|a USING)", step)], steps


def test_plans_of_all_conditions_of_the_page_are_tested() -> None:
    table = PAGE.partition("## What is found quickly")[2].partition("`status_number`")[0]
    said = re.findall(r"^\| .*? \| `(.*)` \|$", table, re.MULTILINE)
    tried = {alike_in_plans(where) for _, where, _ in QUICK_ON_SQLITE}
    assert [each for each in said if alike_in_plans(each) not in tried] == []
    assert len(said) == 13


def alike_in_plans(condition: str) -> str:
    """A condition without its values."""
    return re.sub(r"(?<=[=<] )('[^']*'|\d+|…)", "?", condition)


# the sketches

SKETCHES = {
    "timers": (
        "SELECT * FROM timer_tasks WHERE fire_at <= NOW()",
        {"timer_tasks": "rhythm_timers"},
        1,
    ),
    "workers": (
        "SELECT worker_id FROM worker_heartbeats WHERE last_heartbeat < NOW() - INTERVAL '30 seconds'",
        {"worker_heartbeats": "rhythm_workers"},
        1,
    ),
    "next task": (
        "SELECT * FROM executions WHERE status = 'pending' AND queue = 'orders' AND scheduled_at <= NOW() "
        "ORDER BY priority DESC, created_at ASC LIMIT 1 FOR UPDATE SKIP LOCKED",
        {"executions": "rhythm_executions", " FOR UPDATE SKIP LOCKED": ""},
        1,
    ),
    "context": (
        "SELECT wec.*, wd.version_hash, wd.source FROM workflow_execution_context wec "
        "JOIN workflow_definitions wd ON wec.workflow_definition_id = wd.id WHERE wec.execution_id = $1",
        {"workflow_execution_context": "rhythm_contexts", "workflow_definitions": "rhythm_definitions",
         "version_hash": "version", "$1": "'A'"},
        1,
    ),
    "resumes": (
        "SELECT 1 FROM executions WHERE target_name = 'builtin.resume_workflow' AND args->>0 = $workflow_id AND status = 'pending'",
        {"executions": "rhythm_ready", "target_name = 'builtin.resume_workflow'": "kind = 'resume'", "args->>0": "id",
         "$workflow_id": "'E'", "status = 'pending'": "state = 'claimed'"},
        1,
    ),
    "paused": (
        "SELECT * FROM workflow_executions WHERE paused_reason = 'approval_required' ORDER BY paused_at DESC",
        {"workflow_executions": "rhythm_executions"},
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SKETCHES)
def test_queries_of_the_sketches_run_on_the_views(
    filled: tuple[PostgresStore, SqliteStore], schemas: Schemas, name: str
) -> None:
    text, changes, expected = SKETCHES[name]
    execution(filled[0], "O", queue="orders", created_at=5)
    execution(filled[1], "O", queue="orders", created_at=5)
    put(filled[0], "ready", id="O", kind=1, queue="orders", priority=0, order_key=5, state=0)
    put(filled[1], "ready", id="O", kind=1, queue="orders", priority=0, order_key=5, state=0)
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    assert len(in_postgres(schemas, text)) == expected
    text = text.replace(
        "NOW() - INTERVAL '30 seconds'", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-30 seconds')"
    )
    text = text.replace("NOW()", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')")
    try:
        assert len(in_sqlite(filled[1], text)) == expected
    except sqlite3.OperationalError as problem:  # pragma: no cover
        pytest.fail(f"{problem}: {text}")
