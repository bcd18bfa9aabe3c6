"""Approves what a workflow asks for; with the last approval that it takes, its execution goes on.

Whoever started the execution may not decide, unless its workflow says `four_eyes: false`.

  rhythm approve 06fe1sz2n5qg7v0k4m8c3x9yte.1 --by Ada --comment 'within budget'
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, command
from rhythm.cli.decisions import decide, decision


@command(__doc__)
@decision
def run(args: Arguments) -> int:
    return decide(args, "approve")
