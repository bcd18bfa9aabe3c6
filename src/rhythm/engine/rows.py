"""Makes the rows that a turn asks for: tasks, child workflows, approvals, ends of tasks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rhythm.engine.payload import dump_trusted, load
from rhythm.ids import child_id
from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.store.approvals import AfterDeadline, NewApproval
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.turns import Done, Loaded
from rhythm.store.lifecycle import CANCELLED, COMPLETED, FAILED, TASK, WORKFLOW, StatusNumber
from rhythm.store.verdicts import BY_REQUEST
from rhythm.vm import commands as c


class TaskPolicy(Protocol):
    """What a task was declared with, here or by another worker."""

    @property
    def queue(self) -> str | None: ...

    @property
    def retries(self) -> int: ...


class Referenced(Record):
    """What a turn refers to by name, read before the turn is planned."""

    tasks: Mapping[str, TaskPolicy]
    # By name and version; a text says why there is no program.
    programs: Mapping[tuple[str, str | None], Program | str] = {}


class Asking(Record):
    """How people are asked for an approval, where the workflow does not say it."""

    timeout_s: float | None = 86_400.0  # None: no limit
    auto_escalate: bool = False  # when the time of one role is over, the next role is asked
    notify: str = ""  # the task that notifies them; empty: none


class OwnedEnd(Record):
    """How an attempt at an owned task ended."""

    command: c.StartTask
    status: StatusNumber
    value: str
    attempt: int
    took_s: float
    retry_s: float | None = None  # delay before the next attempt; None: this was the last one
    counts: bool = True  # false: the handler asked to be called later, which is no attempt


class EndedTasks(Record):
    """The rows of owned tasks whose attempts have ended."""

    done: tuple[Done, ...] = ()  # tasks that have ended for good
    retries: tuple[NewExecution, ...] = ()  # tasks that are tried again, from the queue

    def left_of(self, owned: Mapping[int, c.StartTask]) -> dict[int, c.StartTask]:
        """Returns the owned tasks without those whose attempts have ended."""
        left = {**owned}
        for row in self.done:
            left.pop(row.n, None)
        for retry in self.retries:
            left.pop(retry.child_no or 0, None)
        return left


NOTHING_ENDED = EndedTasks()


class TurnRows:
    """Makes the rows of one workflow's turn.

    `only_queue` is the queue for everything, whatever calls say; it is given when there is no other
    worker.
    """

    def __init__(
        self, loaded: Loaded, known: Referenced, only_queue: str | None, asking: Asking
    ) -> None:
        self.loaded, self.known, self.only_queue, self.asking = loaded, known, only_queue, asking

    # tasks

    def queue(self, command: c.StartTask) -> str:
        """Returns the queue of a task: of the call, else of the task, else of its workflow."""
        policy = self.known.tasks.get(command.name)
        declared = policy.queue if policy else None
        called = command.options.get("queue")
        return str(self.only_queue or called or declared or self.loaded.queue)

    def task(
        self, command: c.StartTask, attempt: int = 0, delay_s: float = 0.0, ran_s: float = 0.0
    ) -> NewExecution:
        """Returns the row of a task for the queue.

        `attempt` and `ran_s` count what its owner has tried before.
        """
        loaded = self.loaded
        return NewExecution(
            child_id(loaded.id, command.n),
            TASK,
            command.name,
            self.queue(command),
            dump_trusted(command.inputs),
            priority=command.options.get("priority", loaded.priority),
            parent_id=loaded.id,
            child_no=command.n,
            root_id=loaded.root_id,
            max_attempts=self._max_attempts(command),
            attempt=attempt,
            options=dump_options(command),
            delay_s=delay_s,
            held=command.held,
            later_us=-int(ran_s * 1e6),
        )

    def running(self, command: c.StartTask, ran_s: float) -> NewExecution:
        """Returns the row of a task that its owner is running already."""
        return self.task(command, attempt=1, ran_s=ran_s)

    def _max_attempts(self, command: c.StartTask) -> int:
        policy = self.known.tasks.get(command.name)
        return int(command.options.get("retries", policy.retries if policy else 0)) + 1

    def ended(self, ends: Sequence[OwnedEnd]) -> EndedTasks:
        """Returns the rows of owned tasks that have ended. After a cancel, none is tried again."""
        done: list[Done] = []
        retries: list[NewExecution] = []
        for end in ends:
            if end.retry_s is not None and not self.loaded.cancel_requested:
                retries.append(self._retry(end, max(end.retry_s, 1e-6)))
            else:
                done.append(self._done(end))
        return EndedTasks(tuple(done), tuple(retries))

    def _retry(self, end: OwnedEnd, delay_s: float) -> NewExecution:
        attempts = end.attempt if end.counts else end.attempt - 1
        row = self.task(end.command, attempts, delay_s, end.took_s)
        return row.replace(failed=end.value if attempts else None)

    def _done(self, end: OwnedEnd) -> Done:
        command, inputs = end.command, dump_trusted(end.command.inputs)
        queue, took_us = self.queue(command), int(end.took_s * 1e6)
        row = Done(
            command.n, command.name, queue, inputs, end.status, end.value, end.attempt, took_us
        )
        return row if end.status == COMPLETED else row.replace(options=dump_options(command))

    def quarantined(self, command: c.StartTask, crashes: int) -> Done:
        """Returns the end of a task that fails because too many of its workers have died."""
        error = dump_trusted(task_error(command.name, f"its worker died {crashes} times"))
        return self._unrun(command, FAILED, error, crashes)

    def cancelled(self, command: c.StartTask) -> Done:
        """Returns the end of a task that was cancelled before it began.

        The row is there for those who ask later.
        """
        return self._unrun(command, CANCELLED, BY_REQUEST.value, 0)

    def _unrun(self, command: c.StartTask, status: StatusNumber, error: str, attempts: int) -> Done:
        queue = self.loaded.queue
        inputs = dump_trusted(command.inputs)
        options = dump_options(command)
        return Done(command.n, command.name, queue, inputs, status, error, attempts, 0, options)

    def refused(self, command: c.StartTask | c.StartWorkflow, code: str, message: str) -> Done:
        """Returns the end of a call that failed before it began."""
        error = dump_trusted({"code": code, "message": message, "data": None})
        return Done(command.n, command.name, self.loaded.queue, "null", FAILED, error, 0, 0)

    # child workflows

    def child(
        self,
        n: int,
        program: Program,
        inputs: str,
        options: Mapping[str, Any],
        held: bool,
        later_us: int,
        snapshot: bytes | None = None,
    ) -> NewExecution:
        """Returns the row of a child workflow; with a snapshot, of a branch that begins there."""
        loaded, declared = self.loaded, program.options
        queue = options.get("queue") or declared.get("queue") or loaded.queue
        timeout_s = options.get("timeout_s") or (None if snapshot else declared.get("timeout"))
        return NewExecution(
            child_id(loaded.id, n),
            WORKFLOW,
            program.name,
            self.only_queue or queue,
            inputs,
            program.version,
            options.get("priority", loaded.priority),
            loaded.id,
            n,
            loaded.root_id,
            timeout_s=timeout_s,
            snapshot=snapshot,
            held=held,
            later_us=later_us,
            authority=loaded.authority,
        )

    # approvals

    def approval(self, command: c.RequestApproval) -> NewApproval:
        """Returns the row of an approval: whom it asks, how long each has, who is notified."""
        (role, timeout_s, on_deadline), *others = _stages(command, self.asking)
        return NewApproval(
            command.n,
            role,
            command.reason,
            dump_trusted(command.data),
            command.quorum,
            command.four_eyes,
            timeout_s,
            on_deadline,
            dump_trusted(others),
            dump_trusted(self._notification(command)),
            command.held,
        )

    def _notification(self, command: c.RequestApproval) -> dict[str, Any] | None:
        """Returns the task that notifies people of an approval; None if there is none."""
        name = command.notify or self.asking.notify
        if not name:
            return None
        call = c.StartTask(0, name, None, {})
        return {"task": name, "queue": self.queue(call), "attempts": self._max_attempts(call)}


Stage = tuple[str, float | None, AfterDeadline]  # a role, its time limit, and what follows it


def _stages(command: c.RequestApproval, asking: Asking) -> list[Stage]:
    """Returns the roles that are asked, for how long each, and what follows.

    When the time of one is over, the next role is asked, or the approval expires.
    """
    first = {"role": command.role, "timeout_s": command.timeout_s}
    asked = [first, *command.escalate]
    default_s = command.timeout_s if command.timeout_s is not None else asking.timeout_s
    stages: list[Stage] = []
    for stage, after in zip(asked, (*asked[1:], None), strict=True):
        own = stage.get("timeout_s")
        timeout_s = own if own is not None else default_s
        sooner = None if after is None else after.get("after_s")
        if sooner is not None and (timeout_s is None or sooner < timeout_s):
            stages.append((stage["role"], sooner, "escalate"))
        else:
            escalates = after is not None and asking.auto_escalate
            stages.append((stage["role"], timeout_s, "escalate" if escalates else "expire"))
    return stages


# what a turn refers to by name


class Names(Record):
    """The names of tasks and workflows that a turn refers to.

    `Referenced` must have what is known of each.
    """

    tasks: Sequence[str]
    workflows: Sequence[tuple[str, str | None]] = ()  # name and version; None: the current one


def names_in(
    commands: Iterable[c.Command], owned: Mapping[int, c.StartTask], asking: Asking
) -> Names:
    """Returns the names that these commands, and the tasks that are owned already, refer to."""
    tasks = [command.name for command in owned.values()]
    workflows: list[tuple[str, str | None]] = []
    for command in commands:
        match command:
            case c.StartTask():
                tasks.append(command.name)
            case c.StartWorkflow():
                workflows.append((command.name, command.options.get("version")))
            case c.RequestApproval():
                tasks.append(command.notify or asking.notify)
    return Names(tasks, workflows)


# what is stored of a task


def task_error(
    name: str, message: str, type: str | None = None, bases: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the error of a task that failed for good, as `catch (e)` sees it.

    `bases` are the names of the exception's base classes, by which Python workflows catch it.
    """
    shown = f"{type}: {message}" if type and message else type or message
    data: dict[str, Any] = {"task": name, "type": type}
    if bases:
        data["bases"] = list(bases)
    return {"code": "TaskFailed", "message": f"task `{name}` failed: {shown}", "data": data}


def dump_options(command: c.StartTask) -> str:
    """Returns the options of a call that the row of its task keeps, as JSON."""
    kept = ("retries", "backoff", "timeout_s")
    return dump_trusted({name: value for name, value in command.options.items() if name in kept})


def dump_owned(commands: Iterable[c.StartTask]) -> str:
    """Returns tasks without rows as JSON, as the workflow's context keeps them.

    A worker that takes over the workflow runs exactly these.
    """
    return dump_trusted([[each.n, each.name, each.inputs, each.options] for each in commands])


def load_owned(text: str) -> dict[int, c.StartTask]:
    """Returns the tasks of `dump_owned`, by number."""
    return {n: c.StartTask(n, name, inputs, options) for n, name, inputs, options in load(text)}
