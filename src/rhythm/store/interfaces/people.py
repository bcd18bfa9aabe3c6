"""What people do to executions: decide approvals, pause, resume."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from rhythm.store.access import Actor
from rhythm.store.approvals import (
    RESUME,
    AfterPause,
    Decision,
    ResumeRequest,
    StoredApproval,
    StoredDecision,
    Verdict,
)
from rhythm.store.reading import Found


class PeopleStore(ABC):
    """Decides approvals, pauses and resumes executions for people."""

    def decide(self, id: str, decision: Decision) -> Verdict | None:
        """Counts a decision, and ends the approval if it suffices. None: there is no such
        approval."""
        return self.decide_all([(id, decision)], patient=True)[0]

    @abstractmethod
    def decide_all(
        self, wanted: Sequence[tuple[str, Decision]], *, patient: bool = False
    ) -> list[Verdict | None]:
        """Counts decisions, given with the ids of their approvals, in one transaction. Returns the
        verdict on each, in order.

        No two may be about approvals of one family (`family_of`): each is judged as if it were
        alone. Those that are refused leave no trace, and do not keep the others from being counted.
        Raises `NotTogether` if it would have to wait for long for what others hold, unless it is
        `patient`: nothing was done.
        """

    @abstractmethod
    def approvals(
        self,
        role: str | None,
        status: str | None,
        execution_id: str | None,
        before: tuple[int, str] | None,
        limit: int,
        names: Sequence[str] | None = None,
        most_bytes: int | None = None,
    ) -> Found[StoredApproval]:
        """Returns approvals, newest first.

        `status`: "open", how they ended ("cancelled" too), or None for all. `execution_id`: only
        those of this execution and everything below it. `before`, `names` and `most_bytes`: see
        `ReadingStore.find`.
        """

    @abstractmethod
    def approval(self, id: str) -> StoredApproval | None:
        """Returns an approval. None: there is no such approval."""

    @abstractmethod
    def decisions(self, ids: Sequence[str]) -> list[StoredDecision]:
        """Returns the decisions about these approvals, in order."""

    @abstractmethod
    def pause(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        actor: Actor | None = None,
        timeout_s: float | None = None,
        then: AfterPause = RESUME,
        metadata: str | None = None,
    ) -> Mapping[str, bool]:
        """Pauses workflows where they are. False: it has ended. Ids that do not exist are left out.

        `metadata`: JSON for people, which is kept until the pause ends, and in the audit.
        """

    @abstractmethod
    def resume(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        data: str = "null",
        actor: Actor | None = None,
        metadata: str | None = None,
    ) -> Mapping[str, bool]:
        """Resumes paused workflows. False: it is not paused. Ids that do not exist are left out.

        The workflow sees `data`; `metadata` is kept with the request, for people.
        Raises `Undecidable` if data is given while an approval is open: people would decide about
        something else than they were shown.
        """

    @abstractmethod
    def resumes(
        self, id: str, after: int = 0, limit: int | None = None, most_bytes: int | None = None
    ) -> Found[ResumeRequest]:
        """Returns the resumes of an execution, oldest first, beginning after number `after`."""

    @abstractmethod
    def last_resumes(self, id: str) -> list[ResumeRequest]:
        """Returns the last resume of an execution, and the last one that gave it data and was not
        an event, oldest first."""
