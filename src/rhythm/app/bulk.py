"""One act on many executions: pause, resume, cancel, terminate or retry all that match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, assert_never

from rhythm.app.actors import By, acting
from rhythm.app.checks import at_least, valid_text
from rhythm.app.retries import REFUSALS, why_refused
from rhythm.app.search import Meant, selection_of
from rhythm.app.views import as_json
from rhythm.filters.terms import ExecutionFilter, Term
from rhythm.permissions import Scope
from rhythm.record import Record
from rhythm.store.interfaces.operating import Selection
from rhythm.store.lifecycle import WORKFLOW

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.executions import Executions
    from rhythm.app.workflows import Workflows
    from rhythm.store.access import Actor

Action = Literal["pause", "resume", "cancel", "terminate", "retry"]
LIVE = ("pending", "running", "suspended", "paused")


def _with(*statuses: str) -> ExecutionFilter:
    return ExecutionFilter((Term("status", values=statuses),))


# The executions that each action can be done to.
MEANT: dict[str, Selection] = {
    "pause": Selection(_with(*LIVE), type=WORKFLOW, unpaused=True),
    "resume": Selection(_with("paused"), type=WORKFLOW, paused=True),
    "cancel": Selection(_with(*LIVE), unasked=True),  # a second cancel would end them at once
    "terminate": Selection(_with(*LIVE)),
    "retry": Selection(_with("failed", "cancelled"), unretried=True),
}
RESTRICTIONS = ("type", "paused", "unpaused", "unasked", "unretried")
Progress = Callable[[int, int], None]
AT_ONCE = 500  # executions in one transaction
MAX_REASONS = 20  # refused executions for which the reason is returned
BEFORE_ALL = (-1, "")  # a place before all executions


class BulkView(Record):
    """The result of an act on many executions.

    `matched` were selected, and `changed` of them were changed. `refused` were not; `reasons` says
    why, by id, for the first of them. A dry run changes none, and refuses those that the act would
    refuse.
    """

    matched: int
    changed: int = 0
    refused: int = 0
    reasons: Mapping[str, str] = {}

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return as_json(self)


class Bulk:
    """One act on many executions: call it."""

    def __init__(self, context: AppContext, executions: Executions, workflows: Workflows) -> None:
        self._context, self._store = context, context.store
        self._executions, self._workflows = executions, workflows

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
        scope: Scope = None,
        on_progress: Progress | None = None,
        from_start: bool = False,
    ) -> BulkView:
        """Pauses, resumes, cancels, terminates or retries all matching executions, oldest first.

        Only roots are selected (executions that no workflow started), and only those to which the
        action can be done: `cancel` selects only executions that were not asked to end before. Some
        hundred at a time are changed in one transaction; executions that start meanwhile are not
        selected.

        - `query`: a filter, such as `"status:failed attr.customer=acme"`; see `docs/search.md`.
        - `attributes`: plain values that an execution must have.
        - `all`: must be True to select every execution; without any condition `ValueError` is
          raised.
        - `dry_run`: only count the executions; those that cannot be retried are `refused`.
        - `from_start`: only to retry; they begin at the beginning, on the current version.
        - `scope`: only executions whose name matches one of the patterns, whatever else is given.
        - `on_progress`: called after each transaction, with the number of executions handled so far
          and the number that matched in the beginning.
        """
        if from_start and action != "retry":
            raise ValueError(f"from_start is for retry, not for {action}")
        if action not in MEANT:
            raise ValueError(f"the action is one of {', '.join(MEANT)}, not {action!r:.80}")
        meant = Meant(workflow, status, queue, created_before, created_after, attributes)
        selection = selection_of(self._context, query, meant, scope, indexed=False)
        anything = not selection.filter.terms and not meant.given
        selection = _selected(action, selection)
        why, actor = valid_text(reason, "reason"), acting(by)
        count, now = self._store.operating.count(selection)
        most = count if limit is None else min(count, at_least(limit, 1, "limit"))
        if not all and anything:
            raise ValueError(
                "say which executions are meant: give a filter, a workflow, a status or the like, "
                "or all=True"
            )
        if dry_run and action != "retry":  # the selection itself says whether they can be done to
            return BulkView(most)
        done = self._all_of(
            selection.replace(before=now + 1),
            limit,
            (lambda ids: self._not_retryable(ids, from_start))
            if dry_run
            else (lambda ids: self._act(action, ids, why, actor, from_start)),
            lambda done: on_progress(done, most) if on_progress else None,
        )
        return done.replace(changed=0) if dry_run else done

    def _all_of(
        self,
        selection: Selection,
        limit: int | None,
        act: Callable[[Sequence[str]], dict[str, str]],
        report: Callable[[int], None],
    ) -> BulkView:
        matched, changed, reasons, after = 0, 0, dict[str, str](), BEFORE_ALL
        while page := self._store.operating.select(
            selection, after, AT_ONCE if limit is None else min(AT_ONCE, limit - matched)
        ):
            refusals = act([id for _, id in page])
            matched += len(page)
            changed += len(page) - len(refusals)
            after = page[-1]
            reasons |= dict(list(refusals.items())[: MAX_REASONS - len(reasons)])
            self._context.wake()
            report(matched)
            if matched == limit:
                break
        return BulkView(matched, changed, matched - changed, reasons)

    def _not_retryable(self, ids: Sequence[str], from_start: bool) -> dict[str, str]:
        """Returns why a retry of these executions would be refused, by id."""
        refusals = {id: why_refused(self._context, self._workflows, id, from_start) for id in ids}
        return {id: why for id, why in refusals.items() if why}

    def _act(
        self, action: Action, ids: Sequence[str], reason: str, actor: Actor, from_start: bool
    ) -> dict[str, str]:
        """Does the action to these executions.

        Returns the reason for each that was not changed, by id.
        """
        match action:
            case "retry":
                return {id: why for id in ids if (why := self._retried(id, actor, from_start))}
            case "pause":
                done = self._store.people.pause(ids, reason=reason, actor=actor)
            case "resume":
                done = self._store.people.resume(ids, reason=reason, actor=actor)
            case "cancel":
                done = self._store.executions.cancel(ids, actor)
            case "terminate":
                done = self._store.executions.terminate(ids, actor)
            case _:
                assert_never(action)
        return {id: "it is no longer as it was when it was found" for id in ids if not done.get(id)}

    def _retried(self, id: str, actor: Actor, from_start: bool) -> str:
        """Retries one execution. Returns why it was not retried, or an empty text if it was."""
        try:
            handle = self._executions.retry(id, from_start=from_start, by=actor)
        except REFUSALS as refusal:
            return str(refusal)
        return "" if handle.created else f"a retry of it is under way: {handle.id}"


def _selected(action: str, selection: Selection) -> Selection:
    """Returns those of the selected executions to which the action can be done.

    Raises `ValueError` if the filter asks for statuses to which it cannot.
    """
    meant = MEANT[action]
    statuses = meant.filter.terms[0].values
    asked = selection.filter.of("status")
    terms = selection.filter.terms
    if asked is None:
        terms = (*meant.filter.terms, *terms)
    elif others := [status for status in asked.values if status not in statuses]:
        raise ValueError(
            f"status is one of {', '.join(statuses)} to {action} what has it, not {others[0]!r:.80}"
        )
    restricted = {name: getattr(meant, name) for name in RESTRICTIONS}
    return selection.replace(filter=ExecutionFilter(terms), **restricted)
