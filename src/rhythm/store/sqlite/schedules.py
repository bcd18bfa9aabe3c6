"""Schedules on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rhythm.store.schedules import KEPT, REPEATED, Change, Due, Fire, Firing, NewFire, Plan, Registered, Schedule, changed, ran
from rhythm.store.sqlite.session import SQL, Session

if TYPE_CHECKING:
    from rhythm.store.access import Act, Actor
    from rhythm.store.base import Definition, NewExecution, Started


class SqliteSchedules(Session):
    if TYPE_CHECKING:  # of the store and its other parts

        def _record(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None: ...
        def _cancel(self, id: str, row: Any, now: int) -> bool: ...
        def _start(self, new: NewExecution, now: int) -> Started: ...

    def schedules(self, names: Sequence[str] | None = None) -> tuple[list[Schedule], int]:
        rows = self._read(SQL["all_schedules"]) if names is None else self._read(SQL["schedules"], (json.dumps(list(names)),))
        return [Schedule(*row) for row in rows], self.clock()

    def fires(self, name: str, limit: int) -> list[Fire]:
        found = [Fire(*row) for row in self._read(SQL["fires"], (name, limit))]
        return [fire.replace(manual=bool(fire.manual)) for fire in found]

    def change_schedule(self, name: str, change: Change, actor: Actor | None = None, action: str = "schedule.change") -> Schedule | None:
        with self._transaction():
            found, now = self._all("schedules", json.dumps([name])), self.clock()
            before = Schedule(*found[0]) if found else None
            after = change(before, now)
            if after != before:
                self._put_schedules({name: after})
                self._record(actor, [changed(action, name, before, after)], now)
            return after

    def _put_schedules(self, schedules: Mapping[str, Schedule | None]) -> None:
        for name, schedule in schedules.items():
            if schedule is None:
                self._all("delete_schedule", name)
                self._all("delete_fires", name)
            else:
                self._all("put_schedule", dict(zip(schedule._fields, schedule.astuple(), strict=True)))

    def _register_schedules(self, definitions: Sequence[Definition], registered: Registered) -> None:
        """Within the transaction of a registration."""
        found = self._all("schedules_of", json.dumps([definition.name for definition in definitions]))
        self._put_schedules(registered([Schedule(*row) for row in found], self.clock()))

    def due_schedules(self, limit: int, without: Sequence[str] = ()) -> tuple[list[str], float | None]:
        rows = self._all("due_schedules", {"limit": limit, "without": json.dumps(list(without))})
        due = [name for name, at, now in rows if at is None or at <= now]
        return list(dict.fromkeys(due)), min(((at - now) / 1e6 for _, at, now in rows if at is not None and at > now), default=None)

    def fire_schedules(self, names: Sequence[str], plan: Plan, actor: Actor | None = None) -> list[Fire]:
        with self._transaction():
            now = self.clock()
            found = [Schedule(*row) for row in self._all("schedules", json.dumps(list(names)))]
            firings = plan([Due(schedule, self._running_of(schedule.name), now) for schedule in found])
            fires = [fire for firing in firings for fire in self._fire_slots(firing, now)]
            self._record(actor, [ran(fire) for fire in fires if fire.outcome != REPEATED], now)
            return fires

    def _running_of(self, name: str) -> tuple[str, ...]:
        self._all("settle_fires", name)
        return tuple(id for (id,) in self._all("running_fires", name))

    def _fire_slots(self, firing: Firing, now: int) -> list[Fire]:
        for id in firing.cancels:
            self._cancel(id, self._one("status_of", id), now)
        fires = [self._start_slot(new, now) for new in firing.fires if new.fire.manual or not self._known_slot(new.fire)]
        for fire in fires:
            if fire.outcome != REPEATED:
                self._all("insert_fire", dict(zip(fire._fields, fire.astuple(), strict=True)))
        self._all("move_schedule", {"name": firing.name, "next_at": firing.next_at, "queued_at": firing.queued_at})
        if fires:
            self._all("trim_fires", {"name": firing.name, "kept": KEPT})
        return fires

    def _known_slot(self, fire: Fire) -> bool:
        return self._one("known_slot", fire.schedule, fire.slot_at) is not None

    def _start_slot(self, new: NewFire, now: int) -> Fire:
        return new.started(None if new.start is None else self._start(new.start, now).id).replace(at=now)
