"""The commands of a turn: what it asks the engine to do.

All of it happens in the transaction that commits the turn, or none of it.

`n` numbers an execution's children from 1: the child's id is `<execution>.<n>`. The number is
derived, never random, so a turn that is computed twice asks for the same rows.
"""

from __future__ import annotations

from typing import Any

from rhythm.record import Record


class Command(Record):
    """One request of a turn."""


class StartTask(Command):
    """Queue a task.

    `held`: make its row, but do not let it run before a Release includes it.
    """

    n: int
    name: str
    inputs: Any
    # Those of retries, backoff, timeout_s, queue, priority and key that the call gave.
    options: dict[str, Any]
    held: bool = False


class StartWorkflow(Command):
    """Start a child workflow, on the current version unless `options` names one."""

    n: int
    name: str
    inputs: Any
    options: dict[str, Any]  # id, queue, priority, timeout_s, version, key
    held: bool = False


class StartBranch(Command):
    """Start a child execution of the same program at one of its branches, with these locals."""

    n: int
    branch: int
    locals: dict[str, Any]
    held: bool = False


class StartTimer(Command):
    """Wake this execution after `delay_s`, or at the time `until` (ISO 8601).

    With `signal` it is the deadline of a wait for that signal.
    """

    n: int
    delay_s: float | None
    until: str | None = None
    held: bool = False
    signal: str = ""


class WaitEvent(Command):
    """Complete child n with the next event of the type that matches `where`.

    An event matches if its data has the values of `where` at their paths. After the timeout the
    child fails.
    """

    n: int
    type: str
    where: dict[str, Any]
    timeout_s: float | None
    held: bool = False


class RequestApproval(Command):
    """Ask people for a decision.

    Child n completes with `{decision, by, comment, at}`, whatever they decide.
    """

    n: int
    role: str
    reason: str
    data: Any
    timeout_s: float | None
    quorum: int
    four_eyes: bool
    # {role, after_s, timeout_s}: who is asked next, and how long after the previous role.
    escalate: tuple[dict[str, Any], ...] = ()
    held: bool = False
    notify: str = ""  # the task that notifies the people


class Release(Command):
    """Let the held children first..last run, because others of their group have ended.

    `executions`: all of them are tasks, workflows or branches.
    """

    first: int
    last: int
    executions: bool = False


class Cancel(Command):
    """Cancel those of the children first..last that have not ended."""

    first: int
    last: int


class TakeSignal(Command):
    """Consume the signal with this id."""

    id: str


class Publish(Command):
    """Publish an event."""

    type: str
    data: Any


class Send(Command):
    """Send a signal to an execution."""

    execution_id: str
    name: str
    payload: Any


class Log(Command):
    """Write to the execution's log."""

    message: str
    fields: dict[str, Any]


class Progress(Command):
    """Record how far the execution is, from 0 to 1."""

    fraction: float
    message: str


class SetAttribute(Command):
    """Set a search attribute of the execution."""

    name: str
    value: Any
