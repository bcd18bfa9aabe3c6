"""Definitions of workflows on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rhythm.store.access import Actor
from rhythm.store.acts import registered_acts
from rhythm.store.columns import given
from rhythm.store.interfaces.definitions import Definition, DefinitionStore, Listed, source_hashes
from rhythm.store.rows import fields, records
from rhythm.store.schedules import Registered
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.schedules import SqliteSchedules
from rhythm.store.sqlite.session import SQL, SqliteSession
from rhythm.store.triggers import Trigger


class SqliteDefinitions(SqliteRole, DefinitionStore):
    def __init__(
        self,
        db: SqliteSession,
        rows: SqliteRows,
        auditor: SqliteAuditor,
        schedules: SqliteSchedules,
    ) -> None:
        super().__init__(db, rows, auditor)
        self.schedules = schedules

    def register(
        self,
        definitions: Sequence[Definition],
        schedules: Registered | None = None,
        actor: Actor | None = None,
    ) -> None:
        with self.db.transaction():
            names = json.dumps([definition.name for definition in definitions])
            acts = (
                registered_acts(definitions, _listed(self.db.all("current_definitions", names)))
                if actor
                else []
            )
            hashes = source_hashes(definitions)
            rows = [{**given(d), "source_hash": hashes[d.source]} for d in definitions]
            self.db.all("register_definitions", {"definitions": json.dumps(rows)})
            self.db.all(
                "keep_sources",
                {"sources": json.dumps({hash: text for text, hash in hashes.items()})},
            )
            self._set_triggers(definitions)
            if schedules is not None:
                self.schedules.register(definitions, schedules)
            self.auditor.authorise(actor, self.db.clock())
            self.auditor.add(actor, acts, self.db.clock())

    def _set_triggers(self, definitions: Sequence[Definition]) -> None:
        """Makes the events that start these workflows exactly those that they name now."""
        last = {d.name: d for d in definitions}
        named = (
            Trigger(type, d.name, d.version, d.queue, d.timeout_s)
            for d in last.values()
            for type in d.on
        )
        triggers = json.dumps([fields(trigger) for trigger in named])
        self.db.all("forget_triggers", {"names": json.dumps(list(last)), "triggers": triggers})
        self.db.all("set_triggers", {"triggers": triggers})

    def get(self, name: str, version: str | None = None) -> Definition | None:
        asked = (
            ("definition_version", (name, version)) if version else ("definition_current", (name,))
        )
        found = records(Definition, self.db.read(SQL[asked[0]], asked[1]))
        return found[0] if found else None

    def program(self, name: str, version: str) -> str | None:
        rows = self.db.read(SQL["program"], (name, version))
        return rows[0][0] if rows else None

    def current(self, names: Sequence[str]) -> dict[str, Listed]:
        return _listed(self.db.read(SQL["current_definitions"], (json.dumps(list(names)),)))

    def after(self, after: str, limit: int) -> list[Listed]:
        return records(
            Listed, self.db.read(SQL["definitions_after"], {"after": after, "limit": limit})
        )

    def versions(self, name: str, limit: int) -> list[str]:
        return [version for (version,) in self.db.read(SQL["versions"], (name, limit))]

    def triggers(self) -> list[Trigger]:
        return records(Trigger, self.db.read(SQL["triggers"]))


def _listed(rows: list[Any]) -> dict[str, Listed]:
    return {listed.name: listed for listed in records(Listed, rows)}
