"""Which locals instructions set, read and lose, and whether one is read before it is set.

`unset_reads` is a data-flow analysis over the flat code. A set of locals is the bits of one int.
Two things lose locals: a suspension keeps only its `keep`, and a `finally` block that suspends does
the same to the locals at its Pend. A comprehension loses none: its names have their former values
again afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.record import Record

ALWAYS_SET = ("inputs", "ctx")
EVERYTHING = -1


def unset_reads(
    program: Program, captures: dict[int, tuple[str, ...]]
) -> Iterator[tuple[int, str]]:
    """Yields each instruction that may read a local before it is set, with the name of the local.

    `captures` are the locals that each branch begins with.
    """
    analysis = _Analysis(program)
    analysis.run(
        {0: ALWAYS_SET}
        | {entry: (*ALWAYS_SET, *captures.get(n, ())) for n, entry in enumerate(program.branches)}
    )
    for pc, instruction in enumerate(program.code):
        known = analysis.known[pc]
        yield from ((pc, name) for name in reads(instruction) if not known & analysis.mask((name,)))


class _Analysis:
    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.bits: dict[str, int] = {}
        self.kept: dict[int, int] = {}  # the bits of a `keep`, by the identity of its tuple
        # The locals that are set on arrival at each instruction; all of them if no path arrives
        # there.
        self.known = [EVERYTHING] * len(self.code)
        self.handlers = handlers_around(program)
        # The handlers (by identity) and set locals that were already passed on: each pair is passed
        # on once.
        self.seen: set[tuple[int, int]] = set()
        self.handlers_to: dict[int, list[ir.Handler]] = {}
        for handler in program.handlers:
            self.handlers_to.setdefault(handler.target, []).append(handler)
        self.ends: dict[str, set[int]] = {}  # the EndFinally instructions of each state
        for pc, instruction in enumerate(self.code):
            if isinstance(instruction, ir.EndFinally):
                self.ends.setdefault(instruction.state, set()).add(pc)
        # The locals that survive a `finally` block, by its state and its first instruction.
        self.through: dict[tuple[str, int], int] = {}

    def mask(self, names: Iterable[str]) -> int:
        total = 0
        for name in names:
            total |= self.bits.setdefault(name, 1 << len(self.bits))
        return total

    def run(self, entries: dict[int, tuple[str, ...]]) -> None:
        work = self._changed((pc, self.mask(names)) for pc, names in entries.items())
        while work:
            pc = work.pop()
            work += self._changed(self._leaving(pc, self.known[pc] & self._survives(pc)))

    def _changed(self, arrivals: Iterable[tuple[int, int]]) -> list[int]:
        """Merges what arrives; returns the instructions at which fewer locals are set now."""
        changed = []
        for pc, arriving in arrivals:
            merged = self.known[pc] & arriving
            if merged != self.known[pc]:
                self.known[pc] = merged
                changed.append(pc)
        return changed

    def _survives(self, pc: int) -> int:
        """Returns the locals that are still set after the instruction has suspended, if it does."""
        instruction = self.code[pc]
        if not isinstance(instruction, ir.Await | ir.Take):
            return EVERYTHING
        if id(instruction.keep) not in self.kept:  # many instructions share one tuple
            self.kept[id(instruction.keep)] = self.mask((*ALWAYS_SET, *instruction.keep))
        return self.kept[id(instruction.keep)]

    def _leaving(self, pc: int, kept: int) -> Iterator[tuple[int, int]]:
        """Yields where the instruction leads, and what is set there."""
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
        failed = (
            kept & ~self.mask((instruction.state,)) if isinstance(instruction, ir.Take) else kept
        )
        if can_fail(instruction) and (flow := (id(self.handlers[pc]), failed)) not in self.seen:
            self.seen.add(flow)
            yield from (
                (handler.target, failed | self.mask((handler.into,)))
                for handler in self.handlers[pc]
            )

    def _through_finally(self, state: str, block: int) -> int:
        if (state, block) not in self.through:
            survives = EVERYTHING
            for pc in self._region(state, block):
                survives &= self._survives(pc)
            self.through[state, block] = survives
        return self.through[state, block]

    def _region(self, state: str, block: int) -> set[int]:
        """Returns the instructions on the paths from a block's first one to its EndFinally.

        Paths that leave the block otherwise do not count, even if a loop around it leads them back
        to its Pend or its failures. The search begins at the end of the block: from the beginning,
        each `finally` would walk through everything that follows it.
        """
        behind, ahead = self._back_from(state, self.ends.get(state, set())), set[int]()
        work = [block]
        while work:
            pc = work.pop()
            if pc in behind and pc not in ahead:
                ahead.add(pc)
                work += self._follow(pc, state) if pc not in self.ends[state] else ()
        return ahead

    def _back_from(self, state: str, ends: set[int]) -> set[int]:
        """Returns the instructions with a path to an end of the block, through no other Pend."""
        found, work = set[int](), list(ends)
        while work:
            pc = work.pop()
            if pc in found or self._begins(pc, state):
                continue
            found.add(pc)
            work += self._before[pc]
            for handler in self.handlers_to.get(pc, ()):
                if handler.into != state:
                    work += range(handler.first, handler.last)
        return found

    def _follow(self, pc: int, state: str) -> list[int]:
        return [
            *_ways(pc, self.code[pc]),
            *(handler.target for handler in self.handlers[pc] if handler.into != state),
        ]

    @cached_property
    def _before(self) -> list[list[int]]:
        """Returns, for each instruction, those that lead to it without failing."""
        before: list[list[int]] = [[] for _ in self.code]
        for pc, instruction in enumerate(self.code):
            for to in _ways(pc, instruction):
                before[to].append(pc)
        return before

    def _begins(self, pc: int, state: str) -> bool:
        instruction = self.code[pc]
        return isinstance(instruction, ir.Pend) and instruction.state == state


def handlers_around(program: Program) -> list[tuple[ir.Handler, ...]]:
    """Returns the handlers of each instruction, the innermost first.

    Neighbouring instructions with the same handlers share one tuple.
    """
    changes: dict[int, list[int]] = {}
    for n, handler in enumerate(program.handlers):
        for pc in {handler.first, handler.last} if handler.first < handler.last else ():
            changes.setdefault(pc, []).append(n)
    around: list[tuple[ir.Handler, ...]] = []
    here: tuple[ir.Handler, ...] = ()
    numbers = set[int]()
    for pc in range(len(program.code)):
        if pc in changes:
            numbers ^= set(changes[pc])
            here = tuple(program.handlers[n] for n in sorted(numbers))
        around.append(here)
    return around


def _ways(pc: int, instruction: ir.Instruction) -> list[int]:
    return [pc + 1, *targets(instruction)] if falls_through(instruction) else targets(instruction)


def targets(instruction: ir.Instruction) -> list[int]:
    """Returns where the instruction may go besides the next one.

    This includes where a Pend goes in the end, after its `finally` block.
    """
    fields = instruction.__dict__
    return [fields[name] for name in ("to", "exit", "block") if name in fields]


def falls_through(instruction: ir.Instruction) -> bool:
    """Whether the instruction can go on with the next one."""
    return not isinstance(
        instruction, ir.Jump | ir.Return | ir.Throw | ir.Block | ir.Pend | ir.EndFinally
    )


def can_fail(instruction: ir.Instruction) -> bool:
    """Whether a failure at this instruction can enter a handler.

    A jump out of a `try` is inside it, but runs after its `finally`.
    """
    match instruction:
        case ir.Jump() | ir.Pend() | ir.Return(ir.Local() | ir.Const()):
            return False
    return True


def sets(instruction: ir.Instruction) -> tuple[str, ...]:
    """Returns the locals that are set after the instruction has succeeded."""
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
    """Yields the locals that must be set before the instruction."""
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
    """Yields the record and every record below it, with its depth."""
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
    """Returns the fields that may contain records; skips the many names of a `keep`."""
    return [field for name, field in node.__dict__.items() if name != "keep"]


def roles(instruction: ir.Instruction) -> Iterator[tuple[str, str]]:
    """Yields each local of the instruction with what it is used for.

    A hidden local holds a value that only its own kind of instruction understands.
    """
    if not isinstance(instruction, ir.Iterate | ir.Gather | ir.Pend):
        yield from ((name, "a variable") for name in sets(instruction))
    match instruction:
        case ir.Iterate(state, _, arity):
            yield from ((state, f"a loop with {arity} names"), (f"{state}.i", "a position"))
        case ir.Next(state, names):
            yield from ((state, f"a loop with {len(names)} names"), (f"{state}.i", "a position"))
        case ir.Gather(state) | ir.Take(state):
            yield state, "a `completed` loop"
        case ir.Pend(state) | ir.EndFinally(state):
            yield state, "a pending finally"
