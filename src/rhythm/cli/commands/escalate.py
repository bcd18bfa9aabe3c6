"""Hands an approval to the next of the roles that its workflow names (`escalate`); its time begins
anew.

rhythm escalate 06fe1sz2n5qg7v0k4m8c3x9yte.1 --by Ada --comment 'beyond my limit'
"""

from __future__ import annotations

from rhythm.cli.actor import BY
from rhythm.cli.database import DATABASE
from rhythm.cli.decisions import COMMENT, ID, KEY, SHOWN, decide
from rhythm.cli.options import Arguments, Option

OPTIONS = (
    ID,
    Option("--to", "this one of the roles, not the next", value="ROLE"),
    COMMENT,
    BY,
    SHOWN,
    KEY,
    DATABASE,
)


def run(args: Arguments) -> int:
    return decide(args, "escalate")
