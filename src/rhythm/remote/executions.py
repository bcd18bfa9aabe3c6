"""Executions of a server: read, signal, cancel, terminate and retry them, and wait for their
results."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    can_be,
    own_key,
    parse_execution_id,
    unknown_execution,
    valid_name,
)
from rhythm.app.handle import Handle, id_of
from rhythm.app.log_lines import LogLineView, LogPage, valid_level
from rhythm.app.views import (
    LARGE_FIELDS,
    ExecutionView,
    Page,
    TracePage,
    TraceStep,
)
from rhythm.app.waiting import PollBackoff, try_get
from rhythm.engine.payload import dump
from rhythm.errors import ServerError, StoreError, UnknownExecution
from rhythm.ir.awaiting import KINDS, leaves

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.app.executions import Executions
    from rhythm.app.handle import Id
    from rhythm.remote.client import Client

AT_ONCE_CHARACTERS = 4000  # of ids in one request: they are in its URL
NOTHING = dict.fromkeys(LARGE_FIELDS)  # what a list leaves out
HOW_TO_SEE = "`rhythm show {}` tells how it is"


class RemoteExecutions:
    """The executions of a server. Calling it lists the roots: those started from outside."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(
        self,
        workflow: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        *,
        query: str | None = None,
        brief: bool = False,
    ) -> Page:
        """Returns a page of executions, newest first. See `Rhythm.list`."""
        most = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        meant = {"q": query, "workflow": workflow, "status": status}
        items, after = self._client.page(["executions"], most, cursor, whole=not brief, **meant)
        return Page(tuple(map(self.view, items)), after)

    def count(
        self, query: str | None = None, *, workflow: str | None = None, status: str | None = None
    ) -> int:
        """Returns how many executions meet a filter. See `Rhythm.count`."""
        meant = {"q": query, "workflow": workflow, "status": status}
        found = self._client.get("execution-count", **meant)
        count: int = self._client.part(found, "count", int)
        return count

    def view(self, value: Any) -> ExecutionView:
        """Returns the execution that a JSON value stands for, in a list or alone."""
        found = self._client.read(
            ExecutionView, {**NOTHING, **value} if isinstance(value, dict) else value
        )
        error = found.error
        if error is not None and not (
            isinstance(error.get("code"), str) and isinstance(error.get("message"), str)
        ):
            raise ServerError(f"cannot read the answer of {self._client.address}: a broken error")
        # a newer server may wait for things that this version has no words for
        return found if _has_words(found.awaiting) else found.replace(awaiting=None)

    def get(self, id: Id) -> ExecutionView:
        """Returns the execution as it is now. Raises `UnknownExecution` if there is none."""
        return self.view(self._client.get("executions", known_id(id)))

    def get_many(self, ids: Iterable[Id]) -> dict[str, ExecutionView]:
        """Returns these executions as they are now, by id; those that do not exist are left out."""
        asked = sorted({id for id in map(id_of, ids) if can_be(id) and fits_path(id)})
        found = dict[str, ExecutionView]()
        for root, family in groupby(asked, lambda id: id.partition(".")[0]):
            for some in _by_length(family):
                found |= self._members(root, some)
        return found

    def _members(self, root: str, ids: Sequence[str]) -> dict[str, ExecutionView]:
        """Returns those executions of one family that exist, by id."""
        try:
            items = [*self._client.all("executions", root, "members", id=ids)]
        except UnknownExecution:
            return {}
        return {view.id: view for view in map(self.view, items)}

    def children(
        self, id: Id, limit: int = 50, cursor: str | None = None, *, brief: bool = False
    ) -> Page:
        """Returns a page of what an execution has started. See `Rhythm.children`."""
        most = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        path = ["executions", known_id(id), "children"]
        items, after = self._client.page(path, most, cursor, whole=not brief)
        return Page(tuple(map(self.view, items)), after)

    def all_children(self, id: Id) -> Iterator[ExecutionView]:
        """Yields everything that an execution has started, without large fields."""
        return map(self.view, self._client.all("executions", known_id(id), "children"))

    def result(self, id: Id, timeout: float | str | None = None) -> Any:
        """Waits until the execution has ended, and returns its result. See `Rhythm.result`."""
        patience = PollBackoff(timeout, time.monotonic)
        while isinstance(found := try_get(self.get, id), StoreError) or not found.ended:
            time.sleep(patience.rest_s(found))
        return found.value()

    def trace_page(
        self,
        id: Id,
        limit: int = 50,
        cursor: str | None = None,
        *,
        most_bytes: int | None = None,
        most_alike: int | None = None,
    ) -> TracePage:
        """Returns a page of what happened below an execution. See `Rhythm.trace_page`.

        `most_bytes` is for databases: a server has its own limit, at which its page ends.
        """
        found = self._client.get(
            "executions",
            known_id(id),
            "trace",
            limit=min(at_least(limit, 1, "limit"), LARGEST_PAGE),
            cursor=cursor,
            most_alike=None if most_alike is None else at_least(most_alike, 1, "most_alike"),
        )
        read, part = self._client.read, self._client.part
        steps = tuple(read(TraceStep, item) for item in part(found, "items", list[Any]))
        cursors = tuple(part(found, "cursors", list[str]))
        return TracePage(steps, self._next(found, cursor), cursors)

    def logs(
        self,
        id: Id,
        after: int | str | None = None,
        limit: int = 100,
        *,
        level: str = "debug",
        most_bytes: int | None = None,
    ) -> LogPage:
        """Returns a page of what an execution and everything below it have said, in order.

        See `Rhythm.logs`. `most_bytes` is for databases: a server has its own limit.
        """
        valid_level(level)
        cursor = None if after is None else str(after)
        found = self._client.get(
            "executions",
            known_id(id),
            "logs",
            limit=min(at_least(limit, 1, "limit"), LARGEST_PAGE),
            cursor=cursor,
            level=level,
        )
        read, part = self._client.read, self._client.part
        lines = tuple(read(LogLineView, item) for item in part(found, "items", list[Any]))
        return LogPage(lines, self._next(found, cursor), part(found, "dropped", int))

    def _next(self, found: Any, cursor: str | None) -> str | None:
        """Returns the cursor of the page that follows, which is another one than that before."""
        after: str | None = self._client.part(found, "cursor", str | None)
        if after is not None and (after == cursor or not found["items"]):
            raise ServerError(
                f"cannot read the answer of {self._client.address}: its list does not go on"
            )
        return after

    def signal(
        self,
        id: Id,
        name: str,
        payload: Any = None,
        *,
        signal_id: str | None = None,
        by: By = None,
    ) -> bool:
        """Sends a signal. Returns False if this `signal_id` was sent before."""
        key = secrets.token_hex(16) if signal_id is None else own_key(signal_id, "a signal_id")
        body = {"name": valid_name(name, "a signal's name"), "payload": payload}
        dump(payload, "payload")
        path = ("executions", known_id(id), "signals")
        done = self._client.post(*path, body=body, key=key, check=HOW_TO_SEE.format(id))
        sent: bool = self._client.part(done, "sent", bool)
        return sent or signal_id is None  # it was sent by a request whose answer was lost

    def cancel(self, id: Id, *, by: By = None, insist: bool = True) -> bool:
        """Asks an execution to end; a second call ends it at once. See `Rhythm.cancel`."""
        if self.get(id).cancel_requested_at is None:
            return self._changed(id, "cancel")
        return self.terminate(id) if insist else False

    def terminate(self, id: Id, *, by: By = None) -> bool:
        """Ends an execution and everything below it at once. Returns False if it has ended."""
        return self._changed(id, "terminate")

    def _changed(self, id: Id, act: str) -> bool:
        """Does an act, and returns whether it changed the execution."""
        done = self._client.post(
            "executions", known_id(id), act, check=HOW_TO_SEE.format(id_of(id))
        )
        changed: bool = self._client.part(done, "changed", bool)
        return changed

    def retry(self, id: Id, *, from_start: bool = False, by: By = None) -> Handle:
        """Starts a new execution that goes on where this one failed. See `Rhythm.retry`."""
        check = HOW_TO_SEE.format(id_of(id))
        body = {"from_start": from_start}
        # A retry that goes on is done once, however often it is asked for.
        again = not from_start
        done = self._client.post(
            "executions", known_id(id), "retry", body=body, again=again, check=check
        )
        return self.handle(done)

    def handle(self, started: Any, created: bool = False) -> Handle:
        """Returns the handle of an execution that was started; `created`: it is known to be new."""
        id: str = self._client.part(started, "id", str)
        new: bool = self._client.part(started, "created", bool)
        # a handle asks for views and results, and these are answered here as there
        return Handle(cast("Executions", self), id, new or created)


def known_id(id: Id) -> str:
    """Returns the id of an execution, which may stand in a path. Raises `UnknownExecution`."""
    known = parse_execution_id(id)
    return known if fits_path(known) else unknown_execution(known)


def fits_path(name: str) -> bool:
    """Returns whether this may stand in a path, and be one part of it."""
    return bool(name.strip(".")) and "/" not in name


def _has_words(plan: Any) -> bool:
    """Returns whether this version can say what is awaited."""
    try:
        return all(
            leaf["op"] in KINDS and isinstance(leaf.get("n", 0), int) for leaf in leaves(plan)
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _by_length(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yields the ids in groups that fit into one URL each."""
    group, length = list[str](), 0
    for id in ids:
        if group and length + len(id) > AT_ONCE_CHARACTERS:
            yield group
            group, length = [], 0
        group.append(id)
        length += len(id)
    if group:
        yield group
