"""Connections to PostgreSQL: a few sessions, each used by one thread at a time; transactions,
retries, and new sessions for broken ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import psycopg
from psycopg import errors, sql

from rhythm.errors import StoreError, Unavailable
from rhythm.store.callers import FetchedRows
from rhythm.store.postgres.connecting import LONG_S, Access, PatientConnection, connected
from rhythm.store.postgres.single import OFTEN_SINGLE, for_single_rows
from rhythm.store.postgres.wire import BoundStatement, Row, Wire, bind, bind_once
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
        "logs.sql",
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

BEGIN, COMMIT, ROLLBACK = (BoundStatement(text) for text in (b"BEGIN", b"COMMIT", b"ROLLBACK"))
SAVEPOINT, RELEASE, UNDO = (
    BoundStatement(text) for text in (b"SAVEPOINT ours", b"RELEASE ours", b"ROLLBACK TO ours")
)
BEGIN_FROZEN = BoundStatement(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
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
NO_VALUES: Mapping[str, Any] = {}
Clock = Callable[[], int]
Asked = tuple[str, Mapping[str, Any]]  # the name of a statement, and its values
T = TypeVar("T")


class UndoneError(Exception):
    """Ends a transaction with an answer, and rolls everything back."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class AgainError(Exception):
    """Runs the transaction again: something changed while it waited."""


class Hints(NamedTuple):
    """What others may want to hear of after a commit."""

    freed: set[str]  # queues that have something to claim
    ended: set[str]  # executions without a parent that have ended

    def and_those(self, others: Hints) -> Hints:
        """Returns these hints and others as one."""
        return Hints(self.freed | others.freed, self.ended | others.ended)


class Announcer(Protocol):
    """Tells others of what was committed."""

    def statements(self, hints: Hints) -> Sequence[BoundStatement]:
        """Returns what to send behind a commit, so that other processes hear of it; nothing if
        that was done a moment ago."""

    def announce(self, sent: Hints, unsent: Hints) -> object:
        """Tells of what was committed: of what is unsent other processes do not know yet."""


class Later:
    """The answer to a statement that is sent together with others.

    `rows` are there once a later statement was asked for its answer, or after the commit.
    """

    rows: list[Row]

    def __init__(self, text: bytes) -> None:
        self._text = text

    def take(self, answer: FetchedRows) -> None:
        """Keeps the rows of the answer, with their columns."""
        rows = answer.rows
        self.rows = NAMED.result(self._text, rows, answer) if rows else rows


NOTHING = Later(b"")  # of a statement that did not run, since there were no rows for it
NOTHING.rows = []


NO_HINTS = Hints(set(), set())


class ThreadState(threading.local):
    """The session that the calling thread uses, and its state."""

    busy = False  # it is inside a call, which has its session
    open: PatientConnection | None = None
    inside = False  # a transaction

    def __init__(self) -> None:
        # Statements of the transaction that were not sent yet, and who takes their answers.
        self.unsent: list[tuple[BoundStatement, Later | None]] = []
        # Queues that have something to claim once this is committed, and functions that name more
        # of them then.
        self.freed: set[str] = set()
        self.freeing: list[Callable[[], Iterable[str]]] = []
        self.ended: set[str] = set()  # executions without a parent that end with this
        self.sent = NO_HINTS  # what other processes were told of during the call

    def take_hints(self) -> Hints:
        """Returns what others may want to hear of after the commit, and forgets it."""
        hints = Hints(self.freed.union(*(find() for find in self.freeing)), self.ended)
        self.forget_hints()
        return hints

    def forget_hints(self) -> None:
        """Forgets what others may want to hear of: nothing was committed."""
        self.freed, self.freeing, self.ended = set(), [], set()

    def note_sent(self, hints: Hints) -> None:
        """Remembers that other processes were told of this."""
        self.sent = self.sent.and_those(hints)

    def take_sent(self) -> Hints:
        """Returns what other processes were told of, and forgets it."""
        sent, self.sent = self.sent, NO_HINTS
        return sent

    def take_unsent(self) -> list[tuple[BoundStatement, Later | None]]:
        """Returns the statements that were not sent yet, and forgets them."""
        unsent, self.unsent = self.unsent, []
        return unsent


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
        announcer: Announcer | None = None,
    ) -> None:
        self.url = url
        self.schema = schema
        self.clock = clock
        self.access = access
        self._announcer = announcer
        self._thread = ThreadState()
        self._room = threading.Semaphore(SESSIONS)
        self._sessions = SESSIONS
        self._idle: list[PatientConnection] = []
        self._opened: list[PatientConnection] = []  # all sessions that are open
        self._opening = threading.Lock()
        self._last: PatientConnection | None = None
        # Counts how often sessions were lost. Sessions of an earlier era are not used again.
        self.era = 0
        # Whether a check for a pooler is no longer needed: sessions are known to be ours, or known
        # to be lent.
        self._direct = access.pooled

    def close(self) -> None:
        """Closes all sessions. Waits a short time for calls that are under way."""
        taken = [self._room.acquire(timeout=PATIENCE_S) for _ in range(self._sessions)]
        for session in list(self._idle):
            with suppress(psycopg.Error):
                session.wire.settle(PATIENCE_S)
        self._forget()
        # Nobody takes the answer to a commit of a worker that was stopped, or has failed.
        for session in self._opened:
            session.close()
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
    def backends(self) -> set[int]:
        """The process ids of the servers behind all sessions. Any thread may ask."""
        return {session.info.backend_pid for session in list(self._opened) if not session.closed}

    @property
    def _open(self) -> PatientConnection | None:
        return self._thread.open

    def transaction(self, work: Callable[[], T]) -> T:
        """Runs `work` in one transaction: all of it is committed, or nothing.

        `work` may run more than once.
        """
        return self._run(lambda: self._in_transaction(work))

    def autocommit(self, work: Callable[[], T]) -> T:
        """Runs `work`, and commits each of its statements by itself."""
        return self._run(work)

    def all(self, name: str, /, **values: Any) -> list[Row]:
        """Runs a named statement. Returns its rows, with their columns."""
        return self.rows(*statement_with(name, values))

    def ask(self, name: str, /, **values: Any) -> list[Row]:
        """Runs one named statement that needs no transaction around it. Returns its rows."""
        return self.autocommit(lambda: self.all(name, **values))

    def rows(self, text: bytes, values: Mapping[str, Any]) -> list[Row]:
        """Returns the rows of a statement, with its columns."""
        return _named(text, self.query(text, values))

    def do(self, name: str, /, **values: Any) -> Later:
        """Runs a named statement whose answer is not needed yet.

        Inside a transaction it is sent together with the next one that is asked for its answer, or
        with the commit.
        """
        return self.send(*statement_with(name, values))

    def write(self, name: str, rows: Sequence[Mapping[str, Any]], /, **values: Any) -> Later:
        """Runs a statement over rows, as `batch` does, whose answer is not needed yet: see `do`."""
        if not rows:
            return NOTHING
        return self.send(SQL[name], _columns(rows, values))

    def batch(self, name: str, rows: Sequence[Mapping[str, Any]], /, **values: Any) -> list[Row]:
        """Runs a statement over rows, which it gets as one array for each column.

        Without rows it runs nothing.
        """
        return self.rows(SQL[name], _columns(rows, values)) if rows else []

    def query(self, text: bytes, values: Mapping[str, Any] = NO_VALUES) -> FetchedRows:
        """Runs a statement on the session of this thread. Returns its answer."""
        return self._ask(bind(text, values))

    def query_once(self, text: bytes, values: Mapping[str, Any]) -> list[Row]:
        """Runs a statement of which there are many forms. Returns its rows, without columns."""
        return self._ask(bind_once(text, values)).fetchall()

    def send(self, text: bytes, values: Mapping[str, Any]) -> Later:
        """Runs a statement on the session of this thread, at the latest with the commit."""
        later = Later(text)
        if self._thread.inside:
            self._thread.unsent.append((bind(text, values), later))
        else:
            later.take(self._ask(bind(text, values)))
        return later

    def begin(
        self, statements: Sequence[Asked], hints: Hints = NO_HINTS
    ) -> Callable[[], list[list[Row]]]:
        """Sends named statements that are a transaction of their own, and behind it the hints.

        Returns what waits for their rows, and is to be called once, by any thread. Until then the
        session is kept, and calls of this thread use others.
        """
        asked = [bind(*statement_with(name, values)) for name, values in statements]
        stays = self._take()
        state = self._thread
        try:
            sent = self._tried(lambda: self._send(asked, hints))
        except BaseException:
            self._give_back(stays)
            raise
        session, state.open, state.busy = state.open, None, False
        assert session is not None
        received = False

        def answers() -> list[FetchedRows]:
            nonlocal received
            again, received = received, True
            if again:  # it conflicted with another transaction
                self._send(asked, NO_HINTS)
            elif self._open is not session:
                raise psycopg.OperationalError("the connection is lost")
            assert self._open is not None
            return self._open.wire.receive(self._open.answer_s)[-len(asked) :]

        def wait() -> list[list[Row]]:
            self._thread.open, self._thread.busy = session, True
            try:
                found = zip(statements, self._tried(answers), strict=True)
                return [_named(SQL[name], answer) for (name, _), answer in found]
            finally:
                self._give_back(stays)
                if self._announcer is not None:
                    self._announcer.announce(*((hints, NO_HINTS) if sent else (NO_HINTS, hints)))

        return wait

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
        """Notes that these queues have something to claim once this is committed.

        Outside of a transaction that is once the next statement has committed itself.
        """
        self._thread.freed.update(queues)

    def end(self, ids: Iterable[str]) -> None:
        """Notes that these executions, which have no parent, end once this is committed."""
        self._thread.ended.update(ids)

    def free_later(self, find: Callable[[], Iterable[str]]) -> None:
        """As `free`, for queues that are known once the answers to all statements are there."""
        self._thread.freeing.append(find)

    def announce(self, hints: Hints) -> None:
        """Tells others of what was committed on a connection that is not ours."""
        if self._announcer is not None:
            self._announcer.announce(NO_HINTS, hints)

    def set(self, name: str, value: str, local: bool = False) -> None:
        """Sets a parameter of the session, or only of the transaction."""
        self.send(
            b"SELECT set_config(%(name)s, %(value)s, %(local)s)",
            {"name": name, "value": value, "local": local},
        )

    def hasten(self) -> None:
        """Makes the transaction wait only a short time for locks of others."""
        self.set("lock_timeout", IMPATIENT, local=True)

    def script(self, text: str) -> None:
        """Runs several statements without values, which may take long."""
        assert self._open is not None
        self._exchange([])
        self._open.answer_s = LONG_S
        self._open.execute(text.encode())

    def lock(self, key: str) -> None:
        """Waits for a lock on this key, until the end of the transaction: one transaction at a time
        has it."""
        self.send(b"SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))", {"key": key})

    def now(self) -> int:
        """Returns the time of the database, or of the test's clock."""
        return self.clock() if self.clock else int(self.all("now")[0][0])

    def freeze(self) -> None:
        """Lets the transaction, which has just begun, see the database as it is now, however long
        it reads.

        It reads whole tables, so the planner may choose any plan.
        """
        assert self._open is not None
        assert self._thread.unsent[0] == (BEGIN, None), "the transaction has just begun"
        self._thread.unsent[0] = (BEGIN_FROZEN, None)
        self._ask(_setting(READING, local=True))
        self._open.answer_s = LONG_S

    # The connection itself.

    def _run(self, work: Callable[[], T]) -> T:
        """Runs `work` on a session of this thread, again after a conflict. Raises `StoreError` or
        `Unavailable` for the server's errors."""
        with self._session():
            return self._tried(work)

    def _tried(self, work: Callable[[], T]) -> T:
        for _ in range(TRIES):
            try:
                self._connect_if_needed()
                return work()
            except (AgainError, errors.DeadlockDetected, errors.SerializationFailure):
                self._thread.forget_hints()
            except errors.LockNotAvailable as problem:
                raise StoreError(f"{LOCKED_MESSAGE}: {problem}") from problem
            # a value is too large: sending it again would not help
            except errors.ProgramLimitExceeded:
                raise
            except errors.DivisionByZero as problem:  # how our statements refuse what is a bug
                raise AssertionError("a statement found what cannot be") from problem
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
                raise Unavailable(f"the PostgreSQL database did not answer: {problem}") from problem
            except errors.InvalidSqlStatementName as problem:
                # What was prepared, and with it our settings: a pooler has reset the session, or
                # lends it to others by now, which the next connection finds out.
                self._forget()
                self._direct = self.access.pooled
                raise Unavailable(f"the PostgreSQL session was reset: {problem}") from problem
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
        stays = self._take()
        try:
            yield
        finally:
            try:
                self._post_hints()
            finally:
                sent, unsent = self._thread.take_sent(), self._thread.take_hints()
                self._give_back(stays)
            if self._announcer is not None:
                self._announcer.announce(sent, unsent)

    def _take(self) -> bool:
        """Takes a session for this thread, if one is open. Returns whether it has a place to go
        back to."""
        stays = self._room.acquire(timeout=PATIENCE_S)
        self._thread.busy = True
        with suppress(IndexError):
            self._thread.open = self._idle.pop()
        return stays

    def _hint(self, hints: Hints) -> Sequence[BoundStatement]:
        """Returns what to send, behind the commit, so that other processes hear of this."""
        if self._announcer is None or not any(hints):
            return ()
        return self._announcer.statements(hints)

    def _post_hints(self) -> None:
        """Sends the hints of this call that did not go with its commit, and waits for nothing."""
        state = self._thread
        hints = state.take_hints()
        if state.open is None or not (hint := self._hint(hints)):
            state.freed, state.ended = hints
            return
        try:
            state.open.wire.post(hint, state.open.answer_s)
            state.note_sent(hints)
        except psycopg.Error:  # the session is lost, and closed
            state.freed, state.ended = hints

    def _give_back(self, stays: bool) -> None:
        used, self._thread.open, self._thread.busy = self._thread.open, None, False
        if used is not None and stays and used.era == self.era:
            used.answer_s = self.access.answer_s
            self._idle.append(used)
        elif used is not None:
            used.close()
        if stays:
            self._room.release()

    def _in_transaction(self, work: Callable[[], T]) -> T:
        """Runs `work` in a transaction, or in a savepoint of the one that is open.

        It begins with the first statement that is asked for an answer: until then, and after the
        last one, nothing is sent.
        """
        state = self._thread
        if state.inside:
            return self._in_savepoint(work)
        begin: list[tuple[BoundStatement, Later | None]]
        begin = [(each, None) for each in (BEGIN, *self._introduction())]
        state.inside, state.unsent = True, list(begin)
        try:
            answer = work()
            if state.unsent != begin:
                self._commit()
            return answer
        except UndoneError as undone:
            self._roll_back()
            undone_answer: T = undone.answer
            return undone_answer
        except BaseException:
            with suppress(psycopg.Error):
                self._roll_back()
            raise
        finally:
            state.inside, state.unsent = False, []

    def _commit(self) -> None:
        """Commits. The hints travel behind it, unless they are known only with the answers."""
        if self._thread.freeing:
            self._exchange([COMMIT])
        else:
            self._exchange_and_hint([COMMIT])

    def _exchange_and_hint(self, asked: Sequence[BoundStatement]) -> list[FetchedRows]:
        """Does an exchange that commits, and sends the hints that are known behind it."""
        state = self._thread
        hints = Hints(state.freed, state.ended)
        hint = self._hint(hints)
        answers = self._exchange(asked, hint)
        if hint:
            state.note_sent(hints)
            state.freed.clear()
            state.ended.clear()
        return answers

    def _in_savepoint(self, work: Callable[[], T]) -> T:
        self._thread.unsent.append((SAVEPOINT, None))
        try:
            answer = work()
            self._thread.unsent.append((RELEASE, None))
            return answer
        except UndoneError as undone:
            self._exchange([UNDO, RELEASE])
            undone_answer: T = undone.answer
            return undone_answer
        except BaseException:
            with suppress(psycopg.Error):
                self._exchange([UNDO, RELEASE])
            raise

    def _roll_back(self) -> None:
        state = self._thread
        state.unsent = []
        state.forget_hints()
        if state.open is not None and state.open.wire.in_transaction:
            self._exchange([ROLLBACK])

    def _introduction(self) -> list[BoundStatement]:
        """Returns the statements that a transaction, or a statement by itself, begins with."""
        assert self._open is not None
        local = self.access.pooled  # nothing may be set in a session that others use, too
        settings = [_setting(self._settings(self._open), local=True)] if local else []
        if self.clock:
            now = {"now": str(self.clock()), "local": local}
            settings.append(bind(b"SELECT set_config('rhythm.now_us', %(now)s, %(local)s)", now))
        return settings

    def _ask(self, asked: BoundStatement) -> FetchedRows:
        """Sends a statement. Returns its answer, and nothing else is under way then.

        Outside of a transaction it commits itself, and the hints travel behind it.
        """
        if self._thread.inside:
            return self._exchange([asked])[-1]
        settings = self._introduction()
        if not self.access.pooled:
            return self._exchange_and_hint([*settings, asked])[-1]
        try:
            return self._exchange_and_hint([BEGIN, *settings, asked, COMMIT])[-2]
        except psycopg.Error:
            with suppress(psycopg.Error):
                self._roll_back()
            raise

    def _send(self, asked: Sequence[BoundStatement], hints: Hints) -> bool:
        """Sends statements that are a transaction of their own, and waits for nothing.

        What is sent together without BEGIN is one transaction.

        Returns whether the hints went with it.
        """
        session, hint = self._open, self._hint(hints)
        assert session is not None
        session.wire.send([*self._introduction(), *asked], session.answer_s, hint)
        return bool(hint)

    def _exchange(
        self, asked: Sequence[BoundStatement], behind: Sequence[BoundStatement] = ()
    ) -> list[FetchedRows]:
        """Sends what was not sent yet, and these statements, in one round trip. Returns the
        answers.

        What is sent `behind` them is not waited for.
        """
        session, unsent = self._open, self._thread.take_unsent()
        assert session is not None
        if not unsent and not asked:
            session.wire.settle(session.answer_s)
            return []
        sent = [*(each for each, _ in unsent), *asked]
        answers = session.wire.exchange(sent, session.answer_s, behind)
        for (_, later), answer in zip(unsent, answers, strict=False):
            if later is not None:
                later.take(answer)
        return answers

    def _connect_if_needed(self) -> None:
        if self._open is None or self._open.closed:
            opened = self._thread.open = self._last = self._connect()
            if not self._direct:
                self._refuse_pooler(opened)
            if not self.access.pooled:
                opened.wire.exchange([_setting(self._settings(opened))], opened.answer_s)
        self._last = self._open

    def _settings(self, connection: PatientConnection) -> dict[str, str]:
        return {
            "search_path": sql.Identifier(self.schema).as_string(connection),
            **PINNED,
            **BOUNDED,
        }

    def _connect(self) -> PatientConnection:
        prepares = not self.access.pooled
        session = connected(self.url, self.access.answer_s, prepares)
        session.era, session.wire = self.era, Wire(session, prepares)
        with self._opening:
            self._opened = [*(each for each in self._opened if not each.closed), session]
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


def statement_with(name: str, values: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    """Returns the text and the values of a named statement, as they are sent."""
    text = SQL[name]
    return for_single_rows(text, values) if name in OFTEN_SINGLE else (text, values)


def _named(text: bytes, answer: FetchedRows) -> list[Row]:
    """Returns the rows of an answer, with the columns of its statement."""
    rows = answer.rows
    return NAMED.result(text, rows, answer) if rows else rows


def _columns(rows: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns rows as one list for each column, and other values beside them."""
    return {**{key: [row[key] for row in rows] for key in rows[0]}, **values}


def _setting(settings: Mapping[str, str], local: bool = False) -> BoundStatement:
    """Returns the statement that sets parameters of the session, or only of the transaction."""
    calls = [
        sql.SQL("set_config({}, {}, {})").format(name, value, local)
        for name, value in settings.items()
    ]
    return BoundStatement(sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls)).as_bytes(None))


def _process(session: PatientConnection) -> int:
    """Returns the id of the server's process that answers."""
    return int(session.execute("SELECT pg_backend_pid()").fetchall()[0][0])
