"""Runs a workflow in this process, without a database, with the tasks that a Python file registers.

A workflow in Python has its tasks in the same file, or imports them; --app adds others.

Parallel branches run in parallel, retries and timeouts apply, and timers really wait, unless
--fast-forward skips them. Nothing is stored.

Exit code 0: it completed; 1: it failed; 2: it could not be run.

  rhythm run order.flow --app tasks.py -i id=A17 -i total:=99.5 --signal 'shipped={"by": "post"}'
  rhythm run shop.py --workflow order -i id=A17
  rhythm run order.flow --app tasks.py --approve 'boss=within budget'
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rhythm.app.database import memory_store
from rhythm.authoring.workflow import default_workflows
from rhythm.cli.app import load_app
from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.files import read_source
from rhythm.cli.inputs import hint_for_texts, read_inputs
from rhythm.cli.options import FILE, INPUT, INPUTS, WORKFLOW_OF_FILE
from rhythm.cli.output import print
from rhythm.cli.output.documents import print_json
from rhythm.cli.output.trace import Trace
from rhythm.cli.programs import choose, compile_file
from rhythm.cli.types import FileName, OneOf, SignalValue
from rhythm.errors import InvalidPayload, UnknownWorkflow
from rhythm.ir.input_schema import check_inputs
from rhythm.ir.program import Program
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.languages import compile_text
from rhythm.lang.source import Diagnostic, Source, render
from rhythm.suggest import nearest, some_of
from rhythm.worker.handlers import default_tasks
from rhythm.worker.runner import Answer, Clock, GivenDecision, InProcessRunner, Run


@command(__doc__)
@FILE
@WORKFLOW_OF_FILE
@option(
    "--app",
    type=FileName(),
    help="the Python file or module that registers the tasks with @rhythm.task",
)
@INPUT
@INPUTS
@option(
    "--signal",
    type=SignalValue(),
    multiple=True,
    help="put a signal into the mailbox at the start; NAME alone has no payload",
)
@option(
    "--approve",
    metavar="ROLE[=COMMENT]",
    multiple=True,
    help="approve, as somebody with this role, when the workflow asks for that; once for each",
)
@option("--reject", metavar="ROLE[=COMMENT]", multiple=True, help="the same, to reject")
@option(
    "--fast-forward",
    is_flag=True,
    help="do not wait for timers: jump to the next timer or retry when no task is running",
)
@option(
    "--output",
    type=OneOf("text", "json"),
    default="text",
    help="json: no trace, and standard output is one JSON document",
)
@option("-q", "--quiet", is_flag=True, help="do not show what happens while it runs")
def run(args: Arguments) -> int:
    if args.output == "json":
        return _run_for_machines(args)
    with _executed(args) as (runner, ended):
        for name in runner.untaken(ended.id):
            print(f"note: the signal `{name}` was never taken", file=sys.stderr)
        for given in runner.unasked:
            print(f"note: `{given.role}` was never asked to {given.decision}", file=sys.stderr)
        if ended.status == "completed":
            print_json(json.dumps(ended.value, ensure_ascii=False, indent=2))
            return 0
        print(_show_failure(runner, ended), file=sys.stderr)
        if ended.value["code"] == "TypeMismatch" and (hint := hint_for_texts(args.input)):
            print(hint, file=sys.stderr)
        return 1


def _run_for_machines(args: Arguments) -> int:
    """Runs the workflow, and prints one JSON document: status, result and error.

    Everything that tasks print, or programs that they start, goes to standard error, so that
    standard output has the document alone.
    """
    sys.stdout.flush()
    document = os.dup(1)
    os.dup2(2, 1)
    args.quiet = True
    with _executed(args) as (_, ended):
        sys.stdout.flush()
    os.dup2(document, 1)
    os.close(document)
    failed = ended.status != "completed"
    print(
        json.dumps(
            {
                "status": ended.status,
                "result": None if failed else ended.value,
                "error": _error(ended) if failed else None,
            }
        )
    )
    return 1 if failed else 0


@contextmanager
def _executed(args: Arguments) -> Iterator[tuple[InProcessRunner, Run]]:
    """Runs the workflow to its end; yields the runner, and how the run ended."""
    signals = [(given.key, given.value) for given in args.signal]
    decisions = [*_decisions(args.approve, "approve"), *_decisions(args.reject, "reject")]
    if args.app:
        load_app(args.app)
    programs = compile_file(
        args.file,
        Surroundings(default_tasks.shapes() if args.app else None),
        quiet=args.output == "json",
    )
    program = choose(programs, args.file, args.workflow)
    declared = program.options.get("inputs")
    inputs = read_inputs(args, program.name, declared)
    clock = Clock(args.fast_forward)
    trace = None if args.quiet else Trace(sys.stderr, clock.seconds)
    runner = InProcessRunner(
        memory_store, _finder(programs, args.file), default_tasks, _why_missing, clock, trace
    )
    with closing(runner):
        try:
            if declared is not None:
                check_inputs(program.name, declared, inputs)
            ended = runner.run(program.name, inputs, signals, decisions)
        except InvalidPayload as problem:
            raise UsageError(str(problem)) from None
        yield runner, ended


def _decisions(given: Sequence[str], decision: Answer) -> Iterator[GivenDecision]:
    """Yields what --approve and --reject say: a role, and a comment behind `=`."""
    for text in given:
        role, _, comment = text.partition("=")
        if not role:
            raise UsageError(f"--{decision} {text}: write --{decision} ROLE=COMMENT")
        yield GivenDecision(role, decision, comment)


def _finder(programs: tuple[Program, ...], file: str) -> Callable[[str], Program]:
    """Returns a function that finds a workflow by its name, for child workflows.

    It looks in the same file, then for NAME.flow, NAME.steps.json or NAME.json beside it, then
    among the Python workflows that were imported.
    """
    known = {program.name: program for program in programs}

    def find(name: str) -> Program:
        beside = (
            [Path(file).with_name(f"{name}{kind}") for kind in (".flow", ".steps.json", ".json")]
            if "/" not in name
            else []
        )
        for found in map(str, beside if name not in known else ()):
            for program in (
                compile_text(read_source(found), found).programs if Path(found).is_file() else ()
            ):
                known.setdefault(program.name, program)
        if name not in known and name in default_workflows:
            known[name] = default_workflows[name].program
        if name not in known:
            near = nearest(name, known)
            advice = (
                f"did you mean `{near}`?"
                if near
                else f"it is looked for in {file} and {Path(file).with_name(name)}.flow"
            )
            raise UnknownWorkflow(f"there is no workflow `{name}`; {advice}")
        return known[name]

    return find


def _why_missing(name: str) -> str:
    near = nearest(name, default_tasks)
    known = f"did you mean `{near}`?" if near else f"registered are {some_of(default_tasks)}"
    return (
        "no task of this name is registered; "
        f"{known if default_tasks else 'pass the file that defines it with --app'}"
    )


def _source(program: Program) -> Source:
    """Returns the text of a program, in which its offsets count."""
    if program.language == "python":
        return default_workflows[program.name].compilation.source
    return Source(program.file, read_source(program.file))


def _error(ended: Run) -> dict[str, Any]:
    return {**ended.value, "file": ended.program.file, "line": ended.line, "column": ended.column}


def _show_failure(runner: InProcessRunner, ended: Run) -> str:
    """Returns the error under the line of source where it arose, as text.

    If that line waited for a child, the failure of the child follows.
    """
    error, file = ended.value, ended.program.file
    shown = f"{ended.status}[{error['code']}]: {error['message']}"
    if file != "-":
        at = ended.program.offset(ended.line, ended.column)
        shown = render(
            _source(ended.program),
            Diagnostic(error["code"], ended.status, error["message"], at, at + 1),
        )
    data = error["data"]
    if (
        not isinstance(data, dict)
        or data.keys() != {"id", "error"}
        or not str(data["id"]).startswith(f"{ended.id}.")
    ):
        return shown
    return f"{shown}\n{_show_failure(runner, runner.ended(data['id']))}"
