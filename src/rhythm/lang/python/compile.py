"""From a Python function to a verified program, or to everything that is wrong with it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

from rhythm.ir.codec import dump_without_places
from rhythm.ir.locals import unset_reads
from rhythm.ir.program import Program, version_of
from rhythm.ir.verify import verify
from rhythm.lang.flow import nodes
from rhythm.lang.flow.lower import lower_tree
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.python.effects import Effects
from rhythm.lang.python.exceptions import readable_errors
from rhythm.lang.python.expressions import EXPRESSIONS
from rhythm.lang.python.lazy import walked
from rhythm.lang.python.names import MISSING, Around
from rhythm.lang.python.operations import check_operations
from rhythm.lang.python.places import FunctionText, Unreadable, read_function, shown_name
from rhythm.lang.python.reached import check_reached
from rhythm.lang.python.sharing import check_sharing
from rhythm.lang.python.statements import STATEMENTS, assigned_names
from rhythm.lang.python.translation import Translation
from rhythm.lang.python.usage import check_types
from rhythm.lang.report import Compilation
from rhythm.lang.source import Diagnostic, Source, in_order
from rhythm.limits import DEFAULT_LIMITS

LANGUAGE = "python"


def compile_function(
    function: Callable[..., Any], name: str, options: dict[str, Any]
) -> Compilation:
    """Compiles a workflow function. Never raises: problems are returned as diagnostics.

    `options` have the schema of its inputs, as its hints declare them.
    """
    try:
        text = read_function(function)
    except Unreadable as problem:
        return _unreadable(function, str(problem))
    problems = Problems(DEFAULT_LIMITS.diagnostics)
    translated = None
    try:
        translated = _Function(function, text, problems).workflow(name, options)
    except TooManyProblems:
        pass
    except RecursionError:
        start, end = text.span(text.tree)
        problems.report("P003", "nested too deep to be read", start, end)
    if translated is None or problems.errors:
        return Compilation(text.source, in_order(problems.found))
    workflow, around = translated
    program = _lowered(text, workflow, options)
    program = _check(program, text, around, problems)
    found = in_order(problems.found)
    if problems.errors:
        return Compilation(text.source, found)
    verified = verify(_with_version(program, text))
    return Compilation(text.source, found, ((workflow, options),), (verified,))


def _unreadable(function: Callable[..., Any], message: str) -> Compilation:
    code = inspect.unwrap(function).__code__
    name = shown_name(code.co_filename)
    source = Source(name, "\n" * (code.co_firstlineno - 1) + f"{function.__name__}")
    at = len(source.text) - len(function.__name__)
    wrong = Diagnostic("P001", "error", message, at, len(source.text))
    return Compilation(source, [wrong])


def _lowered(text: FunctionText, workflow: nodes.Workflow, options: dict[str, Any]) -> Program:
    span = (workflow.start, workflow.end)
    return lower_tree(text.source, workflow, options, "", span, LANGUAGE)


def _with_version(program: Program, text: FunctionText) -> Program:
    """Returns the program with its version.

    The same text may be compiled to another program: constants, hints and the parameters of tasks
    are written elsewhere. So the version covers the program, too.
    """
    return program.replace(version=version_of(LANGUAGE, text.own, dump_without_places(program)))


def _check(program: Program, text: FunctionText, around: Around, problems: Problems) -> Program:
    """Reports what only the whole program shows: names without a value, shared values.

    Returns the program, with checks at run time for what cannot be known before.
    """
    captures: dict[int, tuple[str, ...]] = {}
    try:
        for pc, name in unset_reads(program, captures):
            at = getattr(program.code[pc], "at", 0)
            if name.startswith("$"):
                continue
            problems.report(
                "P021",
                f"`{name}` may have no value here",
                *_read_at(text, name, at),
                help=f"set it on every way that leads here, such as {name} = None before",
            )
        program, changes = check_sharing(program, around.shared, around.plain)
        for change in changes:
            problems.report(
                change.code, change.message, *_line_at(text, change.at), help=change.help
            )
    except TooManyProblems:
        pass
    return program


def _read_at(text: FunctionText, name: str, at: int) -> tuple[int, int]:
    """Returns where the name is read first, from a place on."""
    names = (node for node in ast.walk(text.tree) if isinstance(node, ast.Name))
    spans = [text.span(node) for node in names if node.id == name]
    return min((span for span in spans if span[0] >= at), default=(at, at + 1))


def _line_at(text: FunctionText, at: int) -> tuple[int, int]:
    """Returns the statement or expression that begins at a place, as far as its line goes."""
    spans = [text.span(node) for node in ast.walk(text.tree) if hasattr(node, "lineno")]
    end = max((end for start, end in spans if start == at), default=at + 1)
    line_end = text.source.text.find("\n", at)
    return at, max(min(end, line_end if line_end >= 0 else end), at + 1)


class _Function:
    """The translation of one function: its parameters, then its body."""

    def __init__(
        self, function: Callable[..., Any], text: FunctionText, problems: Problems
    ) -> None:
        self.function, self.text = function, text
        self.around = Around(function)
        self.t = Translation(text, self.around, problems, Effects(), EXPRESSIONS, STATEMENTS)

    def workflow(self, name: str, options: dict[str, Any]) -> tuple[nodes.Workflow, Around]:
        """Returns the function as a workflow of the syntax tree, and what it took from around.

        `options` has the schema of its inputs, too.
        """
        t, tree = self.t, self.text.tree
        parameters = list(inspect.signature(self.function).parameters.values())
        t.walked, t.readable_errors = walked(tree), readable_errors(tree)
        t.variables = {*assigned_names(tree.body), *(p.name for p in parameters)}
        t.lasting = assigned_names(tree.body, errors=False) | {p.name for p in parameters}
        t.annotations = {**self._hints(), **dict(self._annotated(tree))}
        t.hints = {p.name: t.annotations.get(p.name) for p in parameters}
        start, end = self.text.span(tree)
        t.write(nodes.Declare(start, end, tuple(sorted(t.variables))))
        inputs = self._parameters(options["inputs"])
        t.statements(tree.body)
        body = nodes.Block(start, end, tuple(t.out))
        start = min([start, *(self.text.span(each)[0] - 1 for each in tree.decorator_list)])
        made = nodes.Workflow(start, end, name, False, (), (), body, inputs)
        if not t.problems.errors:
            self._check(made, options)
        return made, self.around

    def _check(self, made: nodes.Workflow, options: dict[str, Any]) -> None:
        """Reports what the engine would refuse, and what is most likely a mistake."""
        check_operations(made, options, self.t.problems)
        check_reached(self.t, self.text.tree.body)
        check_types(self.t, self.text.tree, self.function)

    def _hints(self) -> dict[str, Any]:
        try:
            hints = get_type_hints(self.function)
        except Exception:  # a hint that cannot be evaluated says nothing
            return {}
        return {name: hint for name, hint in hints.items() if name != "return"}

    def _annotated(self, tree: ast.AST) -> Iterator[tuple[str, Any]]:
        """Yields the hints of variables, `x: Order = …`, as far as they can be evaluated."""
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found = _evaluated(node.annotation, self.around)
                if found is not MISSING:
                    yield node.target.id, found

    def _parameters(self, declared: Mapping[str, Any]) -> tuple[nodes.Parameter, ...]:
        """Returns the parameters as inputs, with their schema; refuses those that have none."""
        t, tree = self.t, self.text.tree
        written = {arg.arg: arg for arg in ast.walk(tree.args) if isinstance(arg, ast.arg)}
        found: list[nodes.Parameter] = []
        for i, p in enumerate(inspect.signature(self.function).parameters.values()):
            node = written[p.name]
            if i == 0 and p.name in ("self", "cls") and p.annotation is p.empty:
                message = "a method cannot be a workflow: its object is not kept"
                t.refuse("P002", node, message, "write the function at the top of the module")
                continue
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                star, kind = ("**", "dict") if p.kind is p.VAR_KEYWORD else ("*", "list")
                t.refuse(
                    "P002",
                    node,
                    f"`{star}{p.name}`: inputs of a workflow have names",
                    f"write each of them, or take one: {p.name}: {kind}",
                )
                continue
            schema, required = declared["properties"][p.name], p.default is p.empty
            if not required and "default" not in schema:
                t.refuse(
                    "P002",
                    node,
                    f"the default of `{p.name}` is not JSON",
                    f"write {p.name} = None, and set it in the workflow",
                )
            if isinstance(default := schema.get("default"), list | dict):
                self.around.shared.append(default)  # Python makes it once, for all calls
            found.append(nodes.Parameter(*self.text.span(node), p.name, schema, required))
        return tuple(found)


def _evaluated(node: ast.expr, around: Around) -> Any:
    """Returns the hint that an annotation names: a class, or `list[Class]`, `Class | None`."""
    if isinstance(node, ast.Subscript):
        base, inner = around.resolve(node.value), node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        found = [_evaluated(part, around) for part in parts]
        if base is MISSING or MISSING in found:
            return MISSING
        try:
            return base[tuple(found) if len(found) > 1 else found[0]]
        except TypeError:
            return MISSING
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _evaluated(node.left, around), _evaluated(node.right, around)
        return MISSING if MISSING in (left, right) else left | right
    if isinstance(node, ast.Constant) and node.value is None:
        return type(None)
    return around.resolve(node)
