"""Shows the help page of a command: what it does, and all its options.

Without a command it lists all commands.

  rhythm help start
  rhythm help schedules create
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rhythm.cli.command import Arguments, UsageError, argument, command, find_command
from rhythm.cli.output import print

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandName(click.ParamType[str]):
    """The name of a command or subcommand; a shell offers those that exist."""

    name = "command"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            found = find_command(ctx.find_root(), ctx.params.get("names") or ())
        except UsageError:
            return []
        return found.command.shell_complete(found, incomplete)


@command(__doc__)
@argument(
    "names",
    type=CommandName(),
    nargs=-1,
    metavar="COMMAND",
    help="the command, and the subcommand if it has some",
)
def run(args: Arguments) -> int:
    ctx = find_command(click.get_current_context().find_root(), args.names)
    print(ctx.command.get_help(ctx))
    return 0
