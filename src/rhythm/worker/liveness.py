"""Acts on the answers to heartbeats, and on their absence.

Claims that the database says are not this worker's any more are dropped before a heartbeat allows
anything new to begin. After a call without an answer, all claims are compared with the database.
"""

from __future__ import annotations

from collections.abc import Mapping

from rhythm.worker.context import Context
from rhythm.worker.heartbeat import Answer, Heartbeat
from rhythm.worker.ownership import Ownership


class Liveness:
    """Keeps what a worker believes to own in step with the database."""

    def __init__(self, context: Context, heart: Heartbeat, ownership: Ownership) -> None:
        self.store, self.narrator = context.store, context.narrator
        self.heart, self.ownership = heart, ownership
        # Claims of this worker at the last heartbeat, by the database, that it knew nothing of.
        self._unknown: Mapping[str, int] = {}
        self._era = context.store.era

    def catch_up(self) -> None:
        """Reads the answers to the heartbeats; sends one if it is due and no other thread does.

        If a call had no answer, or a connection to the database was lost, it compares all claims
        with the database.
        """
        if not self.heart.apart:
            self.heart.lapse()
        self._take_answers()
        if not self.heart.apart and self.heart.rest_s <= 0:
            self.heart.run_once()
            self._take_answers()
        if self.doubts:
            self.reconcile()

    @property
    def doubts(self) -> bool:
        """Whether what is owned must be compared with the database."""
        return self.ownership.unsure or self.store.era != self._era

    def _take_answers(self) -> None:
        for answer in self.heart.answers():
            if answer is None:
                self._lapse()
            else:
                self._take(answer)

    def _lapse(self) -> None:
        """Stops what runs here, since no heartbeat got through in time; nothing more begins."""
        if self.ownership.workflows or self.ownership.tasks:
            self.narrator.lapsed(self.heart.settings.trusted_s)
        self.ownership.lapse()

    def _take(self, answer: Answer) -> None:
        """Acts on one answer: drops lost claims, notes wakes, and moves deadlines."""
        ownership, fences = self.ownership, self.ownership.fences()
        for id, fence in answer.claims.items():
            if fences.get(id) == fence and answer.fence(id) != fence and not self._commits(id):
                ownership.lose(id)
        for workflow in ownership.workflows.values():
            id = workflow.id
            # Also of one whose commit is under way: if it was lost, nothing may begin for it.
            if answer.fence(id) != workflow.fence:
                continue
            if answer.wakes(id) > workflow.wakes:
                workflow.stale, workflow.wakes = True, answer.wakes(id)
            if answer.prolongs(id):
                workflow.deadline = ownership.deadline(answer.sent_at)
        ownership.alive_until = answer.sent_at + self.heart.settings.trusted_s
        self._give_back_unknown({id: fence for id, (fence, _) in answer.own.items()})

    def _commits(self, id: str) -> bool:
        """Returns whether a commit of the workflow is under way, which may end or park it: the
        answer to that says what is still owned."""
        workflow = self.ownership.workflows.get(id)
        return workflow is not None and workflow.planned is not None

    def _give_back_unknown(self, claimed: Mapping[str, int]) -> None:
        """Gives back claims that this worker knows nothing of: the answer to the claim was lost.

        Only those that two heartbeats in a row have shown: what has just ended here is shown once
        at most.
        """
        ends = (*self.ownership.ends, *self.ownership.sending)
        known = self.ownership.fences() | {end.id: end.fence for end in ends}
        unknown = {id: fence for id, fence in claimed.items() if known.get(id) != fence}
        again = {id: fence for id, fence in unknown.items() if self._unknown.get(id) == fence}
        self._unknown = unknown
        if again:
            self.store.claims.release(again)

    def reconcile(self) -> None:
        """Compares what is owned here with what the database says, after a call without an answer.

        Claims that only the database knows are given back, claims that only this worker knows are
        lost, and the other workflows are loaded again.
        """
        self._era = self.store.era
        ownership = self.ownership
        claimed, known = self.store.claims.claimed_by(ownership.worker), ownership.fences()
        for id, fence in known.items():
            if claimed.get(id) != fence:
                ownership.lose(id)
        ending = {end.id for end in ownership.ends}
        unknown = {id: fence for id, fence in claimed.items() if known.get(id) != fence}
        self.store.claims.release({id: fence for id, fence in unknown.items() if id not in ending})
        for workflow in ownership.workflows.values():
            if workflow.planned is not None:
                ownership.load_anew(workflow)
            workflow.stale = True
        ownership.unsure = False
        self.narrator.answered()
