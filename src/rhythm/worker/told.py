"""What a worker does, in words for people: made only when somebody listens."""

from __future__ import annotations

import json
from typing import Any

from rhythm.durations import show_duration
from rhythm.vm import commands as c
from rhythm.worker.ended import Ended


def of_command(command: c.Command) -> tuple[str, str] | None:
    """What happened and its detail, for the commands of a turn that people want to see."""
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


def of_attempt(name: str, inputs: Any, ended: Ended, again_s: float | None, took_s: float) -> tuple[str, str]:
    """How an attempt at a task ended, and what follows."""
    label = called(name, inputs)
    if ended.error is None:
        return "done", f"{label} = {brief(ended.value)} in {took_s * 1000:,.0f} ms"
    reason = ended.reason.removeprefix(f"task `{name}` ").removeprefix("failed: ")
    if again_s is not None:
        return "retry", f"{label}: {reason}; again in {show_duration(round(again_s, 3))}"
    return "failure", "\n".join((f"{label}: {reason}", *ended.frames))


def brief(value: Any, width: int = 44) -> str:
    """A value on one line, cut to a width."""
    return _cut(json.dumps(value, ensure_ascii=False), width)


def called(name: str, inputs: Any) -> str:
    """A call as one would write it in Python, cut to a width."""
    args = ", ".join(f"{key}={brief(value)}" for key, value in inputs.items()) if isinstance(inputs, dict) else brief(inputs)
    return f"{name}({'' if inputs is None else _cut(args)})"


def _cut(text: str, width: int = 44) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
