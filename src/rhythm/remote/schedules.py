"""Schedules of a server: what starts workflows by the clock."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rhythm.app.checks import LARGEST_PAGE, at_least, can_be, start_key, valid_name, valid_text
from rhythm.app.schedules import ScheduleView, no_schedule
from rhythm.engine.payload import dump
from rhythm.remote.executions import fits_path

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.app.handle import Handle
    from rhythm.app.schedules import Every, Overlap
    from rhythm.remote.client import Client
    from rhythm.remote.executions import RemoteExecutions

HOW_TO_SEE = "`rhythm schedules show {}` tells"


class RemoteSchedules:
    """What starts workflows by the clock. Calling it lists the schedules."""

    def __init__(self, client: Client, executions: RemoteExecutions) -> None:
        self._client, self._executions = client, executions

    def __call__(
        self, limit: int | None = None, after: str = "", *, brief: bool = False
    ) -> list[ScheduleView]:
        """Returns all schedules by name, or `limit` of those after `after`. See
        `Rhythm.schedules`."""
        if limit is None:
            found = [*self._client.all("schedules", after=after or None, whole=not brief)]
        else:
            most = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
            found, _ = self._client.page(["schedules"], most, after or None, whole=not brief)
        return [self._view(item) for item in found]

    def _view(self, value: Any) -> ScheduleView:
        whole = {"inputs": None, **value} if isinstance(value, dict) else value
        return self._client.read(ScheduleView, whole)

    def get(self, name: str) -> ScheduleView:
        """Returns a schedule and what became of its last slots.

        Raises `UnknownSchedule` if there is none.
        """
        return self._view(self._client.get("schedules", _known(name)))

    def put(
        self,
        name: str,
        workflow: str,
        *,
        cron: str | None = None,
        every: Every | None = None,
        at: datetime | str | None = None,
        tz: str = "UTC",
        inputs: Any = None,
        overlap: Overlap = "skip",
        catch_up: str | int = "one",
        by: By = None,
    ) -> ScheduleView:
        """Creates or changes a schedule, and returns it. See `Rhythm.schedule`."""
        dump(inputs, "inputs")
        given: dict[str, Any] = {
            "name": valid_name(name, "a schedule's name"),
            "workflow": workflow,
            "cron": cron,
            "every": every,
            "at": at.isoformat() if isinstance(at, datetime) else at,
            "tz": tz,
            "inputs": inputs,
            "overlap": overlap,
            "catch_up": catch_up,
        }
        body = {key: value for key, value in given.items() if value is not None}
        # the same schedule twice is one schedule
        done = self._client.post("schedules", body=body, again=True, check=HOW_TO_SEE.format(name))
        return self._view(done).replace(fires=())

    def next_times(self, name: str, count: int = 5) -> list[datetime]:
        """Returns when the schedule will start its workflow next. See `Rhythm.next_times`."""
        most = at_least(count, 1, "count")
        found = self._client.get("schedules", _known(name), "times", count=most)
        times: list[datetime] = self._client.part(found, "times", list[datetime])
        return times

    def pause(self, name: str, reason: str = "", by: By = None) -> bool:
        """Pauses a schedule: it starts nothing more. Returns False if it was paused already."""
        return self._changed(name, "pause", {"reason": valid_text(reason, "reason")})

    def resume(self, name: str, by: By = None) -> bool:
        """Lets a schedule start its workflow again. Returns False if it was not paused."""
        return self._changed(name, "resume", None)

    def _changed(self, name: str, act: str, body: Mapping[str, Any] | None) -> bool:
        check = HOW_TO_SEE.format(name)
        done = self._client.post("schedules", _known(name), act, body=body, check=check)
        changed: bool = self._client.part(done, "changed", bool)
        return changed

    def run(self, name: str, by: By = None, *, key: str | None = None) -> Handle:
        """Starts the workflow of a schedule now, and returns the handle. See
        `Rhythm.run_schedule`."""
        own = secrets.token_hex(16) if key is None else start_key(key, "a key")
        done = self._client.post(
            "schedules", _known(name), "run", key=own, check=HOW_TO_SEE.format(name)
        )
        return self._executions.handle(done, created=key is None)

    def delete(self, name: str, by: By = None) -> None:
        """Deletes a schedule; what it has started goes on. See `Rhythm.delete_schedule`."""
        self._client.post("schedules", _known(name), method="DELETE", check=HOW_TO_SEE.format(name))


def _known(name: str) -> str:
    """Returns the name of a schedule, which may stand in a path. Raises `UnknownSchedule`."""
    return name if can_be(name) and fits_path(name.replace("/", "")) else no_schedule(name)
