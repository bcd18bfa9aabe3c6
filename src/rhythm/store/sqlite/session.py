"""Connections to SQLite: one that writes, used by one thread at a time, and others that only read.

`BEGIN IMMEDIATE` makes every transaction the only writer, so the protocol needs no lock order here.
Commits are synced to disk before they are acknowledged.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from rhythm.errors import StoreError
from rhythm.store.forked import forget, renew_after_fork
from rhythm.store.reading import up_to
from rhythm.store.rows import STORED_WITHOUT_BOOLEANS, R, Row, StatementColumns, with_columns_of
from rhythm.store.sqlfile import statements

PACKAGE = "rhythm.store.sqlite"
SQL = {
    name: text
    for file in (
        "queries.sql",
        "approvals.sql",
        "access.sql",
        "schedules.sql",
        "events.sql",
        "operating.sql",
        "logs.sql",
    )
    for name, text in statements(PACKAGE, file).items()
}
NAMED = StatementColumns(STORED_WITHOUT_BOOLEANS)
BUSY_MS = 30_000
# Pages that a connection keeps, at most: SQLite's own 2 MB are read anew with a million executions.
CACHE_KIB = 32 * 1024
IDLE = 4  # reading connections that stay open while unused
US = 1_000_000
PRIVATE = 0o600  # the permissions of a new file; a umask may take more away
# Closing a file gives up all locks that this process has on it, also those of other connections. So
# the file is created before any connection can have a lock.
_making = threading.Lock()
# In statements that are run for many rows: a value that is given by name, the rows of values that
# it reads, and a value of one of them.
_GIVEN, ROWS, _READ = re.compile(r":(\w+)"), "{rows}", re.compile(r"\bx\.(\w+)")
# How many rows of values a statement takes at once: each run of a statement opens all indexes of
# its table anew, and lets other threads of the process go first.
SIZES = (25, 5, 1)

Clock = Callable[[], int]
InOrder = Callable[[Row], Row]


def clock_us() -> int:
    """Returns the time in microseconds since 1970."""
    return time.time_ns() // 1000


def us(seconds: float) -> int:
    """Returns seconds as whole microseconds."""
    return int(seconds * US)


def connect(path: str, mode: str) -> sqlite3.Connection:
    """Opens a connection in a mode of SQLite: "ro", "rw" or "rwc"."""
    target = path if path == ":memory:" else f"file:{quote(path)}?mode={mode}"
    return sqlite3.connect(
        target,
        uri=target != path,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_MS / 1000,
        cached_statements=256,
    )


def _make_private(path: str) -> None:
    """Creates an empty file that only its owner can read, if there is none.

    It will hold inputs, results and the audit. The files that SQLite puts beside it get the same
    permissions. If it cannot be created, opening the database reports why.
    """
    if path == ":memory:":
        return
    with _making, suppress(OSError):
        os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))


def _opened(path: str, clock: Clock, create: bool) -> sqlite3.Connection:
    if create:
        _make_private(path)
    db = connect(path, "rwc" if create else "rw")
    # Reading the version shows whether the file is a database.
    mode = "journal_mode = WAL" if create else "schema_version"
    try:
        for pragma in (
            mode,
            "synchronous = FULL",
            f"busy_timeout = {BUSY_MS}",
            "temp_store = MEMORY",
            f"cache_size = -{CACHE_KIB}",
        ):
            db.execute(f"PRAGMA {pragma}").fetchall()
    except sqlite3.Error:
        db.close()
        raise
    db.create_function("now_us", 0, clock)
    return db


def _to_do(problem: sqlite3.Error) -> str:
    """Returns advice for an error of a locked database; empty for other errors."""
    if getattr(problem, "sqlite_errorname", "") != "SQLITE_BUSY":
        return ""
    return (
        "; another process or connection has held a write transaction open for longer than "
        f"{BUSY_MS // 1000} s: commit it, or start what belongs to it with `connection=`"
    )


@cache
def for_rows(text: str, columns: tuple[str, ...], count: int) -> tuple[str, InOrder | None]:
    """Returns a statement for so many rows of values, each with `?`, and the function that
    puts the values of a row into the order of these.

    None: they are in that order. A statement says `:name` for a value, or `x.name` if it reads its
    rows `FROM {rows} x`.
    """
    if ROWS in text and count == 1:  # it needs no list
        text = _READ.sub(r":\1", text.replace(f"FROM {ROWS} x ", ""))
    names = _GIVEN.findall(text)
    if ROWS in text:
        names = list(dict.fromkeys(_READ.findall(text)))
        text = text.replace(ROWS, _values(names, count))
    elif count > 1:
        before, row, after = _inserted(text)
        text = f"{before}{', '.join([row] * count)}{after}"
    wanted = tuple(map(columns.index, names))
    ordered = not columns or wanted == tuple(range(len(columns)))
    return _GIVEN.sub("?", text), None if ordered else itemgetter(*wanted)


def _values(names: Sequence[str], count: int) -> str:
    named = ", ".join(f"column{n} AS {name}" for n, name in enumerate(names, 1))
    row = f"({', '.join('?' * len(names))})"
    return f"(SELECT {named} FROM (VALUES {', '.join([row] * count)}))"


def _inserted(text: str) -> tuple[str, str, str]:
    """Returns the row of values of an `INSERT`, and what stands before and after it."""
    before, values, rest = text.partition("VALUES ")
    row, conflict, after = rest.partition("\nON CONFLICT")
    return before + values, row, conflict + after


def _batches(
    statement: str, columns: tuple[str, ...], rows: Sequence[Row]
) -> Iterator[tuple[str, list[Row]]]:
    """Returns the texts of a statement for these rows, each with the values of its runs."""
    takes_several = ROWS in statement or statement.startswith("INSERT INTO")
    for size in SIZES if takes_several else SIZES[-1:]:
        runs = len(rows) // size
        if runs:
            text, in_order = for_rows(statement, columns, size)
            now, rows = rows[: runs * size], rows[runs * size :]
            values = [*map(in_order, now)] if in_order else [*now]
            if size > 1:
                parts = (values[n : n + size] for n in range(0, len(values), size))
                values = [(*chain.from_iterable(part),) for part in parts]
            yield text, values


def some(rows: list[Any], most_bytes: int | None) -> tuple[list[Any], bool]:
    """Returns the rows up to a size, and whether there are more."""
    taken, cut = up_to(rows, most_bytes)
    return with_columns_of(rows, taken), cut


class Readers:
    """Connections that only read, one for each thread that reads at the same time, so that no
    reader waits for another's large result."""

    def __init__(self, path: str) -> None:
        self.path, self._lock = path, threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed: sqlite3.Connection | None = None

    def read(
        self, text: str, args: Any, most_bytes: int | None = None, columns: bool = True
    ) -> tuple[list[Any], bool]:
        """Returns the rows of a statement up to a size, and whether there are more.

        Without `columns` nothing is kept of the statement.
        """
        db = self._taken()
        try:
            cursor = db.execute(text, args)
            try:
                rows, cut = up_to(cursor, most_bytes)
                return NAMED.result(text, rows, cursor) if rows and columns else rows, cut
            finally:
                # An unfinished cursor would keep its read snapshot of the file open.
                cursor.close()
        finally:
            self._give_back(db)

    def _taken(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed is not None or self._idle:
                return self._closed or self._idle.pop()
        return connect(self.path, "ro")

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._lock:
            if self._closed is None and len(self._idle) < IDLE:
                return self._idle.append(db)
        db.close()

    def close(self, closed: sqlite3.Connection) -> None:
        """Closes the idle connections.

        Later reads use `closed`, which raises the error of a closed database.
        """
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], closed
        for db in idle:
            db.close()


class SqliteSession:
    """One SQLite file, or a database in memory (`:memory:`)."""

    def __init__(self, path: str, clock: Clock = clock_us, create: bool = True) -> None:
        """Without `create` the file must exist, and opening it changes nothing in it."""
        if sqlite3.sqlite_version_info < (3, 35):
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old; Rhythm needs 3.35 or newer"
            )
        self.path, self.clock = path, clock
        self._begin(create)
        renew_after_fork(self)

    def _begin(self, create: bool) -> None:
        self.lock = threading.RLock()
        self.readers = Readers(self.path)
        try:
            self.connection = _opened(self.path, self.clock, create)
        except sqlite3.Error as problem:
            raise StoreError(
                f"cannot open the SQLite database {self.path}: {problem}{_to_do(problem)}"
            ) from problem

    def renew(self) -> Any:
        """Opens the connections again, in a forked process.

        A database in memory is a copy that belongs to the child, and is kept.
        """
        before = self.connection, self.readers
        if self.path != ":memory:":
            self._begin(create=False)
        return before

    def close(self) -> None:
        """Closes all connections."""
        forget(self)
        with self.lock:
            self.readers.close(self.connection)
            # Last, because only a connection that may write moves the write-ahead log into the
            # file.
            self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits everything in the block together, or nothing."""
        with self.lock:
            self.fetch("BEGIN IMMEDIATE")
            try:
                yield
                self.fetch("COMMIT")
            except BaseException:
                # Some errors, such as a full disk, have rolled back already.
                if self.connection.in_transaction:
                    self.fetch("ROLLBACK")
                raise

    def fetch(self, text: str, args: Any = ()) -> tuple[list[Any], sqlite3.Cursor]:
        """Runs a statement. Returns its rows and its cursor."""
        try:
            with self.lock:
                cursor = self.connection.execute(text, args)
                return cursor.fetchall(), cursor
        except sqlite3.OperationalError as problem:
            raise self._translated(problem) from problem

    def run(self, text: str, args: Any = ()) -> tuple[list[Any], int]:
        """Runs a statement. Returns its rows with their columns, and how many rows it changed."""
        rows, cursor = self.fetch(text, args)
        return NAMED.result(text, rows, cursor) if rows else rows, cursor.rowcount

    def read(self, text: str, args: Any = ()) -> list[Any]:
        """Returns committed rows.

        For a file it uses connections of its own, so a reader does not wait for a call that waits
        to write.
        """
        return self.read_some(text, args)[0]

    def read_once(self, text: str, args: Any) -> list[Any]:
        """Returns committed rows of a statement of which there are many forms, without columns."""
        if self.path == ":memory:":
            return self.fetch(text, args)[0]
        try:
            return self.readers.read(text, args, columns=False)[0]
        except sqlite3.OperationalError as problem:
            raise self._translated(problem) from problem

    def read_some(
        self, text: str, args: Any, most_bytes: int | None = None
    ) -> tuple[list[Any], bool]:
        """Returns committed rows up to a size, and whether there are more."""
        if self.path == ":memory:":
            return some(self.run(text, args)[0], most_bytes)
        try:
            return self.readers.read(text, args, most_bytes)
        except sqlite3.OperationalError as problem:
            raise self._translated(problem) from problem

    def _translated(self, problem: sqlite3.OperationalError) -> Exception:
        """Returns `StoreError` for a file that is locked for too long or cannot be written, or a
        full disk.

        Errors in a statement are returned as they are.
        """
        # the statement itself is wrong
        if getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:
            return problem
        return StoreError(
            f"the SQLite database {self.path} did not answer: {problem}{_to_do(problem)}"
        )

    def all(self, name: str, *args: Any) -> list[Any]:
        """Runs a named statement. Returns its rows, with their columns."""
        text = SQL[name]
        rows, cursor = self.fetch(text, args[0] if args and isinstance(args[0], dict) else args)
        return NAMED.result(text, rows, cursor) if rows else rows

    def one(self, name: str, *args: Any) -> Any:
        """Returns the first row of a named statement, for statements with few columns; None without
        a row."""
        rows, _ = self.fetch(SQL[name], args[0] if args and isinstance(args[0], dict) else args)
        return rows[0] if rows else None

    def first(self, record: type[R], name: str, *args: Any) -> R | None:
        """Returns the first row of a named statement as a record; None without a row."""
        text = SQL[name]
        rows, cursor = self.fetch(text, args[0] if args and isinstance(args[0], dict) else args)
        return NAMED.columns(text, rows[0], cursor).reader(record)(rows[0]) if rows else None

    def count(self, name: str, *args: Any) -> int:
        """Runs a named statement. Returns how many rows it changed."""
        return self.fetch(SQL[name], args[0] if args and isinstance(args[0], dict) else args)[
            1
        ].rowcount

    def many(self, name: str, columns: tuple[str, ...], rows: Sequence[Row]) -> int:
        """Runs a named statement for each row of values. Returns how many rows of the database were
        changed altogether.

        `columns` are the names that the values have in the statement; empty, if it has none. For
        many rows it takes a fraction of the time of as many calls.
        """
        if not rows:
            return 0
        try:
            with self.lock:
                return sum(
                    self.connection.executemany(text, values).rowcount
                    for text, values in _batches(SQL[name], columns, rows)
                )
        except sqlite3.OperationalError as problem:
            raise self._translated(problem) from problem

    def each(self, name: str, columns: tuple[str, ...], rows: Sequence[Row]) -> list[bool]:
        """Runs a named statement, which changes one row or none, for each row of values. Returns
        for each whether it changed a row.

        Always inside a transaction. Mostly all do, and their number says so. If it does not, they
        are undone, and run again one by one.
        """
        if len(rows) > 1:
            self.fetch("SAVEPOINT each_row")
            all_did = self.many(name, columns, rows) == len(rows)
            if not all_did:
                self.fetch("ROLLBACK TO each_row")
            self.fetch("RELEASE each_row")
            if all_did:
                return [True] * len(rows)
        return [self.many(name, columns, [row]) > 0 for row in rows]
