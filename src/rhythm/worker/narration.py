"""Describes in words what a worker does, and counts it.

The words are made only if there is an observer. What goes wrong is always reported.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from rhythm.durations import show_duration
from rhythm.engine.payload import load
from rhythm.errors import StoreError
from rhythm.ids import child_id
from rhythm.ir.awaiting import Plan, waits_for_mail
from rhythm.store.interfaces.turns import LoadedTask, TurnCommit
from rhythm.store.lifecycle import BLOCKED, FAILED, STATUS_NAMES
from rhythm.vm import commands as c
from rhythm.vm.interpreter import Turn
from rhythm.vm.machine import Signal
from rhythm.worker.attempts import Attempt
from rhythm.worker.ended import AttemptEnd
from rhythm.worker.metrics import Metrics
from rhythm.worker.sizes import Sizes

Observer = Callable[[str, str, str], None]  # name of the log event, execution id, detail


class Narrator:
    """Reports what one worker does.

    `observe` is told everything, which costs a little. `complain` is told what goes wrong; without
    it, `observe` is.
    """

    def __init__(
        self,
        observe: Observer | None = None,
        complain: Observer | None = None,
        metrics: Metrics | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        self.observe, self.metrics, self.sizes = observe, metrics or Metrics(), sizes or Sizes()
        self.complain = complain or self.say
        self._away = False  # the database did not answer when it was last asked

    @property
    def _failing(self) -> Observer:
        """The observer that is told of failures."""
        return self.observe or self.complain

    def say(self, what: str, id: str, detail: str = "") -> None:
        """Tells `observe`, if there is one."""
        if self.observe:
            self.observe(what, id, detail)

    # what goes wrong

    def unanswered(
        self, problem: StoreError, what: str = "database_unanswered", id: str = ""
    ) -> None:
        """Reports that a call to the database had no answer."""
        self._away = True
        self.complain(what, id, str(problem))

    def answered(self) -> None:
        """Reports that the database answers again; does nothing if it always did."""
        if self._away:
            self._away = False
            self.complain("database_back", "", "it answers again")

    def bug(self, problem: Exception, id: str = "") -> None:
        """Reports that Rhythm itself has failed, with the traceback."""
        self.complain("bug", id, "".join(traceback.format_exception(problem)))

    def claim_lost(self, id: str) -> None:
        """Reports that an execution now belongs to another worker."""
        self.complain("claim_lost", id, "the claim has passed to another worker")

    def lapsed(self, trusted_s: float) -> None:
        """Reports that no heartbeat got through in time."""
        after = show_duration(trusted_s)
        self.complain("worker_lapsed", "", f"no heartbeat for {after}: what ran here is given up")

    def quarantined(self, owner: str, commands: Sequence[c.StartTask], crashes: int) -> None:
        """Reports tasks that fail because too many of their workers have died."""
        for command in commands:
            detail = f"{command.name}: its worker died {crashes} times"
            self.complain("execution_quarantined", child_id(owner, command.n), detail)

    def handler_missing(self, task: LoadedTask, grace_s: float) -> None:
        """Reports a task that has no handler here."""
        what = f"task `{task.name}` of queue `{task.queue}` has no handler here"
        grace = show_duration(grace_s)
        follows = f"it is put back for others, and fails after {grace} without one"
        self.complain("handler_missing", task.id, f"{what}; {follows}")

    def missing_failed(self, task: LoadedTask, why: str) -> None:
        """Reports a task that fails because no worker has its handler."""
        self._failing("failure", task.id, f"{called(task.name, load(task.inputs))}: {why}")

    # tasks

    def task_begins(self, attempt: Attempt) -> None:
        """Reports that an attempt begins."""
        if self.observe:
            number = f" attempt {attempt.number}" if attempt.number > 1 else ""
            self.say("task", attempt.id, called(attempt.task.name, attempt.inputs) + number)

    def task_stopped(self, attempt: Attempt) -> None:
        """Reports that an attempt was given up."""
        if self.observe:
            self.say("stopped", attempt.id, called(attempt.task.name, attempt.inputs))

    def task_ended(
        self,
        id: str,
        name: str,
        inputs: Any,
        ended: AttemptEnd,
        retry_s: float | None,
        took_s: float,
    ) -> None:
        """Counts and reports how an attempt ended. `retry_s` is None if no other one follows.

        A failure is reported even without `observe`.
        """
        failed = ended.error is not None
        self.metrics.attempt(name, failed, retry_s is not None, took_s)
        if self.observe or failed:
            what, detail = attempt_in_words(name, inputs, ended, retry_s, took_s)
            self._failing(what, id, detail)

    # turns

    def turn_taken(
        self, id: str, name: str, first: bool, branch: bool, signals: Sequence[Signal], turn: Turn
    ) -> None:
        """Reports what a turn did: whether it was the first, and its commands."""
        if first:
            self.say("start", id, f"branch of {name}" if branch else name)
        for command in turn.commands:
            if isinstance(command, c.TakeSignal):
                taken = next(signal for signal in signals if signal.id == command.id)
                self.say("signal", id, f"{taken.name} = {brief(taken.payload)}")
            elif words := command_in_words(command):
                self.say(words[0], id, words[1])

    def parked(self, id: str, awaiting: Plan | None) -> None:
        """Reports that a workflow waits for a signal.

        That is known only when it parks: before, the signal may have been in its mailbox.
        """
        if self.observe and awaiting and waits_for_mail(awaiting):
            self.say("wait", id, f"signal {awaiting['name']}")

    def committed(self, turn: TurnCommit) -> None:
        """Reports how a workflow ended, if the committed turn was its last one."""
        if turn.end != "finish":
            return
        if turn.status == FAILED:
            self._failing("failed", turn.id, load(turn.value)["message"])
        else:
            why = load(turn.value)["message"] if turn.status == BLOCKED else ""
            self.say(STATUS_NAMES[turn.status], turn.id, why)


def command_in_words(command: c.Command) -> tuple[str, str] | None:
    """Returns what happened and its detail; None for commands that people need not see."""
    match command:
        case c.StartTimer(_, delay_s, until, held=False, signal=""):
            return "timer", f"until {until}" if until else show_duration(delay_s or 0.0)
        case c.WaitEvent(_, type, held=False):
            return "wait", f"event {type}"
        case c.RequestApproval(_, role, held=False):
            return "approval", role
        case c.Publish(type, data):
            return "publish", type if data is None else f"{type} = {brief(data)}"
        case c.Log(message, fields):
            return "log", f"{message} {brief(fields, 200) if fields else ''}".rstrip()
        case c.SetAttribute(name, value):
            return "log", f"{name} = {value}"
        case c.Progress(fraction, message):
            return "progress", f"{fraction:.0%} {message}".rstrip()
    return None


def attempt_in_words(
    name: str, inputs: Any, ended: AttemptEnd, retry_s: float | None, took_s: float
) -> tuple[str, str]:
    """Returns how an attempt ended, as the name of the log event, and its detail."""
    label = called(name, inputs)
    if ended.error is None:
        return "done", f"{label} = {brief(ended.value)} in {took_s * 1000:,.0f} ms"
    reason = ended.reason.removeprefix(f"task `{name}` ").removeprefix("failed: ")
    if retry_s is not None:
        return "retry", f"{label}: {reason}; again in {show_duration(round(retry_s, 3))}"
    return "failure", "\n".join((f"{label}: {reason}", *ended.frames))


def brief(value: Any, width: int = 44) -> str:
    """Returns a value on one line, cut to a width.

    It takes any value: an observer must not change what happens.
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return _cut(text, width)


def called(name: str, inputs: Any) -> str:
    """Returns a call as it would be written in Python, cut to a width."""
    if isinstance(inputs, dict):
        args = ", ".join(f"{key}={brief(value)}" for key, value in inputs.items())
    else:
        args = brief(inputs)
    return f"{name}({'' if inputs is None else _cut(args)})"


def _cut(text: str, width: int = 44) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
