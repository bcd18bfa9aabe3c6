"""Runs a workflow here and now, in this process, against the tasks that a Python file registers.

Parallel branches run in parallel, retries and timeouts are honoured, timers really wait unless --fast-forward skips them.
Nothing is stored. Exit code 0: it completed; 1: it failed; 2: it could not be run.

  rhythm run order.flow --app tasks.py -i orderId=A17 -i total:=99.5 --signal 'shipped={"by": "post"}'
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from rhythm.cli.app import load_app
from rhythm.cli.documents import print_json
from rhythm.cli.files import read_source
from rhythm.cli.inputs import INPUT, INPUTS, hint_for_texts, read_inputs, read_json
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.programs import FILE, WORKFLOW, choose, compile_file
from rhythm.cli.trace import Trace
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.rules.known import Known
from rhythm.lang.source import Diagnostic, Source, nearest, render
from rhythm.worker.execution import Execution
from rhythm.worker.handlers import default_tasks
from rhythm.worker.inprocess import Finder, InProcessRun

OPTIONS = (
    FILE,
    WORKFLOW,
    Option("--app", "the Python file or module that registers the tasks with @rhythm.task", value="FILE"),
    INPUT,
    INPUTS,
    Option("--signal", "a signal that is in the mailbox from the start; NAME alone has no payload", value="NAME=JSON", many=True),
    Option("--fast-forward", "skip sleeping: jump to the next timer or retry when no task is running"),
    Option("--output", "json: no trace, and stdout is exactly one JSON document once it has run", choices=("text", "json"), default="text"),
    Option("--quiet", "do not show what happens while it runs", short="-q"),
)


def run(args: Arguments) -> int:
    if args.output == "json":
        return _run_for_machines(args)
    ended = _execute(args)
    for signal in ended.signals:
        print(f"note: the signal `{signal.name}` was never taken", file=sys.stderr)
    if ended.status == "completed":
        print_json(json.dumps(ended.value, ensure_ascii=False, indent=2))
        return 0
    print(_show_failure(ended), file=sys.stderr)
    if ended.value["code"] == "TypeMismatch" and (hint := hint_for_texts(args.input)):
        print(hint, file=sys.stderr)
    return 1


def _run_for_machines(args: Arguments) -> int:
    """Whatever tasks print, or the programs they start, goes to standard error: standard output is the document alone."""
    sys.stdout.flush()
    document = os.dup(1)
    os.dup2(2, 1)
    args.quiet = True
    ended = _execute(args)
    sys.stdout.flush()
    os.dup2(document, 1)
    os.close(document)
    failed = ended.status != "completed"
    print(
        json.dumps(
            {
                "status": "failed" if failed else "completed",
                "result": None if failed else ended.value,
                "error": _error(ended) if failed else None,
            }
        )
    )
    return 1 if failed else 0


def _execute(args: Arguments) -> Execution:
    inputs, signals = read_inputs(args), [_signal(text) for text in args.signal]
    if args.app:
        load_app(args.app)
    programs = compile_file(args.file, Known(default_tasks.shapes() if args.app else None), quiet=args.output == "json")
    program = choose(programs, args.file, args.workflow)
    trace = Trace(sys.stderr, enabled=not args.quiet)
    return InProcessRun(_finder(programs, args.file), default_tasks, args.fast_forward, trace).run(program, inputs, signals)


def _finder(programs: tuple[Program, ...], file: str) -> Finder:
    """Child workflows are found in the same file, then as NAME.flow beside it."""
    known = {program.name: program for program in programs}

    def find(name: str) -> Program | str:
        beside = Path(file).with_name(f"{name}.flow")
        if name not in known and "/" not in name and beside.is_file():
            for program in compile_flow(read_source(str(beside)), str(beside)).programs:
                known.setdefault(program.name, program)
        near = nearest(name, known)
        missing = f"there is no workflow `{name}`; " + (f"did you mean `{near}`?" if near else f"it is looked for in {file} and {beside}")
        return known.get(name, missing)

    return find


def _signal(text: str) -> tuple[str, Any]:
    name, equals, payload = text.partition("=")
    if not name:
        raise UsageError(f"--signal {text}: write NAME=JSON")
    return name, read_json(payload, f"--signal {text}", f"for the text write --signal '{name}=\"{payload}\"'") if equals else None


def _error(ended: Execution) -> dict[str, Any]:
    line, column = ended.program.position(ended.at)
    return {**ended.value, "file": ended.program.file, "line": line, "column": column}


def _show_failure(ended: Execution) -> str:
    """The error under the line where it arose; then, if that line waited for a child, where the child failed."""
    error, file = ended.value, ended.program.file
    shown = f"{ended.status}[{error['code']}]: {error['message']}"
    if file != "-":
        shown = render(Source(file, read_source(file)), Diagnostic(error["code"], ended.status, error["message"], ended.at, ended.at + 1))
    id = error["data"].get("id") if error["code"] == "ChildFailed" and error["data"] else None
    failed = [child for child in ended.children.values() if child.id == id]
    return "\n".join([shown, *(_show_failure(child) for child in failed)])
