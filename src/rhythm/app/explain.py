"""Why an execution does not go on: what it waits for, since when, and the command that would help.

It only reads. The texts are for people; programs should use the statuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING, Any

from rhythm.app.views import as_json, moment, moment_of, queue_view, worker_view
from rhythm.engine.inputs import needed
from rhythm.engine.payload import load
from rhythm.engine.recheck import is_due, snapshot_of, waits_of
from rhythm.ids import child_id
from rhythm.ir.awaiting import KINDS
from rhythm.ir.program import Program
from rhythm.permissions import Scope, within
from rhythm.record import Record
from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.interfaces.executions import Execution, Reach
from rhythm.store.interfaces.operating import Standing
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Needed
from rhythm.store.lifecycle import CLAIMED, DELAYED, TASK

if TYPE_CHECKING:
    from rhythm.lang.source import Source

MAX_DEPTH = 5  # levels of children that are looked at
MAX_WAITS = 10  # awaited things that are shown for one execution
MAX_ASKED_EXECUTIONS = 100  # executions that are looked at in all
ERROR_CHARACTERS = 200  # of the error of an attempt
# how much of a family is read to see whether a retry would be refused
GLANCE = Reach(1000, 1024 * 1024)


class Reason(Record):
    """A reason why an execution does not go on.

    It says since when, until when if it ends by itself (`until`), or when it begins (`at`), and
    what somebody can do about it.
    """

    what: str
    since: datetime | None = None
    until: datetime | None = None
    commands: tuple[str, ...] = ()
    at: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class WhyView(Record):
    """Why an execution does not go on.

    `place` shows the line of the source at which the execution is, or has failed, with a caret; it
    is empty if there is no such line.
    """

    id: str
    name: str
    status: str
    reasons: tuple[Reason, ...]
    place: str = ""

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


def explain(store: Store, row: Execution, program: Program | None, scope: Scope = None) -> WhyView:
    """Returns why an execution does not go on.

    `program` is that of a workflow, in its own version. Queues outside the `scope` are described
    only by whether they are served or paused.
    """
    reasons = tuple(_Asked(store, scope).about(row))
    return WhyView(row.id, row.name, row.status, reasons, _place(store, row, program))


def retry_refusal(store: Store, id: str) -> str | None:
    """Returns why a retry would be refused; None if it would not be.

    None is also returned if finding out would take too long, and an empty text if the snapshot
    cannot be read.
    """
    from rhythm.engine.retry_plan import retried
    from rhythm.errors import InvalidProgram, NotRetryable, RetryTooLarge

    try:
        retried(store.executions.family(id, GLANCE), id, GLANCE)
    except RetryTooLarge:
        return None
    except NotRetryable as refusal:
        return str(refusal)
    except InvalidProgram:
        return ""
    return None


class _Asked:
    """Answers from the database for one explanation; queues and workers are read once."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.store, self.scope, self.asked = store, scope, 0

    @cached_property
    def queues(self) -> dict[str, Any]:
        return {queue.name: queue_view(queue) for queue in self.store.workers.queues()}

    @cached_property
    def workers(self) -> dict[str, Any]:
        return {worker.worker: worker_view(worker) for worker in self.store.workers.seen()}

    def about(self, row: Execution, depth: int = 0) -> Iterator[Reason]:
        """Yields the reasons why an execution does not go on, and those of its awaited children."""
        self.asked += 1
        if row.finished_at is not None:
            yield self.ended(row)
            return
        if row.cancel_requested_at is not None:
            yield Reason(
                "it was asked to end, and has not finished that",
                moment(row.cancel_requested_at),
                None,
                (_rhythm("terminate", row.id),),
            )
        if row.paused_at is not None:
            yield _held(row)
        yield from self.over_limit(row)
        standing = self.store.operating.standing([row.id]).get(row.id)
        if row.type == TASK:
            yield self.task(row, standing)
        elif standing is not None and self.due(row, standing):
            yield self.queued(standing, "it")
        else:
            yield from self.awaited(row, standing, depth)

    def over_limit(self, row: Execution) -> Iterator[Reason]:
        """Yields that the execution fails, and is not through with its `finally` blocks yet."""
        loaded = self.store.turns.load([row.id]) if row.type != TASK else ()
        snapshot = snapshot_of(loaded[0]) if loaded else None
        if snapshot is not None and snapshot.limit:
            said = snapshot.limit["error"]["message"]
            yield Reason(
                f"it is over a limit, and runs its `finally` blocks before it fails: {said}"
            )

    def due(self, row: Execution, standing: Standing) -> bool:
        """Tells whether the worker that claims this workflow takes a turn of it.

        If not, the worker only checks it, and the reasons are what the workflow awaits.
        """
        loaded = self.store.turns.load([row.id])
        snapshot = snapshot_of(loaded[0]) if loaded else None
        if (
            snapshot is None
            or snapshot.awaiting is None
            or (loaded[0].owned != "[]" and standing.state != CLAIMED)
        ):
            return True
        outcomes = self.store.turns.outcomes([needed(row.id, snapshot)], brief=True)
        return is_due(
            loaded[0], snapshot, outcomes.get(row.id, ()), self.store.messages.mailed(row.id)
        )

    def ended(self, row: Execution) -> Reason:
        """Returns how the execution ended, with the command to retry it if that is possible."""
        said = f": {load(row.error)['message']}" if row.error else ""
        was = "was " if row.status in ("cancelled", "blocked") else ""
        retries = [retry.id for retry in self.store.executions.retries(row.id)]
        retried = f"; it was retried as {retries[-1]}" if retries else ""
        ended = row.status in ("failed", "cancelled") and row.parent_id is None and not retries
        what = f"it has ended: it {was}{row.status}{said}{retried}"
        return Reason(
            what, moment_of(row.finished_at), None, (self.retry(row.id),) if ended else ()
        )

    def retry(self, id: str) -> str:
        """Returns the command that retries an execution: from its start if only that works."""
        again = _rhythm("retry", id)
        return again if retry_refusal(self.store, id) is None else f"{again} --from-start"

    def queued(self, standing: Standing, who: str) -> Reason:
        """Returns the reason for something that a worker must claim, or has claimed."""
        since = moment(standing.since)
        if standing.state == DELAYED:
            return Reason(f"{who} is to begin later", since, at=moment_of(standing.due_at))
        if standing.state == CLAIMED:
            return Reason(f"{who} is with {self.worker(standing)}", since)
        queue = self.queues.get(standing.queue)
        name = standing.queue
        visible = within(self.scope, name)
        if queue is not None and queue.paused_at is not None:
            said = f": {queue.paused_reason}" if queue.paused_reason and visible else ""
            who_paused = f" by {queue.paused_by}" if queue.paused_by and visible else ""
            commands = (_rhythm("queue", "resume", name),) if visible else ()
            return Reason(
                f"{who} is in the queue `{name}`, which was paused{who_paused}{said}",
                since,
                None,
                commands,
            )
        serving = (
            sum(worker.state == "live" for worker in self.workers.values())
            if name == SYSTEM_QUEUE
            else queue.workers
            if queue
            else 0
        )
        if not serving:
            where = (
                "no worker is there"
                if name == SYSTEM_QUEUE
                else f"no worker serves the queue `{name}`"
            )
            return Reason(f"{who} is ready, and {where}", since, None, _serving(name))
        before = f", with {queue.ready - 1:,} others" if queue and queue.ready > 1 else ""
        return Reason(
            f"{who} is ready in the queue `{name}`"
            + (f"{before}; {_workers(serving)}" if visible else ""),
            since,
        )

    def worker(self, standing: Standing | None) -> str:
        """Returns words for the worker that has the claim. Outside of the scope it is not named."""
        if standing is not None and not within(self.scope, standing.queue):
            return "a worker"
        name = standing.worker if standing else None
        seen = self.workers.get(name or "")
        if seen is None:
            return f"worker {name}, which has left; others take over when its claim expires"
        dead = (
            f", which has not been heard of for {seen.silent_s:.0f} s: others take over"
            if seen.state == "dead"
            else ""
        )
        return f"worker {name}{dead}"

    def task(self, row: Execution, standing: Standing | None, who: str = "it") -> Reason:
        """Returns the reason for a task that has not ended; `who` names it in the text."""
        attempts = (
            f"attempt {row.attempt} of {row.max_attempts}"
            if row.max_attempts > 1 and row.attempt
            else ""
        )
        if standing is None:
            return Reason(f"{who} has not been queued yet", moment(row.created_at))
        if standing.state == DELAYED and row.attempt:
            failed = f"{who} failed in {attempts or 'its attempt'}{self.last_error(row)}"
            return Reason(f"{failed}, and is tried again", at=moment_of(standing.due_at))
        if standing.state == DELAYED:
            return Reason(
                f"{who} is not known to the worker that took it: it was put back, and is "
                "tried again",
                commands=_serving(standing.queue),
                at=moment_of(standing.due_at),
            )
        found = self.queued(standing, who)
        return found.replace(what=f"{found.what}, {attempts}") if attempts else found

    def last_error(self, row: Execution) -> str:
        """Returns the error of the last attempt at a task, in brackets; empty if there is none."""
        errors = [load(each.error) for each in self.store.reading.history(row.id) if each.error]
        return f" ({_brief(errors[-1]['message'], row.name)})" if errors else ""

    def awaited(self, row: Execution, standing: Standing | None, depth: int) -> Iterator[Reason]:
        """Yields a reason for each thing that the workflow awaits and that has not happened."""
        awaited = waits_of(load(row.awaiting))
        outcomes = (
            self.store.turns.outcomes(
                [Needed(row.id, [leaf["n"] for leaf in awaited])], brief=True
            )[row.id]
            if awaited
            else []
        )
        ended = {outcome.n for outcome in outcomes}
        open_ = [leaf for leaf in awaited if leaf["n"] not in ended]
        if not open_ and row.paused_at is None:
            yield Reason(
                (
                    "nothing: what it waited for has come; `rhythm doctor` tells whether that "
                    "is a mistake"
                ),
                moment_of(row.turned_at),
            )
        children = self.store.reading.get(
            [child_id(row.id, leaf["n"]) for leaf in open_[:MAX_WAITS]]
        )
        standings = self.store.operating.standing(list(children))
        due = self.store.reading.due(row.id)
        for leaf in open_[:MAX_WAITS]:
            id = child_id(row.id, leaf["n"])
            yield from self.leaf(
                row, leaf, standing, children.get(id), standings.get(id), due, depth
            )
        if len(open_) > MAX_WAITS:
            yield Reason(f"{len(open_) - MAX_WAITS:,} more things that it waits for")

    def leaf(
        self,
        row: Execution,
        leaf: Mapping[str, Any],
        standing: Standing | None,
        child: Execution | None,
        place: Standing | None,
        due: Mapping[int, int],
        depth: int,
    ) -> Iterator[Reason]:
        """Yields the reasons for one awaited thing: a task, a child with its own reasons, or
        others."""
        since, until = moment_of(row.turned_at), moment_of(due.get(leaf["n"]))
        id = child_id(row.id, leaf["n"])
        if child is not None and child.type == TASK:
            yield self.task(child, place, f"task `{child.name}` ({id})")
        elif child is not None:
            yield Reason(
                f"it waits for {child.name} ({id}), which is {child.status}",
                moment(child.created_at),
                None,
                (_rhythm("why", id),),
            )
            yield from (
                self.about(child, depth + 1)
                if depth < MAX_DEPTH and self.asked < MAX_ASKED_EXECUTIONS
                else ()
            )
        else:
            yield self.alone(row, leaf, standing, since, until)

    def alone(
        self,
        row: Execution,
        leaf: Mapping[str, Any],
        standing: Standing | None,
        since: datetime | None,
        until: datetime | None,
    ) -> Reason:
        """Returns the reason for something awaited that has no row of its own as an execution."""
        name, id = str(leaf.get("name") or ""), child_id(row.id, leaf["n"])
        match KINDS[leaf["op"]].row:
            case "mailbox":
                send = _rhythm("signal", row.id, name, "JSON")
                return Reason(f"it waits for the signal `{name}`", since, until, (send,))
            case "wait":
                return self.event(row, leaf["n"], since)
            case "approval":
                return self.approval(id, since)
            case "timer":
                return Reason("it sleeps", since, until)
            case "task":
                return Reason(f"task `{name}` is run by {self.worker(standing)}", since)
            case "execution" | "none":
                return Reason(f"it waits for {leaf['op']} {name or id}", since, until)

    def event(self, row: Execution, n: int, since: datetime | None) -> Reason:
        """Returns the reason for a wait for an event, with what the event must have."""
        wait = next((wait for wait in self.store.messages.waits(row.id) if wait.n == n), None)
        if wait is None:
            return Reason("it waits for an event", since)
        wanted = "" if wait.wanted == "{}" else f" with {wait.wanted}"
        until = (
            None
            if wait.timeout_s is None or row.turned_at is None
            else moment(row.turned_at + int(wait.timeout_s * 1e6))
        )
        return Reason(
            f"it waits for the event `{wait.type}`{wanted}",
            since,
            until,
            (_rhythm("publish", wait.type, "JSON"),),
        )

    def approval(self, id: str, since: datetime | None) -> Reason:
        """Returns the reason for an open approval, with the commands to decide it."""
        found = self.store.people.approval(id)
        if found is None:
            return Reason("it waits for an approval", since)
        # whoever started it may not decide: so it is said who does
        decided = tuple(f"{_rhythm(act, id)} --by NAME" for act in ("approve", "reject"))
        asked = f": {found.reason}" if found.reason else ""
        return Reason(
            f"it waits for somebody with the role `{found.role}` to decide{asked}",
            since,
            moment_of(found.deadline_at),
            decided,
        )


def _held(row: Execution) -> Reason:
    who = f" by {row.paused_by}" if row.paused_by else ""
    why = f": {row.paused_reason}" if row.paused_reason else ""
    return Reason(
        f"it was paused{who}{why}",
        moment_of(row.paused_at),
        moment_of(row.paused_until),
        (_rhythm("resume", row.id),),
    )


def _serving(queue: str) -> tuple[str, ...]:
    """Returns the commands that start a worker for a queue."""
    if queue in (SYSTEM_QUEUE, "default"):
        return "rhythm dev", "rhythm worker --app FILE"
    return (f"rhythm worker --app FILE --queues {quote(queue)}",)


def _brief(message: str, task: str) -> str:
    """Returns the message of a task's error in one line, cut short, without the task's name."""
    said = " ".join(message.removeprefix(f"task `{task}` failed: ").split())
    return said if len(said) <= ERROR_CHARACTERS else f"{said[:ERROR_CHARACTERS]}…"


def _workers(count: int) -> str:
    return "one worker serves it" if count == 1 else f"{count:,} workers serve it"


def _rhythm(*words: str) -> str:
    return f"rhythm {' '.join(map(quote, words))}"


def _place(store: Store, row: Execution, program: Program | None) -> str:
    """Returns the source line at which a workflow is, or has failed, with a caret.

    Returns an empty text if it is at none.
    """
    from rhythm.lang.source import Diagnostic, Source, render

    definition = store.definitions.get(row.name, row.version) if program is not None else None
    if program is None or definition is None:
        return ""
    source = Source(definition.file or definition.name, definition.source)
    at = _failed_at(row, source) if row.finished_at is not None else _is_at(row, program)
    if at is None:
        return ""
    rendered = render(source, Diagnostic("", "", "", at, at + 1))
    return rendered.partition("\n")[2]


def _is_at(row: Execution, program: Program) -> int | None:
    """Returns where in its source a workflow that has not ended is; None if it is nowhere."""
    if row.started_at is None or not 0 <= row.statement < len(program.code):
        return None
    at: int = getattr(program.code[row.statement], "at", 0)
    return at


def _failed_at(row: Execution, source: Source) -> int | None:
    """Returns where in its source a workflow has failed; None if that is not known."""
    at = load(row.error).get("at") if row.error else None
    return source.offset(*at) if at else None
