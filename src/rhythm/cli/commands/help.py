"""Says more about a command: what it does, and every option.

rhythm help start
rhythm help schedules create
"""

from __future__ import annotations

import click

from rhythm.cli.command import Arguments, argument, command, find_command
from rhythm.cli.output import print


@command(__doc__)
@argument("names", nargs=-1, metavar="COMMAND", help="the command; without it all are listed")
def run(args: Arguments) -> int:
    ctx = find_command(click.get_current_context().find_root(), args.names)
    print(ctx.command.get_help(ctx))
    return 0
