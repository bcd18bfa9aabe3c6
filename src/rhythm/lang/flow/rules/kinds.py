"""Questions about a node alone: is it an operation, what stands in it."""

from __future__ import annotations

from rhythm.ir.operations import GROUPS, OPERATIONS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node

# in which operations may stand
COLLECTIONS = nodes.ListLiteral | nodes.ObjectLiteral | nodes.Comprehension
OPERATION_NAMES = frozenset(OPERATIONS) | frozenset(GROUPS)


def is_operation(node: Node | None) -> bool:
    return isinstance(node, nodes.BranchBlock) or (
        isinstance(node, nodes.Call) and node.name in OPERATION_NAMES
    )


def holds_operations(node: Node) -> bool:
    return any(is_operation(item) for item in elements(node))


def elements(node: Node | None) -> tuple[Node, ...]:
    """What stands directly in a list, object or comprehension."""
    if isinstance(node, nodes.ListLiteral):
        return node.items
    if isinstance(node, nodes.ObjectLiteral):
        return tuple(
            entry.value if isinstance(entry, nodes.Entry) else entry for entry in node.entries
        )
    return (node.element,) if isinstance(node, nodes.Comprehension) else ()


def root(node: Node) -> Node:
    """What a path begins with."""
    while isinstance(node, nodes.Member | nodes.Index):
        node = node.target
    return node


def literal_keys(node: nodes.ObjectLiteral, wanted: str) -> set[str]:
    if any(isinstance(entry, nodes.Spread) for entry in node.entries):
        return {wanted}  # it may be in what is spread
    return {entry.key for entry in node.entries if isinstance(entry, nodes.Entry)}
