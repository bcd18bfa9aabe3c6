"""Details of one execution of a server, which the command line shows besides its view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from rhythm.app.details import ExecutionDetails, Position
from rhythm.app.views import AlikeView
from rhythm.remote.executions import known_id

if TYPE_CHECKING:
    from rhythm.app.handle import Id
    from rhythm.app.log_lines import LogLineView
    from rhythm.app.views import ExecutionView
    from rhythm.remote.client import Client
    from rhythm.remote.executions import RemoteExecutions

FEW = 20  # failed tasks that are read at a time


class RemoteDetails:
    """Details of one execution."""

    def __init__(self, client: Client, executions: RemoteExecutions) -> None:
        self._client, self._executions = client, executions

    def children(self, id: Id, limit: int | None = None) -> list[ExecutionView]:
        """Returns what an execution has started, without large fields; `limit`: the first ones."""
        if limit is not None:
            return list(self._executions.children(id, limit, brief=True))
        return list(self._executions.all_children(id))

    def failed_tasks(self, id: Id) -> Iterator[ExecutionView]:
        """Yields the tasks of an execution that ended with an error, the last one first."""
        failed = reversed(
            [
                one.id
                for one in self._executions.all_children(id)
                if one.error and one.type == "task"
            ]
        )
        while some := list(islice(failed, FEW)):
            found = self._executions.get_many(some)
            yield from (found[each] for each in some if each in found)

    def due(self, id: Id) -> dict[int, datetime]:
        """Returns when the timers and delayed children of an execution are due, by number.

        Number 0 is its own start.
        """
        return {each.n: each.at for each in self._details(id).due}

    def position(self, id: Id) -> Position:
        """Returns where in its source a workflow is; empty if that is not known."""
        found = self._details(id)
        return Position(found.line, found.step, found.named)

    def progress(self, id: Id) -> LogLineView | None:
        """Returns the last progress that an execution, or anything below it, has reported."""
        return self._details(id).progress

    def alike(self, id: Id, most: int) -> list[AlikeView]:
        """Returns what there is more than `most` times below an execution, and how it has ended."""
        found = self._client.get("executions", known_id(id), "alike", most=most)
        return [
            self._client.read(AlikeView, item)
            for item in self._client.part(found, "alike", list[Any])
        ]

    def retries(self, id: Id) -> list[str]:
        """Returns the ids of the retries of an execution, oldest first."""
        return list(self._details(id).retries)

    def retry_refusal(self, id: Id) -> str | None:
        """Returns why a retry of a failed execution would be refused. See `Details`."""
        return self._details(id).retry_refusal

    def _details(self, id: Id) -> ExecutionDetails:
        return self._client.view(ExecutionDetails, "executions", known_id(id), "details")
