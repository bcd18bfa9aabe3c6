"""The settings of a worker, as one frozen value."""

from __future__ import annotations

from rhythm.engine.rows import Asking
from rhythm.record import Record
from rhythm.worker.heartbeat import HeartSettings


class WorkerSettings(Record):
    """The settings of a worker."""

    queues: tuple[str, ...] = ("default",)
    # Everything goes to the first of `queues`, since there is no other worker.
    one_queue: bool = False
    concurrency: int = 100  # handlers at once
    batch: int = 100  # rows claimed at once
    min_group: int = 25  # turns: fewer are not worth a commit of their own while others are decided
    claim_ttl_s: float = 300.0  # claims expire after this long; a living worker extends its own
    beat_s: float = 5.0  # between two heartbeats
    # After this long without a heartbeat, the others take the worker for dead, and take its work.
    dead_after_s: float = 30.0
    # It begins nothing more when this little time is left before that, or before a claim expires.
    margin_s: float = 6.0
    check_interval_s: float = (
        1.0  # between two checks for cancelled tasks and paused queues, when busy
    )
    # How long, and for how many turns, a workflow may keep its worker and a slot while others wait.
    share_s: float = 2.0
    share_turns: int = 1000
    turn_s: float = 0.25  # a turn yields after computing this long; most run out of fuel before
    owner_run: bool = True  # owners of workflows run awaited tasks themselves, without a row
    owner_run_limit_s: float = 1.0  # a task that lasts longer gets a row of its own
    crash_limit: int = 3  # an execution fails after it has lost this many workers by crashes
    patience_s: float = 60.0  # how long a runner waits for a database that has gone away
    alone_s: float = 10.0  # how long nothing else begins beside a task that has its last attempt
    suspect_retry_s: float = 1.0  # delay of other such tasks, which are put back meanwhile
    missing_task_grace_s: float = 600.0  # a task that has no handler for this long fails
    missing_task_retry_s: float = 5.0  # longest delay of a task that has no handler here
    newer_retry_s: float = 5.0  # delay of a workflow that needs a newer Rhythm
    asking: Asking = Asking()

    @property
    def heart(self) -> HeartSettings:
        """The settings of its heartbeats."""
        return HeartSettings(self.beat_s, self.dead_after_s, self.claim_ttl_s, self.margin_s)
