"""Questions about a node alone: whether it is an operation, and what is in it."""

from __future__ import annotations

from typing import Any

from rhythm.ir.operations import GROUPS, OPERATIONS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node

# Nodes that may contain operations.
COLLECTIONS = nodes.ListLiteral | nodes.ObjectLiteral | nodes.Comprehension
COMPUTED: Any = object()  # in place of a value that is known only when the workflow runs
OPERATION_NAMES = frozenset(OPERATIONS) | frozenset(GROUPS)


def is_operation(node: Node | None) -> bool:
    """Whether the node is an operation, a group or a branch."""
    return isinstance(node, nodes.BranchBlock) or (
        isinstance(node, nodes.Call) and node.name in OPERATION_NAMES
    )


def holds_operations(node: Node) -> bool:
    """Whether operations stand directly in the list, object or comprehension."""
    return any(is_operation(item) for item in elements(node))


def elements(node: Node | None) -> tuple[Node, ...]:
    """Returns what stands directly in a list, object or comprehension."""
    if isinstance(node, nodes.ListLiteral):
        return node.items
    if isinstance(node, nodes.ObjectLiteral):
        return tuple(
            entry.value if isinstance(entry, nodes.Entry) else entry for entry in node.entries
        )
    return (node.element,) if isinstance(node, nodes.Comprehension) else ()


def root(node: Node) -> Node:
    """Returns what a path begins with."""
    while isinstance(node, nodes.Member | nodes.Index):
        node = node.target
    return node


def literal_keys(node: nodes.ObjectLiteral, wanted: str) -> set[str]:
    """Returns the keys of an object literal; with a spread, `wanted`, since it may be in there."""
    if any(isinstance(entry, nodes.Spread) for entry in node.entries):
        return {wanted}
    return {entry.key for entry in node.entries if isinstance(entry, nodes.Entry)}


def constant_of(node: Node) -> Any:
    """Returns the value of an expression that is written out, or COMPUTED."""
    match node:
        case nodes.Literal(value=value):
            return value
        case nodes.Unary(op="-", value=nodes.Literal(value=int() | float() as number)):
            return -number
        case nodes.ListLiteral(items=items):
            values = [constant_of(item) for item in items]
            return COMPUTED if any(value is COMPUTED for value in values) else values
        case nodes.ObjectLiteral(entries=entries):
            pairs = {e.key: constant_of(e.value) for e in entries if isinstance(e, nodes.Entry)}
            computed = any(value is COMPUTED for value in pairs.values())
            return COMPUTED if computed or len(pairs) < len(entries) else pairs
    return COMPUTED
