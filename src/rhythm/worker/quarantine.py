"""What may kill a worker, and what no worker here can run.

A task that was there each time a worker died is a suspect. It begins only after the turns that came
with it are committed, so that those are not blamed for its deeds, and has its last chance beside no
other suspect. A task without a handler here is put back for others, and fails in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rhythm.engine.payload import dump_trusted
from rhythm.engine.rows import task_error
from rhythm.record import Record
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.turns import LoadedTask, TaskEnd
from rhythm.store.lifecycle import FAILED
from rhythm.worker.context import Context
from rhythm.worker.ownership import Ownership

FIRST_MISS_S = 0.2  # before a task without a handler is tried again: another may be quicker
MAX_REMEMBERED = 1000  # tasks without a handler, before those are forgotten that others have taken


class ClaimedTask(Record):
    """A task that was claimed, with its row, and how long the claim may be relied on."""

    claim: Claim
    task: LoadedTask
    deadline: float


class Suspects:
    """Tasks that were there when workers died."""

    def __init__(self, context: Context, ownership: Ownership) -> None:
        self.settings, self.now, self.ownership = context.settings, context.now, ownership
        self.waiting: list[ClaimedTask] = []  # until the turns that came with them are committed
        self._last_chance, self._until = "", 0.0  # the task that has it here, and for how long

    @property
    def keeps_still(self) -> bool:
        """Whether a task has its last chance here, and nothing else is to begin for a while."""
        return self._last_chance in self.ownership.tasks and self.now() < self._until

    def put_back(self, claims: Mapping[str, Claim]) -> dict[str, int]:
        """Which of these are not to begin now, with their fences; one of the others has its last
        chance.

        Each of those may kill this worker, and would take the others with it.
        """
        dangerous = max(1, self.settings.crash_limit - 1)
        suspects = [id for id, claim in claims.items() if claim.crashes >= dangerous]
        first = None if self.keeps_still else next(iter(suspects), None)
        if first:
            self._last_chance, self._until = first, self.now() + self.settings.alone_s
        return {id: claims[id].fence for id in suspects if id != first}

    def wait(self, claimed: ClaimedTask) -> None:
        """It begins when the turns that came with it are committed."""
        self.ownership.tasks[claimed.claim.id] = claimed.claim
        self.waiting.append(claimed)

    def due(self) -> list[ClaimedTask]:
        """Those that may begin now; what was lost meanwhile is not among them."""
        waiting, self.waiting = self.waiting, []
        owned = self.ownership.tasks
        return [each for each in waiting if owned.get(each.claim.id) is each.claim]


class MissingHandlers:
    """Tasks whose handlers are not here."""

    def __init__(self, context: Context, why: Callable[[str], str]) -> None:
        self.worker, self.narrator = context.worker, context.narrator
        self.settings, self.now, self.why = context.settings, context.now, why
        self._seen: dict[str, tuple[float, float]] = {}  # when each was first and last found
        self._names: set[str] = set()  # those that people have been told of

    def end(self, claim: Claim, task: LoadedTask) -> TaskEnd:
        """Puts it back: others may have it. First for a moment, then for longer; at last it
        fails."""
        settings, missed_s = self.settings, self._missed_s(task.id)
        if missed_s < settings.missing_task_grace_s:
            self._report(task)
            retry_s = min(max(missed_s / 4, FIRST_MISS_S), settings.missing_task_retry_s)
            return TaskEnd(
                claim.id, claim.fence, FAILED, "null", retry_s, counts=False, worker=self.worker
            )
        del self._seen[task.id]
        why = self.why(task.name)
        self.narrator.missing_failed(task, why)
        error = dump_trusted(task_error(task.name, why))
        return TaskEnd(claim.id, claim.fence, FAILED, error, worker=self.worker)

    def _missed_s(self, id: str) -> float:
        """How long it has been without a handler. If it was not seen for a while, others had it."""
        settings = self.settings
        gap_s = max(settings.missing_task_grace_s / 2, 12 * settings.missing_task_retry_s)
        now = self.now()
        if len(self._seen) > MAX_REMEMBERED:
            self._seen = {id: seen for id, seen in self._seen.items() if now - seen[1] <= gap_s}
        first, last = self._seen.get(id, (now, now))
        first = first if now - last <= gap_s else now
        self._seen[id] = first, now
        return now - first

    def _report(self, task: LoadedTask) -> None:
        if task.name not in self._names and len(self._names) < MAX_REMEMBERED:
            self._names.add(task.name)
            self.narrator.handler_missing(task, self.settings.missing_task_grace_s)
