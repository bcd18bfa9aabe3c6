"""`rhythm COMMAND`: imports the called command, and turns errors into one line and an exit code.

No other command is imported. Exit codes: 0 it worked; 1 it ran, and found or met a failure; 2 it
could not run (wrong usage, a file that is refused); 3 the execution has not ended within --timeout;
130 it was stopped with Ctrl-C.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

import click

from rhythm.cli.command import SETTINGS, CliCommand, Group, UsageError
from rhythm.cli.output import print, print_problem

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SECTIONS = {  # the commands, by what people do with them
    "begin": {
        "new": "write a small project that works at once",
        "dev": "run everything in this folder, and load it again when it changes",
    },
    "write": {
        "check": "report all problems in workflow files",
        "fmt": "format workflow files",
        "graph": "draw the steps of a workflow",
        "listing": "show the program that a workflow compiles to",
        "convert": "print the workflows of a Python file as .flow text",
    },
    "run": {
        "run": "run a workflow in this process, without a database",
        "start": "start a workflow on a database, for workers to run",
        "result": "wait for the result of an execution, and print it",
        "signal": "send a signal to an execution",
        "publish": "publish an event to every workflow that waits for it",
        "schedules": "list, create, pause, run and delete schedules",
    },
    "watch": {
        "top": "show what is going on, and keep it up to date",
        "list": "list executions, newest first",
        "count": "count executions that meet a filter",
        "show": "show everything about one execution",
        "why": "explain why an execution does not go on, and what would help",
        "trace": "show what happened in an execution, step by step",
        "logs": "show what an execution has logged, and how far it is",
        "watch": "show what happens in an execution, as it happens",
        "workflows": "list the registered workflows",
        "queues": "list the queues: what waits in them, and who serves them",
        "workers": "list the workers, and whether they are alive",
    },
    "decide": {
        "approvals": "list the approvals that people are asked for",
        "approve": "approve what a workflow asks for",
        "reject": "reject what a workflow asks for",
        "escalate": "hand an approval to the next role",
    },
    "operate": {
        "pause": "hold an execution where it is",
        "resume": "let a paused execution go on",
        "cancel": "ask executions to end; their `finally` blocks run",
        "terminate": "end executions at once; no `finally` block runs",
        "retry": "start a new execution that goes on where one failed",
        "queue": "pause or resume a queue",
        "token": "create, list, change and revoke tokens for the HTTP API",
        "audit": "show who did what, and check that the record was not changed",
        "migrate": "create or update the tables that this version needs",
        "doctor": "check the database for broken rules, and say what to do",
    },
    "serve": {
        "worker": "run the workflows and tasks of a database, until it is stopped",
        "server": "serve the HTTP API, until it is stopped",
    },
    "help": {
        "help": "show the help page of a command",
        "completion": "print the script that makes bash, zsh or fish complete commands",
    },
}
COMMANDS = {name: what for section in SECTIONS.values() for name, what in section.items()}
ENDING = """\
rhythm COMMAND --help shows the help page of a command; rhythm --version prints the version.

Exit codes: 0 it worked; 1 it ran and met a failure; 2 it could not run: the command or a file is
wrong; 3 the execution has not ended within --timeout."""
COMPLETING = "_RHYTHM_COMPLETE"  # the environment variable that asks for completions


class Root(Group):
    """The command `rhythm` itself. A command's module is imported when the command is called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = importlib.import_module(f"rhythm.cli.commands.{cmd_name}").run
        assert isinstance(found, CliCommand | Group)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("Durable workflows without replay.\n\nusage: rhythm COMMAND [options]\n")
        for title, section in SECTIONS.items():
            formatter.write_paragraph()
            formatter.write(f"{title}\n")
            with formatter.indentation():
                formatter.write_dl([(f"{name:<10}", what) for name, what in section.items()])
        for paragraph in ENDING.split("\n\n"):
            formatter.write_paragraph()
            formatter.write_text(paragraph)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        options = ("--help", "--version") if incomplete.startswith("-") else ()
        known = [*COMMANDS, *options]
        return [
            CompletionItem(name, help=COMMANDS.get(name))
            for name in known
            if name.startswith(incomplete)
        ]


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from rhythm.build import shown_version

        print(f"rhythm {shown_version()}")
        ctx.exit()


VERSION = click.Option(
    ["-V", "--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="print the version of Rhythm",
)
ROOT = Root("rhythm", params=[VERSION], context_settings=SETTINGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns the exit code. `argv` None: arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # characters that the encoding of the stream does not have are shown as escapes
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        if instruction := os.environ.get(COMPLETING):
            return _complete(instruction)
        return _run(args)
    except BaseException as problem:
        return report_error(problem)


def _run(args: list[str]) -> int:
    with ROOT.make_context("rhythm", args) as ctx:
        if not args:
            print(ctx.get_help())
            return 2
        return int(ROOT.invoke(ctx))


def _complete(instruction: str) -> int:
    """Answers a shell that asks for completions. Returns the exit code.

    Errors are never shown: the user is still typing.
    """
    from click.shell_completion import shell_complete

    try:
        return shell_complete(ROOT, {}, "rhythm", COMPLETING, instruction)
    except Exception:
        return 1


def report_error(problem: BaseException) -> int:
    """Prints an error as one line on standard error, and returns the exit code.

    An exception that is neither the user's mistake nor an error of Rhythm is raised again.
    """
    if isinstance(problem, click.exceptions.Exit):
        return problem.exit_code
    if isinstance(problem, UsageError):
        print_problem(problem, f"\n{problem.more}" if problem.more else "")
        return 2
    if isinstance(problem, BrokenPipeError):
        # the reader of our output is gone: end without a message
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
