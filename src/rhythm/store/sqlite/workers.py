"""Workers, queues and declared tasks on SQLite."""

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
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.doctor import queue_rows, snapshot
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL, US, us


class SqliteWorkers(SqliteRole, WorkerStore):
    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        with self.db.transaction():
            stored = {"queues": json.dumps(beat.queues), "dead_after_us": us(beat.dead_after_s)}
            self.db.all("beat", fields(beat) | stored)
            self.rows.extend(claims, ttl_s)
            return OwnClaims(self.db.all("claimed_now", beat.worker))

    def leave(self, *workers: str) -> None:
        with self.db.transaction():
            for worker in workers:
                self.db.all("expire_claims", worker)
                self.db.all("leave", worker)

    def seen(self) -> list[SeenWorker]:
        return records(SeenWorker, self.db.read(SQL["workers"], (self.db.clock(),)))

    def declare(self, declarations: Sequence[Declaration]) -> None:
        known = set(self.declared())
        new = [
            each
            for each in {each.name: each for each in declarations}.values()
            if each not in known
        ]
        if not new:
            return
        with self.db.transaction():
            for declaration in new:
                self.db.all("declare", fields(declaration))

    def declared(self) -> list[Declaration]:
        return records(Declaration, self.db.read(SQL["declared"]))

    def queues(self) -> list[Queue]:
        with snapshot(self.db) as ask:
            return queue_rows(ask, self.db.clock())

    def paused_queues(self) -> frozenset[str]:
        return frozenset(name for (name,) in self.db.read(SQL["paused_queues"]))

    def pause_queue(
        self, name: str, paused: bool, actor: Actor | None = None, reason: str = ""
    ) -> bool:
        refuse_system(name, paused)
        with self.db.transaction():
            by = actor.name if actor else ""
            changed = bool(
                self.db.count("pause_queue", name, by, reason)
                if paused
                else self.db.count("resume_queue", name)
            )
            self.auditor.record(
                actor, queue_acts(name, paused, reason) if changed else (), self.db.clock()
            )
            return changed

    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        with self.db.transaction():
            return (
                self.db.one("lease", {"name": name, "holder": holder, "ttl_us": int(ttl_s * US)})
                is not None
            )
