"""The lines of one worker: what its executions say, until it is written.

Nobody waits for a line. Any thread adds one, another one writes them in groups. While the database
does not answer, lines wait up to a limit, and what comes then is counted in their place.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rhythm.engine.levels import INFO
from rhythm.engine.said import fields_of, text_of
from rhythm.errors import StoreError
from rhythm.ids import root_of
from rhythm.limits import LOGS, LogLimits
from rhythm.store.interfaces.logs import HEARTBEAT, LOG, LineKind, NewLine, RootLines
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TurnCommit
from rhythm.store.log_lines import size_of_line

GATHER_S = 0.2  # from the first line of a group until it is written
LONGEST_REST_S = 5.0  # between two tries, while the database does not answer
# A heartbeat is kept if the last one that was kept is so long ago: a part of the attempt's age, so
# that an attempt of any length leaves some hundred lines. The last heartbeat is always kept.
MIN_HEARTBEAT_S, MAX_HEARTBEAT_S, HEARTBEAT_SHARE = 1.0, 30.0, 0.05


class Line(NamedTuple):
    """A line that waits, and when it was said, on the worker's clock."""

    line: NewLine
    said_s: float
    size: int


class Speaker:
    """An attempt at a task, as far as it says something: it numbers its lines."""

    def __init__(self, id: str, name: str, fence: int, attempt: int, now: float) -> None:
        self.id, self.name, self.fence, self.attempt = id, name, fence, attempt
        self.lines = 0  # how many there were
        self.began_s = now
        self.next_heartbeat_s = now  # a heartbeat before that is kept only if it is the last

    def heartbeat_kept(self, now: float) -> None:
        """Notes that a heartbeat is kept, and when the next one is."""
        rest_s = (now - self.began_s) * HEARTBEAT_SHARE
        self.next_heartbeat_s = now + min(max(rest_s, MIN_HEARTBEAT_S), MAX_HEARTBEAT_S)


class LineBuffer:
    """What the executions of one worker have said, and is not written.

    `level`: of what is kept, the lowest. Any thread may add a line. One thread writes.
    """

    def __init__(
        self,
        level: int,
        worker: str,
        now: Callable[[], float],
        limits: LogLimits = LOGS,
    ) -> None:
        self.level, self.worker, self.now, self.limits = level, worker, now, limits
        self.some = threading.Event()  # set while there may be something to write
        self._lock = threading.Lock()
        self._waiting: deque[Line] = deque()
        self._size = 0  # of what waits or is being written, as the limits count it
        self._dropped = Counter[str]()  # by root
        self._held: dict[Speaker, Line] = {}  # the last heartbeat, if it was not kept yet
        self._group: Sequence[Line] = ()  # what is being written
        self._counted: Counter[str] = Counter()  # what was dropped, as it is being written
        self._again = False  # it was sent before, and its answer was lost

    # adding

    def keeps(self, level: int) -> bool:
        """Returns whether a line of a log with this level is kept."""
        return level >= self.level

    def add_turn(self, turn: TurnCommit, name: str, said_s: float) -> None:
        """Adds what a turn has said, once it is committed."""
        for n, said in enumerate(turn.said):
            if said.kind != LOG or self.keeps(said.level):
                line = NewLine(
                    turn.id, turn.seq, n, 0, said.kind, said.level, 0, name, self.worker,
                    said.message, said.fields,
                )  # fmt: skip
                self._add(line, said_s)

    def speaker(self, id: str, name: str, fence: int, attempt: int) -> Speaker:
        """Returns what an attempt says something as."""
        return Speaker(id, name, fence, attempt, self.now())

    def add(
        self, speaker: Speaker, kind: LineKind, level: int, message: str, fields: Any = None
    ) -> None:
        """Adds what an attempt has said."""
        if kind == LOG and not self.keeps(level):
            return
        said_s, text, given = self.now(), text_of(message), fields_of(fields)
        with self._lock:
            n, speaker.lines = speaker.lines, speaker.lines + 1
        line = NewLine(
            speaker.id, speaker.fence, n, 0, kind, level, speaker.attempt, speaker.name,
            self.worker, text, given,
        )  # fmt: skip
        if kind == HEARTBEAT and said_s < speaker.next_heartbeat_s:
            self._hold(speaker, Line(line, said_s, size_of_line(line)))
        else:
            if kind == HEARTBEAT:
                self._let_go(speaker, said_s)
            self._add(line, said_s)

    def heartbeat(self, speaker: Speaker, progress: Any) -> None:
        """Adds a heartbeat with details: a text, or fields."""
        text = progress if isinstance(progress, str) else ""
        self.add(speaker, HEARTBEAT, INFO, text, None if text else progress)

    def _hold(self, speaker: Speaker, line: Line) -> None:
        with self._lock:
            if speaker not in self._held and len(self._held) >= self.limits.counted:
                self._held.pop(next(iter(self._held)))
            self._held[speaker] = line
        self.some.set()

    def _let_go(self, speaker: Speaker, now: float) -> None:
        with self._lock:
            self._held.pop(speaker, None)
            speaker.heartbeat_kept(now)

    def _add(self, line: NewLine, said_s: float) -> None:
        size = size_of_line(line)
        with self._lock:
            count = len(self._waiting) + len(self._group)
            full = count >= self.limits.waiting or self._size + size > self.limits.waiting_bytes
            if full:
                self._drop(line)
            else:
                self._waiting.append(Line(line, said_s, size))
                self._size += size
        self.some.set()

    def _drop(self, line: NewLine) -> None:
        root = root_of(line.execution_id)
        if root in self._dropped or len(self._dropped) < self.limits.counted:
            self._dropped[root] += 1

    # writing

    @property
    def empty(self) -> bool:
        """Whether nothing waits, not even a heartbeat."""
        return not (self._waiting or self._group or self._dropped or self._counted or self._held)

    def write(self, store: Store, everything: bool = False) -> bool:
        """Writes one group of lines; returns whether more of them wait.

        `everything`: also the heartbeats that wait for their time. Raises `StoreError` if the
        database does not answer: the next call sends the same group again.
        """
        self._take(everything)
        if not self._group and not self._counted:
            return False
        try:
            store.logs.write(self._roots(), self._again)
        except StoreError:
            self._again = True
            raise
        except Exception:
            self._give_up()
            raise
        self._written()
        return bool(self._waiting)

    def rest_s(self) -> float | None:
        """Returns in how many seconds a heartbeat that waits is to be written; None: there is
        none."""
        with self._lock:
            due = min((each.next_heartbeat_s for each in self._held), default=None)
        return None if due is None else max(0.0, due - self.now())

    def _take(self, everything: bool) -> None:
        """Takes the next group, unless there is one already."""
        now = self.now()
        with self._lock:
            self.some.clear()
            for speaker in [
                each for each in self._held if everything or each.next_heartbeat_s <= now
            ]:
                held = self._held.pop(speaker)
                speaker.heartbeat_kept(now)
                self._waiting.append(held)
                self._size += held.size
            if not self._group and not self._counted:
                count = min(len(self._waiting), self.limits.group)
                self._group = [self._waiting.popleft() for _ in range(count)]
                self._counted, self._dropped = self._dropped, Counter()

    def _roots(self) -> list[RootLines]:
        now, by_root = self.now(), dict[str, list[NewLine]]()
        for each in self._group:
            age_us = max(0, int((now - each.said_s) * 1e6))
            lines = by_root.setdefault(root_of(each.line.execution_id), [])
            lines.append(each.line.replace(age_us=age_us))
        roots = [*by_root, *(root for root in self._counted if root not in by_root)]
        return [RootLines(id, by_root.get(id, ()), self._counted[id]) for id in roots]

    def _written(self) -> None:
        with self._lock:
            self._size -= sum(each.size for each in self._group)
            self._group, self._counted, self._again = (), Counter(), False

    def _give_up(self) -> None:
        """Counts a group that cannot be written as dropped."""
        with self._lock:
            for each in self._group:
                self._drop(each.line)
        self._written()


class LineWriter:
    """Writes the lines of a worker in a thread of its own, on a connection of its own to `store`.

    The connection is opened with the first line. `observe` is told of bugs.
    """

    def __init__(
        self, lines: LineBuffer, store: Store, observe: Callable[[str, str, str], None]
    ) -> None:
        self._lines, self._observe = lines, observe
        self._of = store
        self._store: Store | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rhythm lines", daemon=True)

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def close(self, last_s: float) -> None:
        """Writes what is left, for `last_s` at most, and ends the thread; does nothing twice."""
        self._stop.set()
        self._lines.some.set()
        if self._thread.is_alive():
            self._thread.join(last_s)

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            if not failures:
                self._lines.some.wait(self._lines.rest_s())
            self._stop.wait(min(GATHER_S * 2 ** min(failures, 5), LONGEST_REST_S))
            failures = 0 if self._write() else failures + 1
        self._write(everything=True)
        if self._store is not None and self._store is not self._of:
            self._store.close()

    def _write(self, everything: bool = False) -> bool:
        """Writes all that waits; returns whether the database has answered."""
        try:
            while not self._lines.empty:
                if self._store is None:
                    self._store = self._of.sibling()
                    # It connects now: the age of a line is that of the moment when it is sent.
                    self._store.logs.totals("")
                if not self._lines.write(self._store, everything):
                    return True
        except StoreError:
            return False
        except Exception as problem:
            self._observe("bug", "", f"lines of logs were not kept: {problem!r}")
        return True
