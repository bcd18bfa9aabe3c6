"""Which keys a step may have and what their values are: a table for each type, and its check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rhythm.durations import duration_s
from rhythm.ir.options import FACTOR, INSTEAD, is_factor, whole_problem
from rhythm.lang.flow.rules.arguments import is_time, json_bytes
from rhythm.lang.steps.document import Json
from rhythm.lang.steps.problems import StepProblems, one_of
from rhythm.limits import LONGEST_NAME, TEXTS
from rhythm.record import Record
from rhythm.suggest import nearest

_ID = re.compile(r"[\w-]+")
_WORKFLOW = re.compile(r"[\w.-]+")


class Shape(Record):
    """The keys of an object, each with the kind of its value. `needs` are the required keys."""

    what: str  # as messages name it
    keys: Mapping[str, str]
    needs: tuple[str, ...] = ()


_STEP = {"id": "id", "type": "name", "name": "text", "description": "text"}
_TASK = {
    "retries": "whole",
    "backoff": "backoff",
    "timeout": "duration",
    "queue": "name",
    "priority": "whole",
}
TASK_OPTIONS = tuple(_TASK)

DOCUMENT = Shape(
    "a workflow",
    {"workflow_id": "workflow", "version": "name", "name": "text", "description": "text",
        "on": "names", "queue": "name",
     "timeout": "length", "schedule": "any", "steps": "steps"},
    ("workflow_id", "steps"),
)  # fmt: skip
STEPS: dict[str, Shape] = {
    "condition": Shape("a condition step",
        {**_STEP, "condition": "any", "on_true": "step", "on_false": "step"}, ("condition",)),
    "action": Shape(
        "an action step",
        {**_STEP, "action": "name", "reason": "reason", "requires": "object", "execute": "objects",
            "on_true": "step", "on_false": "step"},
        ("action",),
    ),
    "wait": Shape(
        "a wait step",
        {**_STEP, "event": "name", "where": "where", "signal": "name", "for": "duration",
            "until": "time", "timeout": "duration",
         "into": "id", "next": "step", "on_timeout": "step"},
    ),
    "task": Shape(
        "a task step",
        {**_STEP, "task": "name", "inputs": "any", **_TASK, "into": "id", "next": "step",
            "on_failure": "step"}, ("task",)
    ),
    "parallel": Shape(
        "a parallel step",
        {**_STEP, "branches": "branches", "into": "id", "next": "step", "on_failure": "step"},
        ("branches",)
    ),
    "end": Shape("an end step", {**_STEP, "status": "name", "reason": "text", "result": "any"}),
}  # fmt: skip
APPROVAL = Shape(
    "`requires`",
    {"type": "name", "role": "role", "timeout": "duration", "quorum": "whole",
        "four_eyes": "bool", "escalate": "any", "notify": "name",
     "data": "any"},
    ("type", "role"),
)  # fmt: skip
STAGE = Shape(
    "a stage of `escalate`", {"role": "role", "after": "duration", "timeout": "duration"}, ("role",)
)
EXECUTE: dict[str, Shape] = {
    "task": Shape(
        "a task to execute", {"type": "name", "task": "name", "inputs": "any", **_TASK}, ("task",)
    ),
    "publish": Shape(
        "an event to publish", {"type": "name", "event": "name", "data": "any"}, ("event",)
    ),
}

HOW = {
    "id": "letters, digits, - and _", "workflow": "letters, digits, -, _ and .",
    "name": "text of at most 200 characters", "names": "a name, or a list of names", "text": "text",
    "length": "a duration",
    "duration": 'a duration, such as "24h", "1h30m" or 90',
    "backoff": "a duration, or an object with initial, factor, max and jitter",
    "bool": "true or false", "role": "text of at most 200 characters",
    "reason": f"text of at most {TEXTS.comment:,} characters",
    "where": f"an object of at most {TEXTS.where_bytes:,} bytes",
    "time": 'a time, such as "2026-11-15T09:30:00Z"',
    "factor": f"a number from {FACTOR[0]} to {FACTOR[1]}",
    "object": "an object", "objects": "a list of objects", "step": "the id of a step",
    "steps": "a list of steps",
    "branches": "an object, or a list, of lists of steps",
}  # fmt: skip


FILLED = frozenset({"duration", "time", "role", "reason"})


def checked(place: Json, shape: Shape, problems: StepProblems) -> dict[str, Json]:
    """Returns the entries of an object that fit its shape; reports the others and missing keys."""
    good: dict[str, Json] = {}
    meant = set[str | None]()
    for key, inner in place.entries.items():
        kind = shape.keys.get(key)
        if kind is None:
            problems.at(
                "S004",
                f'{shape.what} has no "{key}"',
                place.key(key),
                INSTEAD.get(key) or one_of(key, list(shape.keys)),
            )
            meant.add(nearest(key, shape.keys))
        elif _fits(inner, kind, key, problems):
            good[key] = inner
    for key in shape.needs:
        if key not in place.entries and key not in meant:
            problems.at(
                "S005",
                f'{shape.what} needs "{key}"',
                place,
                f'"{key}" is {HOW.get(shape.keys[key], "any value")}',
            )
    return good


def _fits(place: Json, kind: str, key: str, problems: StepProblems) -> bool:
    problem = _problem(place.value, kind, key)
    if problem:
        problems.at("S006", f'"{key}" cannot be this', place, problem)
    elif kind in ("id", "workflow", "name", "step", "names") and any(
        len(name) > LONGEST_NAME for name in _names(place.value)
    ):
        problems.at(
            "S002",
            f'"{key}" is longer than {LONGEST_NAME} characters',
            place,
            "find a shorter name",
        )
        return False
    return not problem


def _names(value: Any) -> list[str]:
    return [
        name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)
    ]


def _problem(value: Any, kind: str, key: str) -> str:
    """Says why the value is not of the kind; empty if it is.

    A text with `${…}` may be any duration, time or role.
    """
    if kind in FILLED and isinstance(value, str) and "${" in value:
        return ""
    if kind == "whole":
        return whole_problem(key, value)
    if kind in ("duration", "length", "backoff") and not (
        kind == "backoff" and isinstance(value, dict)
    ):
        try:
            duration_s(value)
        except ValueError as problem:
            return str(problem)
        return ""
    return "" if kind == "any" or _is(value, kind) else f"it is {HOW[kind]}"


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "id":
            return isinstance(value, str) and bool(_ID.fullmatch(value))
        case "workflow":
            return isinstance(value, str) and bool(_WORKFLOW.fullmatch(value))
        case "name" | "step":
            return isinstance(value, str) and bool(value.strip())
        case "names":
            return _is(value, "name") or (
                isinstance(value, list) and bool(value) and all(_is(one, "name") for one in value)
            )
        case "text":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "role":
            return _is(value, "name") and len(value) <= LONGEST_NAME
        case "reason":
            return isinstance(value, str) and len(value) <= TEXTS.comment
        case "time":
            return isinstance(value, str) and is_time(value)
        case "factor":
            return is_factor(value)
        case "where":
            return isinstance(value, dict) and json_bytes(value) <= TEXTS.where_bytes
        case "objects":
            return isinstance(value, list) and all(isinstance(one, dict) for one in value)
        case "steps":
            return isinstance(value, list) and bool(value)
        case "branches":
            return isinstance(value, dict | list) and bool(value)
    return isinstance(value, dict)
