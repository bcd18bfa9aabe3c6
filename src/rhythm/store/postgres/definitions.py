"""Definitions of workflows on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from rhythm.store.access import Actor
from rhythm.store.acts import registered_acts
from rhythm.store.interfaces.definitions import Definition, DefinitionStore, Listed, source_hashes
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.connection import Connection
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import PostgresRows
from rhythm.store.postgres.schedules import PostgresSchedules
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.postgres.wire import Row
from rhythm.store.rows import fields, records
from rhythm.store.schedules import Registered
from rhythm.store.triggers import Trigger


class PostgresDefinitions(PostgresRole, DefinitionStore):
    """Workflow definitions and their schedules.

    A registration locks the definitions first, so there is one at a time.
    """

    def __init__(
        self,
        db: Connection,
        rows: PostgresRows,
        auditor: PostgresAuditor,
        schedules: PostgresSchedules,
    ) -> None:
        super().__init__(db, rows, auditor)
        self.schedules = schedules

    @transaction
    def register(
        self,
        definitions: Sequence[Definition],
        schedules: Registered | None = None,
        actor: Actor | None = None,
    ) -> None:
        self.db.do("lock_definitions")
        names = [definition.name for definition in definitions]
        acts = (
            registered_acts(definitions, _listed(self.db.all("current_definitions", names=names)))
            if actor
            else []
        )
        hashes = source_hashes(definitions)
        rows = [
            {**fields(definition), "source_hash": hashes[definition.source]}
            for definition in definitions
        ]
        self.db.batch("register_definitions", rows)
        self.db.batch(
            "keep_sources", [{"hash": hash, "text": text} for text, hash in hashes.items()]
        )
        self._set_triggers(definitions)
        if schedules is not None:
            self.schedules.register(definitions, schedules)
        self.auditor.authorise(actor)
        self.auditor.add(actor, acts, None)

    def _set_triggers(self, definitions: Sequence[Definition]) -> None:
        """Makes the events that start these workflows exactly those that they name now."""
        last = {d.name: d for d in definitions}.values()
        triggers = [
            fields(Trigger(type, d.name, d.version, d.queue, d.timeout_s))
            for d in last
            for type in d.on
        ]
        types, workflows = [row["type"] for row in triggers], [row["workflow"] for row in triggers]
        self.db.do("forget_triggers", names=[d.name for d in last], type=types, workflow=workflows)
        self.db.batch("set_triggers", triggers)

    @autocommit
    def get(self, name: str, version: str | None = None) -> Definition | None:
        if version:
            rows = self.db.all("definition_version", name=name, version=version)
        else:
            rows = self.db.all("definition_current", name=name)
        found = records(Definition, rows)
        return found[0] if found else None

    @autocommit
    def program(self, name: str, version: str) -> str | None:
        rows = self.db.all("program", name=name, version=version)
        return str(rows[0][0]) if rows else None

    @autocommit
    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        return _listed(self.db.all("current_definitions", names=list(names)))

    @autocommit
    def after(self, after: str, limit: int) -> list[Listed]:
        return records(Listed, self.db.all("definitions_after", after=after, limit=limit))

    @autocommit
    def versions(self, name: str, limit: int) -> list[str]:
        return [version for (version,) in self.db.all("versions", name=name, limit=limit)]

    @autocommit
    def triggers(self) -> list[Trigger]:
        return records(Trigger, self.db.all("triggers"))


def _listed(rows: list[Row]) -> dict[str, Listed]:
    return {listed.name: listed for listed in records(Listed, rows)}
