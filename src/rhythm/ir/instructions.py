"""The instruction set: one line of meaning for each instruction.

A program is a flat list of instructions over named locals. Blocks, loops, `try` and `for` are
compiled to jumps; there is no call stack. Names that begin with `$` are the compiler's own locals
(loop positions, pending `finally` blocks, awaited values). `at` is the offset in the source at
which a problem is reported.

A change here changes stored programs: raise `IR_VERSION` and keep decoding the older versions. A
program says the lowest version that has all it uses (`ir.versions`), so that older workers run it.
"""

from __future__ import annotations

from typing import Any

from rhythm.record import Record

IR_VERSION = 2


class Expression(Record):
    """Computes a value; changes nothing."""


class Const(Expression):
    """the JSON value itself"""

    value: Any


class Local(Expression):
    """the value of a local, `inputs` or `ctx`"""

    name: str


class Unary(Expression):
    """`-` of a number, `!` of anything"""

    op: str
    value: Expression
    at: int = 0


class Binary(Expression):
    """`+ - * / % == != < <= > >= in` of two values"""

    op: str
    left: Expression
    right: Expression
    at: int = 0


class Logic(Expression):
    """`&&`, `||`, `??`: the right side is evaluated only if the left side does not decide; so do
    `and` and `or`, with Python's truth"""

    op: str
    left: Expression
    right: Expression


class Choose(Expression):
    """`yes` if the condition is true, else `no`; the other one is not evaluated"""

    condition: Expression
    yes: Expression
    no: Expression


class Member(Expression):
    """a property by its written name; absent: an error, or null if optional"""

    target: Expression
    name: str
    optional: bool = False
    at: int = 0


class Index(Expression):
    """an element by position (negative from the end) or a property by a computed key"""

    target: Expression
    index: Expression
    optional: bool = False
    at: int = 0


class Spread(Expression):
    """only inside ListOf or ObjectOf: all elements of a list, or all entries of an object"""

    value: Expression
    at: int = 0


class ListOf(Expression):
    """a new list"""

    items: tuple[Expression, ...]
    at: int = 0


class ObjectOf(Expression):
    """a new object; a later key wins over a spread one; the key of a Spread is null"""

    entries: tuple[tuple[str | None, Expression], ...]
    at: int = 0


class Template(Expression):
    """the parts as text, joined"""

    parts: tuple[Expression, ...]
    at: int = 0


class Call(Expression):
    """a builtin function of the values"""

    name: str
    args: tuple[Expression, ...]
    at: int = 0


class Comprehension(Expression):
    """`element` for each item of `source` where `condition` holds; `names` are set for each item
    and restored afterwards"""

    element: Operand
    names: tuple[str, ...]
    source: Expression
    condition: Expression | None = None
    at: int = 0


class Operation(Record):
    """One thing to await: task, workflow, sleep, sleep_until, signal, event or approval."""

    kind: str
    args: tuple[Expression, ...]
    at: int = 0


class Branch(Record):
    """A block of this program that runs as a child execution, on copies of some locals.

    `entry` is its number in `Program.branches`; `captures` are the copied locals.
    """

    entry: int
    captures: tuple[str, ...]
    at: int = 0


class Group(Record):
    """`all`, `any`, `race` or `completed` over a Collection, or over ids from an expression."""

    mode: str
    items: Collection
    options: Expression | None = None
    at: int = 0


class OperandList(Record):
    """a list literal that contains operations"""

    items: tuple[Operand, ...]
    at: int = 0


class OperandObject(Record):
    """an object literal that contains operations"""

    entries: tuple[tuple[str | None, Operand], ...]  # a Spread has no key
    at: int = 0


Operand = Expression | Operation | Branch | Group
Collection = Expression | OperandList | OperandObject


class Instruction(Record):
    """Does something, then goes on with the next instruction unless its own line says otherwise."""


class Set(Instruction):
    """name := value"""

    name: str
    value: Expression
    at: int = 0


class SetPath(Instruction):
    """name := a copy of name in which the element at path is value"""

    name: str
    path: tuple[Expression, ...]
    value: Expression
    at: int = 0


class Jump(Instruction):
    """go to `to`"""

    to: int
    at: int = 0


class JumpUnless(Instruction):
    """go to `to`, unless the condition is true"""

    condition: Expression
    to: int
    at: int = 0


class Iterate(Instruction):
    """state := the source as it is now, state.i := 0; `arity` 2 walks pairs"""

    state: str
    source: Expression
    arity: int = 1
    at: int = 0


class Next(Instruction):
    """names := the next element of state; none left: go to exit"""

    state: str
    names: tuple[str, ...]
    exit: int
    at: int = 0


class Await(Instruction):
    """start the operand (or take the id it gives), suspend until it has ended; into := its result,
    or throw its failure"""

    operand: Operand
    into: str | None = None
    keep: tuple[str, ...] = ()  # the locals in scope here, which the snapshot keeps
    at: int = 0


class Start(Instruction):
    """start the operations and do not wait; into := the id, or the list or object with ids"""

    operand: Operand | Collection
    into: str | None = None
    at: int = 0


class Gather(Instruction):
    """state := a `completed` group, started; its results are taken by Take"""

    state: str
    group: Group
    at: int = 0


class Take(Instruction):
    """into := the next item of state to end, suspending for it; none left: go to exit"""

    state: str
    into: str
    exit: int
    keep: tuple[str, ...] = ()
    at: int = 0


class Emit(Instruction):
    """publish, send, log, progress, set_attribute or cancel: done by this turn's commit, not waited
    for"""

    kind: str
    args: tuple[Expression, ...]
    at: int = 0


class Return(Instruction):
    """the execution (or branch) completes with value"""

    value: Expression
    at: int = 0


class Throw(Instruction):
    """the value is thrown: text, or an object with code, message, data"""

    value: Expression
    at: int = 0


class Block(Instruction):
    """the execution (or branch) ends blocked, for this reason: no failure, and no result"""

    reason: Expression
    data: Expression
    at: int = 0


class Pend(Instruction):
    """state := "go on at `to` when the finally block is done", then enter it at `block`"""

    state: str
    to: int
    block: int
    at: int = 0


class EndFinally(Instruction):
    """go on with what the finally block interrupted: the jump or the error in state"""

    state: str
    at: int = 0


class Handler(Record):
    """Sends a failure at an instruction in [first, last) to `target`, with the error in `into`.

    Inner handlers come first.
    """

    first: int
    last: int
    target: int
    into: str
    kind: str  # "catch", or "finally", which also gets failures that cannot be caught
