"""The OpenAPI document for a caller with a token: with the inputs of the workflows that they may
see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rhythm.app.views import WorkflowView
from rhythm.http.answers import document as as_json
from rhythm.http.guard import Asker
from rhythm.permissions import READ, within

MAX_WORKFLOWS = 500  # that the document describes; the rest is found at /workflows/{name}
MAX_BYTES = 4 * 1024 * 1024  # all their inputs together, as JSON
MAX_INSPECTED = 5_000  # workflows that are read to find them
PAGE = 50
START = "/api/v1/executions"
NEW = "NewExecution"


def with_workflows(document: dict[str, Any], asker: Asker) -> dict[str, Any]:
    """Returns the document with the inputs of the workflows that a caller may see.

    Each is a component, and one of the bodies with which an execution is started.
    """
    named = dict(_named(_seen(asker)))
    if not named:
        return document
    parts = document["components"]
    schemas = {**parts["schemas"], **{key: _inputs(view) for key, view in named.items()}}
    bodies = [_body(key, view) for key, view in named.items()]
    paths = {**document["paths"], START: _with_bodies(document["paths"][START], bodies)}
    return {**document, "paths": paths, "components": {**parts, "schemas": schemas}}


def _seen(asker: Asker) -> Iterator[WorkflowView]:
    """Yields the workflows that declare inputs and that the caller may read, by name.

    It ends with the first that is one too many, or too large beside the others.
    """
    scope, after, found, size = asker.permissions.get(READ, ()), "", 0, 0
    if scope == ():
        return
    for _ in range(MAX_INSPECTED // PAGE):
        page = asker.app.workflows(PAGE, after)
        for view in page:
            if view.inputs is not None and within(scope, view.name):
                found, size = found + 1, size + len(as_json(view.inputs))
                if found > MAX_WORKFLOWS or size > MAX_BYTES:
                    return
                yield view
        if len(page) < PAGE:
            return
        after = page[-1].name


def _named(views: Iterable[WorkflowView]) -> Iterator[tuple[str, WorkflowView]]:
    """Yields each workflow with the name of its component, which has few kinds of characters."""
    taken = set[str]()
    for view in views:
        name = base = f"Inputs.{re.sub(r'[^A-Za-z0-9._-]', '_', view.name)}"
        number = 2
        while name in taken:
            name, number = f"{base}.{number}", number + 1
        taken.add(name)
        yield name, view


def _inputs(view: WorkflowView) -> dict[str, Any]:
    return {"description": f"The inputs of the workflow `{view.name}`.", **(view.inputs or {})}


def _body(component: str, view: WorkflowView) -> dict[str, Any]:
    needed = ["inputs"] if (view.inputs or {}).get("required") else []
    return {
        "allOf": [{"$ref": f"#/components/schemas/{NEW}"}],
        "properties": {
            "workflow": {"const": view.name},
            "inputs": {"$ref": f"#/components/schemas/{component}"},
        },
        "required": ["workflow", *needed],
    }


def _with_bodies(path: dict[str, Any], bodies: list[dict[str, Any]]) -> dict[str, Any]:
    start = path["post"]
    content = {
        kind: {**form, "schema": {"anyOf": [*bodies, form["schema"]]}}
        for kind, form in start["requestBody"]["content"].items()
    }
    body = {**start["requestBody"], "content": content}
    return {**path, "post": {**start, "requestBody": body}}
