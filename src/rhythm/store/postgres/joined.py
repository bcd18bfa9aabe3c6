"""A caller's connection as one of ours, inside the caller's transaction: what is done there is
committed with the caller's own data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from psycopg import sql

from rhythm.errors import StoreError
from rhythm.store.callers import FetchedRows
from rhythm.store.postgres.callers import PostgresCaller
from rhythm.store.postgres.connection import (
    NO_VALUES,
    TRIES,
    AgainError,
    Connection,
    Hints,
    Later,
    UndoneError,
)
from rhythm.store.postgres.hints import channel_of, notify, written

T = TypeVar("T")

# A database of a server that runs. Restarting the server changes it.
SERVER = (
    "current_database() || ' ' || "
    "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint"
)
OTHER_SERVER = "rhythm: another database: "  # begins the error of the check below
SAVEPOINT, RELEASE = "SAVEPOINT rhythm", "RELEASE SAVEPOINT rhythm"
UNDO = ("ROLLBACK TO SAVEPOINT rhythm", RELEASE)


class OtherServer:
    """Refuses connections to another database than that of a store."""

    def __init__(self, db: Connection) -> None:
        self._db, self._server = db, ""

    def check(self) -> str:
        """Returns an expression that fails anywhere but in the database of the store."""
        self._server = self._server or self._asked()
        known = _literal(self._server)
        return f"CASE WHEN {SERVER} <> {known} THEN ({_literal(OTHER_SERVER)} || {SERVER})::int END"

    def explain(self, problem: Exception) -> bool:
        """Returns whether to try again after an error: the server was restarted.

        Raises `ValueError` if the error is that of the check, and says the truth.
        """
        _, found, rest = str(problem).partition(OTHER_SERVER)
        if not found:
            return False
        before, self._server = self._server, self._asked()
        if self._server != before:
            return True
        raise ValueError(
            f"`connection` leads to another database ({rest.split()[0]}) than the executions are "
            f"in ({before.split()[0]}), or to another server: use the same"
        ) from problem

    def _asked(self) -> str:
        text = f"SELECT {SERVER}".encode()
        return str(self._db.autocommit(lambda: self._db.rows(text, {}))[0][0])


class Joined(Connection):
    """A caller's connection, inside its transaction.

    It commits nothing, and rolls back only its own work.
    """

    def __init__(
        self,
        caller: PostgresCaller,
        store: Connection,
        other: OtherServer | None = None,
        notifies: bool = True,
        in_turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`other`: checks whether the connection leads to the database of the store.

        `notifies`: whether hints are sent with the caller's commit, since nobody can send them
        after it. `in_turn`: keeps others away from the connection, who use it at the same time.
        """
        super().__init__(store.url, store.schema, store.clock, store.access)
        self._notifies = notifies and store.access.notify
        self._caller, self._other, self._inside = caller, other, False
        self._in_turn = in_turn

    def close(self) -> None:
        """Does nothing: the connection belongs to the caller."""

    def take_hints(self) -> Hints:
        """Returns what others may want to hear of once the caller commits."""
        return self._thread.take_hints()

    def query(self, text: bytes, values: Mapping[str, Any] = NO_VALUES) -> FetchedRows:
        """Runs a statement. Returns its answer."""
        return self._caller.query(text, values, not self.access.pooled)

    def send(self, text: bytes, values: Mapping[str, Any]) -> Later:
        """Runs a statement, at once: no other driver sends several together."""
        later = Later(text)
        later.take(self.query(text, values))
        return later

    def autocommit(self, work: Callable[[], T]) -> T:
        return self.transaction(work)

    def transaction(self, work: Callable[[], T]) -> T:
        """Runs `work` in a savepoint of the caller's transaction.

        PostgreSQL's errors are passed on unchanged, because the transaction is the caller's.
        """
        if self._inside:
            return self._in_our_savepoint([SAVEPOINT], work, lambda: [RELEASE])
        with self._in_turn():
            return self._outermost(work)

    def _outermost(self, work: Callable[[], T]) -> T:
        self._caller.refuse_autocommit()
        self._inside = True
        try:
            for _ in range(TRIES):
                try:
                    return self._in_our_savepoint(self._beginning(), work, self._ending)
                except AgainError:
                    self._thread.forget_hints()
                except Exception as problem:
                    if self._other is None or not self._other.explain(problem):
                        raise
        finally:
            self._inside = False
        raise StoreError(f"{TRIES} times in a row a transaction had to give way to others")

    def _in_our_savepoint(
        self, beginning: Sequence[str], work: Callable[[], T], ending: Callable[[], Sequence[str]]
    ) -> T:
        self._begin_ours(beginning)
        try:
            answer = work()
            self._caller.script(ending())
            return answer
        except UndoneError as undone:
            self._thread.forget_hints()
            self._caller.script(UNDO, kind="undo")
            undone_answer: T = undone.answer
            return undone_answer
        except BaseException:
            self._undo_ours()
            raise

    def _begin_ours(self, beginning: Sequence[str]) -> None:
        try:
            self._caller.script(beginning)
        except CancelledError:
            raise  # nothing was sent: to undo it would fail, and abort the caller's transaction
        except BaseException:
            self._undo_ours()
            raise

    def _undo_ours(self) -> None:
        # The first error counts: this one says that the connection or the transaction is lost.
        with suppress(Exception):
            self._caller.script(UNDO, kind="undo")

    def _beginning(self) -> list[str]:
        """Returns the statements that begin our part: a savepoint, and our search path.

        The caller's path is kept in a setting, so that nothing has to be read here: all goes in
        one round trip.
        """
        ours = {"search_path": sql.Identifier(self.schema).as_string(None)}
        if self.clock:
            ours["rhythm.now_us"] = str(self.clock())
        settings = [
            f"set_config('{name}', {_literal(value)}, true)" for name, value in ours.items()
        ]
        checks = [self._other.check()] if self._other else []
        return [
            SAVEPOINT,
            "SELECT set_config('rhythm.callers_path', current_setting('search_path'), true)",
            f"SELECT {', '.join([*checks, *settings])}",
        ]

    def _ending(self) -> list[str]:
        """Returns the statements that end our part: the caller's path, the hint, the savepoint."""
        path = "SELECT set_config('search_path', current_setting('rhythm.callers_path'), true)"
        if not self._notifies or not (freed := self.take_hints().freed):
            return [path, RELEASE]
        hint = notify(channel_of(self.schema), written(freed)).as_string(None)
        return [path, hint, RELEASE]


def _literal(text: str) -> str:
    return sql.Literal(text).as_string(None)
