"""Claiming what is ready: workflows are owned from then on, tasks begin."""

from __future__ import annotations

from rhythm.store.interfaces.claims import SYSTEM_QUEUE, Claim
from rhythm.store.lifecycle import TASK
from rhythm.worker.context import Context
from rhythm.worker.dispatch import Dispatcher
from rhythm.worker.ownership import Ownership
from rhythm.worker.quarantine import ClaimedTask, Suspects
from rhythm.worker.slots import Slots


class Claimer:
    """Claims for one worker, as much as it has slots for."""

    def __init__(
        self,
        context: Context,
        ownership: Ownership,
        slots: Slots,
        suspects: Suspects,
        dispatcher: Dispatcher,
    ) -> None:
        self.store, self.settings, self.now = context.store, context.settings, context.now
        self.ownership, self.slots, self.suspects = ownership, slots, suspects
        self.dispatcher = dispatcher
        self.asked_at: float | None = None  # when it last asked for work, and was answered
        self.full = False  # there was more work than it could take
        self._crowded = False  # all that it could take was workflows that go on

    def claim(self) -> bool:
        """Claims what there is room for, and whether there was anything.

        Without a free slot turns are taken all the same: a cancel, a timer or a signal may be what
        frees one.
        """
        room = min(self.settings.batch, self.slots.for_claims())
        if self.slots.draining or not self.ownership.may_begin():
            return False
        deadline = self.ownership.deadline(self.now())
        queues = self._queues() if room > 0 else ()
        limit = room if room > 0 else self.settings.batch
        claims = self.store.claims.claim(
            self.ownership.worker, queues, limit, self.settings.claim_ttl_s
        )
        self.asked_at, self.full = self.now(), len(claims) == limit
        going_on = all(claim.queue == SYSTEM_QUEUE for claim in claims)
        self._crowded = bool(queues) and self.full and going_on
        for claim in claims:
            self.ownership.lose_older(claim.id)
            if claim.kind != TASK:
                self.ownership.take(claim, deadline)
        if tasks := {claim.id: claim for claim in claims if claim.kind == TASK}:
            self._take_tasks(tasks, deadline)
        return bool(claims)

    def _queues(self) -> tuple[str, ...]:
        """Where to look, in this order.

        Workflows that go on come first, but not twice in a row where they leave no room.
        """
        own = self.settings.queues
        return (*own, SYSTEM_QUEUE) if self._crowded else own

    def _take_tasks(self, claims: dict[str, Claim], deadline: float) -> None:
        rows = {task.id: task for task in self.store.turns.load_tasks(list(claims))}
        if gone := {id: claim.fence for id, claim in claims.items() if id not in rows}:
            self.store.claims.drop(gone)
        later = self.suspects.put_back({id: claims[id] for id in rows})
        if later:
            self.store.claims.release(later, self.settings.suspect_retry_s)
        for id, task in rows.items():
            claimed = ClaimedTask(claims[id], task, deadline)
            if id in later:
                continue
            if claims[id].crashes:
                self.suspects.wait(claimed)
            else:
                self.dispatcher.begin_claimed(claimed)

    def begin_suspects(self) -> None:
        """Begins what may kill this worker: the turns that came with it are committed by now."""
        for claimed in self.suspects.due():
            self.dispatcher.begin_claimed(claimed)
