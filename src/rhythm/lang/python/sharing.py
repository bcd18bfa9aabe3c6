"""Refuses to change a list or dict in place if another name refers to it, too.

On the engine a variable holds a value, so such a change would be seen through one name only; in
Python through all. It follows the instructions of the program on every path, with an abstract heap
(`references`). A change is refused only if the other name is read afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from rhythm.ir import instructions as ir
from rhythm.ir.locals import can_fail, handlers_around, nodes, reads, sets, targets
from rhythm.ir.locals import falls_through as goes_on
from rhythm.ir.program import Program
from rhythm.lang.python.references import (
    AUGMENTED,
    BEGUN,
    CHANGES,
    MODULE,
    NOTHING,
    InPlaceChange,
    Memory,
    ProgramFacts,
    Reader,
    Ref,
    starred,
    walked,
)
from rhythm.record import Record

# Of what is in a dict or list it is not known where: any element that was put in again may be it.
COPY_INSIDE = (
    "put copies in: list(…) or dict(…) of the element, [[0] * 3 for _ in range(3)] in place of "
    "[[0] * 3] * 3, int(…) or str(…) if it is a number or text; or use a variable of its own"
)
MOST_ROUNDS = 200_000  # a bound, for programs that no author writes


class SharedChange(Record):
    """A change that Python would show in two places, and the engine only in one."""

    code: str
    message: str
    at: int
    help: str


def check_sharing(
    program: Program,
    constants: Sequence[object] = (),
    plain: AbstractSet[tuple[int, str]] = frozenset(),
) -> tuple[Program, list[SharedChange]]:
    """Returns the changes of shared values, in the order of the program, and the program.

    `constants` are the lists and dicts of the module that the program has, the same objects;
    `plain` are fields that hold nothing, as `ProgramFacts` has them. If nobody knows whether
    `a += b` changes a shared list or adds numbers, the returned program checks it at run time.
    """
    if not any(_may_change(instruction) for instruction in program.code):
        return program, []
    by_identity = {id(value): i for i, value in enumerate(constants)}
    sharing = _Sharing(program, ProgramFacts(by_identity, _defaults(program, by_identity), plain))
    sharing.run()
    code = tuple(
        _asking(instruction) if pc in sharing.unsure else instruction
        for pc, instruction in enumerate(program.code)
    )
    return program.replace(code=code), [sharing.found[pc] for pc in sorted(sharing.found)]


def _defaults(program: Program, constants: Mapping[int, int]) -> dict[str, int]:
    """Returns the inputs whose default is a constant, each with the number of that."""
    found: dict[str, int] = {}
    for instruction in program.code:
        match instruction:
            case ir.Set(value=ir.Call("check_inputs", (_, ir.Const(schema), _))):
                for name, one in schema["properties"].items():
                    if id(one.get("default")) in constants:
                        found[name] = constants[id(one["default"])]
    return found


def _asking(instruction: ir.Instruction) -> ir.Instruction:
    """Returns `x += y` so that it fails if x is a list or dict."""
    match instruction:
        case ir.Set(value=ir.Call(name) as call) if name in AUGMENTED:
            return instruction.replace(value=call.replace(name=f"{name}_unshared"))
        case ir.Set(value=ir.Call("py.set", (target, path, ir.Call(name) as call)) as put) if (
            name in AUGMENTED
        ):
            asking = call.replace(name=f"{name}_unshared")
            return instruction.replace(value=put.replace(args=(target, path, asking)))
    return instruction


def _may_change(instruction: ir.Instruction) -> bool:
    return any(isinstance(node, ir.Call) and node.name in CHANGES for node, _ in nodes(instruction))


class _Sharing:
    def __init__(self, program: Program, known: ProgramFacts) -> None:
        self.code, self.handlers, self.known = program.code, handlers_around(program), known
        self.next = {  # where each loop takes its next element
            instruction.state: pc
            for pc, instruction in enumerate(self.code)
            if isinstance(instruction, ir.Next)
        }
        self.after_finally: dict[str, list[int]] = {}  # where each pending jump goes on
        for instruction in self.code:
            if isinstance(instruction, ir.Pend):
                self.after_finally.setdefault(instruction.state, []).append(instruction.to)
        self.entries = (0, *program.branches)
        self.live = self._liveness()
        self.found: dict[int, SharedChange] = {}
        self.unsure = set[int]()

    def run(self) -> None:
        """Follows every path through the program until nothing new is learned."""
        arriving: dict[int, Memory] = {pc: Memory() for pc in self.entries}
        for memory in arriving.values():
            memory.begin(len(self.known.constants))
        work = list(self.entries)
        for _ in range(MOST_ROUNDS):
            if not work:
                break
            pc = work.pop()
            before, after = arriving[pc], arriving[pc].copy()
            self._follow(pc, after)
            ways = [(to, after) for to in self._ways(pc)]
            # What fails has set nothing.
            for to, memory in ways + [(to, before) for to in self._failures(pc)]:
                if to not in arriving:
                    arriving[to] = memory.copy()
                    work.append(to)
                elif arriving[to].merge(memory):
                    work.append(to)

    def _failures(self, pc: int) -> list[int]:
        """Returns where a failure of the instruction leads."""
        return [handler.target for handler in self.handlers[pc]] if can_fail(self.code[pc]) else []

    def _ways(self, pc: int) -> list[int]:
        match instruction := self.code[pc]:
            case ir.Pend(block=block):  # a jump is made when the `finally` block is done
                return [block]
            case ir.EndFinally(state):
                return self.after_finally.get(state, [])
        return targets(instruction) + ([pc + 1] if goes_on(instruction) else [])

    def _liveness(self) -> list[frozenset[str]]:
        """Returns, for each instruction, the variables that are read after it."""
        before: list[frozenset[str]] = [frozenset()] * len(self.code)
        after = list(before)
        changed = True
        while changed:
            changed = False
            for pc in range(len(self.code) - 1, -1, -1):
                out = frozenset[str]().union(
                    *(before[to] for to in self._ways(pc) if to < len(self.code))
                )
                failed = frozenset[str]().union(*(before[to] for to in self._failures(pc)))
                now = frozenset(reads(self.code[pc])) | (out - frozenset(sets(self.code[pc])))
                now, out = now | failed, out | failed
                if (out, now) != (after[pc], before[pc]):
                    after[pc], before[pc], changed = out, now, True
        return after

    def _follow(self, pc: int, memory: Memory) -> None:
        """Carries out one instruction on the abstract memory; notes changes of shared objects."""
        reader, instruction = Reader(memory, pc, self.known), self.code[pc]
        match instruction:
            case ir.Set(name, ir.Call("py.changed") as call):
                whole = reader.refs(call)
                self._report(pc, reader, instruction)
                memory.variables[f"{name}.0"] = whole
                memory.variables[f"{name}.1"] = reader.given_back(call, whole)
            case ir.Set(name, ir.Call("py.unpack") as call) if (star := starred(call)) is not None:
                parts = reader.refs(call)
                self._report(pc, reader, instruction, name)
                memory.variables[name] = parts
                memory.variables[f"{name}.{star}"] = reader.rest(parts)
            case ir.Set(name, value):
                refs = reader.refs(value)
                self._report(pc, reader, instruction, name)
                memory.variables[name] = refs
            case ir.Iterate(state, source):
                sources = [reader.refs(each) for each in walked(source)]
                memory.variables[state] = frozenset[Ref]().union(*sources)
                memory.variables[f"{state}.source"] = sources[0]
            case ir.Next(state, names):
                walked_refs = memory.variables.get(f"{state}.source", NOTHING)
                for i, name in enumerate(names):
                    memory.variables[name] = memory.take_out((pc, -1 - i), walked_refs)
            case ir.Await(_, into) | ir.Take(_, into):
                memory.variables[BEGUN] = NOTHING  # all that was started runs now
                if into is not None:
                    memory.variables[into] = memory.come_in((pc, 0))
            case ir.Start(operand, into):
                begun = memory.variables.get(BEGUN, NOTHING)
                memory.variables[BEGUN] = begun | reader.sent(operand)
                if into is not None:
                    memory.variables[into] = NOTHING

    def _report(self, pc: int, reader: Reader, instruction: ir.Instruction, into: str = "") -> None:
        for change in reader.changes:
            other = self._other_holder(pc, reader, change, into)
            if other is None:
                continue
            if change.sure:
                self._refuse(pc, instruction, change.through, other)
            else:
                self.unsure.add(pc)

    def _other_holder(
        self, pc: int, reader: Reader, change: InPlaceChange, into: str
    ) -> str | None:
        """Returns the variable that is read later, and through which the change would be seen."""
        if change.into_itself:
            return change.through
        memory, others = reader.memory, self.live[pc] - {change.through, into} | {BEGUN, MODULE}
        for name in sorted(others, key=lambda name: (name.startswith("$"), name)):
            held = memory.variables.get(name, NOTHING)
            if name in self.next:
                # A loop only reads which elements come next, not what is in them.
                refs = memory.same_as(change.refs, self.next[name])
            else:
                refs, held = memory.same_as(change.refs), memory.reachable(held)
            if refs & held:
                return name
        twice = change.refs & memory.twice and self._is_inside(change.call)
        return change.through if change.through and twice else None

    @staticmethod
    def _is_inside(call: ir.Call) -> bool:
        """Whether the change is of something inside the variable, not of its own object."""
        path = call.args[1] if call.name in ("py.set", "py.without") else None
        deep = isinstance(path, ir.ListOf) and len(path.items) > 1
        return deep or not isinstance(call.args[0], ir.Local)

    def _refuse(self, pc: int, instruction: ir.Instruction, through: str, other: str) -> None:
        at, what = getattr(instruction, "at", 0), _shown(through)
        copy = "change a copy" if through.startswith("$") else f"change a copy: {through} = "
        copy += "" if through.startswith("$") else f"list({through}), dict(…) or replace(…)"
        if other.startswith("$for"):
            wrong = f"{what} is changed while a loop walks it"
            found = SharedChange("P041", wrong, at, "walk a copy: for … in list(…)")
        elif other == MODULE:
            wrong = f"{what} may be a constant of the module, or a default: all executions share it"
            found = SharedChange("P025", wrong, at, copy)
        elif other == BEGUN:
            wrong = f"{what} was given to a task that Python has not begun yet: it would see this"
            found = SharedChange("P040", wrong, at, f"{copy}, or await the task first")
        elif other == through:
            wrong = f"this may be in {what} twice: Python would show the change in both places"
            found = SharedChange("P040", wrong, at, COPY_INSIDE)
        else:
            wrong = f"{what} is also in {_shown(other)}: Python would show this change there, too"
            named = "" if other.startswith("$") else f"change it through its place in {other}; or "
            found = SharedChange("P040", wrong, at, named + copy)
        self.found[pc] = found


def _shown(name: str) -> str:
    if name == "$return":
        return "the value that is returned"
    return "another value" if name.startswith("$") else f"`{name}`"
