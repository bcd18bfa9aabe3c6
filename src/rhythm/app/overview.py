"""The overview of a database: what operators look at all the time, for few statements and few rows.

Every count has a limit, and says if there is more. It costs as much on a full database as on an
empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rhythm.app.views import WorkerView, as_json, cut_error, moment, worker_view
from rhythm.record import Record
from rhythm.store.lifecycle import STATUS_NAMES

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.store.interfaces.operating import Counted, FailedRoot

WINDOW_S = 60  # started and ended: within the last minute
MOST_COUNTED = 5_000  # of everything: a count that has reached it means at least so many
MOST_FAILURES, AMONG = 5, 1000  # the newest failures, among so many of the newest that have ended
MOST_WORKERS = 200


class WaitingView(Record):
    """A queue with ready work, or one that is paused.

    `next_s` is how long the work has waited that is claimed next.
    """

    name: str
    ready: int
    next_s: float | None
    paused: bool = False


class FailureView(Record):
    """An execution that failed."""

    id: str
    name: str
    at: datetime
    code: str
    message: str


class OverviewView(Record):
    """What is going on in a database. A count of `most` means at least so many.

    `live` counts workflows that have not ended by their status. `started`, and `ended` by status,
    are those of the last minute that were started from outside. `failures` are the newest.
    """

    at: datetime
    most: int
    live: Mapping[str, int]
    started: int
    ended: Mapping[str, int]
    approvals: int  # that are open
    queues: tuple[WaitingView, ...]
    workers: tuple[WorkerView, ...]
    failures: tuple[FailureView, ...]

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class Overview:
    """The overview of a database: call it."""

    def __init__(self, context: AppContext) -> None:
        self._store = context.store

    def __call__(self) -> OverviewView:
        """Returns what is going on, for three statements and a bounded number of rows."""
        operating = self._store.operating
        counted = operating.overview(WINDOW_S * 1_000_000, MOST_COUNTED)
        failures = operating.failures(MOST_FAILURES, AMONG)
        workers = tuple(map(worker_view, self._store.workers.seen()))
        return _view(counted, workers[:MOST_WORKERS], failures)


def _view(
    counted: list[Counted], workers: tuple[WorkerView, ...], failures: list[FailedRoot]
) -> OverviewView:
    now = next(one.at for one in counted if one.what == "now") or 0
    numbers = {one.what: one.n for one in counted}
    return OverviewView(
        moment(now),
        MOST_COUNTED,
        _by_status(one for one in counted if one.what == "live"),
        numbers.get("started", 0),
        _by_status(one for one in counted if one.what == "ended"),
        numbers.get("approvals", 0),
        tuple(_queues(counted, now)),
        workers,
        tuple(map(_failure, failures)),
    )


def _by_status(counted: Iterable[Counted]) -> dict[str, int]:
    found = sorted((int(one.name), one.n) for one in counted)
    return {STATUS_NAMES[status]: n for status, n in found}


def _queues(counted: list[Counted], now: int) -> Iterable[WaitingView]:
    """Yields the queues, those in which most waits first."""
    paused = {one.name for one in counted if one.what == "paused queue"}
    ready = {one.name: one for one in counted if one.what == "queue"}
    found = [
        WaitingView(
            name,
            one.n if (one := ready.get(name)) else 0,
            max(0.0, (now - one.at) / 1e6) if one and one.at is not None else None,
            name in paused,
        )
        for name in paused | ready.keys()
    ]
    return sorted(found, key=lambda queue: (-queue.ready, queue.name))


def _failure(row: FailedRoot) -> FailureView:
    error = cut_error(row.error or "")
    return FailureView(row.id, row.name, moment(row.at), error["code"], error["message"])
