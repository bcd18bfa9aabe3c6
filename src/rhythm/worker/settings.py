"""How a worker behaves: one frozen value."""

from __future__ import annotations

from rhythm.engine.rows import Asking
from rhythm.record import Record
from rhythm.worker.heartbeat import HeartSettings


class WorkerSettings(Record):
    """How a worker behaves."""

    queues: tuple[str, ...] = ("default",)
    one_queue: bool = False  # everything goes to the first of `queues`: nobody else is there
    concurrency: int = 100  # handlers at once
    batch: int = 100  # rows claimed at once
    claim_ttl_s: float = 300.0  # claims expire after this long; a living worker prolongs its own
    beat_s: float = 5.0  # between two heartbeats
    dead_after_s: float = 30.0  # silent for so long, it is dead to the others, and its work theirs
    margin_s: float = 6.0  # before it may be dead to them, or a claim expires, it begins no more
    check_interval_s: float = (
        1.0  # between two checks for cancelled tasks and paused queues, when busy
    )
    share_s: float = 2.0  # a workflow may keep its worker, and a slot, while others wait
    share_turns: int = 1000  # and how many turns
    turn_s: float = 0.25  # a turn computes before it yields; its fuel ends most of them sooner
    owner_run: bool = True
    owner_run_limit_s: float = 1.0  # a task that lasts longer gets a row of its own
    crash_limit: int = 3
    patience_s: float = 60.0  # a runner waits for a database that has gone away
    alone_s: float = 10.0  # nothing else begins beside a task that has its last chance
    suspect_retry_s: float = 1.0  # before another such task is looked at again
    missing_task_grace_s: float = 600.0
    missing_task_retry_s: float = 5.0
    newer_retry_s: float = 5.0  # before a workflow is tried again that needs a newer Rhythm
    asking: Asking = Asking()

    @property
    def heart(self) -> HeartSettings:
        return HeartSettings(self.beat_s, self.dead_after_s, self.claim_ttl_s, self.margin_s)
