"""Time-limited ownership of ready rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from rhythm.record import Record
from rhythm.store.interfaces.turns import Committed

SYSTEM_QUEUE = "system"  # resumes go here; every worker serves it


class Claim(Record):
    """Time-limited ownership of a ready row. `wakes` is what its owner has seen before it
    loads."""

    id: str
    kind: int
    queue: str
    fence: int
    wakes: int
    attempt: int
    crashes: int


class ClaimStore(ABC):
    """Time-limited ownership of ready rows."""

    @abstractmethod
    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> list[Claim]:
        """Takes up to `limit` free rows of these queues, in their order; nothing of those that are
        paused.

        Resumes come first, unless their queue is named in another place.
        """

    @abstractmethod
    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        """Prolongs claims (id -> fence); the `wakes` of those that are still held."""

    @abstractmethod
    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        """Gives claims back, to be taken again at once or after a while. A task gets its attempt
        back; it was not begun."""

    @abstractmethod
    def claimed_by(self, worker: str) -> dict[str, int]:
        """The claims of a worker as the database knows them: id -> fence."""

    @abstractmethod
    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        """Parks workflows for which there was nothing to do."""

    @abstractmethod
    def drop(self, claims: Mapping[str, int]) -> None:
        """Deletes ready rows of workflows that have ended or are gone."""
