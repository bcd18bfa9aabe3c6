"""Claims what is ready: the worker owns the workflows from then on, and begins the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rhythm.store.interfaces.claims import SYSTEM_QUEUE, Claim, Claimed
from rhythm.store.interfaces.turns import LoadedTask
from rhythm.store.lifecycle import TASK
from rhythm.worker.context import Context
from rhythm.worker.dispatch import Dispatcher
from rhythm.worker.ownership import Ownership
from rhythm.worker.quarantine import ClaimedTask, Suspects
from rhythm.worker.queue_hints import QueueHints
from rhythm.worker.slots import Slots


class JustClaimed(NamedTuple):
    """What was claimed in this round, with its rows, and when the database was asked for it."""

    claims: Claimed
    began: float


NOTHING = JustClaimed(Claimed(), 0.0)


class Claimer:
    """Claims for one worker, as much as it has slots for."""

    def __init__(
        self,
        context: Context,
        ownership: Ownership,
        slots: Slots,
        suspects: Suspects,
        dispatcher: Dispatcher,
        hints: QueueHints | None = None,
    ) -> None:
        """Without `hints`, the database is asked in every round."""
        self.store, self.settings, self.now = context.store, context.settings, context.now
        self.ownership, self.slots, self.suspects = ownership, slots, suspects
        self.dispatcher, self.hints = dispatcher, hints
        self.asked_at: float | None = None  # when the database last answered a claim
        self.full = False  # the last claim took as much as it could, so there may be more
        # The last claim was full, and had nothing but workflows that go on.
        self._crowded = False

    def claim(self) -> JustClaimed:
        """Claims as much as there are slots for; returns what it claimed.

        Without a free slot it still claims workflows that go on: a cancel, a timer or a signal may
        be what frees a slot.
        """
        room = min(self.settings.batch, self.slots.for_claims())
        if self.slots.draining or not self.ownership.may_begin():
            return NOTHING
        queues = self._queues() if room > 0 else ()
        if self.hints is not None and not self.hints.take((SYSTEM_QUEUE, *queues)):
            return NOTHING
        began = self.now()
        deadline = self.ownership.deadline(began)
        limit = room if room > 0 else self.settings.batch
        claims = self.store.claims.claim(
            self.ownership.worker, queues, limit, self.settings.claim_ttl_s
        )
        self.asked_at, self.full = self.now(), len(claims) == limit
        if self.full and self.hints is not None:
            self.hints.heard((SYSTEM_QUEUE, *queues))
        going_on = all(claim.queue == SYSTEM_QUEUE for claim in claims)
        self._crowded = bool(queues) and self.full and going_on
        for claim in claims:
            self.ownership.lose_older(claim.id)
            if claim.kind != TASK:
                self.ownership.take(claim, deadline)
        if tasks := {claim.id: claim for claim in claims if claim.kind == TASK}:
            self._take_tasks(tasks, claims.tasks, deadline)
        return JustClaimed(claims, began)

    def _queues(self) -> tuple[str, ...]:
        """Returns the queues to claim from, in this order.

        Workflows that go on come first. But if they filled the whole last claim, they come last in
        the next one.
        """
        own = self.settings.queues
        return (*own, SYSTEM_QUEUE) if self._crowded else own

    def _take_tasks(
        self, claims: dict[str, Claim], rows: Mapping[str, LoadedTask], deadline: float
    ) -> None:
        """Begins claimed tasks, except suspects, which wait or are put back."""
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
        """Begins the tasks that may kill this worker.

        The turns that were claimed with them are committed by now.
        """
        for claimed in self.suspects.due():
            self.dispatcher.begin_claimed(claimed)
