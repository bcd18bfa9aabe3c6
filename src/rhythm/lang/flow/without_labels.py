"""Replaces labelled blocks by flags, because `.flow` text has no statement that leaves a block.

A `Leave` sets a flag. What follows inside the labelled block runs only if the flag is not set; a
loop in between ends by `break`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Block, Node

Left = frozenset[str]  # the labels that a statement may have left


def without_labels(block: Block) -> Block:
    """Returns the block with flags in place of its labelled blocks."""
    return block.replace(statements=tuple(_Flags().statements(block.statements)[0]))


class _Flags:
    def __init__(self) -> None:
        # What is open here, from the outside in: the names of labels, and "" for a loop.
        self.open: list[str] = []

    def statements(self, given: Sequence[Node]) -> tuple[list[Node], Left]:
        """Returns statements without labels, and the labels that they may leave."""
        out: list[Node] = []
        all_left: Left = frozenset()
        for i, statement in enumerate(given):
            made, left = self._statement(statement)
            out += made
            all_left |= left
            if isinstance(statement, nodes.Leave):
                break  # what follows is never reached
            if left and self._through_a_loop(left):
                out.append(_when(statement, left, True, [nodes.Break(*_place(statement))]))
            elif left:
                rest, more = self.statements(given[i + 1 :])
                out += [_when(statement, left, False, rest)] if rest else []
                return out, all_left | more
        return out, all_left

    def _through_a_loop(self, left: Left) -> bool:
        """Whether a loop is open inside the innermost of these labels."""
        innermost = max(self.open.index(name) for name in left)
        return "" in self.open[innermost:]

    def _statement(self, node: Node) -> tuple[list[Node], Left]:
        match node:
            case nodes.Leave(name=name):
                return self._leave(node, name), frozenset({name})
            case nodes.Labelled(name=name, body=body):
                return self._labelled(node, name, body)
            case nodes.For() | nodes.While() | nodes.Forever():
                block, left = self._block(node.body, "")
                return [node.replace(body=block)], left
            case nodes.If(arms=arms, otherwise=otherwise):
                return self._if(node, arms, otherwise)
            case nodes.Try():
                return self._try(node)
        return [node], frozenset()

    def _leave(self, node: Node, name: str) -> list[Node]:
        place = _place(node)
        flag = nodes.Assign(*place, nodes.Name(*place, name), "=", nodes.Literal(*place, True))
        return [flag, nodes.Break(*place)] if self._through_a_loop(frozenset({name})) else [flag]

    def _labelled(self, node: Node, name: str, body: Block) -> tuple[list[Node], Left]:
        place = _place(node)
        block, left = self._block(body, name)
        clear = nodes.Let(*place, False, nodes.Name(*place, name), nodes.Literal(*place, False))
        return [clear, *block.statements], left - {name}

    def _block(self, block: Block, opened: str | None = None) -> tuple[Block, Left]:
        self.open += [] if opened is None else [opened]
        made, left = self.statements(block.statements)
        if opened is not None:
            self.open.pop()
        return block.replace(statements=tuple(made)), left

    def _if(
        self, node: Node, arms: Sequence[tuple[Node, Block]], otherwise: Block | None
    ) -> tuple[list[Node], Left]:
        made = [(condition, *self._block(block)) for condition, block in arms]
        last, left = self._block(otherwise) if otherwise else (None, frozenset[str]())
        pairs = tuple((condition, block) for condition, block, _ in made)
        return [node.replace(arms=pairs, otherwise=last)], left.union(*(each for *_, each in made))

    def _try(self, node: nodes.Try) -> tuple[list[Node], Left]:
        changed: dict[str, Block] = {}
        all_left: Left = frozenset()
        for name in ("body", "handler", "cleanup"):
            if (block := getattr(node, name)) is not None:
                changed[name], left = self._block(block)
                all_left |= left
        return [node.replace(**changed)], all_left


def _place(node: Node) -> tuple[int, int]:
    return node.start, node.end


def _when(node: Node, flags: Left, wanted: bool, then: Sequence[Node]) -> Node:
    """Returns `if (a || b) { … }`, or `if (!(a || b)) { … }`."""
    place = _place(node)
    asked: Node | None = None
    for name in sorted(flags):
        flag = nodes.Name(*place, name)
        asked = flag if asked is None else nodes.Logic(*place, "||", asked, flag)
    assert asked is not None
    asked = asked if wanted else nodes.Unary(*place, "!", asked)
    return nodes.If(*place, ((asked, nodes.Block(*place, tuple(then))),), None)
