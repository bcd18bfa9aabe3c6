"""Refuses to change a list or dict in place if another name refers to it, too.

On the engine a variable holds a value, so such a change would be seen through one name only; in
Python through all. It follows the instructions of the program on every path, with an abstract heap
(`references`). A change is refused only if the other name is read afterwards.
"""

from __future__ import annotations

from rhythm.ir import instructions as ir
from rhythm.ir.locals import falls_through as goes_on
from rhythm.ir.locals import handlers_around, reads, sets, targets
from rhythm.ir.program import Program
from rhythm.lang.python.references import NOTHING, InPlaceChange, Memory, Reader, Ref, walked
from rhythm.record import Record

MOST_ROUNDS = 200_000  # a bound, for programs that no author writes


class SharedChange(Record):
    """A change that Python would show in two places, and the engine only in one."""

    code: str
    message: str
    at: int
    help: str


def check_sharing(program: Program) -> tuple[Program, list[SharedChange]]:
    """Returns the changes of shared values, in the order of the program, and the program.

    If nobody knows whether `a += b` changes a shared list or adds numbers, the returned program
    checks it at run time.
    """
    if not any(_may_change(instruction) for instruction in program.code):
        return program, []
    sharing = _Sharing(program)
    sharing.run()
    code = tuple(
        _asking(instruction) if pc in sharing.unsure else instruction
        for pc, instruction in enumerate(program.code)
    )
    return program.replace(code=code), [sharing.found[pc] for pc in sorted(sharing.found)]


def _asking(instruction: ir.Instruction) -> ir.Instruction:
    """Returns `x += y` so that it fails if x is a list."""
    match instruction:
        case ir.Set(value=ir.Call("py.iadd") as call):
            return instruction.replace(value=call.replace(name="py.iadd_unshared"))
        case ir.Set(value=ir.Call("py.set", (target, path, ir.Call("py.iadd") as call)) as put):
            asking = call.replace(name="py.iadd_unshared")
            return instruction.replace(value=put.replace(args=(target, path, asking)))
    return instruction


def _may_change(instruction: ir.Instruction) -> bool:
    from rhythm.ir.locals import nodes
    from rhythm.lang.python.references import CHANGES

    return any(isinstance(node, ir.Call) and node.name in CHANGES for node, _ in nodes(instruction))


class _Sharing:
    def __init__(self, program: Program) -> None:
        self.code, self.handlers = program.code, handlers_around(program)
        self.entries = (0, *program.branches)
        self.live = self._liveness()
        self.found: dict[int, SharedChange] = {}
        self.unsure = set[int]()

    def run(self) -> None:
        """Follows every path through the program until nothing new is learned."""
        arriving: dict[int, Memory] = {pc: Memory() for pc in self.entries}
        work = list(self.entries)
        for _ in range(MOST_ROUNDS):
            if not work:
                break
            pc = work.pop()
            after = arriving[pc].copy()
            self._follow(pc, after)
            for to in self._ways(pc):
                if to not in arriving:
                    arriving[to] = after.copy()
                    work.append(to)
                elif arriving[to].merge(after):
                    work.append(to)

    def _ways(self, pc: int) -> list[int]:
        instruction = self.code[pc]
        ways = targets(instruction) + ([pc + 1] if goes_on(instruction) else [])
        return ways + [handler.target for handler in self.handlers[pc]]

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
                now = frozenset(reads(self.code[pc])) | (out - frozenset(sets(self.code[pc])))
                if (out, now) != (after[pc], before[pc]):
                    after[pc], before[pc], changed = out, now, True
        return after

    def _follow(self, pc: int, memory: Memory) -> None:
        """Carries out one instruction on the abstract memory; notes changes of shared objects."""
        reader, instruction = Reader(memory, pc), self.code[pc]
        match instruction:
            case ir.Set(name, ir.Call("py.changed") as call):
                whole = reader.refs(call)
                self._report(pc, reader, instruction)
                memory.variables[f"{name}.0"] = whole
                memory.variables[f"{name}.1"] = memory.inside(whole)
            case ir.Set(name, value):
                refs = reader.refs(value)
                self._report(pc, reader, instruction, name)
                memory.variables[name] = refs
            case ir.Iterate(state, source):
                parts = [reader.refs(each) for each in walked(source)]
                memory.variables[state] = frozenset[Ref]().union(*parts)
            case ir.Next(state, names):
                walked_refs = memory.variables.get(state, NOTHING)
                for i, name in enumerate(names):
                    memory.variables[name] = memory.take_out((pc, -1 - i), walked_refs)
            case ir.Await(_, str(into)) | ir.Take(_, into):
                memory.variables[into] = memory.come_in((pc, 0))
            case ir.Start(_, str(into)):
                memory.variables[into] = NOTHING
        for handler in self.handlers[pc]:
            memory.variables.setdefault(handler.into, NOTHING)

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
        memory, others = reader.memory, self.live[pc] - {change.through, into}
        refs = memory.same_as(change.refs)
        for name in sorted(others, key=lambda name: (name.startswith("$"), name)):
            held = memory.variables.get(name, NOTHING)
            # A loop only reads which elements come next, not what is in them.
            if refs & (held if name.startswith("$for") else memory.reachable(held)):
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
        at = getattr(instruction, "at", 0)
        if other.startswith("$for"):
            self.found[pc] = SharedChange(
                "P041",
                f"`{through}` is changed while a loop walks it",
                at,
                f"walk a copy: for … in list({through})",
            )
            return
        where = "in two places" if other == through else f"also in `{_shown(other)}`"
        self.found[pc] = SharedChange(
            "P040",
            f"`{_shown(through)}` is {where}: Python would show this change there, too",
            at,
            f"change a copy: {_shown(through)} = list({_shown(through)}), or dict(…), or build a "
            "new value",
        )


def _shown(name: str) -> str:
    return "another value" if name.startswith("$") else name
