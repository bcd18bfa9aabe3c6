"""Lists the registered workflows, each with the version on which new executions start, or shows one
of them.

Of one workflow its inputs are shown, if it declares them: their types, and which are required.
With --output json they are a JSON Schema.

Workflows are registered by `rhythm start FILE.flow`, by applications and by workers. An execution
stays on the version that it began with.

  rhythm workflows
  rhythm workflows order
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.cli.command import Arguments, argument, command
from rhythm.cli.connect import application
from rhythm.cli.options import DATABASE_OR_SERVER, OUTPUT
from rhythm.cli.output import print
from rhythm.cli.types import Known

if TYPE_CHECKING:
    from rhythm.app import Rhythm, WorkflowView

NEWEST = 100  # how many executions are counted


@command(__doc__)
@argument(
    "name",
    type=Known("workflows"),
    required=False,
    help="show this workflow, and count its newest executions by status",
)
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        found = app.workflows()
        if args.name is None:
            _print_all(args.output, found)
        else:
            _print_one(app, args, found)
    return 0


def _print_all(output: str, found: list[WorkflowView]) -> None:
    from rhythm.cli.output.documents import print_items
    from rhythm.cli.output.table import print_table

    if output != "table":
        print_items(output, [_json(workflow) for workflow in found])
    elif not found:
        print("no workflows yet: `rhythm start FILE.flow` registers one")
    else:
        rows = [
            (w.name, w.version[:12], f"{w.registered_at:%Y-%m-%d %H:%M:%S} UTC", w.file)
            for w in found
        ]
        print_table(("WORKFLOW", "VERSION", "REGISTERED", "FILE"), rows)


def _print_one(app: Rhythm, args: Arguments, found: list[WorkflowView]) -> None:
    from datetime import UTC, datetime

    from rhythm.cli.output.documents import print_item
    from rhythm.cli.output.table import print_fields
    from rhythm.cli.output.words import counted, moment

    workflow = _named(args.name, found)
    newest = app.list(workflow.name, limit=NEWEST)
    statuses = [execution.status for execution in newest]
    on = app.events.starting(workflow.name)
    if args.output != "table":
        print_item(
            args.output,
            _json(workflow)
            | {
                "on": on,
                "newest": {status: statuses.count(status) for status in sorted(set(statuses))},
            },
        )
        return
    of = (
        f"the newest {NEWEST:,}: "
        if newest.cursor
        else f"{len(statuses):,}: "
        if statuses
        else "none yet"
    )
    print_fields(
        [
            ("workflow", workflow.name),
            ("version", workflow.version),
            ("file", workflow.file),
            ("registered", moment(workflow.registered_at, datetime.now(UTC))),
            ("started by", ", ".join(f"event {type}" for type in on)),
            ("executions", of + counted(statuses)),
            ("inputs", "" if workflow.inputs is None else _inputs_note(workflow.inputs)),
        ]
    )
    if workflow.inputs and workflow.inputs["properties"]:
        _print_inputs(workflow.inputs)


def _inputs_note(declared: dict[str, Any]) -> str:
    """Returns the note on inputs that no table shows; else an empty text."""
    return "" if declared["properties"] else "it takes none"


def _print_inputs(declared: dict[str, Any]) -> None:
    from rhythm.cli.output.table import print_table
    from rhythm.lang.flow.constants import constant_text
    from rhythm.lang.flow.types import type_text

    rows = [
        (
            name,
            type_text(part),
            "required" if name in declared["required"] else constant_text(part["default"]),
        )
        for name, part in declared["properties"].items()
    ]
    print()
    print_table(("INPUT", "TYPE", "DEFAULT"), rows)


def _named(name: str, found: list[WorkflowView]) -> WorkflowView:
    """Returns the workflow of this name. `UnknownWorkflow` if there is none, with a suggestion."""
    from rhythm.errors import UnknownWorkflow
    from rhythm.suggest import nearest

    by_name = {workflow.name: workflow for workflow in found}
    if name in by_name:
        return by_name[name]
    near = nearest(name, by_name)
    raise UnknownWorkflow(
        f"there is no workflow `{name}`; "
        + (f"did you mean `{near}`?" if near else "`rhythm workflows` lists those that there are")
    )


def _json(workflow: WorkflowView) -> dict[str, Any]:
    registered_at = workflow.registered_at.isoformat().replace("+00:00", "Z")
    shown = ("name", "version", "language", "file")
    return {name: getattr(workflow, name) for name in shown} | {
        "registered_at": registered_at,
        "inputs": workflow.inputs,
    }
