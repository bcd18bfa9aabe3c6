"""Times and durations: kept as ISO text and as seconds, computed with where a hint says so."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.hints import hint_of, without_none
from rhythm.lang.python.translation import Translation

# What to write in place of what a time or duration does not have here.
OF_TIMES = {
    datetime: "take it apart in a task; here there are arithmetic, comparisons and timestamp()",
    timedelta: "write total_seconds(), and divide; or take it apart in a task",
}
_PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def timed_binary(t: Translation, node: ast.BinOp) -> Node | None:
    """Returns arithmetic of times and durations, or None if neither side is one."""
    left, right = (without_none(hint_of(t, side)) for side in (node.left, node.right))
    if not {left, right} & {datetime, timedelta} or not isinstance(node.op, ast.Add | ast.Sub):
        return None
    at = t.at(node)
    a, b = t.values([node.left, node.right])
    minus = isinstance(node.op, ast.Sub)
    if left is datetime and right is datetime and minus:
        return at.call("date_diff", a, b)
    if left is datetime and right is timedelta:
        return at.call("date_add", a, at.call("py.neg", b) if minus else b)
    if left is timedelta and right is datetime and not minus:
        return at.call("date_add", b, a)
    if left is timedelta and right is timedelta:
        return at.call("py.sub" if minus else "py.add", a, b)
    return t.refuse("P090", node, "a time and something else cannot be added")


def timed_comparison(
    t: Translation, node: ast.Compare, op: ast.cmpop, left: ast.expr, right: ast.expr
) -> Node | None:
    """Returns the comparison of two times, or None if they are none."""
    kinds = [without_none(hint_of(t, side)) for side in (left, right)]
    names = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
             ast.NotEq: "ne"}  # fmt: skip
    if kinds != [datetime, datetime] or type(op) not in names:
        return None
    at = t.at(node)
    between = at.call("date_diff", *t.values([left, right]))
    return at.call(f"py.{names[type(op)]}", between, at.literal(0))


def method_of_time(t: Translation, node: ast.Call, function: ast.Attribute, hint: Any) -> Node:
    at = t.at(node)
    if not node.args and not node.keywords:
        if hint is timedelta and function.attr == "total_seconds":
            return at.call("py.float", t.value(function.value))
        if hint is datetime and function.attr == "timestamp":
            epoch = at.literal("1970-01-01T00:00:00Z")
            return at.call("py.float", at.call("date_diff", t.value(function.value), epoch))
    return t.refuse(
        "P090",
        node,
        f"`{function.attr}` of a {hint.__name__} is not known here",
        OF_TIMES.get(hint, OF_TIMES[datetime]),
    )


def now(t: Translation, node: ast.Call) -> Node:
    """Returns the time of the turn, in UTC: the same moment, whatever zone is asked for."""
    zones = [*node.args, *(keyword.value for keyword in node.keywords)]
    if len(zones) > 1 or not all(isinstance(t.outside(zone), tzinfo) for zone in zones):
        return t.refuse(
            "P090",
            node,
            "the time is taken in a zone of the module, or in none",
            "write datetime.now(UTC)",
        )
    return t.at(node).call("now")


_UNITS = {"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def duration(t: Translation, node: ast.Call) -> Node:
    """Returns a duration in seconds."""
    at = t.at(node)
    units = [keyword.arg for keyword in node.keywords]
    if len(node.args) > 1 or any(unit not in _UNITS for unit in units):
        return t.refuse(
            "P090",
            node,
            "a timedelta has weeks, days, hours, minutes, seconds here",
            "write timedelta(minutes=5)",
        )
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    names = [*["days"] * len(node.args), *map(str, units)]
    made: Node = at.literal(0)
    for value, unit in zip(t.values(parts), names, strict=True):
        seconds = at.call("py.mul", value, at.literal(_UNITS[unit]))
        made = seconds if made == at.literal(0) else at.call("py.add", made, seconds)
    return made


def moment(t: Translation, node: ast.Call) -> Node:
    """Returns `datetime(2025, 1, 31, tzinfo=UTC)`: a time whose parts are written out."""
    named = dict(zip(_PARTS, node.args, strict=False))
    named |= {str(keyword.arg): keyword.value for keyword in node.keywords}
    zone = t.outside(named.pop("tzinfo")) if "tzinfo" in named else None
    given = {name: part.value for name, part in named.items() if isinstance(part, ast.Constant)}
    values: dict[str, Any] = {**given, "tzinfo": UTC}
    try:
        if zone is not UTC or len(given) < len(named) or len(node.args) > len(_PARTS):
            raise ValueError
        made = datetime(**values)
    except (TypeError, ValueError):
        return t.refuse(
            "P090",
            node,
            "a time is made of numbers that are written out, in UTC",
            "write datetime(2025, 1, 31, tzinfo=UTC), or datetime.fromisoformat(…)",
        )
    return t.at(node).literal(made.isoformat().replace("+00:00", "Z"))


def from_text(t: Translation, node: ast.Call) -> Node:
    """Returns `datetime.fromisoformat(text)`: the text, if it is a time."""
    at = t.at(node)
    if len(node.args) != 1 or node.keywords:
        return t.refuse("P033", node, "`fromisoformat` takes one text")
    return at.call("date_add", t.value(node.args[0]), at.literal(0))
