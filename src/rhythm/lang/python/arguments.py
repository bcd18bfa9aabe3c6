"""The arguments of a call: how they become expressions, in Python's order."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rhythm.lang.flow.nodes import Node
from rhythm.lang.python import comprehensions
from rhythm.lang.python.hints import hint_of, is_list, is_tuple
from rhythm.lang.python.kept import as_lists, refuse_walk
from rhythm.lang.python.translation import Translation


def is_known_list(t: Translation, nodes_: Sequence[ast.AST]) -> bool:
    """Whether the first of these is known to be a list, not a tuple."""
    return any(
        isinstance(t.outside(node), list)
        or isinstance(node, ast.List | ast.ListComp)
        or (is_list(hint_of(t, node)) and not is_tuple(t, node))
        for node in nodes_
    )


def listed(t: Translation, node: ast.AST) -> ast.AST:
    """Returns a generator expression as the list of what it gives, a tuple as a list."""
    if id(node) in t.walked:
        refuse_walk(t, node)
    if isinstance(node, ast.GeneratorExp):
        comprehensions.refuse_awaits(t, node)
        return ast.copy_location(ast.ListComp(node.elt, node.generators), node)
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.List(node.elts, ast.Load()), node)
    return node


def listed_pairs(t: Translation, node: ast.AST) -> ast.AST:
    """Returns what `dict(…)` takes: pairs may be written as tuples."""
    node = listed(t, node)
    if isinstance(node, ast.ListComp):
        return ast.copy_location(ast.ListComp(as_lists(node.elt), node.generators), node)
    return as_lists(node) if isinstance(node, ast.expr) else node


def named_arguments(t: Translation, node: ast.Call, values: Sequence[Node]) -> Node | None:
    if any(keyword.arg is None for keyword in node.keywords):
        return t.refuse("P033", node, "`**` cannot stand in this call")
    names = [str(keyword.arg) for keyword in node.keywords]
    return t.at(node).object(dict(zip(names, values, strict=True))) if names else None


def given_arguments(
    t: Translation, node: ast.Call, least: int, most: int, named: Sequence[str] = ()
) -> list[Node | None] | None:
    """Returns the arguments in order, None for those that are not given; refuses others."""
    written = ast.unparse(node.func)
    known = {keyword.arg: keyword.value for keyword in node.keywords}
    if any(isinstance(arg, ast.Starred) for arg in node.args) or None in known:
        t.refuse("P033", node, f"`{written}` takes no `*` or `**` here", "write the arguments")
        return None
    if odd := [name for name in known if name not in named]:
        t.refuse("P033", node, f"`{written}` has no argument `{odd[0]}`")
        return None
    order = [*node.args, *(known[name] for name in named if name in known)]
    if not least <= len(node.args) + len(known) or len(node.args) > most:
        t.refuse(
            "P033",
            node,
            f"`{written}` takes {least if least == most else f'{least} to {most}'} arguments, "
            f"not {len(order)}",
        )
        return None
    made = t.values([listed(t, part) for part in order])
    found: list[Node | None] = [None] * most
    found[: len(node.args)] = made[: len(node.args)]
    for name, value in zip([n for n in named if n in known], made[len(node.args) :], strict=True):
        found[most - len(named) + list(named).index(name)] = value
    return found
