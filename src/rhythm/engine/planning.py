"""Plans the commit of a turn, and which tasks its owner runs itself. Pure.

Every `TurnCommit` is made here. What a commit refers to by name, programs and the settings of
tasks, is read before (`Referenced`), and what its owner may run itself is a value (`Capacity`). So
the same turn always gives the same commit, and nothing here can fail because of a database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from rhythm.engine.payload import dump_trusted, load
from rhythm.engine.rows import Asking, EndedTasks, OwnedEnd, Referenced, TurnRows, dump_owned
from rhythm.engine.said import said_of
from rhythm.ir.awaiting import (
    Plan,
    first_numbers,
    fresh,
    has_signals,
    is_forgotten,
    is_group,
    is_loop,
    is_range,
    items_of,
    needs_all,
    numbers,
    pauses,
    signal_names,
    size_of,
)
from rhythm.ir.first_turn import first_turn_is_repeatable
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.blobs import is_large
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal, NewWait
from rhythm.store.interfaces.turns import Done, Loaded, NewTimer, TaskEnd, TurnCommit
from rhythm.store.lifecycle import (
    BLOCKED,
    CANCELLED,
    COMPLETED,
    FAILED,
    PAUSED,
    SUSPENDED,
    StatusNumber,
    TurnEnd,
)
from rhythm.store.light_turns import is_light
from rhythm.vm import commands as c
from rhythm.vm.builtins import parse_time
from rhythm.vm.interpreter import Blocked, Completed, Continue, Failed, Suspended, Turn
from rhythm.vm.machine import STARTED, Inputs
from rhythm.vm.snapshot import Snapshot, encode_snapshot, pack

# Most tasks of one await that its owner runs itself. Each end is a commit of the workflow, so for
# more tasks the queue is cheaper.
MAX_OWNED = 10
# The inputs of a turn that is taken without a look at the database.
NOTHING_READ = Inputs("", "", asked=(), read=())


class Capacity(Record):
    """What the owner of a workflow may run itself now."""

    slots: int  # how many handlers may begin
    tasks: Container[str]  # tasks that it has a handler for, and that need no row of their own
    queues: Container[str]  # queues that it serves, and that are not paused

    def runs(self, name: str, queue: str) -> bool:
        """Returns whether a task of this name and queue may begin here without a row."""
        return self.slots > 0 and name in self.tasks and queue in self.queues

    def less(self, slots: int) -> Capacity:
        """Returns what is left after this many slots were taken."""
        return Capacity(self.slots - slots, self.tasks, self.queues) if slots else self


class Standpoint(Record):
    """Where a workflow stands, as its owner knows it."""

    loaded: Loaded
    snapshot: Snapshot
    fence: int
    wakes: int
    owned: Mapping[int, c.StartTask] = {}  # awaited tasks that have no row
    running_s: Mapping[int, float] = {}  # for how long handlers of these have been running here
    crashes: int = 0  # how many of its owners have died before its first turn was committed


class Planned(Record):
    """A commit, and the state of its workflow after it."""

    commit: TurnCommit
    snapshot: Snapshot
    owned: Mapping[int, c.StartTask] = {}  # tasks that its owner runs itself
    # What it awaits may have ended before this turn: it must be loaded before it is parked.
    load_again: bool = False
    slots: int = 0  # slots of the capacity that its tasks take
    snapshot_bytes: int = 0  # size of the snapshot as JSON
    # Of a turn of the program: the owned tasks whose ends led to it.
    ended: EndedTasks | None = None
    can_wait: bool = False  # its task may begin first, and the commit go with that of the next turn


class Planner:
    """Makes the commits of one worker's workflows.

    `only_queue` is the queue for everything, whatever calls say; it is given when there is no other
    worker.
    """

    def __init__(
        self,
        worker: str,
        only_queue: str | None = None,
        asking: Asking | None = None,
        claim_ttl_s: float = 0.0,
    ) -> None:
        self.worker, self.only_queue, self.claim_ttl_s = worker, only_queue, claim_ttl_s
        self.asking = asking or Asking()

    def turn(
        self,
        at: Standpoint,
        program: Program,
        turn: Turn,
        known: Referenced,
        capacity: Capacity,
        ended: EndedTasks,
        inputs: Inputs = NOTHING_READ,
        *,
        keep: bool = True,
    ) -> Planned:
        """Returns the commit of a turn that began at `at`.

        - `ended`: the owned tasks whose ends led to the turn.
        - `inputs`: what the turn knew; what it waits for now, and did not know, may have ended
          already.
        - `keep`: whether the owner may keep the workflow if there is something to do at once.
        """
        rows = _TurnRows(self, at, program, self._rows(at.loaded, known), ended)
        for command in turn.commands:
            rows.add(command)
        match turn:
            case Completed():
                result = dump_trusted(turn.result)
                commit = rows.finish(COMPLETED, "completed", result)
            case Failed():
                commit = _failed(at.loaded, program, turn, rows)
            case Blocked():
                reason = dump_trusted({**turn.error, "at": list(program.position(turn.at))})
                commit = rows.finish(BLOCKED, "blocked", reason)
            case Suspended() | Continue():
                again = isinstance(turn, Continue) or rows.may_have_ended(
                    at.snapshot, turn.snapshot, inputs
                )
                return _going_on(at, turn, rows, capacity, again, keep)
        return Planned(commit, at.snapshot, ended=ended)

    def ended_tasks(
        self, loaded: Loaded, ends: Sequence[OwnedEnd], known: Referenced
    ) -> EndedTasks:
        """Returns the rows of owned tasks that have ended."""
        return self._rows(loaded, known).ended(ends)

    def tasks_ended(self, at: Standpoint, ended: EndedTasks) -> Planned:
        """Returns the commit of ended tasks from which nothing follows yet."""
        left = ended.left_of(at.owned)
        rows = {"done": ended.done, "starts": ended.retries}
        return self._staying(at, "own" if left else "park", "task", left, **rows)

    def refused(self, at: Standpoint, ended: EndedTasks) -> Planned:
        """Returns the commit in place of a turn that would start too much.

        It stores the tasks that have ended. The turn is taken again, with what the store said.
        """
        rows = {"done": ended.done, "starts": ended.retries}
        left = ended.left_of(at.owned)
        return self._staying(at, "own", "refused", left, **rows).replace(load_again=True)

    def promote(self, at: Standpoint, long: Sequence[int], known: Referenced) -> Planned:
        """Returns the commit that gives rows to owned tasks that run for long.

        With a row, people see them, and they outlive the claim on the workflow.
        """
        rows = self._rows(at.loaded, known)
        starts = tuple(rows.running(at.owned[n], at.running_s[n]) for n in long)
        left = {n: command for n, command in at.owned.items() if n not in long}
        new = {"starts": starts, "promoted": tuple(long), "claim_ttl_s": self.claim_ttl_s}
        return self._staying(at, "own" if left else "park", "promoted", left, **new)

    def runs_owned(self, at: Standpoint, known: Referenced, capacity: Capacity) -> bool:
        """Returns whether a worker that took over the workflow may run its owned tasks itself."""
        rows, commands = self._rows(at.loaded, known), at.owned.values()
        fits = len(commands) <= capacity.slots
        return fits and all(capacity.runs(each.name, rows.queue(each)) for each in commands)

    def queue_owned(
        self, at: Standpoint, known: Referenced, crashes: int, crash_limit: int
    ) -> Planned:
        """Returns the commit that queues owned tasks which no worker runs.

        The queue counts their attempts from now on. If `crash_limit` of their workers have died,
        they fail instead.
        """
        rows, commands = self._rows(at.loaded, known), at.owned.values()
        if crashes < crash_limit:
            starts = tuple(rows.task(command, crashes) for command in commands)
            return self._staying(at, "park", "queued", {}, starts=starts)
        done = tuple(rows.quarantined(command, crashes) for command in commands)
        return self._staying(at, "own", "queued", {}, done=done).replace(load_again=True)

    def failure(self, at: Standpoint, code: str, message: str) -> Planned:
        """Returns the commit that fails the workflow for a reason outside of its program."""
        error = dump_trusted({"code": code, "message": message, "data": None})
        resumed = _resumed(at.loaded)
        id, seq = at.loaded.id, at.loaded.seq
        commit = TurnCommit(
            id, seq, at.fence, at.wakes, "finish", self.worker, code, owned=None, resumed=resumed
        )
        return Planned(commit.replace(status=FAILED, value=error), at.snapshot)

    def _staying(
        self, at: Standpoint, end: TurnEnd, cause: str, left: Mapping[int, c.StartTask], **rows: Any
    ) -> Planned:
        """Returns a commit that leaves the workflow at the await where it is."""
        id, seq, snapshot = at.loaded.id, at.loaded.seq, at.snapshot
        commit = TurnCommit(
            id,
            seq,
            at.fence,
            at.wakes,
            end,
            self.worker,
            cause,
            statement=snapshot.statement_index,
            owned=dump_owned(left.values()),
            awaiting=dump_trusted(snapshot.awaiting),
            status=status_of(snapshot.awaiting),
            cleanup=snapshot.limit is not None,
            **rows,
        )
        return Planned(commit, snapshot, left)

    def _rows(self, loaded: Loaded, known: Referenced) -> TurnRows:
        return TurnRows(loaded, known, self.only_queue, self.asking)


def in_place_of(turn: TurnCommit, code: str, message: str) -> TurnCommit:
    """Returns a commit that fails the workflow, in place of a turn that the store refused."""
    error = dump_trusted({"code": code, "message": message, "data": None})
    commit = TurnCommit(
        turn.id, turn.seq, turn.fence, turn.wakes, "finish", turn.worker, "failed", owned=None
    )
    return commit.replace(status=FAILED, value=error)


def over_limit(turn: TurnCommit, refusal: str) -> TurnCommit:
    """Returns a commit that fails the workflow at once, in place of a turn that starts too much.

    Its own tasks that have ended keep their rows.
    """
    return in_place_of(turn, "LimitExceeded", refusal).replace(
        done=turn.done, statement=turn.statement
    )


def task_in_place_of(end: TaskEnd, code: str, message: str) -> TaskEnd:
    """Returns an end that fails the task, in place of one that the store refused."""
    error = dump_trusted({"code": code, "message": message, "data": None})
    return end.replace(status=FAILED, value=error, retry_s=None)


# workflows that go on, or fail


def _going_on(
    at: Standpoint,
    turn: Suspended | Continue,
    rows: _TurnRows,
    capacity: Capacity,
    again: bool,
    keep: bool,
) -> Planned:
    """Returns the commit of a turn after which the workflow goes on.

    `again`: it must be loaded again, as there may be something to do at once.
    """
    own = rows.own(turn.snapshot.awaiting, capacity)
    planned = _with_owned(at, turn, rows, own, again, keep)
    if at.crashes and planned.can_wait:
        # It may have begun before its owner died, and have killed it: from now on the queue counts.
        rows.put_back(own, at.crashes)
        return _with_owned(at, turn, rows, {}, again, keep)
    return planned


def _with_owned(
    at: Standpoint,
    turn: Suspended | Continue,
    rows: _TurnRows,
    own: dict[int, c.StartTask],
    again: bool,
    keep: bool,
) -> Planned:
    """Returns the commit of a turn after which the owner runs these tasks itself."""
    after = turn.snapshot
    end = "own" if own or again else "park"
    if end == "own" and not keep and not at.running_s:
        end = "yield"
    data = encode_snapshot(after)
    commit = rows.commit(
        end=end,
        snapshot=pack(data),
        statement=after.statement_index,
        owned=dump_owned(own.values()),
        awaiting=dump_trusted(after.awaiting),
        status=status_of(after.awaiting),
        cause="continue" if isinstance(turn, Continue) else "turn",
        settled=_settled(at.snapshot, after),
        cleanup=after.limit is not None,
    )
    slots = 0 if end == "yield" else len(own)
    alone = len(own) == 1 and not again and is_light(commit)
    can_wait = alone and _is_repeatable(at.loaded, rows.program, turn)
    return Planned(commit, after, own, again, slots, len(data), rows.ended, can_wait)


def _is_repeatable(loaded: Loaded, program: Program, turn: Suspended | Continue) -> bool:
    """Returns whether somebody who takes the turn again, after a crash, asks for the very same.

    That is so for a first turn that led to its await from the inputs of the workflow alone. (One
    that begins with a large snapshot is committed at once, as it replaces a blob.)
    """
    first = loaded.seq == 0 and not is_large(loaded.snapshot)
    from_inputs = isinstance(turn, Suspended) and not turn.drew
    return first and from_inputs and first_turn_is_repeatable(program)


def _failed(loaded: Loaded, program: Program, turn: Failed, rows: _TurnRows) -> TurnCommit:
    """Returns the last commit of a workflow that ended with an error.

    If its time was over, it has failed; if it was cancelled, it is cancelled.
    """
    late = turn.cancelled and loaded.timed_out and not loaded.cancel_requested
    error = _timeout(loaded) if late else turn.error
    value = dump_trusted({**error, "at": list(program.position(turn.at))})
    if turn.cancelled and not late:
        return rows.finish(CANCELLED, "cancelled", value)
    return rows.finish(FAILED, "failed", value)


def _timeout(loaded: Loaded) -> dict[str, Any]:
    """Returns the error of an execution whose time was over.

    Its data tell the parent that this is not an error which the child made itself.
    """
    message = f"`{loaded.name}` took longer than it may"
    return {"code": "Timeout", "message": message, "data": {"execution": loaded.id}}


def status_of(plan: Plan | None) -> StatusNumber:
    """Returns the status of a workflow that waits for this.

    Paused if it waits for a person or an event from outside, else suspended.
    """
    return PAUSED if plan is not None and pauses(plan) else SUSPENDED


def _resumed(loaded: Loaded) -> int | None:
    """Returns the number of the last resume since the turn before; None if there was none."""
    pending = load(loaded.resumes) if loaded.resumes else []
    return max(id for id, _ in pending) if pending else None


class _TurnRows:
    """Collects the rows that the commands of one turn ask for."""

    def __init__(
        self, planner: Planner, at: Standpoint, program: Program, rows: TurnRows, ended: EndedTasks
    ) -> None:
        self.planner = planner
        self.at = at
        self.program = program
        self.rows = rows
        self.ended = ended
        # Tasks without a row. Those that the owner does not run itself get one.
        self.tasks: dict[int, c.StartTask] = ended.left_of(at.owned) if at.owned else {}
        self.children: list[NewExecution] = []
        self.refused: list[Done] = []
        # What else is asked for, by the field of `TurnCommit`: most turns fill few of them.
        self.asked: defaultdict[str, list[Any]] = defaultdict(list)
        # Grows with every event of this turn: an event is not for a child that starts after it.
        self.later_us = 0
        self.attributes: dict[str, Any] = {}
        self.deaths: dict[int, int] = {}  # how many workers may have died of these tasks

    def add(self, command: c.Command) -> None:
        """Adds the rows for one command."""
        match command:
            case c.StartTask(n):
                self.tasks[n] = command
            case c.StartWorkflow():
                self._workflow(command)
            case c.StartBranch(n, branch, locals, held):
                first = Snapshot(self.program.branches[branch], locals)
                inputs = self.at.loaded.inputs
                snapshot = pack(encode_snapshot(first))
                child = self.rows.child(n, self.program, inputs, {}, held, self.later_us, snapshot)
                self.children.append(child)
            case c.StartTimer(n, delay_s, until, held):
                at = None if until is None else int(parse_time(until).timestamp() * 1e6)
                self.asked["timers"].append(NewTimer(n, delay_s, at, held))
            case c.WaitEvent(n, type, where, timeout_s, held):
                wait = NewWait(n, type, dump_trusted(where), timeout_s, held)
                self.asked["waits"].append(wait)
            case c.RequestApproval():
                self.asked["approvals"].append(self.rows.approval(command))
            case c.Release(first, last, executions):
                self.asked["begins" if executions else "releases"].append((first, last))
            case c.Cancel(first, last):
                self._cancel(first, last)
            case c.TakeSignal(id):
                self.asked["consumed"].append(id)
            case c.Send(to, name, payload):
                signals, sender = self.asked["signals"], self.at.loaded.id
                id = self._message_id(len(signals))
                signals.append(NewSignal(id, to, name, dump_trusted(payload), sender))
            case c.Publish(type, data):
                events, sender = self.asked["events"], self.at.loaded.id
                id = self._message_id(len(events))
                event = NewEvent(id, type, dump_trusted(data), self.later_us, execution_id=sender)
                events.append(event)
                self.later_us += 1
            case c.SetAttribute(name, value):
                self.attributes[name] = value
            case c.Log() | c.Progress():
                self.asked["said"].append(said_of(command))
            case _:
                raise AssertionError(f"nobody plans {command}")

    def _message_id(self, number: int) -> str:
        """Returns the id of a signal or event that the turn sends.

        A turn that is computed twice sends the same ids, so nothing is sent twice.
        """
        return f"{self.at.loaded.id}#{self.at.loaded.seq + 1}.{number}"

    def _workflow(self, command: c.StartWorkflow) -> None:
        """Adds a child workflow, or its failure if there is no program."""
        program = self.rows.known.programs[command.name, command.options.get("version")]
        if isinstance(program, str):
            return self.refused.append(self.rows.refused(command, "ChildFailed", program))
        inputs, options = dump_trusted(command.inputs), command.options
        child = self.rows.child(command.n, program, inputs, options, command.held, self.later_us)
        return self.children.append(child)

    def _cancel(self, first: int, last: int) -> None:
        """Adds a cancel; a task that has no row yet is not started."""
        for n in [n for n in self.tasks if first <= n <= last]:
            self.refused.append(self.rows.cancelled(self.tasks.pop(n)))
        self.asked["cancels"].append((first, last))

    def own(self, plan: Plan | None, capacity: Capacity) -> dict[int, c.StartTask]:
        """Takes the tasks that the owner runs itself, and returns them by number.

        That is a single task, or all tasks of an `all`: nothing else can settle those awaits
        earlier. Empty if they are too many, or if one of them cannot run here.
        """
        if plan is None or not needs_all(plan):
            return {}
        if is_range(plan) and size_of(plan) > MAX_OWNED:
            return {}
        awaited = dict.fromkeys(numbers(plan))  # an id may be in a group twice
        if not 0 < len(awaited) <= min(MAX_OWNED, capacity.slots):
            return {}
        for n in awaited:
            if not self._runs_here(n, capacity):
                return {}
        return {n: self.tasks.pop(n) for n in awaited}

    def put_back(self, tasks: Mapping[int, c.StartTask], deaths: int) -> None:
        """Gives back tasks that the owner had taken; so many workers may have died of each."""
        self.tasks |= tasks
        self.deaths |= dict.fromkeys(tasks, deaths)

    def _runs_here(self, n: int, capacity: Capacity) -> bool:
        command = self.tasks.get(n)
        return command is not None and capacity.runs(command.name, self.rows.queue(command))

    def may_have_ended(self, before: Snapshot, after: Snapshot, known: Inputs) -> bool:
        """Returns whether what it awaits now may have ended already, unseen by this turn."""
        plan = after.awaiting
        if self.refused:
            return True
        if plan is None:
            return False
        if "cancels" in self.asked and self._cancels_some(plan):
            return True
        if known.asked is None or plan["n"] in known.asked:
            return False
        older = min(first_numbers(plan), default=before.next_child) < before.next_child
        read = known.read
        return older or (read is not None and not _all_in(read, plan))

    def _cancels_some(self, plan: Plan) -> bool:
        cancels, awaited = self.asked["cancels"], numbers(plan)
        return any(first <= n <= last for first, last in cancels for n in awaited)

    def finish(self, status: StatusNumber, cause: str, value: str) -> TurnCommit:
        """Returns the commit of the last turn."""
        return self.commit(end="finish", status=status, cause=cause, value=value, owned=None)

    def commit(self, **changes: Any) -> TurnCommit:
        """Returns the commit with all rows. Tasks that the owner did not take go to the queue."""
        at, loaded = self.at, self.at.loaded
        if self.asked:
            changes |= {name: tuple(rows) for name, rows in self.asked.items()}
        if self.tasks or self.children or self.ended.retries:
            changes["starts"] = (*self._queued(), *self.children, *self.ended.retries)
        if at.running_s and (promoted := tuple(n for n in self.tasks if n in at.running_s)):
            changes |= {"promoted": promoted, "claim_ttl_s": self.planner.claim_ttl_s}
        if self.attributes:
            changes["attributes"] = dump_trusted(self.attributes)
        return TurnCommit(
            id=loaded.id,
            seq=loaded.seq,
            fence=at.fence,
            wakes=at.wakes,
            worker=self.planner.worker,
            done=(*self.ended.done, *self.refused),
            resumed=_resumed(loaded),
            **changes,
        )

    def _queued(self) -> Iterator[NewExecution]:
        """Yields rows for the tasks that the owner did not take; some may be running already."""
        running_s = self.at.running_s
        for n, command in self.tasks.items():
            yield (
                self.rows.running(command, running_s[n])
                if n in running_s
                else self.rows.task(command, self.deaths.get(n, 0))
            )


def _settled(before: Snapshot, after: Snapshot) -> tuple[int, ...]:
    """Returns the timers and waits of an await that is over, so that their rows can be deleted.

    Otherwise the rows of a workflow that sleeps in a loop would only grow. Rows of operations that
    were started before the await are kept, since the program may await their ids again; so are
    those of a loop over `completed`, which still needs them.
    """
    plan = before.awaiting
    if plan is None or not (is_group(plan) or is_forgotten(plan)):
        return ()
    if is_loop(plan) or str(plan["n"]) in before.locals.get(STARTED, {}):
        return ()
    if after.awaiting and after.awaiting["n"] == plan["n"]:
        return ()
    if is_range(plan) and not is_forgotten(plan["of"]):
        return ()
    items = _fresh_items(plan) if is_group(plan) else [plan]
    return tuple(item["n"] for item in items if not is_group(item) and is_forgotten(item))


def _all_in(read: Container[str], plan: Plan) -> bool:
    """Returns whether all signals that a plan waits for were among those that were read."""
    return not has_signals(plan) or all(name in read for name in signal_names(plan))


def _fresh_items(group: Plan) -> list[Plan]:
    """Returns the items that the group itself has started."""
    items = items_of(group)
    return [items[i] for i in fresh(group)]
