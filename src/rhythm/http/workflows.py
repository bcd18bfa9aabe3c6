"""Workflows over HTTP: registering and reading them, and their graphs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from rhythm.app.events import TriggerView
from rhythm.app.views import SourceView, WorkflowView
from rhythm.errors import UnknownWorkflow
from rhythm.http.answers import answer, without
from rhythm.http.pages import by_name, listed, seen_by_name
from rhythm.http.requests import Ask, Cursor, Limit, Name
from rhythm.http.schemas import Body, form_of, object_of, page_of
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import graph
from rhythm.permissions import READ

Workflow = form_of(WorkflowView)
Workflows = page_of(Workflow)
Detail = object_of(
    "WorkflowDetail",
    "A workflow in its current version, with its source.",
    like=WorkflowView,
    source=str,
)
Drawn = object_of(
    "WorkflowGraph",
    (
        "What a workflow does, step by step: as nodes and edges, as a text outline, and as a "
        "Mermaid flow chart."
    ),
    name=str,
    nodes=list[dict[str, Any]],
    edges=list[dict[str, Any]],
    text=str,
    mermaid=str,
)


Source = form_of(SourceView, "WorkflowSource")
Triggers = page_of(form_of(TriggerView, "Trigger"))
Version = Annotated[str, Query(description="A version, as an execution of the workflow has it.")]
OfEvent = Annotated[str | None, Query(description="Only for events of this type.")]
OfWorkflow = Annotated[str | None, Query(description="Only for this workflow.")]


class NewWorkflow(Body):
    source: str = Field(
        description="The text of a workflow file. It may contain several workflows."
    )


Registered = object_of(
    "Registered",
    "The workflows in the text, in their current version.",
    workflows=list[Workflow],  # type: ignore[valid-type]  # a model that is made here
)


def register(ask: Ask, body: NewWorkflow) -> Response:
    """Registers the workflows in a text.

    If one of them does not compile, none is registered.
    """
    limits = {"scope": ask.scope("workflow:write"), "known": ask.scope(READ)}
    # A source with a line break is taken for a text, never for the name of a file.
    names = ask.app.register(f"{body.source}\n", by=ask.actor, **limits)
    found = ask.app.workflows.get_many(names)
    return answer({"workflows": [found[name] for name in sorted(found)]}, 201)


def find(ask: Ask, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Lists the workflows, sorted by name, each in its current version."""
    items, more = seen_by_name(
        ask, ask.app.workflows, lambda workflow: workflow.name, limit, cursor
    )
    return listed(ask, items, more, lambda n: items[n].name)


def get(ask: Ask, name: Name) -> Response:
    """Returns the current version of a workflow, with its source."""
    view = ask.app.workflow(name)
    source = ask.app.workflows.source(view.name, view.version, scope=ask.scope(READ))
    return answer({**without(view), "source": source.own if source else ""})


def source(ask: Ask, name: Name, version: Version) -> Response:
    """Returns the text of a version of a workflow, as it was registered."""
    found = ask.app.workflows.source(name, version, scope=ask.scope(READ))
    if found is None:
        raise UnknownWorkflow(f"there is no version {version!r:.80} of the workflow `{name}`", name)
    return answer(found)


def triggers(
    ask: Ask,
    event: OfEvent = None,
    workflow: OfWorkflow = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Lists which events start which workflows."""
    found = ask.seen(ask.app.events.triggers(event, workflow), lambda each: each.workflow)
    items, more = by_name(found, _place, limit, cursor)
    return listed(ask, items, more, lambda n: _place(items[n]))


def _place(trigger: TriggerView) -> str:
    return f"{trigger.event} {trigger.workflow}"


def draw(ask: Ask, name: Name) -> Response:
    """Returns a graph of what a workflow does.

    It comes as nodes and edges, as a text outline, and as a Mermaid flow chart.
    """
    view = ask.app.workflow(name)
    program = ask.app.program(view.name, view.version)
    assert program is not None, name
    drawn = graph(program)
    return answer({**without(drawn), "text": as_text(drawn), "mermaid": as_mermaid(drawn)})
