"""What instructions do with locals: which they set, read and lose, and whether any is read where it may not be set.

`unset_reads` is a data-flow analysis over the flat code; a set of locals is the bits of one int. It knows two things that lose
locals: a suspension keeps only its `keep`, and so does the `finally` block between a Pend and where that goes on. A
comprehension loses none: what its names were before, they are again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.record import Record

ALWAYS_SET = ("inputs", "ctx")
EVERYTHING = -1


def unset_reads(program: Program, captures: dict[int, tuple[str, ...]]) -> Iterator[tuple[int, str]]:
    """Instructions that may read a local before it is set. `captures` are what each branch begins with."""
    analysis = _Analysis(program)
    analysis.run({0: ALWAYS_SET} | {entry: (*ALWAYS_SET, *captures.get(n, ())) for n, entry in enumerate(program.branches)})
    for pc, instruction in enumerate(program.code):
        known = analysis.known[pc]
        yield from ((pc, name) for name in reads(instruction) if not known & analysis.mask((name,)))


class _Analysis:
    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.bits: dict[str, int] = {}
        self.kept: dict[int, int] = {}  # the bits of a `keep`, by its identity
        self.known = [EVERYTHING] * len(self.code)  # on arrival; everything where nothing arrives
        self.handlers: list[list[ir.Handler]] = [[] for _ in self.code]
        for handler in program.handlers:
            for pc in range(handler.first, handler.last):
                self.handlers[pc].append(handler)
        self.through: dict[tuple[str, int], int] = {}  # what survives a `finally` block, by its state and entry

    def mask(self, names: Iterable[str]) -> int:
        total = 0
        for name in names:
            total |= self.bits.setdefault(name, 1 << len(self.bits))
        return total

    def run(self, entries: dict[int, tuple[str, ...]]) -> None:
        work = [(pc, self.mask(names)) for pc, names in entries.items()]
        while work:
            pc, arriving = work.pop()
            merged = self.known[pc] & arriving
            if merged != self.known[pc]:
                self.known[pc] = merged
                work += self._leaving(pc, merged & self._survives(pc))

    def _survives(self, pc: int) -> int:
        instruction = self.code[pc]
        if not isinstance(instruction, ir.Await | ir.Take):
            return EVERYTHING
        if id(instruction.keep) not in self.kept:  # many instructions keep the very same locals
            self.kept[id(instruction.keep)] = self.mask((*ALWAYS_SET, *instruction.keep))
        return self.kept[id(instruction.keep)]

    def _leaving(self, pc: int, kept: int) -> Iterator[tuple[int, int]]:
        """Where the instruction leads, and what is set there."""
        instruction = self.code[pc]
        after = kept | self.mask(sets(instruction))
        if falls_through(instruction):
            yield pc + 1, after
        match instruction:
            case ir.Pend(state, to, block):
                yield block, after
                yield to, after & self._through_finally(state, block) & ~self.mask((state,))
            case ir.Next(exit=exit) | ir.Take(exit=exit):
                yield exit, kept
            case ir.Jump(to) | ir.JumpUnless(_, to):
                yield to, after
        failed = kept & ~self.mask((instruction.state,)) if isinstance(instruction, ir.Take) else kept
        for handler in self.handlers[pc] if can_fail(instruction) else ():
            yield handler.target, failed | self.mask((handler.into,))

    def _through_finally(self, state: str, block: int) -> int:
        if (state, block) not in self.through:
            survives = EVERYTHING
            for pc in self._region(state, block):
                survives &= self._survives(pc)
            self.through[state, block] = survives
        return self.through[state, block]

    def _region(self, state: str, block: int) -> set[int]:
        """The instructions on the ways from the block's first to its EndFinally.

        Ways that leave it otherwise do not count, also if a loop around it leads them to its Pend or its failures again.
        """
        before: dict[int, set[int]] = {block: set()}
        ahead, ends = [block], []
        while ahead:
            pc = ahead.pop()
            instruction = self.code[pc]
            if getattr(instruction, "state", None) == state and isinstance(instruction, ir.Pend | ir.EndFinally):
                ends += [pc] if isinstance(instruction, ir.EndFinally) else []
                continue
            for to in self._follow(pc, state):
                if to not in before:
                    ahead.append(to)
                before.setdefault(to, set()).add(pc)
        region: set[int] = set()
        while ends:
            pc = ends.pop()
            if pc not in region:
                region.add(pc)
                ends += before[pc]
        return region

    def _follow(self, pc: int, state: str) -> list[int]:
        instruction = self.code[pc]
        following = [pc + 1] if falls_through(instruction) else []
        return following + targets(instruction) + [handler.target for handler in self.handlers[pc] if handler.into != state]


def targets(instruction: ir.Instruction) -> list[int]:
    """Where the instruction may go besides the next one. A Pend also goes, in the end, where it says."""
    fields = instruction.__dict__
    return [fields[name] for name in ("to", "exit", "block") if name in fields]


def falls_through(instruction: ir.Instruction) -> bool:
    return not isinstance(instruction, ir.Jump | ir.Return | ir.Throw | ir.Pend | ir.EndFinally)


def can_fail(instruction: ir.Instruction) -> bool:
    """Whether a handler can be entered from here. A jump out of a `try` stands inside it, yet after its `finally` has run."""
    match instruction:
        case ir.Jump() | ir.Pend() | ir.Return(ir.Local() | ir.Const()):
            return False
    return True


def sets(instruction: ir.Instruction) -> tuple[str, ...]:
    """The locals that are set when the instruction has gone well."""
    match instruction:
        case ir.Set(name) | ir.SetPath(name):
            return (name,)
        case ir.Iterate(state):
            return (state, f"{state}.i")
        case ir.Next(_, names):
            return names
        case ir.Await(_, into) | ir.Start(_, into):
            return (into,) if into else ()
        case ir.Gather(state) | ir.Pend(state):
            return (state,)
        case ir.Take(_, into):
            return (into,)
    return ()


def reads(instruction: ir.Instruction) -> Iterator[str]:
    """The locals that must be set before the instruction."""
    match instruction:
        case ir.Next(state):
            yield from (state, f"{state}.i")
        case ir.SetPath(name) | ir.Take(name) | ir.EndFinally(name):
            yield name
    stack: list[tuple[Any, frozenset[str]]] = [(instruction, frozenset())]
    while stack:
        node, bound = stack.pop()
        match node:
            case ir.Local(name) if name not in bound:
                yield name
            case ir.Branch(_, captures):
                yield from (name for name in captures if name not in bound)
            case ir.Comprehension(element, names, source, condition):
                inner = bound.union(names)
                stack += [(source, bound), (element, inner), (condition, inner)]
            case tuple():
                stack += [(item, bound) for item in node]
            case Record() if not isinstance(node, ir.Const):
                stack += [(field, bound) for field in _fields(node)]


def nodes(value: Any) -> Iterator[tuple[Record, int]]:
    """The record and every record below it, with how far below."""
    stack = [(value, 0)]
    while stack:
        node, height = stack.pop()
        if isinstance(node, tuple):
            stack += [(item, height) for item in node]
        elif isinstance(node, Record):
            yield node, height
            if not isinstance(node, ir.Const):
                stack += [(field, height + 1) for field in _fields(node)]


def _fields(node: Record) -> list[Any]:
    """The fields that may hold records: the many names of a `keep` are not worth looking at."""
    return [field for name, field in node.__dict__.items() if name != "keep"]


def _bound(instruction: ir.Instruction) -> Iterator[str]:
    for node, _ in nodes(instruction):
        if isinstance(node, ir.Comprehension):
            yield from node.names


def roles(instruction: ir.Instruction) -> Iterator[tuple[str, str]]:
    """What the instruction uses its locals for. The hidden ones hold what only their own kind of instruction understands."""
    for name in (*sets(instruction), *_bound(instruction)):
        if not isinstance(instruction, ir.Iterate | ir.Gather | ir.Pend):
            yield name, "a variable"
    match instruction:
        case ir.Iterate(state, _, arity):
            yield from ((state, f"a loop with {arity} names"), (f"{state}.i", "a position"))
        case ir.Next(state, names):
            yield from ((state, f"a loop with {len(names)} names"), (f"{state}.i", "a position"))
        case ir.Gather(state) | ir.Take(state):
            yield state, "a `completed` loop"
        case ir.Pend(state) | ir.EndFinally(state):
            yield state, "a pending finally"
