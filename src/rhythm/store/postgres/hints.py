"""Hints to other processes, by NOTIFY: there is something to claim, or executions have ended.

A process that misses a hint finds out by polling. A hint is a transaction of its own behind the
commit, since one that notifies takes a lock that every other notifying transaction of the server
takes, and fails when the queue of the server is full. Whoever commits sends it along, and does not
wait for its answer; what would follow another hint too soon is left to a thread, several in one.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import logging
import math
import random
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import psycopg
from psycopg import sql

from rhythm.errors import StoreError
from rhythm.store.interfaces.store import Listening
from rhythm.store.postgres.connecting import PatientConnection
from rhythm.store.postgres.connection import Hints
from rhythm.store.postgres.wire import BoundStatement, Wire, bind

log = logging.getLogger("rhythm.store")

# Between two hints: what comes meanwhile goes with the next.
MIN_INTERVAL_S = 0.001
FLUSH_S = 1.0  # when a store is closed, for what was not sent yet
IDLE_S = 30.0  # after this time without hints the connection is closed
NAMES = 50  # in one hint; more are sent as "all of them"
MAX_HINT_BYTES = 7000  # bytes of one hint: PostgreSQL takes just under 8000
CHANNEL = 63  # bytes of a channel's name
PROBE = "?"  # begins a hint that is a test
PROBE_S = 5.0
PING_S = 30.0  # checks a connection that hears nothing: it may be dead
# The first and the longest pause before a connection is opened again.
RETRY_S = (0.1, 10.0)

# What is sent together without BEGIN is one transaction. This one waits for no disk and no standby,
# and leaves no setting behind.
NOTIFY = b"""SELECT set_config('synchronous_commit', 'off', true),
  pg_notify(%(channel)s, %(hint)s)"""

Connect = Callable[[], PatientConnection]
Heard = Callable[[frozenset[str]], None]


def channel_of(schema: str) -> str:
    """Returns the NOTIFY channel of a schema for queues that have something to claim."""
    return _channel("rhythm", schema)


def ends_channel_of(schema: str) -> str:
    """Returns the NOTIFY channel of a schema for executions that have ended."""
    return _channel("rhythm_ends", schema)


def _channel(prefix: str, schema: str) -> str:
    name = f"{prefix}_{schema}"
    return (
        name
        if len(name.encode()) <= CHANNEL
        else f"{prefix}_{hashlib.sha256(schema.encode()).hexdigest()[:32]}"
    )


def written(named: Iterable[str]) -> str:
    """Returns the hint about these queues or executions. The empty hint is about all."""
    names = sorted(named)
    text = json.dumps(names)
    return text if len(names) <= NAMES and len(text) <= MAX_HINT_BYTES else ""


def read(hints: Iterable[str]) -> frozenset[str]:
    """Returns what these hints name. An empty set means everything.

    Everybody who may connect to the database can send hints: one that is none of ours means that,
    too.
    """
    named: set[str] = set()
    for hint in hints:
        try:
            named.update(json.loads(hint))
        except (ValueError, TypeError, RecursionError):
            return frozenset()
    return frozenset(named)


def notify(channel: str, hint: str) -> sql.Composed:
    """Returns the statement that sends a hint."""
    return sql.SQL("SELECT pg_notify({}, {})").format(channel, hint)


def hint_statements(hints: Mapping[str, str]) -> list[BoundStatement]:
    """Returns the statements that send hints by channel, together as one transaction."""
    return [bind(NOTIFY, {"channel": channel, "hint": hint}) for channel, hint in hints.items()]


def _rest_s(failures: int) -> float:
    """Returns how long to wait after so many failures: exponential backoff, with jitter."""
    first, last = RETRY_S
    return min(last, first * float(2 ** min(failures, 10))) * random.uniform(0.5, 1.0)


class Notifier:
    """Tells others what one store has committed: its listeners at once, other processes by NOTIFY.

    Those who commit send `statements` themselves. What comes too soon after that goes by a thread
    that exists while there is something to send. Failures are only logged: hints may be lost.
    """

    def __init__(self, connect: Connect, queues: str, ends: str) -> None:
        """`queues`, `ends`: the channels of the two kinds of hints."""
        self._connect, self._queues, self._ends = connect, queues, ends
        self.heard: list[Heard] = []  # listeners of this store
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._closing = threading.Event()
        self._pending: dict[str, set[str]] = {}  # by channel
        self._sent_at = -math.inf  # the last hint
        self._thread: threading.Thread | None = None
        self.pid = 0  # of the server's process that sends the hints of the thread

    def statements(self, hints: Hints) -> list[BoundStatement]:
        """Returns what sends these hints now; nothing if they are left to the thread."""
        with self._lock:
            now = time.monotonic()
            if now < self._sent_at + MIN_INTERVAL_S:
                return []
            self._sent_at = now
        return hint_statements(
            {channel: written(named) for channel, named in self._named(hints).items()}
        )

    def announce(self, sent: Hints, unsent: Hints) -> None:
        """Tells the listeners of this store of everything, and other processes of what is unsent.

        Returns at once.
        """
        if freed := sent.freed | unsent.freed:
            for heard in list(self.heard):
                heard(frozenset(freed))
        if any(unsent):
            self.notify(unsent)

    def notify(self, hints: Hints) -> None:
        """Has the thread send hints. Returns at once."""
        with self._lock:
            for channel, named in self._named(hints).items():
                self._wait_for(channel, named)
            # In a forked process the thread does not exist.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="rhythm notifier", daemon=True
                )
                self._thread.start()
                atexit.register(self.close)
        self._due.set()

    def _named(self, hints: Hints) -> dict[str, set[str]]:
        """Returns hints by the channel that they are sent on."""
        kinds = ((self._queues, hints.freed), (self._ends, hints.ended))
        return {channel: named for channel, named in kinds if named}

    def close(self) -> None:
        """Sends what has not been sent yet, if that is possible soon, and stops the thread."""
        atexit.unregister(self.close)
        self._closing.set()
        self._due.set()
        if (thread := self._thread) is not None:
            thread.join(FLUSH_S)

    def _run(self) -> None:
        session, failures = None, 0
        while self._waits():
            try:
                session = session or self._connected()
                self._closing.wait(self._sent_at + MIN_INTERVAL_S - time.monotonic())
                self._send(session)
                failures = 0
            except (psycopg.Error, StoreError, OSError) as problem:
                log.debug("nobody was told of work: %s", problem)
                if session is not None:
                    session.close()
                session, failures = None, failures + 1
                if self._closing.wait(_rest_s(failures)):
                    break
        if session is not None:
            session.close()

    def _waits(self) -> bool:
        """Waits until there is something to send. False: nothing came for a while, or it was
        closed."""
        while True:
            called = self._due.wait(IDLE_S)
            with self._lock:
                if self._pending:
                    return True
                if not called or self._closing.is_set():
                    self._thread = None
                    return False
                self._due.clear()

    def _connected(self) -> PatientConnection:
        session = self._connect()
        session.wire = Wire(session, prepares=False)
        self.pid = session.info.backend_pid
        return session

    def _send(self, session: PatientConnection) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
            self._sent_at = time.monotonic()
        hints = {channel: written(named) for channel, named in pending.items()}
        try:
            session.wire.exchange(hint_statements(hints), session.answer_s)
        except BaseException:
            with self._lock:
                for channel, named in pending.items():
                    self._wait_for(channel, named)
            raise

    def _wait_for(self, channel: str, named: set[str]) -> None:
        """Keeps what is still to be sent. Of more than a hint can name, the rest need not be kept:
        there may be no connection to be had for hours."""
        waiting = self._pending.setdefault(channel, set())
        waiting.update(islice(named - waiting, max(0, NAMES + 1 - len(waiting))))


class PostgresListening(Listening):
    """A thread that hears hints on a connection of its own.

    Whenever it begins to listen, it asks to poll all queues.
    """

    def __init__(
        self,
        listen: Connect,
        send: Connect,
        channel: str,
        heard: Heard,
        ignored: Callable[[], set[int]] = set,
        closed: Callable[[], object] = lambda: None,
    ) -> None:
        """`listen` opens a session with the server itself.

        `send` opens one as the store does, to test whether its hints are heard. `ignored` returns
        the server's processes whose hints are not passed on: the store says those itself.
        `closed` is called by `close`.
        """
        self._ignored, self._on_close = ignored, closed
        self._listen = listen
        self._connect_sender = send
        self._channel = channel
        self._heard = heard
        super().__init__()
        self._listens = False
        self._hints: list[str] = []
        self._probe, self._probe_until = "", 0.0
        self._end, self._ended = socket.socketpair()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rhythm listener", daemon=True)
        self._thread.start()

    @property
    def hears_all(self) -> bool:
        # In a forked process the thread does not exist.
        return self._listens and not self.problem and not self._probe and self._thread.is_alive()

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._on_close()
            self._end.send(b".")
            self._thread.join(FLUSH_S)
            if not self._thread.is_alive():
                self._end.close()
                self._ended.close()

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            try:
                with contextlib.closing(self._listen()) as session:
                    session.add_notify_handler(lambda notice: self._hints.append(notice.payload))
                    session.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    failures = 0
                    self._call(frozenset())
                    self._begin_probe()
                    self._listens = True
                    self._hear(session)
            # Bugs, too: nobody would notice that this thread has ended.
            except Exception as problem:
                failures, self._listens = failures + 1, False
                self._say(
                    f"the connection that listens for work is lost: "
                    f"{str(problem).strip() or repr(problem)}"
                )
                self._closed.wait(_rest_s(failures))

    def _hear(self, session: PatientConnection) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(session, selectors.EVENT_READ)
            ready.register(self._ended, selectors.EVENT_READ)
            while not self._closed.is_set():
                until = min(PING_S, self._probe_until - time.monotonic()) if self._probe else PING_S
                readable = [key.fileobj for key, _ in ready.select(max(0.0, until))]
                if self._ended in readable:
                    return
                if readable:
                    self._take(session)
                elif not self._probe:
                    session.execute("SELECT 1")
                self._pass_on()

    def _take(self, session: PatientConnection) -> None:
        session.pgconn.consume_input()
        ignored = self._ignored()
        while notice := session.pgconn.notifies():
            if notice.be_pid not in ignored:
                self._hints.append(notice.extra.decode())

    def _pass_on(self) -> None:
        hints, self._hints = self._hints, []
        if self._probe and self._probe in hints:
            self._probe = ""
            self._say("")
        elif self._probe and time.monotonic() >= self._probe_until:
            self._probe = ""
            self._say(
                "nothing is heard of what is told by NOTIFY: LISTEN needs a direct "
                "connection, past PgBouncer (listen_url)"
            )
        if heard := [hint for hint in hints if not hint.startswith(PROBE)]:
            self._call(read(heard))

    def _begin_probe(self) -> None:
        """Sends a test hint to this listener over another connection.

        A connection that a pooler lends for each transaction hears only itself.
        """
        self._probe, self._probe_until = PROBE + secrets.token_hex(8), time.monotonic() + PROBE_S
        try:
            with contextlib.closing(self._connect_sender()) as session:
                session.answer_s = PROBE_S
                session.wire = Wire(session, prepares=False)
                probe = hint_statements({self._channel: self._probe})
                session.wire.exchange(probe, session.answer_s)
        except (psycopg.Error, StoreError, OSError) as problem:
            self._probe = ""
            self._say(f"nobody can be told of work by NOTIFY: {str(problem).strip()}")

    def _call(self, queues: frozenset[str]) -> None:
        try:
            self._heard(queues)
        except Exception:
            log.exception("what was to hear of work has failed")

    @staticmethod
    def _event(level: int, name: str, detail: str) -> None:
        """Logs an event in the format of `worker.logs`, which belongs to a layer above this one."""
        log.log(level, "%s: %s", name, detail, extra={"event": name, "fields": {"detail": detail}})

    def _say(self, problem: str) -> None:
        """Stores the problem. It is logged once when it begins, and once when it ends."""
        if problem and not self.problem:
            self._event(
                logging.WARNING,
                "listener_deaf",
                f"{problem}; until then work is found by looking for it now and then",
            )
        elif self.problem and not problem:
            self._event(logging.INFO, "listener_hears", "new work is heard of")
        self.problem = problem
