"""The state of one translation: the statements written so far, names, hints, and what is refused.

A Python expression becomes an expression of `.flow`, which has no effects. What has effects (an
await, a method that changes its object, `:=`) is written as statements before it, into `out`. So
`value` may write; whatever Python evaluates before an effect is pinned to a hidden variable, and
the order of evaluation is Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.python.effects import Effects
from rhythm.lang.python.names import MISSING, Around
from rhythm.lang.python.places import FunctionText
from rhythm.lang.python.problems import ADVICE
from rhythm.record import Record

Translate = Callable[["Translation", Any], Any]


class OpenLoop(Record):
    """A loop that is open. `around`: the block that `break` leaves, if the loop has an `else`."""

    around: str | None


class Translation:
    """Translates one function; `table` says how each kind of Python node is translated."""

    def __init__(
        self,
        text: FunctionText,
        around: Around,
        problems: Problems,
        effects: Effects,
        expressions: dict[type, Translate],
        statements: dict[type, Translate],
    ) -> None:
        self.text, self.around, self.problems, self.effects = text, around, problems, effects
        self._expressions, self._statements = expressions, statements
        self.out: list[Node] = []
        self.variables: set[str] = set()  # the names that the function itself gives values to
        self.lasting: set[str] = set()  # those of them that not only an `except` sets
        self.bound: list[dict[str, Node | None]] = []  # of comprehensions and inlined functions
        self.hints: dict[str, Any] = {}  # what is known of the types of variables
        self.inner_hints: list[dict[str, Any]] = []  # the same for comprehension variables
        self.loops: list[OpenLoop] = []
        self.errors: list[str] = []  # the variables of the `except` blocks around, inner last
        self.deadlines: list[str] = []  # the hidden variables of the `timeout` blocks around
        self.groups: dict[str, list[str]] = {}  # by its name: what a TaskGroup has started
        self.raised: list[str] = []  # the hidden variables of the errors of `except` blocks around
        self.annotations: dict[str, Any] = {}  # the hints that the author wrote, by variable
        self.started: set[str] = set()  # variables that have the id of something started
        self.finished: set[str] = set()  # those of them that a TaskGroup has waited for
        self.pure = 0  # inside how many comprehensions: nothing can be written there
        self.walked = set[int]()  # the identities of expressions that are only walked
        # Of expressions that are shown or raised, where an exception may stand.
        self.readable_errors = set[int]()
        self.broken = set[str]()  # names whose values were refused: what follows is no news
        self.strayed = False  # something was written there: the comprehension must be a loop
        self._hidden = 0

    # What is written.

    def value(self, node: ast.AST) -> Node:
        """Returns the expression; its effects are written before."""
        translate = self._expressions.get(type(node))
        if translate is None:
            return self.refuse("P017", node, f"`{type(node).__name__}` is not known here")
        made: Node = translate(self, node)
        return made

    def apart(self, node: ast.AST) -> tuple[Node, list[Node]]:
        """Returns the expression, and the statements that must run before it, not written yet.

        What Python evaluates only sometimes is translated so: its statements go into a block.
        """
        outer, self.out = self.out, []
        try:
            return self.value(node), self.out
        finally:
            self.out = outer

    def values(self, items: Sequence[ast.AST]) -> list[Node]:
        """Returns expressions that Python evaluates one after the other.

        What comes before one that writes statements is pinned, so that it is evaluated first.
        """
        found: list[Node] = []
        for item in items:
            value, before = self.apart(item)
            if before:
                found = self.kept(found, item)
            self.write(*before)
            found.append(value)
        return found

    def kept(self, values: Sequence[Node], later: ast.AST) -> list[Node]:
        """Returns the values, with those that `later` could change saved in hidden variables."""
        changed = self.effects.changed(later)
        return [
            value
            if isinstance(value, nodes.Literal)
            or (isinstance(value, nodes.Name) and value.name not in changed)
            else self.pinned(value)
            for value in values
        ]

    def pinned(self, value: Node, what: str = "t") -> nodes.Name:
        """Writes the value into a new hidden variable, and returns the variable."""
        name = nodes.Name(value.start, value.end, self.hidden(what))
        self.write(nodes.Let(value.start, value.end, False, name, value))
        return name

    def hidden(self, what: str = "t") -> str:
        """Returns a new name that no author can write."""
        self._hidden += 1
        return f"${what}_{self._hidden}"

    def write(self, *statements: Node) -> None:
        """Adds statements to the block that is being written."""
        self.strayed = self.strayed or (self.pure > 0 and bool(statements))
        self.out.extend(statements)

    def block(self, body: Iterable[ast.stmt] | Callable[[], None], at: ast.AST) -> nodes.Block:
        """Returns statements, or what a function writes, as a block of its own."""
        outer, self.out = self.out, []
        if callable(body):
            body()
        else:
            self.statements(body)
        written, self.out = self.out, outer
        start, end = self.text.span(at)
        return nodes.Block(start, end, tuple(written))

    def statements(self, body: Iterable[ast.stmt]) -> None:
        """Writes these statements."""
        for statement in body:
            translate = self._statements.get(type(statement))
            if translate is None:
                self.refuse("P017", statement, f"`{type(statement).__name__}` is not known here")
            else:
                translate(self, statement)

    # Names.

    def lookup(self, name: str) -> tuple[bool, Node | None]:
        """Returns whether an inner scope binds the name, and what stands for it there."""
        for scope in reversed(self.bound):
            if name in scope:
                return True, scope[name]
        return False, None

    def is_local(self, name: str) -> bool:
        """Whether the name is a variable of the workflow, or of a comprehension in it."""
        return self.lookup(name)[0] or name in self.variables

    def outside(self, node: ast.AST) -> Any:
        """Returns the object that a dotted name stands for outside of the workflow, or MISSING."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or self.is_local(root.id):
            return MISSING
        return self.around.resolve(node)

    def captured(self, node: ast.AST, value: Any) -> Node:
        """Returns a value of the module, which all executions share, and none may change."""
        if not isinstance(value, list | dict):
            return self.at(node).literal(value)
        self.around.shared.append(value)
        return nodes.Literal(*self.text.span(node), value)

    # Problems.

    def refuse(self, code: str, node: ast.AST, message: str, help: str = "") -> Node:
        """Reports a problem; returns what stands for the code from now on.

        What is only wrong because a name in it has no value, for a reason that was told, is no
        problem of its own.
        """
        start, end = self.text.span(node)
        if self.broken and any(
            isinstance(each, ast.Name) and each.id in self.broken for each in ast.walk(node)
        ):
            return nodes.Broken(start, end)
        line_end = self.text.source.text.find("\n", start)
        shown = min(end, line_end if line_end >= 0 else end)
        advice = help or ADVICE.get(code, "")
        self.problems.report(code, message, start, max(shown, start + 1), help=advice)
        return nodes.Broken(start, end)

    # The pieces of the tree that is written.

    def at(self, node: ast.AST) -> Make:
        """Returns the maker of nodes that stand at the place of a Python node."""
        return Make(*self.text.span(node))


class Make:
    """Makes nodes of the tree, all at one place."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end

    def literal(self, value: Any) -> Node:
        """Returns a JSON value: a literal, or a list or object of literals."""
        if isinstance(value, list):
            return self.list([self.literal(item) for item in value])
        if isinstance(value, dict):
            return self.object({key: self.literal(item) for key, item in value.items()})
        # `.flow` has no negative literals: it writes the sign before the number
        if type(value) in (int, float) and (value < 0 or str(value)[0] == "-"):
            return nodes.Unary(self.start, self.end, "-", self.literal(-value))
        return nodes.Literal(self.start, self.end, value)

    def name(self, name: str) -> nodes.Name:
        return nodes.Name(self.start, self.end, name)

    def call(self, name: str, *args: Node) -> nodes.Call:
        return nodes.Call(self.start, self.end, name, args, self.end)

    def list(self, items: Sequence[Node]) -> nodes.ListLiteral:
        return nodes.ListLiteral(self.start, self.end, tuple(items))

    def object(self, entries: dict[str, Node]) -> nodes.ObjectLiteral:
        made = tuple(nodes.Entry(self.start, self.end, key, v) for key, v in entries.items())
        return nodes.ObjectLiteral(self.start, self.end, made)

    def member(self, target: Node, name: str) -> nodes.Member:
        return nodes.Member(self.start, self.end, target, name, self.start)

    def index(self, target: Node, i: int) -> nodes.Index:
        """Returns an element that is known to be there."""
        return nodes.Index(self.start, self.end, target, nodes.Literal(self.start, self.end, i))

    def equal(self, left: Node, right: Node) -> nodes.Binary:
        return nodes.Binary(self.start, self.end, "==", left, right, self.start)

    def negated(self, value: Node) -> nodes.Unary:
        return nodes.Unary(self.start, self.end, "!", value)

    def choose(self, condition: Node, yes: Node, no: Node) -> nodes.Conditional:
        return nodes.Conditional(self.start, self.end, condition, yes, no)

    def awaited(self, value: Node) -> nodes.Await:
        return nodes.Await(self.start, self.end, value)

    def let(self, name: str, value: Node | None) -> nodes.Let:
        return nodes.Let(self.start, self.end, False, self.name(name), value)

    def assign(self, name: str, value: Node) -> nodes.Assign:
        return nodes.Assign(self.start, self.end, self.name(name), "=", value)

    def statement(self, value: Node) -> nodes.ExpressionStatement:
        return nodes.ExpressionStatement(self.start, self.end, value)

    def throw(self, value: Node) -> nodes.Throw:
        return nodes.Throw(self.start, self.end, value)

    def block(self, *statements: Node) -> nodes.Block:
        return nodes.Block(self.start, self.end, statements)

    def leave(self, name: str) -> nodes.Leave:
        return nodes.Leave(self.start, self.end, name)

    def labelled(self, name: str, block: nodes.Block) -> nodes.Labelled:
        return nodes.Labelled(self.start, self.end, name, block)

    def when(
        self, condition: Node, then: nodes.Block, otherwise: nodes.Block | None = None
    ) -> Node:
        return nodes.If(self.start, self.end, ((condition, then),), otherwise)

    def comprehension(
        self, element: Node, name: str, source: Node, condition: Node | None = None
    ) -> nodes.Comprehension:
        return nodes.Comprehension(
            self.start, self.end, element, (self.name(name),), source, condition
        )
