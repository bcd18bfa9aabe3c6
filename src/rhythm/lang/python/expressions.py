"""Expressions: each Python expression as one of `.flow`, with Python's meaning spelled out."""

from __future__ import annotations

import ast
import enum
import math
from collections.abc import Sequence
from typing import Any, is_typeddict

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.python import calls, comprehensions, kept, times
from rhythm.lang.python.attributes import attribute
from rhythm.lang.python.awaits import awaited, write_await
from rhythm.lang.python.hints import (
    enum_of,
    hint_of,
    holds_nothing,
    is_enum,
    is_tuple,
    is_value,
    named_tuple,
    without_none,
)
from rhythm.lang.python.names import MISSING, callee_of, json_of, model_of, operation_of
from rhythm.lang.python.translation import Make, Translate, Translation
from rhythm.limits import INT_MAX, INT_MIN
from rhythm.suggest import nearest

BINARY: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "bitand", ast.BitOr: "bitor",
    ast.BitXor: "bitxor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
COMPARED: dict[type, str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
Apart = tuple[Node, list[Node]]  # an expression, with the statements that come before it
# Calls that give true or false, whatever they are given.
GIVES_BOOL = frozenset(
    f"py.{name}" for name in "truth eq ne lt le gt ge contains isinstance matches any all".split()
)


def truth(t: Translation, node: ast.AST) -> Node:
    """Returns the expression as a condition, true or false by Python's rules."""
    kind = enum_of(t, node)
    if kind is not None and not is_value(kind) and not all(member.value for member in kind):
        message = f"a member of `{kind.__name__}` is always true in Python; its value is not"
        return t.refuse("P058", node, message, "compare it with a member")
    return as_truth(t.at(node), t.value(node))


def as_truth(at: Make, value: Node) -> Node:
    """Returns the value as true or false, by Python's rules."""
    return value if _is_bool(value) else at.call("py.truth", value)


def _is_bool(value: Node) -> bool:
    match value:
        case nodes.Literal(value=found):
            return isinstance(found, bool)
        case nodes.Unary(op="!") | nodes.Binary(op="==" | "!="):
            return True
        case nodes.Call(name=name):
            return name in GIVES_BOOL
        case nodes.Logic(left=left, right=right) | nodes.Conditional(yes=left, no=right):
            return _is_bool(left) and _is_bool(right)
    return False


def constant(t: Translation, node: ast.Constant) -> Node:
    value = node.value
    if isinstance(value, bytes | complex) or value is Ellipsis:
        what = {bytes: "bytes", complex: "a complex number"}.get(type(value), "`...`")
        return t.refuse("P050", node, f"{what} cannot be kept: a workflow's values are JSON")
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        return t.refuse("P050", node, "a whole number has 64 bits here", "write it as text")
    if isinstance(value, float) and not math.isfinite(value):
        return t.refuse("P050", node, "a number too large to be kept")
    return t.at(node).literal(value)


def name(t: Translation, node: ast.Name) -> Node:
    bound, stands = t.lookup(node.id)
    if node.id in t.errors and id(node) not in t.readable_errors:
        return t.refuse("P070", node, "an exception is no value here", f"keep str({node.id})")
    if bound:
        return t.at(node).name(node.id) if stands is None else stands
    if node.id in t.variables:
        if node.id in t.groups or node.id in t.errors:
            return _special(t, node)
        return t.at(node).name(node.id)
    return outside(t, node)


def _special(t: Translation, node: ast.Name) -> Node:
    if node.id in t.errors:
        return t.at(node).name(node.id)
    return t.refuse("P015", node, "a task group is no value", "use what its tasks gave")


def outside(t: Translation, node: ast.Name | ast.Attribute) -> Node:
    """Returns a value of the module, captured as it is when the workflow is decorated."""
    found = t.around.resolve(node)
    written = ast.unparse(node)
    if found is MISSING:
        near = nearest(written, [*t.variables, *t.around.similar()])
        return t.refuse(
            "P020", node, f"`{written}` has no value", f"did you mean `{near}`?" if near else ""
        )
    if isinstance(found, type) and issubclass(found, enum.Enum) and id(node) in t.walked:
        found = list(found)
    value = json_of(found)
    if value is not MISSING:
        return t.captured(node, value)
    if callee_of(found) or operation_of(found):
        return t.refuse("P030", node, f"`{written}` is called, not used as a value")
    return t.refuse(
        "P024",
        node,
        f"`{written}` is a value of the module that is not JSON ({type(found).__name__})",
        "JSON has no sets: make it a list in the module"
        if isinstance(found, set | frozenset)
        else "pass what you need of it as an input, or use it in a task",
    )


def binary(t: Translation, node: ast.BinOp) -> Node:
    if isinstance(node.op, ast.MatMult):
        return t.refuse("P054", node, "`@` multiplies matrices", "put this in a task")
    if isinstance(node.op, ast.Mod) and _is_text(node.left):
        return _percent(t, node)
    timed = times.timed_binary(t, node) or kept.not_kept(t, node.left, node.right)
    if timed is not None:
        return timed
    left, right = t.values([node.left, node.right])
    return t.at(node).call(f"py.{BINARY[type(node.op)]}", left, right)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _percent(t: Translation, node: ast.BinOp) -> Node:
    """Returns `"…" % values`: the values are a tuple that is written out, or one value."""
    given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    at, template = t.at(node), t.value(node.left)
    if isinstance(template, nodes.Literal) and "%(" in template.value:
        return at.call("py.percent", template, t.value(node.right))
    return at.call("py.percent", template, at.list(t.values(given)))


def unary(t: Translation, node: ast.UnaryOp) -> Node:
    at = t.at(node)
    if isinstance(node.op, ast.Not):
        return at.negated(truth(t, node.operand))
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            if value == INT_MAX + 1:
                return at.call("py.sub", at.literal(-INT_MAX), at.literal(1))
            return at.literal(-value) if value != 0 or type(value) is float else at.literal(0)
    names = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
    return at.call(f"py.{names[type(node.op)]}", t.value(node.operand))


def logic(t: Translation, node: ast.BoolOp) -> Node:
    op = "and" if isinstance(node.op, ast.And) else "or"
    made = t.value(node.values[0])
    rest = [t.apart(value) for value in node.values[1:]]
    if any(before for _, before in rest):
        return _logic_in_steps(t, node, op, made, rest)
    for right, _ in rest:
        at = t.at(node)
        both = _is_bool(made) and _is_bool(right)
        native = {"and": "&&", "or": "||"}[op] if both else op
        made = nodes.Logic(at.start, at.end, native, made, right)
    return made


def _logic_in_steps(
    t: Translation, node: ast.BoolOp, op: str, first: Node, rest: Sequence[Apart]
) -> Node:
    """Writes `a or await b()`: the right side runs only if the left side does not decide."""
    at, result = t.at(node), t.hidden()
    t.write(at.let(result, first))

    def ask(parts: Sequence[Apart]) -> None:
        if parts:
            decided = at.call("py.truth", at.name(result))
            wanted = decided if op == "and" else at.negated(decided)
            t.write(at.when(wanted, t.block(lambda: answer(*parts), node)))

    def answer(part: Apart, *more: Apart) -> None:
        value, before = part
        t.write(*before, at.assign(result, value))
        ask(more)

    ask(rest)
    return at.name(result)


def compare(t: Translation, node: ast.Compare) -> Node:
    if len(node.ops) == 1:
        return _one_comparison(t, node, node.ops[0], node.left, node.comparators[0])
    left, middle = t.values([node.left, node.comparators[0]])
    rest = [t.apart(value) for value in node.comparators[1:]]
    if any(before for _, before in rest) or not all(_may_repeat(t, v) for v, _ in rest[:-1]):
        return _chain_in_steps(t, node, left, middle, rest)
    if not _may_repeat(t, middle):
        left, middle = *t.kept([left], node), t.pinned(middle)
    operands = [left, middle, *(value for value, _ in rest)]
    at, made = t.at(node), _compared(t, node, node.ops[0], left, middle)
    for i, op in enumerate(node.ops[1:], 1):
        one = _compared(t, node, op, operands[i], operands[i + 1])
        made = nodes.Logic(at.start, at.end, "&&", made, one)
    return made


def _may_repeat(t: Translation, value: Node) -> bool:
    """Whether a value may be written twice; in a comprehension all may, since nothing changes."""
    return isinstance(value, nodes.Name | nodes.Literal) or t.pure > 0


def _chain_in_steps(
    t: Translation, node: ast.Compare, left: Node, middle: Node, rest: Sequence[Apart]
) -> Node:
    """Writes `a < b < c` so that c is evaluated only if a < b, and each only once."""
    at, result = t.at(node), t.hidden()
    left, middle = *t.kept([left], node), t.pinned(middle)
    t.write(at.let(result, _compared(t, node, node.ops[0], left, middle)))

    def ask(i: int, left: Node) -> None:
        if i < len(node.ops):
            t.write(at.when(at.name(result), t.block(lambda: answer(i, left), node)))

    def answer(i: int, left: Node) -> None:
        value, before = rest[i - 1]
        t.write(*before)
        right = t.pinned(value)
        t.write(at.assign(result, _compared(t, node, node.ops[i], left, right)))
        ask(i + 1, right)

    ask(1, middle)
    return at.name(result)


def _one_comparison(
    t: Translation, node: ast.Compare, op: ast.cmpop, left: ast.expr, right: ast.expr
) -> Node:
    if isinstance(op, ast.Is | ast.IsNot):
        return _identity(t, node, op, left, right)
    if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Set | ast.Tuple):
        items = ast.List(right.elts, ast.Load())
        ast.copy_location(items, right)
        right = items
    elif (shown := _shows_a_tuple(t, op, left, right)) is not None:
        return shown
    refused = _shows_an_enum(t, left, right) or kept.not_kept(t, left, right, compared=True)
    if refused is not None:
        return refused
    timed = times.timed_comparison(t, node, op, left, right)
    if timed is not None:
        return timed
    return _compared(t, node, op, *t.values([kept.as_lists(left), kept.as_lists(right)]))


def _shows_a_tuple(t: Translation, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Node | None:
    """Refuses to compare a tuple that is written out with anything else: it is kept as a list."""
    kinds = [is_tuple(t, side) for side in (left, right)]
    if isinstance(op, ast.In | ast.NotIn) or not any(kinds) or all(kinds):
        return None
    side, other = (left, right) if kinds[0] else (right, left)
    if not isinstance(side, ast.Tuple) and hint_of(t, other) is None:
        return None
    return t.refuse(
        "P052",
        side,
        "a tuple is kept as a list, so this would not be Python's answer",
        "compare with a list: [a, b]",
    )


def _shows_an_enum(t: Translation, left: ast.expr, right: ast.expr) -> Node | None:
    """Refuses to compare a member with a plain value: kept as its value, it would be equal."""
    kinds = [enum_of(t, side) for side in (left, right)]
    for kind, other in zip(kinds, (right, left), strict=True):
        if kind and not is_value(kind) and hint_of(t, other) in (str, int, float, bool):
            member = next(iter(kind)).name
            return t.refuse(
                "P058",
                other,
                f"a member of `{kind.__name__}` equals no plain value in Python",
                f"compare with a member, such as {kind.__name__}.{member}, or compare .value",
            )
    return None


def _compared(t: Translation, node: ast.AST, op: ast.cmpop, left: Node, right: Node) -> Node:
    at = t.at(node)
    if isinstance(op, ast.In):
        return at.call("py.contains", right, left)
    if isinstance(op, ast.NotIn):
        return at.negated(at.call("py.contains", right, left))
    if type(op) not in COMPARED:
        return t.refuse("P055", node, "`is` cannot be a part of a chain", "compare with ==")
    return at.call(f"py.{COMPARED[type(op)]}", left, right)


def _identity(
    t: Translation, node: ast.Compare, op: ast.cmpop, left: ast.expr, right: ast.expr
) -> Node:
    """Returns `x is None`, `x is not True` and the like; refuses `is` with other operands."""
    at = t.at(node)
    if (kind := enum_of(t, left)) is not None and kind is enum_of(t, right):
        name = "py.eq" if isinstance(op, ast.Is) else "py.ne"  # there is one object for a member
        return at.call(name, *t.values([left, right]))
    if not isinstance(right, ast.Constant) or right.value not in (None, True, False):
        return t.refuse(
            "P055",
            node,
            "values have no identity here, so `is` has nothing to compare",
            "compare with ==; `is None` is fine",
        )
    same = at.equal(t.value(left), at.literal(right.value))
    return same if isinstance(op, ast.Is) else same.replace(op="!=")


def conditional(t: Translation, node: ast.IfExp) -> Node:
    at = t.at(node)
    condition = truth(t, node.test)
    sides = [t.apart(node.body), t.apart(node.orelse)]
    if not any(before for _, before in sides):
        return at.choose(condition, *(value for value, _ in sides))
    result = t.hidden()
    t.write(at.let(result, None))
    blocks = [at.block(*before, at.assign(result, value)) for value, before in sides]
    t.write(at.when(condition, *blocks))
    return at.name(result)


def walrus(t: Translation, node: ast.NamedExpr) -> Node:
    at = t.at(node)
    if isinstance(node.value, ast.Await) and not t.pure:
        write_await(t, node.value, node.target.id)
    else:
        t.write(at.assign(node.target.id, t.value(node.value)))
    return at.name(node.target.id)


def subscript(t: Translation, node: ast.Subscript) -> Node:
    at = t.at(node)
    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        blank = ast.copy_location(ast.Constant(None), node)
        target, *bounds = t.values([node.value, *(part or blank for part in parts)])
        return at.call("py.slice", target, *bounds)
    if isinstance(node.slice, ast.Tuple):
        return t.refuse("P053", node.slice, "a key is text here, not a tuple")
    found = t.outside(node.value)
    if isinstance(found, type) and issubclass(found, enum.Enum):
        return _member_of_enum(t, node, found)
    if (fields := named_tuple(hint_of(t, node.value))) is not None:
        return _of_named_tuple(t, node, fields)
    if (model := model_of(without_none(hint_of(t, node.value)))) is not None:
        return t.refuse(
            "P061",
            node,
            f"`{model.cls.__name__}` has fields, and no elements",
            f"write the name of a field: .{next(iter(model.fields), 'name')}",
        )
    hint = without_none(hint_of(t, node.value))
    if hint in kept.KEPT_AS or (is_enum(hint) and not is_value(hint)):
        return t.refuse(
            "P061",
            node,
            f"a {hint.__name__} has no elements",
            "take it apart in a task that takes the value",
        )
    match node.slice:
        case ast.Constant(str(name)) if is_typeddict(hint) and holds_nothing(hint_of(t, node)):
            t.around.plain.add((at.start, name))
    target, key = t.values([node.value, node.slice])
    return at.call("py.item", target, key)


def _of_named_tuple(t: Translation, node: ast.Subscript, fields: tuple[str, ...]) -> Node:
    """Returns `point[0]` as the field that it is."""
    key, at = node.slice, t.at(node)
    place: Any = None
    match key:
        case ast.Constant(value=int(i)):
            place = i
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(i))):
            place = -i
    if place is None or not -len(fields) <= place < len(fields):
        return t.refuse(
            "P058",
            node,
            "a NamedTuple is kept as its fields, and has no positions",
            f"write the name of a field: .{fields[0]}",
        )
    return at.call("py.attr", t.value(node.value), at.literal(fields[place]))


def _member_of_enum(t: Translation, node: ast.Subscript, cls: Any) -> Node:
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(key, str) or key not in cls.__members__:
        return t.refuse(
            "P024",
            node,
            f"`{cls.__name__}` is looked up when the workflow is made",
            f"write the member: {cls.__name__}.NAME",
        )
    return t.at(node).literal(json_of(cls[key]))


def list_(t: Translation, node: ast.List | ast.Tuple) -> Node:
    at = t.at(node)
    inner = [item.value if isinstance(item, ast.Starred) else item for item in node.elts]
    made: list[Node] = []
    for item, value in zip(node.elts, t.values(inner), strict=True):
        if isinstance(item, ast.Starred):
            made.append(nodes.Spread(at.start, at.end, at.call("py.list", value)))
        else:
            made.append(value)
    return at.list(made)


def tuple_(t: Translation, node: ast.Tuple) -> Node:
    return t.refuse(
        "P052",
        node,
        "a tuple would be kept as a list: values are JSON here",
        "write a list: [a, b]",
    )


def set_(t: Translation, node: ast.AST) -> Node:
    return t.refuse(
        "P051",
        node,
        "JSON has no sets",
        "use a list, or a dict: {x: True for x in xs} has each once",
    )


def dict_(t: Translation, node: ast.Dict) -> Node:
    at = t.at(node)
    if not all(key is None or isinstance(key, ast.Constant) for key in node.keys):
        return _computed_keys(t, node)
    entries: list[Node] = []
    for key, value in zip(node.keys, t.values(node.values), strict=True):
        if key is None:
            entries.append(nodes.Spread(at.start, at.end, at.call("py.dict", value)))
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            if any(getattr(entry, "key", None) == key.value for entry in entries):
                t.refuse("P053", key, f"the key {key.value!r} is written twice", "keep one")
            entries.append(nodes.Entry(at.start, at.end, key.value, value))
        else:
            t.refuse("P053", key, "the keys of a dict are text here", f'write "{ast.unparse(key)}"')
    return nodes.ObjectLiteral(at.start, at.end, tuple(entries))


def _computed_keys(t: Translation, node: ast.Dict) -> Node:
    at = t.at(node)
    if any(key is None for key in node.keys):
        return t.refuse(
            "P053",
            node,
            "`**` and computed keys do not stand together",
            "build it in two steps: one = {…}; both = {**one, **other}",
        )
    pairs = [part for pair in zip(node.keys, node.values, strict=True) for part in pair]
    made = t.values([part for part in pairs if part is not None])
    return at.call("py.dict", at.list([at.list(made[i : i + 2]) for i in range(0, len(made), 2)]))


def text(t: Translation, node: ast.JoinedStr) -> Node:
    """Returns an f-string."""
    at = t.at(node)
    fields = [part for part in node.values if isinstance(part, ast.FormattedValue)]
    refused = [f for f in fields if kept.shows_a_tuple(t, f.value, f.conversion != ord("r"))]
    inner = [part for field in fields for part in (field.value, field.format_spec) if part]
    made = iter(t.values(inner))
    parts: list[Node] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = kept.shown(t, part.value, next(made))
            spec = next(made) if part.format_spec else at.literal("")
            conversion = "" if part.conversion == -1 else chr(part.conversion)
            if conversion == "" and spec == at.literal(""):
                parts.append(at.call("py.str", value))
            else:
                parts.append(at.call("py.format", value, spec, at.literal(conversion)))
        else:
            assert isinstance(part, ast.Constant)
            parts.append(at.literal(part.value))
    if refused or not parts:
        return at.literal("")
    return nodes.Template(at.start, at.end, tuple(parts))


def lambda_(t: Translation, node: ast.Lambda) -> Node:
    return t.refuse(
        "P011",
        node,
        "a lambda cannot be kept in a snapshot",
        "write a function with one `return` at the top of the module, or a comprehension; "
        "`key=lambda …` of sorted, min and max is fine",
    )


def generator(t: Translation, node: ast.GeneratorExp) -> Node:
    written = ast.unparse(node)[1:-1]
    shown = written if len(written) < 60 else "…"
    return t.refuse(
        "P012", node, "a generator cannot be kept in a snapshot", f"write a list: [{shown}]"
    )


def yield_(t: Translation, node: ast.AST) -> Node:
    return t.refuse("P012", node, "a workflow is no generator", "collect a list, and return it")


def starred(t: Translation, node: ast.Starred) -> Node:
    return t.refuse("P017", node, "`*` cannot stand here")


EXPRESSIONS: dict[type, Translate] = {
    ast.Constant: constant, ast.Name: name, ast.BinOp: binary, ast.UnaryOp: unary,
    ast.BoolOp: logic, ast.Compare: compare, ast.IfExp: conditional, ast.NamedExpr: walrus,
    ast.Subscript: subscript, ast.List: list_, ast.Tuple: tuple_, ast.Set: set_,
    ast.SetComp: set_, ast.Dict: dict_, ast.JoinedStr: text, ast.Lambda: lambda_,
    ast.GeneratorExp: generator, ast.Yield: yield_, ast.YieldFrom: yield_, ast.Starred: starred,
    ast.ListComp: comprehensions.list_, ast.DictComp: comprehensions.dict_,
    ast.Attribute: attribute, ast.Await: awaited, ast.Call: calls.call,
}  # fmt: skip
