"""Messages for an act on an execution that has already ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import ExecutionView


def has_ended(execution: ExecutionView) -> int:
    """Prints on standard error that an execution has ended, and how. Returns the exit code, 1."""
    how = f"{'was ' if execution.status == 'cancelled' else ''}{execution.status}"
    print(f"rhythm: {execution.id} has ended already: it {how}", file=sys.stderr)
    return 1


def already_ended(id: str) -> int:
    """Prints on standard error that the execution of this id has ended. Returns the exit code, 1.

    The message names the command that shows how it ended.
    """
    print(f"rhythm: {id} has ended already; `rhythm show {id}` tells how", file=sys.stderr)
    return 1
