"""The flow of a program as a graph for people: what it waits for, decides, repeats, catches and ends with.

`graph` keeps the instructions that a reader would draw and follows the others (sets, jumps, the bookkeeping of `finally`) to
where they lead; `as_text` and `as_mermaid` draw the result. It knows instructions only, so it serves every front end.

Two liberties for the reader's sake. A `return` that has `finally` blocks to pass is drawn before them, as it is written. And
since nearly everything can fail, `error` edges leave operations and throws only; other instructions of a `try` get one where
nothing else would lead to its handler.
"""

from __future__ import annotations

from collections.abc import Iterator

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.record import Record

WIDTH = 72  # of a label
ARROWS_AT = 44  # the column at which arrows stand in the outline, where the label leaves room

_DRAWN = (ir.Await, ir.Start, ir.Gather, ir.Take, ir.Emit, ir.Return, ir.Throw, ir.JumpUnless, ir.Next)
_FAILING = (ir.Await, ir.Start, ir.Gather, ir.Take, ir.Throw)
_NEVER_FAILING = (ir.Jump, ir.Pend)


class Item(Record):
    """One operation of a group; a group within a group has items of its own."""

    label: str
    items: tuple[Item, ...] = ()


class Node(Record):
    """An instruction that a reader would draw, or the place where an execution, a branch or a handler begins."""

    pc: int
    kind: str  # start task workflow sleep signal event approval wait group branch decision loop emit return throw catch finally
    label: str
    line: int
    depth: int = 0  # how many blocks it stands in
    items: tuple[Item, ...] = ()
    branch: int | None = None  # the branch that it belongs to
    starts: tuple[int, ...] = ()  # the nodes at which the branches that it starts begin


class Edge(Record):
    """From node to node, by number. `label` is next, yes, no, each, done or error."""

    source: int
    target: int
    label: str


class Graph(Record):
    """The nodes in the order of the outline: as in the code, each branch right after what starts it."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def graph(program: Program) -> Graph:
    """The flow graph of a program that has passed `verify`."""
    return _Builder(program).graph()


class _Builder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = program.code
        self.flow = _Flow(program)
        self.labels = _Labels(program)
        self.nodes: list[Node] = []
        self.numbers: dict[tuple[int, str], int] = {}  # by instruction and whether the node is its own or what begins there
        self.edges: dict[Edge, None] = {}
        self.passed: dict[int, list[int]] = {}  # nodes that lead over an instruction that is not drawn

    def graph(self) -> Graph:
        self._body(0, None, 0)
        for number, node in enumerate(self.nodes):
            self._leave(number, node)
        self._lead_to_handlers()
        return Graph(self.program.name, tuple(self.nodes), tuple(self.edges))

    # nodes

    def _body(self, entry: int, branch: int | None, depth: int) -> None:
        """The nodes of the main body or of a branch, and of the branches started in it."""
        name = f"start {self.program.name}" if branch is None else f"branch {branch}"
        self._add((entry, "start"), Node(entry, "start", name, self._line(entry), depth, (), branch))
        depth += branch is not None
        for pc in sorted(self.flow.reachable(entry)):
            inside = depth + self.flow.depth(pc)
            if pc in self.flow.handlers and (pc, "handler") not in self.numbers:
                handler = self.flow.handlers[pc]
                self._add((pc, "handler"), Node(pc, handler.kind, _handler(handler), self._line(pc), inside - 1, (), branch))
            if isinstance(self.code[pc], _DRAWN) and (pc, "code") not in self.numbers:
                self._instruction(pc, branch, inside)

    def _instruction(self, pc: int, branch: int | None, depth: int) -> None:
        kind, label, items = self.labels.of(pc)
        number = self._add((pc, "code"), Node(pc, kind, label, self._line(pc), depth, items, branch))
        starts = []
        for started in _branches(self.code[pc]):
            entry = self.program.branches[started]
            if (entry, "start") not in self.numbers:
                self._body(entry, started, depth + 1)
            starts.append(self.numbers[entry, "start"])
        self.nodes[number] = self.nodes[number].replace(starts=tuple(starts))

    def _add(self, key: tuple[int, str], node: Node) -> int:
        self.numbers[key] = len(self.nodes)
        self.nodes.append(node)
        return self.numbers[key]

    def _line(self, pc: int) -> int:
        return self.program.position(getattr(self.code[pc], "at", 0))[0]

    # edges

    def _leave(self, number: int, node: Node) -> None:
        """The edges that go out from a node."""
        if node.kind in ("start", "catch", "finally"):
            return self._lead(number, "next", node.pc, from_head=True)
        instruction = self.code[node.pc]
        if isinstance(instruction, _FAILING):
            self._fail(number, node.pc)
        for label, pc in self.flow.ways(node.pc):
            self._lead(number, label, pc)

    def _lead(self, source: int, label: str, pc: int, from_head: bool = False) -> None:
        """An edge to whatever is drawn at or after the instruction."""
        ahead, seen = [pc], set()
        while ahead:
            at = ahead.pop(0)
            target = None if from_head and at == pc else self.numbers.get((at, "handler"))
            if target is None:
                target = self.numbers.get((at, "code"))
            if target is not None:
                self.edges[Edge(source, target, label)] = None
            elif at not in seen:
                seen.add(at)
                self.passed.setdefault(at, []).append(source)
                ahead += [to for _, to in self.flow.ways(at)]
                if isinstance(self.code[at], ir.EndFinally):
                    self._fail(source, at)

    def _fail(self, source: int, pc: int) -> None:
        for handler in self.flow.handlers_of(pc)[:1]:
            self.edges[Edge(source, self.numbers[handler.target, "handler"], "error")] = None

    def _lead_to_handlers(self) -> None:
        """Error edges to handlers that no operation leads to, from whatever else is in their range."""
        reached = {edge.target for edge in self.edges}
        for pc in range(len(self.code)):
            for handler in self.flow.handlers_of(pc):
                target = self.numbers.get((handler.target, "handler"))
                if target is not None and target not in reached:
                    sources = [self.numbers[pc, "code"]] if (pc, "code") in self.numbers else self.passed.get(pc, [])
                    self.edges.update({Edge(source, target, "error"): None for source in sources})


class _Flow:
    """Where instructions lead, which of them can be reached, and how deep in blocks they stand."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = program.code
        self.handlers = {handler.target: handler for handler in reversed(program.handlers)}
        self.pending: dict[str, list[int]] = {}  # where the `finally` of a state may go on
        self.returns: dict[int, int] = {}  # the first Pend on the way of a `return` -> that Return
        self.first_pend: dict[int, int] = {}  # and back
        for pc, instruction in enumerate(self.code):
            if isinstance(instruction, ir.Return):
                self._note_return(pc)
            elif isinstance(instruction, ir.Pend):
                self.pending.setdefault(instruction.state, []).append(pc)
        self.blocks = list(self._blocks())

    def _note_return(self, pc: int) -> None:
        first = pc
        while first and isinstance(before := self.code[first - 1], ir.Pend) and before.to == first:
            first -= 1
        if first < pc:
            self.returns[first] = pc
            self.first_pend[pc] = first

    def ways(self, pc: int) -> list[tuple[str, int]]:
        """Where an instruction leads when nothing fails."""
        instruction = self.code[pc]
        match instruction:
            case ir.Jump(to):
                return [("next", to)]
            case ir.JumpUnless(condition, to):
                yes, no = ("each", "done") if self.is_loop(pc) else ("yes", "no")
                return [(yes, pc + 1)] if condition == ir.Const(True) else [(yes, pc + 1), (no, to)]
            case ir.Next(_, _, exit) | ir.Take(_, _, exit):
                return [("each", pc + 1), ("done", exit)]
            case ir.Pend(_, _, block):
                return [("next", self.returns.get(pc, block))]
            case ir.Return():
                first = self.code[self.first_pend[pc]] if pc in self.first_pend else None
                return [("next", first.block)] if isinstance(first, ir.Pend) else []
            case ir.EndFinally(state):
                return [("next", to) for to in self._continued(state)]
            case ir.Throw():
                return []
        return [("next", pc + 1)]

    def _continued(self, state: str) -> Iterator[int]:
        for pc in self.pending.get(state, []):
            pend = self.code[pc]
            if isinstance(pend, ir.Pend) and pc in self.reached and pend.to not in self.first_pend:
                yield pend.to

    reached: set[int] = set()

    def is_loop(self, pc: int) -> bool:
        """Whether the condition is that of a `while`: the code it guards comes back to it."""
        instruction = self.code[pc]
        assert isinstance(instruction, ir.JumpUnless)
        return any(isinstance(inner, ir.Jump) and inner.to == pc for inner in self.code[pc + 1 : instruction.to])

    def handlers_of(self, pc: int) -> list[ir.Handler]:
        """What a failure there goes to first: the handler of what can be caught, then that of what only `finally` sees."""
        if isinstance(self.code[pc], _NEVER_FAILING):
            return []
        covering = [handler for handler in self.program.handlers if handler.first <= pc < handler.last]
        return covering[:1] + [handler for handler in covering[1:] if handler.kind == "finally"][:1]

    def reachable(self, entry: int) -> set[int]:
        """The instructions that can run when an execution begins at the entry."""
        self.reached = set()
        while True:  # again as long as a `finally` block turns out to have more ways on
            before = len(self.reached)
            self._spread(entry)
            if len(self.reached) == before:
                return self.reached

    def _spread(self, entry: int) -> None:
        ahead, seen = [entry], set()
        while ahead:
            pc = ahead.pop()
            if pc not in seen:
                seen.add(pc)
                ahead += [to for _, to in self.ways(pc)]
                ahead += [handler.target for handler in self.handlers_of(pc)]
        self.reached = seen
