"""The metrics of a worker, in the text format of Prometheus: their table, and how they are kept.

Counting must cost next to nothing, since it happens in the worker's main thread. Values that can be
read on demand are read only then. No metric has more than `MAX_LABELS` different sets of labels:
further ones are counted as `other`.
"""

from __future__ import annotations

import platform
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rhythm import __version__
from rhythm.record import Record
from rhythm.store.interfaces.workers import Queue
from rhythm.store.lifecycle import STATUS_NAMES, StatusNumber

TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_LABELS, OTHER = 500, "other"
SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# Questions to the database: how often, how long a scrape waits, how long an answer is used.
ASKED_EVERY_S, ASKED_WAIT_S, ASKED_OLD_S = 5.0, 0.5, 30.0

Labels = tuple[str, ...]
Values = Mapping[Labels, float]


class Metric(Record):
    """The name, kind, labels and meaning of a metric."""

    name: str
    kind: str
    labels: Labels
    means: str
    bounds: tuple[float, ...] = ()  # upper bounds of a histogram's ranges


_TABLE = (
    Metric(
        "rhythm_executions_finished_total",
        "counter",
        ("workflow", "status"),
        "workflows that ended with a turn of this worker",
    ),
    Metric(
        "rhythm_tasks_finished_total",
        "counter",
        ("task", "status"),
        "tasks that ended here, for good",
    ),
    Metric(
        "rhythm_task_retries_total",
        "counter",
        ("task",),
        "attempts that ended here, and are followed by another",
    ),
    Metric(
        "rhythm_task_duration_seconds",
        "histogram",
        ("task",),
        "how long attempts took, from when they were begun",
        SECONDS,
    ),
    Metric(
        "rhythm_timer_lateness_seconds",
        "histogram",
        (),
        "how long after its time this worker has fired a timer (`sleep`)",
        SECONDS,
    ),
    Metric(
        "rhythm_claim_lost_total",
        "counter",
        (),
        "executions that were another's by now: their writes were refused, or not sent",
    ),
    Metric(
        "rhythm_commit_unknown_total",
        "counter",
        (),
        "commits without an answer: each was looked up, none was guessed",
    ),
    Metric("rhythm_commits_total", "counter", (), "group commits"),
    Metric(
        "rhythm_commit_batch_size",
        "histogram",
        (),
        "turns and ends of tasks in one group commit",
        SIZES,
    ),
    Metric(
        "rhythm_worker_slots",
        "gauge",
        ("state",),
        "tasks that run (`running`), and for how many more there is room (`free`)",
    ),
    Metric(
        "rhythm_service_last_success_age_seconds",
        "gauge",
        ("service",),
        "since timers, schedules, rescue, sweeper, pruner and events last did their work",
    ),
    Metric(
        "rhythm_loop_lag_seconds",
        "gauge",
        (),
        "how long the event loop of `async def` tasks took to answer: a task that blocks it shows",
    ),
    Metric(
        "rhythm_queue_depth",
        "gauge",
        ("queue",),
        "what is ready in the queue and not taken, in the whole database",
    ),
    Metric(
        "rhythm_queue_oldest_age_seconds",
        "gauge",
        ("queue",),
        "how long the oldest of it has waited; 0: nothing waits",
    ),
    Metric(
        "rhythm_build_info",
        "gauge",
        ("version", "python"),
        "which Rhythm this is, on which Python: always 1",
    ),
)
METRICS = {metric.name: metric for metric in _TABLE}


class Counter:
    """Counts, by labels. May be used from any thread."""

    def __init__(self, metric: Metric) -> None:
        self.metric, self._lock = metric, threading.Lock()
        self._values: dict[Labels, float] = {} if metric.labels else {(): 0.0}

    def add(self, *labels: str) -> None:
        """Adds one."""
        with self._lock:
            key = labels if labels in self._values else _room(self._values, labels, 0.0)
            self._values[key] += 1

    def lines(self) -> Iterator[str]:
        """Returns the lines for Prometheus."""
        with self._lock:
            values = self._values.copy()
        return written(self.metric, values)


class Histogram:
    """Counts how many values were in each range, by labels. May be used from any thread."""

    def __init__(self, metric: Metric) -> None:
        self.metric, self._lock = metric, threading.Lock()
        self._values: dict[Labels, list[float]] = {} if metric.labels else {(): self._empty()}

    def _empty(self) -> list[float]:
        # One count for each bound and one above all bounds, then the sum of the values.
        return [0] * (len(self.metric.bounds) + 1) + [0.0]

    def observe(self, value: float, *labels: str) -> None:
        """Adds one value."""
        with self._lock:
            found = self._values.get(labels)
            if found is None:
                found = self._values[_room(self._values, labels, self._empty())]
            found[bisect_left(self.metric.bounds, value)] += 1
            found[-1] += value

    def lines(self) -> Iterator[str]:
        """Yields the lines for Prometheus."""
        with self._lock:
            values = {labels: list(found) for labels, found in self._values.items()}
        yield from head(self.metric)
        for labels, (*counts, total) in values.items():
            below = 0.0
            for bound, count in zip(
                (*map(_number, self.metric.bounds), "+Inf"), counts, strict=True
            ):
                below += count
                yield _line(
                    f"{self.metric.name}_bucket",
                    (*self.metric.labels, "le"),
                    (*labels, bound),
                    below,
                )
            yield _line(f"{self.metric.name}_sum", self.metric.labels, labels, total)
            yield _line(f"{self.metric.name}_count", self.metric.labels, labels, below)


_Value = TypeVar("_Value")


def _room(values: dict[Labels, _Value], labels: Labels, empty: _Value) -> Labels:
    """Makes an entry for new labels, and returns its key.

    Once there are `MAX_LABELS` entries, all further labels share one.
    """
    key = labels if len(values) < MAX_LABELS else (OTHER,) * len(labels)
    values.setdefault(key, empty)
    return key


class Metrics:
    """Counts what one worker does. `read` has the gauges by name; they are read on demand."""

    def __init__(self, read: Mapping[str, Callable[[], Values]] | None = None) -> None:
        self.read = dict(read or {}) | {
            "rhythm_build_info": lambda: {(__version__, platform.python_version()): 1}
        }
        made: dict[str, Counter | Histogram] = {
            metric.name: Counter(metric) if metric.kind == "counter" else Histogram(metric)
            for metric in _TABLE
            if metric.kind != "gauge"
        }
        self._made = made
        self._finished = _counter(made, "rhythm_executions_finished_total")
        self._tasks = _counter(made, "rhythm_tasks_finished_total")
        self._retries = _counter(made, "rhythm_task_retries_total")
        self._commits = _counter(made, "rhythm_commits_total")
        self._took = _histogram(made, "rhythm_task_duration_seconds")
        self._batch = _histogram(made, "rhythm_commit_batch_size")
        self._late = _histogram(made, "rhythm_timer_lateness_seconds")
        self._events = {
            name: _counter(made, f"rhythm_{name}_total")
            for name in ("claim_lost", "commit_unknown")
        }

    def finished(self, workflow: str, status: StatusNumber) -> None:
        """Counts a workflow that ended with a turn of this worker."""
        self._finished.add(workflow, STATUS_NAMES[status])

    def attempt(self, task: str, failed: bool, again: bool, took_s: float) -> None:
        """Counts an attempt at a task. `again`: another attempt follows."""
        self._took.observe(took_s, task)
        if again:
            self._retries.add(task)
        else:
            self._tasks.add(task, "failed" if failed else "completed")

    def committed(self, size: int) -> None:
        """Counts a group commit of `size` turns and ends of tasks."""
        self._commits.add()
        self._batch.observe(size)

    def timer(self, late_s: float) -> None:
        """Counts a timer that fired `late_s` after its time."""
        self._late.observe(late_s)

    def count_event(self, event: str) -> None:
        """Counts a log event, if it has a metric; also where nobody reads the log."""
        if event in self._events:
            self._events[event].add()

    def text(self) -> str:
        """Returns all metrics in the text format of Prometheus."""
        lines: list[str] = []
        for metric in _TABLE:
            if metric.kind != "gauge":
                lines += self._made[metric.name].lines()
            elif (read := self.read.get(metric.name)) and (values := read()):
                lines += written(metric, values)
        return "\n".join(lines) + "\n"


def _counter(made: Mapping[str, Counter | Histogram], name: str) -> Counter:
    found = made[name]
    assert isinstance(found, Counter)
    return found


def _histogram(made: Mapping[str, Counter | Histogram], name: str) -> Histogram:
    found = made[name]
    assert isinstance(found, Histogram)
    return found


class Asked:
    """A value from the database, read in a thread of its own and kept for a while.

    It asks one question at a time, and not too often. `read` never waits for long: while there is
    no new answer, it returns the last one, unless that is too old.
    """

    def __init__(self, ask: Callable[[], Sequence[Queue]], now: Callable[[], float]) -> None:
        self._ask, self._now = ask, now
        self._lock, self._idle = threading.Lock(), threading.Event()
        self._idle.set()
        self._asked_at = self._answered_at = float("-inf")
        self._answer: Sequence[Queue] = ()

    def read(self) -> Sequence[Queue]:
        """Returns the newest answer; nothing if that is older than `ASKED_OLD_S`."""
        with self._lock:
            if self._idle.is_set() and self._now() - self._asked_at >= ASKED_EVERY_S:
                self._asked_at = self._now()
                self._idle.clear()
                threading.Thread(target=self._run, name="rhythm metrics", daemon=True).start()
        self._idle.wait(ASKED_WAIT_S)
        return self._answer if self._now() - self._answered_at <= ASKED_OLD_S else ()

    def _run(self) -> None:
        try:
            self._answer = self._ask()
            self._answered_at = self._now()
        # The worker reports a database that does not answer; `read` leaves out old values.
        except Exception:
            pass
        finally:
            self._idle.set()


def depth(queues: Sequence[Queue]) -> Values:
    """Returns how much is ready in each queue."""
    return {(queue.name,): float(queue.ready) for queue in _some(queues)}


def oldest_s(queues: Sequence[Queue]) -> Values:
    """Returns how many seconds the oldest entry of each queue has waited; 0 if none waits."""
    return {
        (queue.name,): 0.0
        if queue.oldest_at is None
        else max(0.0, (queue.now - queue.oldest_at) / 1e6)
        for queue in _some(queues)
    }


def _some(queues: Sequence[Queue]) -> Iterable[Queue]:
    """Returns the queues; if there are too many, those with most ready work."""
    if len(queues) <= MAX_LABELS:
        return queues
    return sorted(queues, key=lambda queue: -queue.ready)[:MAX_LABELS]


def head(metric: Metric) -> Iterator[str]:
    """Yields the HELP and TYPE lines of a metric."""
    yield f"# HELP {metric.name} {_help(metric.means)}"
    yield f"# TYPE {metric.name} {metric.kind}"


def written(metric: Metric, values: Values) -> Iterator[str]:
    """Yields the lines of a counter or a gauge."""
    yield from head(metric)
    for labels, value in values.items():
        yield _line(metric.name, metric.labels, labels, value)


def _line(name: str, labels: Labels, values: Labels, value: float) -> str:
    given = ",".join(
        f'{label}="{_escaped(text)}"' for label, text in zip(labels, values, strict=True)
    )
    return f"{name}{{{given}}} {_number(value)}" if given else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: Any) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
