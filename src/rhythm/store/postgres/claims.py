"""Claims on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.errors import StoreError
from rhythm.store.interfaces.claims import SYSTEM_QUEUE, Claim, Claimed, ClaimStore
from rhythm.store.interfaces.turns import Committed, Loaded, LoadedTask
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.claim_cursor import ClaimCursor, ClaimPosition, QueuePart
from rhythm.store.postgres.connection import Connection, Later
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import US, PostgresRows, claim_rows
from rhythm.store.postgres.session import autocommit
from rhythm.store.rows import columns, records, records_with
from rhythm.store.verdicts import answer_to_park


class PostgresClaims(PostgresRole, ClaimStore):
    """Claims. Under a backlog each begins where the last one from the same queues has ended."""

    def __init__(self, db: Connection, rows: PostgresRows, auditor: PostgresAuditor) -> None:
        super().__init__(db, rows, auditor)
        # A worker without a free slot claims from fewer queues: that says nothing of the others.
        self._cursors: dict[tuple[str, ...], ClaimCursor] = {}

    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> Claimed:
        wanted = tuple(dict.fromkeys(queues if SYSTEM_QUEUE in queues else (SYSTEM_QUEUE, *queues)))
        cursor, claimed = self._cursors.setdefault(wanted, ClaimCursor()), Claimed()
        values = dict(worker=worker, ttl_us=int(ttl_s * US), queues=wanted)
        if not cursor.checks_everything(self._seconds()):
            claimed = self._claim(cursor, cursor.parts(wanted), limit, values)
        if len(claimed) < limit:
            began = self._seconds()
            everything = [QueuePart(queue) for queue in wanted]
            rest = limit - len(claimed)
            try:
                claimed = claimed.and_those(self._claim(cursor, everything, rest, values))
            except StoreError:
                if not claimed:
                    raise
                return claimed  # these are committed; the next claim meets the error again
            cursor.note_check_of_everything(began, self._seconds())
        cursor.backlog = len(claimed) == limit
        return claimed

    def _claim(
        self,
        cursor: ClaimCursor,
        parts: Sequence[QueuePart],
        limit: int,
        values: Mapping[str, Any],
    ) -> Claimed:
        """Claims from these parts of queues, and notes how far it came."""
        asked = dict(values, limit=limit, **columns(parts, *QueuePart._fields))
        claims, workflows, tasks = self.db.transaction(lambda: self._claim_and_load(asked))
        found = records_with(Claim, claims.rows, "priority", "order_key")
        cursor.note_claimed(
            ClaimPosition(claim.queue, priority, order_key, claim.id)
            for claim, (priority, order_key) in found
        )
        return Claimed(
            [claim for claim, _ in found],
            records(Loaded, workflows.rows),
            records(LoadedTask, tasks.rows),
        )

    def _claim_and_load(self, values: Mapping[str, Any]) -> tuple[Later, Later, Later]:
        """Sends the claim, and after it what reads the rows, in one round trip.

        They must be later statements. A statement gets the newest version of a row that it locks,
        but all other rows as they were when it began. What was committed in between would be taken
        for seen (a wake of a free row is not even counted), and nobody would wake the workflow
        again.
        """
        return (
            self.db.do("claim", **values),
            self.db.do("load", ids=None),
            self.db.do("load_tasks"),
        )

    def _seconds(self) -> float:
        """Returns the time of a clock that only goes forward, or of the test's clock."""
        return self.db.clock() / US if self.db.clock else time.monotonic()

    @autocommit
    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        return dict(self.db.batch("extend", claim_rows(claims), ttl_us=int(ttl_s * US)))

    @autocommit
    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        self.rows.give_back(claim_rows(claims), int(delay_s * US))

    @autocommit
    def claimed_by(self, worker: str) -> dict[str, int]:
        return dict(self.db.all("claimed_by", worker=worker))

    @autocommit
    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        rows = self.db.batch("park", [dict(id=c.id, fence=c.fence, wakes=c.wakes) for c in claims])
        found = {id: (wakes, parked) for id, wakes, parked in rows}
        lost = (None, False)
        return [
            answer_to_park(claim.id, left, wakes)
            for claim in claims
            for wakes, left in [found.get(claim.id, lost)]
        ]

    @autocommit
    def drop(self, claims: Mapping[str, int]) -> None:
        self.db.batch("drop", claim_rows(claims))
