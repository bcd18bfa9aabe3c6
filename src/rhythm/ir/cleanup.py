"""What still runs of a program that is over a limit: its `finally` blocks, and what they read.

Once an execution is over a limit, no other code of it runs. So whatever these blocks can never read
need not be kept, however large it is.
"""

from __future__ import annotations

from functools import cache
from weakref import WeakKeyDictionary

from rhythm.ir import instructions as ir
from rhythm.ir.locals import falls_through, handlers_around, reads, targets
from rhythm.ir.program import Program


class Cleanup:
    """The `finally` blocks of a program."""

    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.handlers = handlers_around(program)
        # Of each `finally` block, by its hidden local: where it ends, and where it may lead.
        self.ends: dict[str, int] = {}
        self.ways_out: dict[str, list[int]] = {}
        for pc, instruction in enumerate(self.code):
            match instruction:
                case ir.EndFinally(state):
                    self.ends[state] = pc
                case ir.Pend(state, to):
                    self.ways_out.setdefault(state, []).append(to)
        self._inside = bytearray(len(self.code))
        for target, state in {
            (handler.target, handler.into)
            for handler in program.handlers
            if handler.kind == "finally"
        }:
            size = self.ends.get(state, target - 1) + 1 - target
            self._inside[target : target + size] = b"\1" * size
        self.needs = cache(self._needs)

    def holds(self, pc: int) -> bool:
        """Whether the instruction is in a `finally` block."""
        return bool(self._inside[pc])

    def _needs(self, pc: int) -> frozenset[str]:
        """Returns the locals that may still be read if the execution goes on at an instruction.

        What is over a limit fails again at every instruction outside of `finally` blocks.
        """
        names, found, work = set[str](), set[int](), [pc]
        while work:
            pc = work.pop()
            if pc in found or pc >= len(self.code):
                continue
            found.add(pc)
            inside = self.holds(pc)
            work += [
                handler.target
                for handler in self.handlers[pc]
                if inside or handler.kind == "finally"
            ]
            if inside:
                names.update(reads(self.code[pc]))
                work += self._ways(pc)
        return frozenset(names)

    def _ways(self, pc: int) -> list[int]:
        match self.code[pc]:
            case ir.EndFinally(state):
                return self.ways_out.get(state, [])
            case instruction if falls_through(instruction):
                return [pc + 1, *targets(instruction)]
            case instruction:
                return targets(instruction)


_CLEANUPS: WeakKeyDictionary[Program, Cleanup] = WeakKeyDictionary()


def cleanup_of(program: Program) -> Cleanup:
    """Returns the `finally` blocks of a program, which are looked up once."""
    found = _CLEANUPS.get(program)
    if found is None:
        found = _CLEANUPS[program] = Cleanup(program)
    return found
