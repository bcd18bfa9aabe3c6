"""What is known of the types of expressions, from hints: enough to use models by attribute.

Nothing is proved here. A hint says which attributes there are, whether a text is a time, and
whether a value is an exception; where no hint says it, nothing is assumed.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import types
from collections import abc
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from rhythm.lang.python.names import MISSING, callee_of, key_of, model_of, operation_of
from rhythm.lang.python.translation import Translation

_LISTS = (list, tuple, abc.Sequence, abc.Iterable, abc.Collection)
_DICTS = (dict, abc.Mapping)
_NOW = frozenset({"datetime.datetime.now", "datetime.datetime.utcnow"})


def hint_of(t: Translation, node: ast.AST | None) -> Any:
    """Returns the hint of an expression, or None if nothing is known."""
    hint = _hint_of(t, node)
    # An author may write anything as a hint; what cannot be hashed is no type.
    return hint if isinstance(hint, Hashable) and _is_hashable(hint) else None


def _is_hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


def _hint_of(t: Translation, node: ast.AST | None) -> Any:
    match node:
        case ast.Name(id=name):
            return _of_name(t, name)
        case ast.Await(value=value):
            return _awaited(t, value)
        case ast.Attribute(value=value, attr=attr):
            return field_hint(hint_of(t, value), attr)
        case ast.Subscript(value=value, slice=key):
            return _element(t, hint_of(t, value), key)
        case ast.IfExp(body=body, orelse=other):
            return _same(hint_of(t, body), hint_of(t, other))
        case ast.BoolOp(values=[first, *_]):
            return without_none(hint_of(t, first))
        case ast.NamedExpr(value=value):
            return hint_of(t, value)
        case ast.Call():
            return _of_call(t, node)
        case ast.BinOp():
            return _of_binary(t, node)
        case ast.List(elts=[first, *_]):
            inner = hint_of(t, first)
            return list[inner] if inner is not None else list  # type: ignore[valid-type]
        case ast.ListComp(elt=element, generators=generators):
            return _of_comprehension(t, element, generators)
        case ast.List() | ast.Tuple():
            return list
        case ast.DictComp(value=value, generators=generators):
            inner = element_hint(_of_comprehension(t, value, generators))
            return dict[str, inner] if inner is not None else dict  # type: ignore[valid-type]
        case ast.Dict():
            return dict
        case ast.JoinedStr():
            return str
        case ast.Constant(value=value):
            return type(value)
    return None


def _of_name(t: Translation, name: str) -> Any:
    for scope in reversed(t.inner_hints):
        if name in scope:
            return scope[name]
    return t.hints.get(name)


def _awaited(t: Translation, node: ast.AST) -> Any:
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "run":
        callee = callee_of(t.outside(function.value))
        if callee is not None:
            return _result(callee.result)
    found = t.outside(function)
    if callee := callee_of(found):
        return _result(callee.result)
    operation = operation_of(found)
    if operation == "wait_for" and node.args:
        return _awaited(t, node.args[0])
    if operation in ("all", "gather") and len(node.args) == 1:
        first = node.args[0]
        return _gathered(t, first.value if isinstance(first, ast.Starred) else first)
    return None


def _gathered(t: Translation, items: ast.AST) -> Any:
    if isinstance(items, ast.ListComp | ast.GeneratorExp):
        with_names = ast.ListComp(ast.Await(items.elt), items.generators)
        return hint_of(t, with_names)
    return None


def _result(hint: Any) -> Any:
    """Returns the hint of what a task gives: of a coroutine, what it returns."""
    return None if hint is Any else hint


def _of_call(t: Translation, node: ast.Call) -> Any:
    found = t.outside(node.func)
    name = node.func.id if isinstance(node.func, ast.Name) and node.args else ""
    if name in ("sorted", "list", "reversed"):
        inner = iterated(t, node.args[0])
        return list[inner] if inner is not None else list  # type: ignore[valid-type]
    if name in ("min", "max"):
        return iterated(t, node.args[0]) if len(node.args) == 1 else hint_of(t, node.args[0])
    if isinstance(found, type) and found is not MISSING:
        return found
    if found is dataclasses.replace and node.args:
        return hint_of(t, node.args[0])
    key = key_of(found) if found is not MISSING else ""
    if key in _NOW or key == "datetime.datetime.fromisoformat":
        return datetime
    if isinstance(node.func, ast.Attribute) and found is MISSING:
        owner = hint_of(t, node.func.value)
        if node.func.attr == "get" and node.args:
            return _element(t, owner, node.args[0])
        if node.func.attr in ("copy", "pop") and is_list(owner):
            return owner if node.func.attr == "copy" else element_hint(owner)
        if node.func.attr == "total_seconds":
            return float
    return None


def _of_binary(t: Translation, node: ast.BinOp) -> Any:
    left, right = hint_of(t, node.left), hint_of(t, node.right)
    if left is datetime and isinstance(node.op, ast.Sub) and right is datetime:
        return timedelta
    if datetime in (left, right) and timedelta in (left, right):
        return datetime
    if left is timedelta or right is timedelta:
        return timedelta
    return left if left is not None and left == right and left in (str, list) else None


def _of_comprehension(t: Translation, element: ast.AST, generators: Any) -> Any:
    for generator in generators:
        t.inner_hints.append(target_hints(generator.target, iterated(t, generator.iter)))
    inner = hint_of(t, element)
    del t.inner_hints[len(t.inner_hints) - len(generators) :]
    return list[inner] if inner is not None else list  # type: ignore[valid-type]


def target_hints(target: ast.AST, hint: Any) -> dict[str, Any]:
    """Returns the hints of the variables that a loop or assignment sets from a value."""
    if isinstance(target, ast.Name):
        return {target.id: hint}
    if isinstance(target, ast.Tuple | ast.List):
        parts = get_args(hint) if get_origin(hint) is tuple else ()
        known = parts if len(parts) == len(target.elts) and Ellipsis not in parts else None
        found: dict[str, Any] = {}
        for i, each in enumerate(target.elts):
            found |= target_hints(each, known[i] if known else None)
        return found
    return {}


def iterated(t: Translation, node: ast.AST) -> Any:
    """Returns the hint of what a loop over an expression gives."""
    found = t.outside(node)
    if isinstance(found, type) and issubclass(found, enum.Enum):
        return found
    if isinstance(node, ast.GeneratorExp):
        return element_hint(_of_comprehension(t, node.elt, node.generators))
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "enumerate" and node.args:
            return _pair(int, iterated(t, node.args[0]))
        if name == "zip":
            return tuple[tuple(iterated(t, arg) or Any for arg in node.args)]  # type: ignore[misc]
        if name == "range":
            return int
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values"):
            value = value_hint(hint_of(t, node.func.value))
            return _pair(str, value) if node.func.attr == "items" else value
    return element_hint(hint_of(t, node))


def _pair(first: Any, second: Any) -> Any:
    parts = (first, second if second is not None else Any)
    return tuple[parts]  # type: ignore[valid-type]  # made when it is known


def element_hint(hint: Any) -> Any:
    """Returns the hint of the elements of a list, or of the keys of a dict."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in _LISTS and args:
        return None if args[0] is Any else args[0]
    return str if hint is str or origin in _DICTS else None


def value_hint(hint: Any) -> Any:
    """Returns the hint of the values of a dict."""
    args = get_args(hint)
    return args[1] if get_origin(hint) in _DICTS and len(args) == 2 and args[1] is not Any else None


def is_list(hint: Any) -> bool:
    """Whether the hint is of a list."""
    return hint is list or get_origin(hint) in _LISTS


def _element(t: Translation, hint: Any, key: ast.AST) -> Any:
    hint = without_none(hint)
    if is_typeddict(hint):
        fields = _fields(hint)
        return fields.get(str(key.value)) if isinstance(key, ast.Constant) else None
    if isinstance(key, ast.Slice):
        return hint
    return value_hint(hint) if get_origin(hint) in _DICTS else element_hint(hint)


def _fields(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except Exception:  # a hint that cannot be evaluated says nothing
        return {}


def field_hint(hint: Any, name: str) -> Any:
    """Returns the hint of an attribute of a model."""
    model = model_of(without_none(hint))
    found = model.fields.get(name) if model else None
    return None if found is Any else found


def without_none(hint: Any) -> Any:
    """Returns X of `X | None`, and anything else as it is."""
    if isinstance(hint, types.UnionType) or get_origin(hint) is Union:
        rest = [part for part in get_args(hint) if part is not type(None)]
        return rest[0] if len(rest) == 1 else hint
    return hint


def enum_of(t: Translation, node: ast.AST) -> type[enum.Enum] | None:
    """Returns the enumeration of which an expression is a member, if it is known to be one."""
    found = t.outside(node)
    hint = type(found) if isinstance(found, enum.Enum) else without_none(hint_of(t, node))
    return hint if isinstance(hint, type) and issubclass(hint, enum.Enum) else None


def is_value(cls: type[enum.Enum]) -> bool:
    """Whether a member of the enumeration equals its value, as that of a StrEnum or IntEnum."""
    return issubclass(cls, str | int | float)


def is_tuple(t: Translation, node: ast.AST) -> bool:
    """Whether an expression is a tuple in Python, which is kept as a list."""
    hint = without_none(hint_of(t, node))
    return isinstance(node, ast.Tuple) or tuple in (hint, get_origin(hint))


def named_tuple(hint: Any) -> tuple[str, ...] | None:
    """Returns the fields of a NamedTuple, in order; None for any other hint."""
    model = model_of(without_none(hint))
    return tuple(model.fields) if model and issubclass(model.cls, tuple) else None


def holds_nothing(hint: Any) -> bool:
    """Whether the hint is of a value that is no list or dict: nobody can change it in place."""
    hint = without_none(hint)
    plain = (str, int, float, bool, datetime, timedelta, type(None))
    return hint in plain or is_enum(hint) if _is_hashable(hint) else False


def is_enum(hint: Any) -> bool:
    """Whether the hint is an enumeration: kept as the value of its member."""
    hint = without_none(hint)
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _same(one: Any, other: Any) -> Any:
    return one if one == other else None
