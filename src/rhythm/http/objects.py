"""What a route is about, and whether the caller may do that to it: the second question of the
guard, after the permission itself.

A role may be limited to names (`viewer:order*`), and which name counts depends on the route. Where
the path says what the route is about, it is looked up here, before the body is read; what is out of
scope is answered exactly like what does not exist (except for queues: see `_queue`). A list leaves
out what is out of scope, and a route whose body says what it is about checks that itself: both must
ask for the scope (`Asker.scope`), or they are not answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rhythm.app import Rhythm
from rhythm.app.approvals import no_approval
from rhythm.app.checks import unknown_execution
from rhythm.app.loading import no_workflow
from rhythm.errors import UnknownWorkflow
from rhythm.http.guard import Asker
from rhythm.permissions import READ, Scope, within

# named by the path
EXECUTION = "execution"
APPROVAL = "approval"
WORKFLOW = "workflow"
SCHEDULE = "schedule"
QUEUE = "queue"
LIST = "list"  # the route lists what is in scope
BODY = "body"  # the body says what the route is about
EVERYTHING = "everything"  # about nothing that has a name: it needs a role without a pattern


def _execution(app: Rhythm, scope: Scope, id: str) -> str | None:
    """Returns the name at the root of an execution.

    Raises `UnknownExecution` if it is out of scope. Who may see an order sees everything that was
    done for it.
    """
    name = app.details.root_name(id)
    return name if within(scope, name) else unknown_execution(id)


def _approval(app: Rhythm, scope: Scope, id: str) -> str | None:
    """Returns the name at the root of the execution that asks.

    Raises `UnknownApproval` if it is out of scope.
    """
    name = app.details.root_name(app.approval(id).execution_id)
    return name if within(scope, name) else no_approval(id)


def _workflow(app: Rhythm, scope: Scope, name: str) -> str | None:
    """Returns the name. Raises `UnknownWorkflow` if it is out of scope."""
    if not within(scope, name):
        raise UnknownWorkflow(f"there is no workflow `{name}`", name)
    return name


def _schedule(app: Rhythm, scope: Scope, name: str) -> str | None:
    """Returns the name of the workflow that a schedule starts.

    Raises `UnknownSchedule` if it is out of scope.
    """
    return app.get_schedule(name, scope=scope).workflow


def _queue(app: Rhythm, scope: Scope, name: str) -> str | None:
    """Returns the name of the queue; None if it is out of scope.

    Every name is that of a queue, so saying that one is out of scope reveals nothing.
    """
    return name if within(scope, name) else None


Named = Callable[[Rhythm, Scope, str], str | None]
# the parameter of the path, and the function that finds the name on which permissions depend
NAMED: Mapping[str, tuple[str, Named]] = {
    EXECUTION: ("id", _execution),
    APPROVAL: ("id", _approval),
    WORKFLOW: ("name", _workflow),
    SCHEDULE: ("name", _schedule),
    QUEUE: ("name", _queue),
}
ABOUT = (*NAMED, LIST, BODY, EVERYTHING)


def check_about(about: str | None, permission: str | None, path: str) -> None:
    """Fails if a route does not say what it is about, or if its path does not name it.

    So such a route cannot be built.
    """
    assert (about is None) == (permission is None), (
        f"{path}: what is not public says what it is about"
    )
    assert about is None or about in ABOUT, f"{path}: there is no {about}"
    if about in NAMED:
        assert f"{{{NAMED[str(about)][0]}" in path, f"{path} names no {about}"


def found(asker: Asker, permission: str, about: str, parameters: Mapping[str, Any]) -> Asker:
    """Returns the caller, with the name of what they ask about.

    Raises `Refused`, or the error for what does not exist, if their scope does not include it.
    """
    scope = asker.permissions[permission]
    if scope is None or about in (LIST, BODY):
        return asker
    if about == EVERYTHING:
        asker.refuse(permission, "for everything")
    parameter, name_of = NAMED[about]
    name = name_of(asker.app, scope, parameters[parameter])
    if name is None:
        asker.refuse(permission, f"for the {about} `{parameters[parameter]:.80}`")
    return asker.replace(about=name)


def discreet(asker: Asker, unknown: UnknownWorkflow) -> UnknownWorkflow:
    """Returns the same error without the names of workflows that the caller may not see."""
    scope = asker.permissions.get(READ, ())
    if scope is None:
        return unknown
    names = [view.name for view in asker.app.workflows() if within(scope, view.name)]
    return UnknownWorkflow(no_workflow(unknown.name, names), unknown.name)
