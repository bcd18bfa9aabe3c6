"""What is certain of the types in a function: the shape of each variable and expression.

A variable has the shapes of everything that is ever assigned to it; if one of these is not known,
neither is the variable. What is changed in place keeps only its outer type, and what the author
asks for with `isinstance` is not known. So whatever does not fit a shape is wrong for certain, as
far as hints are true.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rhythm.lang.hint_shapes import PLAIN, parameter_shape, shape_of
from rhythm.lang.python.awaits import called
from rhythm.lang.python.effects import CHANGING
from rhythm.lang.python.names import MISSING, callee_of, json_of, key_of, model_of, operation_of
from rhythm.lang.python.translation import Translation
from rhythm.lang.shapes import (
    LIST,
    NULL,
    OBJECT,
    TEXT,
    Kind,
    ValueShape,
    either,
    loose,
    of_object,
    of_value,
)

ROUNDS = 20  # until what variables get from each other has settled
NOTHING = ValueShape(())  # of a value that no way leads to, so far
INT, FLOAT, STR, BOOL = PLAIN[int], PLAIN[float], PLAIN[str], PLAIN[bool]
# Python itself says what can be added or compared: a value of each type is tried.
SAMPLES: dict[type, Any] = {
    bool: True, int: 1, float: 1.5, str: "a", list: [1], dict: {"a": 1}, type(None): None,
}  # fmt: skip
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
OF_TEXT: dict[str, ValueShape] = {
    **dict.fromkeys(
        "upper lower strip lstrip rstrip join replace title capitalize swapcase casefold center "
        "ljust rjust zfill removeprefix removesuffix expandtabs".split(),
        STR,
    ),
    **dict.fromkeys("split rsplit splitlines".split(), ValueShape((Kind(LIST, list, items=STR),))),
    **dict.fromkeys("startswith endswith isdigit isalpha isalnum isspace".split(), BOOL),
    **dict.fromkeys("find rfind index rindex count".split(), INT),
}
OF_FUNCTION: dict[str, ValueShape] = {
    "len": INT, "str": STR, "repr": STR, "int": INT, "float": FLOAT, "bool": BOOL,
    "isinstance": BOOL, "any": BOOL, "all": BOOL,
    "range": ValueShape((Kind(LIST, list, items=INT),)), "dict": ValueShape((Kind(OBJECT, dict),)),
}  # fmt: skip
Source = Callable[[], "ValueShape | None"]


class Inference:
    """The shapes of the variables of a function, and of any expression in it."""

    def __init__(self, t: Translation, tree: ast.AsyncFunctionDef, function: Any) -> None:
        self.t = t
        self.scopes: list[dict[str, ValueShape | None]] = []  # of comprehensions and lambdas
        self.sources: dict[str, list[Source]] = {}
        self.assigned: dict[str, list[ast.expr]] = {}  # what is written on the right of `x =`
        self._hints = dict(t.annotations)
        for p in inspect.signature(function).parameters.values():
            shape = parameter_shape(p, self._hints)
            self.sources[p.name] = [lambda shape=shape: shape]  # type: ignore[misc]  # bound now
        self._changed = set(_changed_names(tree))
        for node in ast.walk(tree):
            self._collect(node)
        self.known: dict[str, ValueShape | None] = dict.fromkeys(self.sources, NOTHING)
        self.known |= dict.fromkeys(_asked_names(tree))
        self._settle()

    def _settle(self) -> None:
        for _ in range(ROUNDS):
            before = dict(self.known)
            for name, sources in self.sources.items():
                if self.known[name] is not None:
                    found = either(source() for source in sources)
                    self.known[name] = loose(found) if name in self._changed else found
            if self.known == before:
                return
        self.known = dict.fromkeys(self.known)

    # Where variables get their values.

    def _collect(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, lambda: self.of(value))
                    if isinstance(target, ast.Name):
                        self.assigned.setdefault(target.id, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name)):
                shape = shape_of(self._hints.get(name, Any))
                self._bind(node.target, lambda: shape)
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                self._bind(target, lambda: self._operated(op, self.of(target), self.of(value)))
            case ast.For(target=target, iter=source):
                self._bind(target, lambda: element(self.of(source)))
            case ast.AsyncFor(target=target):
                self._bind(target, _unknown)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, lambda: self.of(value))
            case ast.withitem(optional_vars=ast.expr() as target):
                self._bind(target, _unknown)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                self.sources.setdefault(name, []).append(_unknown)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self.sources.setdefault(name, []).append(_unknown)

    def _bind(self, target: ast.AST, source: Source) -> None:
        if isinstance(target, ast.Name):
            self.sources.setdefault(target.id, []).append(source)
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(each, ast.Starred) for each in target.elts)
            for i, each in enumerate(target.elts):
                inner = each.value if isinstance(each, ast.Starred) else each
                self._bind(inner, _unknown if starred else lambda i=i: part(source(), i))  # type: ignore[misc]  # bound now

    # What an expression gives.

    def of(self, node: ast.AST | None) -> ValueShape | None:
        """Returns the shape of an expression, or None if it is not known."""
        match node:
            case ast.Constant(value=value):
                return of_value(value) if json_of(value) is not MISSING else None
            case ast.JoinedStr():
                return STR
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value, slice=key):
                return self._item(self.of(value), key)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._list(items)
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values)
            case ast.ListComp(elt=inner, generators=generators):
                with_items = self._within(generators, lambda: self.of(inner))
                return ValueShape((Kind(LIST, list, items=with_items),))
            case ast.DictComp(value=inner, generators=generators):
                values_ = self._within(generators, lambda: self.of(inner))
                return ValueShape((Kind(OBJECT, dict, items=values_),))
            case ast.IfExp(body=body, orelse=other):
                return either((self.of(body), self.of(other)))
            case ast.BoolOp(values=operands):
                return either(map(self.of, operands))
            case ast.NamedExpr(value=value):
                return self.of(value)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return BOOL
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return of_value(-value)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operated(op, self.of(left), self.of(right))
            case ast.Await(value=value):
                return self.awaited(value)
            case ast.Call():
                return self._call(node)
        return None

    def _name(self, node: ast.Name, name: str) -> ValueShape | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in self.t.variables:
            return self.known.get(name)
        return _of_constant(self.t.outside(node))

    def _attribute(self, node: ast.Attribute) -> ValueShape | None:
        found = self._outside(node)
        if found is not MISSING:
            return _of_constant(found)
        owner = self.of(node.value)
        if owner is None:
            return None
        fields = [
            kind.fields.get(node.attr) if kind.fields and model_of(kind.python) else None
            for kind in owner.kinds
            if kind.word != NULL
        ]
        return either(fields)

    def _outside(self, node: ast.AST) -> Any:
        """Returns the object that a dotted name stands for outside of the function, or MISSING."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        inner = isinstance(root, ast.Name) and any(root.id in scope for scope in self.scopes)
        return MISSING if inner else self.t.outside(node)

    def _item(self, owner: ValueShape | None, key: ast.AST) -> ValueShape | None:
        if owner is None or isinstance(key, ast.Slice):
            return loose(owner)
        index = key.value if isinstance(key, ast.Constant) else None
        return either(_item_of(kind, index) for kind in owner.kinds if kind.word != NULL)

    def _list(self, items: Sequence[ast.expr]) -> ValueShape:
        if any(isinstance(item, ast.Starred) for item in items):
            return ValueShape((Kind(LIST, list),))
        return ValueShape((Kind(LIST, list, parts=tuple(map(self.of, items))),))

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> ValueShape:
        fields = {
            key.value: self.of(value)
            for key, value in zip(keys, values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
        return of_object(fields, others=len(fields) < len(keys))

    def _within(
        self, generators: Sequence[ast.comprehension], inner: Callable[[], ValueShape | None]
    ) -> ValueShape | None:
        for generator in generators:
            self.enter(generator)
        found = inner()
        self.leave(generators)
        return found

    def enter(self, generator: ast.comprehension) -> None:
        """Opens the scope of one `for` of a comprehension."""
        scope: dict[str, ValueShape | None] = {}
        _name_parts(generator.target, element(self.of(generator.iter)), scope)
        self.scopes.append(scope)

    def leave(self, generators: Sequence[ast.comprehension]) -> None:
        """Closes the scopes of a comprehension."""
        del self.scopes[len(self.scopes) - len(generators) :]

    def _operated(
        self, op: ast.operator, left: ValueShape | None, right: ValueShape | None
    ) -> ValueShape | None:
        if left is None or right is None or isinstance(op, ast.Pow | ast.MatMult):
            return None
        found: list[ValueShape | None] = []
        for one, other in _pairs(left, right):
            if one is str and isinstance(op, ast.Mod):
                found.append(STR)
            elif one not in SAMPLES or other not in SAMPLES:
                return None
            elif (made := tried(BINARY[type(op)], one, other)) is not MISSING:
                found.append(loose(of_value(made)))
        return either(found)

    # Calls.

    def awaited(self, node: ast.AST) -> ValueShape | None:
        """Returns the shape of what an await gives."""
        if not isinstance(node, ast.Call):
            return None
        callee, _ = called(self.t, node.func)
        if callee is not None:
            return shape_of(callee.result, given=True)
        operation = operation_of(self._outside(node.func))
        if operation == "wait_for" and node.args:
            return self.awaited(node.args[0])
        if operation == "gather" and not node.keywords:
            return self._gathered(node.args)
        if operation == "all" and len(node.args) == 1:
            plain = all(keyword.arg in ("concurrency", "keep") for keyword in node.keywords)
            return self._all(node.args[0]) if plain else None
        return None

    def _all(self, items: ast.expr) -> ValueShape | None:
        if isinstance(items, ast.List | ast.Tuple):
            return self._gathered(items.elts)
        if isinstance(items, ast.ListComp | ast.GeneratorExp):
            inner = self._within(items.generators, lambda: self.awaited(items.elt))
            return ValueShape((Kind(LIST, list, items=inner),))
        return None

    def _gathered(self, items: Sequence[ast.expr]) -> ValueShape | None:
        if len(items) == 1 and isinstance(items[0], ast.Starred):
            return self._all(items[0].value)
        if any(isinstance(item, ast.Starred) for item in items):
            return ValueShape((Kind(LIST, list),))
        return ValueShape((Kind(LIST, list, parts=tuple(map(self.awaited, items))),))

    def _call(self, node: ast.Call) -> ValueShape | None:
        found = self._outside(node.func)
        if found is MISSING:
            return self._method(node) if isinstance(node.func, ast.Attribute) else None
        if is_builtin(found):
            return self._builtin(node, found.__name__)
        if isinstance(found, type) and not issubclass(found, BaseException):
            return shape_of(found)
        return STR if key_of(found) == "json.dumps" else None

    def _builtin(self, node: ast.Call, name: str) -> ValueShape | None:
        first = self.of(node.args[0]) if node.args else None
        if name in ("sorted", "list", "reversed"):
            return ValueShape((Kind(LIST, list, items=element(first)),))
        if name == "enumerate":
            return _list_of(INT, element(first))
        if name == "zip":
            return _list_of(*(element(self.of(arg)) for arg in node.args))
        return OF_FUNCTION.get(name)

    def _method(self, node: ast.Call) -> ValueShape | None:
        assert isinstance(node.func, ast.Attribute)
        owner, name = self.of(node.func.value), node.func.attr
        if owner is None or not owner.kinds:
            return owner
        classes = {kind.python for kind in owner.kinds}
        if classes == {str}:
            return OF_TEXT.get(name)
        if classes == {dict}:
            return self._of_dict(node, owner, name)
        return loose(owner) if name == "copy" and classes == {list} else None

    def _of_dict(self, node: ast.Call, owner: ValueShape, name: str) -> ValueShape | None:
        values = either(_value_of(kind) for kind in owner.kinds)
        if name == "get" and node.args:
            other = self.of(node.args[1]) if len(node.args) > 1 else of_value(None)
            return either((self._item(owner, node.args[0]), other))
        if name == "items":
            return _list_of(STR, values)
        if name in ("keys", "values"):
            return ValueShape((Kind(LIST, list, items=STR if name == "keys" else values),))
        return loose(owner) if name == "copy" else None


def is_builtin(found: Any) -> bool:
    """Whether an object is a function or class that Python has by itself."""
    return found is not MISSING and found is getattr(builtins, _name_of(found), MISSING)


def _name_of(found: Any) -> str:
    name = getattr(found, "__name__", "")
    return name if isinstance(name, str) else ""


def _unknown() -> ValueShape | None:
    return None


def _list_of(*parts: ValueShape | None) -> ValueShape:
    pair = ValueShape((Kind(LIST, list, parts=parts),))
    return ValueShape((Kind(LIST, list, items=pair),))


def _of_constant(found: Any) -> ValueShape | None:
    """Returns the shape of a value of the module."""
    value = json_of(found) if found is not MISSING else MISSING
    if value is MISSING or callee_of(found):
        return None
    if isinstance(found, enum.Enum):
        [kind] = of_value(value).kinds
        return ValueShape((kind.replace(python=type(found), name=type(found).__name__),))
    return of_value(value)


def _item_of(kind: Kind, index: Any) -> ValueShape | None:
    if kind.word == TEXT and kind.python is str:
        return STR
    if kind.word == LIST:
        known = kind.parts is not None and isinstance(index, int)
        inside = kind.parts is not None and known and -len(kind.parts) <= index < len(kind.parts)
        return kind.parts[index] if kind.parts is not None and inside else _element_of(kind)
    if kind.word == OBJECT and kind.fields is not None:
        return kind.fields.get(index) if isinstance(index, str) else None
    return kind.items if kind.word == OBJECT else None


def _value_of(kind: Kind) -> ValueShape | None:
    if kind.fields is None:
        return kind.items
    return None if kind.open else either(kind.fields.values())


def element(shape: ValueShape | None) -> ValueShape | None:
    """Returns the shape of what a loop over a value gives."""
    if shape is None:
        return None
    return either(_element_of(kind) for kind in shape.kinds if _is_iterable(kind.python))


def _element_of(kind: Kind) -> ValueShape | None:
    if kind.python in (str, dict):
        return STR
    if kind.parts is not None:
        return either(kind.parts)
    return kind.items


def _is_iterable(cls: type | None) -> bool:
    return cls is None or hasattr(cls, "__iter__")


def part(shape: ValueShape | None, i: int) -> ValueShape | None:
    """Returns the shape of what the i-th name of `a, b = value` gets."""
    if shape is None:
        return None
    return either(
        kind.parts[i]
        if kind.parts is not None and i < len(kind.parts)
        else None
        if kind.parts is not None
        else _element_of(kind)
        for kind in shape.kinds
    )


def _name_parts(
    target: ast.AST, shape: ValueShape | None, scope: dict[str, ValueShape | None]
) -> None:
    if isinstance(target, ast.Name):
        scope[target.id] = shape
    elif isinstance(target, ast.Starred):
        _name_parts(target.value, None, scope)
    elif isinstance(target, ast.Tuple | ast.List):
        starred = any(isinstance(each, ast.Starred) for each in target.elts)
        for i, each in enumerate(target.elts):
            _name_parts(each, None if starred else part(shape, i), scope)


def _pairs(left: ValueShape, right: ValueShape) -> Iterator[tuple[Any, Any]]:
    for one in left.kinds:
        for other in right.kinds:
            yield one.python, other.python


def tried(operation: Callable[..., Any], *classes: Any) -> Any:
    """Returns what Python gives for values of these types; MISSING if it refuses the types."""
    import copy

    try:
        return operation(*(copy.copy(SAMPLES[cls]) for cls in classes))
    except TypeError:
        return MISSING
    except (ValueError, ArithmeticError, LookupError):
        return None


def _changed_names(tree: ast.AST) -> Iterator[str]:
    """Yields the variables whose values are changed in place."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store()):
                yield from _root(node)
            case ast.AugAssign(target=target):
                yield from _root(target)
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in CHANGING:
                yield from _root(owner)


def _asked_names(tree: ast.AST) -> Iterator[str]:
    """Yields the variables whose types the author asks for: `isinstance(x, str)`, `match x`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, *_]):
                yield from _root(asked)
            case ast.Match(subject=subject):
                yield from _root(subject)


def _root(node: ast.AST) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
