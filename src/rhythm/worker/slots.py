"""How much more a worker may begin: its slots for handlers, its queues, whether it drains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rhythm.engine.planning import Capacity
from rhythm.worker.attempts import Attempts
from rhythm.worker.context import Context
from rhythm.worker.handlers import Task
from rhythm.worker.ownership import Ownership
from rhythm.worker.quarantine import Suspects


class Slots:
    """The slots of one worker: each is room for one running handler."""

    def __init__(
        self,
        context: Context,
        tasks: Mapping[str, Task[..., Any]],
        attempts: Attempts,
        ownership: Ownership,
        suspects: Suspects,
    ) -> None:
        self.settings, self.now, self.tasks = context.settings, context.now, tasks
        self.attempts, self.ownership, self.suspects = attempts, ownership, suspects
        self.draining = False  # nothing more is claimed
        self.paused: frozenset[str] = frozenset()  # queues that are paused

    @property
    def free(self) -> int:
        """Slots without a handler."""
        return self.settings.concurrency - len(self.attempts.running) - len(self.suspects.waiting)

    def for_claims(self) -> int:
        """Returns for how many claims there are slots now.

        A workflow between two of its own tasks keeps a slot for the next one, which would otherwise
        go to the queue. But it keeps it for `share_s` at most, so that others get a turn.
        """
        if self.suspects.keeps_still:
            return 0
        recent = self.now() - self.settings.share_s
        workflows = self.ownership.workflows.values()
        return self.free - sum(not each.running and each.since >= recent for each in workflows)

    def capacity(self) -> Capacity:
        """Returns which tasks may begin here without a row of their own, and how many.

        A transactional task needs its row: the claim on it fences the transaction.
        """
        own = self.settings.owner_run and not self.draining and not self.suspects.keeps_still
        workflows = self.ownership.workflows.values()
        # Tasks of turns whose commit is under way begin when it is answered.
        reserved = sum(each.planned.slots for each in workflows if each.planned is not None)
        return Capacity(
            self.free - reserved if own else 0,
            frozenset(name for name, task in self.tasks.items() if not task.transactional),
            frozenset(self.settings.queues) - self.paused,
        )
