"""Values that are used against their hints: arguments, operators, loops, subscripts, methods.

Only what is wrong for certain is reported, and as a warning: hints may be wrong, and another worker
may have another version of a task. Code that catches `TypeError` is left alone.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from rhythm.lang.flow.rules.surroundings import misfit_words
from rhythm.lang.hint_shapes import parameter_shape
from rhythm.lang.python.awaits import called
from rhythm.lang.python.inferred import BINARY, SAMPLES, Inference, is_builtin, tried
from rhythm.lang.python.names import MISSING, Callee
from rhythm.lang.python.translation import Translation
from rhythm.lang.shapes import NUMBER, OBJECT, Kind, misfit
from rhythm.suggest import nearest

COMPARED: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge), ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}  # fmt: skip
SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip
IN_PLACE: dict[type, Callable[[Any, Any], Any]] = {**BINARY, ast.Add: operator.iadd}
WALKING = frozenset("sum sorted list enumerate zip any all reversed iter".split())
TAKING: dict[str, Callable[[Any], Any]] = {"len": len, "abs": abs, "round": round, "range": range}
FORGIVING = frozenset({"TypeError", "AttributeError"})


def check_types(t: Translation, tree: ast.AsyncFunctionDef, function: Any) -> None:
    """Warns of values that are used as something that they cannot be."""
    _Usage(Inference(t, tree, function)).block(tree.body)


class _Usage(ast.NodeVisitor):
    def __init__(self, known: Inference) -> None:
        self.known, self.t = known, known.t
        self.forgiven = 0  # how many `try` blocks around catch what would be raised

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    # What is looked at.

    def visit_Try(self, node: ast.Try) -> None:
        forgiven = any(FORGIVING & set(_names(handler.type)) for handler in node.handlers)
        self.forgiven += forgiven
        self.block(node.body)
        self.forgiven -= forgiven
        for handler in node.handlers:
            self.block(handler.body)
        self.block([*node.orelse, *node.finalbody])

    def visit_For(self, node: ast.For) -> None:
        self._walked(node.iter)
        self._unpacked(node.target, node.iter, loop=True)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])

    def _comprehension(self, generators: list[ast.comprehension], elements: list[ast.expr]) -> None:
        for generator in generators:
            self._walked(generator.iter)
            self.visit(generator.iter)
            self.known.enter(generator)
            for condition in generator.ifs:
                self.visit(condition)
        for each in elements:
            self.visit(each)
        self.known.leave(generators)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """What a lambda is called with is not known."""
        self.known.scopes.append(dict.fromkeys(arg.arg for arg in node.args.args))
        self.visit(node.body)
        self.known.scopes.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._unpacked(target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._operated(node, node.op, node.target, node.value, IN_PLACE)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operated(node, node.op, node.left, node.right, BINARY)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) in COMPARED:
                sign, compare = COMPARED[type(op)]
                if self._pair_fails(compare, left, right):
                    self._report_pair(node, sign, left, right)
            left = right
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self._subscript(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        callee, _ = called(self.t, node.func)
        if callee is not None:
            self._arguments(node, callee)
        elif isinstance(node.func, ast.Name) and node.args and self._is_builtin(node.func):
            self._function(node, node.func.id)
        elif isinstance(node.func, ast.Attribute) and self.known.of(node.func.value):
            self._method(node, node.func)
        self.generic_visit(node)

    # What is wrong.

    def _arguments(self, node: ast.Call, callee: Callee) -> None:
        """Compares the arguments of a task or workflow with its hints."""
        named = {str(k.arg): k.value for k in node.keywords if k.arg is not None}
        try:
            bound = callee.signature.bind_partial(*node.args, **named).arguments
        except TypeError:  # reported already
            return
        for name, value in bound.items():
            p = callee.signature.parameters[name]
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            found = misfit(self.known.of(value), parameter_shape(p, callee.hints))
            if found:
                words = misfit_words(name, f"{callee.kind} `{callee.name}`", found)
                self.t.refuse("P104", value, *words)

    def _operated(
        self,
        node: ast.AST,
        op: ast.operator,
        left: ast.expr,
        right: ast.expr,
        table: dict[type, Callable[[Any, Any], Any]],
    ) -> None:
        text = isinstance(op, ast.Mod) and self._classes(left) == {str}  # "…%s" % value
        if not text and type(op) in table and self._pair_fails(table[type(op)], left, right):
            self._report_pair(node, SIGNS[type(op)], left, right)

    def _pair_fails(
        self, operation: Callable[[Any, Any], Any], left: ast.expr, right: ast.expr
    ) -> bool:
        one, other = self._classes(left), self._classes(right)
        if not one or not other or not (one | other) <= SAMPLES.keys():
            return False
        return all(tried(operation, a, b) is MISSING for a in one for b in other)

    def _report_pair(self, node: ast.AST, sign: str, left: ast.expr, right: ast.expr) -> None:
        both = f"{self._described(left)}, and {self._described(right)}"
        self._report(node, f"{both}: Python has no `{sign}` for these")

    def _walked(self, node: ast.expr) -> None:
        if self._lacks(node, "__iter__"):
            self._report(node, f"{self._described(node)}: it cannot be iterated")

    def _unpacked(self, target: ast.expr, value: ast.expr, loop: bool = False) -> None:
        """Compares the number of names in `a, b = value` with what the value has."""
        if not isinstance(target, ast.Tuple | ast.List):
            return
        if not loop and not isinstance(value, ast.Tuple | ast.List):
            self._walked(value)
            kinds, wanted = self._kinds(value), len(target.elts)
            lengths = [len(kind.parts) for kind in kinds if kind.parts is not None]
            starred = any(isinstance(each, ast.Starred) for each in target.elts)
            if kinds and len(lengths) == len(kinds) and wanted not in lengths and not starred:
                has = " or ".join(map(str, sorted({*lengths})))
                message = f"{self._described(value)} of {has}: it cannot be {wanted} names"
                self._report(value, message)

    def _subscript(self, node: ast.Subscript) -> None:
        kinds, key = self._kinds(node.value), node.slice
        index = key.value if isinstance(key, ast.Constant) else None
        if self._lacks(node.value, "__getitem__"):
            self._report(node, f"{self._described(node.value)}: it has no `[…]`")
        elif (
            kinds
            and all(kind.python in (list, str) for kind in kinds)
            and (isinstance(index, str | float))
        ):
            message = f"{self._described(node.value)}: its index is a whole number"
            self._report(node, message)
        elif isinstance(index, str) and kinds and all(_has_no(kind, index) for kind in kinds):
            fields = [name for kind in kinds for name in kind.fields or ()]
            near = nearest(index, fields)
            help = f'did you mean "{near}"?' if near else f"it has {', '.join(fields)}"
            self._report(node, f"{self._described(node.value)}, which has no `{index}`", help)

    def _function(self, node: ast.Call, name: str) -> None:
        first, *_ = node.args
        if name in WALKING or (name in ("min", "max") and len(node.args) == 1):
            for arg in node.args if name == "zip" else [first]:
                self._walked(arg)
        elif name in TAKING:
            classes = self._classes(first)
            if classes and classes <= SAMPLES.keys():
                if all(tried(TAKING[name], cls) is MISSING for cls in classes):
                    self._report(node, f"{self._described(first)}: `{name}` does not take it")
            elif name == "len" and self._lacks(first, "__len__"):
                self._report(node, f"{self._described(first)}: it has no length")

    def _method(self, node: ast.Call, function: ast.Attribute) -> None:
        classes = self._classes(function.value)
        basic = classes and classes <= SAMPLES.keys()
        if basic and not any(hasattr(cls, function.attr) for cls in classes):
            described = self._described(function.value)
            self._report(node, f"{described}: it has no method `{function.attr}`")

    # What is known.

    def _kinds(self, node: ast.AST) -> tuple[Kind, ...]:
        shape = self.known.of(node)
        return shape.kinds if shape else ()

    def _classes(self, node: ast.AST) -> set[Any]:
        return {kind.python for kind in self._kinds(node)}

    def _lacks(self, node: ast.AST, method: str) -> bool:
        classes = self._classes(node)
        return bool(classes) and not any(cls is None or hasattr(cls, method) for cls in classes)

    def _is_builtin(self, name: ast.Name) -> bool:
        return is_builtin(self.t.outside(name))

    def _report(self, node: ast.AST, message: str, help: str = "") -> None:
        if not self.forgiven:
            advice = "correct it, or the hint if that is wrong"
            self.t.refuse("P106", node, message, help or advice)

    def _described(self, node: ast.AST) -> str:
        """Returns what an expression is, and where that is known from."""
        names = list(dict.fromkeys(_type_name(kind) for kind in self._kinds(node)))
        written = ast.unparse(node)
        shown = f"`{written}`" if len(written) <= 40 else "this"
        origin = self._origin(node)
        return f"{shown} is {f'{origin}, ' if origin else ''}{' or '.join(names)}"

    def _origin(self, node: ast.AST) -> str:
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            callee, _ = called(self.t, node.value.func)
            return f"the result of {callee.kind} `{callee.name}`" if callee else ""
        if isinstance(node, ast.Name) and len(values := self.known.assigned.get(node.id, [])) == 1:
            return self._origin(values[0])
        return ""


def _has_no(kind: Kind, key: str) -> bool:
    """Whether a hint names the fields of an object, and this is none of them."""
    named = kind.word == OBJECT and kind.name and kind.fields is not None
    return bool(named) and key not in (kind.fields or {})


def _type_name(kind: Kind) -> str:
    if kind.name:
        name = kind.name
    elif kind.word == NUMBER and kind.python is None:
        return "a number"
    else:
        name = kind.python.__name__ if kind.python else kind.word
    if name == "NoneType":
        return "None"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _names(node: ast.AST | None) -> Iterator[str]:
    """Yields the names of the exceptions that an `except` catches; a bare one catches all."""
    if node is None:
        yield "TypeError"
    for each in getattr(node, "elts", [node]):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
