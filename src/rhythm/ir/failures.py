"""Which failures end a workflow: awaits whose errors no `catch` or `except` takes.

It reads the program, so it is the same for every language. A failure goes to the handlers around
its await, the innermost first; a handler that may throw the same error again hands it on.
"""

from __future__ import annotations

from collections.abc import Iterator

from rhythm.ir import instructions as ir
from rhythm.ir.awaiting import KINDS
from rhythm.ir.locals import falls_through, handlers_around, targets
from rhythm.ir.program import Program
from rhythm.record import Record

ANY_ERROR = frozenset({"Exception", "BaseException", "RhythmError"})
# The classes that take every failure of a kind of await; an `except` of others takes only some.
TAKEN_AS: dict[str, frozenset[str]] = {
    "task": ANY_ERROR | {"TaskFailed"},
    "workflow": ANY_ERROR | {"ChildFailed", "WorkflowError"},
    "branch": ANY_ERROR | {"ChildFailed", "WorkflowError"},
    "signal": ANY_ERROR | {"Timeout", "TimeoutError", "WorkflowError", "OSError"},
    "event": ANY_ERROR | {"Timeout", "TimeoutError", "WorkflowError", "OSError"},
    "any": ANY_ERROR | {"AllFailed", "WorkflowError"},
    "started": ANY_ERROR,
}


class Failure(Record):
    """An await whose failure ends the workflow: its place, and what is awaited, for people."""

    line: int
    column: int
    what: str


class _Leaf(Record):
    """Something in an await that may fail. `entry`: of a branch."""

    kind: str
    words: str
    entry: int | None = None


def unhandled(program: Program) -> list[Failure]:
    """Returns the awaits whose failure ends the workflow, in the order of the source."""
    return _Search(program).found()


class _Search:
    def __init__(self, program: Program) -> None:
        self.program, self.code = program, program.code
        self.handlers = handlers_around(program)
        # What is awaited by a race into a hidden local: its failure is thrown from there.
        self.raced = {
            instruction.into: instruction.operand
            for instruction in self.code
            if isinstance(instruction, ir.Await)
            and instruction.into
            and isinstance(instruction.operand, ir.Group)
            and instruction.operand.mode == "race"
        }

    def found(self) -> list[Failure]:
        ends = self._ending(0)
        places = {(self.program.position(at), words) for at, words in ends}
        return [Failure(*place, words) for place, words in sorted(places)]

    def _ending(self, entry: int) -> Iterator[tuple[int, str]]:
        """Yields what ends the execution, or the branch, that begins at an instruction."""
        for pc in sorted(self._reached(entry)):
            failing = [leaf for leaf in self._leaves(pc) if self._ends(pc, leaf.kind)]
            words = ", ".join(dict.fromkeys(leaf.words for leaf in failing if leaf.words))
            if words:
                yield getattr(self.code[pc], "at", 0), words
            for leaf in failing:
                if leaf.entry is not None:
                    yield from self._ending(self.program.branches[leaf.entry])

    def _reached(self, entry: int) -> set[int]:
        found, work = set[int](), [entry]
        while work:
            pc = work.pop()
            if pc < len(self.code) and pc not in found:
                found.add(pc)
                work += self._ways(pc)
                work += [handler.target for handler in self.handlers[pc]]
        return found

    def _ways(self, pc: int) -> list[int]:
        ways = targets(self.code[pc])
        return [pc + 1, *ways] if falls_through(self.code[pc]) else ways

    # What may fail.

    def _leaves(self, pc: int) -> list[_Leaf]:
        match self.code[pc]:
            case ir.Await(operand):
                return list(_failing(operand))
            case ir.Throw(ir.Member(ir.Local(name), "error")) if name in self.raced:
                items = self.raced[name].items
                return list(_failing(items))
        return []

    # Where a failure goes.

    def _ends(self, pc: int, kind: str, seen: frozenset[int] = frozenset()) -> bool:
        """Whether a failure at an instruction ends the execution."""
        for handler in self.handlers[pc]:
            if handler.kind != "catch":
                continue
            again = self._thrown_again(handler, kind) - seen
            return any(self._ends(at, kind, seen | {at}) for at in again)
        return True

    def _thrown_again(self, handler: ir.Handler, kind: str) -> set[int]:
        """Returns the instructions at which the handler throws the error that it was given."""
        found, seen, work = set[int](), set[int](), [handler.target]
        while work:
            pc = work.pop()
            if pc in seen or pc >= len(self.code):
                continue
            seen.add(pc)
            match self.code[pc]:
                case ir.Throw(ir.Local(name)) if name == handler.into:
                    found.add(pc)
                case ir.JumpUnless(condition) if _takes(condition, handler.into, kind):
                    work.append(pc + 1)
                case _:
                    work += self._ways(pc)
        return found


def _takes(condition: ir.Expression, error: str, kind: str) -> bool:
    """Whether the condition of an `except` is true for every failure of this kind."""
    match condition:
        case ir.Call("py.matches", (ir.Local(name), ir.Const(names))) if name == error:
            return bool(TAKEN_AS[kind] & set(names))
        case ir.Call("py.matches", (ir.Local(name), ir.ListOf(items))) if name == error:
            names = {item.value for item in items if isinstance(item, ir.Const)}
            return bool(TAKEN_AS[kind] & names)
    return False


def _failing(operand: object) -> Iterator[_Leaf]:
    """Yields what may fail in what is awaited."""
    match operand:
        case ir.Operation():
            yield from _failing_operation(operand)
        case ir.Branch(entry):
            yield _Leaf("branch", "", entry)
        case ir.Group(mode, items, options):
            yield from _failing_group(mode, items, options)
        case ir.OperandList(items):
            for item in items:
                yield from _failing(item)
        case ir.OperandObject(entries):
            for _, item in entries:
                yield from _failing(item)
        case ir.Comprehension(element) if not isinstance(element, ir.Expression):
            yield from _failing(element)
        case ir.Local() | ir.Member() | ir.Index() | ir.Choose():
            yield _Leaf("started", "what was started before")


def _failing_group(mode: str, items: object, options: ir.Expression | None) -> Iterator[_Leaf]:
    if mode in ("race", "completed") or _option(options, "settle"):
        return
    if mode != "any":
        yield from _failing(items)
        return
    inside = list(_failing(items))
    words = ", ".join(dict.fromkeys(leaf.words for leaf in inside if leaf.words))
    if inside:
        yield _Leaf("any", f"all of: {words}" if words else "all of its branches")


def _failing_operation(operation: ir.Operation) -> Iterator[_Leaf]:
    kind, args = operation.kind, operation.args
    options = args[-1] if len(args) > (2 if kind in ("task", "workflow") else 1) else None
    if kind in ("signal", "event"):
        fails = _option(options, "timeout") and not _option(options, "default")
    else:
        fails = kind in ("task", "workflow") and not _option(options, "settle")
    if fails:
        name = str(args[0].value) if isinstance(args[0], ir.Const) else "of a computed name"
        yield _Leaf(kind, KINDS[kind].words.format(name))


def _option(options: ir.Expression | None, name: str) -> bool:
    """Whether an option is given, and not written as null or false."""
    if isinstance(options, ir.Const) and isinstance(options.value, dict):
        return name in options.value and options.value[name] not in (None, False)
    for key, value in options.entries if isinstance(options, ir.ObjectOf) else ():
        if key == name:
            return not (isinstance(value, ir.Const) and value.value in (None, False))
    return False
