"""Values that are kept as something else than Python has: models, enumerations, tuples, Decimals.

Where that would show, the code is refused.
"""

from __future__ import annotations

import ast
import enum
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import get_args
from uuid import UUID

from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.hints import enum_of, hint_of, is_enum, is_value, iterated, without_none
from rhythm.lang.python.names import model_of
from rhythm.lang.python.translation import Translation

# How values of these types are kept, of which Python's operators would give something else.
KEPT_AS = {
    Decimal: "text", bytes: "text", set: "a list", frozenset: "a list", UUID: "text",
    datetime: "ISO text", date: "ISO text", time: "ISO text",
}  # fmt: skip


# Of these the text compares as the value does.
COMPARABLE = frozenset({UUID, datetime, date, time})


def not_kept(t: Translation, *sides: ast.AST, compared: bool = False) -> Node | None:
    """Refuses to compute with values that are kept as something else, such as a Decimal."""
    for side in sides:
        for hint in (hint_of(t, side), iterated(t, side)):
            kind = getattr(without_none(hint), "__origin__", without_none(hint))
            if not isinstance(kind, type) or (compared and kind in COMPARABLE):
                continue
            if kind in KEPT_AS:
                return t.refuse(
                    "P058",
                    side,
                    f"a {kind.__name__} is kept as {KEPT_AS[kind]} here",
                    "compute with it in a task; or use whole numbers, such as cents",
                )
            if not compared and issubclass(kind, enum.Enum) and not is_value(kind):
                return t.refuse(
                    "P058",
                    side,
                    f"a member of `{kind.__name__}` is kept as its value",
                    "compute with its .value",
                )
    return None


def refuse_walk(t: Translation, node: ast.AST) -> None:
    """Refuses to walk a model, whose keys would come, or an enumeration, kept as its value."""
    hint = without_none(hint_of(t, node))
    model, kind = model_of(hint), enum_of(t, node)
    if model is not None:
        field = next(iter(model.fields), "name")
        message = f"`{model.cls.__name__}` is kept as its fields, and cannot be walked"
        t.refuse("P058", node, message, f"write a list of the fields: [value.{field}, …]")
    elif kind is not None and not is_value(kind):
        t.refuse("P058", node, f"a member of `{kind.__name__}` cannot be walked", "walk its .value")


def shown(t: Translation, node: ast.AST, value: Node) -> Node:
    """Returns what the text of a value is made of: an exception is shown as its message."""
    if isinstance(node, ast.Name) and node.id in t.errors:
        return t.at(node).call("py.error", value, t.at(node).literal("text"))
    return value


def shows_a_tuple(t: Translation, node: ast.AST, plain: bool = True) -> bool:
    """Refuses to make text of a tuple, which is kept as a list, or of a model or enumeration."""
    hint = without_none(hint_of(t, node))
    kind = getattr(hint, "__origin__", hint)
    if kind is tuple or tuple in [getattr(a, "__origin__", a) for a in get_args(hint)]:
        t.refuse("P052", node, "a tuple is kept as a list, and would be shown as one")
        return True
    if hint in (datetime, timedelta):
        kept = "ISO text" if hint is datetime else "seconds"
        message = f"a {hint.__name__} is kept as {kept}, and would be shown as that"
        t.refuse("P090", node, message, "make the text in a task that takes the time")
        return True
    if plain and is_enum(hint) and hint.__str__ in (str.__str__, int.__repr__):
        return False  # a StrEnum or IntEnum is shown as its value
    if (model := model_of(hint)) is not None or is_enum(hint):
        what = model.cls.__name__ if model else without_none(hint).__name__
        t.refuse(
            "P061",
            node,
            f"`{what}` is kept as JSON, and would be shown as that",
            "show its fields, or .value of an enumeration",
        )
        return True
    return False


def as_lists(node: ast.expr) -> ast.expr:
    """Returns tuples that are written out as lists, where nobody can tell them apart."""
    if isinstance(node, ast.Tuple | ast.List):
        made = ast.List([as_lists(item) for item in node.elts], ast.Load())
        return ast.copy_location(made, node)
    if isinstance(node, ast.IfExp):
        made_if = ast.IfExp(node.test, as_lists(node.body), as_lists(node.orelse))
        return ast.copy_location(made_if, node)
    return node
