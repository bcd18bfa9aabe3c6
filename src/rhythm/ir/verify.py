"""Checks every program, whichever front end made it, before it is stored or run.

A program that passes cannot jump outside its code, run off its end, read a local before it is set,
use one local for two purposes, or call something unknown. The interpreter does not test for these
again. The types of the fields are not checked here: the front ends build them right, and `codec`
checks them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rhythm.errors import InvalidProgram
from rhythm.ir import instructions as ir
from rhythm.ir.locals import falls_through, nodes, roles, targets, unset_reads
from rhythm.ir.operations import (
    BINARY_OPERATORS,
    BUILTINS,
    EMITS,
    GROUPS,
    LOGIC_OPERATORS,
    OPERATIONS,
    UNARY_OPERATORS,
    Signature,
)
from rhythm.ir.program import Program
from rhythm.ir.versions import version_of_node
from rhythm.limits import DEFAULT_LIMITS, INT_MAX, INT_MIN
from rhythm.record import Record

_SPREADABLE = (ir.ListOf, ir.ObjectOf, ir.OperandList, ir.OperandObject)
# The interpreter's own locals: no instruction may set them.
RESERVED = frozenset({"$m", "$started", "$resumed", "$origins"})
# The greatest nesting of one instruction. It keeps compiling and running within Python's recursion
# limit.
HEIGHT = 200


def verify(program: Program) -> Program:
    """Returns the program. Raises `InvalidProgram` naming the first instruction that is wrong."""
    if not program.code:
        raise InvalidProgram(f"program {program.name!r} is empty")
    _Verifier(program).run()
    return program


class _Verifier:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = program.code
        self.captures: dict[int, tuple[str, ...]] = {}  # by the branch's number
        self.roles: dict[str, str] = {}  # what each local is used for

    def run(self) -> None:
        for pc, instruction in enumerate(self.code):
            if not isinstance(instruction, ir.Instruction):
                self._refuse(pc, "is not an instruction")
            self._check_instruction(pc, instruction)
        if falls_through(self.code[-1]):
            self._refuse(len(self.code) - 1, "runs off the end of the program")
        self._check_handlers()
        self._check_branches()
        for pc, name in unset_reads(self.program, self.captures):
            self._refuse(pc, f"reads {name!r} before it is set")

    def _check_instruction(self, pc: int, instruction: ir.Instruction) -> None:
        for node, height in nodes(instruction):
            if height > HEIGHT:
                self._refuse(pc, "is nested too deep")
            self._check_node(pc, node)
            if version_of_node(node) > self.program.ir:
                self._refuse(pc, f"needs IR version {version_of_node(node)}")
            self._check_places(pc, node)
            for name in node.names if isinstance(node, ir.Comprehension) else ():
                self._check_role(pc, name, "a variable")
        for target in targets(instruction):
            if not 0 <= target < len(self.code):
                self._refuse(pc, f"goes to {target}, outside the program")
        for name, role in roles(instruction):
            self._check_role(pc, name, role)

    def _check_role(self, pc: int, name: str, role: str) -> None:
        if name in RESERVED or self.roles.setdefault(name, role) != role:
            self._refuse(
                pc,
                f"uses {name!r} as {role}"
                + ("" if name in RESERVED else f"; elsewhere it is {self.roles[name]}"),
            )

    def _refuse(self, pc: int, problem: str) -> None:
        raise InvalidProgram(f"program {self.program.name!r}, instruction {pc}: {problem}")

    def _check_node(self, pc: int, node: Record) -> None:
        match node:
            case ir.Const(value) if not _is_json(value):
                self._refuse(pc, f"holds a constant that is not JSON: {value!r:.60}")
            case ir.Unary(op) if op not in UNARY_OPERATORS:
                self._refuse(pc, f"uses an unknown operator {op!r}")
            case ir.Binary(op) if op not in BINARY_OPERATORS:
                self._refuse(pc, f"uses an unknown operator {op!r}")
            case ir.Logic(op) if op not in LOGIC_OPERATORS:
                self._refuse(pc, f"uses an unknown operator {op!r}")
            case ir.Call(name, args):
                self._check_call(pc, BUILTINS.get(name), name, args)
            case ir.Operation(kind, args):
                self._check_call(pc, OPERATIONS.get(kind), kind, args)
            case ir.Emit(kind, args):
                self._check_call(pc, EMITS.get(kind), kind, args)
            case ir.Group(mode) if mode not in GROUPS:
                self._refuse(pc, f"has an unknown group {mode!r}")
            case ir.Branch(entry, captures):
                self._check_branch(pc, entry, captures)
            case ir.Comprehension(_, names) | ir.Next(_, names) if len(names) not in (1, 2):
                self._refuse(pc, "walks with neither one nor two names")
            case ir.Iterate(arity=arity) if arity not in (1, 2):
                self._refuse(pc, "walks with neither one nor two names")
            case ir.SetPath(path=()):
                self._refuse(pc, "sets an element without saying which")
            case ir.Await(keep=keep) | ir.Take(keep=keep) if "$m" in keep:
                self._refuse(pc, "keeps what is no value")

    def _check_places(self, pc: int, node: Record) -> None:
        """Refuses nodes in the wrong place: spreads, operations in a comprehension, `completed`."""
        for name, below in node.__dict__.items():
            for key, child in _children(below) if name != "keep" else ():
                if isinstance(child, ir.Spread) and (
                    not isinstance(node, _SPREADABLE) or key is not None
                ):
                    self._refuse(pc, "spreads outside a list or object")
                if not isinstance(child, ir.Spread) and key is None and name == "entries":
                    self._refuse(pc, "has an entry without a key")
                operations = isinstance(child, ir.Comprehension) and not isinstance(
                    child.element, ir.Expression
                )
                if operations and not (
                    isinstance(node, ir.Group | ir.Start) and name in ("items", "operand")
                ):
                    self._refuse(pc, "starts operations inside an expression")
                if isinstance(child, ir.Group) and (child.mode == "completed") != isinstance(
                    node, ir.Gather
                ):
                    self._refuse(pc, "takes `completed` for another group, or another group for it")

    def _check_call(
        self, pc: int, signature: Signature | None, name: str, args: tuple[Any, ...]
    ) -> None:
        if signature is None:
            self._refuse(pc, f"calls {name!r}, which does not exist")
        elif not signature.least <= len(args) <= signature.most:
            self._refuse(pc, f"calls {name!r} with {len(args)} arguments")

    def _check_branch(self, pc: int, entry: int, captures: tuple[str, ...]) -> None:
        if not 0 <= entry < len(self.program.branches):
            self._refuse(pc, f"starts branch {entry}, which does not exist")
        if self.captures.setdefault(entry, captures) != captures:
            self._refuse(pc, f"starts branch {entry} with other locals than elsewhere")

    def _check_handlers(self) -> None:
        size = len(self.program.code)
        for handler in self.program.handlers:
            fits = 0 <= handler.first <= handler.last <= size and 0 <= handler.target < size
            if not fits or handler.kind not in ("catch", "finally"):
                raise InvalidProgram(f"program {self.program.name!r}: {handler} is out of place")
            role = "a variable" if handler.kind == "catch" else "a pending finally"
            if handler.into in RESERVED or self.roles.setdefault(handler.into, role) != role:
                raise InvalidProgram(
                    f"program {self.program.name!r}: {handler} uses {handler.into!r} as {role}"
                )

    def _check_branches(self) -> None:
        for entry in self.program.branches:
            if not 0 <= entry < len(self.program.code):
                raise InvalidProgram(
                    f"program {self.program.name!r}: a branch begins at {entry}, outside "
                    f"the program"
                )


def _children(field: Any) -> Iterator[tuple[str | None, Record]]:
    """Yields the records directly in a field, with their keys if they are entries of an object."""
    for item in field if isinstance(field, tuple) else (field,):
        key, child = item if isinstance(item, tuple) else (None, item)
        if isinstance(child, Record):
            yield key, child


def _is_json(value: Any, depth: int = DEFAULT_LIMITS.depth) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_is_json(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return depth > 0 and all(
            isinstance(key, str) and _is_json(item, depth - 1) for key, item in value.items()
        )
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return INT_MIN <= value <= INT_MAX
    return value is None or isinstance(value, str)
