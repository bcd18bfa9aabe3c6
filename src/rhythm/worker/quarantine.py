"""Tasks that may kill a worker, and tasks that have no handler here.

A task whose worker has died is a suspect. It begins only after the turns that were claimed with it
are committed, so that they are not blamed for it. Its last attempt runs beside no other suspect. A
task without a handler here is put back for other workers, and fails in the end.
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

FIRST_MISS_S = 0.2  # shortest delay of a task without a handler: another worker may be quicker
# Tasks without a handler; if there are more, those that other workers have taken are forgotten.
MAX_REMEMBERED = 1000


class ClaimedTask(Record):
    """A claimed task with its row, and until when the claim can be relied on."""

    claim: Claim
    task: LoadedTask
    deadline: float


class Suspects:
    """Tasks whose workers have died."""

    def __init__(self, context: Context, ownership: Ownership) -> None:
        self.settings, self.now, self.ownership = context.settings, context.now, ownership
        # Tasks that wait until the turns that were claimed with them are committed.
        self.waiting: list[ClaimedTask] = []
        # The task that has its last attempt here, and until when nothing else begins beside it.
        self._last_chance, self._until = "", 0.0

    @property
    def keeps_still(self) -> bool:
        """Whether a task has its last attempt here, and nothing else may begin for a while."""
        return self._last_chance in self.ownership.tasks and self.now() < self._until

    def put_back(self, claims: Mapping[str, Claim]) -> dict[str, int]:
        """Returns which claims to give back now, with their fences.

        These are tasks that fail after one more crash. Each may kill this worker, and the others
        with it. So one of them at most begins here, for its last attempt.
        """
        dangerous = max(1, self.settings.crash_limit - 1)
        suspects = [id for id, claim in claims.items() if claim.crashes >= dangerous]
        first = None if self.keeps_still else next(iter(suspects), None)
        if first:
            self._last_chance, self._until = first, self.now() + self.settings.alone_s
        return {id: claims[id].fence for id in suspects if id != first}

    def wait(self, claimed: ClaimedTask) -> None:
        """Keeps a task until the turns that were claimed with it are committed."""
        self.ownership.tasks[claimed.claim.id] = claimed.claim
        self.waiting.append(claimed)

    def due(self) -> list[ClaimedTask]:
        """Returns the tasks that may begin now, without those that were lost in the meantime."""
        waiting, self.waiting = self.waiting, []
        owned = self.ownership.tasks
        return [each for each in waiting if owned.get(each.claim.id) is each.claim]


class MissingHandlers:
    """Tasks that have no handler on this worker."""

    def __init__(self, context: Context, why: Callable[[str], str]) -> None:
        self.worker, self.narrator = context.worker, context.narrator
        self.settings, self.now, self.why = context.settings, context.now, why
        self._seen: dict[str, tuple[float, float]] = {}  # when each was first and last found
        self._names: set[str] = set()  # task names that were reported

    def end(self, claim: Claim, task: LoadedTask) -> TaskEnd:
        """Returns the end that puts the task back for other workers; at last, one that fails it.

        The delay is short at first, and grows.
        """
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
        """Returns for how many seconds the task has had no handler.

        If this worker has not seen it for a while, another one had it, and the time counts from
        now.
        """
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
