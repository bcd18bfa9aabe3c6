"""Connections to PostgreSQL: a few sessions, each used by one thread at a time; transactions,
retries, and new sessions for broken ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.adapt import AdaptersMap, PyFormat
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from rhythm.errors import StoreError, Unavailable
from rhythm.store.postgres.connecting import LONG_S, Access, PatientConnection, Row, connected
from rhythm.store.rows import STORED, StatementColumns
from rhythm.store.sqlfile import statements

PACKAGE = "rhythm.store.postgres"

# Values go in binary (`%b`): as text, escaping the arrays of a batch takes longer than everything
# else that is done with them.
SQL = {
    name: re.sub(r"%\((\w+)\)s", r"%(\1)b", text).encode()
    for file in (
        "queries.sql",
        "approvals.sql",
        "access.sql",
        "schedules.sql",
        "events.sql",
        "operating.sql",
    )
    for name, text in statements(PACKAGE, file).items()
}
NAMED = StatementColumns(STORED)
TRIES = 20  # of a transaction that conflicts with another one
SESSIONS = 4  # of one store, in ordinary times
# After this time a thread gets a session all the same: the threads that have all sessions may be
# waiting for this one.
PATIENCE_S = 1.0

# Every statement is written for one plan: along an index, by nested loops. Tables that have just
# been filled, or were empty when they were last analysed, must not lead the planner to another
# plan.
PINNED = {
    "plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off",
    "enable_mergejoin": "off", "jit": "off",
}  # fmt: skip

# A process that is frozen in the middle of a transaction must not block the others for ever. No
# user code runs inside our transactions.
BOUNDED = {"lock_timeout": "20s", "idle_in_transaction_session_timeout": "10s"}
IMPATIENT = "2s"  # for a lock: a service that tries again later need not wait long

# A transaction that only reads blocks nobody, so it may be idle for long and use any plan.
READING = {
    **dict.fromkeys(PINNED, "on"),
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "idle_in_transaction_session_timeout": "0",
}

FROZEN: LiteralString = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
POOLER = (
    "a pooler lies between Rhythm and the PostgreSQL server, and gives it another session for "
    "every transaction: add pooled=true to the URL (…?pooled=true), or connect to the server "
    "itself"
)

LOCKED_MESSAGE = (
    "another transaction has held for too long what this one needs (`rhythm doctor` tells how "
    "old the oldest is; pg_stat_activity and pg_locks tell whose it is)"
)

DIRECT = Access()
Clock = Callable[[], int]
T = TypeVar("T")


class UndoneError(Exception):
    """Ends a transaction with an answer, and rolls everything back."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class AgainError(Exception):
    """Runs the transaction again: something changed while it waited."""


class ThreadState(threading.local):
    """The session that the calling thread uses, and its state."""

    busy = False  # it is inside a call, which has its session
    open: PatientConnection | None = None
    begun = False  # a transaction, in a session that the pooler lends for it
    autocommits = False  # each statement is a transaction

    def __init__(self) -> None:
        # Queues that have something to claim once this is committed.
        self.freed: set[str] = set()


class Column(ListBinaryDumper):
    """A list of values of one type. psycopg would check all of them, several times, to find that
    out."""

    def _find_list_element(self, L: list[Any], format: PyFormat) -> Any:
        return next((item for item in L if item is not None), None)


def with_our_types(adapters: AdaptersMap) -> None:
    """Makes a connection or a cursor send integers and lists as our statements want them."""
    # One type for all integers: otherwise the size of a number would decide the plan.
    for dumper in (Int8Dumper, Int8BinaryDumper):
        adapters.register_dumper(int, dumper)
    adapters.register_dumper(list, Column)


class Connection:
    """Runs named statements on the tables of one schema.

    `clock` replaces the database's time in tests. Each call has a session for itself, so a call
    that waits for a lock does not block the calls of other threads.
    """

    def __init__(
        self,
        url: str,
        schema: str,
        clock: Clock | None,
        access: Access = DIRECT,
        notify: Callable[[set[str]], object] | None = None,
    ) -> None:
        """`notify` is called after the commit of something that can be claimed, with its queues."""
        self.url = url
        self.schema = schema
        self.clock = clock
        self.access = access
        self._notify = notify
        self._thread = ThreadState()
        self._room = threading.Semaphore(SESSIONS)
        self._sessions = SESSIONS
        self._idle: list[PatientConnection] = []
        self._last: PatientConnection | None = None
        # Counts how often sessions were lost. Sessions of an earlier era are not used again.
        self.era = 0
        # Whether a check for a pooler is no longer needed: sessions are known to be ours, or known
        # to be lent.
        self._direct = access.pooled

    def close(self) -> None:
        """Closes all sessions. Waits a short time for calls that are under way."""
        taken = [self._room.acquire(timeout=PATIENCE_S) for _ in range(self._sessions)]
        self._forget()
        self._room.release(sum(taken))

    def expect(self, threads: int) -> None:
        """Allows as many sessions as there are threads that ask at once.

        They are opened when they are needed.
        """
        more = max(threads - self._sessions, 0)
        self._sessions += more
        if more:
            self._room.release(more)

    @property
    def backend(self) -> int:
        """The process id of the server behind the session that was used last; 0 without one."""
        return (
            self._last.info.backend_pid if self._last is not None and not self._last.closed else 0
        )

    @property
    def _open(self) -> PatientConnection | None:
        return self._thread.open

    def transaction(self, work: Callable[[], T]) -> T:
        """Runs `work` in one transaction: all of it is committed, or nothing.

        `work` may run more than once.
        """
        return self._run(lambda connection: self._in_transaction(connection, work))

    def autocommit(self, work: Callable[[], T]) -> T:
        """Runs `work`, and commits each of its statements by itself."""
        return self._run(lambda connection: self._as(not self._thread.begun, work))

    def all(self, name: str, /, **values: Any) -> list[Row]:
        """Runs a named statement. Returns its rows, with their columns."""
        return self.rows(SQL[name], values)

    def ask(self, name: str, /, **values: Any) -> list[Row]:
        """Runs one named statement that needs no transaction around it. Returns its rows."""
        return self.autocommit(lambda: self.all(name, **values))

    def rows(self, text: bytes, values: Mapping[str, Any]) -> list[Row]:
        """Returns the rows of a statement, with its columns."""
        cursor = self.query(text, values)
        rows = cursor.fetchall()
        return NAMED.result(text, rows, cursor) if rows else rows

    def do(self, name: str, /, **values: Any) -> None:
        """Runs a named statement that returns no rows."""
        self.query(SQL[name], values)

    def batch(
        self, name: str, rows: Sequence[Mapping[str, Any]], more: str = "", /, **values: Any
    ) -> list[Row]:
        """Runs a statement over rows, which it gets as one array for each column.

        Without rows it runs nothing. `more`: the name of a text that is appended to it, for more
        values to return.
        """
        if not rows:
            return []
        text = SQL[name] + SQL[more] if more else SQL[name]
        cursor = self.query(
            text, {**{key: [row[key] for row in rows] for key in rows[0]}, **values}
        )
        if not cursor.description:
            return []
        found = cursor.fetchall()
        return NAMED.result(text, found, cursor) if found else found

    def query(
        self, text: bytes | sql.Composed, values: Mapping[str, Any] | None = None
    ) -> psycopg.Cursor[Row]:
        """Runs a statement on the session of this thread. Returns its cursor."""
        assert self._open is not None
        if self.access.pooled and not self._thread.begun:
            return (
                self._by_itself(self._open, text, values)
                if self._thread.autocommits
                else self._begin(self._open, text, values)
            )
        return self._open.execute(text, values, binary=True)

    def some(
        self, text: bytes, values: Mapping[str, Any], large: Sequence[str], most_bytes: int | None
    ) -> tuple[list[Row], bool]:
        """Returns the rows of a statement until their `large` columns have so many bytes, at least
        one row, and whether others follow.

        The database knows the length of a text without reading it.
        """
        if most_bytes is None:
            return self.rows(text, values), False
        size = " + ".join(f"coalesce(octet_length({name}), 0)" for name in large).encode()
        cursor = self.query(
            b"SELECT * FROM (SELECT r.*, count(*) OVER () AS row_count, "
            b"sum(row_bytes) OVER (ORDER BY row_no) - row_bytes AS bytes_before FROM ("
            b"SELECT t.*, row_number() OVER () AS row_no, "
            + size
            + b" AS row_bytes FROM ("
            + text
            + b") t) r) s "
            b"WHERE bytes_before < %(most_bytes)s ORDER BY row_no",
            {**values, "most_bytes": most_bytes},
        )
        rows = cursor.fetchall()
        if not rows:
            return rows, False
        *_, row_count, _ = rows[0]
        # The columns of the statement. After them come the four that bound the result.
        own = len(rows[0]) - 4
        return NAMED.result(text, [row[:own] for row in rows], cursor), row_count > len(rows)

    def free(self, queues: Iterable[str]) -> None:
        """Notes that these queues have something to claim once this is committed."""
        self._thread.freed.update(queues)

    def set(self, name: str, value: str, local: bool = False) -> None:
        """Sets a parameter of the session, or only of the transaction."""
        self.query(
            b"SELECT set_config(%(name)s, %(value)s, %(local)s)",
            {"name": name, "value": value, "local": local},
        )

    def hasten(self) -> None:
        """Makes the transaction wait only a short time for locks of others."""
        self.set("lock_timeout", IMPATIENT, local=True)

    def script(self, text: str) -> None:
        """Runs several statements without values, which may take long."""
        assert self._open is not None
        self._open.answer_s = LONG_S
        self._open.execute(text.encode())

    def lock(self, key: str) -> None:
        """Waits for a lock on this key, until the end of the transaction: one transaction at a time
        has it."""
        self.query(b"SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))", {"key": key})

    def now(self) -> int:
        """Returns the time of the database, or of the test's clock."""
        return self.clock() if self.clock else int(self.all("now")[0][0])

    def freeze(self) -> None:
        """Lets the transaction, which has just begun, see the database as it is now, however long
        it reads.

        It reads whole tables, so the planner may choose any plan.
        """
        assert self._open is not None
        if self.access.pooled:
            self._begin(self._open, b"SELECT 1", None, f"BEGIN {FROZEN}")
        else:
            self._open.execute(f"SET TRANSACTION {FROZEN}")
        self.query(_setting(READING, local=True))
        self._open.answer_s = LONG_S

    # The connection itself.

    def _run(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        """Runs `work` on a session of this thread, again after a conflict. Raises `StoreError` or
        `Unavailable` for the server's errors."""
        with self._session():
            for _ in range(TRIES):
                try:
                    return self._once(work)
                except (AgainError, errors.DeadlockDetected, errors.SerializationFailure):
                    self._thread.freed.clear()
                except errors.LockNotAvailable as problem:
                    raise StoreError(f"{LOCKED_MESSAGE}: {problem}") from problem
                # a value is too large: sending it again would not help
                except errors.ProgramLimitExceeded:
                    raise
                except errors.RaiseException as problem:  # raised by one of our triggers
                    raise StoreError(
                        f"the PostgreSQL database refuses it: {problem.diag.message_primary}"
                    ) from problem
                except (
                    psycopg.OperationalError,
                    psycopg.InternalError,
                    psycopg.InterfaceError,
                ) as problem:
                    # This includes the error of a read-only server: the next connection may lead to
                    # the server that took its place.
                    self._forget()
                    raise Unavailable(
                        f"the PostgreSQL database did not answer: {problem}"
                    ) from problem
                except errors.InsufficientPrivilege as problem:
                    raise StoreError(
                        f"the user of the PostgreSQL database lacks a privilege: {problem}"
                    ) from problem
            raise StoreError(f"{TRIES} times in a row a transaction had to give way to others")

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Takes a session for this thread, preferably the one that was used last.

        A call inside a call uses the same session.
        """
        if self._thread.busy:
            yield
            return
        stays = self._room.acquire(timeout=PATIENCE_S)
        try:
            self._thread.busy = True
            with suppress(IndexError):
                self._thread.open = self._idle.pop()
            yield
        finally:
            self._give_back(stays)
            freed, self._thread.freed = self._thread.freed, set()
            if freed and self._notify:
                self._notify(freed)

    def _give_back(self, stays: bool) -> None:
        used, self._thread.open, self._thread.busy = self._thread.open, None, False
        if used is not None and stays and used.era == self.era:
            used.answer_s = self.access.answer_s
            self._idle.append(used)
        elif used is not None:
            used.close()
        if stays:
            self._room.release()

    def _once(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        connection = self._connected()
        if self.access.pooled:
            return work(connection) if self._thread.begun else self._lent(connection, work)
        if self.clock:
            self.set("rhythm.now_us", str(self.clock()))
        return work(connection)

    def _lent(
        self, connection: PatientConnection, work: Callable[[psycopg.Connection[Row]], T]
    ) -> T:
        """Runs `work` as one transaction: a pooler lends the session for no longer than that."""
        try:
            answer = work(connection)
            if self._thread.begun:
                connection.execute("COMMIT")
        except UndoneError as undone:
            answer = undone.answer
            self._undo(connection)
        except BaseException:
            with suppress(psycopg.Error):
                self._undo(connection)
            raise
        finally:
            self._thread.begun = False
        return answer

    def _begin(
        self,
        connection: PatientConnection,
        text: bytes | sql.Composed,
        values: Mapping[str, Any] | None,
        how: LiteralString = "BEGIN",
    ) -> psycopg.Cursor[Row]:
        """Begins a transaction: sends its first statement together with the settings of the
        session."""
        with connection.pipeline():
            self._introduce(connection, how)
            return connection.execute(text, values, binary=True)

    def _introduce(self, connection: PatientConnection, how: LiteralString = "BEGIN") -> None:
        clock = {"rhythm.now_us": str(self.clock())} if self.clock else {}
        self._thread.begun = True
        connection.execute(how)
        connection.execute(_setting({**self._settings(connection), **clock}, local=True))

    def _by_itself(
        self,
        connection: PatientConnection,
        text: bytes | sql.Composed,
        values: Mapping[str, Any] | None,
    ) -> psycopg.Cursor[Row]:
        """Sends a statement with a transaction around it, all in one go."""
        try:
            with connection.pipeline():
                self._introduce(connection)
                answer = connection.execute(text, values, binary=True)
                connection.execute("COMMIT")
            return answer
        except psycopg.Error:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            self._thread.begun = False

    def _undo(self, connection: PatientConnection) -> None:
        self._thread.freed.clear()
        if self._thread.begun:
            connection.execute("ROLLBACK")

    def _in_transaction(self, connection: psycopg.Connection[Row], work: Callable[[], T]) -> T:
        return (
            self._as(False, work)
            if self.access.pooled and not self._thread.begun
            else self._whole(connection, work)
        )

    def _as(self, autocommits: bool, work: Callable[[], T]) -> T:
        before, self._thread.autocommits = self._thread.autocommits, autocommits
        try:
            return work()
        finally:
            self._thread.autocommits = before

    def _whole(self, connection: psycopg.Connection[Row], work: Callable[[], T]) -> T:
        try:
            with connection.transaction():
                return work()
        except UndoneError as undone:
            self._thread.freed.clear()
            answer: T = undone.answer
            return answer

    def _connected(self) -> PatientConnection:
        if self._open is None or self._open.closed:
            opened = self._thread.open = self._last = self._connect()
            with_our_types(opened.adapters)
            if not self._direct:
                self._refuse_pooler(opened)
            if not self.access.pooled:
                self.query(_setting(self._settings(opened)))
            return opened
        self._last = self._open
        return self._open

    def _settings(self, connection: PatientConnection) -> dict[str, str]:
        return {
            "search_path": sql.Identifier(self.schema).as_string(connection),
            **PINNED,
            **BOUNDED,
        }

    def _connect(self) -> PatientConnection:
        session = connected(self.url, self.access.answer_s, prepares=not self.access.pooled)
        session.era = self.era
        return session

    def _refuse_pooler(self, opened: PatientConnection) -> None:
        """Raises `StoreError` if a pooler lends sessions for each transaction: nothing may be set
        in a session that others use, too.

        A pooler reports another process id than the server's process has. A pooler in session mode
        does no harm: no other connection has our process, and we keep it.
        """
        own = _process(opened)
        if own != opened.info.backend_pid:
            with closing(self._connect()) as other:
                lent = _process(other) == own or _process(opened) != own
            if lent:
                self._forget()
                raise StoreError(POOLER)
        self._direct = True

    def _forget(self) -> None:
        """Closes this session and all idle ones, and begins a new era: the others are as broken.

        Nothing is sent on them again, whatever the server still does with them.
        """
        self.era += 1
        if self._open is not None:
            self._open.close()
            self._thread.open = None
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class Spare:
    """Connections without our settings, each lent to one user for a while.

    Any thread may use it.
    """

    def __init__(self, url: str, access: Access) -> None:
        self.url, self.access = url, access
        self._free: list[PatientConnection] = []

    @contextmanager
    def connection(self) -> Iterator[PatientConnection]:
        """Lends a connection that nobody else uses.

        The settings of its last user are reset. Its statements may take any time.
        """
        connection = None
        try:
            connection = self._taken()
            connection.answer_s = float("inf")
            yield connection
            self._free.append(connection)
        except BaseException as problem:
            if connection is not None:
                connection.close()
            if isinstance(problem, psycopg.Error):
                raise StoreError(f"the PostgreSQL database did not answer: {problem}") from problem
            raise

    def _taken(self) -> PatientConnection:
        while self._free:
            connection = self._free.pop()
            connection.answer_s = self.access.answer_s
            try:
                connection.execute("SELECT 1" if self.access.pooled else "DISCARD ALL")
                return connection
            except psycopg.Error:  # broken since its last use: the server was restarted
                connection.close()
        return connected(self.url, self.access.answer_s, prepares=not self.access.pooled)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()


def _setting(settings: Mapping[str, str], local: bool = False) -> sql.Composed:
    calls = [
        sql.SQL("set_config({}, {}, {})").format(name, value, local)
        for name, value in settings.items()
    ]
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls))


def _process(session: PatientConnection) -> int:
    """Returns the id of the server's process that answers."""
    return int(session.execute("SELECT pg_backend_pid()").fetchall()[0][0])
