"""One watcher for all streams: it notices which executions have changed, and hands the new views to
the streams that follow them.

As long as there are streams, it polls when a worker of this process has committed something, when
the database hints at work, and a few times a second. A poll reads one short row for each execution
that is followed; only those that have changed are read completely. A slow client gets the latest
view and misses those in between. A view is serialised once, for all streams that send it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

from rhythm.app import ExecutionView, Rhythm
from rhythm.errors import StoreError
from rhythm.http.answers import document

log = logging.getLogger("rhythm.http")
# Between two polls without a hint. PostgreSQL does not notify other processes of an end.
POLL_INTERVAL_S = 0.25
MIN_INTERVAL_S = 0.02  # between two polls, whatever the hints
UNHEALTHY_AFTER_S = 10.0  # without an answer of the database for this long, it is unhealthy


class Update:
    """A view as streams send it. It exists only until the last of them has sent it."""

    def __init__(self, stamp: str, view: ExecutionView) -> None:
        self.stamp, self.ended = stamp, view.ended
        self.body = b"event: execution\ndata: %b\n\n" % document(view)  # the event without its id


class Followed:
    """What one stream waits for: the latest view that it has not sent.

    `stamp` identifies a view: views that differ have different stamps.
    """

    def __init__(self, id: str, stamp: str) -> None:
        self.id, self.stamp = id, stamp
        self.update: Update | None = None
        self.ended = False  # the watcher has stopped
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()

    def notify(self, stamp: str, changed: Update | None) -> None:
        """Hands over a new view, from any thread. None ends the stream.

        The execution is gone then, or the watcher has stopped.
        """
        with suppress(RuntimeError):  # the loop has just been closed
            self._loop.call_soon_threadsafe(self._take, stamp, changed)

    def _take(self, stamp: str, changed: Update | None) -> None:
        self.stamp, self.update, self.ended = stamp, changed, changed is None
        self._changed.set()

    def take(self) -> Update | None:
        """Returns the view to send, and forgets it, so that its memory is free once it is sent."""
        update, self.update = self.update, None
        return update

    async def next(self, seconds: float) -> bool:
        """Waits at most this many seconds, and returns whether there is something new."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        changed = self._changed.is_set()
        self._changed.clear()
        return changed


class Watcher:
    """Follows executions for streams, in a thread that runs while there are any."""

    def __init__(self, app: Rhythm) -> None:
        self.app = app
        self.answered_at = time.monotonic()
        self._lock, self._due = threading.Lock(), threading.Event()
        self._followed: dict[Followed, str] = {}  # with the last stamp that each was notified of
        # by execution and stamp, as long as a stream sends it
        self._updates = WeakValueDictionary[tuple[str, str], Update]()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def stale(self) -> bool:
        """Whether streams wait although the watcher gets no answers from the database."""
        return bool(self._followed) and time.monotonic() - self.answered_at > UNHEALTHY_AFTER_S

    @contextmanager
    def following(self, id: str, stamp: str = "") -> Iterator[Followed]:
        """Follows an execution for the block.

        `stamp` is that of the view that the client has already: it is notified only of another one.
        """
        one = Followed(id, stamp)
        with self._lock:
            if not self._followed:
                self.answered_at = time.monotonic()
            self._followed[one] = stamp
            if self._closed:
                one.notify("", None)
            elif self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="rhythm watcher", daemon=True
                )
                self._thread.start()
        self._due.set()
        try:
            yield one
        finally:
            with self._lock:
                del self._followed[one]
            self._due.set()

    def close(self) -> None:
        """Ends all streams."""
        with self._lock:
            self._closed = True
            for one in self._followed:
                one.notify("", None)
        self._due.set()

    def _run(self) -> None:
        try:
            with self.app.changes.hinted(self._due.set):
                while self._goes_on():
                    self._due.wait(POLL_INTERVAL_S)
                    self._due.clear()
                    self._poll()
                    time.sleep(MIN_INTERVAL_S)
        except Exception:  # a bug: the streams end, and their clients come back
            log.exception("the watcher of streams has failed")
            self.close()
            self._closed = False

    def _goes_on(self) -> bool:
        """Tells whether there are streams. If not, the thread ends."""
        with self._lock:
            if self._followed and not self._closed:
                return True
            self._thread = None
            return False

    def _poll(self) -> None:
        """Reads what has changed, and notifies the streams."""
        with self._lock:
            known = dict(self._followed)
        try:
            stamps = self.app.changes.stamps(sorted({one.id for one in known}))
            new = {
                one: stamps.get(one.id, "")
                for one, stamp in known.items()
                if stamps.get(one.id, "") != stamp
            }
            updates = self._updates_of({one.id: stamp for one, stamp in new.items()})
            self.answered_at = time.monotonic()
        except StoreError as problem:
            log.debug("streams wait for the database: %s", problem)
            return
        self._notify(new, updates)

    def _updates_of(self, stamps: Mapping[str, str]) -> dict[str, Update]:
        """Returns the executions as streams send them.

        A view that some stream is still sending is used again and not read.
        """
        updates = {
            id: known for id, stamp in stamps.items() if (known := self._updates.get((id, stamp)))
        }
        missing = sorted(stamps.keys() - updates.keys())
        for id, view in self.app.executions.get_many(missing).items():
            updates[id] = self._updates[id, stamps[id]] = Update(stamps[id], view)
        return updates

    def _notify(self, new: Mapping[Followed, str], updates: Mapping[str, Update]) -> None:
        with self._lock:
            for one, stamp in new.items():
                if one in self._followed:
                    self._followed[one] = stamp
                    one.notify(stamp, updates.get(one.id))
