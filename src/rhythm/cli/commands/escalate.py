"""Hands an approval to the next of the roles that its workflow names (`escalate`). Its deadline
starts again.

  rhythm escalate 06fe1sz2n5qg7v0k4m8c3x9yte.1 --by Ada --comment 'beyond my limit'
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.decisions import decide, decision


@command(__doc__)
@decision
@option("--to", metavar="ROLE", help="hand it to this one of the roles, instead of the next")
def run(args: Arguments) -> int:
    return decide(args, "escalate")
