"""From a database URL to a store. The driver of a database is imported only when a URL needs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rhythm.errors import StoreError
from rhythm.settings import DRIVERS, parted_url, plain_url, show_url
from rhythm.store.interfaces.store import Store
from rhythm.store.sqlfile import migrations

_WITH_DRIVER = " or ".join(f"{name}+{drivers[0]}" for name, drivers in DRIVERS.items())
POSSIBLE = (
    "sqlite:///rhythm.db, sqlite:////absolute/path.db, sqlite://:memory:, "
    "postgresql://user@host/database, and the same as SQLAlchemy writes them "
    f"({_WITH_DRIVER})"
)
Clock = Callable[[], int] | None  # in place of that of the database
SCHEMA = "rhythm"  # of PostgreSQL, unless the URL says ?schema=name
# Parameters of a PostgreSQL URL that are for Rhythm, and unknown to the server.
OURS = ("schema", "pooled", "notify")
SWITCH = {
    "true": True,
    "on": True,
    "1": True,
    "yes": True,
    "false": False,
    "off": False,
    "0": False,
    "no": False,
}


def open_store(
    url: str,
    create: bool = True,
    listen_url: str = "",
    clock_us: Callable[[], int] | None = None,
) -> Store:
    """Opens the store behind a URL, without migrating it. Raises `StoreError` with what is wrong.

    `create=False`: an SQLite file must exist already. `listen_url`: a URL of the same PostgreSQL
    database that bypasses a pooler, for listeners. `clock_us` replaces the clock of the database,
    in tests.
    """
    scheme, colon, rest = plain_url(url).partition("://")
    match scheme if colon else "":
        case "sqlite":
            return _sqlite(url, rest, create, clock_us)
        case "postgresql":
            return _postgres(plain_url(url), _listened(plain_url(listen_url)), clock_us)
    raise StoreError(f"no database can be opened with `{show_url(url)}`; possible are {POSSIBLE}")


def _listened(url: str) -> str:
    """Returns the URL for listeners. Raises `StoreError` if it is not one of PostgreSQL."""
    if url and not url.startswith("postgresql://"):
        raise StoreError(
            f"listen_url is a URL of PostgreSQL, postgresql://user@host/database, not "
            f"`{show_url(url)}`"
        )
    return url


def require_schema(store: Store) -> None:
    """Raises `StoreError` unless the tables are those that this Rhythm works with."""
    found, newest = store.schema.version(), migrations(store.package)[-1][0]
    if not found:
        raise StoreError("the database has no tables of Rhythm: is it the right one?")
    if found > newest:
        raise StoreError(
            f"the tables are those of a newer Rhythm (schema {found}, this one knows up "
            f"to {newest}): upgrade Rhythm"
        )
    if found < newest:
        raise StoreError(
            f"the tables are those of an older Rhythm (schema {found}, this one needs "
            f"{newest}): migrate the database first"
        )


def _sqlite(url: str, rest: str, create: bool, clock_us: Clock) -> Store:
    from rhythm.store.sqlite.store import SqliteStore

    path = rest.removeprefix("/")
    if not path or (rest != ":memory:" and not rest.startswith("/")):
        raise StoreError(
            f"`{url}` names no file: three slashes come before a relative path, four "
            f"begin an absolute one; possible are {POSSIBLE}"
        )
    if "?" in path:
        raise StoreError(
            f"`{url}`: an SQLite URL takes no parameters; leave out what follows the question mark"
        )
    if path != ":memory:":
        _check_file(Path(path), create)
    if clock_us is None:
        return SqliteStore(path, create=create)
    return SqliteStore(path, clock_us, create)


def _check_file(path: Path, create: bool) -> None:
    """Raises `StoreError` for a path that cannot be opened.

    SQLite's own messages do not say which of these problems it is.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database file")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the database file {path.name}")
    if not create and not path.exists():
        raise StoreError(f"there is no database file {path}")


def _postgres(url: str, listen_url: str, clock_us: Clock) -> Store:
    try:
        from rhythm.store.postgres.connecting import Access
        from rhythm.store.postgres.store import PostgresStore
    except ImportError as problem:
        what = (
            "install Rhythm from its checkout with the extra, pip install -e "
            "'PATH/TO/RHYTHM[postgres]'"
        )
        raise StoreError(f"PostgreSQL needs a driver: {what} ({problem})") from problem
    plain, ours = _parted(url)
    access = Access(
        _switch(ours, "pooled", False), _switch(ours, "notify", True), _parted(listen_url)[0]
    )
    return PostgresStore(plain, ours.get("schema", SCHEMA), clock_us, access)


def _parted(url: str) -> tuple[str, dict[str, str]]:
    """Splits a URL into the URL for the server and the parameters for Rhythm."""
    base, _, query = parted_url(url)
    parts = [part.partition("=") for part in query.split("&") if part]
    ours = {name: value for name, _, value in parts if name in OURS}
    kept = "&".join("".join(part) for part in parts if part[0] not in OURS)
    return (f"{base}?{kept}" if kept else base), ours


def _switch(ours: dict[str, str], name: str, default: bool) -> bool:
    """Returns a parameter as true or false. Raises `StoreError` for other values."""
    if name not in ours:
        return default
    if (value := ours[name].lower()) not in SWITCH:
        raise StoreError(
            f"`{name}={ours[name]}` in the database URL: write {name}=on or {name}=off"
        )
    return SWITCH[value]
