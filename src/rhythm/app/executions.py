"""Executions: read, signal, cancel, terminate and retry them, and wait for their results."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rhythm.app.actors import By, acting
from rhythm.app.checks import (
    LARGEST_PAGE,
    PLACES,
    at_least,
    can_be,
    number_of,
    own_key,
    page_of,
    parse_execution_id,
    place_of,
    trace_cursor,
    trace_place,
    unknown_execution,
    valid_name,
)
from rhythm.app.handle import Handle, id_of
from rhythm.app.log_lines import LogPage, line_view, valid_level
from rhythm.app.retries import retry_plan
from rhythm.app.search import Meant, selection_of, valid_status
from rhythm.app.views import ExecutionView, Page, TracePage, TraceStep, brief_view, step, view
from rhythm.app.waiting import Ended, PollBackoff
from rhythm.engine.payload import dump
from rhythm.errors import NotDelivered, NotRetryable, StoreError
from rhythm.ids import root_of
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS
from rhythm.permissions import Scope
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.reading import EVERYTHING, TURN, Moment

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.handle import Id
    from rhythm.app.workflows import Workflows

TRACED_PROGRAMS = 20  # programs that are loaded for one page of a trace


class Executions:
    """Workflows and tasks that were started.

    Calling it lists the roots: those started from outside.
    """

    def __init__(self, context: AppContext, workflows: Workflows) -> None:
        self._context, self._store, self._sizes = context, context.store, context.sizes
        self._workflows, self.changes = workflows, context.changes

    def __call__(
        self,
        workflow: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        *,
        query: str | None = None,
        brief: bool = False,
        scope: Scope = None,
        most_bytes: int | None = None,
    ) -> Page:
        """Returns a page of the executions that were started from outside (roots), newest first.

        - `query`: a filter, such as `"status:failed attr.customer=acme"`; see `docs/search.md`.
          With a term `finished:`, those that have ended last come first.
        - `cursor`: of the page before, to get the next one.
        - `brief`: inputs, result and what an execution awaits are not read, but None; an error that
          is large is cut (it then has `"cut": true`).
        - `scope`: only executions whose name matches one of the patterns, such as `order*`.
        - `most_bytes`: the page ends early when it has this size.
        """
        limit = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        meant = Meant(workflow, valid_status(status))
        selection = selection_of(self._context, query, meant, scope)
        found = self._store.reading.search(
            selection, place_of(cursor), limit + 1, brief, most_bytes
        )
        rows, more = page_of(found, limit)
        views = tuple(map(brief_view if brief else view, rows))
        place = PLACES[selection.order]
        return Page(views, place(views[-1]) if more else None, selection.order)

    def count(
        self,
        query: str | None = None,
        *,
        workflow: str | None = None,
        status: str | None = None,
        scope: Scope = None,
    ) -> int:
        """Returns how many executions were started from outside and meet a filter.

        They are counted one by one along an index, so it takes the longer the more there are.
        """
        meant = Meant(workflow, valid_status(status))
        selection = selection_of(self._context, query, meant, scope)
        return self._store.operating.count(selection)[0]

    def get(self, id: Id) -> ExecutionView:
        """Returns the execution as it is now.

        Raises `UnknownExecution` if there is none with this id.
        """
        return view(self._context.execution(id))

    def get_many(self, ids: Iterable[Id]) -> dict[str, ExecutionView]:
        """Returns the executions with these ids as they are now, by id.

        Those that do not exist are left out.
        """
        asked = [id for id in map(id_of, ids) if can_be(id)]
        return (
            {id: view(row) for id, row in self._store.reading.get(asked).items()} if asked else {}
        )

    def children(
        self,
        id: Id,
        limit: int = 50,
        cursor: str | None = None,
        *,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Page:
        """Returns a page of what an execution has started, in that order. See `list`."""
        limit, after = min(at_least(limit, 1, "limit"), LARGEST_PAGE), number_of(cursor)
        rows, more = page_of(
            self._store.reading.children(
                self._context.execution(id).id, after, limit + 1, brief, most_bytes
            ),
            limit,
        )
        views = tuple(map(brief_view if brief else view, rows))
        return Page(views, rows[-1].id.rpartition(".")[2] if more else None)

    def result(self, id: Id, timeout: float | str | None = None) -> Any:
        """Waits until the execution has ended, and returns its result.

        Raises `ExecutionFailed` if it ended without one, and `ResultTimeout` if it did not end
        within the timeout. If the database goes away, this waits for it; `StoreError` is raised if
        it has not answered for 30 s, or when the timeout is over.
        """
        changes, changed = self.changes, threading.Event()
        patience = PollBackoff(timeout, time.monotonic, lambda: changes.hears_ends)
        id = id_of(id)
        with changes.awaited(id, changed.set):
            if head_start_s := patience.head_start_s(changes.head_start_s(id)):
                changed.wait(head_start_s)
            while not isinstance(found := changes.poll(self.get, id), Ended):
                if isinstance(found, StoreError) or not changes.drive(id):
                    changed.wait(patience.rest_s(found))
                    changed.clear()
        return found.value()

    def trace(self, id: Id) -> list[TraceStep]:
        """Returns what happened in an execution and everything below it, in order of time.

        See `trace_page`.
        """
        page = self.trace_page(id, LARGEST_PAGE)
        steps = [*page]
        while page.cursor is not None:
            page = self.trace_page(id, LARGEST_PAGE, page.cursor)
            steps += page
        return steps

    def trace_page(
        self,
        id: Id,
        limit: int = 50,
        cursor: str | None = None,
        *,
        most_bytes: int | None = None,
        most_alike: int | None = None,
    ) -> TracePage:
        """Returns a page of what happened in an execution and all below it, in order of time.

        See `list` for pages. With `most_alike`, executions of one name that are equally deep below
        it are left out where there are more of them. A trace covers the first 10,000 executions
        below this one, and 100,000 of their turns.
        """
        limit, after = min(at_least(limit, 1, "limit"), LARGEST_PAGE), trace_place(cursor)
        found = self._store.reading.trace(
            self._context.execution(id).id,
            after,
            limit + 1,
            most_bytes,
            EVERYTHING if most_alike is None else at_least(most_alike, 1, "most_alike"),
        )
        steps, programs = list[TraceStep](), dict[tuple[str, str], Program | None]()
        for moment in found[:limit]:
            if (key := _program_of(moment)) and key not in programs:
                if len(programs) == TRACED_PROGRAMS:
                    break
                programs[key] = self._workflows.program(*key)
            steps.append(step(moment, programs.get(key) if key else None))
        cursors = tuple(trace_cursor(moment.place) for moment in found[: len(steps)])
        more = found.cut or len(found) > len(steps)
        return TracePage(tuple(steps), cursors[-1] if more and steps else None, cursors)

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

        - `after`: the position of a line, or the `cursor` of a page: the page begins after it. What
          is stored later comes later, so to follow an execution ask again after the last line. A
          position is a time in microseconds since 1970, on the database's clock.
        - `level`: only lines from this level on: debug, info, warning or error. Progress counts as
          info.
        - `most_bytes`: the page ends early when it has this size.
        """
        limit, least = min(at_least(limit, 1, "limit"), LARGEST_PAGE), valid_level(level)
        place = number_of(str(after) if isinstance(after, int) else after)
        id = self._context.execution(id).id
        found = self._store.logs.read(id, place, limit + 1, least, most_bytes)
        rows, more = page_of(found, limit)
        dropped = self._store.logs.totals(root_of(id)).dropped
        lines = tuple(map(line_view, rows))
        return LogPage(lines, str(lines[-1].position) if more and lines else None, dropped)

    def signal(
        self,
        id: Id,
        name: str,
        payload: Any = None,
        *,
        signal_id: str | None = None,
        by: By = None,
        connection: Any = None,
    ) -> bool:
        """Sends a signal. Returns False if this `signal_id` was sent before.

        The signal waits in the mailbox until the workflow asks for it. Raises `NotDelivered` if the
        execution has ended or its mailbox is full. It is recorded in the audit only if `by` is
        given. With your own `connection`, it is sent when you commit (see `start_workflow`).
        """
        store = self._context.store_on(connection)
        id = parse_execution_id(id)
        own = own_key(signal_id, "a signal_id") if signal_id is not None else self._context.new_id()
        sent = NewSignal(
            f"{id}#{own}", id, valid_name(name, "a signal's name"), dump(payload, "payload")
        )
        self._sizes.payload("signal", name, id, sent.payload)
        answer = store.messages.signal(sent, DEFAULT_LIMITS.signals, acting(by) if by else None)
        if answer == "missing":
            unknown_execution(id)
        if answer not in ("sent", "duplicate"):
            late = answer == "late"
            why = (
                "it has ended"
                if late
                else f"{DEFAULT_LIMITS.signals:,} signals wait in its mailbox already"
            )
            raise NotDelivered(
                f"the signal `{name}` was not delivered to {id}: {why}",
                "execution_ended" if late else "mailbox_full",
            )
        self._context.wake_if_committed(store)
        return answer == "sent"

    def cancel(self, id: Id, *, by: By = None, insist: bool = True) -> bool:
        """Asks an execution to end. Returns False if it has ended already.

        Its `finally` blocks run, and what it started is cancelled.

        A second call does not wait for that: it ends the execution at once, as `terminate` does.
        With `insist=False` a second call changes nothing and returns False, too: use it where a
        call may be repeated because its answer was lost.
        """
        row = self._context.execution(id)
        if row.cancel_requested_at is not None and not insist:
            return False
        end = (
            self._store.executions.cancel
            if row.cancel_requested_at is None
            else self._store.executions.terminate
        )
        return self._ended(row.id, end([row.id], acting(by)).get(row.id))

    def terminate(self, id: Id, *, by: By = None) -> bool:
        """Ends an execution and everything below it at once. Returns False if it has ended already.

        No `finally` block runs, and results of its tasks that are still running are not used.
        """
        row = self._context.execution(id)
        ended = self._store.executions.terminate([row.id], acting(by)).get(row.id)
        return self._ended(row.id, ended)

    def retry(self, id: Id, *, from_start: bool = False, by: By = None) -> Handle:
        """Starts a new execution that goes on where this one failed or was cancelled.

        It returns the handle of the new execution, which runs on the same version; what had
        completed is kept. With `from_start` it begins at the beginning, with the same inputs, on
        the current version. The old execution stays as it is.

        If a retry of it is still under way, that one is returned instead of a second one; with
        `from_start`, `NotRetryable` is raised then. Raises `NotRetryable` also if the retry would
        fail again at once, or if there was a retry before: the message says what to do.
        """
        row, new_id = self._context.execution(id), self._context.new_id()
        plan = retry_plan(self._store, self._workflows, row, new_id, from_start)
        started = self._store.executions.retry(row.id, plan, acting(by), whole=not from_start)
        if started is None:
            unknown_execution(row.id)
        if from_start and not started.created:
            raise NotRetryable(
                f"a retry of {row.id} is under way: {started.id}; cancel that one first, or "
                f"wait for its end"
            )
        self._context.wake()
        return Handle(self, started.id, started.created)

    def _ended(self, id: str, ended: bool | None) -> bool:
        """Returns whether the call ended the execution.

        Raises `UnknownExecution` if it was gone by then.
        """
        if ended is None:
            unknown_execution(id)
        self._context.wake()
        return ended


def _program_of(moment: Moment) -> tuple[str, str] | None:
    """Returns name and version of the program in which a turn was taken; None for other moments."""
    return (
        (moment.name, moment.version)
        if moment.place.kind == TURN and moment.type == WORKFLOW
        else None
    )
