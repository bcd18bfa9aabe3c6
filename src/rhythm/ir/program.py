"""A program: the compiled form of one version of a workflow, whichever language it was written
in."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import Any

from rhythm.ir.instructions import IR_VERSION, Handler, Instruction
from rhythm.record import Record


class Program(Record):
    """What the interpreter runs. `version` names its content: a changed text is another version,
    for ever."""

    name: str
    language: str
    version: str
    code: tuple[Instruction, ...]
    handlers: tuple[Handler, ...] = ()
    branches: tuple[int, ...] = ()  # entry points besides 0
    options: dict[str, Any] = {}  # from annotations: queue, timeout, on, schedule, version label
    file: str = ""
    # source map: the offset in the file at which each line of the workflow begins
    lines: tuple[int, ...] = (0,)
    # where each named step begins, its id, the id of the one to follow
    steps: tuple[tuple[int, str, str | None], ...] = ()
    ir: int = IR_VERSION
    first_line: int = 1  # the number, in the file, of the first of these lines

    # programs are cached by identity; comparing all their code to look one up would be absurd
    __hash__ = object.__hash__

    def position(self, at: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset in the source."""
        index = max(bisect_right(self.lines, at) - 1, 0)
        return self.first_line + index, at - self.lines[index] + 1

    def offset(self, line: int, column: int) -> int:
        """The offset in the source of a line and column."""
        return self.lines[max(line - self.first_line, 0)] + column - 1


def position_of(program: Program, statement: int) -> tuple[str | None, str | None]:
    """The id of the step an instruction belongs to, and of the step that follows if it goes well;
    None where there is none."""
    after = bisect_right(program.steps, statement, key=lambda step: step[0])
    if not after:
        return None, None
    _, id, next = program.steps[after - 1]
    return id, next


def version_of(language: str, text: str, constants: str = "") -> str:
    """The version of a workflow: the SHA-256 of its language, its own text and the constants it
    captured."""
    return hashlib.sha256(
        f"{language}\0{text}\0{constants}".encode("utf-8", "surrogatepass")
    ).hexdigest()
