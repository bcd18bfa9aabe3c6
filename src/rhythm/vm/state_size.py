"""Whether the state of an execution is small enough to be stored, and which variables are not."""

from __future__ import annotations

from typing import Any

from rhythm.limits import Limits
from rhythm.vm.values import LimitFault, measure, weigh

MAX_BLAMED = 3  # variables that a message names
LEAST_BLAMED = 1024  # bytes of a variable that a message names


def check_state(locals: dict[str, Any], awaiting: Any, limits: Limits, over: bool) -> None:
    """Raises LimitFault if the state is too large or nested too deep.

    `over`: the execution is over a limit already, and may be a little larger to clean up.
    """
    limit = limits.state_bytes(over)
    try:
        measure([locals, awaiting], limit, "the state of the execution", limits.depth + 2)
    except LimitFault as fault:
        blamed = _blamed(locals, limit, limits.depth)
        raise LimitFault(f"{fault.message}: {blamed}" if blamed else fault.message) from None


def _blamed(locals: dict[str, Any], limit: int, depth: int) -> str:
    """Names the variables that are to blame.

    All variables may share one large value, so it stops when it has walked twice the limit.
    """
    sizes, walked = dict[str, int](), 0
    for name in (name for name in locals if not name.startswith("$")):
        try:
            sizes[name] = weigh(locals[name], limit, f"`{name}`", depth)
        except LimitFault as alone:
            return alone.message
        walked += sizes[name]
        if walked > 2 * limit:
            break
    largest = sorted(sizes, key=lambda name: -sizes[name])[:MAX_BLAMED]
    return ", ".join(
        f"`{name}` has {sizes[name] // 1024:,} KiB"
        for name in largest
        if sizes[name] >= LEAST_BLAMED
    )
