"""The schema of a database: brought up to date once, by one of many, wholly or not at all, and
never by an older Rhythm."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rhythm.errors import StoreError
from rhythm.filters import parse_filter
from rhythm.store.access import Actor
from rhythm.store.interfaces.operating import Selection
from rhythm.store.interfaces.store import Store
from rhythm.store.open import open_store
from rhythm.store.schema import Migration
from rhythm.store.sqlfile import migrations
from tests.support.stores import KINDS, rows

NEWEST = migrations("rhythm.store.sqlite")[-1][0]
MIGRATE = (
    "import sys; from rhythm.cli.main import main; print('here', flush=True); "
    "sys.stdin.readline(); sys.exit(main(sys.argv[1:]))"
)


class Fresh:
    """A database without any schema of ours."""

    def __init__(self, url: str) -> None:
        self.url = url

    def by_hand(self, script: str) -> None:
        if self.url.startswith("sqlite"):
            with sqlite3.connect(self.url.removeprefix("sqlite:///")) as connection:
                connection.executescript(script)
            connection.close()
        else:
            with psycopg.connect(self.url.rpartition("&")[0]) as session:
                session.execute(f"SET search_path = {self.schema}; {script}".encode())

    @property
    def schema(self) -> str:
        return self.url.rpartition("schema=")[2]


@pytest.fixture(params=KINDS)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fresh]:
    if request.param == "sqlite":
        yield Fresh(f"sqlite:///{tmp_path / 'fresh.db'}")
    else:
        schemas = request.getfixturevalue("schemas")
        name = f"{schemas.name}_fresh"
        yield Fresh(f"{schemas.url}&schema={name}")
        schemas.admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@pytest.fixture
def store(fresh: Fresh) -> Iterator[Store]:
    opened = open_store(fresh.url)
    yield opened
    opened.close()


def names(migrations: list[Migration]) -> list[str]:
    return [migration.name for migration in migrations]


def test_what_is_pending_runs_once(store: Store) -> None:
    assert store.schema.version() == 0
    pending = store.schema.pending()
    assert (names(pending), store.schema.version()) == (names(store.schema.migrations()), 0)
    assert store.schema.migrate() == names(pending)
    assert (store.schema.pending(), store.schema.migrate(), store.schema.version()) == (
        [],
        [],
        NEWEST,
    )


def test_migrations_run_by_hand_are_migrations_that_have_run(store: Store, fresh: Fresh) -> None:
    for migration in store.schema.pending():
        fresh.by_hand(f"BEGIN;\n{migration.sql}COMMIT;")
    assert (store.schema.migrate(), store.schema.version()) == ([], NEWEST)
    assert store.reading.find(None, None, None, 10) == []


def test_a_schema_that_is_newer_than_the_code_is_left_alone(store: Store, fresh: Fresh) -> None:
    store.schema.migrate()
    fresh.by_hand("INSERT INTO schema_version (version, name, at) VALUES (99, '0099_later', 0)")
    for ask in (store.schema.pending, store.schema.migrate):
        with pytest.raises(
            StoreError,
            match=f"this Rhythm knows schema {NEWEST}, the database has 99; upgrade Rhythm",
        ):
            ask()


def test_a_migration_that_fails_leaves_nothing_behind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = store.schema.migrations()
    text = "CREATE TABLE half (n int);\nINSERT INTO half VALUES (1);\nCREATE TABLE half (n int);\n"
    monkeypatch.setattr(
        store.schema, "migrations", lambda: [*good, Migration(NEWEST + 1, "bad", text)]
    )
    with pytest.raises(StoreError, match=r"migration bad failed, and nothing of it stays: .*half"):
        store.schema.migrate()
    assert (store.schema.version(), names(store.schema.pending())) == (NEWEST, ["bad"])
    mended = Migration(NEWEST + 1, "bad", "CREATE TABLE half (n int);\n")
    monkeypatch.setattr(store.schema, "migrations", lambda: [*good, mended])
    assert store.schema.migrate() == ["bad"]


FORGED = (
    "INSERT INTO audit (n, at, actor, source, action, object, detail, prev, hash) VALUES "
    "({n}, 1, 'bob', '', 'a', 'b', '{{}}', '', '')"
)


def test_rows_that_were_forged_before_rows_had_to_follow_the_head_do_not_stop_the_migration(
    store: Store, fresh: Fresh
) -> None:
    """They stay, and are told: nobody can forge them away by an upgrade."""
    for migration in store.schema.pending():
        if migration.name == "0008_audit":
            fresh.by_hand("".join(FORGED.format(n=n) + ";\n" for n in (0, -1)))
        fresh.by_hand(f"BEGIN;\n{migration.sql}COMMIT;")
    assert (store.schema.migrate(), store.schema.version()) == ([], NEWEST)
    assert [n for n, _ in store.access.verify_audit()[1]] == [-1, 0]
    assert store.workers.pause_queue("mail", True, Actor("ann"))
    assert [n for n, _ in store.access.verify_audit()[1]] == [-1, 0]


def test_of_eight_processes_that_start_at_once_one_migrates(fresh: Fresh) -> None:
    command = [sys.executable, "-c", MIGRATE, "migrate", "--database", fresh.url]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    many = [subprocess.Popen(command, **pipes) for _ in range(8)]
    assert {process.stdout.readline() for process in many if process.stdout} == {"here\n"}
    for process in many:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0] for process in many]
    assert [process.returncode for process in many] == [0] * 8, said
    assert sum(text.count("ran 0001_initial") for text in said) == 1


def test_sources_that_were_kept_with_every_workflow_are_kept_once(
    store: Store, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = store.schema.migrations()
    monkeypatch.setattr(store.schema, "migrations", lambda: known[:6])
    store.schema.migrate()
    values = ", ".join(
        f"('{name}', '{version}', 'flow', '{source}', '{{}}', 'f', 1, {registration})"
        for name, version, source, registration in (
            ("a", "1", "one", 1),
            ("a", "2", "two", 2),
            ("b", "1", "one", 1),
            ("c", "1", "ä", 1),
        )
    )
    columns = "name, version, language, source, program, file, registered_at, registration"
    fresh.by_hand(f"INSERT INTO workflow_definitions ({columns}) VALUES {values}")
    monkeypatch.undo()
    store.schema.migrate()
    asked = (("a", "1"), ("a", None), ("b", None), ("c", None))
    assert [getattr(store.definitions.get(*one), "source", None) for one in asked] == [
        "one",
        "two",
        "one",
        "ä",
    ]
    assert [
        (listed.name, listed.version, listed.file) for listed in store.definitions.after("", 9)
    ] == [
        ("a", "2", "f"),
        ("b", "1", "f"),
        ("c", "1", "f"),
    ]
    assert sorted(rows(store, "SELECT text FROM workflow_sources")) == [("one",), ("two",), ("ä",)]
    assert store.operating.check(0.0, lambda evidence: ()) == []


OLD_EXECUTIONS = """
INSERT INTO executions (id, type, name, version, queue, priority, status, parent_id, child_no, root_id, attempt, max_attempts,
  options, attributes, inputs, error, created_at, finished_at, key) VALUES
('w', 0, 'main', '1', 'default', 0, 6, NULL, 0, 'w', 0, 1, '{}',
  '{"customer":"acme \u00e9 \\"x\\"","n":5,"f":0.5,"yes":true,"no":null,"list":[1],"long":"LONG"}', 'null',
  '{"code":"PaymentDeclined","message":"m","data":null}', 1, 2, 'invoice-1'),
('w.1', 0, 'main', '1', 'default', 0, 1, 'w', 1, 'w', 0, 1, '{}', '{"customer":"acme"}', 'null', NULL, 1, NULL, NULL),
('v', 0, 'main', '1', 'default', 0, 0, NULL, 0, 'v', 0, 1, '{}', '{}', 'null', NULL, 3, NULL, NULL)
""".replace("LONG", "x" * 700)


def test_executions_that_were_there_before_searches_are_found(
    store: Store, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = store.schema.migrations()
    before = [each.name for each in known].index("0015_search")
    monkeypatch.setattr(store.schema, "migrations", lambda: known[:before])
    store.schema.migrate()
    fresh.by_hand(OLD_EXECUTIONS)
    monkeypatch.undo()
    store.schema.migrate()
    for text in (
        'attr.customer="acme \u00e9 \\"x\\""', "attr.n=5", "attr.f=0.5", "attr.yes=true", "attr.no=null",
        "error:PaymentDeclined", "status:failed", "key:invoice", "-status:pending",
    ):  # fmt: skip
        selection = Selection(parse_filter(text))
        assert [row.id for row in store.reading.search(selection, None, 9)] == ["w"], text
    assert store.operating.count(Selection(parse_filter("attr.customer=acme")))[0] == 0
    names = [name for (name,) in rows(store, "SELECT name FROM execution_attributes ORDER BY 1")]
    assert names == ["customer", "f", "n", "no", "yes"]
    assert [row.id for row in store.reading.find(None, "pending", None, 9)] == ["v"]


RELEASED = Path(__file__).with_name("migrations.sha256")


def statements(sql: str) -> str:
    """A migration without the lines that only explain it."""
    return "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))


def test_a_migration_that_databases_have_run_is_never_changed() -> None:
    """A release adds the lines of its new ones; a change of an older one breaks databases."""
    found = [
        f"{hashlib.sha256(statements(sql).encode()).hexdigest()}  {kind} {name}"
        for kind in KINDS
        for _, name, sql in migrations(f"rhythm.store.{kind}")
    ]
    changed = set(RELEASED.read_text(encoding="utf-8").splitlines()) - set(found)
    assert changed == set()
