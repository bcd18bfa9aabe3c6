"""Workflows of JSON steps for tests."""

from __future__ import annotations

import json
from typing import Any

from rhythm.ir.program import Program
from rhythm.lang.steps.compile import compile_steps

FILE = "main.steps.json"


def document(*steps: dict[str, Any], **top: Any) -> str:
    """The text of a workflow `main` of these steps."""
    return json.dumps({"workflow_id": "main", **top, "steps": steps}, indent=1)


def compiled(*steps: dict[str, Any], **top: Any) -> Program:
    return compile_steps(document(*steps, **top), FILE).programs_or_raise()[0]


def task(id: str, task: str = "echo", **keys: Any) -> dict[str, Any]:
    return {"id": id, "type": "task", "task": task, **keys}


def end(id: str, result: Any = None, **keys: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": "end",
        **({"result": id if result is None else result} if "status" not in keys else {}),
        **keys,
    }


def choice(
    id: str, condition: Any, yes: str | None = None, no: str | None = None
) -> dict[str, Any]:
    targets = {"on_true": yes, "on_false": no}
    return {
        "id": id,
        "type": "condition",
        "condition": condition,
        **{key: to for key, to in targets.items() if to},
    }


def block(id: str, **keys: Any) -> dict[str, Any]:
    return {"id": id, "type": "action", "action": "block", **keys}


def allow(id: str = "allow", **keys: Any) -> dict[str, Any]:
    return {"id": id, "type": "action", "action": "allow", **keys}


def wait(id: str, **keys: Any) -> dict[str, Any]:
    return {"id": id, "type": "wait", **keys}


def approval(
    id: str = "ask",
    on: dict[str, Any] | None = None,
    role: str = "boss",
    timeout: Any = "24h",
    **keys: Any,
) -> dict[str, Any]:
    return block(
        id, requires={"type": "approval", "role": role, "timeout": timeout, **(on or {})}, **keys
    )


def parallel(id: str, branches: Any, **keys: Any) -> dict[str, Any]:
    return {"id": id, "type": "parallel", "branches": branches, **keys}
