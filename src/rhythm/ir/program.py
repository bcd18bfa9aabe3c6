"""`Program`: the compiled form of one version of a workflow, whatever its language."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import Any

from rhythm.ir.instructions import Handler, Instruction
from rhythm.record import Record


class Program(Record):
    """What the interpreter runs.

    `version` identifies its content: a changed text is always another version.
    """

    name: str
    language: str
    version: str
    code: tuple[Instruction, ...]
    handlers: tuple[Handler, ...] = ()
    branches: tuple[int, ...] = ()  # the entry points of the branches; the main body begins at 0
    options: dict[str, Any] = {}  # from annotations: queue, timeout, on, schedule, version label
    file: str = ""
    # Source map: the offset in the file at which each line of the workflow begins.
    lines: tuple[int, ...] = (0,)
    # For each named step: its first instruction, its id, and the id of the step that follows.
    steps: tuple[tuple[int, str, str | None], ...] = ()
    ir: int = 1  # the IR version that its code needs: `ir.versions` says which
    first_line: int = 1  # the line number in the file of the first entry of `lines`

    # Programs are cached by identity: hashing or comparing all their code for a lookup would be
    # slow.
    __hash__ = object.__hash__

    def position(self, at: int) -> tuple[int, int]:
        """Returns the line and column, both from 1, of an offset in the source."""
        index = max(bisect_right(self.lines, at) - 1, 0)
        return self.first_line + index, at - self.lines[index] + 1

    def offset(self, line: int, column: int) -> int:
        """Returns the offset in the source of a line and column."""
        return self.lines[max(line - self.first_line, 0)] + column - 1


def position_of(program: Program, statement: int) -> tuple[str | None, str | None]:
    """Returns the id of an instruction's step, and of the step that follows on success.

    Each is None if there is no such step.
    """
    after = bisect_right(program.steps, statement, key=lambda step: step[0])
    if not after:
        return None, None
    _, id, next = program.steps[after - 1]
    return id, next


def version_of(language: str, text: str, program: str = "") -> str:
    """Returns the version of a workflow: a SHA-256.

    It covers the language and the workflow's own text. Where that text alone does not say what
    runs, it also covers the program, as `dump_without_places` writes it.
    """
    return hashlib.sha256(
        f"{language}\0{text}\0{program}".encode("utf-8", "surrogatepass")
    ).hexdigest()
