"""Claims on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import attrgetter

from rhythm.store.interfaces.claims import SYSTEM_QUEUE, Claim, Claimed, ClaimStore
from rhythm.store.interfaces.turns import Committed, Loaded, LoadedTask
from rhythm.store.lifecycle import TASK
from rhythm.store.rows import records
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import US
from rhythm.store.verdicts import answer_to_park


class SqliteClaims(SqliteRole, ClaimStore):
    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> Claimed:
        wanted = list(dict.fromkeys(queues if SYSTEM_QUEUE in queues else (SYSTEM_QUEUE, *queues)))
        if not self.db.one("any_free", json.dumps(wanted)):
            return Claimed()
        with self.db.transaction():
            ids: list[str] = []
            for (queue,) in self.db.all("open_queues", json.dumps(wanted)):
                if len(ids) < limit:
                    ids += [id for (id,) in self.db.all("free_rows", queue, limit - len(ids))]
            if not ids:
                return Claimed()
            highest = self.db.one("fences_up", len(ids))[0]
            taken = {
                "worker": worker,
                "expires_at": self.db.clock() + int(ttl_s * US),
                "fence": highest - len(ids) + 1,
                "ids": json.dumps(ids),
            }
            claims = records(Claim, self.db.all("claim_rows", taken))
            return self._with_rows(sorted(claims, key=attrgetter("fence")))

    def _with_rows(self, claims: Sequence[Claim]) -> Claimed:
        """Returns claims with the rows of what they are on, inside their transaction."""
        tasks = [claim.id for claim in claims if claim.kind == TASK]
        workflows = [claim.id for claim in claims if claim.kind != TASK]
        return Claimed(
            claims,
            records(Loaded, self.db.all("load", json.dumps(workflows))) if workflows else (),
            records(LoadedTask, self.db.all("load_tasks", json.dumps(tasks))) if tasks else (),
        )

    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        with self.db.transaction():
            return self.rows.extend(claims, ttl_s)

    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        with self.db.transaction():
            for id, fence in claims.items():
                self.db.all("release", {"id": id, "fence": fence, "delay_us": int(delay_s * US)})

    def claimed_by(self, worker: str) -> dict[str, int]:
        return dict(self.db.all("claimed_by", worker))

    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        with self.db.transaction():
            return [self._park(claim) for claim in claims]

    def _park(self, claim: Claim) -> Committed:
        left = bool(self.db.count("delete_parked", claim.id, claim.fence, claim.wakes))
        fence, wakes = (not left and self.db.one("ready_of", claim.id)) or (None, None)
        return answer_to_park(claim.id, left, wakes if fence == claim.fence else None)

    def drop(self, claims: Mapping[str, int]) -> None:
        with self.db.transaction():
            for id, fence in claims.items():
                self.db.all("delete_claimed", id, fence)
