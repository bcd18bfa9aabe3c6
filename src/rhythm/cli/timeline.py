"""What is new in the timeline of an execution, each time that it is read.

Two transactions that end together may become visible in another order than that of their times. So
what has just been read is read again for a while, and each step is given out once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rhythm.app import Rhythm, TraceStep

PAGE_STEPS = 200  # steps that are read at a time
# A page that is full is read again for so long: transactions take no longer to become visible.
SETTLED_S = 10.0


class Timeline:
    """The steps of one execution and of all below it, each given out once."""

    def __init__(self, app: Rhythm, id: str, now: Callable[[], float] = time.monotonic) -> None:
        self._app, self._id, self._now = app, id, now
        self._begin: str | None = None  # the cursor after which is read
        self._given: Counter[Any] = Counter()  # how often a step was given out since `begin`
        self._full_at: float | None = None  # since when the first page after `begin` is full

    def news(self) -> Iterator[list[TraceStep]]:
        """Yields what is new, a page at a time, in order of time."""
        found, cursor, first = Counter[Any](), self._begin, True
        while True:
            page = self._app.trace_page(self._id, PAGE_STEPS, cursor)
            keys = [_key(step) for step in page]
            fresh: list[TraceStep] = []
            for key, step in zip(keys, page, strict=True):
                found[key] += 1
                if found[key] > self._given[key]:
                    fresh.append(step)
            if fresh:
                yield fresh
                self._given.update(map(_key, fresh))  # not before: it may not have been shown
            if page.cursor is None:
                return
            if first and self._is_settled():
                self._begin, self._full_at = page.cursor, None
                self._given -= Counter(keys)
                found.clear()
            else:
                first = False
            cursor = page.cursor

    def _is_settled(self) -> bool:
        """Returns whether a full page has been so for long enough that it is not read again."""
        if self._full_at is None:
            self._full_at = self._now()
        return self._now() - self._full_at >= SETTLED_S


def _key(step: TraceStep) -> Any:
    return step.at, step.execution_id, step.what, step.name, step.line
