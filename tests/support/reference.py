"""What a generated program must give: a second, simpler meaning of the language, to hold the
interpreter against.

It walks the structure that `generate` makes, in plain Python, one thing after the other: no
compiler, no snapshots, no clock, nothing from `rhythm`. An operation is carried out when it is
started; only its failure waits for the `await`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

Node = tuple[Any, ...]
Block = list[Node]
Locals = dict[str, Any]


class Expected(NamedTuple):
    """How the program ends: `completed` with this result, or `failed` with this code."""

    status: str
    value: Any


class Thrown(Exception):
    """An error of the workflow. The messages of the run-time's own errors are not known here, and
    nobody asks for them."""

    def __init__(self, code: str, message: str | None = None) -> None:
        super().__init__(code)
        self.code, self.message = code, message

    def value(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message}


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def expect(workflows: dict[str, Block], name: str) -> Expected:
    """How the workflow of that name ends."""
    try:
        return Expected("completed", Reference(workflows).body(workflows[name], {}))
    except Thrown as error:
        return Expected("failed", error.code)


class Reference:
    def __init__(self, workflows: dict[str, Block]) -> None:
        self.workflows = workflows

    def body(self, block: Block, locals: Locals) -> Any:
        """Runs a workflow or a branch to its `return`."""
        try:
            self.block(block, locals)
        except _Return as result:
            return result.value
        return None

    def block(self, block: Block, locals: Locals) -> None:
        for statement in block:
            _STATEMENTS[statement[0]](self, locals, *statement[1:])

    def value(self, node: Node, locals: Locals) -> Any:
        return _EXPRESSIONS[node[0]](self, locals, *node[1:])

    # statements

    def _let(self, locals: Locals, word: str, name: str, value: Node) -> None:
        locals[name] = self.value(value, locals)

    def _assign(self, locals: Locals, target: Node, op: str, value: Node) -> None:
        new = self.value(value, locals)
        if op != "=":
            new = compute(op[0], self.value(target, locals), new)
        if target[0] == "name":
            locals[target[1]] = new
            return
        root = target[1][1]
        key = target[2] if target[0] == "member" else self.value(target[2], locals)
        locals[root] = _changed(locals[root], key, new)

    def _unpack_list(self, locals: Locals, names: list[str], value: Node) -> None:
        items = self.value(value, locals)
        for i, name in enumerate(names):
            locals[name] = _element(items, i)

    def _unpack_object(
        self, locals: Locals, fields: list[tuple[str, str, Node | None]], value: Node
    ) -> None:
        source = self.value(value, locals)
        for key, name, default in fields:
            locals[name] = (
                _member(source, key)
                if default is None or key in source
                else self.value(default, locals)
            )

    def _if(self, locals: Locals, arms: list[tuple[Node, Block]], otherwise: Block | None) -> None:
        for condition, block in arms:
            if truth(self.value(condition, locals)):
                return self.block(block, locals)
        return self.block(otherwise or [], locals)

    def _while(self, locals: Locals, condition: Node, body: Block) -> None:
        while truth(self.value(condition, locals)):
            try:
                self.block(body, locals)
            except _Continue:
                continue
            except _Break:
                break

    def _for(self, locals: Locals, names: list[str], source: Node, body: Block) -> None:
        for values in _walk(self.value(source, locals), len(names)):
            locals.update(zip(names, values, strict=True))
            try:
                self.block(body, locals)
            except _Continue:
                continue
            except _Break:
                break

    def _completed(self, locals: Locals, name: str, group: Node, body: Block) -> None:
        for outcome in self._outcomes(locals, group[2]).values():
            locals[name] = _status(outcome)
            self.block(body, locals)

    def _jump(self, locals: Locals, word: str) -> None:
        raise _Break if word == "break" else _Continue

    def _return(self, locals: Locals, value: Node) -> None:
        raise _Return(self.value(value, locals))

    def _throw(self, locals: Locals, value: Node) -> None:
        thrown = self.value(value, locals)
        if isinstance(thrown, str):
            raise Thrown("Error", thrown)
        raise Thrown(thrown.get("code", "Error"), thrown.get("message", ""))

    def _try(
        self,
        locals: Locals,
        body: Block,
        error: str | None,
        handler: Block | None,
        cleanup: Block | None,
    ) -> None:
        try:
            try:
                self.block(body, locals)
            except Thrown as thrown:
                if handler is None:
                    raise
                if error:
                    locals[error] = thrown.value()
                self.block(handler, locals)
        finally:
            self.block(cleanup or [], locals)

    def _await(self, locals: Locals, word: str, name: str | None, operation: Node) -> None:
        outcome = self.outcome(operation, locals)
        if isinstance(outcome, Thrown):
            raise outcome
        if name:
            locals[name] = outcome

    def _start(self, locals: Locals, name: str, operation: Node) -> None:
        if operation[0] in ("list", "each"):
            locals[name] = list(self._outcomes(locals, operation).values())
        else:
            locals[name] = self.outcome(operation, locals)

    def _mail(self, locals: Locals, name: str, value: Node, operation: Node) -> None:
        """What an execution sends itself lies in its mailbox when it has waited for anything."""
        sent = self.value(value, locals)
        self.outcome(operation, locals)
        locals[name] = sent

    # operations: the result, or the failure as a value

    def outcome(self, operation: Node, locals: Locals) -> Any:
        return _OPERATIONS[operation[0]](self, locals, *operation[1:])

    def _task(self, locals: Locals, name: str, inputs: Node) -> Any:
        given = self.value(inputs, locals)
        if name == "fail":
            return Thrown(given["code"], given.get("message", "it failed"))
        if name == "add":
            return given["a"] + given["b"]
        return given["x"] * 2 if name == "double" else given["value"]

    def _workflow(self, locals: Locals, name: str, inputs: Node) -> Any:
        return self._child(self.workflows[name], {"inputs": self.value(inputs, locals)})

    def _branch(self, locals: Locals, block: Block) -> Any:
        return self._child(block, copy.deepcopy(locals))

    def _child(self, block: Block, locals: Locals) -> Any:
        try:
            return self.body(block, locals)
        except Thrown as error:
            return Thrown("ChildFailed", error.message)

    def _sleep(self, locals: Locals, duration: Node) -> None:
        self.value(duration, locals)

    def _id(self, locals: Locals, name: str) -> Any:
        return locals[name]

    def _group(self, locals: Locals, mode: str, items: Node, options: dict[str, Any]) -> Any:
        outcomes = self._outcomes(locals, items)
        good = {
            key: outcome for key, outcome in outcomes.items() if not isinstance(outcome, Thrown)
        }
        bad = [outcome for outcome in outcomes.values() if isinstance(outcome, Thrown)]
        if mode == "race":
            key = next(iter(outcomes))
            return {"key": key, **_status(outcomes[key])}
        if mode == "any" or "need" in options:
            found = [{"key": key, "result": result} for key, result in good.items()][
                : options.get("need", 1)
            ]
            if len(found) < options.get("need", 1):
                return Thrown("AllFailed")
            return found[0] if mode == "any" else found
        if options.get("settle"):
            outcomes = {key: _status(outcome) for key, outcome in outcomes.items()}
        elif bad:
            return bad[0]
        return outcomes if items[0] == "object" else list(outcomes.values())

    def _outcomes(self, locals: Locals, items: Node) -> dict[Any, Any]:
        if items[0] == "name":
            return dict(enumerate(locals[items[1]]))
        if items[0] == "object":
            return {key: self.outcome(item, locals) for key, item in items[1]}
        if items[0] == "list":
            return {i: self.outcome(item, locals) for i, item in enumerate(items[1])}
        _, operation, name, source = items
        return {
            i: self.outcome(operation, {**locals, name: x})
            for i, x in enumerate(self.value(source, locals))
        }

    # expressions

    def _literal(self, locals: Locals, value: Any) -> Any:
        return copy.deepcopy(value)

    def _name(self, locals: Locals, name: str) -> Any:
        return copy.deepcopy(locals[name])

    def _binary(self, locals: Locals, op: str, left: Node, right: Node) -> Any:
        return compute(op, self.value(left, locals), self.value(right, locals))

    def _negative(self, locals: Locals, value: Node) -> Any:
        return compute("-", 0, self.value(value, locals))

    def _not(self, locals: Locals, value: Node) -> bool:
        return not truth(self.value(value, locals))

    def _logic(self, locals: Locals, op: str, left: Node, right: Node) -> Any:
        first = self.value(_or_null(left) if op == "??" else left, locals)
        decided = {"&&": not truth(first), "||": truth(first), "??": first is not None}[op]
        return first if decided else self.value(right, locals)

    def _choose(self, locals: Locals, condition: Node, yes: Node, no: Node) -> Any:
        return self.value(yes if truth(self.value(condition, locals)) else no, locals)

    def _member_of(self, locals: Locals, target: Node, name: str, optional: bool) -> Any:
        value = self.value(target, locals)
        return None if optional and (value is None or name not in value) else _member(value, name)

    def _element_of(self, locals: Locals, target: Node, index: Node) -> Any:
        return _element(self.value(target, locals), self.value(index, locals))

    def _list(self, locals: Locals, items: list[Node]) -> list[Any]:
        made: list[Any] = []
        for item in items:
            made += (
                self.value(item[1], locals) if item[0] == "spread" else [self.value(item, locals)]
            )
        return made

    def _object(self, locals: Locals, entries: list[tuple[str | None, Node]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in entries:
            made.update(
                self.value(value, locals) if key is None else {key: self.value(value, locals)}
            )
        return made

    def _template(self, locals: Locals, parts: list[Node]) -> str:
        return "".join(_shown(self.value(part, locals)) for part in parts)

    def _comprehension(
        self, locals: Locals, element: Node, name: str, source: Node, condition: Node | None
    ) -> list[Any]:
        made = []
        for value in self.value(source, locals):
            inner = {**locals, name: value}
            if condition is None or truth(self.value(condition, inner)):
                made.append(self.value(element, inner))
        return made

    def _call(self, locals: Locals, name: str, args: list[Node]) -> Any:
        return _FUNCTIONS[name](*[self.value(arg, locals) for arg in args])


_STATEMENTS: dict[str, Callable[..., None]] = {
    "let": Reference._let, "assign": Reference._assign, "unpack_list": Reference._unpack_list,
    "unpack_object": Reference._unpack_object,
    "if": Reference._if, "while": Reference._while, "for": Reference._for,
    "completed": Reference._completed, "jump": Reference._jump,
    "return": Reference._return, "throw": Reference._throw, "try": Reference._try,
    "await": Reference._await, "start": Reference._start,
    "mail": Reference._mail,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "task": Reference._task, "workflow": Reference._workflow, "branch": Reference._branch,
    "sleep": Reference._sleep,
    "id": Reference._id, "group": Reference._group,
}  # fmt: skip
_EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "literal": Reference._literal, "name": Reference._name, "binary": Reference._binary,
    "negative": Reference._negative,
    "not": Reference._not, "logic": Reference._logic, "choose": Reference._choose,
    "member": Reference._member_of,
    "index": Reference._element_of, "list": Reference._list, "object": Reference._object,
    "template": Reference._template,
    "comprehension": Reference._comprehension, "call": Reference._call,
}  # fmt: skip


def truth(value: Any) -> bool:
    return isinstance(value, list | dict) or bool(value)


def same(left: Any, right: Any) -> bool:
    """`==`: numbers by value, true is not 1, the rest by content."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def compute(op: str, left: Any, right: Any) -> Any:
    if op in ("==", "!="):
        return same(left, right) is (op == "==")
    if op == "in":
        return any(same(left, item) for item in right) if isinstance(right, list) else left in right
    if op in ("<", "<=", ">", ">="):
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]
    if op == "+" and isinstance(left, str | list):
        return left + right
    return _fits(_number(op, left, right))


def _number(op: str, left: Any, right: Any) -> int | float:
    if op in ("/", "%") and right == 0:
        raise Thrown("DivisionByZero")
    if op == "/" and isinstance(left, int) and isinstance(right, int):
        quotient = Fraction(left, right)
        return quotient.numerator if quotient.denominator == 1 else float(quotient)
    if op == "%":
        quotient = Fraction(left) / Fraction(right)
        rest = Fraction(left) - Fraction(right) * math.trunc(quotient)
        return (
            int(rest)
            if isinstance(left, int) and isinstance(right, int)
            else math.copysign(float(rest), left)
        )
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
    }[op]()


def _fits(number: int | float) -> int | float:
    if isinstance(number, int) and number.bit_length() > 63 and number != -(2**63):
        raise Thrown("Overflow")
    if not math.isfinite(number):
        raise Thrown("Overflow")
    return number


def _walk(value: Any, names: int) -> list[tuple[Any, ...]]:
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    if names == 2:
        return pairs
    return [(key if isinstance(value, dict) else item,) for key, item in pairs]


def _or_null(node: Node) -> Node:
    """The left side of a `??`: its last property may be missing."""
    return ("member", *node[1:3], True) if node[0] == "member" else node


def _member(target: Any, name: str) -> Any:
    if name not in target:
        raise Thrown("MissingProperty")
    return target[name]


def _element(target: Any, index: Any) -> Any:
    if isinstance(target, dict):
        return _member(target, index)
    if not -len(target) <= index < len(target):
        raise Thrown("IndexOutOfRange")
    return target[index]


def _changed(target: Any, key: Any, value: Any) -> Any:
    changed = copy.deepcopy(target)
    if isinstance(changed, list):
        _element(changed, key)
    changed[key] = value
    return changed


def _status(outcome: Any) -> dict[str, Any]:
    if isinstance(outcome, Thrown):
        return {"status": "failed", "error": outcome.value()}
    return {"status": "completed", "result": outcome}


def _shown(value: Any) -> str:
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def _sum(items: list[Any]) -> Any:
    total = 0
    for item in items:
        total = compute("+", total, item)
    return total


def _unique(items: list[Any]) -> list[Any]:
    return [
        item
        for i, item in enumerate(items)
        if not any(same(item, earlier) for earlier in items[:i])
    ]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "sum": _sum, "min": min, "max": max, "abs": lambda x: _fits(abs(x)),
    "floor": lambda x: _fits(math.floor(x)),
    "round": lambda x: _fits(math.floor(Fraction(x) + Fraction(1, 2))), "str": _shown,
    "upper": str.upper, "lower": str.lower,
    "trim": str.strip, "join": lambda items, mark: mark.join(map(_shown, items)),
    "split": lambda text, mark: text.split(mark),
    "replace": str.replace, "starts_with": str.startswith, "slice": lambda x, start,
    end: x[start:end], "sort": sorted,
    "reverse": lambda x: x[::-1], "unique": _unique, "range": lambda *args: list(range(*args)),
    "keys": list,
    "values": lambda x: list(x.values()),
    "merge": lambda *objects: {key: value for item in objects for key, value in item.items()},
    "pick": lambda x, names: {name: x[name] for name in names if name in x}, "get": lambda x, key,
    default: x.get(key, default),
    "find_index": lambda items, x: next((i for i, item in enumerate(items) if same(item, x)), -1),
    "contains": lambda container, x: compute("in", x, container),
    "concat": lambda *lists: [item for items in lists for item in items],
}  # fmt: skip
