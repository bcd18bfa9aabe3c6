"""What people do to executions that wait for them."""

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
    """What people do to executions that wait for them."""

    @abstractmethod
    def decide(self, id: str, decision: Decision) -> Verdict | None:
        """Counts a decision, and ends the approval with it if it suffices. None: there is no such
        approval."""

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
        """Approvals, newest first: "open", by how they ended ("cancelled" too), or all; of an
        execution and everything below it.

        `before`, `names` and `most_bytes`: as `reading.find` has them.
        """

    @abstractmethod
    def approval(self, id: str) -> StoredApproval | None: ...

    @abstractmethod
    def decisions(self, ids: Sequence[str]) -> list[StoredDecision]:
        """What was decided about these approvals, in order."""

    @abstractmethod
    def pause(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        actor: Actor | None = None,
        timeout_s: float | None = None,
        then: AfterPause = RESUME,
    ) -> Mapping[str, bool]:
        """Holds workflows where they are. False: it has ended; one that does not exist is left
        out."""

    @abstractmethod
    def resume(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        data: str = "null",
        actor: Actor | None = None,
    ) -> Mapping[str, bool]:
        """Lets workflows go on that somebody has paused. False: nobody has; one that does not
        exist is left out.

        `Undecidable` if there is data while somebody is asked to decide: they would decide about
        something else than they were shown.
        """

    @abstractmethod
    def resumes(
        self, id: str, after: int = 0, limit: int | None = None, most_bytes: int | None = None
    ) -> Found[ResumeRequest]:
        """Whatever let an execution go on, oldest first, beginning after this number."""

    @abstractmethod
    def last_resumes(self, id: str) -> list[ResumeRequest]:
        """The last that let an execution go on, and the last one that gave it data and was no
        event, oldest first."""
