"""Counts the executions that meet a filter. Without a filter it counts all.

Like `rhythm list`, it leaves out what executions have started themselves. The number is alone on
standard output.

  rhythm count 'status:failed age<1d'
  rhythm count 'status:failed attr.customer=acme'
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application
from rhythm.cli.filters import FILTER, filter_of
from rhythm.cli.options import DATABASE_OR_SERVER
from rhythm.cli.output import print


@command(__doc__)
@FILTER
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        print(app.count(filter_of(args.filter)))
    return 0
