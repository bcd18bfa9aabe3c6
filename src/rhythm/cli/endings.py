"""What is said of an execution that has ended already, so that nothing can be done to it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import ExecutionView


def has_ended(execution: ExecutionView) -> int:
    """Says on standard error that it has ended, and how; returns the exit code."""
    how = f"{'was ' if execution.status == 'cancelled' else ''}{execution.status}"
    print(f"rhythm: {execution.id} has ended already: it {how}", file=sys.stderr)
    return 1


def already_ended(id: str) -> int:
    """Says on standard error that the execution of this id has ended; returns the exit code."""
    print(f"rhythm: {id} has ended already; `rhythm show {id}` tells how", file=sys.stderr)
    return 1
