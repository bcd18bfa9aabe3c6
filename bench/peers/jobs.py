"""What is measured: the jobs, and the figures of each."""

from __future__ import annotations

from bench.measure import show_s
from bench.peers.engines import Kind
from rhythm.record import Record


class Figure(Record):
    """One number of a job."""

    key: str  # as the scripts print it
    title: str
    unit: str  # "/s": more is better; "ms" and "s": less is
    drawn: bool = False  # in the picture

    @property
    def more_is_better(self) -> bool:
        return self.unit == "/s"

    def show(self, value: float) -> str:
        if self.unit == "/s":
            return f"{value:,.0f}/s"
        return show_s(value / 1e3 if self.unit == "ms" else value)

    def best(self, values: list[float]) -> float:
        return max(values) if self.more_is_better else min(values)

    def times_better(self, ours: float, theirs: float) -> float:
        return ours / theirs if self.more_is_better else theirs / ours


class Job(Record):
    """What every engine of these kinds does in turn."""

    name: str
    title: str
    kinds: tuple[Kind, ...]
    figures: tuple[Figure, ...]

    @property
    def heading(self) -> str:
        return f"{self.name.upper()}: {self.title}"


ENGINES: tuple[Kind, ...] = ("limit", "ours", "workflows")
QUEUES: tuple[Kind, ...] = (*ENGINES, "tasks")


# measured in every run: what the disk does decides all the others
COMMIT = Job("commit", "a change of one row, by the database alone", ("limit",), (
    Figure("commit_ms", "p50", "ms"),
))  # fmt: skip
JOBS = (
    Job("j1", "10,000 tasks that do nothing, enqueued, then drained", QUEUES, (
        Figure("enqueued_per_s", "enqueued", "/s"),
        Figure("drained_per_s", "drained", "/s", drawn=True),
    )),
    Job("j2", "1,000 workflows at once, each with 10 steps one after the other", ENGINES, (
        Figure("steps_per_s", "steps", "/s", drawn=True),
    )),
    Job("j3", "one workflow at a time, nothing else going on", QUEUES, (
        Figure("p50_ms", "start to result, p50", "ms", drawn=True),
        Figure("p99_ms", "p99", "ms"),
        Figure("in_process_p50_ms", "in the caller's process, p50", "ms"),
        Figure("ms_per_step", "a step of a workflow with 50", "ms", drawn=True),
    )),
    Job("j4", "one workflow that awaits 1,000 others", ENGINES, (
        Figure("children_s", "1,000 child workflows", "s", drawn=True),
        Figure("parallel_steps_s", "1,000 tasks or steps", "s"),
    )),
)  # fmt: skip
BY_NAME = {job.name: job for job in (COMMIT, *JOBS)}
