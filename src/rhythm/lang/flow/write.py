"""The text of a workflow whose syntax tree was made by another front end: for `rhythm convert`.

It writes what `.flow` has. What only Python workflows have (`and`, `or`, endless loops, hidden
names) is written with what `.flow` has, and means the same. The result is formatted as `rhythm fmt`
would do it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rhythm.ir.operations import EMITS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.block_scopes import with_block_scopes, writable
from rhythm.lang.flow.check import ParsedFlow
from rhythm.lang.flow.constants import WORD, constant_text, escaped, key_text
from rhythm.lang.flow.format import format_source
from rhythm.lang.flow.grammar.expressions import PRECEDENCE
from rhythm.lang.flow.lower import GIVEN
from rhythm.lang.flow.nodes import Block, Node
from rhythm.lang.flow.rules.annotations import ANNOTATIONS
from rhythm.lang.flow.rules.kinds import is_operation
from rhythm.lang.flow.tokens import RESERVED
from rhythm.lang.flow.types import inputs_schema, parameters_text

CONDITIONAL, UNARY, POSTFIX = 0, 8, 9  # how tightly these bind; the operators are between them
HELD = "held"  # the variable of an expression that is needed twice
# Calls that give true or false, whatever they are given.
GIVES_BOOL = frozenset(
    f"py.{name}" for name in "truth eq ne lt le gt ge contains isinstance matches any all".split()
)


class Unwritable(ValueError):
    """The workflow cannot be written in `.flow`."""


def write_workflow(workflow: nodes.Workflow, options: Mapping[str, Any]) -> str:
    """Returns the text of a workflow, with the annotations that set its options.

    Raises `Unwritable` if its name cannot stand in a `.flow` file.
    """
    if not WORD.fullmatch(workflow.name) or workflow.name in RESERVED:
        raise Unwritable(
            f"the workflow `{workflow.name}` cannot be written in .flow, where a name is a word of "
            "letters, digits and _: give it another with @rhythm.workflow(name=…)"
        )
    header = _typed_header(workflow, options) if workflow.inputs is not None else None
    if header is None:
        workflow, header = _checking_itself(workflow, options), f"{workflow.name}(inputs)"
    scoped = with_block_scopes(workflow)
    names = _names_in(scoped.body) | {each.name for each in scoped.inputs or ()}
    lines = [*_annotations(options), f"workflow {header} {{"]
    lines += [*_Writer(names).statements(scoped.body), "}", ""]
    return format_source("\n".join(lines), workflow.name)


def _typed_header(workflow: nodes.Workflow, options: Mapping[str, Any]) -> str | None:
    """Returns a header that declares just these inputs; None if none can."""
    if not all(writable(each.name) for each in workflow.inputs or ()):
        return None
    header = f"{workflow.name}({parameters_text(options['inputs'])})"
    read = ParsedFlow(f"workflow {header} {{ return null }}", "header.flow")
    if read.problems.errors or len(read.workflows) != 1:
        return None
    inputs = read.workflows[0].inputs or ()
    declared = inputs_schema(inputs, other_keys="on" in options)
    # as text, in which 10 is not 10.0
    return header if _text(declared) == _text(options["inputs"]) else None


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _checking_itself(workflow: nodes.Workflow, options: Mapping[str, Any]) -> nodes.Workflow:
    """Returns a workflow that takes any inputs, and checks them by its first statement."""
    if workflow.inputs is None:
        return workflow
    at = workflow.start, workflow.end
    given = nodes.Name(*at, GIVEN)
    args = (nodes.Name(*at, "inputs"), nodes.Literal(*at, options["inputs"]),
            nodes.Literal(*at, workflow.name))  # fmt: skip
    check = nodes.Let(*at, False, given, nodes.Call(*at, "check_inputs", args, at[1]))
    taken = [_taken(given, each.name, at) for each in workflow.inputs]
    body = workflow.body.replace(statements=(check, *taken, *workflow.body.statements))
    return workflow.replace(body=body, inputs=None)


def _taken(given: nodes.Name, name: str, at: tuple[int, int]) -> Node:
    value = nodes.Index(*at, given, nodes.Literal(*at, name))
    return nodes.Assign(*at, nodes.Name(*at, name), "=", value)


def _annotations(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if name not in ANNOTATIONS:  # the inputs, which the header declares
            continue
        for each in value if name in ("on", "schedule") else [value]:
            if name == "schedule":
                rest = {key: given for key, given in each.items() if key != "cron"}
                given = [each["cron"], *([rest] if rest else [])]
            else:
                given = [each]
            yield f"@{name}({', '.join(map(constant_text, given))})"


def _names_in(node: object) -> set[str]:
    if isinstance(node, nodes.Name):
        return {node.name}
    parts = node if isinstance(node, tuple) else node.__dict__.values()
    return set().union(*(_names_in(part) for part in parts if isinstance(part, tuple | Node)))


class _Writer:
    """Writes the statements and expressions of one workflow."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def _free(self) -> str:
        """Returns a name that nothing has yet."""
        name, number = HELD, 2
        while name in self.names:
            name, number = f"{HELD}{number}", number + 1
        self.names.add(name)
        return name

    # Statements.

    def statements(self, block: Block) -> Iterator[str]:
        for statement in block.statements:
            yield from self._STATEMENTS[type(statement)](self, statement)

    def _block(self, block: Block) -> Iterator[str]:
        yield from self.statements(block)
        yield "}"

    def _let(self, node: nodes.Let) -> Iterator[str]:
        value = node.value or nodes.Literal(node.start, node.end, None)
        yield from self._ending(f"let {self._expression(node.target)} = ", value)

    def _assign(self, node: nodes.Assign) -> Iterator[str]:
        yield from self._ending(f"{self._expression(node.target)} {node.op} ", node.value)

    def _return(self, node: nodes.Return) -> Iterator[str]:
        if node.value is None:
            yield "return null"
        else:
            yield from self._ending("return ", node.value)

    def _ending(self, before: str, value: Node) -> Iterator[str]:
        """Writes a statement that ends with a value.

        Of `a or b`, what is needed twice gets a line of its own before.
        """
        if isinstance(value, nodes.Logic) and value.op in ("and", "or"):
            first, rest = _first_of(value)
            if not _is_cheap(first):
                held = nodes.Name(first.start, first.end, self._free())
                yield f"let {held.name} = {self._expression(first)}"
                value = value.replace(left=held, right=rest)
        yield f"{before}{self._expression(value)}"

    def _expression_statement(self, node: nodes.ExpressionStatement) -> Iterator[str]:
        value, text = node.value, self._expression(node.value)
        called = isinstance(value, nodes.Call) and (value.name in EMITS or not is_operation(value))
        # `let _` says that nobody needs the value; and no statement may begin with a sign or `{`.
        yield text if called or isinstance(value, nodes.Await) else f"let _ = {text}"

    def _if(self, node: nodes.If) -> Iterator[str]:
        for i, (condition, block) in enumerate(node.arms):
            yield f"{'} else ' if i else ''}if ({self._expression(condition)}) {{"
            yield from self.statements(block)
        if node.otherwise is None or not node.otherwise.statements:
            yield "}"
            return
        inner = node.otherwise.statements
        if len(inner) == 1 and isinstance(inner[0], nodes.If):
            first, *rest = self._if(inner[0])
            yield f"}} else {first}"
            yield from rest
        else:
            yield "} else {"
            yield from self._block(node.otherwise)

    def _for(self, node: nodes.For) -> Iterator[str]:
        names = ", ".join(name.name for name in node.names)
        yield f"for ({names} in {self._expression(node.source)}) {{"
        yield from self._block(node.body)

    def _while(self, node: nodes.While) -> Iterator[str]:
        yield f"while ({self._expression(node.condition)}) {{"
        yield from self._block(node.body)

    def _forever(self, node: nodes.Forever) -> Iterator[str]:
        yield "while (true) {"
        yield from self._block(node.body)

    def _break(self, node: Node) -> Iterator[str]:
        yield "break"

    def _continue(self, node: Node) -> Iterator[str]:
        yield "continue"

    def _throw(self, node: nodes.Throw) -> Iterator[str]:
        yield f"throw {self._expression(node.value)}"

    def _try(self, node: nodes.Try) -> Iterator[str]:
        yield "try {"
        yield from self.statements(node.body)
        if node.handler is not None:
            yield f"}} catch{f' ({node.error.name})' if node.error else ''} {{"
            yield from self.statements(node.handler)
        if node.cleanup is not None:
            yield "} finally {"
            yield from self.statements(node.cleanup)
        yield "}"

    _STATEMENTS: dict[type[Node], Any] = {
        nodes.Let: _let,
        nodes.Assign: _assign,
        nodes.ExpressionStatement: _expression_statement,
        nodes.If: _if,
        nodes.For: _for,
        nodes.While: _while,
        nodes.Forever: _forever,
        nodes.Break: _break,
        nodes.Continue: _continue,
        nodes.Return: _return,
        nodes.Throw: _throw,
        nodes.Try: _try,
    }

    # Expressions.

    def _expression(self, node: Node, least: int = CONDITIONAL) -> str:
        """Returns an expression; in parentheses if it binds less tightly than `least`."""
        text, binds = self._EXPRESSIONS[type(node)](self, node)
        return text if binds >= least else f"({text})"

    def _all(self, parts: tuple[Node, ...]) -> str:
        return ", ".join(self._expression(part) for part in parts)

    def _literal(self, node: nodes.Literal) -> tuple[str, int]:
        text = constant_text(node.value)
        return text, UNARY if text.startswith("-") else POSTFIX

    def _name(self, node: nodes.Name) -> tuple[str, int]:
        return node.name, POSTFIX

    def _template(self, node: nodes.Template) -> tuple[str, int]:
        if all(_is_text(part) for part in node.parts):
            return constant_text("".join(part.value for part in node.parts)), POSTFIX  # type: ignore[attr-defined]  # they are literals
        parts = (
            escaped(part.value, "`")  # type: ignore[attr-defined]  # a literal
            if _is_text(part)
            else f"${{{self._expression(part)}}}"
            for part in node.parts
        )
        return f"`{''.join(parts)}`", POSTFIX

    def _spread(self, node: nodes.Spread) -> tuple[str, int]:
        return f"...{self._expression(node.value)}", POSTFIX

    def _list(self, node: nodes.ListLiteral | nodes.ListPattern) -> tuple[str, int]:
        items = node.items if isinstance(node, nodes.ListLiteral) else node.names
        return f"[{self._all(items)}]", POSTFIX

    def _object(self, node: nodes.ObjectLiteral) -> tuple[str, int]:
        return f"{{ {self._all(node.entries)} }}" if node.entries else "{}", POSTFIX

    def _entry(self, node: nodes.Entry) -> tuple[str, int]:
        value = self._expression(node.value)
        short = isinstance(node.value, nodes.Name) and value == node.key
        return value if short else f"{key_text(node.key)}: {value}", POSTFIX

    def _comprehension(self, node: nodes.Comprehension) -> tuple[str, int]:
        names = ", ".join(name.name for name in node.names)
        test = f" if {self._expression(node.condition)}" if node.condition else ""
        source = self._expression(node.source)
        return f"[{self._expression(node.element)} for {names} in {source}{test}]", POSTFIX

    def _unary(self, node: nodes.Unary) -> tuple[str, int]:
        if node.op == "!" and isinstance(node.value, nodes.Binary) and node.value.op == "==":
            return self._binary(node.value.replace(op="!="))
        value = self._expression(node.value, UNARY)
        doubled = node.op == "-" and value.startswith("-")  # `--` means nothing
        return f"{node.op}({value})" if doubled else f"{node.op}{value}", UNARY

    def _binary(self, node: nodes.Binary) -> tuple[str, int]:
        # Comparisons do not chain: both sides bind more tightly.
        binds = PRECEDENCE[node.op]
        left, right = (self._expression(side, binds + 1) for side in (node.left, node.right))
        return f"{left} {node.op} {right}", binds

    def _logic(self, node: nodes.Logic) -> tuple[str, int]:
        if node.op in ("and", "or"):
            return self._python_logic(node)
        binds = PRECEDENCE[node.op]
        left, right = self._expression(node.left, binds), self._expression(node.right, binds + 1)
        return f"{left} {node.op} {right}", binds

    def _python_logic(self, node: nodes.Logic) -> tuple[str, int]:
        """Writes Python's `and` and `or`, which give one of their operands.

        The first operand is needed twice. If evaluating it again would cost, or give another value,
        it is held by a comprehension over a list of one.
        """
        first, rest = _first_of(node)
        if _is_cheap(first):
            return self._chosen(node, first, rest), CONDITIONAL
        held = nodes.Name(first.start, first.end, self._free())
        chosen = self._chosen(node, held, rest)
        return f"[{chosen} for {held.name} in [{self._expression(first)}]][0]", POSTFIX

    def _chosen(self, node: nodes.Logic, first: Node, rest: Node) -> str:
        yes, no = (rest, first) if node.op == "and" else (first, rest)
        parts = self._expression(_truth(first), 1), self._expression(yes), self._expression(no)
        return "{} ? {} : {}".format(*parts)

    def _conditional(self, node: nodes.Conditional) -> tuple[str, int]:
        parts = (
            self._expression(node.condition, 1),
            self._expression(node.yes),
            self._expression(node.no),
        )
        return "{} ? {} : {}".format(*parts), CONDITIONAL

    def _member(self, node: nodes.Member) -> tuple[str, int]:
        mark = "?." if node.optional else "."
        return f"{self._expression(node.target, POSTFIX)}{mark}{node.name}", POSTFIX

    def _index(self, node: nodes.Index) -> tuple[str, int]:
        mark = "?." if node.optional else ""
        target = self._expression(node.target, POSTFIX)
        return f"{target}{mark}[{self._expression(node.index)}]", POSTFIX

    def _call(self, node: nodes.Call) -> tuple[str, int]:
        if node.name == "py.truth" and (asked := _truth(node.args[0])) != node:
            return self._EXPRESSIONS[type(asked)](self, asked)  # type: ignore[no-any-return]  # the table's methods all return one
        return f"{node.name}({self._all(node.args)})", POSTFIX

    def _await(self, node: nodes.Await) -> tuple[str, int]:
        return f"await {self._expression(node.value, UNARY)}", UNARY

    def _branch(self, node: nodes.BranchBlock) -> tuple[str, int]:
        return "\n".join(["branch {", *self._block(node.body)]), POSTFIX

    _EXPRESSIONS: dict[type[Node], Any] = {
        nodes.Literal: _literal,
        nodes.Name: _name,
        nodes.Template: _template,
        nodes.Spread: _spread,
        nodes.ListLiteral: _list,
        nodes.ListPattern: _list,
        nodes.ObjectLiteral: _object,
        nodes.Entry: _entry,
        nodes.Comprehension: _comprehension,
        nodes.Unary: _unary,
        nodes.Binary: _binary,
        nodes.Logic: _logic,
        nodes.Conditional: _conditional,
        nodes.Member: _member,
        nodes.Index: _index,
        nodes.Call: _call,
        nodes.Await: _await,
        nodes.BranchBlock: _branch,
    }


def _is_text(node: Node) -> bool:
    return isinstance(node, nodes.Literal) and isinstance(node.value, str)


def _first_of(node: nodes.Logic) -> tuple[Node, Node]:
    """Returns the first operand of `a or b or c`, and the rest as one expression."""
    left, right = node.left, node.right
    while isinstance(left, nodes.Logic) and left.op == node.op:
        right = node.replace(left=left.right, right=right)
        left = left.left
    return left, right


def _is_cheap(node: Node) -> bool:
    """Whether an expression can be written twice: it gives the same, and costs next to nothing."""
    while isinstance(node, nodes.Member | nodes.Index):
        if isinstance(node, nodes.Index) and not isinstance(node.index, nodes.Literal):
            return False
        node = node.target
    return isinstance(node, nodes.Name | nodes.Literal)


def _truth(node: Node) -> Node:
    """Returns whether a value is true by Python's rules.

    Of `a and b` only the truth is needed, so `&&` does: nothing is evaluated twice.
    """
    if isinstance(node, nodes.Logic) and node.op in ("and", "or"):
        op = "&&" if node.op == "and" else "||"
        return node.replace(op=op, left=_truth(node.left), right=_truth(node.right))
    if _is_bool(node):
        return node
    return nodes.Call(node.start, node.end, "py.truth", (node,), node.end)


def _is_bool(node: Node) -> bool:
    """Whether an expression gives true or false, whatever its parts give."""
    match node:
        case nodes.Literal(value=value):
            return isinstance(value, bool)
        case nodes.Unary(op=op):
            return op == "!"
        case nodes.Binary(op=op):
            return op in ("==", "!=", "in")
        case nodes.Call(name=name):
            return name in GIVES_BOOL
        case nodes.Logic(left=left, right=right) | nodes.Conditional(yes=left, no=right):
            return _is_bool(left) and _is_bool(right)
    return False
