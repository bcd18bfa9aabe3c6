"""From a URL to a session: the settings of every connection, and the advice when the server refuses
it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rhythm.errors import StoreError
from rhythm.record import Record
from rhythm.store.postgres.wire import Row, Wire

# After this time without an answer the server is taken for lost. Waiting for a lock takes at most a
# third of it.
ANSWER_S = 60.0
LONG_S = 3600.0  # for statements that read whole tables

# A lost server must be noticed, whatever the cause. What the URL or the environment says about
# these settings comes first.
DEFAULTS = {
    "connect_timeout": "10", "keepalives_idle": "15", "keepalives_interval": "5",
    "keepalives_count": "3", "tcp_user_timeout": "30000",
}  # fmt: skip
ENVIRONMENT = {
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}

REFUSALS = {  # what the server says, and what to do
    r'database ".*" does not exist': (
        "make the database with `createdb NAME`, or check its name in the URL"
    ),
    r'role ".*" does not exist|authentication failed|no password supplied': (
        "check the user and the password in the URL"
    ),
    r"no pg_hba.conf entry": (
        "check the user and the host in the URL, and pg_hba.conf of the server"
    ),
}

UNUSABLE = (
    "the PostgreSQL URL cannot be used: check that it reads "
    "postgresql://user:password@host:5432/database?name=value, that PostgreSQL "
    "knows each name, and that %XX stands for whatever is special in a user or a "
    "password: %40 for @, %3A for :, %2F for /, %25 for %"
)  # libpq's own words may repeat a part of the password

# refusals that are temporary
PASSING = (
    "starting up|shutting down|in recovery mode|not yet accepting|too many clients|too many "
    "connections"
)

T = TypeVar("T")


class Access(Record):
    """How a store reaches its server, besides its URL."""

    pooled: bool = False  # through a pooler that lends a session for each transaction
    notify: bool = True  # whether to send a hint when there is something to claim
    # For listeners, past a pooler. Empty: the URL itself.
    listen_url: str = ""
    answer_s: float = ANSWER_S


class PatientConnection(psycopg.Connection[Row]):
    """A connection that does not wait for an answer for ever.

    Something in the network between us and the server may drop all packets without a word.
    """

    answer_s: float = ANSWER_S
    era = 0  # of the store that opened it
    wire: Wire  # for the statements of a store

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Runs the driver's generator, and raises `OperationalError` if the server does not answer
        in time.

        The driver comes back several times a second to ask whether to wait longer.
        """
        try:
            awaited = next(gen)
            deadline = time.monotonic() + self.answer_s
            while True:
                ready = yield awaited
                if ready:
                    deadline = time.monotonic() + self.answer_s
                elif time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(
                        f"the server has not answered for {self.answer_s:g} s"
                    )
                awaited = gen.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer


def connected(url: str, answer_s: float = ANSWER_S, prepares: bool = True) -> PatientConnection:
    """Opens a new connection that commits every statement. Raises `StoreError` if the server
    refuses it, and psycopg's error if it does not answer."""
    try:
        session = PatientConnection.connect(
            url,
            autocommit=True,
            prepare_threshold=5 if prepares else None,
            client_encoding="utf8",  # whatever the URL says: texts are written so
            **_defaults(url),
        )
    except psycopg.ProgrammingError:
        raise StoreError(UNUSABLE) from None
    except psycopg.OperationalError as problem:
        if "FATAL" not in str(problem) or re.search(PASSING, str(problem)):
            raise
        raise StoreError(
            f"the PostgreSQL server refused the connection: {problem}{_to_check(str(problem))}"
        ) from problem
    session.answer_s = answer_s
    return session


def _defaults(url: str) -> dict[str, Any]:
    """Returns the connection settings that neither the URL nor the environment gives.

    If the URL names several servers, the one that can be written to is used: after a failover that
    is another one.
    """
    given = conninfo_to_dict(url)
    _refuse_half_a_password(given)
    several = "," in f"{given.get('host') or ''}{given.get('hostaddr') or ''}"
    wanted = DEFAULTS | ({"target_session_attrs": "read-write"} if several else {})
    return {
        name: value
        for name, value in wanted.items()
        if name not in given and ENVIRONMENT.get(name, "") not in os.environ
    }


def _refuse_half_a_password(given: dict[str, Any]) -> None:
    """Raises `StoreError` if the URL was split inside a password.

    After an unescaped @ or / in a password, the rest of it is taken for a host, a port or a
    database, and would appear in error messages.
    """
    hosts, ports = (str(given.get(name) or "").split(",") for name in ("host", "port"))
    if any("@" in host[1:] for host in hosts) or not all(
        port.isdecimal() or not port for port in ports
    ):
        raise StoreError(UNUSABLE)


def _to_check(refusal: str) -> str:
    """Returns advice about a refusal.

    It must be recognised by its text: a refused connection has no error code.
    """
    return next(
        (f"; {advice}" for said, advice in REFUSALS.items() if re.search(said, refusal)), ""
    )
