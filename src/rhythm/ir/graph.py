"""The flow of a program as a graph for people: its waits, decisions, loops, handlers and ends.

`graph` keeps the instructions that a reader would draw. It follows the others (sets, the jumps
between blocks, the bookkeeping of `finally`) to where they lead. It knows instructions only, so it
works for every front end. `drawing` turns the result into text.

The graph simplifies two things for the reader. Nearly everything can fail, so `error` edges are
drawn only for a `try` as a whole and for `throw`. And a `return`, `break` or `continue` that passes
`finally` blocks is drawn before them, as it is written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import pairwise

from rhythm.ir import instructions as ir
from rhythm.ir.blocks import Blocks, InstructionBlock
from rhythm.ir.labels import Item, Labels, branches_in
from rhythm.ir.locals import handlers_around
from rhythm.ir.program import Program
from rhythm.record import Record

_DRAWN = (
    ir.Await,
    ir.Start,
    ir.Gather,
    ir.Take,
    ir.Emit,
    ir.Return,
    ir.Throw,
    ir.Block,
    ir.JumpUnless,
    ir.Next,
)
_HEADINGS = ("try", "catch", "finally")


class GraphNode(Record):
    """An instruction that a reader would draw, or the beginning of a block.

    That is where an execution, a branch, a `try` or a handler begins.
    """

    # One of: start task workflow wait group decision loop emit return throw block jump try catch
    # finally branch.
    kind: str
    label: str
    line: int = 0  # in the source; 0 if it has no place of its own
    depth: int = 0  # how many blocks it is in
    opens_else: bool = False
    items: tuple[Item, ...] = ()
    step: str = ""  # its name, if steps have names
    statement: int = -1  # its instruction; -1: it has none of its own
    mark: str = ""  # here or passed, if the graph is that of an execution (see `marked`)


class Edge(Record):
    """An edge between two nodes, by number.

    `label` is next, yes, no, each, done, error or branch.
    """

    source: int
    target: int
    label: str


class Graph(Record):
    """The nodes and edges. The nodes are in the order of the outline.

    That is the order of the code, with each branch right after the node that starts it.
    """

    name: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    by_name: bool = False  # the nodes are named steps: the outline says where each leads


def graph(program: Program) -> Graph:
    """Returns the flow graph of a program that has passed `verify`."""
    if program.steps:
        from rhythm.ir.stepgraph import step_graph

        return step_graph(program)
    return _Builder(program).graph()


def marked(drawn: Graph, here: Collection[int], passed: Collection[int]) -> Graph:
    """Returns the graph of an execution: its nodes say where it is, and what it has passed.

    `here`: the instructions where it and its branches are. `passed`: those where they have been. An
    instruction that is not drawn belongs to the drawn one before it, or to the beginning.
    """
    starts = sorted((node.statement, number) for number, node in enumerate(drawn.nodes))

    def nodes_of(statements: Collection[int]) -> set[int]:
        places = (bisect_right(starts, (statement, len(starts))) for statement in statements)
        return {starts[place - 1][1] if starts[place - 1][0] >= 0 else 0 for place in places}

    at, behind = nodes_of(here), nodes_of(passed)
    nodes = (
        node.replace(mark="here" if n in at else "passed") if n in at | behind else node
        for n, node in enumerate(drawn.nodes)
    )
    return drawn.replace(nodes=tuple(nodes))


class _Builder:
    def __init__(self, program: Program) -> None:
        self.program, self.code = program, program.code
        self.blocks = Blocks(program)
        self.labels = Labels(program, self.blocks)
        self.flow = _Flow(program)
        self.nodes: list[GraphNode] = []
        # The nodes at an instruction: those of the blocks that begin there, then its own.
        self.at: dict[int, list[tuple[int, InstructionBlock | None]]] = {}
        self.edges: dict[Edge, None] = {}

    def graph(self) -> Graph:
        self._add_body(0, GraphNode("start", self.program.name), 0)
        for pc in list(self.at):
            self._connect(pc)
        return Graph(self.program.name, tuple(self.nodes), tuple(self.edges))

    def _add_body(self, entry: int, heading: GraphNode, depth: int) -> None:
        """Adds the nodes of the main body or a branch, and of the branches started in it."""
        self._add(entry, heading, InstructionBlock("body", 0, len(self.code)))
        opens_else = 0  # the end of the `else` whose first node comes next
        for pc in sorted(self.flow.reach(entry)):
            inside = depth + 1 + self.blocks.depths[pc]
            for block in self.blocks.beginning_at(pc):
                if block.kind == "else":
                    opens_else = block.last
                elif block.kind in _HEADINGS:
                    label = (
                        f"catch ({block.name})"
                        if block.name and block.name[0] != "$"
                        else block.kind
                    )
                    self._add(pc, GraphNode(block.kind, label, 0, inside, opens_else > pc), block)
                    opens_else = 0
                inside += 1
            if isinstance(self.code[pc], _DRAWN) or (
                isinstance(self.code[pc], ir.Jump) and pc not in self.blocks.seams
            ):
                self._add_instruction(pc, inside, opens_else > pc)
                opens_else = 0

    def _add_instruction(self, pc: int, depth: int, opens_else: bool) -> None:
        kind, label, items = self.labels.of(pc)
        number = self._add(
            pc,
            GraphNode(
                kind, label, self._line(self.code[pc]), depth, opens_else, items, statement=pc
            ),
            None,
        )
        for branch in branches_in(self.code[pc]):
            entry = self.program.branches[branch.entry]
            if entry not in self.at:
                self._add_body(
                    entry,
                    GraphNode(
                        "branch", f"branch {branch.entry + 1}", self._line(branch), depth + 1
                    ),
                    depth + 1,
                )
            self._edge(number, self.at[entry][0][0], "branch")

    def _add(self, pc: int, node: GraphNode, block: InstructionBlock | None) -> int:
        self.at.setdefault(pc, []).append((len(self.nodes), block))
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _line(self, place: object) -> int:
        return self.program.position(getattr(place, "at", 0))[0]

    def _edge(self, source: int, target: int, label: str) -> None:
        self.edges[Edge(source, target, label)] = None

    def _connect(self, pc: int) -> None:
        """Adds the edges that leave the nodes at an instruction."""
        here = self.at[pc]
        for (number, _), (following, _) in pairwise(here):
            self._edge(number, following, "next")
        last, block = here[-1]
        for label, to in self.flow.ways(pc):
            self._lead(last, "next" if block else label, pc, to)
        for number, block in here:
            if block:
                self._fail(number, block.fails_to)
            elif isinstance(self.code[pc], ir.Throw):
                self._fail(
                    number, self.flow.handlers[pc][0].target if self.flow.handlers[pc] else None
                )

    def _lead(self, source: int, label: str, came_from: int, pc: int) -> None:
        """Adds edges to what is drawn at the instruction, or else at the next ones on its way."""
        ahead, seen = [(came_from, pc)], set()
        while ahead:
            step = came_from, pc = ahead.pop()
            # A jump from inside a block back to its first instruction does not begin the block
            # again.
            entered = (
                number
                for number, block in self.at.get(pc, ())
                if block is None or not block.holds(came_from)
            )
            target = next(entered, None)
            if target is not None:
                self._edge(source, target, label)
            elif step not in seen:
                seen.add(step)
                ahead += [(pc, to) for _, to in self.flow.ways(pc)]

    def _fail(self, source: int, target: int | None) -> None:
        for number, block in self.at.get(target, ()) if target is not None else ():
            if block and block.kind in ("catch", "finally"):
                self._edge(source, number, "error")


class _Flow:
    """Where instructions lead when nothing fails.

    A *departure* is a `return` or jump that follows the Pends of the `finally` blocks that it has
    to pass. These all stand together.
    """

    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.handlers = handlers_around(program)
        self.pending: dict[str, list[int]] = {}  # the Pends that may run, by their state
        self.departures: dict[int, int] = {}  # from the first Pend to the departure
        self.pends: dict[int, int] = {}  # from the departure to the first Pend
        for pc, instruction in enumerate(self.code):
            first = pc
            while (
                first and isinstance(before := self.code[first - 1], ir.Pend) and before.to == first
            ):
                first -= 1
            if first < pc and isinstance(instruction, ir.Return | ir.Jump):
                self.departures[first], self.pends[pc] = pc, first

    def reach(self, entry: int) -> set[int]:
        """Returns the instructions that may run when an execution begins at the entry."""
        reached, ended = set[int](), set[str]()
        # The instructions that run only after a `finally` block has ended, by its state.
        behind: dict[str, list[int]] = {}
        ahead = [entry]
        while ahead:
            pc = ahead.pop()
            if pc in reached:
                continue
            reached.add(pc)
            ahead += [handler.target for handler in self.handlers[pc]]
            instruction = self.code[pc]
            if isinstance(instruction, ir.EndFinally):
                ended.add(instruction.state)
                ahead += behind.pop(instruction.state, ())
            elif isinstance(instruction, ir.Pend):
                self.pending.setdefault(instruction.state, []).append(pc)
                ahead.append(instruction.block)
            state, follow = self._follow(pc)
            if state is None or state in ended:
                ahead += follow
            else:
                behind.setdefault(state, []).extend(follow)
        return reached

    def _follow(self, pc: int) -> tuple[str | None, list[int]]:
        """Returns which `finally` must end first (its state, or None), and where the code goes.

        A departure is drawn before the blocks that it passes: only the instructions after it wait
        for them.
        """
        instruction = self.code[pc]
        if isinstance(instruction, ir.Pend):
            departs = instruction.to == pc + 1
            return None if departs else instruction.state, [instruction.to]
        passed = self.code[pc - 1] if pc in self.pends else None
        state = passed.state if isinstance(passed, ir.Pend) else None
        return state, [to for _, to in self._plain_ways(pc)]

    def ways(self, pc: int) -> list[tuple[str, int]]:
        """Returns where an instruction leads; departures come before the `finally` they pass."""
        instruction = self.code[pc]
        if pc in self.pends:
            instruction = self.code[self.pends[pc]]
        elif pc in self.departures:
            return [("next", self.departures[pc])]
        if isinstance(instruction, ir.Pend):
            return [("next", instruction.block)]
        if isinstance(instruction, ir.EndFinally):
            return [("next", to) for to in self._after_finally(instruction.state)]
        return self._plain_ways(pc)

    def _after_finally(self, state: str) -> Iterator[int]:
        for pc in sorted(self.pending.get(state, ())):
            to = getattr(self.code[pc], "to", pc)
            yield from [beyond for _, beyond in self._plain_ways(to)] if to in self.pends else [to]

    def _plain_ways(self, pc: int) -> list[tuple[str, int]]:
        match self.code[pc]:
            case ir.Jump(to):
                return [("next", to)]
            case ir.JumpUnless(ir.Const(True)):
                return [("yes", pc + 1)]
            case ir.JumpUnless(_, to):
                return [("yes", pc + 1), ("no", to)]
            case ir.Next(exit=exit) | ir.Take(exit=exit):
                return [("each", pc + 1), ("done", exit)]
            case ir.Return() | ir.Throw() | ir.Block() | ir.EndFinally():
                return []
        return [("next", pc + 1)]
