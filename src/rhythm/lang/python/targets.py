"""What stands on the left of `=` and after `for`: names, patterns, and places inside a variable."""

from __future__ import annotations

import ast

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python.hints import hint_of, without_none
from rhythm.lang.python.names import MISSING, model_of
from rhythm.lang.python.translation import Make, Translation
from rhythm.record import Record


class Pattern(Record):
    """A target that takes a value apart: the names, with where each stands in the value."""

    plain: bool  # a single name: nothing is taken apart
    names: tuple[tuple[str, tuple[int, ...]], ...]
    checks: tuple[tuple[tuple[int, ...], int, int | None], ...] = ()

    def checked(self, at: Make, value: Node) -> Node:
        """Returns an expression for the value as a list, one item for each part of the pattern.

        At run time it fails as Python would, if the value has more or fewer items.
        """
        for path, before, after in self.checks:
            parts = at.literal(before), at.literal(after)
            part = at.call("py.unpack", _at_path(at, value, path), *parts)
            # Each part of a pattern inside a pattern is put back in its place.
            value = at.call("py.set", value, at.literal(list(path)), part) if path else part
        return value

    def reads(self, at: Make, whole: Node) -> dict[str, Node | None]:
        """Returns the expression for each name, given the checked value."""
        return {name: _at_path(at, whole, path) for name, path in self.names}

    def plain_name(self, at: Make, name: str) -> dict[str, Node | None]:
        """Returns the expression for each name of a loop whose hidden variable is called `name`."""
        return self.reads(at, at.name(name))


def _at_path(at: Make, whole: Node, path: tuple[int, ...]) -> Node:
    for i in path:
        whole = at.index(whole, i)
    return whole


def pattern_of(t: Translation, target: ast.AST) -> Pattern:
    """Returns a target of names as a pattern; refuses what is no name."""
    names: list[tuple[str, tuple[int, ...]]] = []
    checks: list[tuple[tuple[int, ...], int, int | None]] = []

    def walk(node: ast.AST, path: tuple[int, ...]) -> None:
        if isinstance(node, ast.Name):
            names.append((node.id, path))
        elif isinstance(node, ast.Tuple | ast.List):
            stars = [i for i, each in enumerate(node.elts) if isinstance(each, ast.Starred)]
            before = stars[0] if stars else len(node.elts)
            checks.append((path, before, len(node.elts) - before - 1 if stars else None))
            for i, each in enumerate(node.elts):
                walk(each.value if isinstance(each, ast.Starred) else each, (*path, i))
        else:
            t.refuse("P042", node, "only names can be set here", "set it in a statement of its own")

    walk(target, ())
    return Pattern(not checks, tuple(names), tuple(checks))


class VariablePlace(Record):
    """A variable, or a place inside one: `order["items"][0]`, `order.total`."""

    name: str
    path: tuple[Node, ...]

    def read(self, at: Make) -> Node:
        """Returns what is at the place now."""
        value: Node = at.name(self.name)
        for key in self.path:
            value = at.call("py.item", value, key)
        return value

    def kept(self, t: Translation, later: ast.AST) -> VariablePlace:
        """Returns the place, with keys that `later` would change saved in hidden variables."""
        changed = t.effects.changed(later)
        path = [
            t.pinned(key) if isinstance(key, nodes.Name) and key.name in changed else key
            for key in self.path
        ]
        return self.replace(path=tuple(path))

    def written(self, at: Make, value: Node) -> Node:
        """Returns the statement that puts a value there."""
        if not self.path:
            return at.assign(self.name, value)
        path = at.list(list(self.path))
        return at.assign(self.name, at.call("py.set", at.name(self.name), path, value))


def place_of(t: Translation, node: ast.AST) -> VariablePlace | None:
    """Returns the place that a target names; refuses what is in no variable.

    Keys with effects, or that cost something, are evaluated once, before.
    """
    if isinstance(node, ast.Name):
        return _variable(t, node)
    if isinstance(node, ast.Attribute):
        return _field(t, node)
    if isinstance(node, ast.Subscript):
        return _element(t, node)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "setdefault"
        and len(node.args) == 2
    ):
        return _set_first(t, node, node.func)
    t.refuse(
        "P042",
        node,
        "this is in no variable, so a change of it would be lost",
        "give it a name first, and change that",
    )
    return None


def _variable(t: Translation, node: ast.Name) -> VariablePlace | None:
    bound, stands = t.lookup(node.id)
    if bound:
        if isinstance(stands, nodes.Name):
            return VariablePlace(stands.name, ())
        t.refuse("P042", node, f"`{node.id}` is a part of another value here", "copy it first")
        return None
    if node.id in t.variables:
        return VariablePlace(node.id, ())
    found = t.around.find(node.id)
    t.refuse(
        "P020" if found is MISSING else "P025",
        node,
        f"`{node.id}` has no value"
        if found is MISSING
        else f"`{node.id}` belongs to the module: it is the same for all executions",
        "" if found is MISSING else f"copy it first: mine = {type(found).__name__}({node.id})",
    )
    return None


def _field(t: Translation, node: ast.Attribute) -> VariablePlace | None:
    hint = without_none(hint_of(t, node.value))
    model = model_of(hint)
    if model is None or node.attr not in model.fields:
        t.value(node)  # says what is wrong with it
        return None
    if model.frozen:
        help = f"make another one: {model.cls.__name__}(…)"
        t.refuse("P042", node, f"`{model.cls.__name__}` cannot be changed", help)
        return None
    owner = place_of(t, node.value)
    key = t.at(node).literal(node.attr)
    return owner and owner.replace(path=(*owner.path, key))


def _element(t: Translation, node: ast.Subscript) -> VariablePlace | None:
    if isinstance(node.slice, ast.Slice):
        t.refuse("P056", node, "a slice cannot be set or deleted here", "build a new list")
        return None
    owner = place_of(t, node.value)
    key = t.value(node.slice)
    if not isinstance(key, nodes.Literal | nodes.Name | nodes.Unary):
        key = t.pinned(key)
    return owner and owner.replace(path=(*owner.path, key))


def _set_first(t: Translation, node: ast.Call, method: ast.Attribute) -> VariablePlace | None:
    """Writes the default of `d.setdefault(key, []).append(x)`; returns the place `d[key]`."""
    owner, at = place_of(t, method.value), t.at(node)
    key, default = t.values(node.args)
    if owner is None:
        return None
    key = key if isinstance(key, nodes.Literal | nodes.Name) else t.pinned(key)
    given = at.list([key, default])
    changed = at.call("py.changed", owner.read(at), at.literal("setdefault"), given)
    t.write(owner.written(at, at.index(changed, 0)))
    return owner.replace(path=(*owner.path, key))
