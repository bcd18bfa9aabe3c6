"""What is measured: the jobs, and the figures of each."""

from __future__ import annotations

from bench.figures import Figure
from bench.peers.engines import Kind
from rhythm.record import Record


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
