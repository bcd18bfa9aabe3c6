"""Schedules on PostgreSQL.

The rows of schedules are locked before anything else, in the order of their names. After that,
cancels and starts lock as usual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rhythm.store.access import Actor
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.schedules import ScheduleStore
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.postgres.wire import Row
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


class PostgresSchedules(PostgresRole, ScheduleStore):
    @autocommit
    def named(self, names: Sequence[str]) -> tuple[list[Schedule], int]:
        found = _read(self.db.all("schedules", names=list(names)))
        now = found[0][2] if found else self.db.now()
        return [schedule for schedule, _, _ in found], now

    @autocommit
    def after(self, after: str, limit: int, brief: bool = False) -> list[Schedule]:
        return records(
            Schedule, self.db.all("schedules_after", after=after, limit=limit, brief=brief)
        )

    @autocommit
    def load_due(self, names: Sequence[str]) -> list[Due]:
        found = _read(self.db.all("schedules", names=list(names)))
        # Read last: an execution that is started after this makes a new revision.
        running: dict[str, list[str]] = {}
        for name, id in self.db.all("running_fires", names=list(names)):
            running.setdefault(name, []).append(id)
        return [
            Due(each, tuple(running.get(each.name, ())), now, revision)
            for each, revision, now in found
        ]

    @autocommit
    def fires(self, name: str, limit: int) -> list[Fire]:
        return records(Fire, self.db.all("fires", name=name, limit=limit))

    @transaction
    def change(
        self, name: str, change: Change, actor: Actor | None = None, action: str = "schedule.change"
    ) -> Schedule | None:
        # A schedule that does not exist yet has no row to lock.
        self.db.lock(f"rhythm.{self.db.schema}.schedule.{name}")
        found = _read(self.db.all("lock_schedules", names=[name]))
        before, now = next((schedule for schedule, _, _ in found), None), self.db.now()
        after = change(before, now)
        if after != before:
            self._put_schedules({name: after})
            self.auditor.record(actor, [changed(action, name, before, after)], now)
        return after

    def _put_schedules(self, schedules: Mapping[str, Schedule | None]) -> None:
        self.db.batch(
            "put_schedules",
            [fields(schedule) for schedule in schedules.values() if schedule is not None],
        )
        if gone := [name for name, schedule in schedules.items() if schedule is None]:
            self.db.do("delete_schedules", names=gone)

    def due(self, limit: int, without: Sequence[str] = ()) -> tuple[list[str], float | None]:
        rows = self.db.ask("due_schedules", limit=limit, without=list(without))
        due = [name for name, at, now in rows if at is None or at <= now]
        return list(dict.fromkeys(due)), min(
            ((at - now) / 1e6 for _, at, now in rows if at is not None and at > now), default=None
        )

    @transaction
    def fire(
        self, firings: Sequence[Firing], actor: Actor | None = None
    ) -> tuple[list[Fire], list[str]]:
        if actor is None:
            self.db.hasten()
        names = [firing.name for firing in firings]
        rows = self.db.all(
            "lock_free_schedules" if actor is None else "lock_revisions", names=names
        )
        revisions = {name: revision for name, revision, _ in rows}
        now = next((now for _, _, now in rows), 0)
        locked = {
            each.name: each
            for each in firings
            if each.name in revisions and each.revision in (None, revisions[each.name])
        }
        fires = self._fire_slots(list(locked.values()), now) if locked else []
        self.auditor.record(actor, [ran(fire) for fire in fires if fire.outcome != REPEATED], now)
        return fires, [name for name in names if name not in locked]

    def _fire_slots(self, firings: Sequence[Firing], now: int) -> list[Fire]:
        self.db.do("settle_fires", names=[firing.name for firing in firings])
        if cancels := [id for firing in firings for id in firing.cancels]:
            self.rows.cancel(cancels)
        fires = self._start_slots(
            self._unknown_slots([fire for firing in firings for fire in firing.fires])
        )
        self.db.batch(
            "insert_fires", [fields(fire) for fire in fires if fire.outcome != REPEATED], now=now
        )
        moved = [
            dict(
                name=each.name,
                revision=each.revision,
                next_at=each.next_at,
                queued_at=each.queued_at,
            )
            for each in firings
        ]
        self.db.batch("move_schedules", moved)
        if fires:
            self.db.do(
                "trim_fires", names=sorted({fire.schedule for fire in fires}), kept=KEPT_SLOTS
            )
        return [fire.replace(at=now) for fire in fires]

    def _unknown_slots(self, new: Sequence[NewFire]) -> list[NewFire]:
        """Returns those whose slot has no row yet, and all manual ones."""
        asked = [
            dict(schedule=each.fire.schedule, slot_at=each.fire.slot_at)
            for each in new
            if not each.fire.manual
        ]
        known = {(schedule, slot_at) for schedule, slot_at in self.db.batch("known_slots", asked)}
        return [
            each
            for each in new
            if each.fire.manual or (each.fire.schedule, each.fire.slot_at) not in known
        ]

    def _start_slots(self, new: Sequence[NewFire]) -> list[Fire]:
        starts = [each.start for each in new if each.start is not None]
        created = self.rows.start(starts, None) if starts else set()
        ids = {start.id: start.id for start in starts}
        if len(created) < len(starts):
            ids = {
                start.id: found.id
                for start, found in zip(starts, self.rows.existing(starts, created), strict=True)
            }
        return [
            each.fire if each.start is None else each.started(ids[each.start.id]) for each in new
        ]

    def register(self, definitions: Sequence[Definition], registered: Registered) -> None:
        """Changes the schedules that annotations of these workflows made, inside the transaction
        that registers them."""
        workflows = [definition.name for definition in definitions]
        found = _read(self.db.all("lock_schedules_of", workflows=workflows))
        self._put_schedules(registered([schedule for schedule, _, _ in found], self.db.now()))


def _read(rows: list[Row]) -> list[tuple[Schedule, int, int]]:
    """Returns the schedules, the revision of each, and when it was read."""
    found = records_with(Schedule, rows, "revision", "now")
    return [(schedule, revision, now) for schedule, (revision, now) in found]
