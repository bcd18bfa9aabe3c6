"""Where the claims of one store from one set of queues begin, from what earlier ones claimed. Pure.

A row that is claimed leaves a dead entry in the index of free rows. It is there until a vacuum, and
no vacuum can remove it while an older transaction is open. Whoever begins at the beginning of the
index steps over all of them. So while there is a backlog, a claim begins where the last one ended.
That passes over rows which became free out of order: released or rescued ones, retries, and those
of a transaction that took its time before others and committed after them. So everything is checked
now and then, and when the backlog comes to an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rhythm.record import Record

HIGHEST, LOWEST = 2**31 - 1, -(2**31)  # priorities
MAX_PRIORITIES = 8  # of a queue whose positions are kept; others are claimed from their beginning
# Checks of everything may take a fifth of the time, unless one takes longer than 2.5 s.
REST_SHARE, MIN_REST_S, MAX_REST_S = 4.0, 0.01, 10.0


class ClaimPosition(Record):
    """The position of a row in the order of claims."""

    queue: str
    priority: int
    order_key: int
    id: str


class QueuePart(Record):
    """A part of a queue: all rows of these priorities, or those of one priority from a position
    on."""

    queue: str
    highest: int = HIGHEST
    lowest: int = LOWEST
    from_order_key: int | None = None
    from_id: str | None = None


class ClaimCursor:
    """Where the next claim of a store from these queues begins."""

    def __init__(self) -> None:
        # By queue and priority, what was claimed last. Replaced, never changed: threads may share
        # a store.
        self._positions: Mapping[str, Mapping[int, ClaimPosition]] = {}
        self._check_at = float("-inf")  # when everything is to be checked again
        self.backlog = False  # the last claim took as much as it could

    def checks_everything(self, now: float) -> bool:
        """Returns whether the next claim is to begin at the beginning."""
        return not self.backlog or now >= self._check_at

    def parts(self, queues: Sequence[str]) -> list[QueuePart]:
        """Returns what to claim from, in the order of claims, when not everything is checked."""
        return [part for queue in queues for part in _parts(queue, self._positions.get(queue, {}))]

    def note_check_of_everything(self, began: float, ended: float) -> None:
        """Notes that everything was checked. The longer it took, the later it is done again."""
        rest = REST_SHARE * (ended - began)
        self._check_at = ended + min(max(rest, MIN_REST_S), MAX_REST_S)

    def note_claimed(self, positions: Iterable[ClaimPosition]) -> None:
        """Notes what was claimed, in the order of claims."""
        last = {(at.queue, at.priority): at for at in positions}
        changed: dict[str, dict[int, ClaimPosition]] = {}
        for (queue, priority), position in last.items():
            known = changed.setdefault(queue, dict(self._positions.get(queue, {})))
            known.pop(priority, None)
            known[priority] = position
        recent = {queue: _last(known) for queue, known in changed.items()}
        self._positions = {**self._positions, **recent}


def _last(known: dict[int, ClaimPosition]) -> dict[int, ClaimPosition]:
    """Returns the positions that were noted last, as many as are kept."""
    return dict(list(known.items())[-MAX_PRIORITIES:])


def _parts(queue: str, known: Mapping[int, ClaimPosition]) -> Iterator[QueuePart]:
    """Returns the parts of a queue, highest priority first: those from a known position on,
    and all of the priorities in between."""
    highest = HIGHEST
    for priority in sorted(known, reverse=True):
        if priority < highest:
            yield QueuePart(queue, highest, priority + 1)
        yield QueuePart(queue, priority, priority, known[priority].order_key, known[priority].id)
        highest = priority - 1
    if highest >= LOWEST:
        yield QueuePart(queue, highest)
