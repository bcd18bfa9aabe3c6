"""The way to PostgreSQL: a few sessions, each used by one thread at a time; transactions, retries,
and new sessions for broken ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.adapt import PyFormat
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from rhythm.errors import StoreError, Unavailable
from rhythm.store.postgres.connecting import LONG_S, Access, PatientConnection, Row, connected
from rhythm.store.postgres.hints import channel_of, notify, written
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
TRIES = 20  # of a transaction that met another one
SESSIONS = 4  # of one store, in ordinary times
# then a thread gets a session all the same: those who have them may be waiting for it
PATIENCE_S = 1.0

# Every statement is written for one plan: along an index, by nested loops. Tables that have just
# been filled, or were empty when they were last analysed, must not talk the planner out of it.
PINNED = {
    "plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off",
    "enable_mergejoin": "off", "jit": "off",
}  # fmt: skip

# A process that is frozen in the middle of a transaction is not to freeze the others for ever. No
# code of users runs within ours.
BOUNDED = {"lock_timeout": "20s", "idle_in_transaction_session_timeout": "10s"}
IMPATIENT = "2s"  # for a lock: whoever comes back anyway need not insist

# Who only reads is in nobody's way.
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
    """The answer is known, and nothing of the transaction is to stay."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class AgainError(Exception):
    """Something has changed while the transaction waited: it must look anew."""


class ThreadState(threading.local):
    """What the calling thread uses."""

    busy = False  # it is inside a call, which has its session
    open: PatientConnection | None = None
    begun = False  # a transaction, in a session that is lent for it
    autocommits = False  # each statement is a transaction

    def __init__(self) -> None:
        # queues in which there is something to claim, once it is committed
        self.freed: set[str] = set()


class Column(ListBinaryDumper):
    """A list of values of one type. psycopg would look at all of them, several times, to find out
    whether they are."""

    def _find_list_element(self, L: list[Any], format: PyFormat) -> Any:
        return next((item for item in L if item is not None), None)


class Connection:
    """Runs named statements in the tables of one schema. `clock`: the time of tests; else it is the
    database's.

    A call that waits, perhaps for a lock of its own caller's transaction, does not keep the calls
    of other threads waiting.
    """

    def __init__(
        self,
        url: str,
        schema: str,
        clock: Clock | None,
        access: Access = DIRECT,
        notify: Callable[[set[str]], object] | None = None,
    ) -> None:
        """`notify` is called after the commit of what can be claimed, with its queues."""
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
        # counts the times that sessions were lost: those of another one are not used again
        self.era = 0
        # known: that sessions are ours for as long as we like, or that they are not
        self._direct = access.pooled

    def close(self) -> None:
        """Lets those who are using it end first."""
        taken = [self._room.acquire(timeout=PATIENCE_S) for _ in range(self._sessions)]
        self._forget()
        self._room.release(sum(taken))

    def expect(self, threads: int) -> None:
        """As many sessions as there are threads that ask at once; they are opened when they are
        needed."""
        more = max(threads - self._sessions, 0)
        self._sessions += more
        if more:
            self._room.release(more)

    @property
    def backend(self) -> int:
        """The process of the server behind the session that was used last; 0 without one."""
        return (
            self._last.info.backend_pid if self._last is not None and not self._last.closed else 0
        )

    @property
    def _open(self) -> PatientConnection | None:
        return self._thread.open

    def transaction(self, work: Callable[[], T]) -> T:
        """Everything that `work` does is committed together, or nothing is. It may run more than
        once."""
        return self._run(lambda connection: self._in_transaction(connection, work))

    def autocommit(self, work: Callable[[], T]) -> T:
        """Each statement of `work` is committed by itself."""
        return self._run(lambda connection: self._as(not self._thread.begun, work))

    def all(self, name: str, /, **values: Any) -> list[Row]:
        return self.rows(SQL[name], values)

    def ask(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that needs no transaction around it."""
        return self.autocommit(lambda: self.all(name, **values))

    def rows(self, text: bytes, values: Mapping[str, Any]) -> list[Row]:
        """The rows of a statement, with its columns."""
        cursor = self.query(text, values)
        rows = cursor.fetchall()
        return NAMED.result(text, rows, cursor) if rows else rows

    def do(self, name: str, /, **values: Any) -> None:
        self.query(SQL[name], values)

    def batch(
        self, name: str, rows: Sequence[Mapping[str, Any]], more: str = "", /, **values: Any
    ) -> list[Row]:
        """A statement over rows that it gets as one array for each column; no rows, no statement.
        `more`: what it returns, too."""
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
        """The rows of a statement until their `large` columns have so many bytes, at least one; and
        whether others follow. The database knows how long a text is without reading it."""
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
        own = len(rows[0]) - 4  # columns of the statement; after them come the four that bound it
        return NAMED.result(text, [row[:own] for row in rows], cursor), row_count > len(rows)

    def free(self, queues: Iterable[str]) -> None:
        """In these queues there is something to claim, once this is committed."""
        self._thread.freed.update(queues)

    def set(self, name: str, value: str, local: bool = False) -> None:
        """Sets a parameter of the session, or of the transaction."""
        self.query(
            b"SELECT set_config(%(name)s, %(value)s, %(local)s)",
            {"name": name, "value": value, "local": local},
        )

    def hasten(self) -> None:
        """The transaction does not wait long for what others have locked."""
        self.set("lock_timeout", IMPATIENT, local=True)

    def script(self, text: str) -> None:
        """Several statements without values, which may take long."""
        assert self._open is not None
        self._open.answer_s = LONG_S
        self._open.execute(text.encode())

    def lock(self, key: str) -> None:
        """One transaction at a time for each key."""
        self.query(b"SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))", {"key": key})

    def now(self) -> int:
        return self.clock() if self.clock else int(self.all("now")[0][0])

    def freeze(self) -> None:
        """The transaction, which begins, sees the database as it is now, however long it looks. It
        goes through whole tables, which is no hot statement: the planner is free."""
        assert self._open is not None
        if self.access.pooled:
            self._begin(self._open, b"SELECT 1", None, f"BEGIN {FROZEN}")
        else:
            self._open.execute(f"SET TRANSACTION {FROZEN}")
        self.query(_setting(READING, local=True))
        self._open.answer_s = LONG_S

    # the connection itself

    def _run(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        with self._session():
            for _ in range(TRIES):
                try:
                    return self._once(work)
                except (AgainError, errors.DeadlockDetected, errors.SerializationFailure):
                    self._thread.freed.clear()
                except errors.LockNotAvailable as problem:
                    raise StoreError(f"{LOCKED_MESSAGE}: {problem}") from problem
                except errors.ProgramLimitExceeded:  # of a value: to send it again would not help
                    raise
                except errors.RaiseException as problem:  # of a trigger of ours
                    raise StoreError(
                        f"the PostgreSQL database refuses it: {problem.diag.message_primary}"
                    ) from problem
                except (
                    psycopg.OperationalError,
                    psycopg.InternalError,
                    psycopg.InterfaceError,
                ) as problem:
                    # also that of a server that may only be read: the next may lead to the one that
                    # took its place
                    self._forget()
                    raise Unavailable(
                        f"the PostgreSQL database did not answer: {problem}"
                    ) from problem
                except errors.InsufficientPrivilege as problem:
                    raise StoreError(
                        f"the user of the PostgreSQL database lacks a right: {problem}"
                    ) from problem
            raise StoreError(f"{TRIES} times in a row a transaction had to give way to others")

    @contextmanager
    def _session(self) -> Iterator[None]:
        """A session for this thread, preferably the one that was used last; what is called within a
        call uses the same."""
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
        """All of it is one transaction: for the next one the pooler lends another session."""
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
        """The first statement of a transaction, sent together with what its session must know."""
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
        """A statement with a transaction around it, all sent together."""
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
            # one type for all: else the size of a number would choose the plan
            for dumper in (Int8Dumper, Int8BinaryDumper):
                opened.adapters.register_dumper(int, dumper)
            opened.adapters.register_dumper(list, Column)
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
        """Nothing may be set in a session that others use, too. A pooler has no number of its
        server's process to tell, so it tells another; in session mode it does no harm: there no
        other connection has our process, and we keep it."""
        own = _process(opened)
        if own != opened.info.backend_pid:
            with closing(self._connect()) as other:
                lent = _process(other) == own or _process(opened) != own
            if lent:
                self._forget()
                raise StoreError(POOLER)
        self._direct = True

    def _forget(self) -> None:
        """Whatever the server still does with it, nothing is sent on this session again, nor on the
        others: they are as broken."""
        self.era += 1
        if self._open is not None:
            self._open.close()
            self._thread.open = None
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class Spare:
    """Connections without settings of ours, for those who need one of their own for a while. Any
    thread."""

    def __init__(self, url: str, access: Access) -> None:
        self.url, self.access = url, access
        self._free: list[PatientConnection] = []

    @contextmanager
    def connection(self) -> Iterator[PatientConnection]:
        """One that nobody else uses; what its last user has set is forgotten. How long its
        statements take is its user's business."""
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
            except psycopg.Error:  # broken since it was used: the server was restarted
                connection.close()
        return connected(self.url, self.access.answer_s, prepares=not self.access.pooled)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()


class Joined(Connection):
    """Somebody else's connection, inside its transaction: commits nothing, and undoes only what it
    did itself."""

    def __init__(self, given: Any, store: Connection, notifies: bool = True) -> None:
        """`notifies`: of what can be claimed, with the commit, since nobody can do so after it."""
        super().__init__(store.url, store.schema, store.clock, store.access)
        self._notifies = notifies and store.access.notify
        if not isinstance(given, psycopg.Connection):
            raise TypeError(
                f"`connection` must be a psycopg connection (not an asynchronous one), "
                f"not {type(given).__name__}"
            )
        self._given = given

    def close(self) -> None:
        """It is not ours to close."""

    def autocommit(self, work: Callable[[], T]) -> T:
        return self.transaction(work)

    def query(
        self, text: bytes | sql.Composed, values: Mapping[str, Any] | None = None
    ) -> psycopg.Cursor[Row]:
        prepare = False if self.access.pooled else None
        return self._given.cursor(row_factory=tuple_row).execute(
            text, values, binary=True, prepare=prepare
        )

    @property
    def freed(self) -> set[str]:
        return self._thread.freed

    def _run(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        """Its owner's problems are its owner's: what PostgreSQL says is passed on as it is."""
        connection = self._given
        if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
            raise ValueError(
                "`connection` commits every statement by itself: begin a transaction "
                "first (with connection.transaction(): …)"
            )
        for _ in range(TRIES):
            try:
                answer = work(connection)
                if self.freed and self._notifies:
                    self.query(notify(channel_of(self.schema), written(self.freed)))
                    self.freed.clear()
                return answer
            except AgainError:
                self.freed.clear()
        raise StoreError(f"{TRIES} times in a row a start had to give way to others")

    def _in_transaction(self, connection: psycopg.Connection[Row], work: Callable[[], T]) -> T:
        """The path must be asked for first: that begins the transaction, and the one below becomes
        a savepoint of it."""
        path = self.query(b"SELECT current_setting('search_path')").fetchall()[0][0]

        def inside() -> T:
            self.set("search_path", sql.Identifier(self.schema).as_string(connection), local=True)
            if self.clock:
                self.set("rhythm.now_us", str(self.clock()), local=True)
            answer = work()
            self.set("search_path", path, local=True)
            return answer

        return self._whole(connection, inside)


def _setting(settings: Mapping[str, str], local: bool = False) -> sql.Composed:
    calls = [
        sql.SQL("set_config({}, {}, {})").format(name, value, local)
        for name, value in settings.items()
    ]
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls))


def _process(session: PatientConnection) -> int:
    """The server's process that answers."""
    return int(session.execute("SELECT pg_backend_pid()").fetchall()[0][0])
