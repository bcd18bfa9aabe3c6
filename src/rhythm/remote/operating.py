"""What operators do on a server: pauses, queues and workers, acts on many executions, and why one
does not go on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rhythm.app.bulk import BulkView
from rhythm.app.checks import valid_name, valid_text
from rhythm.app.explain import WhyView
from rhythm.app.handle import id_of
from rhythm.app.overview import OverviewView
from rhythm.app.views import QueueView, WorkerView
from rhythm.remote.executions import HOW_TO_SEE, known_id

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.app.bulk import Action, Progress
    from rhythm.app.handle import Id
    from rhythm.app.pauses import Then
    from rhythm.remote.client import Client

ALL_WITHIN_S = 900.0  # how long an act on all executions that match may take


class RemotePauses:
    """What is paused, and what lets it go on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def pause(
        self,
        id: Id,
        reason: str = "",
        by: By = None,
        *,
        timeout: float | str | None = None,
        then: Then = "resume",
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Holds a workflow where it is. Returns False if it has ended. See `Rhythm.pause`."""
        body = {"timeout": timeout, "then": then, "metadata": metadata}
        return self._changed(id, "pause", {"reason": valid_text(reason, "reason"), **body})

    def resume(
        self,
        id: Id,
        reason: str = "",
        by: By = None,
        *,
        data: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Lets a paused workflow go on. Returns False if nobody paused it. See `Rhythm.resume`."""
        body = {"data": data, "metadata": metadata}
        return self._changed(id, "resume", {"reason": valid_text(reason, "reason"), **body})

    def _changed(self, id: Id, act: str, body: Mapping[str, Any]) -> bool:
        check = HOW_TO_SEE.format(id_of(id))
        done = self._client.post("executions", known_id(id), act, body=body, check=check)
        changed: bool = self._client.part(done, "changed", bool)
        return changed


class RemoteQueues:
    """The queues, and the workers that serve them. Calling it lists the queues."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self) -> list[QueueView]:
        """Returns all queues that have work, are paused, or are served by a worker."""
        return [self._client.read(QueueView, item) for item in self._client.all("queues")]

    def workers(self) -> list[WorkerView]:
        """Returns the workers of all processes. Dead ones are listed for a day."""
        return [self._client.read(WorkerView, item) for item in self._client.all("workers")]

    def pause(self, name: str, reason: str = "", by: By = None) -> bool:
        """Pauses a queue: nothing of it begins. Returns False if it was paused already."""
        return self._changed(name, "pause", {"reason": valid_text(reason, "reason")})

    def resume(self, name: str, by: By = None) -> bool:
        """Lets workers take from a queue again. Returns False if it was not paused."""
        return self._changed(name, "resume", None)

    def _changed(self, name: str, act: str, body: Mapping[str, Any] | None) -> bool:
        known = valid_name(name, "a queue")
        done = self._client.post("queues", known, act, body=body, check="`rhythm queues` tells")
        changed: bool = self._client.part(done, "changed", bool)
        return changed


class RemoteOverview:
    """The overview of a database: call it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self) -> OverviewView:
        """Returns what is going on. See `Rhythm.overview`."""
        return self._client.view(OverviewView, "overview")


class RemoteBulk:
    """One act on many executions: call it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(
        self,
        action: Action,
        *,
        workflow: str | None = None,
        status: str | None = None,
        queue: str | None = None,
        created_before: datetime | str | None = None,
        created_after: datetime | str | None = None,
        attributes: Mapping[str, Any] | None = None,
        query: str | None = None,
        all: bool = False,
        limit: int | None = None,
        reason: str = "",
        dry_run: bool = False,
        by: By = None,
        on_progress: Progress | None = None,
        from_start: bool = False,
    ) -> BulkView:
        """Does an act to all executions that match. See `Rhythm.bulk`.

        The server does it in one request: there is no progress to report.
        """
        if from_start and action != "retry":
            raise ValueError(f"from_start is for retry, not for {action}")
        given = {
            "workflow": workflow,
            "status": status,
            "queue": queue,
            "created_before": _text(created_before),
            "created_after": _text(created_after),
            "attributes": attributes,
            "q": query,
            "limit": limit,
        }
        body = {name: value for name, value in given.items() if value is not None}
        body |= {"all": all, "dry_run": dry_run, "reason": valid_text(reason, "reason")}
        done = self._client.post(
            "executions",
            action,
            body=body | ({"from_start": from_start} if action == "retry" else {}),
            again=dry_run,
            check="--dry-run counts those that are left",
            within_s=ALL_WITHIN_S,
        )
        return self._client.read(BulkView, done)


def _text(time: datetime | str | None) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else time


class RemoteWhy:
    """Why an execution does not go on: call it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, id: Id) -> WhyView:
        """Returns why an execution does not go on. See `Rhythm.why`."""
        return self._client.view(WhyView, "executions", known_id(id), "why")
