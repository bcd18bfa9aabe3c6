"""`rhythm COMMAND`: finds the command, imports it and nothing else, and turns mistakes into one
line and an exit code.

Exit codes: 0 it worked, 1 it ran and found or met a failure, 2 it could not run (wrong usage, a
file that is refused), 3 an execution has not ended in the time one was ready to wait.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from rhythm.cli.options import HelpWanted, UsageError, help_page, parse
from rhythm.cli.output import print, print_problem
from rhythm.suggest import nearest

COMMANDS = {
    "run": "run a workflow here and now, against your tasks",
    "check": "report everything that is wrong with workflow files",
    "fmt": "put workflow files into the one layout",
    "graph": "draw what a workflow does, step by step",
    "listing": "show the program a workflow compiles to",
    "start": "start a workflow on a database",
    "list": "list executions, newest first",
    "show": "show everything about one execution",
    "trace": "show what has happened in an execution, step by step",
    "why": "say why an execution does not go on",
    "result": "wait for the result of an execution, and print it",
    "signal": "send a signal to an execution",
    "publish": "publish an event to all who wait for it",
    "cancel": "ask executions to end",
    "terminate": "end executions at once",
    "retry": "go on where an execution failed",
    "approvals": "list what people are asked to decide",
    "approve": "approve what a workflow asks for",
    "reject": "reject what a workflow asks for",
    "escalate": "hand an approval to the next who may decide",
    "pause": "hold an execution where it is",
    "resume": "let a paused execution go on",
    "worker": "run tasks and workflows of a database, until it is stopped",
    "server": "serve the HTTP interface, until it is stopped",
    "workers": "list the workers of a database",
    "queues": "list the queues: what waits in them, and who serves them",
    "queue": "pause or resume a queue",
    "workflows": "list the workflows that are registered",
    "schedules": "list what starts workflows by the clock; make, pause, run or delete it",
    "token": "make, list, change and revoke tokens for the HTTP API",
    "audit": "show what was done by whom, and prove that it is what it was",
    "migrate": "bring a database to the schema that this version needs",
    "doctor": "check that a database keeps all the rules, and say what to do",
}

HELP = """Durable workflows without replay.

usage: rhythm COMMAND [options]

{commands}

rhythm COMMAND --help says more about one of them; rhythm --version says which Rhythm this is.
Exit codes: 0 it worked; 1 it ran and met a failure; 2 it could not run as it was asked to;
3 not ended in time (--timeout)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # what its encoding does not have is shown as an escape
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help", "help"):
        print(
            HELP.format(
                commands="\n".join(f"  {name:<10} {what}" for name, what in COMMANDS.items())
            )
        )
        return 0 if args else 2
    if args[0] in ("-V", "--version"):
        from rhythm import __version__

        print(f"rhythm {__version__}")
        return 0
    try:
        return _run(args[0], args[1:])
    except BaseException as problem:
        return told(problem)


def told(problem: BaseException) -> int:
    """Says on one line what a command met; its exit code. What is no mistake of the user's, and
    none we know, goes on."""
    if isinstance(problem, UsageError):
        print_problem(problem, f"\n{problem.more}" if problem.more else "")
        return 2
    if isinstance(problem, BrokenPipeError):
        # the reader has gone; so may we, without a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(problem, KeyboardInterrupt):
        print("rhythm: stopped", file=sys.stderr)
        return 130
    from rhythm.errors import FlowError, InvalidSetting, RhythmError

    if not isinstance(problem, RhythmError):
        raise problem
    if isinstance(problem, FlowError) and problem.diagnostics:
        print(
            f"{problem}\n\nrhythm: the workflow does not compile; nothing was registered",
            file=sys.stderr,
        )
    else:
        print(f"rhythm: {' '.join(str(problem).split())}", file=sys.stderr)
    return 2 if isinstance(problem, FlowError | InvalidSetting) else 1


def _run(name: str, args: list[str]) -> int:
    if name not in COMMANDS:
        near = nearest(name, COMMANDS)
        raise UsageError(
            f"there is no command `{name}`"
            + (f"; did you mean `{near}`?" if near else "; see rhythm --help")
        )
    command = importlib.import_module(f"rhythm.cli.commands.{name}")
    try:
        arguments = parse(command.OPTIONS, args)
    except HelpWanted:
        print(help_page(f"rhythm {name}", str(command.__doc__), command.OPTIONS))
        return 0
    except UsageError as problem:
        raise UsageError(str(problem), f"rhythm {name} --help says more") from None
    return int(command.run(arguments))
