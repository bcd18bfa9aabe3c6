"""Changes a syntax tree from function scopes to block scopes, with names that `.flow` allows.

In the tree of a Python workflow, variables live in the whole function, some names are hidden, and
the variable of a loop keeps its value after the loop. In `.flow` a variable lives in its block, a
name that is visible may not be declared again, and a loop has a variable of its own.
`with_block_scopes` changes the tree accordingly: it means the same, every first assignment is a
`let`, and every name can be written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Block, Node
from rhythm.lang.flow.other_languages import (
    FOREIGN_PREFIXES,
    FOREIGN_SPELLINGS,
    FOREIGN_STATEMENTS,
)
from rhythm.lang.flow.tokens import RESERVED
from rhythm.lang.flow.without_labels import without_labels
from rhythm.limits import DEFAULT_LIMITS
from rhythm.record import Record

INPUTS = "inputs"
# `_` is for what nobody reads; the others mean something at some place of a `.flow`.
TAKEN = (
    RESERVED
    | FOREIGN_STATEMENTS.keys()
    | FOREIGN_PREFIXES.keys()
    | FOREIGN_SPELLINGS.keys()
    | {INPUTS, "ctx", "py", "branch", "workflow", "not", "lambda", "_"}
)
_HIDDEN = re.compile(r"\$(.*?)_?\d*$")
# What hidden variables are called, by what the translation calls them.
_CALLED = {"t": "value", "each": "item", "inputs": "given", "group": "started_all"}


def with_block_scopes(workflow: nodes.Workflow) -> nodes.Workflow:
    """Returns the workflow with block scopes: see above.

    The inputs that it declares keep their names, which must be `writable`.
    """
    body = _reachable(without_labels(workflow.body))
    given = frozenset(each.name for each in workflow.inputs or ())
    used = _Names(given)
    body = used.renamed(body)
    body = _own_loop_variables(body, used.free, given)
    return workflow.replace(body=_Declaring(body, given).block(body))


def writable(name: str) -> bool:
    """Whether a variable of `.flow` can have this name."""
    fits = name.isascii() and name.isidentifier()
    return fits and name not in TAKEN and len(name) <= DEFAULT_LIMITS.identifier_bytes


# Names.


class _Names:
    """Gives each name of a tree one that `.flow` can have, and gives out new ones."""

    def __init__(self, given: frozenset[str]) -> None:
        self._new: dict[str, str] = {}
        self._taken: set[str] = {*TAKEN, *given}

    def renamed(self, body: Block) -> Block:
        # The author's own names first: they stay, if they can.
        found = dict.fromkeys(node.name for node in _names(body))
        self._new = {name: name for name in found if writable(name)}
        self._taken |= self._new.keys()
        made: Block = _mapped(body, self._rename)
        return made

    def _rename(self, node: Node) -> Node:
        if isinstance(node, nodes.Let) and _takes_inputs(node):
            assert isinstance(node.target, nodes.Name)
            # Here `inputs` is what the workflow is given, whatever the author calls so.
            return node.replace(target=self._rename(node.target))
        if isinstance(node, nodes.Name):
            return node.replace(name=self._name(node.name))
        return _children_mapped(node, self._rename)

    def _name(self, name: str) -> str:
        if name not in self._new:
            hidden = _HIDDEN.match(name)
            self._new[name] = self.free(_CALLED.get(hidden[1], hidden[1]) if hidden else name)
        return self._new[name]

    def free(self, wanted: str) -> str:
        """Returns a name that nothing has yet, like the one that is wanted."""
        base = _plain(wanted)
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}{number}", number + 1
        self._taken.add(name)
        return name


def _takes_inputs(node: nodes.Let) -> bool:
    return isinstance(node.target, nodes.Name) and node.target.name.startswith("$inputs")


def _plain(name: str) -> str:
    """Returns a name in ASCII that looks like this one; `name` if nothing is left of it."""
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    folded = folded[: DEFAULT_LIMITS.identifier_bytes - 10]
    return folded if folded.isidentifier() and folded != "_" else "name"


# Walking and changing trees.


def _mapped(node: Any, change: Callable[[Node], Node]) -> Any:
    """Returns the node as it is changed; of a tuple, each part."""
    if isinstance(node, tuple):
        return tuple(_mapped(part, change) for part in node)
    return change(node) if isinstance(node, Node) else node


def _children_mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    parts = {name: _mapped(value, change) for name, value in node.__dict__.items()}
    return node.replace(**parts)


def _below(node: object) -> Iterator[Node]:
    """Yields the nodes directly below a node, or in a tuple."""
    for part in node if isinstance(node, tuple) else node.__dict__.values():
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            yield from _below(part)


def _names(node: Node) -> Iterator[nodes.Name]:
    if isinstance(node, nodes.Name):
        yield node
    for part in _below(node):
        yield from _names(part)


# What is never reached is left out: `.flow` would warn of it.


def _reachable(block: Block) -> Block:
    kept: list[Node] = []
    for statement in block.statements:
        made = _children_mapped(statement, _reachable_inside)
        if not isinstance(made, nodes.Declare):
            kept.append(made)
        if _leaves(made):
            break
    return block.replace(statements=tuple(kept))


def _reachable_inside(node: Node) -> Node:
    if isinstance(node, Block):
        return _reachable(node)
    return _children_mapped(node, _reachable_inside)


def _leaves(node: Node) -> bool:
    """Whether what comes after the statement is never reached."""
    match node:
        case nodes.Return() | nodes.Throw() | nodes.Break() | nodes.Continue():
            return True
        case nodes.If(arms=arms, otherwise=otherwise):
            return otherwise is not None and all(map(_ends, [b for _, b in arms] + [otherwise]))
        case nodes.Try(body=body, handler=handler, cleanup=cleanup):
            tried = _ends(body) and (handler is None or _ends(handler))
            return tried or (cleanup is not None and _ends(cleanup))
        case nodes.Forever(body=body):
            return not _breaks(body)
    return False


def _ends(block: Block) -> bool:
    return any(_leaves(statement) for statement in block.statements)


def _breaks(node: Node) -> bool:
    """Whether a `break` leaves the loop whose body this is."""
    if isinstance(node, nodes.Break):
        return True
    loop = isinstance(node, nodes.For | nodes.While | nodes.Forever)
    return not loop and any(_breaks(part) for part in _below(node))


# Loops.


def _own_loop_variables(body: Block, free: Callable[[str], str], given: frozenset[str]) -> Block:
    """Returns the tree with loop variables that are used in their loops only.

    A variable that is also used elsewhere is set in the loop, from one that is the loop's own.
    """
    loops = [node for node in _all(body) if isinstance(node, nodes.For)]
    bound = {name.name for loop in loops for name in loop.names}
    shared = {name for name in bound if name in given or _is_used_elsewhere(body, name)}

    def change(node: Node) -> Node:
        made = _children_mapped(node, change)
        if not isinstance(made, nodes.For):
            return made
        for name in made.names:
            made = _set_inside(made, name, free) if name.name in shared else made
        return made

    changed = change(body)
    assert isinstance(changed, Block)
    return changed


def _all(node: Node) -> Iterator[Node]:
    yield node
    for part in _below(node):
        yield from _all(part)


def _is_used_elsewhere(node: Node, name: str, inside: bool = False) -> bool:
    """Whether a name is used outside of the loops that bind it, or is bound in one of them."""
    if isinstance(node, nodes.Name):
        return node.name == name and not inside
    if isinstance(node, nodes.For) and name in [each.name for each in node.names]:
        return (
            inside
            or _is_used_elsewhere(node.source, name, inside)
            or _is_used_elsewhere(node.body, name, True)
        )
    return any(_is_used_elsewhere(part, name, inside) for part in _below(node))


def _set_inside(loop: nodes.For, name: nodes.Name, free: Callable[[str], str]) -> nodes.For:
    own = name.replace(name=free(f"next_{name.name}"))
    take = nodes.Assign(loop.start, loop.end, name, "=", own)
    return loop.replace(
        names=tuple(own if each == name else each for each in loop.names),
        body=loop.body.replace(statements=(take, *loop.body.statements)),
    )


# Declarations.


class _Use(Record):
    """A place where a variable is used: the blocks around it, each with the statement in it."""

    path: tuple[tuple[int, int], ...]  # the identity of a block, the number of the statement
    sets: bool  # the statement sets the variable, and does not read it


class _Declaring:
    """Finds for each variable where it is declared: in the innermost block that has all its uses.

    If its first use there sets it, that is the declaration. Otherwise it is declared as null
    before, outside of all loops: a variable keeps its value from one round to the next.
    """

    def __init__(self, body: Block, given: frozenset[str]) -> None:
        self.uses: dict[str, list[_Use]] = {}
        self.bound: set[str] = {INPUTS, *given}
        self.loops: set[int] = set()  # the identities of blocks that are bodies of loops
        self.first: set[tuple[int, int, str]] = set()  # where a variable is set first
        self.before: dict[tuple[int, int], list[str]] = {}  # what is declared before a statement
        self._walk(body, ())
        for name, uses in self.uses.items():
            if name not in self.bound:
                self._place(name, uses)

    def _walk(self, block: Block, path: tuple[tuple[int, int], ...]) -> None:
        for i, statement in enumerate(block.statements):
            here = (*path, (id(block), i))
            if isinstance(statement, nodes.Let | nodes.Assign) and _sets(statement):
                self._use(statement.target, here, True)
                self._inside(statement.value, here)
            else:
                self._inside(statement, here)

    def _inside(self, node: Node | None, path: tuple[tuple[int, int], ...]) -> None:
        if isinstance(node, Block):
            self._walk(node, path)
        elif isinstance(node, nodes.Name):
            self._use(node, path, False)
        elif node is not None:
            self._note_bound(node)
            for part in _below(node):
                self._inside(part, path)

    def _note_bound(self, node: Node) -> None:
        if isinstance(node, nodes.For | nodes.Comprehension):
            self.bound |= {name.name for name in node.names}
        if isinstance(node, nodes.For | nodes.While | nodes.Forever):
            self.loops.add(id(node.body))
        if isinstance(node, nodes.Try) and node.error:
            self.bound.add(node.error.name)

    def _use(self, name: Node, path: tuple[tuple[int, int], ...], sets: bool) -> None:
        assert isinstance(name, nodes.Name)
        self.uses.setdefault(name.name, []).append(_Use(path, sets))

    def _place(self, name: str, uses: list[_Use]) -> None:
        paths = [use.path for use in uses]
        depth = _shared_depth(paths)
        block = paths[0][depth][0]
        first = min(path[depth][1] for path in paths)
        there = [use for use in uses if use.path[depth][1] == first]
        if all(use.sets and len(use.path) == depth + 1 for use in there):
            self.first.add((block, first, name))
            return
        outer = next((d for d in range(depth + 1) if paths[0][d][0] in self.loops), None)
        where = (block, first) if outer is None else paths[0][outer - 1]
        self.before.setdefault(where, []).append(name)

    def block(self, block: Block) -> Block:
        """Returns a block, and those in it, with the declarations."""
        statements: list[Node] = []
        for i, statement in enumerate(block.statements):
            at = statement.start, statement.end
            statements += [
                nodes.Let(*at, False, nodes.Name(*at, name), None)
                for name in self.before.get((id(block), i), ())
            ]
            if isinstance(statement, nodes.Let | nodes.Assign) and _sets(statement):
                statements.append(self._set(statement, (id(block), i)))
            else:
                statements.append(_children_mapped(statement, self._inner))
        return block.replace(statements=tuple(statements))

    def _inner(self, node: Node) -> Node:
        return self.block(node) if isinstance(node, Block) else _children_mapped(node, self._inner)

    def _set(self, node: nodes.Let | nodes.Assign, at: tuple[int, int]) -> Node:
        assert isinstance(node.target, nodes.Name)
        place = node.start, node.end
        if (*at, node.target.name) in self.first:
            return nodes.Let(*place, False, node.target, node.value)
        value = node.value or nodes.Literal(*place, None)
        return nodes.Assign(*place, node.target, "=", value)


def _sets(node: nodes.Let | nodes.Assign) -> bool:
    """Whether a statement is `name = value`, not a pattern or a place inside a variable."""
    return isinstance(node.target, nodes.Name) and (isinstance(node, nodes.Let) or node.op == "=")


def _shared_depth(paths: list[tuple[tuple[int, int], ...]]) -> int:
    """Returns how deep the innermost block is that all paths go through."""
    depth = 0
    while all(len(path) > depth + 1 for path in paths) and all(
        path[depth] == paths[0][depth] and path[depth + 1][0] == paths[0][depth + 1][0]
        for path in paths
    ):
        depth += 1
    return depth
