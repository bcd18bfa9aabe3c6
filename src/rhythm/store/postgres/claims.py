"""Claims on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.store.interfaces.claims import SYSTEM_QUEUE, Claim, Claimed, ClaimStore
from rhythm.store.interfaces.turns import Committed, Loaded, LoadedTask
from rhythm.store.postgres.connection import Later
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import US, claim_rows
from rhythm.store.postgres.session import autocommit
from rhythm.store.rows import records
from rhythm.store.verdicts import answer_to_park


class PostgresClaims(PostgresRole, ClaimStore):
    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> Claimed:
        wanted = list(dict.fromkeys(queues if SYSTEM_QUEUE in queues else (SYSTEM_QUEUE, *queues)))
        values = dict(worker=worker, ttl_us=int(ttl_s * US), queues=wanted, limit=limit)
        claims, workflows, tasks = self.db.transaction(lambda: self._claim_and_load(values))
        return Claimed(
            records(Claim, claims.rows),
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
