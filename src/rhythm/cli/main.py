"""`rhythm COMMAND`: finds the command, imports it and nothing else, and turns mistakes into one
line and an exit code.

Exit codes: 0 it worked, 1 it ran and found or met a failure, 2 it could not run (wrong usage, a
file that is refused), 3 an execution has not ended in the time one was ready to wait; 130 it was
stopped with Ctrl-C.
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

SECTIONS = {  # what people do, and the commands for it
    "write": {
        "check": "report everything that is wrong with workflow files",
        "fmt": "put workflow files into the one layout",
        "graph": "draw what a workflow does, step by step",
        "listing": "show the program a workflow compiles to",
    },
    "run": {
        "run": "run a workflow here and now, against your tasks",
        "start": "start a workflow on a database",
        "result": "wait for the result of an execution, and print it",
        "signal": "send a signal to an execution",
        "publish": "publish an event to all who wait for it",
        "schedules": "list what starts workflows by the clock; make, pause, run or delete it",
    },
    "watch": {
        "list": "list executions, newest first",
        "show": "show everything about one execution",
        "why": "say why an execution does not go on",
        "trace": "show what has happened in an execution, step by step",
        "workflows": "list the workflows that are registered",
        "queues": "list the queues: what waits in them, and who serves them",
        "workers": "list the workers of a database",
    },
    "decide": {
        "approvals": "list what people are asked to decide",
        "approve": "approve what a workflow asks for",
        "reject": "reject what a workflow asks for",
        "escalate": "hand an approval to the next who may decide",
    },
    "operate": {
        "pause": "hold an execution where it is",
        "resume": "let a paused execution go on",
        "cancel": "ask executions to end",
        "terminate": "end executions at once",
        "retry": "go on where an execution failed",
        "queue": "pause or resume a queue",
        "token": "make, list, change and revoke tokens for the HTTP API",
        "audit": "show what was done by whom, and prove that it is what it was",
        "migrate": "bring a database to the schema that this version needs",
        "doctor": "check that a database keeps all the rules, and say what to do",
    },
    "serve": {
        "worker": "run tasks and workflows of a database, until it is stopped",
        "server": "serve the HTTP interface, until it is stopped",
    },
    "help": {
        "help": "say more about a command",
        "completion": "print what makes bash, zsh or fish complete commands",
    },
}
COMMANDS = {name: what for section in SECTIONS.values() for name, what in section.items()}
ENDING = """\
rhythm COMMAND --help says more about one of them; rhythm --version says which Rhythm this is.

Exit codes: 0 it worked; 1 it ran and met a failure; 2 it could not run as it was asked to;
3 not ended in time (--timeout)."""
COMPLETING = "_RHYTHM_COMPLETE"  # the variable with which a shell asks for completions


class Root(Group):
    """`rhythm` itself: a command is imported when it is called."""

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
        from rhythm import __version__

        print(f"rhythm {__version__}")
        ctx.exit()


VERSION = click.Option(
    ["-V", "--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="say which Rhythm this is",
)
ROOT = Root("rhythm", params=[VERSION], context_settings=SETTINGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # what its encoding does not have is shown as an escape
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
    """Answers a shell that asks what it could offer. Whoever types is never told of a mistake."""
    from click.shell_completion import shell_complete

    try:
        return shell_complete(ROOT, {}, "rhythm", COMPLETING, instruction)
    except Exception:
        return 1


def report_error(problem: BaseException) -> int:
    """Says on one line what a command met; returns its exit code. What is no mistake of the user's,
    and none we know, is raised again."""
    if isinstance(problem, click.exceptions.Exit):
        return problem.exit_code
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
