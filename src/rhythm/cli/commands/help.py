"""Says more about a command: what it does, and every option.

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
    """The name of a command, or of one below it: a shell offers them."""

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
    help="the command; without it all are listed",
)
def run(args: Arguments) -> int:
    ctx = find_command(click.get_current_context().find_root(), args.names)
    print(ctx.command.get_help(ctx))
    return 0
