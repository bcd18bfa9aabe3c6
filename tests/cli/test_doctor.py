"""`rhythm doctor`: what it prints and how it exits, on both databases."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from rhythm.store.doctor import RULES
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import TASK, WORKFLOW
from rhythm.store.open import open_store
from rhythm.store.sqlfile import migrations
from rhythm.store.sqlite.store import SqliteStore
from tests.cli.conftest import Shell
from tests.support.postgres import Schemas
from tests.support.stores import KINDS, rows


class Database(NamedTuple):
    url: str
    store: Store


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, shell: Shell) -> Iterator[Database]:
    """A migrated database with a workflow that has just been started."""
    if request.param == "sqlite":
        url = "sqlite:///rhythm.db"
        store: Store = SqliteStore(str(shell.folder / "rhythm.db"))
        store.schema.migrate()
    else:
        schemas: Schemas = request.getfixturevalue("schemas")
        url, store = (
            f"{schemas.url}{'&' if '?' in schemas.url else '?'}schema={schemas.name}",
            schemas.empty_store(),
        )
        # what other tests have left behind is not this one's advice
        schemas.admin.execute("SELECT pg_stat_reset()")
    store.definitions.register([Definition("main", "1", "flow", "", "{}")])
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default", version="1")])
    yield Database(url, store)
    store.close()


def test_healthy_database_is_one_line_and_exit_0(shell: Shell, database: Database) -> None:
    ran = shell.rhythm("doctor", "--database", database.url)
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        0,
        f"{len(RULES)} rules, 1 execution: all is well\n",
        "",
    )


def test_finding_is_told_with_its_law_and_what_to_do_and_exits_1(
    shell: Shell, database: Database
) -> None:
    rows(database.store, "DELETE FROM ready")
    ran = shell.rhythm("doctor", "--database", database.url)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout == (
        "pending_queued: what has not begun is queued, held back or paused\n"
        "  w  it has not begun, and it is not queued\n"
        f"  what to do: {RULES['pending_queued'].remedy}\n"
        "\n"
        f"{len(RULES)} rules, 1 execution: 1 finding\n"
    )


def test_json_is_one_document(shell: Shell, database: Database) -> None:
    rows(database.store, "DELETE FROM ready")
    ran = shell.rhythm("doctor", "--output", "json", RHYTHM_DATABASE_URL=database.url)
    assert ran.returncode == 1
    rule = RULES["pending_queued"]
    assert json.loads(ran.stdout) == {
        "rules": len(RULES),
        "executions": 1,
        "findings": [
            {
                "rule": "pending_queued",
                "subject": "w",
                "message": "it has not begun, and it is not queued",
                "of": 1,
                "law": rule.law,
                "remedy": rule.remedy,
            },
        ],
        "advice": [],
    }


def test_of_many_findings_some_are_told_and_all_are_counted(
    shell: Shell, database: Database
) -> None:
    database.store.executions.start(
        [NewExecution(f"t{i:02}", TASK, "t", "default") for i in range(24)]
    )
    rows(database.store, "DELETE FROM ready")
    ran = shell.rhythm("doctor", "--database", database.url)
    assert "  … and 5 more\n" in ran.stdout
    assert ran.stdout.endswith(f"{len(RULES)} rules, 25 executions: 25 findings\n")


def test_advice_is_no_finding(shell: Shell, database: Database) -> None:
    rows(database.store, f"UPDATE ready SET order_key = {time.time_ns() // 1000 - 600_000_000}")
    ran = shell.rhythm("doctor", "--database", database.url)
    assert ran.returncode == 0
    assert ran.stdout == (
        "advice: queue default: 1 ready, the oldest for 10 min; no worker claims any: is "
        "one running that serves it?\n"
        "\n"
        f"{len(RULES)} rules, 1 execution: no rule is broken\n"
    )


def test_grace_says_how_late_things_may_be(shell: Shell, database: Database) -> None:
    past = time.time_ns() // 1000 - 600_000_000
    rows(
        database.store,
        f"UPDATE ready SET state = 1, claimed_by = 'x', fence = 0, claim_expires_at = {past}",
    )
    assert shell.rhythm("doctor", "--database", database.url).returncode == 0
    for grace in ("1m", "60"):
        assert (
            "claims_taken_back"
            in shell.rhythm("doctor", "--database", database.url, "--grace", grace).stdout
        )
    ran = shell.rhythm("doctor", "--grace", "soon")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert '"soon" is not a duration' in ran.stderr


def test_tables_of_another_rhythm_are_refused(shell: Shell, database: Database) -> None:
    rows(database.store, "INSERT INTO schema_version VALUES (99, '0099_new', 0)")
    try:
        ran = shell.rhythm("doctor", "--database", database.url)
    finally:
        rows(database.store, "DELETE FROM schema_version WHERE version = 99")
    assert (ran.returncode, ran.stdout) == (2, "")
    known = len(migrations("rhythm.store.sqlite"))
    assert ran.stderr == (
        f"rhythm: the tables are those of a newer Rhythm (schema 99, this one knows up to "
        f"{known}): upgrade Rhythm\n"
    )


@pytest.mark.parametrize("url", ["sqlite:///empty.db", "POSTGRES"])
def test_database_without_tables_is_refused_and_stays_without(
    shell: Shell, url: str, database_url: str
) -> None:
    sqlite3.connect(shell.folder / "empty.db").close()
    if url == "POSTGRES":
        url = f"{database_url}{'&' if '?' in database_url else '?'}schema=nothing_here"
    ran = shell.rhythm("doctor", "--database", url)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "rhythm: the database has no tables of Rhythm: is it the right one?\n"
    assert (shell.folder / "empty.db").stat().st_size == 0


def test_missing_file_is_not_made(shell: Shell) -> None:
    ran = shell.rhythm("doctor")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "rhythm: there is no database file rhythm.db; --database or RHYTHM_DATABASE_URL "
        "says which database is meant\n"
    )
    assert not (shell.folder / "rhythm.db").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/x", "the PostgreSQL database did not answer"),
        ("postgresql://nobody@127.0.0.1/x?colour=red", "the PostgreSQL URL cannot be used"),
        ("oracle://x", "no database can be opened with `oracle://x`"),
        ("sqlite:///tasks.py", "file is not a database"),
    ],
)
def test_database_that_cannot_be_read_is_exit_2_with_the_reason(
    shell: Shell, url: str, message: str
) -> None:
    ran = shell.rhythm("doctor", "--database", url)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_looking_at_a_foreign_file_changes_nothing_in_it(shell: Shell) -> None:
    file = shell.folder / "foreign.db"
    foreign = sqlite3.connect(file)
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.commit()
    foreign.close()
    before = file.read_bytes()
    assert shell.rhythm("doctor", "--database", "sqlite:///foreign.db").returncode == 2
    assert file.read_bytes() == before
    assert [path.name for path in shell.folder.iterdir() if path.name.startswith("foreign")] == [
        "foreign.db"
    ]


def test_damaged_file_is_exit_2(shell: Shell) -> None:
    store = open_store(f"sqlite:///{shell.folder}/rhythm.db")
    store.schema.migrate()
    store.executions.start(
        [NewExecution(f"w{i}", WORKFLOW, "main", "default", version="1") for i in range(500)]
    )
    store.close()
    file = shell.folder / "rhythm.db"
    data = bytearray(file.read_bytes())
    part = len(data) // 4  # of the rows; the pages of the schema come before them
    data[-part:] = b"\xff" * part
    file.write_bytes(data)
    ran = shell.rhythm("doctor")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "cannot read the SQLite database" in ran.stderr
