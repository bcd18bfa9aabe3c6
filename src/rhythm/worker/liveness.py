"""Living among other workers: what follows from the answers to heartbeats, and from none in time.

What the database says is not owned here any more is dropped before anything is begun on the
strength of a beat. After a call without an answer, everything is compared.
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
        # claims that the database had of this worker at the last beat, and it knew nothing of
        self._unknown: Mapping[str, int] = {}
        self._era = context.store.era

    def catch_up(self) -> None:
        """Takes in the answers to the heartbeats, and sends one where no other thread does."""
        if not self.heart.apart:
            self.heart.lapse()
        self._take_answers()
        if not self.heart.apart and self.heart.rest_s <= 0:
            self.heart.run_once()
            self._take_answers()
        if self.ownership.unsure or self.store.era != self._era:
            self.reconcile()

    def _take_answers(self) -> None:
        for answer in self.heart.answers():
            if answer is None:
                self._lapse()
            else:
                self._take(answer)

    def _lapse(self) -> None:
        """No beat got through in time: what runs here is stopped, and nothing more is begun."""
        if self.ownership.workflows or self.ownership.tasks:
            self.narrator.lapsed(self.heart.settings.trusted_s)
        self.ownership.lapse()

    def _take(self, answer: Answer) -> None:
        ownership, fences = self.ownership, self.ownership.fences()
        for id, fence in answer.claims.items():
            if fences.get(id) == fence and answer.fence(id) != fence:
                ownership.lose(id)
        for workflow in ownership.workflows.values():
            id = workflow.id
            if answer.fence(id) == workflow.fence and answer.wakes(id) > workflow.wakes:
                workflow.stale, workflow.wakes = True, answer.wakes(id)
            if answer.prolongs(id):
                workflow.deadline = ownership.deadline(answer.sent_at)
        ownership.alive_until = answer.sent_at + self.heart.settings.trusted_s
        self._give_back_unknown({id: fence for id, (fence, _) in answer.own.items()})

    def _give_back_unknown(self, claimed: Mapping[str, int]) -> None:
        """Gives back claims whose answer was lost: those that two beats in a row have shown.

        What ended since the beat was sent is not among them twice.
        """
        known = self.ownership.fences() | {end.id: end.fence for end in self.ownership.ends}
        unknown = {id: fence for id, fence in claimed.items() if known.get(id) != fence}
        again = {id: fence for id, fence in unknown.items() if self._unknown.get(id) == fence}
        self._unknown = unknown
        if again:
            self.store.claims.release(again)

    def reconcile(self) -> None:
        """Compares what is owned here with what the database says, after a call without an answer.

        What only the database knows of goes back, what only this worker knows of is lost, and the
        rest is loaded anew.
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
            workflow.stale = True
        ownership.unsure = False
        self.narrator.answered()
