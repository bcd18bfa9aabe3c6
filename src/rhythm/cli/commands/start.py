"""Starts a workflow on a database, and prints the id of the execution, alone, on standard output.

A FILE.flow is registered first; a FILE.py is imported, and its workflows are registered. Then the
workflow with the name of the file is started, or else the first in it. Workers run it. With --wait
and --app this process runs a worker, too, and prints the result instead of the id.

Exit code 0: started (with --wait: completed); 1: it failed, was cancelled or blocked, the id or key
is taken (--on-conflict fail), or the database cannot be used; 2: it cannot be started like this; 3:
not ended after --timeout.

  id=$(rhythm start order.flow -i orderId=A17)
  rhythm start order -i total:=99.5 --key A17 --app tasks.py --wait --timeout 1m
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, UsageError, argument, command, option
from rhythm.cli.connect import new_application, refusals
from rhythm.cli.database import read_settings
from rhythm.cli.following import fit_waiting, follow, following, load_tasks, print_id
from rhythm.cli.inputs import read_inputs, read_pairs
from rhythm.cli.options import BY, DATABASE_OR_SERVER, INPUT, INPUTS, WORKFLOWS
from rhythm.cli.output import print
from rhythm.cli.remote import refuse_on_server, server_of
from rhythm.cli.types import LARGEST_NUMBER, Duration, KeyValue, Known, OneOf, Whole
from rhythm.lang.languages import TAKEN_BY_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from rhythm.app import ExecutionView, Handle, Rhythm


@command(__doc__)
@argument(
    "workflow",
    type=Known("workflows", files=True),
    help="the name of a registered workflow, or a .flow, JSON steps or Python file",
)
@INPUT
@INPUTS
@WORKFLOWS
@option("--id", metavar="ID", help="an id of your own; an id that was used before starts nothing")
@option("--key", metavar="KEY", help="an idempotency key: a workflow is started once for each key")
@option(
    "--on-conflict",
    type=OneOf("return", "fail", "replace"),
    default="return",
    help="what to do if the id or key was used before",
)
@option("--queue", type=Known("queues"), help="the queue; else that of the workflow, else default")
@option(
    "--priority", type=Whole(least=-LARGEST_NUMBER), default=0, help="higher priorities go first"
)
@option("--delay", type=Duration(), help="start it after this time, such as 5m")
@option(
    "--attribute",
    type=KeyValue(),
    multiple=True,
    help="a label, shown with the execution; KEY:=JSON gives any JSON value",
)
@BY
@following
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with refusals(args):
        _fit_together(args)
        request = _request(args)
        load_tasks(args)
        if server_of(args) is None:
            _import(args)
            _before_a_database_is_made(args)
        else:
            _fits_a_server(args)
    with new_application(args) as app:
        handle = _start(app, args, request)
        return follow(app, handle, args) if args.wait else print_id(handle, args.output)


def _fit_together(args: Arguments) -> None:
    fit_waiting(args)
    if args.on_conflict == "replace" and args.key is None:
        raise UsageError(
            "--on-conflict replace goes with --key: it is the key that the new execution takes over"
        )
    if (
        server_of(args) is None
        and not args.wait
        and ":memory:" in read_settings(args.database).database_url
    ):
        raise UsageError(
            "a database in memory ends with this command: give --wait and --app, or "
            "another --database"
        )


def _fits_a_server(args: Arguments) -> None:
    """Raises an error if a server cannot start this; before it is asked, for what is wrong here.

    A file that does not compile is shown with its name, which the server is not told.
    """
    from rhythm.cli.files import is_python

    refuse_on_server(args, workflows="register its files with `rhythm start FILE.flow`, one by one")
    if is_python(args.workflow):
        raise UsageError(
            f"a server takes no Python files: whoever runs a worker with {args.workflow} registers "
            f"its workflows; then start one by its name"
        )
    if args.workflow.endswith(TAKEN_BY_NAME):
        _must_compile(args.workflow)


def _must_compile(file: str) -> None:
    """Raises `FlowError` for a file that does not compile, as a database would."""
    from pathlib import Path

    from rhythm.app.loading import read_flows
    from rhythm.errors import FlowError
    from rhythm.lang.languages import compile_text
    from rhythm.lang.source import render_all

    for name, text in read_flows([Path(file)]).items():
        compiled = compile_text(text, name)
        if compiled.errors:
            shown = list(compiled.diagnostics)
            raise FlowError(shown, render_all(compiled.source, shown))


def _request(args: Arguments) -> dict[str, Any]:
    """Returns the arguments of `start_workflow`, without the name of the workflow."""
    from rhythm.ids import problem_with_id

    if args.id is not None and (problem := problem_with_id(args.id)):
        raise UsageError(f"{args.id!r} cannot be an id: {problem}")
    return {
        "inputs": read_inputs(args),
        "id": args.id,
        "idempotency_key": args.key,
        "on_conflict": args.on_conflict,
        "queue": args.queue,
        "priority": args.priority,
        "delay": args.delay,
        "attributes": read_pairs(args.attribute, "--attribute"),
    }


def _import(args: Arguments) -> None:
    """Imports a Python file that is to be started, and puts the workflow's name in its place.

    The application registers what was imported.
    """
    from rhythm.cli.files import is_python

    if is_python(args.workflow):
        from rhythm.cli.programs import choose, compile_file

        args.workflow = choose(compile_file(args.workflow, quiet=True), args.workflow, None).name


def _before_a_database_is_made(args: Arguments) -> None:
    """Raises an error if there is nothing to start, before a new database file is created.

    So no file is left behind by a workflow that does not compile, or that cannot be registered yet.
    """
    import os

    url = read_settings(args.database).database_url
    path = url.removeprefix("sqlite:///")
    if path == url or os.path.exists(path):
        return
    from rhythm.app.loading import compile_flows, no_workflow, read_flows
    from rhythm.authoring.workflow import default_workflows

    sources = _sources(args, args.workflow in default_workflows)
    names = [definition.name for definition in compile_flows(read_flows(sources))]
    names += default_workflows
    if not args.workflow.endswith(TAKEN_BY_NAME) and args.workflow not in names:
        problem = no_workflow(args.workflow, names)
        where = f" There is no database {path} here, either: is this the right folder?"
        raise UsageError(problem if names else f"{problem}.{where}")


def _start(app: Rhythm, args: Arguments, request: dict[str, Any]) -> Handle:
    from rhythm.errors import InvalidPayload, UnknownWorkflow

    try:
        name = _registered(app, args)
        request["inputs"] = read_inputs(args, name, app.workflow(name).inputs)
        handle = app.start_workflow(name, by=actor(args), **request)
    except (InvalidPayload, UnknownWorkflow) as problem:
        raise UsageError(str(problem)) from problem
    _say(handle.get(), handle.created, request["inputs"])
    return handle


def _registered(app: Rhythm, args: Arguments) -> str:
    """Registers the workflow's file and those of --workflows.

    Returns the name of the workflow to start.
    """
    named: str = args.workflow
    if sources := _sources(args, bool(app.workflows.get_many([named]))):
        app.register(*sources)
    return _choose(named) if named.endswith(TAKEN_BY_NAME) else named


def _sources(args: Arguments, known: bool) -> list[Path]:
    """Returns the files and folders to register.

    They are those on the command line. If there are none and the name is not known yet, they are
    those of the settings.
    """
    from pathlib import Path

    named: str = args.workflow
    is_file = named.endswith(TAKEN_BY_NAME)
    if "/" in named and not is_file:
        raise UsageError(f"{named} is neither the name of a workflow nor a .flow or .json file")
    sources = [
        *([named] if is_file and not _inside(named, args.workflows) else []),
        *args.workflows,
    ]
    if not sources and not known and server_of(args) is None:
        sources = list(read_settings(args.database).workflow_paths)
    # as `Path`: `register` takes a string with `{` in it for the text of a workflow
    return [Path(source) for source in sources]


def _inside(file: str, folders: list[str]) -> bool:
    """Returns whether a file is one of the folders or files of --workflows, or lies in one.

    Registered twice, it would be two workflows of one name.
    """
    import os

    real = os.path.realpath(file)
    return any(
        real == os.path.realpath(folder) or real.startswith(os.path.realpath(folder) + os.sep)
        for folder in folders
    )


def _choose(file: str) -> str:
    """Returns the name of the workflow that has the name of the file, else of the first in it."""
    import os

    from rhythm.cli.files import read_source
    from rhythm.lang.languages import compile_text

    names = [program.name for program in compile_text(read_source(file), file).programs]
    like = os.path.splitext(os.path.basename(file))[0]
    return like if like in names else names[0]


def _say(execution: ExecutionView, created: bool, inputs: Any) -> None:
    from rhythm.cli.output.words import printable
    from rhythm.engine.payload import dump, load

    what = f"{execution.name} (version {execution.version[:12]}, queue {execution.queue})"
    said = f"started {what}" if created else f"{what} was started before, and is {execution.status}"
    print(printable(f"{said}: {execution.id}"), file=sys.stderr)
    if inputs and not created and load(dump(inputs, "inputs")) != execution.inputs:
        print(
            printable(
                f"note: it has other inputs than you gave, which are not used; "
                f"`rhythm show {execution.id}` shows its own"
            ),
            file=sys.stderr,
        )
