"""A database file has inputs, results and the audit in it: whoever makes it is the only one who can
read it."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rhythm.app import Rhythm
from rhythm.cli.main import main
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="permissions of files are a matter of POSIX"
)


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """The usual umask: what is made is readable for everyone, unless its maker says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_a_new_database_and_its_companions_are_private(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "new.db"))) as store:
        store.schema.migrate()
        store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
        assert modes(tmp_path) == {"new.db": 0o600, "new.db-wal": 0o600, "new.db-shm": 0o600}


def test_the_journal_of_a_new_database_is_private(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "new.db"))):
        pass
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("CREATE TABLE t (x)")
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO t VALUES (1)")
        assert modes(tmp_path) == {"new.db": 0o600, "new.db-journal": 0o600}


def test_applications_and_commands_make_private_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Rhythm("sqlite:///app.db", (), tasks={}, environment={}).close()
    assert main(["migrate", "--database", "sqlite:///command.db"]) == 0
    assert set(modes(tmp_path).values()) == {0o600}


def test_a_file_that_was_there_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    file.touch(0o644)
    with closing(SqliteStore(str(file))) as store:
        store.schema.migrate()
        assert set(modes(tmp_path).values()) == {0o644}


def test_a_stricter_umask_is_kept(tmp_path: Path) -> None:
    os.umask(0o277)
    (tmp_path / "folder").mkdir()
    os.chmod(tmp_path / "folder", 0o700)
    with closing(SqliteStore(str(tmp_path / "folder" / "new.db"))):
        assert modes(tmp_path / "folder")["new.db"] & 0o277 == 0


def test_the_file_behind_a_link_is_private(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "there" / "real.db")
    with closing(SqliteStore(str(tmp_path / "link.db"))):
        assert modes(tmp_path / "there")["real.db"] == 0o600
