"""Python's own functions, and those of `math`, `json`, `random` and others that are known."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python import comprehensions
from rhythm.lang.python.arguments import given_arguments, listed, listed_pairs
from rhythm.lang.python.construction import replaced
from rhythm.lang.python.effects import METHODS
from rhythm.lang.python.exceptions import class_names
from rhythm.lang.python.hints import hint_of, is_tuple, iterated
from rhythm.lang.python.kept import as_lists, shown, shows_a_tuple
from rhythm.lang.python.names import key_of
from rhythm.lang.python.times import duration, from_text, now
from rhythm.lang.python.translation import Translation

Given = Callable[[Translation, ast.Call], Node]


def _simple(name: str, least: int, most: int, named: str = "") -> Given:
    """Returns the translation of a function as the builtin `name` with the same arguments."""

    def made(t: Translation, node: ast.Call) -> Node:
        args = given_arguments(t, node, least, most, named.split())
        at = t.at(node)
        if args is None:
            return nodes.Broken(at.start, at.end)
        while args and args[-1] is None:
            args.pop()
        return at.call(name, *(at.literal(None) if arg is None else arg for arg in args))

    return made


def _str(t: Translation, node: ast.Call) -> Node:
    if not node.args and not node.keywords:
        return t.at(node).literal("")
    args = given_arguments(t, node, 1, 1)
    if args is None or args[0] is None or shows_a_tuple(t, node.args[0]):
        return t.at(node).literal("")
    return t.at(node).call("py.str", shown(t, node.args[0], args[0]))


COMPARING = frozenset({"builtins.min", "builtins.max", "builtins.sorted"})
COMPUTING = COMPARING | {f"builtins.{name}" for name in "sum abs round int divmod pow".split()}


def _bool(t: Translation, node: ast.Call) -> Node:
    args = given_arguments(t, node, 0, 1)
    at = t.at(node)
    return at.call("py.truth", args[0]) if args and args[0] else at.literal(False)


def _number(name: str, empty: Any) -> Given:
    def made(t: Translation, node: ast.Call) -> Node:
        if not node.args and not node.keywords:
            return t.at(node).literal(empty)
        return _simple(f"py.{name}", 1, 2 if name == "int" else 1, "base" if name == "int" else "")(
            t, node
        )

    return made


def _dict(t: Translation, node: ast.Call) -> Node:
    at = t.at(node)
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    if len(node.args) > 1 or any(keyword.arg is None for keyword in node.keywords):
        return t.refuse("P033", node, "`dict` takes one value, and names here")
    made = t.values([listed_pairs(t, part) if part in node.args else part for part in parts])
    named = dict(zip([str(k.arg) for k in node.keywords], made[len(node.args) :], strict=True))
    if not node.args:
        return at.object(named)
    first = at.call("py.dict", made[0])
    return at.call("py.bitor", first, at.object(named)) if named else first


def _zip(t: Translation, node: ast.Call) -> Node:
    at = t.at(node)
    strict = [k.value for k in node.keywords if k.arg == "strict"]
    if len(strict) < len(node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        return t.refuse("P033", node, "`zip` takes lists, and strict=")
    made = t.values([listed(t, part) for part in [*node.args, *strict]])
    asked = at.call("py.truth", made.pop()) if strict else at.literal(False)
    return at.call("py.zip", asked, *made)


def _sorted(t: Translation, node: ast.Call) -> Node:
    at = t.at(node)
    if len(node.args) != 1:
        return t.refuse("P033", node, "`sorted` takes one value, key= and reverse=")
    source = at.call("py.iter", t.value(listed(t, node.args[0])))
    made = _ordered(t, node, source, node.keywords, iterated(t, node.args[0]))
    return made or nodes.Broken(at.start, at.end)


def _ordered(
    t: Translation, node: ast.Call, source: Node, keywords: Sequence[ast.keyword], hint: Any
) -> Node | None:
    """Returns the sorted list; `hint` is that of its elements."""
    at = t.at(node)
    given = {keyword.arg: keyword.value for keyword in keywords}
    if odd := given.keys() - {"key", "reverse"}:
        t.refuse("P033", node, f"there is no argument `{sorted(map(str, odd))[0]}`")
        return None
    reverse = t.value(given["reverse"]) if "reverse" in given else None
    keys = sort_keys(t, node, source, given.get("key"), hint) if "key" in given else (source, None)
    if keys is None:
        return None
    more = [keys[1]] if keys[1] is not None else []
    return at.call("py.sorted", keys[0], reverse or at.literal(False), *more)


def sort_keys(
    t: Translation, node: ast.AST, source: Node, key: ast.expr | None, hint: Any
) -> tuple[Node, Node | None] | None:
    """Returns the list, and the list of the keys by which it is sorted."""
    if key is None or (isinstance(key, ast.Constant) and key.value is None):
        return source, None
    function = _one_argument(t, key)
    if function is None:
        t.refuse(
            "P011",
            key,
            "the key of a sort is a lambda of one argument, or str, len, abs …",
            'write key=lambda item: item["name"]',
        )
        return None
    if not isinstance(source, nodes.Name) and not t.pure:
        source = t.pinned(source)
    t.inner_hints.append({function[0].arg: hint})
    keys = comprehensions.each(t, *function, source, node)
    t.inner_hints.pop()
    return source, keys


def _one_argument(t: Translation, key: ast.expr) -> tuple[ast.arg, ast.expr] | None:
    if isinstance(key, ast.Lambda):
        args = key.args
        one = len(args.args) == 1 and not (args.vararg or args.kwarg or args.kwonlyargs)
        return (args.args[0], as_lists(key.body)) if one and not t.effects.has(key.body) else None
    found = t.outside(key)
    name = ast.copy_location(ast.Name("item", ast.Load()), key)
    function: ast.expr = key
    if isinstance(key, ast.Attribute) and t.outside(key.value) is str and key.attr in METHODS:
        function = ast.copy_location(ast.Attribute(name, key.attr, ast.Load()), key)
    elif key_of(found) not in FUNCTIONS and not isinstance(found, types.FunctionType):
        return None
    body = ast.copy_location(ast.Call(function, [] if function is not key else [name], []), key)
    return ast.copy_location(ast.arg("item"), key), body


def _extreme(name: str) -> Given:
    def made(t: Translation, node: ast.Call) -> Node:
        at = t.at(node)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if (
            not node.args
            or given.keys() - {"key", "default"}
            or (len(node.args) > 1 and "default" in given)
        ):
            return t.refuse("P033", node, f"`{name}` takes values, key= and default=")
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return t.refuse("P033", node, f"`{name}` takes no `*` here", f"write {name}(values)")
        values = t.values([listed(t, arg) for arg in node.args])
        source = at.call("py.iter", values[0]) if len(values) == 1 else at.list(values)
        default = [t.value(given["default"])] if "default" in given else []
        hint = iterated(t, node.args[0]) if len(values) == 1 else hint_of(t, node.args[0])
        keys = sort_keys(t, node, source, given.get("key"), hint)
        if keys is None:
            return nodes.Broken(at.start, at.end)
        more = [keys[1]] if keys[1] is not None else []
        return at.call(f"py.{name}", keys[0], at.list(default), *more)

    return made


def _decided(name: str) -> Given:
    def made(t: Translation, node: ast.Call) -> Node:
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            return comprehensions.loop_until(t, node, node.args[0], name == "any")
        return _simple(f"py.{name}", 1, 1)(t, node)

    return made


def _isinstance(t: Translation, node: ast.Call) -> Node:
    if len(node.args) != 2 or node.keywords:
        return t.refuse("P033", node, "`isinstance` takes a value and a type")
    names, at = _type_names(t, node.args[1]), t.at(node)
    if isinstance(node.args[0], ast.Name) and node.args[0].id in t.errors:
        classes = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        asked = at.literal(class_names(t, classes))
        return at.call("py.matches", t.value(node.args[0]), asked)
    if names is not None and is_tuple(t, node.args[0]):
        return t.refuse("P052", node, "a tuple is kept as a list, and would be taken for one")
    if names is None:
        return t.refuse(
            "P063",
            node.args[1],
            "only the types of JSON can be told apart: str, int, float, bool, list, dict",
            "look at a field of the value instead",
        )
    return at.call("py.isinstance", t.value(node.args[0]), at.literal(names))


def _type_names(t: Translation, node: ast.AST) -> list[str] | None:
    if isinstance(node, ast.Tuple):
        parts = [_type_names(t, part) for part in node.elts]
        return None if None in parts else [name for part in parts for name in part or ()]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [_type_names(t, node.left), _type_names(t, node.right)]
        return None if None in sides else [name for side in sides for name in side or ()]
    if isinstance(node, ast.Constant) and node.value is None:
        return ["NoneType"]
    found = t.outside(node)
    known = (str, int, float, bool, list, dict, type(None))
    return [found.__name__] if found in known else None


def math_function(t: Translation, node: ast.Call, name: str) -> Node:
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        return t.refuse("P033", node, f"`math.{name}` takes values here")
    at = t.at(node)
    return at.call("py.math", at.literal(name), at.list(t.values(node.args)))


MATH = frozenset(
    "floor ceil trunc sqrt log log2 log10 exp pow fabs fsum gcd isclose hypot degrees radians "
    "sin cos tan factorial comb perm".split()
)
FUNCTIONS: dict[str, Given] = {
    "builtins.len": _simple("py.len", 1, 1),
    "builtins.range": _simple("py.range", 1, 3),
    "builtins.enumerate": _simple("py.enumerate", 1, 2, "start"),
    "builtins.zip": _zip,
    "builtins.reversed": _simple("py.reversed", 1, 1),
    "builtins.sorted": _sorted,
    "builtins.min": _extreme("min"),
    "builtins.max": _extreme("max"),
    "builtins.sum": _simple("py.sum", 1, 2, "start"),
    "builtins.any": _decided("any"),
    "builtins.all": _decided("all"),
    "builtins.abs": _simple("py.abs", 1, 1),
    "builtins.round": _simple("py.round", 1, 2, "ndigits"),
    "builtins.divmod": _simple("py.divmod", 2, 2),
    "builtins.pow": _simple("py.pow", 2, 2),
    "builtins.str": _str,
    "builtins.repr": _simple("py.repr", 1, 1),
    "builtins.format": _simple("py.format", 2, 2),
    "builtins.int": _number("int", 0),
    "builtins.float": _number("float", 0.0),
    "builtins.bool": _bool,
    "builtins.list": _simple("py.list", 0, 1),
    "builtins.dict": _dict,
    "builtins.isinstance": _isinstance,
    "json.dumps": _simple("py.dumps", 1, 3, "sort_keys indent"),
    "json.loads": _simple("py.loads", 1, 1),
    "time.time": _simple("py.time", 0, 0),
    "uuid.uuid4": _simple("uuid", 0, 0),
    "random.Random.random": _simple("random", 0, 0),
    "random.Random.randint": _simple("py.randint", 2, 2),
    "random.Random.uniform": _simple("py.uniform", 2, 2),
    "random.Random.choice": _simple("py.choice", 1, 1),
    "random.Random.sample": _simple("py.sample", 2, 2, "k"),
    "datetime.datetime.now": now,
    "datetime.datetime.utcnow": now,
    "datetime.datetime.fromisoformat": from_text,
    "dataclasses.replace": replaced,
    "datetime.timedelta": duration,
}
