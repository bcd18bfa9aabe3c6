"""One watcher for all streams: it notices which executions have changed, and hands the new views to
whoever follows them.

It looks when a worker of this process has committed something, when the database hints at work, and
a few times a second, as long as somebody follows something. A look reads one short row for each
execution that is followed; only those that have changed are read whole. Whoever is slow gets the
latest view and misses those in between. A view is made into bytes once, for all who are sent it.
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
POLL_INTERVAL_S = (
    0.25  # between two polls when nothing is heard: on PostgreSQL an end is not told to others
)
MIN_INTERVAL_S = 0.02  # between two polls whatever is heard
UNHEALTHY_AFTER_S = 10.0  # without an answer for so long, it is not well


class Update:
    """A view as streams send it. It is there as long as one of them has not sent it."""

    def __init__(self, stamp: str, view: ExecutionView) -> None:
        self.stamp, self.ended = stamp, view.ended
        self.event = b"id: %b\nevent: execution\ndata: %b\n\n" % (stamp.encode(), document(view))


class Followed:
    """What one stream waits for: the latest view that it has not sent. `stamp` names a view: two
    that differ have different ones."""

    def __init__(self, id: str, stamp: str) -> None:
        self.id, self.stamp = id, stamp
        self.update: Update | None = None
        self.ended = False  # the watcher has stopped
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()

    def notify(self, stamp: str, changed: Update | None) -> None:
        """From any thread; None: the execution is gone, or nobody will tell more."""
        with suppress(RuntimeError):  # the loop has just been closed
            self._loop.call_soon_threadsafe(self._take, stamp, changed)

    def _take(self, stamp: str, changed: Update | None) -> None:
        self.stamp, self.update, self.ended = stamp, changed, changed is None
        self._changed.set()

    def take(self) -> Update | None:
        """What is to be sent; it is forgotten here, so that nobody keeps it after that."""
        update, self.update = self.update, None
        return update

    async def next(self, seconds: float) -> bool:
        """Whether there is something new, within this time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        changed = self._changed.is_set()
        self._changed.clear()
        return changed


class Watcher:
    """Follows executions for streams, in a thread that is there while there are any."""

    def __init__(self, app: Rhythm) -> None:
        self.app = app
        self.answered_at = time.monotonic()
        self._lock, self._due = threading.Lock(), threading.Event()
        self._followed: dict[Followed, str] = {}  # and the stamp that it was told last
        # by execution and stamp, as long as somebody sends it
        self._updates = WeakValueDictionary[tuple[str, str], Update]()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def stale(self) -> bool:
        """Whether streams wait for a watcher that gets no answers."""
        return bool(self._followed) and time.monotonic() - self.answered_at > UNHEALTHY_AFTER_S

    @contextmanager
    def following(self, id: str, stamp: str = "") -> Iterator[Followed]:
        """`stamp`: of the view that is known already; nothing is told until there is another
        one."""
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
        except Exception:  # a bug: those who follow are told, and come again
            log.exception("the watcher of streams has failed")
            self.close()
            self._closed = False

    def _goes_on(self) -> bool:
        with self._lock:
            if self._followed and not self._closed:
                return True
            self._thread = None
            return False

    def _poll(self) -> None:
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
        """Executions as streams send them. Only those are read that no stream is sending as they
        are."""
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
