"""Which URL opens which store, and what is said about the others."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rhythm.errors import StoreError
from rhythm.settings import DRIVERS, load_settings, show_url
from rhythm.store.open import open_store
from rhythm.store.postgres import connecting
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite import session as sqlite_store
from rhythm.store.sqlite.store import SqliteStore
from tests.support.postgres import Schemas


def refused(url: str, create: bool = True) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(url, create)
    return str(caught.value)


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url, file in (
        ("sqlite:///a.db", tmp_path / "a.db"),
        (f"sqlite:///{tmp_path}/b.db", tmp_path / "b.db"),
    ):
        store = open_store(url)
        assert store.schema.migrate()
        store.close()
        assert file.exists()


@pytest.mark.parametrize("url", ["sqlite://:memory:", "sqlite:///:memory:"])
def test_memory_leaves_no_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(url, create=False)
    assert isinstance(store, SqliteStore)
    store.schema.migrate()
    store.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://rhythm.db"])
def test_sqlite_url_without_a_path_explains_the_slashes(url: str) -> None:
    assert "three slashes" in refused(url)


def schemes() -> list[tuple[str, str]]:
    """All schemes of a URL, each with the one that Rhythm uses."""
    named = [(f"{name}+{driver}", name) for name in DRIVERS for driver in DRIVERS[name]]
    return [("postgres", "postgresql"), ("PostgreSQL", "postgresql"), ("SQLite", "sqlite"), *named]


@pytest.mark.parametrize(("scheme", "plain"), schemes())
def test_url_may_name_a_driver_as_sqlalchemy_does(
    schemas: Schemas, tmp_path: Path, scheme: str, plain: str
) -> None:
    schemas.empty_store().close()
    url = f"sqlite:///{tmp_path}/a.db" if plain == "sqlite" else schemas.store_url
    given = url.replace(f"{plain}:", f"{scheme}:", 1)
    store = open_store(given, listen_url=given if plain == "postgresql" else "")
    assert isinstance(store, SqliteStore if plain == "sqlite" else PostgresStore)
    store.schema.migrate()
    store.close()
    read = load_settings({"database_url": given, "listen_url": given}, {}, str(tmp_path))
    assert (read.database_url, read.listen_url) == (url, url)


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/x", "postgresql+secretly://u:secret@h/x", "sqlite+cipher:///x", "x"]
)
def test_other_schemes_are_refused_with_those_that_there_are(url: str) -> None:
    message = refused(url)
    assert message.startswith(f"no database can be opened with `{show_url(url)}`; possible are ")
    assert "postgresql+psycopg or sqlite+pysqlite" in message
    assert ":secret" not in message


def test_listeners_are_told_no_other_database() -> None:
    with pytest.raises(StoreError, match=r"listen_url is a URL of PostgreSQL, .*not `sqlite:///x`"):
        open_store("postgresql://h/x", listen_url="sqlite+pysqlite:///x")


def test_missing_file_is_not_created(tmp_path: Path) -> None:
    assert (
        refused(f"sqlite:///{tmp_path}/none.db", create=False)
        == f"there is no database file {tmp_path}/none.db"
    )
    assert f"there is no folder {tmp_path}/deep" in refused(f"sqlite:///{tmp_path}/deep/none.db")
    assert "is a folder" in refused(f"sqlite:///{tmp_path}")
    assert "no parameters" in refused(f"sqlite:///{tmp_path}/a.db?mode=ro")
    assert not list(tmp_path.iterdir())


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, however long it may be: " * 100)
    assert "file is not a database" in refused(f"sqlite:///{tmp_path}/notes.txt")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL"])
def test_postgres_opens_under_both_names_and_its_schema_can_be_chosen(scheme: str) -> None:
    store = open_store(f"{scheme}://me@host/app?schema=other&connect_timeout=5")
    assert isinstance(store, PostgresStore)
    assert (store.db.url, store.db.schema) == (
        "postgresql://me@host/app?connect_timeout=5",
        "other",
    )
    plain = open_store(f"{scheme}://me@host/app")
    assert isinstance(plain, PostgresStore)
    assert (plain.db.url, plain.db.schema) == ("postgresql://me@host/app", "rhythm")


def test_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("rhythm.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "from its checkout with the extra, pip install -e 'PATH/TO/RHYTHM[postgres]'" in refused(
        "postgresql://host/app"
    )


@pytest.mark.parametrize("url", ["mysql://me:secret@host/app", "rhythm.db", ""])
def test_unknown_url_says_what_is_possible_and_no_password(url: str) -> None:
    message = refused(url)
    assert "sqlite:///rhythm.db" in message
    assert "postgresql://" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("wrong", "said", "advice"),
    [
        (
            {"dbname": "nodb"},
            'database "nodb" does not exist',
            "make the database with `createdb NAME`, or check its name",
        ),
        ({"user": "noone"}, 'role "noone" does not exist', "check the user and the password"),
    ],
)
def test_server_that_refuses_a_connection_is_told_with_its_words_and_what_to_check(
    schemas: Schemas, wrong: dict[str, str], said: str, advice: str
) -> None:
    store = PostgresStore(make_conninfo(schemas.url, **wrong), "rhythm")
    with pytest.raises(StoreError) as caught:
        store.schema.version()
    message = str(caught.value)
    assert message.startswith("the PostgreSQL server refused the connection: ")
    assert said in message
    assert advice in message


def test_wrong_password_is_a_refusal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise psycopg.OperationalError(
            'connection failed: FATAL:  password authentication failed for user "ada"'
        )

    monkeypatch.setattr(connecting.PatientConnection, "connect", refuse)
    with pytest.raises(
        StoreError,
        match=(
            r'refused the connection: .* failed for user "ada"; check the user and the '
            r"password in the URL$"
        ),
    ):
        PostgresStore("postgresql://ada@host/app", "rhythm").schema.version()


def test_server_that_is_not_there_has_refused_nothing() -> None:
    with pytest.raises(StoreError, match=r"^the PostgreSQL database did not answer: "):
        PostgresStore("postgresql://nobody@127.0.0.1:1/x", "rhythm").schema.version()


def test_lock_that_is_held_for_too_long_says_who_holds_it_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_MS", 1)
    one, other = SqliteStore(str(tmp_path / "a.db")), SqliteStore(str(tmp_path / "a.db"))
    one.schema.migrate()
    with (
        one.db.transaction(),
        pytest.raises(
            StoreError,
            match=r"database is locked; another process .* write transaction .*`connection=`$",
        ),
    ):
        other.definitions.register([])
    one.close()
    other.close()
