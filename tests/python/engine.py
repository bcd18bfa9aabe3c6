"""Runs Python workflows on the engine, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rhythm.app.database import memory_store
from rhythm.authoring.workflow import Workflow, default_workflows
from rhythm.errors import ExecutionFailed
from rhythm.ir.program import Program
from rhythm.worker.handlers import default_tasks
from rhythm.worker.runner import Clock, InProcessRunner


def run_in_process(
    workflow: Workflow[..., Any],
    inputs: dict[str, Any],
    signals: Sequence[tuple[str, Any]] = (),
) -> Any:
    """Returns the result of a workflow. Raises `ExecutionFailed` if it fails."""

    def find(name: str) -> Program:
        return workflow.program if name == workflow.name else default_workflows[name].program

    runner = InProcessRunner(
        memory_store, find, default_tasks, lambda name: "it is not there", Clock(True)
    )
    try:
        ended = runner.run(workflow.name, inputs, signals)
    finally:
        runner.close()
    if ended.status != "completed":
        raise ExecutionFailed(ended.id, ended.status, ended.value)
    return ended.value
