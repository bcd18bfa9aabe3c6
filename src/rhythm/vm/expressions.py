"""Expressions to closures: compiled once per program, then only called.

A closure takes the frame (the locals, with `inputs`, `ctx` and the machine as `$m`) and returns the
value. The common cases, integers and plain locals, are written out where it pays (`closures`);
everything else goes through `values`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.limits import Limits
from rhythm.vm import closures, inputs
from rhythm.vm.builtins import FUNCTIONS
from rhythm.vm.closures import Compiled, Frame, placed, with_integers
from rhythm.vm.prices import LONG, element_work, looked_up, made, price_of
from rhythm.vm.python.compiled import COMPILED as COMPILED_PYTHON
from rhythm.vm.values import (
    Charge,
    Fault,
    LimitFault,
    arithmetic,
    as_text,
    check_entries,
    check_text,
    contains,
    element,
    equal,
    in_order,
    is_number,
    kind,
    member,
    truthy,
)

_FAST_INT = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPILED = {**COMPILED_PYTHON, "check_inputs": inputs.compiled}
_PLAIN = frozenset((int, float, str, bool, type(None)))
# What the message of a property that is not there says, by the language of its reader.
IF_MISSING = {"flow": " (`?.` gives null)"}
_FAST_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class ExpressionCompiler:
    """Compiles expressions to closures."""

    def __init__(self, limits: Limits, language: str = "") -> None:
        self.limits = limits
        self.if_missing = IF_MISSING.get(language, "")

    def compile(self, node: Any) -> Compiled:
        """Returns the closure that computes the expression's value."""
        compiled: Compiled = self._TABLE[type(node)](self, node)
        return compiled

    def _const(self, node: ir.Const) -> Compiled:
        value = node.value
        return lambda frame: value

    def _local(self, node: ir.Local) -> Compiled:
        name = node.name
        return lambda frame: frame[name]

    def _unary(self, node: ir.Unary) -> Compiled:
        value, at, limits = self.compile(node.value), node.at, self.limits
        if node.op == "!":
            return lambda frame: not truthy(value(frame))

        def negate(frame: Frame) -> Any:
            number = value(frame)
            if not is_number(number):
                raise Fault("TypeMismatch", f"cannot negate {kind(number)}", at=at)
            return placed(at, arithmetic, "-", 0, number, limits, frame["$m"].charge)

        return negate

    def _binary(self, node: ir.Binary) -> Compiled:
        if node.op in _FAST_INT:
            return self._arithmetic(node, _FAST_INT[node.op])
        if node.op in _FAST_ORDER:
            return self._order(node, _FAST_ORDER[node.op])
        if node.op in ("==", "!="):
            return self._equality(node)
        left = self.compile(node.left)
        right = self.compile(node.right)
        at = node.at
        limits = self.limits
        op = node.op
        if op == "%":
            return self._remainder(node)
        if op == "in":
            return lambda frame: placed(at, contains, left(frame), right(frame), frame["$m"].charge)
        return lambda frame: placed(
            at, arithmetic, op, left(frame), right(frame), limits, frame["$m"].charge
        )

    def _arithmetic(self, node: ir.Binary, compute: Callable[[int, int], int]) -> Compiled:
        op, at, limits = node.op, node.at, self.limits

        def general(frame: Frame, a: Any, b: Any) -> Any:
            return placed(at, arithmetic, op, a, b, limits, frame["$m"].charge)

        return with_integers((node.left, node.right), self.compile, compute, general)

    def _remainder(self, node: ir.Binary) -> Compiled:
        left = self.compile(node.left)
        right = self.compile(node.right)
        at = node.at
        limits = self.limits

        def remainder(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            # for other operands Python's `%` gives another sign
            if type(a) is int and type(b) is int and a >= 0 and b > 0:
                return a % b
            return placed(at, arithmetic, "%", a, b, limits, frame["$m"].charge)

        match node.left, node.right:
            case ir.Local(name), ir.Const(int() as number) if type(number) is int and number > 0:

                def of_local(frame: Frame) -> Any:
                    a = frame[name]
                    return a % number if type(a) is int and a >= 0 else remainder(frame)

                return of_local
        return remainder

    def _order(self, node: ir.Binary, compare: Callable[[int, int], bool]) -> Compiled:
        op, at = node.op, node.at

        def general(frame: Frame, a: Any, b: Any) -> Any:
            return placed(at, in_order, op, a, b, frame["$m"].charge)

        return closures.in_order((node.left, node.right), self.compile, compare, general)

    def _equality(self, node: ir.Binary) -> Compiled:
        left, right, at = self.compile(node.left), self.compile(node.right), node.at
        wanted = node.op == "=="
        if isinstance(node.right, ir.Const) and type(node.right.value) in _PLAIN:
            constant, kind_of = node.right.value, type(node.right.value)

            def with_constant(frame: Frame) -> bool:
                a = left(frame)
                return (
                    (a == constant) is wanted
                    if type(a) is kind_of
                    else placed(at, equal, a, constant, frame["$m"].charge) is wanted
                )

            return with_constant

        def compare(frame: Frame) -> bool:
            a, b = left(frame), right(frame)
            if type(a) is type(b) and type(a) in _PLAIN:
                if type(a) is str and len(a) > LONG:
                    frame["$m"].charge(len(a) // LONG)
                return (a == b) is wanted
            return placed(at, equal, a, b, frame["$m"].charge) is wanted

        return compare

    def _logic(self, node: ir.Logic) -> Compiled:
        left, right = self.compile(node.left), self.compile(node.right)
        if node.op == "&&":
            return lambda frame: right(frame) if truthy(value := left(frame)) else value
        if node.op == "||":
            return lambda frame: value if truthy(value := left(frame)) else right(frame)
        if node.op == "and":  # Python's own truth
            return lambda frame: right(frame) if (value := left(frame)) else value
        if node.op == "or":
            return lambda frame: value if (value := left(frame)) else right(frame)
        return lambda frame: right(frame) if (value := left(frame)) is None else value

    def _choose(self, node: ir.Choose) -> Compiled:
        condition = self.compile(node.condition)
        yes = self.compile(node.yes)
        no = self.compile(node.no)
        return lambda frame: yes(frame) if truthy(condition(frame)) else no(frame)

    def _member(self, node: ir.Member) -> Compiled:
        target, name, optional, at = self.compile(node.target), node.name, node.optional, node.at
        advice = self.if_missing

        def read(frame: Frame) -> Any:
            value = target(frame)
            if type(value) is dict and name in value:
                return value[name]
            return placed(at, member, value, name, optional, advice)

        return read

    def _index(self, node: ir.Index) -> Compiled:
        target = self.compile(node.target)
        index = self.compile(node.index)
        optional, advice = node.optional, self.if_missing
        at = node.at
        return lambda frame: placed(
            at, element, target(frame), index(frame), frame["$m"].charge, optional, advice
        )

    def _list(self, node: ir.ListOf) -> Compiled:
        if any(isinstance(item, ir.Spread) for item in node.items):
            return self._spread_list(node)
        items = [self.compile(item) for item in node.items]
        return lambda frame: [item(frame) for item in items]

    def _spread_list(self, node: ir.ListOf) -> Compiled:
        parts = [
            (
                isinstance(item, ir.Spread),
                self.compile(item.value if isinstance(item, ir.Spread) else item),
            )
            for item in node.items
        ]
        at, limits = node.at, self.limits

        def build(frame: Frame) -> list[Any]:
            result: list[Any] = []
            for spread, part in parts:
                value = part(frame)
                if spread:
                    value = placed(at, spread_list, value, frame["$m"].charge)
                    placed(at, check_entries, len(result) + len(value), limits)
                    result += value
                else:
                    result.append(value)
            return result

        return build

    def _object(self, node: ir.ObjectOf) -> Compiled:
        if any(key is None for key, _ in node.entries):
            return self._spread_object(node)
        entries = [(key, self.compile(value)) for key, value in node.entries]
        return lambda frame: {key: value(frame) for key, value in entries}

    def _spread_object(self, node: ir.ObjectOf) -> Compiled:
        parts = [
            (key, self.compile(value.value if isinstance(value, ir.Spread) else value))
            for key, value in node.entries
        ]
        at, limits = node.at, self.limits

        def build(frame: Frame) -> dict[str, Any]:
            result: dict[str, Any] = {}
            for key, part in parts:
                value = part(frame)
                if key is None:
                    result.update(placed(at, spread_object, value, frame["$m"].charge))
                else:
                    result[key] = value
            placed(at, check_entries, len(result), limits)
            return result

        return build

    def _template(self, node: ir.Template) -> Compiled:
        parts, at, limits = [self.compile(part) for part in node.parts], node.at, self.limits

        def build(frame: Frame) -> str:
            pieces, size = [], 0
            for part in parts:
                pieces.append(placed(at, as_text, part(frame), limits, frame["$m"].charge))
                size += len(pieces[-1])
                if size > limits.text_bytes:
                    raise LimitFault(f"a text over {limits.text_bytes // 1024:,} KiB", at)
            frame["$m"].charge(size // 16)
            return placed(at, check_text, "".join(pieces), limits)

        return build

    def _call(self, node: ir.Call) -> Compiled:
        if node.name in COMPILED:
            return COMPILED[node.name](node, self.compile)
        function, price, at = FUNCTIONS[node.name], price_of(node.name), node.at
        args = [self.compile(arg) for arg in node.args]

        def call(frame: Frame) -> Any:
            machine = frame["$m"]
            values = [arg(frame) for arg in args]
            # Before the call: a call that fails has done work, too.
            machine.charge(price(*values))
            result = placed(at, function, machine, *values)
            machine.charge(made(result))
            return result

        return call

    def _comprehension(self, node: ir.Comprehension) -> Compiled:
        element_of = self.compile(node.element)
        condition = self.compile(node.condition) if node.condition else None
        bind = self.binder(node)

        def build(frame: Frame) -> list[Any]:
            return [
                element_of(frame)
                for _ in bind(frame)
                if condition is None or truthy(condition(frame))
            ]

        return build

    def binder(self, node: ir.Comprehension) -> Callable[[Frame], Iterator[None]]:
        """Returns a generator function that sets the comprehension's names for each element.

        At the end it restores what the names were before.
        """
        source, names, at, work = self.compile(node.source), node.names, node.at, element_work(node)

        def bind(frame: Frame) -> Iterator[None]:
            elements = placed(at, elements_of, source(frame), len(names), frame["$m"].charge)
            charge = frame["$m"].charge
            # `_` may also be a variable outside the comprehension.
            before = {name: frame[name] for name in names if name in frame}
            try:
                for value in elements:
                    charge(work)
                    if len(names) == 1:
                        frame[names[0]] = value
                    else:
                        frame[names[0]], frame[names[1]] = value
                    yield
            finally:
                for name in names:
                    frame.pop(name, None)
                frame.update(before)

        return bind

    _TABLE: dict[type, Any] = {
        ir.Const: _const,
        ir.Local: _local,
        ir.Unary: _unary,
        ir.Binary: _binary,
        ir.Logic: _logic,
        ir.Choose: _choose,
        ir.Member: _member,
        ir.Index: _index,
        ir.ListOf: _list,
        ir.ObjectOf: _object,
        ir.Template: _template,
        ir.Call: _call,
        ir.Comprehension: _comprehension,
    }


def spread_list(value: Any, charge: Charge) -> list[Any]:
    """Returns what `...value` adds to a list. Raises Fault if it is not a list."""
    if type(value) is not list:
        raise Fault("TypeMismatch", f"only a list can be spread into a list, not {kind(value)}")
    charge(len(value) // 16)
    return value


def spread_object(value: Any, charge: Charge) -> dict[str, Any]:
    """Returns what `...value` adds to an object. Raises Fault if it is not an object."""
    if type(value) is not dict:
        raise Fault(
            "TypeMismatch", f"only an object can be spread into an object, not {kind(value)}"
        )
    charge(len(value) // 2 + looked_up(value))
    return value


def elements_of(value: Any, arity: int, charge: Charge) -> list[Any]:
    """Returns what a loop walks: the elements of a list, or the keys of an object.

    With two names (`arity` 2) it returns pairs: position and element, or key and value.
    """
    if arity == 2 or type(value) is dict:
        charge(len(value) if type(value) is list or type(value) is dict else 0)
    if type(value) is list:
        return value if arity == 1 else [[i, item] for i, item in enumerate(value)]
    if type(value) is dict:
        return list(value) if arity == 1 else [[key, item] for key, item in value.items()]
    hint = (
        '; split(text, "") gives its characters'
        if type(value) is str
        else "; range(n) counts"
        if is_number(value)
        else ""
    )
    raise Fault("TypeMismatch", f"can only walk a list or an object, not {kind(value)}{hint}")
