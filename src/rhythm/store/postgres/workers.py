"""Workers, their queues and their tasks on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rhythm.store.access import Actor
from rhythm.store.acts import queue_acts
from rhythm.store.interfaces.workers import (
    Beat,
    Declaration,
    OwnClaims,
    Queue,
    SeenWorker,
    WorkerStore,
    refuse_system,
)
from rhythm.store.postgres.doctor import ask
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import US, claim_rows
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.rows import fields, records


class PostgresWorkers(PostgresRole, WorkerStore):
    @autocommit
    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        """Extends the claims, and then sends the beat.

        The beat comes last, so it was sent if this call succeeds. The claims are read with it,
        after they were extended. A claim that has its fence and was not extended was locked by
        another transaction.
        """
        kept = {id for (id,) in self.db.batch("keep", claim_rows(claims), ttl_us=int(ttl_s * US))}
        own = self.db.all(
            "beat",
            **fields(beat)
            | {"queues": json.dumps(beat.queues), "dead_after_us": int(beat.dead_after_s * US)},
        )
        return OwnClaims(
            own, (id for id, fence, _ in own if id not in kept and claims.get(id) == fence)
        )

    @autocommit
    def leave(self, *workers: str) -> None:
        self.db.do("leave", workers=list(workers))

    def seen(self) -> list[SeenWorker]:
        return records(SeenWorker, self.db.ask("workers"))

    @autocommit
    def declare(self, declarations: Sequence[Declaration]) -> None:
        self.db.batch(
            "declare",
            [
                fields(declaration)
                for declaration in {each.name: each for each in declarations}.values()
            ],
        )

    def declared(self) -> list[Declaration]:
        return records(Declaration, self.db.ask("declared"))

    @transaction
    def queues(self) -> list[Queue]:
        self.db.freeze()
        return self.queues_at(self.db.now())

    def queues_at(self, now: int) -> list[Queue]:
        """Returns all queues at this time, inside a frozen transaction."""
        return records(Queue, ask(self.db, "queues", now=now))

    def paused_queues(self) -> frozenset[str]:
        return frozenset(name for (name,) in self.db.ask("paused_queues"))

    @transaction
    def pause_queue(
        self, name: str, paused: bool, actor: Actor | None = None, reason: str = ""
    ) -> bool:
        refuse_system(name, paused)
        by = actor.name if actor else ""
        changed = (
            self.db.all("pause_queue", name=name, by=by, reason=reason)
            if paused
            else self.db.all("resume_queue", name=name)
        )
        self.db.free([] if paused else [name])
        self.auditor.record(actor, queue_acts(name, paused, reason) if changed else ())
        return bool(changed)

    @autocommit
    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        return bool(self.db.all("lease", name=name, holder=holder, ttl_us=int(ttl_s * US)))
