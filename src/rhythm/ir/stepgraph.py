"""The graph of a program whose steps have names: one node for each step.

A step is one node however many instructions it has become.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rhythm.ir import instructions as ir
from rhythm.ir.blocks import Blocks
from rhythm.ir.graph import Edge, Graph, GraphNode
from rhythm.ir.labels import Labels, branches_in, clipped
from rhythm.ir.program import Program

_HIDDEN = re.compile(r"\$(context|answer|error)\??\.")  # locals that no author wrote
_ORDER = ("next", "yes", "no", "error")
_ENDS = (ir.Return, ir.Throw, ir.Block)
_MAIN_KINDS = (ir.Await, ir.JumpUnless, *_ENDS)


def step_graph(program: Program) -> Graph:
    """Returns the graph, with the steps in the order of the outline.

    The steps of a branch come right after the step that starts it.
    """
    return _Builder(program).graph()


class _Builder:
    def __init__(self, program: Program) -> None:
        self.program, self.code = program, program.code
        self.labels = Labels(program, Blocks(program))
        firsts = [first for first, _, _ in program.steps]
        # Where each step ends, by its first instruction.
        self.regions = dict(pairwise([*firsts, len(self.code)]))
        self.ids = {first: id for first, id, _ in program.steps}
        self.nodes = [GraphNode("start", program.name)]
        self.at: dict[int, int] = {}  # the node of a step, by its first instruction
        # the extra node of a Block inside a step, by its instruction
        self.ends: dict[int, int] = {}
        self.edges: dict[Edge, None] = {}

    def graph(self) -> Graph:
        entries = sorted((0, *self.program.branches))
        self._add_list(self._steps_of(0, [*entries, len(self.code)]), 1, [*entries, len(self.code)])
        self._edge(0, self.at[next(iter(self.regions))], "next")
        for first in self.at:
            for label, to in sorted(
                set(self._ways(first)), key=lambda way: (_ORDER.index(way[0]), way[1])
            ):
                self._edge(self.at[first], to, label)
        return Graph(self.program.name, tuple(self.nodes), tuple(self.edges), by_name=True)

    def _steps_of(self, entry: int, entries: list[int]) -> list[int]:
        last = entries[entries.index(entry) + 1]
        return [first for first in self.regions if entry <= first < last]

    def _add_list(self, firsts: list[int], depth: int, entries: list[int]) -> None:
        for first in firsts:
            self._add_step(first, depth)
            for branch in branches_in(self.code[self._main(first)]):
                entry = self.program.branches[branch.entry]
                self.nodes.append(GraphNode("branch", f"branch {branch.entry + 1}", 0, depth + 1))
                here = len(self.nodes) - 1
                self._edge(self.at[first], here, "branch")
                self._add_list(self._steps_of(entry, entries), depth + 2, entries)
                self._edge(here, self.at[entry], "next")

    def _add_step(self, first: int, depth: int) -> None:
        self.at[first], main = len(self.nodes), self._main(first)
        self.nodes.append(self._node(main, depth, self.ids[first]).replace(statement=first))
        for pc in range(main + 1, self._end(first)):
            if isinstance(self.code[pc], ir.Block):
                self.ends[pc] = len(self.nodes)
                self.nodes.append(self._node(pc, depth + 1))

    def _end(self, first: int) -> int:
        return self.regions[first]

    def _main(self, first: int) -> int:
        """Returns the instruction that says what the step is for; if there is none, the first."""
        return next(
            (pc for pc in range(first, self._end(first)) if isinstance(self.code[pc], _MAIN_KINDS)),
            first,
        )

    def _node(self, pc: int, depth: int, id: str = "") -> GraphNode:
        kind, label, items = self.labels.whole(pc)
        label = _HIDDEN.sub(
            "", label if kind != "return" or "pick($context" not in label else "end of the branch"
        )
        line = self.program.position(getattr(self.code[pc], "at", 0))[0]
        return GraphNode(
            kind, clipped(f"{id}: {label}" if id else label), line, depth, False, items, id
        )

    def _ways(self, first: int) -> Iterator[tuple[str, int]]:
        """Yields where a step leads: the label of the edge, and the node."""
        main, last = self._main(first), self._end(first)
        caught = [handler.target for handler in self.program.handlers if handler.first == main]
        ahead = [("next", main), *(("error", target) for target in caught)]
        while ahead:
            label, pc = ahead.pop()
            if pc in self.ends:
                yield label, self.ends[pc]
            elif not first <= pc < last:
                yield from [(label, self.at[pc])] if pc in self.at else []
            else:
                ahead += [
                    (label if label == "error" else way, to) for way, to in self._from(pc, label)
                ]

    def _from(self, pc: int, label: str) -> list[tuple[str, int]]:
        match self.code[pc]:
            case ir.Jump(to):
                return [(label, to)]
            case ir.JumpUnless(_, to):
                return [("yes", pc + 1), ("no", to)]
            case ir.Return() | ir.Throw() | ir.Block():
                return []
        return [(label, pc + 1)]

    def _edge(self, source: int, target: int, label: str) -> None:
        self.edges[Edge(source, target, label)] = None
