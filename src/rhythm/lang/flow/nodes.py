"""The syntax tree of `.flow`: what was written, with the place of each piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rhythm.record import Record


class Node(Record):
    """One piece of the source, from offset `start` to offset `end`."""

    start: int
    end: int


def children(node: Node) -> Iterator[Node]:
    """Yields the nodes directly below a node, in the order of its fields."""
    for field in node.__dict__.values():
        yield from _nodes_in(field)


def _nodes_in(field: Any) -> Iterator[Node]:
    if isinstance(field, Node):
        yield field
    elif isinstance(field, tuple):
        for item in field:
            yield from _nodes_in(item)


def walk(node: Node) -> Iterator[Node]:
    """Yields a node and all nodes below it."""
    yield node
    for inner in children(node):
        yield from walk(inner)


# expressions


class Literal(Node):
    value: Any


class Name(Node):
    name: str


class Template(Node):
    parts: tuple[Node, ...]


class Spread(Node):
    value: Node


class ListLiteral(Node):
    items: tuple[Node, ...]


class Entry(Node):
    """`key: value`. In the shorthand (`{ a }`, `{ a.b }`) the value is the path itself."""

    key: str
    value: Node
    shorthand: bool = False


class ObjectLiteral(Node):
    entries: tuple[Node, ...]  # Entry or Spread


class Comprehension(Node):
    """`[element for names in source if condition]`"""

    element: Node
    names: tuple[Name, ...]
    source: Node
    condition: Node | None


class Unary(Node):
    op: str
    value: Node


class Binary(Node):
    op: str
    left: Node
    right: Node
    op_start: int


class Logic(Node):
    op: str
    left: Node
    right: Node


class Conditional(Node):
    """`condition ? yes : no`"""

    condition: Node
    yes: Node
    no: Node


class Member(Node):
    """`target.name`, or `target?.name` if optional."""

    target: Node
    name: str
    name_start: int
    optional: bool = False


class Index(Node):
    """`target[index]`, or `target?.[index]` if optional."""

    target: Node
    index: Node
    optional: bool = False


class Call(Node):
    """A name, or one of the accepted dotted names, with arguments."""

    name: str
    args: tuple[Node, ...]
    name_end: int


class Await(Node):
    value: Node


class BranchBlock(Node):
    """`branch { … }`"""

    body: Block


class Broken(Node):
    """Stands for code that was reported already, so that it is not reported again."""


# statements


class Block(Node):
    statements: tuple[Node, ...]


class ListPattern(Node):
    names: tuple[Name, ...]


class Field(Node):
    """`key`, `key: name` or `key = default` in an object pattern."""

    key: str
    name: Name
    default: Node | None


class ObjectPattern(Node):
    fields: tuple[Field, ...]


class Let(Node):
    constant: bool
    target: Node  # Name, ListPattern or ObjectPattern
    value: Node | None


class Assign(Node):
    """`target op value`"""

    target: Node  # Name, Member, Index or ListPattern
    op: str  # "=" or "+=", "-=", …
    value: Node


class ExpressionStatement(Node):
    value: Node


class If(Node):
    arms: tuple[tuple[Node, Block], ...]  # condition and block of `if` and of each `else if`
    otherwise: Block | None


class For(Node):
    names: tuple[Name, ...]
    source: Node
    body: Block


class While(Node):
    condition: Node
    body: Block


class Forever(Node):
    """A loop that only `break` ends. Python workflows have it; `.flow` writes `while (true)`."""

    body: Block


class Labelled(Node):
    """A block that `Leave` ends from anywhere inside. Python workflows have it, for `else`."""

    name: str
    body: Block


class Leave(Node):
    """Goes on after the labelled block of this name."""

    name: str


class Declare(Node):
    """Variables of the whole block that have no value yet. Python workflows have them."""

    names: tuple[str, ...]


class Break(Node):
    pass


class Continue(Node):
    pass


class Return(Node):
    value: Node | None


class Throw(Node):
    value: Node


class Try(Node):
    body: Block
    error: Name | None
    handler: Block | None
    cleanup: Block | None


# a file


class Annotation(Node):
    name: str
    args: tuple[Node, ...]


class Parameter(Node):
    """An input that a header declares: its JSON Schema, and whether it must be given."""

    name: str
    schema: dict[str, Any]
    required: bool


class Workflow(Node):
    """One workflow of a file.

    `script` is true for a file without a header, in which operations are awaited without `await`.
    `inputs` are the declared ones, each a variable of the body; None if none are declared, and
    anything may be given.
    """

    name: str
    script: bool
    params: tuple[str, ...]
    annotations: tuple[Annotation, ...]
    body: Block
    inputs: tuple[Parameter, ...] | None = None


class File(Node):
    workflows: tuple[Workflow, ...]
