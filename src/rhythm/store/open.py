"""From a database URL to a store. The driver of a database is imported only when a URL asks for it."""

from __future__ import annotations

from pathlib import Path

from rhythm.errors import StoreError
from rhythm.store.base import Store
from rhythm.store.sqlfile import migrations

POSSIBLE = "sqlite:///rhythm.db, sqlite:////absolute/path.db, sqlite://:memory:, postgresql://user@host/database"
SCHEMA = "rhythm"  # of PostgreSQL, unless the URL says ?schema=name


def open_store(url: str, create: bool = True) -> Store:
    """The store behind a URL, not migrated. `create=False`: an SQLite file must be there already. `StoreError` says what is wrong."""
    scheme, colon, rest = url.partition("://")
    match scheme.lower() if colon else "":
        case "sqlite":
            return _sqlite(url, rest, create)
        case "postgresql" | "postgres":
            return _postgres(f"postgresql://{rest}")
    raise StoreError(f"no database can be opened with `{_without_password(url)}`; possible are {POSSIBLE}")


def require_schema(store: Store) -> None:
    """`StoreError` unless the tables are those that this Rhythm works with."""
    found, newest = store.schema_version(), migrations(store.package)[-1][0]
    if not found:
        raise StoreError("the database has no tables of Rhythm: is it the right one?")
    if found > newest:
        raise StoreError(f"the tables are those of a newer Rhythm (schema {found}, this one knows up to {newest}): upgrade Rhythm")
    if found < newest:
        raise StoreError(f"the tables are those of an older Rhythm (schema {found}, this one needs {newest}): migrate the database first")


def _sqlite(url: str, rest: str, create: bool) -> Store:
    from rhythm.store.sqlite.store import SqliteStore

    path = rest.removeprefix("/")
    if not path or (rest != ":memory:" and not rest.startswith("/")):
        raise StoreError(
            f"`{url}` names no file: three slashes come before a relative path, four begin an absolute one; possible are {POSSIBLE}"
        )
    if "?" in path:
        raise StoreError(f"`{url}`: an SQLite URL takes no parameters; leave out what follows the question mark")
    if path != ":memory:":
        _look_at(Path(path), create)
    return SqliteStore(path, create=create)


def _look_at(path: Path, create: bool) -> None:
    """SQLite's own messages do not say which of these it was."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database file")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the database file {path.name}")
    if not create and not path.exists():
        raise StoreError(f"there is no database file {path}")


def _postgres(url: str) -> Store:
    try:
        from rhythm.store.postgres.store import PostgresStore
    except ImportError as problem:
        what = "install Rhythm from its checkout with the extra, pip install -e 'PATH/TO/RHYTHM[postgres]'"
        raise StoreError(f"PostgreSQL needs a driver: {what} ({problem})") from problem
    base, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part]
    schema = next((part.partition("=")[2] for part in parts if part.startswith("schema=")), SCHEMA)
    kept = "&".join(part for part in parts if not part.startswith("schema="))
    return PostgresStore(f"{base}?{kept}" if kept else base, schema)


def _without_password(url: str) -> str:
    """For messages: they end up in logs."""
    scheme, colon, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{colon}{user.partition(':')[0]}{at}{place}"
