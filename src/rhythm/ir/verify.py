"""Checks every program, whichever front end made it, before it is stored or run.

What passes cannot jump outside its code, fall off its end, read a local before it is set, use one for two purposes, or call
something unknown: the interpreter does not test for these again. That each field is of its type, the front ends' own types and
`codec` have seen to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rhythm.errors import InvalidProgram
from rhythm.ir import instructions as ir
from rhythm.ir.operations import BINARY_OPERATORS, BUILTINS, EMITS, GROUPS, LOGIC_OPERATORS, OPERATIONS, UNARY_OPERATORS, Signature
from rhythm.ir.program import Program
from rhythm.limits import INT_MAX, INT_MIN
from rhythm.record import Record

ALWAYS_SET = ("inputs", "ctx")
RESERVED = frozenset({*ALWAYS_SET, "$m", "$started"})  # the interpreter's own: no instruction sets them
HEIGHT = 400  # of one instruction, so that compiling it and running it stay within Python's own limit


def verify(program: Program) -> Program:
    """The program itself; `InvalidProgram` naming the first instruction that is wrong."""
    if not program.code:
        raise InvalidProgram(f"program {program.name!r} is empty")
    _Verifier(program).run()
    return program


class _Verifier:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = program.code
        self.captures: dict[int, tuple[str, ...]] = {}  # by branch
        self.roles: dict[str, str] = {}  # what each local is for

    def run(self) -> None:
        for pc, instruction in enumerate(self.code):
            if not isinstance(instruction, ir.Instruction):
                self._refuse(pc, "is not an instruction")
            self._check_instruction(pc, instruction)
        if _falls_through(self.code[-1]):
            self._refuse(len(self.code) - 1, "runs off the end of the program")
        self._check_handlers()
        self._check_branches()
        self._check_assignment()

    def _check_instruction(self, pc: int, instruction: ir.Instruction) -> None:
        for node, height in _nodes(instruction):
            if height > HEIGHT:
                self._refuse(pc, "is nested too deep")
            self._check_node(pc, node)
            self._check_places(pc, node)
        for target in _targets(instruction):
            if not 0 <= target < len(self.code):
                self._refuse(pc, f"goes to {target}, outside the program")
        for name, role in _roles(instruction):
            if name in RESERVED or self.roles.setdefault(name, role) != role:
                self._refuse(pc, f"uses {name!r} as {role}" + ("" if name in RESERVED else f"; elsewhere it is {self.roles[name]}"))

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
        """What may stand only in some places: spreads, operations in a comprehension, `completed`."""
        for name, below in node.__dict__.items():
            for key, child in _children(below):
                if isinstance(child, ir.Spread) and (not isinstance(node, _SPREADABLE) or key is not None):
                    self._refuse(pc, "spreads outside a list or object")
                if not isinstance(child, ir.Spread) and key is None and name == "entries":
                    self._refuse(pc, "has an entry without a key")
                operations = isinstance(child, ir.Comprehension) and not isinstance(child.element, ir.Expression)
                if operations and not (isinstance(node, ir.Group | ir.Start) and name in ("items", "operand")):
                    self._refuse(pc, "starts operations inside an expression")
                if isinstance(child, ir.Group) and (child.mode == "completed") != isinstance(node, ir.Gather):
                    self._refuse(pc, "takes `completed` for another group, or another group for it")
        if isinstance(node, ir.Comprehension):
            inner = {name for each, _ in _nodes((node.element, node.condition)) if isinstance(each, ir.Comprehension) for name in each.names}
            if inner & {*node.names}:
                self._refuse(pc, f"walks with {min(inner & {*node.names})!r} twice")

    def _check_call(self, pc: int, signature: Signature | None, name: str, args: tuple[Any, ...]) -> None:
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
                raise InvalidProgram(f"program {self.program.name!r}: {handler} uses {handler.into!r} as {role}")

    def _check_branches(self) -> None:
        for entry in self.program.branches:
            if not 0 <= entry < len(self.program.code):
                raise InvalidProgram(f"program {self.program.name!r}: a branch begins at {entry}, outside the program")

    def _check_assignment(self) -> None:
        """Every local is set on every way to where it is read. Sets of locals are the bits of an int."""
        bits: dict[str, int] = {}

        def mask(names: Iterable[str]) -> int:
            total = 0
            for name in names:
                total |= bits.setdefault(name, 1 << len(bits))
            return total

        code = self.code
        everything = -1
        known = [everything] * len(code)
        bound = [mask(_bound(instruction)) for instruction in code]  # by comprehensions, and gone after them
        covering = self._covering()
        work: list[tuple[int, int]] = [(0, mask(ALWAYS_SET))]
        for number, entry in enumerate(self.program.branches):
            work.append((entry, mask((*ALWAYS_SET, *self.captures.get(number, ())))))
        while work:
            pc, arriving = work.pop()
            merged = known[pc] & arriving
            if merged == known[pc]:
                continue
            known[pc] = merged
            instruction = code[pc]
            kept = merged & ~bound[pc]
            if isinstance(instruction, ir.Await | ir.Take):
                kept &= mask((*ALWAYS_SET, *instruction.keep))
            after = kept | mask(_sets(instruction))
            if _falls_through(instruction):
                work.append((pc + 1, after))
            if isinstance(instruction, ir.Pend):
                lost = mask((instruction.state, *self._lost_in_finally(instruction, mask, bits, covering)))
                work += [(instruction.block, after), (instruction.to, after & ~lost)]
            else:  # the exit of a loop is taken without setting its names
                work += [(to, kept if isinstance(instruction, ir.Next | ir.Take) else after) for to in _targets(instruction)]
            failed = kept & ~mask((instruction.state,)) if isinstance(instruction, ir.Take) else kept
            work += [(handler.target, failed | mask((handler.into,))) for handler in covering[pc]]
        for pc, instruction in enumerate(code):
            for name in _reads(instruction):
                if known[pc] != everything and not known[pc] & mask((name,)):
                    self._refuse(pc, f"reads {name!r} before it is set")
def _targets(instruction: ir.Instruction) -> list[int]:
    """Where the instruction may go besides the next one. A Pend also goes, in the end, where it says."""
    fields = instruction.__dict__
    return [fields[name] for name in ("to", "exit", "block") if name in fields]


def _falls_through(instruction: ir.Instruction) -> bool:
    return not isinstance(instruction, ir.Jump | ir.Return | ir.Throw | ir.Pend | ir.EndFinally)


def _sets(instruction: ir.Instruction) -> tuple[str, ...]:
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


def _reads(instruction: ir.Instruction) -> Iterator[str]:
    bound: set[str] = set()
    for node in _nodes(instruction):
        if isinstance(node, ir.Comprehension):
            bound.update(node.names)
    for node in _nodes(instruction):
        match node:
            case ir.Local(name) if name not in bound:
                yield name
            case ir.Branch(_, captures):
                yield from (name for name in captures if name not in bound)
            case ir.SetPath(name):
                yield name
            case ir.Next(state) | ir.Take(state) | ir.EndFinally(state):
                yield state


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return INT_MIN <= value <= INT_MAX
    return value is None or isinstance(value, str)
