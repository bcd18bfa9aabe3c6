"""Attributes: fields of models, what an exception tells, members of enumerations."""

from __future__ import annotations

import ast
import enum
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from rhythm.lang.flow.nodes import Broken, Node
from rhythm.lang.python.hints import hint_of, holds_nothing, is_enum, without_none
from rhythm.lang.python.names import MISSING, Model, json_of, model_of
from rhythm.lang.python.times import OF_TIMES
from rhythm.lang.python.translation import Translation
from rhythm.suggest import nearest

OF_ERRORS = {"code": "code", "message": "message", "data": "data"}


def attribute(t: Translation, node: ast.Attribute) -> Node:
    """Returns an attribute that is read."""
    root = _root(node)
    if isinstance(root, ast.Name) and not t.is_local(root.id):
        if t.around.resolve(node) is not MISSING or t.around.find(root.id) is MISSING:
            from rhythm.lang.python.expressions import outside

            return outside(t, node)
        if not isinstance(node.value, ast.Name) or t.around.find(root.id) is not MISSING:
            return _of_module_value(t, node)
    if isinstance(node.value, ast.Name) and node.value.id in t.errors:
        return _of_error(t, node)
    if (error := _class_of_error(t, node)) is not None:
        return t.at(node).call("py.error", t.at(node).name(error), t.at(node).literal("name"))
    hint = without_none(hint_of(t, node.value))
    if hint in (datetime, timedelta, date, time):
        return _of_time(t, node, hint)
    if hint in (Decimal, UUID, bytes):
        return t.refuse(
            "P061",
            node,
            f"a {hint.__name__} is kept as text here",
            "read it in a task that takes the value",
        )
    if is_enum(hint):
        return _of_enum(t, node, hint)
    model = model_of(hint)
    if model is None:
        return _unknown(t, node, hint)
    if holds_nothing(model.fields.get(node.attr)):
        t.around.plain.add((t.at(node).start, node.attr))
    if node.attr in model.fields and (read := _with_default(t, node, model)) is not None:
        return read
    if node.attr in model.fields:
        return t.at(node).call("py.attr", t.value(node.value), t.at(node).literal(node.attr))
    near = nearest(node.attr, model.fields)
    written = "a method or property" if hasattr(model.cls, node.attr) else "no field"
    return t.refuse(
        "P061",
        node,
        f"`{node.attr}` is {written} of `{model.cls.__name__}`: only its fields are kept",
        f"did you mean `{near}`?" if near else "compute it in a task, or here from the fields",
    )


def _of_enum(t: Translation, node: ast.Attribute, cls: type[enum.Enum]) -> Node:
    """Returns the value of a member, which it is kept as, or its name."""
    at, names = t.at(node), {str(member.value): member.name for member in cls}
    if node.attr == "value":
        return t.value(node.value)
    if node.attr == "name" and len(names) == len(cls):
        return at.call("py.item", at.literal(names), at.call("py.str", t.value(node.value)))
    return t.refuse(
        "P061",
        node,
        f"`{node.attr}` of `{cls.__name__}` is not kept: value and name are",
        "write it with a match on the members, or compute it in a task",
    )


def _with_default(t: Translation, node: ast.Attribute, model: Model) -> Node | None:
    """Returns a field that has a default, which an input need not give; None for others."""
    default = json_of(model.defaults.get(node.attr, MISSING))
    if default is MISSING:
        return None
    at = t.at(node)
    given = at.list([at.literal(node.attr), at.literal(default)])
    return at.call("py.method", t.value(node.value), at.literal("get"), given)


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _of_module_value(t: Translation, node: ast.Attribute) -> Node:
    return t.refuse(
        "P024",
        node,
        f"`{ast.unparse(node)}` is read when the workflow runs, and the object is not kept",
        "make it a constant of the module, pass it as an input, or read it in a task",
    )


def _of_error(t: Translation, node: ast.Attribute) -> Node:
    at = t.at(node)
    error = t.value(node.value)
    if node.attr in OF_ERRORS:
        return at.member(error, OF_ERRORS[node.attr])
    return t.refuse(
        "P061",
        node,
        f"`{node.attr}` of an exception is not kept: code, message and data are",
        "raise rhythm.TaskFailed(message, code=…, data=…) in the task",
    )


def _class_of_error(t: Translation, node: ast.Attribute) -> str | None:
    """Returns the variable of the error in `type(e).__name__`; None for anything else."""
    match node:
        case ast.Attribute(
            value=ast.Call(func=ast.Name(id="type"), args=[ast.Name(id=name)], keywords=[]),
            attr="__name__" | "__qualname__",
        ) if name in t.errors:
            stands = t.lookup(name)[1]
            return getattr(stands, "name", None)
    return None


def _of_time(t: Translation, node: ast.Attribute, hint: Any) -> Node:
    return t.refuse(
        "P090",
        node,
        f"`{node.attr}` of a {hint.__name__} is not known here",
        OF_TIMES.get(hint, OF_TIMES[datetime]),
    )


def _unknown(t: Translation, node: ast.Attribute, hint: Any) -> Node:
    written = ast.unparse(node.value)
    if isinstance(node.value, ast.Await):
        # What is wrong with the await itself is why its type is not known.
        known = len(t.problems.found)
        t.value(node.value)
        if len(t.problems.found) > known:
            return Broken(*t.text.span(node))
        written = f"({written})"
    if hint in (dict, list, str, int, float, bool) or getattr(hint, "__origin__", None) in (
        dict,
        list,
    ):
        kind = getattr(hint, "__origin__", hint).__name__
        return t.refuse(
            "P061",
            node,
            f"a {kind} has no attribute `{node.attr}`",
            f'write {written}["{node.attr}"]' if kind == "dict" else "",
        )
    return t.refuse(
        "P060",
        node,
        f"the type of `{written}` is not known, so it has no attributes here",
        f'write {written}["{node.attr}"], or give it a hint: a dataclass, or another model',
    )
