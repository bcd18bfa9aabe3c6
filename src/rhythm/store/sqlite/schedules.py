"""Schedules on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.store.access import Actor
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.schedules import ScheduleStore
from rhythm.store.rows import fields, records, records_with
from rhythm.store.schedules import (
    KEPT_SLOTS,
    REPEATED,
    Change,
    Due,
    Fire,
    Firing,
    NewFire,
    Registered,
    Schedule,
    changed,
    ran,
)
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL


class SqliteSchedules(SqliteRole, ScheduleStore):
    def named(self, names: Sequence[str]) -> tuple[list[Schedule], int]:
        return _schedules(
            self.db.read(SQL["schedules"], (json.dumps(list(names)),))
        ), self.db.clock()

    def after(self, after: str, limit: int, brief: bool = False) -> list[Schedule]:
        asked = {"after": after, "limit": limit, "brief": brief}
        return records(Schedule, self.db.read(SQL["schedules_after"], asked))

    def load_due(self, names: Sequence[str]) -> list[Due]:
        given, now = (json.dumps(list(names)),), self.db.clock()
        found = self.db.read(SQL["schedules"], given)
        # Read last: an execution that is started after this makes a new revision.
        running: dict[str, list[str]] = {}
        for name, id in self.db.read(SQL["running_fires"], given):
            running.setdefault(name, []).append(id)
        due = records_with(Schedule, found, "revision")
        return [
            Due(schedule, tuple(running.get(schedule.name, ())), now, revision)
            for schedule, revision in due
        ]

    def fires(self, name: str, limit: int) -> list[Fire]:
        return records(Fire, self.db.read(SQL["fires"], (name, limit)))

    def change(
        self, name: str, change: Change, actor: Actor | None = None, action: str = "schedule.change"
    ) -> Schedule | None:
        with self.db.transaction():
            found, now = _schedules(self.db.all("schedules", json.dumps([name]))), self.db.clock()
            before = found[0] if found else None
            after = change(before, now)
            if after != before:
                self._put({name: after})
                self.auditor.record(actor, [changed(action, name, before, after)], now)
            return after

    def _put(self, schedules: Mapping[str, Schedule | None]) -> None:
        for name, schedule in schedules.items():
            if schedule is None:
                self.db.all("delete_schedule", name)
                self.db.all("delete_fires", name)
            else:
                self.db.all("put_schedule", {**fields(schedule), "revision": self._revision()})

    def _revision(self) -> int:
        """Returns a number that no schedule has had."""
        return int(self.db.one("next_fence")[0])

    def register(self, definitions: Sequence[Definition], registered: Registered) -> None:
        """Changes the schedules that annotations of these workflows made, inside the transaction
        that registers them."""
        found = self.db.all(
            "schedules_of", json.dumps([definition.name for definition in definitions])
        )
        self._put(registered(_schedules(found), self.db.clock()))

    def due(self, limit: int, without: Sequence[str] = ()) -> tuple[list[str], float | None]:
        rows = self.db.all("due_schedules", {"limit": limit, "without": json.dumps(list(without))})
        due = [name for name, at, now in rows if at is None or at <= now]
        return list(dict.fromkeys(due)), min(
            ((at - now) / 1e6 for _, at, now in rows if at is not None and at > now), default=None
        )

    def fire(
        self, firings: Sequence[Firing], actor: Actor | None = None
    ) -> tuple[list[Fire], list[str]]:
        with self.db.transaction():
            now = self.db.clock()
            moved = {firing.name: firing for firing in firings if self._move(firing)}
            fires = [fire for firing in moved.values() for fire in self._fire_slots(firing, now)]
            self.auditor.record(
                actor, [ran(fire) for fire in fires if fire.outcome != REPEATED], now
            )
            return fires, [firing.name for firing in firings if firing.name not in moved]

    def _move(self, firing: Firing) -> bool:
        """Moves the schedule on to its next slot. False: it has changed since the firing was
        planned, or no longer exists."""
        asked = {
            "name": firing.name,
            "revision": firing.revision,
            "next_at": firing.next_at,
            "queued_at": firing.queued_at,
        }
        return self.db.count("move_schedule", {**asked, "new": self._revision()}) > 0

    def _fire_slots(self, firing: Firing, now: int) -> list[Fire]:
        self.db.all("settle_fires", firing.name)
        for id in firing.cancels:
            self.rows.cancel(id, self.rows.find(id), now)
        fires = [
            self._start_slot(new, now)
            for new in firing.fires
            if new.fire.manual or not self._known_slot(new.fire)
        ]
        for fire in fires:
            if fire.outcome != REPEATED:
                self.db.all("insert_fire", fields(fire))
        if fires:
            self.db.all("trim_fires", {"name": firing.name, "kept": KEPT_SLOTS})
        return fires

    def _known_slot(self, fire: Fire) -> bool:
        return self.db.one("known_slot", fire.schedule, fire.slot_at) is not None

    def _start_slot(self, new: NewFire, now: int) -> Fire:
        return new.started(
            None if new.start is None else self.rows.start(new.start, now).id
        ).replace(at=now)


def _schedules(rows: list[Any]) -> list[Schedule]:
    return [schedule for schedule, _ in records_with(Schedule, rows, "revision")]
