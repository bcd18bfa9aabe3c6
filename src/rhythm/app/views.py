"""What callers see and give: executions, pages of them, steps of a trace, and requests to start
something."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

from rhythm.engine.payload import load
from rhythm.errors import ExecutionFailed
from rhythm.ids import child_id
from rhythm.ir.awaiting import rows_of
from rhythm.ir.program import Program
from rhythm.ir.step_ids import steps_at
from rhythm.record import Record
from rhythm.schedule_times import EPOCH, us_of
from rhythm.store import reading
from rhythm.store.interfaces.definitions import Listed
from rhythm.store.interfaces.executions import Execution
from rhythm.store.interfaces.reading import CUT_CHARACTERS, LARGE_COLUMNS
from rhythm.store.interfaces.workers import Queue, SeenWorker
from rhythm.store.lifecycle import STATUS_NAMES, TASK
from rhythm.store.reading import Alike, Moment

T = TypeVar("T", covariant=True)
TYPES = ("workflow", "task")
LARGE_FIELDS = tuple(LARGE_COLUMNS)  # fields of an execution that a list leaves out
LONGEST_ESCAPE = 6  # characters of the longest escape in JSON
MESSAGE_CHARACTERS = 1000  # characters of an error's message in a list
BEGINNING = re.compile(
    r'\{"code": ?"((?:[^"\\]|\\.)*)", ?"message": ?"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)'
)
EARLIEST_US = us_of(datetime.min.replace(tzinfo=UTC))
LATEST_US = us_of(datetime.max.replace(tzinfo=UTC))


class Start(Record):
    """A request to start one of many workflows or tasks, where the inputs alone are not enough."""

    inputs: Any = None
    id: str | None = None
    idempotency_key: str | None = None
    queue: str | None = None
    priority: int = 0
    delay: float | str | None = None
    attributes: Mapping[str, Any] | None = None


class ExecutionView(Record):
    """An execution, as it was when it was read. Times are in UTC."""

    id: str
    type: str  # workflow or task
    name: str
    status: str  # pending, running, suspended, paused, completed, failed, cancelled, blocked
    inputs: Any
    result: Any
    error: dict[str, Any] | None  # code, message, data
    version: str
    queue: str
    parent_id: str | None
    root_id: str
    retry_of: str | None
    attempt: int
    max_attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    paused_at: datetime | None
    awaiting: Any  # what it waits for, as in its snapshot
    attributes: dict[str, Any]
    paused_reason: str = ""  # approval_required, event, or the reason of the actor who paused it
    paused_by: str = ""
    paused_until: datetime | None = None
    paused_manually: bool = False  # somebody paused it: it takes no turn until it is resumed
    started_by: str | None = None
    paused_metadata: Any = None  # what the actor gave with the pause

    @property
    def ended(self) -> bool:
        """Whether the execution has ended."""
        return self.finished_at is not None

    def value(self) -> Any:
        """Returns the result of an execution that has ended.

        Raises `ExecutionFailed` if it ended without one.
        """
        if self.error is not None:
            raise ExecutionFailed(self.id, self.status, self.error)
        return self.result

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class PageOf(Record, Sequence[T]):
    """One page of a list: a sequence of its items (`page[0]`, `len(page)`, `for item in page`).

    It is not the whole list: `cursor` asks for the next page; None means that there are no more.
    """

    items: tuple[T, ...]
    cursor: str | None = None

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[T, ...]: ...
    def __getitem__(self, position: int | slice) -> T | tuple[T, ...]:
        return self.items[position]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Page(PageOf[ExecutionView]):
    """One page of executions, newest first: a sequence of them (`app.list()[0]`).

    `cursor` asks for the next page; None means that there are no more. `ordered_by` is "created",
    or "finished" for a filter by the time of their ends.
    """

    ordered_by: str = "created"


class WorkflowView(Record):
    """A workflow in its current version.

    `inputs` are those that it declares, as JSON Schema; None if anything may be given.
    """

    name: str
    version: str
    language: str
    file: str
    registered_at: datetime
    inputs: dict[str, Any] | None


class SourceView(Record):
    """The text of a version of a workflow.

    `file` is the file from which it was registered; empty if it was registered as a text.
    """

    name: str
    file: str
    text: str

    @property
    def own(self) -> str:
        """The text without the empty lines before a Python function.

        They stand for what comes before it in its file, so that its lines have their numbers.
        """
        return self.text.lstrip("\n")


class TraceStep(Record):
    """Something that happened in an execution or below it."""

    at: datetime
    execution_id: str
    # started, attempt failed, attempt crashed (its worker died), resumed, signal, vote, completed,
    # failed, cancelled, blocked, or the reason for a turn
    what: str
    name: str  # of the workflow or task
    line: int | None = None  # in the workflow's source; only for turns
    # Inputs, result or error; for a resume, what let it go on; for a signal its name and payload;
    # for a vote, which did not end its approval, who decided what.
    detail: Any = None
    worker: str = ""
    attempt: int = 0  # of a task that has ended, or of an attempt that is over
    took_s: float | None = None  # of what has ended: since its first attempt began
    # The id of the step where a workflow was after its turn: that of JSON steps, else the call and
    # its line, such as `charge:12`.
    step: str | None = None


class AlikeView(Record):
    """Executions below another one that have the same name and are equally deep."""

    name: str
    type: str  # workflow or task
    depth: int  # below the other one: 1 for its children
    count: int
    completed: int
    failed: int
    ended: int
    first_at: datetime  # when the first one was created
    last_at: datetime | None  # when the last one of those that have ended has ended
    slowest_id: str
    slowest_s: float | None  # None: none of them has ended
    first_failed: str | None


class TracePage(PageOf[TraceStep]):
    """One page of what has happened, in order of time: a sequence of its steps.

    `cursor` asks for the next page; None means that there is no more. `cursors` has, for each step,
    the cursor of a page that begins after it.
    """

    cursors: tuple[str, ...] = ()


class WorkerView(Record):
    """A worker, as it was at its last heartbeat."""

    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int  # tasks that it runs at once, at most
    running: int  # tasks that it ran at its last beat
    claims: int  # executions that it owns now
    # live, draining (it is being stopped) or dead (silent for too long: others take over its work)
    state: str
    started_at: datetime
    beat_at: datetime
    silent_s: float  # since its last beat, on the database's clock
    version: str  # of Rhythm

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class QueueView(Record):
    """What is in a queue.

    A task that the owner of its workflow runs itself is in no queue.
    """

    name: str
    ready: int  # ready to be claimed now
    oldest_s: float | None  # how long the oldest ready work has waited
    delayed: int  # due later
    running: int
    expired: int  # claimed by workers that are gone; others take it over
    workers: int  # live workers that serve it
    paused_at: datetime | None = None
    paused_by: str = ""
    paused_reason: str = ""

    @property
    def unserved(self) -> bool:
        """Whether there is work, and no worker that serves the queue."""
        return self.workers == 0 and self.ready + self.delayed + self.expired > 0

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


def worker_view(seen: SeenWorker) -> WorkerView:
    """Returns a worker as callers see it."""
    silent_s = max(0.0, (seen.now - seen.beat_at) / 1e6)
    return WorkerView(
        seen.worker,
        seen.host,
        seen.pid,
        seen.queues,
        seen.concurrency,
        seen.running,
        seen.claims,
        "dead" if silent_s >= seen.dead_after_s else "draining" if seen.draining else "live",
        moment(seen.started_at),
        moment(seen.beat_at),
        silent_s,
        seen.version,
    )


def queue_view(queue: Queue) -> QueueView:
    """Returns a queue as callers see it."""
    oldest_s = None if queue.oldest_at is None else max(0.0, (queue.now - queue.oldest_at) / 1e6)
    return QueueView(
        queue.name,
        queue.ready,
        oldest_s,
        queue.delayed,
        queue.claimed - queue.expired,
        queue.expired,
        queue.workers,
        moment_of(queue.paused_at),
        queue.paused_by,
        queue.paused_reason,
    )


def brief_view(row: Execution) -> ExecutionView:
    """Returns an execution as a list shows it.

    Of texts that may be large only the beginning was read; the view says where something was cut.
    """
    error, attributes, reason = row.error, row.attributes, row.paused_reason
    if error is not None and len(error) > CUT_CHARACTERS["error"]:
        error = json.dumps(cut_error(error))
    if len(attributes) > CUT_CHARACTERS["attributes"]:
        attributes = json.dumps({"…": "there are more than a list shows: get the execution"})
    if reason is not None and len(reason) > CUT_CHARACTERS["paused_reason"]:
        reason = f"{reason[:-1]}…"
    return view(row.replace(error=error, attributes=attributes, paused_reason=reason)).replace(
        awaiting=None
    )


def cut_error(text: str) -> dict[str, Any]:
    """Returns an error made from the beginning of its JSON text.

    It has as much of the code and message as can be read, and `"cut": true`.
    """
    found = BEGINNING.match(text)
    code, message = (_unescaped(part) for part in found.groups()) if found else ("", "")
    whole = (
        found is not None
        and found.end() < len(text) - LONGEST_ESCAPE
        and len(message) <= MESSAGE_CHARACTERS
    )
    return {
        "code": code,
        "message": message if whole else f"{message[:MESSAGE_CHARACTERS]}…",
        "data": None,
        "cut": True,
    }


def _unescaped(part: str) -> str:
    """Returns the text between the quotes of a JSON text, whose last escape may be cut off."""
    with suppress(ValueError):
        return str(json.loads(f'"{part}"'))
    return part


def view(row: Execution) -> ExecutionView:
    """Returns an execution as callers see it."""
    return ExecutionView(
        id=row.id,
        type=TYPES[row.type],
        name=row.name,
        status=row.status,
        inputs=load(row.inputs),
        result=load(row.result) if row.result else None,
        error=load(row.error) if row.error else None,
        version=row.version,
        queue=row.queue,
        parent_id=row.parent_id,
        root_id=row.root_id,
        retry_of=row.retry_of,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        created_at=moment(row.created_at),
        started_at=moment_of(row.started_at),
        finished_at=moment_of(row.finished_at),
        cancel_requested_at=moment_of(row.cancel_requested_at),
        paused_at=paused_at(row),
        awaiting=load(row.awaiting),
        attributes=load(row.attributes),
        paused_reason=paused_reason(row),
        paused_by=(row.paused_at and row.paused_by) or "",
        paused_until=moment_of(row.paused_until),
        paused_manually=row.paused_at is not None,
        started_by=row.started_by,
        paused_metadata=metadata_of(row),
    )


def metadata_of(row: Execution) -> Any:
    """Returns what was given with the pause of an execution; None if it is not paused."""
    return load(row.paused_metadata) if row.paused_metadata and row.status == "paused" else None


def paused_at(row: Execution) -> datetime | None:
    """Returns since when an execution is paused; None if it is not.

    Somebody paused it, or its last turn did, which asked for a decision or an event.
    """
    if row.status != "paused":
        return None
    return moment_of(row.paused_at if row.paused_at is not None else row.turned_at)


def paused_reason(row: Execution) -> str:
    """Returns why an execution is paused; empty if it is not."""
    if row.status != "paused":
        return ""
    if row.paused_at is not None:
        return row.paused_reason or "manual"
    return "approval_required" if "approval" in rows_of(load(row.awaiting)) else "event"


def workflow_view(listed: Listed) -> WorkflowView:
    """Returns a registered workflow as callers see it."""
    return WorkflowView(
        listed.name,
        listed.version,
        listed.language,
        listed.file,
        moment(listed.registered_at),
        None if listed.inputs is None else load(listed.inputs),
    )


def step(moment_: Moment, program: Program | None) -> TraceStep:
    """Returns a step of a trace as callers see it.

    `program` is that of the workflow whose turn it was.
    """
    at = moment(moment_.place.at)
    id = moment_.place.id
    detail = load(moment_.detail) if moment_.detail else None
    match moment_.place.kind:
        case reading.STARTED:
            return TraceStep(at, id, "started", moment_.name, detail=detail)
        case reading.ENDED:
            began_us = moment_.began_at
            took_s = None if began_us is None else (moment_.place.at - began_us) / 1e6
            status, attempt = STATUS_NAMES[moment_.status], moment_.attempt
            return TraceStep(
                at, id, status, moment_.name, None, detail, moment_.worker, attempt, took_s
            )
        case reading.TURN:
            line, at_step = None, None
            if moment_.type != TASK and program is not None:
                line = line_of(program, moment_.statement)
                at_step, _ = steps_at(program, moment_.statement)
            who, attempt = moment_.worker, moment_.attempt
            return TraceStep(
                at, id, moment_.what, moment_.name, line, detail, who, attempt, step=at_step
            )
        case reading.SIGNAL:
            signal = {"name": moment_.what, "payload": detail}
            return TraceStep(at, id, "signal", moment_.name, detail=signal)
        case reading.VOTE:
            approval = child_id(id, moment_.place.n // reading.VOTES)
            vote = {
                "approval": approval,
                "decision": moment_.what,
                "by": moment_.by_id,
                "comment": moment_.reason,
            }
            return TraceStep(at, id, "vote", moment_.name, detail=vote)
    how = {
        "triggered_by": moment_.what,
        "triggered_by_id": moment_.by_id,
        "data": detail,
        "reason": moment_.reason,
    }
    return TraceStep(at, id, "resumed", moment_.name, detail=how)


def alike_view(some: Alike) -> AlikeView:
    """Returns executions that are alike as callers see them."""
    slowest_s = None if some.slowest_us is None else some.slowest_us / 1e6
    return AlikeView(
        some.name,
        TYPES[some.type],
        some.depth,
        some.count,
        some.completed,
        some.failed,
        some.ended,
        moment(some.first_at),
        moment_of(some.last_at),
        some.slowest_id,
        slowest_s,
        some.first_failed,
    )


def line_of(program: Program | None, statement: int) -> int | None:
    """Returns the line of a statement in a workflow's source; None if it is not known."""
    known = program is not None and 0 <= statement < len(program.code)
    return (
        program.position(getattr(program.code[statement], "at", 0))[0]
        if program and known
        else None
    )


def moment(us: int) -> datetime:
    """Returns a time of a row as a datetime, limited to the range that a datetime can hold.

    So one row with an impossible time does not make all others unreadable.
    """
    return EPOCH + timedelta(microseconds=min(max(us, EARLIEST_US), LATEST_US))


def moment_of(us: int | None) -> datetime | None:
    """Like `moment`; None stays None."""
    return None if us is None else moment(us)


def as_json(record: Record) -> dict[str, Any]:
    """Returns the fields of a view as JSON values; times as ISO 8601."""
    return {name: plain(getattr(record, name)) for name in record._fields}


def plain(value: Any) -> Any:
    """Returns a field of a view as a JSON value."""
    if isinstance(value, tuple):
        return [as_json(item) if isinstance(item, Record) else item for item in value]
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
