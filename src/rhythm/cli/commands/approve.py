"""Approves what a workflow asks for. Once it has all the approvals that it needs, its execution
goes on.

People who took part in the execution may not decide, such as the person who started it, unless its
workflow says `four_eyes: false`.

  rhythm approve 06fe1sz2n5qg7v0k4m8c3x9yte.1 --by Ada --comment 'within budget'
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, command
from rhythm.cli.decisions import decide, decision


@command(__doc__)
@decision
def run(args: Arguments) -> int:
    return decide(args, "approve")
