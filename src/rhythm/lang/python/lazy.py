"""Views and iterators: `d.items()`, `range(3)`, `zip(a, b)`. On the engine they are lists.

Where a program only iterates over one, that makes no difference. To show, compare, index or keep
one is refused, because the result would not be Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.translation import Translation

ITERATORS = (range, enumerate, zip, reversed)
VIEWS = frozenset({"keys", "values", "items"})
WALKING = frozenset("list sorted sum min max any all enumerate zip reversed dict len".split())
TAKING = frozenset({"join", "extend", "update"})


def walked(tree: ast.AST) -> set[int]:
    """Returns the `id()` of each expression that is only iterated over."""
    return {id(node) for each in ast.walk(tree) for node in _walked_by(each)}


def _walked_by(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.For(iter=source) | ast.comprehension(iter=source) | ast.Starred(value=source):
            yield source
        case ast.Call(func=ast.Name(id=name), args=args) if name in WALKING:
            yield from args
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in TAKING:
            yield from args
        case ast.Compare(ops=ops, comparators=operands):
            pairs = zip(ops, operands, strict=True)
            yield from (right for op, right in pairs if isinstance(op, ast.In | ast.NotIn))
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            yield value
        case ast.AugAssign(op=ast.Add(), value=value):
            yield value
        case ast.Subscript(value=ast.Call(func=ast.Name(id="range")) as value, slice=key):
            yield from () if isinstance(key, ast.Slice) else (value,)


def refused(t: Translation, node: ast.Call) -> Node | None:
    """Refuses a view or iterator that is used for more than iteration; None for any other call."""
    if id(node) in t.walked:
        return None
    view = isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS and not node.args
    if not view and t.outside(node.func) not in ITERATORS:
        return None
    return t.refuse(
        "P057",
        node,
        f"`{ast.unparse(node)[:60]}` would be kept as a list",
        f"write list({ast.unparse(node)[:60]})",
    )
