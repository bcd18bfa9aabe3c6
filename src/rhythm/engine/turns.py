"""Between a loaded workflow and its committed turn: plain functions over values.

`inputs_of` makes the interpreter's inputs from rows, `plan` makes rows from what the interpreter answered. Nothing here does
I/O; the worker loads, calls these and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rhythm.engine.payload import dump_trusted, load
from rhythm.errors import UnknownWorkflow
from rhythm.ids import child_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.approvals import NewApproval
from rhythm.store.base import (
    APPROVAL,
    BLOCKED,
    CANCELLED,
    COMPLETED,
    EVENT,
    FAILED,
    PAUSED,
    SUSPENDED,
    TASK,
    WORKFLOW,
    ChildOutcome,
    Done,
    Loaded,
    Mail,
    Needed,
    NewEvent,
    NewExecution,
    NewSignal,
    NewTimer,
    NewWait,
    TurnCommit,
)
from rhythm.store.provenance import Provenance, load_authority
from rhythm.vm import commands as c
from rhythm.vm.builtins import parse_time, show_time
from rhythm.vm.interpreter import Blocked, Completed, Continue, Failed, Suspended, Turn
from rhythm.vm.machine import STARTED, Inputs, Outcome, Signal
from rhythm.vm.plans import Plan, fresh, has_signals, items_of, numbers
from rhythm.vm.snapshot import Snapshot, encode_snapshot, pack

OWNED_AT_ONCE = 10  # tasks of one await: each end is a commit of its workflow, which for more of them the queue does cheaper
TIMED = ("sleep", "signal", "event")  # operations whose timer, or wait for an event, is forgotten when it is over

Programs = Callable[[str, str | None], Program | None]  # by name and version; the current one if none is named. May raise UnknownWorkflow


# from rows to the interpreter's inputs


def needed(id: str, snapshot: Snapshot) -> Needed:
    """What must be read to know whether the workflow can go on: what it awaits, and what groups in the background hold back."""
    plan = snapshot.awaiting
    behind = [n for kept in snapshot.locals.get(STARTED, {}).values() if "concurrency" in kept for n in numbers(kept)]
    if plan is None:
        return Needed(id, tuple(behind))
    whole = plan["op"] == "all" and "first" in plan and not plan.get("need") and not plan.get("concurrency") and not behind
    return Needed(id, (*numbers(plan), *behind), whole, fails=not plan.get("settle"))


def inputs_of(loaded: Loaded, snapshot: Snapshot, outcomes: Iterable[ChildOutcome], mail: Iterable[Mail], seed: str, now_us: int) -> Inputs:
    """Everything a turn of the workflow may know."""
    ops, ended = dict(operations(snapshot.awaiting)), list(outcomes)
    need = needed(loaded.id, snapshot)
    undecided = need.whole and len(ended) < len(need.numbers)  # then the store has not told which have ended
    return Inputs(
        now=moment(now_us),
        seed=seed,
        inputs=load(loaded.inputs),
        ctx={
            "id": loaded.id, "workflow": loaded.name, "version": loaded.version, "started_at": moment(loaded.created_at), "attempt": 1,
            "parent_id": loaded.parent_id,
        },
        outcomes={outcome.n: outcome_of(loaded.id, loaded.name, outcome, ops.get(outcome.n, "")) for outcome in ended},
        asked=frozenset(() if undecided else need.numbers),
        signals=[Signal(m.id, m.name, load(m.payload), m.received_at / 1e6) for m in mail],
        cancel=loaded.ending,
        resume_data=resume_data(loaded),
        forbidden=forbidden(loaded.authority),
    )  # fmt: skip


def forbidden(authority: str | None) -> frozenset[str]:
    """What a workflow does to others, each of those who asked for it must have been allowed to do: an event reaches everybody, a signal
    somebody, and who that may be is looked at where it arrives."""
    asked = Provenance(authority=load_authority(authority))
    allowed = {"publish": asked.allows("execution:signal"), "send": asked.allows_some("execution:signal")}
    return frozenset(operation for operation, may in allowed.items() if not may)


def outcome_of(parent_id: str, parent_name: str, row: ChildOutcome, operation: str) -> Outcome:
    """How a child has ended, as its parent sees it."""
    ended_at = row.ended_at / 1e6
    if row.status == CANCELLED:
        return Outcome("cancelled", None, ended_at)
    if row.type is None:
        return Outcome("completed", None, ended_at)
    value = load(row.value)
    if row.type == APPROVAL:
        return Outcome("completed", {**value, "at": moment(row.ended_at)}, ended_at)
    if row.type == EVENT:
        return _event_outcome(row, value, ended_at)
    if row.status == COMPLETED:
        return Outcome("completed", value, ended_at)
    value = seen(value)
    if row.type == WORKFLOW:
        is_branch = row.name == parent_name and operation != "workflow"  # only a child awaited by its id can be taken for one
        child = f"a branch of `{row.name}`" if is_branch else f"`{row.name}`"
        value = _child_error(child_id(parent_id, row.n), child, value, row.status == BLOCKED)
    return Outcome("failed", value, ended_at)


def seen(error: dict[str, Any]) -> dict[str, Any]:
    """An error as workflows see it: without the lines of Python that are kept for people."""
    return {name: value for name, value in error.items() if name != "frames"}


def _child_error(id: str, child: str, error: dict[str, Any], blocked: bool) -> dict[str, Any]:
    """The error of a child workflow as its parent sees it; without the place in the child's text, which is of no use to it."""
    error.pop("at", None)
    data = {"id": id, "error": error}
    if error["code"] == "Timeout" and error["data"] == {"execution": id}:
        return {"code": "Timeout", "message": error["message"], "data": data}
    how = "was blocked" if blocked else "failed"
    return {"code": "ChildFailed", "message": f"{child} {how}: {error['message']}", "data": data}


def _event_outcome(row: ChildOutcome, value: Any, ended_at: float) -> Outcome:
    if row.status == COMPLETED:
        event = {"id": value["id"], "type": row.name, "data": value["data"], "at": moment(value["at"])}
        return Outcome("completed", event, ended_at)
    return Outcome("failed", {"code": "Timeout", "message": f"no event `{row.name}` came in time", "data": None}, ended_at)


def operations(plan: Plan | None) -> Iterator[tuple[int, str]]:
    """The operation behind each number of a plan."""
    if plan is not None and ("items" in plan or "first" in plan):
        for item in items_of(plan):
            yield from operations(item)
    elif plan is not None:
        yield plan["n"], plan["op"]


def _timeout(loaded: Loaded) -> dict[str, Any]:
    """The error of an execution whose time was over; its data lets its parent tell this from an error of its own making."""
    return {"code": "Timeout", "message": f"`{loaded.name}` took longer than it may", "data": {"execution": loaded.id}}


def moment(us: int) -> str:
    return show_time(datetime.fromtimestamp(us / 1e6, UTC))


# from the interpreter's answer to rows


class Step(Record):
    """A turn ready to commit, and what its workflow is then."""

    commit: TurnCommit
    snapshot: Snapshot
    size: int = 0  # of the snapshot, in bytes of JSON
    owned: Mapping[int, c.StartTask] = {}  # tasks that its holder runs itself
    look_again: bool = False  # what it awaits may have ended before this turn: load once more before parking


class Asking(Record):
    """How people are asked where a workflow does not say it."""

    timeout_s: float | None = 86_400.0  # None: as long as they like
    auto_escalate: bool = False  # when the time of one is over, the next is asked
    notify: str = ""  # the task that tells them


def status_of(plan: Plan | None) -> int:
    """Whoever waits for a person or an outside event is paused; else it waits for the system."""
    return PAUSED if plan is not None and _from_outside(plan) else SUSPENDED


def _from_outside(plan: Plan) -> bool:
    if "items" in plan:
        return any(map(_from_outside, plan["items"]))
    return (plan["of"] if "first" in plan else plan)["op"] in ("approval", "event")


def resumed(loaded: Loaded) -> int | None:
    """The last of what let it go on since its turn before."""
    pending = load(loaded.resumes) if loaded.resumes else []
    return max(id for id, _ in pending) if pending else None


def resume_data(loaded: Loaded) -> dict[str, Any] | None:
    """What was given with the resumes since its last turn, the later over the earlier."""
    pending = [load(data) for _, data in load(loaded.resumes)] if loaded.resumes else []
    given = [data for data in pending if isinstance(data, dict)]
    return {name: value for data in given for name, value in data.items()} if given else None


class Planner:
    """Turns the interpreter's answers into commits for the workflows of one worker."""

    def __init__(
        self, worker: str, programs: Programs, runs: Callable[[str, str], bool], attempts: Callable[[c.StartTask], int],
        queue_of: Callable[[str], str | None], reserve: Callable[[int], bool], only_queue: str | None = None,
        asking: Asking | None = None,
    ) -> None:  # fmt: skip
        """`runs`: whether this worker runs a task of this name and queue now; `queue_of`: the queue a task asks for itself;
        `reserve`: takes slots for so many, if there are; `only_queue`: where everything goes, whatever they say."""
        self.worker, self.programs, self.runs, self.attempts, self.queue_of = worker, programs, runs, attempts, queue_of
        self.reserve, self.only_queue, self.asking = reserve, only_queue, asking or Asking()

    def plan(self, loaded: Loaded, program: Program, before: Snapshot, turn: Turn, fence: int, wakes: int, done: tuple[Done, ...],
             owned: Mapping[int, c.StartTask], mail_read: bool = True) -> Step:  # fmt: skip
        """The commit for a turn that began at `before`, with the ends of the owned tasks that led to it.

        `mail_read`: whether the turn knew the mailbox; if not, the signal it waits for now may lie there already.
        """
        rows = _Rows(self, loaded, program, owned)
        for command in turn.commands:
            rows.add(command)
        base = TurnCommit(loaded.id, loaded.seq, fence, wakes, "park", self.worker, "turn", owned=None, resumed=resumed(loaded))
        if isinstance(turn, Completed):
            return Step(rows.on(base, done, end="finish", status=COMPLETED, value=dump_trusted(turn.result), cause="completed"), before)
        if isinstance(turn, Failed):
            late = turn.cancelled and loaded.timed_out and not loaded.cancel_requested
            status, cause = (CANCELLED, "cancelled") if turn.cancelled and not late else (FAILED, "failed")
            error = {**(_timeout(loaded) if late else turn.error), "at": list(program.position(turn.at))}
            return Step(rows.on(base, done, end="finish", status=status, value=dump_trusted(error), cause=cause), before)
        if isinstance(turn, Blocked):
            reason = dump_trusted({**turn.error, "at": list(program.position(turn.at))})
            return Step(rows.on(base, done, end="finish", status=BLOCKED, value=reason, cause="blocked"), before)
        assert isinstance(turn, Suspended | Continue)
        own = rows.own(turn.snapshot.awaiting)
        again = isinstance(turn, Continue) or bool(rows.refused) or any(n < before.next_child for n in _awaited(turn.snapshot))
        again = again or any(first <= n <= last for n in _awaited(turn.snapshot) for first, last in rows.cancels)
        again = again or (not mail_read and turn.snapshot.awaiting is not None and has_signals(turn.snapshot.awaiting))
        data = encode_snapshot(turn.snapshot)
        commit = rows.on(
            base,
            done,
            end="own" if own or again else "park",
            snapshot=pack(data),
            statement=turn.snapshot.statement_index,
            owned=dump_owned(own.values()),
            awaiting=dump_trusted(turn.snapshot.awaiting),
            status=status_of(turn.snapshot.awaiting),
            cause="continue" if isinstance(turn, Continue) else "turn",
            settled=_settled(before, turn.snapshot),
        )
        return Step(commit, turn.snapshot, len(data), own, again)

    def queue(self, loaded: Loaded, command: c.StartTask) -> str:
        """Where a task goes: what the call says, else the task itself, else its workflow."""
        return str(self.only_queue or command.options.get("queue") or self.queue_of(command.name) or loaded.queue)

    def runs_here(self, loaded: Loaded, command: c.StartTask) -> bool:
        return self.runs(command.name, self.queue(loaded, command))

    def task_row(self, loaded: Loaded, command: c.StartTask, attempt: int = 0, delay_s: float = 0.0, took_s: float = 0.0) -> NewExecution:
        """The row of a task that goes to the queue; `took_s`: how long it has been running before."""
        return NewExecution(
            child_id(loaded.id, command.n), TASK, command.name, self.queue(loaded, command), dump_trusted(command.inputs),
            priority=command.options.get("priority", loaded.priority), parent_id=loaded.id, child_no=command.n, root_id=loaded.root_id,
            max_attempts=self.attempts(command), attempt=attempt, options=dump_options(command), delay_s=delay_s, held=command.held,
            later_us=-int(took_s * 1e6),
        )  # fmt: skip

    def approval_row(self, loaded: Loaded, command: c.RequestApproval) -> NewApproval:
        """The row of an approval, with all that may follow: to whom it goes, how long each has, and who is told."""
        stages = _stages(command, self.asking)
        (role, timeout_s, on_deadline), others = stages[0], stages[1:]
        name = command.notify or self.asking.notify
        told = c.StartTask(0, name, None, {})
        notify = {"task": name, "queue": self.queue(loaded, told), "attempts": self.attempts(told)} if name else None
        return NewApproval(
            command.n, role, command.reason, dump_trusted(command.data), command.quorum, command.four_eyes, timeout_s, on_deadline,
            dump_trusted(others), dump_trusted(notify), command.held,
        )  # fmt: skip


def _stages(command: c.RequestApproval, asking: Asking) -> list[tuple[str, float | None, str]]:
    """Who is asked, for how long, and what follows when that time is over: the next one is asked, or nobody."""
    first = {"role": command.role, "timeout_s": command.timeout_s}
    asked = [first, *command.escalate]
    stages = []
    for stage, after in zip(asked, (*asked[1:], None), strict=True):
        own = stage.get("timeout_s")
        timeout_s = own if own is not None else command.timeout_s if command.timeout_s is not None else asking.timeout_s
        sooner = None if after is None else after.get("after_s")
        if sooner is not None and (timeout_s is None or sooner < timeout_s):
            stages.append((stage["role"], sooner, "escalate"))
        else:
            stages.append((stage["role"], timeout_s, "escalate" if after is not None and asking.auto_escalate else "expire"))
    return stages


class _Rows:
    """The rows that the commands of one turn ask for."""

    def __init__(self, planner: Planner, loaded: Loaded, program: Program, owned: Mapping[int, c.StartTask]) -> None:
        self.planner, self.loaded, self.program = planner, loaded, program
        self.tasks: dict[int, c.StartTask] = dict(owned)  # those that its holder may still run itself
        self.starts: list[NewExecution] = []
        self.refused: list[Done] = []
        self.timers: list[NewTimer] = []
        self.waits: list[NewWait] = []
        self.approvals: list[NewApproval] = []
        self.consumed: list[str] = []
        self.cancels: list[tuple[int, int]] = []
        self.releases: list[tuple[int, int]] = []
        self.signals: list[NewSignal] = []
        self.events: list[NewEvent] = []
        self.later_us = 0  # counts up with every event of this turn: events from before are not for a child that is started after them
        self.attributes: dict[str, Any] = {}
        self.programs: dict[tuple[str, str | None], Program | str] = {}

    def add(self, command: c.Command) -> None:
        match command:
            case c.StartTask() | c.StartWorkflow() if self._unsupported(command):
                self._refuse(command, {"code": "Unsupported", "message": self._unsupported(command), "data": None})
            case c.StartTask(n):
                self.tasks[n] = command
            case c.StartWorkflow():
                self._workflow(command)
            case c.StartBranch(n, branch, locals, held):
                snapshot = pack(encode_snapshot(Snapshot(self.program.branches[branch], locals)))
                self._child(n, self.program, self.loaded.inputs, {}, held, snapshot)
            case c.StartTimer(n, delay_s, until, held):
                at = None if until is None else int(parse_time(until).timestamp() * 1e6)
                self.timers.append(NewTimer(n, delay_s, at, held))
            case c.WaitEvent(n, type, where, timeout_s, held):
                self.waits.append(NewWait(n, type, dump_trusted(where), timeout_s, held))
            case c.RequestApproval():
                self.approvals.append(self.planner.approval_row(self.loaded, command))
            case c.Release(first, last):
                self.releases.append((first, last))
            case c.Cancel(first, last):
                self._cancel(first, last)
            case c.TakeSignal(id):
                self.consumed.append(id)
            case c.Send(to, name, payload):
                id = f"{self.loaded.id}#{self.loaded.seq + 1}.{len(self.signals)}"  # a turn computed twice sends the same signal
                self.signals.append(NewSignal(id, to, name, dump_trusted(payload), self.loaded.id))
            case c.Publish(type, data):
                id = f"{self.loaded.id}#{self.loaded.seq + 1}.{len(self.events)}"
                self.events.append(NewEvent(id, type, dump_trusted(data), self.later_us, execution_id=self.loaded.id))
                self.later_us += 1
            case c.SetAttribute(name, value):
                self.attributes[name] = value

    def _unsupported(self, command: c.StartTask | c.StartWorkflow) -> str:
        """A promise that is not kept is worse than an error. Where nobody else is, in a store of its own, there is nothing to promise."""
        asked = [f"`{name}`" for name in ("key", "id") if name in command.options and self.planner.only_queue is None]
        return f"the option {asked[0]} of `{command.name}` is not there yet: leave it out" if asked else ""

    def _refuse(self, command: c.StartTask | c.StartWorkflow, error: dict[str, Any]) -> None:
        """It has failed before it began; a row tells."""
        self.refused.append(Done(command.n, command.name, self.loaded.queue, "null", FAILED, dump_trusted(error), 0, 0))

    def _workflow(self, command: c.StartWorkflow) -> None:
        program = self._program(command.name, command.options.get("version"))
        if isinstance(program, str):
            self._refuse(command, {"code": "ChildFailed", "message": program, "data": None})
        else:
            self._child(command.n, program, dump_trusted(command.inputs), command.options, command.held)

    def _program(self, name: str, version: str | None) -> Program | str:
        """A workflow, or why there is none. Asked once: all children of a turn are of the same version."""
        if (name, version) not in self.programs:
            try:
                self.programs[name, version] = self.planner.programs(name, version) or f"there is no workflow `{name}`"
            except UnknownWorkflow as advice:
                self.programs[name, version] = str(advice)
        return self.programs[name, version]

    def _child(self, n: int, program: Program, inputs: str, options: dict[str, Any], held: bool, snapshot: bytes | None = None) -> None:
        queue = self.planner.only_queue or options.get("queue") or program.options.get("queue") or self.loaded.queue
        timeout_s = options.get("timeout_s") or (None if snapshot else program.options.get("timeout"))
        self.starts.append(
            NewExecution(
                child_id(self.loaded.id, n), WORKFLOW, program.name, queue, inputs, program.version,
                options.get("priority", self.loaded.priority), self.loaded.id, n, self.loaded.root_id,
                timeout_s=timeout_s, snapshot=snapshot, held=held, later_us=self.later_us, authority=self.loaded.authority,
            )
        )  # fmt: skip

    def _cancel(self, first: int, last: int) -> None:
        """What has no row yet is simply not started; its cancelled row tells whoever asks later."""
        for n in [n for n in self.tasks if first <= n <= last]:
            command = self.tasks.pop(n)
            inputs, options = dump_trusted(command.inputs), dump_options(command)
            self.refused.append(Done(n, command.name, self.loaded.queue, inputs, CANCELLED, CANCELLED_ERROR, 0, 0, options))
        self.cancels.append((first, last))

    def own(self, plan: Plan | None) -> dict[int, c.StartTask]:
        """The tasks that the holder runs itself: a lone one or all of `all`, since nothing else can settle those earlier."""
        alone = plan is not None and (
            plan["op"] == "task" or (plan["op"] == "all" and not plan.get("need") and not plan.get("concurrency"))
        )
        awaited = list(dict.fromkeys(numbers(plan))) if alone and plan is not None else []  # an id may be in a group twice
        if not 0 < len(awaited) <= OWNED_AT_ONCE or not all(map(self._runs_here, awaited)) or not self.planner.reserve(len(awaited)):
            return {}
        return {n: self.tasks.pop(n) for n in awaited}

    def _runs_here(self, n: int) -> bool:
        return n in self.tasks and self.planner.runs_here(self.loaded, self.tasks[n])

    def on(self, commit: TurnCommit, done: tuple[Done, ...], **changes: Any) -> TurnCommit:
        queued = (self.planner.task_row(self.loaded, command) for command in self.tasks.values())
        return commit.replace(
            **changes,
            done=(*done, *self.refused),
            starts=(*queued, *self.starts),
            timers=tuple(self.timers),
            waits=tuple(self.waits),
            approvals=tuple(self.approvals),
            consumed=tuple(self.consumed),
            cancels=tuple(self.cancels),
            releases=tuple(self.releases),
            signals=tuple(self.signals),
            events=tuple(self.events),
            attributes=dump_trusted(self.attributes) if self.attributes else None,
        )


CANCELLED_ERROR = dump_trusted({"code": "Cancelled", "message": "it was cancelled", "data": None})


def _awaited(snapshot: Snapshot) -> Iterator[int]:
    return numbers(snapshot.awaiting) if snapshot.awaiting else iter(())


def _settled(before: Snapshot, after: Snapshot) -> tuple[int, ...]:
    """The timers and waits of an await that is over: a workflow that sleeps in a loop is not to grow. What a program may name by its
    id it can await again, so only those count that the await started itself; a loop over `completed` comes back to its plan."""
    plan = before.awaiting
    if (
        plan is None
        or "taken" in plan
        or str(plan["n"]) in before.locals.get(STARTED, {})
        or (after.awaiting and after.awaiting["n"] == plan["n"])
    ):
        return ()
    if "first" in plan and plan["of"]["op"] not in TIMED:
        return ()
    leaves = [items_of(plan)[i] for i in fresh(plan)] if "first" in plan or "items" in plan else [plan]
    return tuple(leaf["n"] for leaf in leaves if leaf["op"] in TIMED and (leaf["op"] != "signal" or leaf.get("timeout")))


def dump_options(command: c.StartTask) -> str:
    """What the row of a task keeps of its call's options."""
    return dump_trusted({name: value for name, value in command.options.items() if name in ("retries", "backoff", "timeout_s")})


def dump_owned(commands: Iterable[c.StartTask]) -> str:
    """Tasks without rows, as the context keeps them: whoever takes over runs or queues exactly these."""
    return dump_trusted([[command.n, command.name, command.inputs, command.options] for command in commands])


def load_owned(text: str) -> dict[int, c.StartTask]:
    return {n: c.StartTask(n, name, inputs, options) for n, name, inputs, options in load(text)}
