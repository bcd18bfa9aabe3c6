"""What the programs of the corpus say of themselves: the inputs to call each workflow with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

W = TypeVar("W")
GIVEN: dict[str, list[dict[str, Any]]] = {}  # by the name of the workflow


def given(*calls: dict[str, Any]) -> Callable[[W], W]:
    """The corpus runs the workflow once for each of these inputs; without any, once with none."""

    def note(workflow: W) -> W:
        name = workflow.name  # type: ignore[attr-defined]  # what @rhythm.workflow returns
        assert name not in GIVEN, f"two programs are called {name}"
        GIVEN[name] = list(calls) or [{}]
        return workflow

    return note
