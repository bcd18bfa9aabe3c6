"""Helper functions of the module: a single `return` is written out where it is called."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.construction import captured_default
from rhythm.lang.python.lazy import walked
from rhythm.lang.python.names import Around
from rhythm.lang.python.translation import Translation


def inlined(t: Translation, node: ast.Call, function: types.FunctionType) -> Node | None:
    """Returns a helper function of the module whose body is one `return`, written in place.

    None if it is not such a function: then it must be a task.
    """
    body = _returned(function)
    if body is None or len(t.bound) > 20:
        return None
    try:
        signature = inspect.signature(function)
        marks = [*node.args, *(keyword.value for keyword in node.keywords)]
        names = [str(keyword.arg) for keyword in node.keywords]
        slots = signature.bind(*node.args, **dict(zip(names, marks[len(node.args) :], strict=True)))
    except TypeError as problem:
        return t.refuse("P033", node, f"`{function.__name__}`: {problem}")
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        return None
    values = dict(zip(map(id, marks), t.values(marks), strict=True))
    scope: dict[str, Node | None] = {}
    for p in signature.parameters.values():
        if p.name in slots.arguments:
            value = values[id(slots.arguments[p.name])]
            simple = isinstance(value, nodes.Name | nodes.Literal) or t.pure > 0
            scope[p.name] = value if simple else t.pinned(value)
        else:
            scope[p.name] = captured_default(t, node, f"{function.__name__}({p.name})", p.default)
    return _written_in_place(t, function, body, scope, node)


def _returned(function: types.FunctionType) -> ast.expr | None:
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        return None
    body = [
        statement
        for statement in tree.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    only = body[0] if len(body) == 1 else None
    return only.value if isinstance(only, ast.Return) else None


def _written_in_place(
    t: Translation,
    function: types.FunctionType,
    body: ast.expr,
    scope: dict[str, Node | None],
    node: ast.Call,
) -> Node:
    for each in ast.walk(body):  # problems are shown at the call
        ast.copy_location(each, node)
    t.walked |= walked(body)
    inner = Around(function)
    outer, t.around = t.around, inner
    variables, t.variables = t.variables, set()
    hints, t.hints = t.hints, _parameter_hints(function)
    t.bound.append(scope)
    made = t.value(body)
    t.bound.pop()
    t.around, t.variables, t.hints = outer, variables, hints
    t.around.shared += inner.shared
    t.around.plain |= inner.plain
    return made


def _parameter_hints(function: types.FunctionType) -> dict[str, Any]:
    from typing import get_type_hints

    try:
        return get_type_hints(function)
    except Exception:  # a hint that cannot be evaluated says nothing
        return {}
