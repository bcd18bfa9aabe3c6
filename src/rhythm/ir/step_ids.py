"""The ids of a program's steps: those that its author gave (JSON steps), or else the call and its
line, such as `charge:12`.

Nothing stores such an id: it follows from the program, so it is the same for all executions of one
version. In another version the line may be another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program, position_of

CACHED = 64  # programs whose ids are kept


def steps_at(program: Program, statement: int) -> tuple[str | None, str | None]:
    """Returns the id of the step at an instruction, and of the one that follows if nothing fails.

    Each is None if there is no such step, or if only running the program tells which one it is.
    """
    if program.steps:
        return position_of(program, statement)
    ids = call_ids(program)
    if statement not in ids:
        return None, None
    return ids[statement], _following(program, statement, ids)


@lru_cache(CACHED)
def call_ids(program: Program) -> Mapping[int, str]:
    """Returns the id of each instruction that starts or awaits something.

    A second call of the same name in a line has a number: `charge:12.2`.
    """
    ids: dict[int, str] = {}
    seen: dict[str, int] = {}
    for pc, instruction in enumerate(program.code):
        if call := _call(instruction):
            id = f"{call}:{program.position(getattr(instruction, 'at', 0))[0]}"
            seen[id] = seen.get(id, 0) + 1
            ids[pc] = id if seen[id] == 1 else f"{id}.{seen[id]}"
    return ids


def _call(instruction: ir.Instruction) -> str:
    """Returns what an instruction calls, in a word; empty if it calls nothing."""
    match instruction:
        case ir.Await(operand) | ir.Start(operand):
            return _operand(operand)
        case ir.Gather(_, group):
            return group.mode
        case ir.Take():
            return "completed"
    return ""


def _operand(operand: object) -> str:
    match operand:
        case ir.Operation("task" | "workflow", (ir.Const(str() as name), *_)):
            return name
        case ir.Operation(kind):
            return kind
        case ir.Group(mode):
            return mode
        case ir.Branch():
            return "branch"
    return "await"


def _following(program: Program, statement: int, ids: Mapping[int, str]) -> str | None:
    """Returns the next step on the way from an instruction, as long as there is only one way."""
    if isinstance(program.code[statement], ir.Take):
        return None
    pc, seen = statement + 1, set[int]()
    while pc < len(program.code) and pc not in seen:
        if pc in ids:
            return ids[pc]
        seen.add(pc)
        match program.code[pc]:
            case ir.Jump(to):
                pc = to
            case ir.JumpUnless() | ir.Next() | ir.Return() | ir.Throw() | ir.Block():
                return None
            case ir.Pend() | ir.EndFinally():
                return None
            case _:
                pc += 1
    return None
