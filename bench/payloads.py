"""What the gate costs for a task's result and inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

from bench.measure import best_s, row, show_s
from rhythm.engine.payload import dump
from rhythm.worker.ended import ended_by
from rhythm.worker.handlers import Task

ORDER = {
    "id": "123",
    "items": [{"sku": "a", "count": 1, "price": 2.5} for _ in range(4)],
    "paid": True,
}
RESULTS: dict[str, Any] = {
    "a number": 42,
    "an object of five fields": {
        "id": "123",
        "amount": 12.5,
        "ok": True,
        "count": 3,
        "note": "fine",
    },
    "an order with four items": ORDER,
    "a hundred orders": [ORDER] * 100,
}


@dataclass
class Due:
    day: date
    count: int


def payloads() -> None:
    """A result on its way into the store, next to json.dumps, which checks nothing; and inputs on
    their way into a handler."""
    task = _task(lambda: None)
    for name, value in RESULTS.items():
        gate, whole = (
            best_s(lambda v=value: dump(v, "result")),
            best_s(lambda v=value: ended_by(task, lambda: v)),
        )
        theirs = best_s(lambda v=value: json.dumps(v))
        row(
            f"the gate: {name}",
            show_s(gate),
            f"json.dumps: {show_s(theirs)}",
            f"{gate / theirs:.2f} ×",
        )
        row("… with what follows the end of an attempt", show_s(whole))
    row("inputs of plain types, checked", show_s(_fitting(_task(_plain), {"sku": "a", "count": 1})))
    row(
        "a dataclass with a date, made from its object",
        show_s(_fitting(_task(_typed), {"due": {"day": "2026-01-31", "count": 1}})),
    )


def _fitting(task: Task[..., Any], inputs: dict[str, Any]) -> float:
    return best_s(lambda: task.problem_with(inputs) or task.body(**inputs)) - best_s(
        lambda: task.function(**inputs)
    )


def _task(function: Any) -> Task[..., Any]:
    return Task(function, "bench", "default", 0, None, None)


def _plain(sku: str, count: int) -> None: ...


def _typed(due: Due) -> None: ...
