"""The blocks that the flat code of a program was written as: where `if`, `else`, loops, `try`, `catch` and `finally` begin and end.

For drawing only. Code that was never in blocks (another front end's jumps) gives fewer blocks, not an error.
"""

from __future__ import annotations

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.record import Record


class Block(Record):
    """The instructions [first, last). `fails_to` is the instruction at which a failure in it goes on."""

    kind: str  # yes, else, loop, try, catch, finally
    first: int
    last: int
    name: str = ""  # of the variable that a `catch` gets
    fails_to: int | None = None

    def holds(self, pc: int) -> bool:
        return self.first <= pc < self.last


class Blocks:
    """All blocks of a program. `seams` are the jumps that only put blocks together; `else_ifs` conditions with `else` before them."""

    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.seams: set[int] = set()
        self.else_ifs: set[int] = set()
        self.loops = {pc: Block("loop", pc + 1, exit) for pc in range(len(self.code)) if (exit := self._loop_exit(pc)) is not None}
        self.all = list(self.loops.values())
        for pc, instruction in enumerate(self.code):
            if isinstance(instruction, ir.JumpUnless) and pc not in self.loops and instruction.to > pc:
                self._add_if(pc, instruction.to)
        finallys = {handler.target: handler for handler in program.handlers if handler.kind == "finally"}
        for handler in program.handlers:
            if handler.kind == "catch":
                self._add_catch(handler, finallys)
        for handler in finallys.values():  # those left are of a `try` without `catch`
            self._add_try(handler.first, handler.last, handler.target)
        self._add_finallys(program.handlers)

    def beginning_at(self, pc: int) -> list[Block]:
        """Outermost first."""
        return sorted((block for block in self.all if block.first == pc), key=lambda block: -block.last)

    def depth(self, pc: int) -> int:
        """How many blocks the instruction stands in, not counting those that it begins."""
        return sum(block.first < pc < block.last for block in self.all)

    def loop_around(self, pc: int) -> tuple[int, Block] | None:
        """The innermost loop, by the instruction that decides on another round."""
        around = [(head, block) for head, block in self.loops.items() if block.holds(pc)]
        return max(around, key=lambda loop: loop[0], default=None)

    def _loop_exit(self, pc: int) -> int | None:
        match self.code[pc]:
            case ir.Next(exit=exit) | ir.Take(exit=exit):
                pass
            case ir.JumpUnless(to=exit) if self._jumps(exit - 1, pc):
                pass
            case _:
                return None
        self.seams.add(exit - 1)
        return exit if exit > pc else None

    def _jumps(self, pc: int, to: int) -> bool:
        instruction = self.code[pc]
        return isinstance(instruction, ir.Jump) and instruction.to == to

    def _add_if(self, pc: int, otherwise: int) -> None:
        self.all.append(Block("yes", pc + 1, otherwise))
        end = self._end_of_if(pc, otherwise)
        if end == otherwise:
            return
        self.seams.add(otherwise - 1)
        following = self.code[otherwise]
        if isinstance(following, ir.JumpUnless) and otherwise not in self.loops and self._end_of_if(otherwise, following.to) == end:
            self.else_ifs.add(otherwise)
        else:
            self.all.append(Block("else", otherwise, end))

    def _end_of_if(self, pc: int, otherwise: int) -> int:
        """Where the yes part jumps over an `else`; a `break` at its end is no such jump."""
        loop = self.loop_around(pc)
        match self.code[otherwise - 1]:
            case ir.Jump(end) if end > otherwise and not (loop and end >= loop[1].last):
                return end
        return otherwise

    def _add_catch(self, handler: ir.Handler, finallys: dict[int, ir.Handler]) -> None:
        self._add_try(handler.first, handler.last, handler.target)
        last, cleanup = handler.target + 1, None
        match self.code[handler.last] if handler.last < len(self.code) else None:
            case ir.Jump(end):
                last = end
                self.seams |= {handler.last, end - 1}
            case ir.Pend(block=block):
                last = cleanup = block
                finallys.pop(block, None)
        self.all.append(Block("catch", handler.target, last, handler.into, cleanup))

    def _add_try(self, first: int, last: int, fails_to: int) -> None:
        self.all.append(Block("try", first, last, "", fails_to))

    def _add_finallys(self, handlers: tuple[ir.Handler, ...]) -> None:
        for handler in handlers:
            if handler.kind == "finally":
                ends = [pc for pc, instruction in enumerate(self.code) if instruction == ir.EndFinally(handler.into, instruction.at)]  # type: ignore[attr-defined]
                self.all.append(Block("finally", handler.target, max(ends, default=handler.target) + 1))
