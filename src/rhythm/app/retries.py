"""The plan of a retry: for whoever retries an execution, and for whoever asks whether it would be
refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rhythm.errors import InvalidProgram, NotRetryable, UnknownExecution, UnknownWorkflow
from rhythm.store.interfaces.executions import Reach
from rhythm.store.lifecycle import WORKFLOW

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.workflows import Workflows
    from rhythm.store.interfaces.executions import Execution, Family
    from rhythm.store.interfaces.store import Store

# What is wrong with one execution, and not with the database: others may be retried.
REFUSALS = (NotRetryable, UnknownWorkflow, UnknownExecution, InvalidProgram)


def retry_plan(
    store: Store, workflows: Workflows, row: Execution, new_id: str, from_start: bool
) -> Callable[[Family], Family]:
    """Returns the function that makes the rows of a retry from those of the old execution.

    Raises `UnknownWorkflow` if it is to begin at the beginning, and there is no current version.
    """
    from rhythm.engine.retry_plan import anew, retried

    if not from_start:
        reach = Reach.by(store.limits)
        return lambda family: retried(family, new_id, reach)
    version = workflows.current(row.name).version if row.type == WORKFLOW else row.version
    return lambda family: anew(family, new_id, version)


def why_refused(context: AppContext, workflows: Workflows, id: str, from_start: bool) -> str:
    """Returns why a retry would be refused now; empty if it would not be.

    It does all that a retry does, but store it.
    """
    store = context.store
    try:
        plan = retry_plan(store, workflows, context.execution(id), id, from_start)
        plan(store.executions.family(id, Reach.by(store.limits), not from_start))
    except REFUSALS as refusal:
        return str(refusal)
    return ""
