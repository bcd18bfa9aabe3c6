"""`RemoteRhythm`, an application on a server: what commands ask has the names of `Rhythm`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

from rhythm.remote.address import parse_address
from rhythm.remote.approvals import RemoteApprovals
from rhythm.remote.audit import RemoteAudit
from rhythm.remote.client import Client
from rhythm.remote.details import RemoteDetails
from rhythm.remote.events import RemoteEvents
from rhythm.remote.executions import RemoteExecutions
from rhythm.remote.operating import (
    RemoteBulk,
    RemoteOverview,
    RemotePauses,
    RemoteQueues,
    RemoteWhy,
)
from rhythm.remote.schedules import RemoteSchedules
from rhythm.remote.starts import RemoteStarts
from rhythm.remote.token import find_token, refuse_in_the_clear
from rhythm.remote.workflows import RemoteWorkflows


class RemoteRhythm:
    """An application that a server has. It may not be used by two threads at once.

    Call `close` at the end, or use it in a `with` statement. Whoever owns the token acts: the `by`
    of its methods is there as in `Rhythm`, and is not sent.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.workflows = RemoteWorkflows(client)
        self.executions = RemoteExecutions(client)
        self.starts = RemoteStarts(client, self.executions)
        self.pauses = RemotePauses(client)
        self.approvals = RemoteApprovals(client)
        self.events = RemoteEvents(client)
        self.schedules = RemoteSchedules(client, self.executions)
        self.queues = RemoteQueues(client)
        self.details = RemoteDetails(client, self.executions)
        self.bulk = RemoteBulk(client)
        self.why = RemoteWhy(client)
        self.overview = RemoteOverview(client)
        self.audit = RemoteAudit(client)
        self.changes = RemoteChanges()

        # the flat names, as `Rhythm` has them
        self.register, self.workflow = self.workflows.register, self.workflows.get
        self.start_workflow = self.starts.workflow
        self.get, self.list = self.executions.get, self.executions.__call__
        self.count = self.executions.count
        self.children, self.result = self.executions.children, self.executions.result
        self.trace_page, self.signal = self.executions.trace_page, self.executions.signal
        self.logs = self.executions.logs
        self.cancel, self.terminate = self.executions.cancel, self.executions.terminate
        self.retry = self.executions.retry
        self.pause, self.resume = self.pauses.pause, self.pauses.resume
        self.approval, self.approve = self.approvals.get, self.approvals.approve
        self.reject, self.escalate = self.approvals.reject, self.approvals.escalate
        self.publish = self.events.publish
        self.schedule, self.get_schedule = self.schedules.put, self.schedules.get
        self.next_times, self.run_schedule = self.schedules.next_times, self.schedules.run
        self.pause_schedule, self.resume_schedule = self.schedules.pause, self.schedules.resume
        self.delete_schedule = self.schedules.delete
        self.workers = self.queues.workers
        self.pause_queue, self.resume_queue = self.queues.pause, self.queues.resume
        self.verify_audit = self.audit.verify

    def close(self) -> None:
        """Closes the connection to the server."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteChanges:
    """What this process hears of changes: nothing, so whoever waits asks again."""

    hears_ends = False

    @contextmanager
    def awaited(self, execution: str, listener: Callable[[], object]) -> Iterator[None]:
        """Never calls the listener."""
        yield


def open_server(url: str, token_file: str | None, environment: Mapping[str, str]) -> RemoteRhythm:
    """Returns the application of the server at this URL; nothing is asked yet.

    Raises `ValueError` for a URL or a token that cannot be used.
    """
    address, token = parse_address(url), find_token(token_file, environment)
    if token is not None:
        refuse_in_the_clear(address, environment)
    return RemoteRhythm(Client(address, token))
