"""The way to PostgreSQL: a few sessions, each used by one thread at a time; transactions, retries, and new sessions for broken ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from rhythm.errors import StoreError, Unavailable
from rhythm.store.sqlfile import statements

# Values go in binary (`%b`): as text, escaping the arrays of a batch takes longer than everything else that is done with them.
SQL = {name: re.sub(r"%\((\w+)\)s", r"%(\1)b", text).encode() for name, text in statements("rhythm.store.postgres", "queries.sql").items()}
TRIES = 20  # of a transaction that met another one
SESSIONS = 4  # of one store, in ordinary times
PATIENCE_S = 1.0  # then a thread gets a session all the same: those who have them may be waiting for it

# Every statement is written for one plan: along an index, by nested loops. Tables that have just been filled, or were empty when
# they were last analysed, must not talk the planner out of it.
PINNED = {
    "plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
}  # fmt: skip

# A process that is frozen in the middle of a transaction is not to freeze the others for ever.
BOUNDED = {"lock_timeout": "20s", "idle_in_transaction_session_timeout": "60s"}

REFUSALS = {  # what the server says, and what to do
    r'database ".*" does not exist': "make the database with `createdb NAME`, or check its name in the URL",
    r'role ".*" does not exist|authentication failed|no password supplied': "check the user and the password in the URL",
    r"no pg_hba.conf entry": "check the user and the host in the URL, and pg_hba.conf of the server",
}

PASSING = "starting up|shutting down|in recovery mode|not yet accepting|too many clients|too many connections"  # refusals that end by themselves

Clock = Callable[[], int]
Row = Any  # a tuple, as wide as its statement says
T = TypeVar("T")


class UndoneError(Exception):
    """The answer is known, and nothing of the transaction is to stay."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class AgainError(Exception):
    """Something has changed while the transaction waited: it must look anew."""


def _connected(url: str) -> psycopg.Connection[Row]:
    """A new connection. A server that answers, and refuses, is told apart from one that does not answer."""
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.ProgrammingError as problem:
        raise StoreError(f"the PostgreSQL URL cannot be used: {problem}") from problem
    except psycopg.OperationalError as problem:
        if "FATAL" not in str(problem) or re.search(PASSING, str(problem)):
            raise
        raise StoreError(f"the PostgreSQL server refused the connection: {problem}{_to_check(str(problem))}") from problem


def _to_check(refusal: str) -> str:
    """What to do about a refusal. Of what the server says while it connects there is the text alone, without a code."""
    return next((f"; {advice}" for said, advice in REFUSALS.items() if re.search(said, refusal)), "")


class Mine(threading.local):
    """What the calling thread uses."""

    busy = False  # it is inside a call, which has its session
    open: psycopg.Connection[Row] | None = None


class Connection:
    """Runs named statements in the tables of one schema. `clock`: the time of tests; else it is the database's.

    A call that waits, perhaps for a lock of its own caller's transaction, does not keep the calls of other threads waiting.
    """

    def __init__(self, url: str, schema: str, clock: Clock | None) -> None:
        self.url, self.schema, self.clock = url, schema, clock
        self._mine, self._room = Mine(), threading.Semaphore(SESSIONS)
        self._idle: list[psycopg.Connection[Row]] = []
        self._last: psycopg.Connection[Row] | None = None

    def close(self) -> None:
        """Lets those who are using it end first."""
        taken = [self._room.acquire(timeout=PATIENCE_S) for _ in range(SESSIONS)]
        self._forget()
        self._room.release(sum(taken))

    @property
    def backend(self) -> int:
        """The process of the server behind the session that was used last; 0 without one."""
        return self._last.info.backend_pid if self._last is not None and not self._last.closed else 0

    @property
    def _open(self) -> psycopg.Connection[Row] | None:
        return self._mine.open

    def transaction(self, work: Callable[[], T]) -> T:
        """Everything that `work` does is committed together, or nothing is. It may run more than once."""
        return self._run(lambda connection: self._in_transaction(connection, work))

    def alone(self, work: Callable[[], T]) -> T:
        """Each statement of `work` is committed by itself."""
        return self._run(lambda connection: work())

    def all(self, name: str, /, **values: Any) -> list[Row]:
        return self.query(SQL[name], values).fetchall()

    def do(self, name: str, /, **values: Any) -> None:
        self.query(SQL[name], values)

    def batch(self, name: str, rows: Sequence[Mapping[str, Any]], /, **values: Any) -> list[Row]:
        """A statement over rows that it gets as one array for each column; no rows, no statement."""
        if not rows:
            return []
        answer = self.query(SQL[name], {**{key: [row[key] for row in rows] for key in rows[0]}, **values})
        return answer.fetchall() if answer.description else []

    def query(self, text: bytes | sql.Composed, values: Mapping[str, Any] | None = None) -> psycopg.Cursor[Row]:
        assert self._open is not None
        return self._open.execute(text, values, binary=True)

    def set(self, name: str, value: str, local: bool = False) -> None:
        """Sets a parameter of the session, or of the transaction."""
        self.query(b"SELECT set_config(%(name)s, %(value)s, %(local)s)", {"name": name, "value": value, "local": local})

    def script(self, text: str) -> None:
        """Several statements without values."""
        assert self._open is not None
        self._open.execute(text.encode())

    @contextmanager
    def exclusively(self, key: str) -> Iterator[None]:
        """One session at a time for each key; the lock goes with the connection if that breaks."""
        self.query(b"SELECT pg_advisory_lock(hashtextextended(%(key)s, 0))", {"key": key})
        try:
            yield
        finally:
            if self._open is not None:
                self.query(b"SELECT pg_advisory_unlock(hashtextextended(%(key)s, 0))", {"key": key})

    def now(self) -> int:
        return self.clock() if self.clock else int(self.all("now")[0][0])

    def unpinned(self) -> None:
        """For the rest of the transaction the planner is free: what goes through whole tables is no hot statement."""
        self._set_all(dict.fromkeys(PINNED, "on") | {"plan_cache_mode": "force_custom_plan", "jit": "off"}, local=True)

    # the connection itself

    def _run(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        with self._session():
            for _ in range(TRIES):
                try:
                    return self._once(work)
                except (AgainError, errors.DeadlockDetected, errors.SerializationFailure):
                    continue
                except errors.ProgramLimitExceeded:  # of a value: to send it again would not help
                    raise
                except (psycopg.OperationalError, psycopg.InternalError, psycopg.InterfaceError) as problem:
                    self._forget()  # also that of a server that may only be read: the next may lead to the one that took its place
                    raise Unavailable(f"the PostgreSQL database did not answer: {problem}") from problem
                except errors.InsufficientPrivilege as problem:
                    raise StoreError(f"the user of the PostgreSQL database lacks a right: {problem}") from problem
            raise StoreError(f"{TRIES} times in a row a transaction had to give way to others")

    @contextmanager
    def _session(self) -> Iterator[None]:
        """A session for this thread, preferably the one that was used last; what is called within a call uses the same."""
        if self._mine.busy:
            yield
            return
        stays = self._room.acquire(timeout=PATIENCE_S)
        try:
            self._mine.busy = True
            with suppress(IndexError):
                self._mine.open = self._idle.pop()
            yield
        finally:
            self._give_back(stays)

    def _give_back(self, stays: bool) -> None:
        used, self._mine.open, self._mine.busy = self._mine.open, None, False
        if used is not None and stays:
            self._idle.append(used)
        elif used is not None:
            used.close()
        if stays:
            self._room.release()

    def _once(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        connection = self._connected()
        if self.clock:
            self.set("rhythm.now_us", str(self.clock()))
        return work(connection)

    def _in_transaction(self, connection: psycopg.Connection[Row], work: Callable[[], T]) -> T:
        try:
            with connection.transaction():
                return work()
        except UndoneError as undone:
            answer: T = undone.answer
            return answer

    def _connected(self) -> psycopg.Connection[Row]:
        if self._open is None or self._open.closed:
            opened = self._mine.open = self._last = self._connect()
            for dumper in (Int8Dumper, Int8BinaryDumper):  # one type for all: else the size of a number would choose the plan
                opened.adapters.register_dumper(int, dumper)
            self._set_all({"search_path": sql.Identifier(self.schema).as_string(opened), **PINNED, **BOUNDED})
            return opened
        self._last = self._open
        return self._open

    def _set_all(self, settings: Mapping[str, str], local: bool = False) -> None:
        calls = [sql.SQL("set_config({}, {}, {})").format(name, value, local) for name, value in settings.items()]
        self.query(sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls)))

    def _connect(self) -> psycopg.Connection[Row]:
        return _connected(self.url)

    def _forget(self) -> None:
        """Whatever the server still does with it, nothing is sent on this session again, nor on the idle ones: they are as broken."""
        if self._open is not None:
            self._open.close()
            self._mine.open = None
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class Spare:
    """Connections without settings of ours, for those who need one of their own for a while. Any thread."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._free: list[psycopg.Connection[Row]] = []

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Row]]:
        """One that nobody else uses; what its last user has set is forgotten."""
        connection = None
        try:
            connection = self._taken()
            yield connection
            self._free.append(connection)
        except BaseException as problem:
            if connection is not None:
                connection.close()
            if isinstance(problem, psycopg.Error):
                raise StoreError(f"the PostgreSQL database did not answer: {problem}") from problem
            raise

    def _taken(self) -> psycopg.Connection[Row]:
        while self._free:
            connection = self._free.pop()
            try:
                connection.execute("DISCARD ALL")
                return connection
            except psycopg.Error:  # broken since it was used: the server was restarted
                connection.close()
        return _connected(self.url)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()


class Joined(Connection):
    """Somebody else's connection, inside its transaction: commits nothing, and undoes only what it did itself."""

    def __init__(self, given: Any, store: Connection) -> None:
        super().__init__(store.url, store.schema, store.clock)
        if not isinstance(given, psycopg.Connection):
            raise TypeError(f"`connection` must be a psycopg connection (not an asynchronous one), not {type(given).__name__}")
        self._given = given

    def close(self) -> None:
        """It is not ours to close."""

    def alone(self, work: Callable[[], T]) -> T:
        return self.transaction(work)

    def query(self, text: bytes | sql.Composed, values: Mapping[str, Any] | None = None) -> psycopg.Cursor[Row]:
        return self._given.cursor(row_factory=tuple_row).execute(text, values, binary=True)

    def _run(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        """Its owner's problems are its owner's: what PostgreSQL says is passed on as it is."""
        connection = self._given
        if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
            raise ValueError("`connection` commits every statement by itself: begin a transaction first (with connection.transaction(): …)")
        for _ in range(TRIES):
            try:
                return work(connection)
            except AgainError:
                continue
        raise StoreError(f"{TRIES} times in a row a start had to give way to others")

    def _in_transaction(self, connection: psycopg.Connection[Row], work: Callable[[], T]) -> T:
        """The path must be asked for first: that begins the transaction, and the one below becomes a savepoint of it."""
        path = self.query(b"SELECT current_setting('search_path')").fetchall()[0][0]

        def inside() -> T:
            self.set("search_path", sql.Identifier(self.schema).as_string(connection), local=True)
            if self.clock:
                self.set("rhythm.now_us", str(self.clock()), local=True)
            answer = work()
            self.set("search_path", path, local=True)
            return answer

        return super()._in_transaction(connection, inside)
