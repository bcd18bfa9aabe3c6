"""The blocks in flat code: where `if`, `else`, loops, `try`, `catch` and `finally` begin and end.

Used for drawing only. Code that did not come from blocks (jumps made by another front end) gives
fewer blocks, not an error.
"""

from __future__ import annotations

from itertools import accumulate

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.record import Record


class InstructionBlock(Record):
    """The instructions [first, last) of one block.

    `fails_to` is the instruction at which a failure inside the block continues.
    """

    kind: str  # yes, else, loop, try, catch, finally; `graph` also uses body
    first: int
    last: int
    name: str = ""  # the variable of a `catch`
    fails_to: int | None = None

    def holds(self, pc: int) -> bool:
        """Whether the instruction is in the block."""
        return self.first <= pc < self.last


class Blocks:
    """All blocks of a program.

    `seams` are the jumps that only connect blocks. `else_ifs` are the conditions of an `else if`.
    """

    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.seams = {pc for pc in range(len(self.code)) if self._jumps(pc, pc + 1)}
        self.else_ifs: set[int] = set()
        self.all: list[InstructionBlock] = []
        # By the instruction that decides whether there is another round.
        self.loops: dict[int, InstructionBlock] = {}
        # The innermost loop around each instruction.
        self.loop_around: list[int | None] = [None] * len(self.code)
        for pc in range(len(self.code)):
            self._add_loop(pc)
        for pc, instruction in enumerate(self.code):
            if (
                isinstance(instruction, ir.JumpUnless)
                and pc not in self.loops
                and instruction.to > pc
            ):
                self._add_if(pc, instruction.to)
        self._add_handlers(_whole(program.handlers))
        self.depths = self._depths()

    def beginning_at(self, pc: int) -> list[InstructionBlock]:
        """Returns the blocks that begin at an instruction, the outermost first."""
        return self._by_first.get(pc, [])

    def _depths(self) -> list[int]:
        """Returns how many blocks each instruction is in, not counting those that begin with it."""
        self._by_first: dict[int, list[InstructionBlock]] = {}
        changes = [0] * (len(self.code) + 2)
        for block in sorted(self.all, key=lambda block: -block.last):
            self._by_first.setdefault(block.first, []).append(block)
            changes[block.first + 1] += 1
            changes[max(block.last, block.first + 1)] -= 1
        return list(accumulate(changes))

    def _jumps(self, pc: int, to: int) -> bool:
        instruction = self.code[pc]
        return isinstance(instruction, ir.Jump) and instruction.to == to

    def _add_loop(self, pc: int) -> None:
        match self.code[pc]:
            case ir.Next(exit=exit) | ir.Take(exit=exit) | ir.JumpUnless(to=exit) if (
                exit > pc and self._jumps(exit - 1, pc)
            ):
                self.loops[pc] = InstructionBlock("loop", pc + 1, exit)
                self.loop_around[pc + 1 : exit] = [pc] * (exit - pc - 1)
                self.all.append(self.loops[pc])
                self.seams.add(exit - 1)

    def _add_if(self, pc: int, otherwise: int) -> None:
        self.all.append(InstructionBlock("yes", pc + 1, otherwise))
        end = self._end_of_if(pc, otherwise)
        if end == otherwise:
            return
        self.seams.add(otherwise - 1)
        following = self.code[otherwise]
        if (
            isinstance(following, ir.JumpUnless)
            and otherwise not in self.loops
            and self._end_of_if(otherwise, following.to) == end
        ):
            self.else_ifs.add(otherwise)
        else:
            self.all.append(InstructionBlock("else", otherwise, end))

    def _end_of_if(self, pc: int, otherwise: int) -> int:
        """Returns where an `if` ends: the target of the jump over its `else`, or `otherwise`.

        A `break` at the end of the yes part is not such a jump.
        """
        loop = self.loop_around[pc]
        match self.code[otherwise - 1]:
            case ir.Jump(end) if end > otherwise and (loop is None or end < self.loops[loop].last):
                return end
        return otherwise

    def _add_handlers(self, handlers: list[ir.Handler]) -> None:
        ends = {
            instruction.state: pc
            for pc, instruction in enumerate(self.code)
            if isinstance(instruction, ir.EndFinally)
        }
        caught = {self._add_catch(handler) for handler in handlers if handler.kind == "catch"}
        for handler in handlers:
            if handler.kind == "finally":
                self.all.append(
                    InstructionBlock(
                        "finally", handler.target, ends.get(handler.into, handler.target) + 1
                    )
                )
                if handler.target not in caught:
                    self.all.append(
                        InstructionBlock(
                            "try", handler.first, handler.last, fails_to=handler.target
                        )
                    )

    def _add_catch(self, handler: ir.Handler) -> int | None:
        """Adds the blocks of a `try` with `catch`; returns where its `finally` begins, or None."""
        self.all.append(
            InstructionBlock("try", handler.first, handler.last, fails_to=handler.target)
        )
        last, cleanup = handler.target + 1, None
        match self.code[handler.last] if handler.last < len(self.code) else None:
            case ir.Jump(end):
                last = max(last, end)
                self.seams.add(handler.last)
            case ir.Pend(block=block):
                last, cleanup = max(last, block), block
        self.all.append(InstructionBlock("catch", handler.target, last, handler.into, cleanup))
        return cleanup


def _whole(handlers: tuple[ir.Handler, ...]) -> list[ir.Handler]:
    """Returns one handler for each `catch` and `finally`, over all that it covers.

    It reaches from the first to the last covered instruction; the real handlers may have gaps.
    """
    whole: dict[tuple[str, int], ir.Handler] = {}
    for handler in handlers:
        known = whole.setdefault((handler.kind, handler.target), handler)
        whole[handler.kind, handler.target] = known.replace(
            first=min(known.first, handler.first), last=max(known.last, handler.last)
        )
    return list(whole.values())
