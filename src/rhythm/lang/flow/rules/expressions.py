"""Expressions: every part is a value that is there at once; awaits and operations are refused."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from rhythm.ir.operations import BUILTINS, CALLABLE, EMITS, PYTHON, Signature
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Broken, Node
from rhythm.lang.flow.other_languages import FUNCTIONS_FROM_ELSEWHERE
from rhythm.lang.flow.rules.arguments import NAMED, check_literals, check_options, counted
from rhythm.lang.flow.rules.kinds import is_operation, root
from rhythm.lang.flow.rules.rewrites import Rewrites
from rhythm.suggest import nearest

TAKE_IDS = ("str", "json", "hash", "base64")  # builtins whose first argument may be an id


class ExpressionRules(Rewrites):
    """Checks expressions."""

    telling = False  # inside a command, whose message or data may contain an id

    @abstractmethod
    def _awaited(self, await_: nodes.Await) -> None:
        """Checks what is awaited, as if it were on a line of its own.

        Here it is called for an `await` that was refused.
        """

    @abstractmethod
    def _operation(self, node: Node) -> None:
        """Checks an operation, as if it were on a line of its own."""

    def _expression(self, node: Node, inside: str) -> None:
        check = self._EXPRESSIONS.get(type(node))
        if check:
            check(self, node, inside)

    def _refuse_await(self, node: nodes.Await, inside: str) -> None:
        if not is_operation(node.value) and is_operation(first := root(node.value)):
            return self._refuse_operation(first, inside, node.start)
        name = self._fresh_name(node.value)
        self.problems.report(
            "F012",
            f"`await` cannot stand inside {inside}",
            node.start,
            node.start + 5,
            "here",
            self._hoisted(node, f"let {name} = {self._text(node)}", name),
        )
        self._awaited(node)

    def _refuse_operation(self, node: Node, inside: str, start: int | None = None) -> None:
        """Reports an operation inside an expression.

        `start`: where an `await` before it begins, which moves to the new line, too.
        """
        name = self._fresh_name(node)
        line = (
            f"{name} = {self._text(node)}"
            if self.workflow.script
            else f"let {name} = await {self._text(node)}"
        )
        end = node.name_end if isinstance(node, nodes.Call) else node.start + 6
        self.problems.report(
            "F013",
            f"an operation cannot stand inside {inside}: it would need a call stack",
            node.start,
            end,
            "here",
            self._hoisted(node if start is None else Broken(start, node.end), line, name),
        )
        self._operation(node)

    def _refuse_completed(self, node: Node) -> None:
        self.problems.about(
            "F017",
            "`completed` stands in the head of a `for`",
            node,
            help="write for (r in completed([…])) { … }",
        )

    def _call(self, node: nodes.Call, inside: str) -> None:
        if node.name in BUILTINS:
            self._arguments(node, BUILTINS[node.name])
            for arg in () if node.name in TAKE_IDS else node.args[:1]:
                self._result(arg)
        elif node.name == "completed":
            self._refuse_completed(node)
        elif is_operation(node):
            self._refuse_operation(node, inside)
        elif node.name in EMITS:
            self.problems.about(
                "F016",
                f"`{node.name}` gives no value",
                node,
                help=f"write {node.name}(…) as a statement of its own",
            )
            self._arguments(node, EMITS[node.name])
        else:
            self._unknown_function(node)

    def _unknown_function(self, node: nodes.Call) -> None:
        for arg in node.args:
            self._expression(arg, "an argument")
        instead = FUNCTIONS_FROM_ELSEWHERE.get(node.name)
        near = nearest(node.name, PYTHON if node.name.startswith("py.") else CALLABLE)
        own_code = f'to run your own code, write await task("{node.name}", {{ … }})'
        if self.known.tasks and node.name in self.known.tasks:
            near, instead = None, None
        help = f"write {instead}" if instead else f"did you mean `{near}`?" if near else own_code
        self.problems.report(
            "F023", f"there is no function `{node.name}`", node.start, node.name_end, help=help
        )

    def _arguments(self, node: nodes.Call, signature: Signature) -> None:
        if node.name in NAMED and node.args and isinstance(node.args[0], nodes.Name):
            self._refuse_bare_name(node, node.args[0])
        for arg in node.args:
            self._expression(arg, "an argument")
        if counted(node, signature, self.problems):
            check_options(node, signature, self.problems)
            check_literals(node, self.problems)

    def _name(self, node: nodes.Name, inside: str) -> None:
        self._lookup(node)

    def _template(self, node: nodes.Template, inside: str) -> None:
        for part in node.parts:
            self._expression(part, "a template")
            if not self.telling:
                self._result(part)

    def _spread(self, node: nodes.Spread, inside: str) -> None:
        self._expression(node.value, inside)
        self._result(node.value)

    def _list(self, node: nodes.ListLiteral, inside: str) -> None:
        for item in node.items:
            self._expression(item, inside if inside == "an argument" else "a list")

    def _object(self, node: nodes.ObjectLiteral, inside: str) -> None:
        self._unique_keys(node)
        for entry in node.entries:
            self._expression(
                entry.value if isinstance(entry, nodes.Entry) else entry,
                inside if inside == "an argument" else "an object",
            )

    def _unique_keys(self, node: nodes.ObjectLiteral) -> None:
        seen: dict[str, nodes.Entry] = {}
        for entry in node.entries:
            if isinstance(entry, nodes.Entry):
                if first := seen.get(entry.key):
                    self.problems.about(
                        "F027",
                        f"the key `{entry.key}` is written twice",
                        entry,
                        help="keep one of them",
                        related=((first.start, first.end, "the first one"),),
                    )
                seen.setdefault(entry.key, entry)

    def _comprehension(self, node: nodes.Comprehension, inside: str) -> None:
        before, self.comprehension = self.comprehension, node
        self._each(node, lambda element: self._expression(element, "a comprehension"))
        self.comprehension = before

    def _each(self, node: nodes.Comprehension, check: Callable[[Node], None]) -> None:
        self._expression(node.source, "a comprehension")
        self._result(node.source)
        self.scopes.append({})
        for name in node.names:
            self._declare(name, bound=True)
        check(node.element)
        if node.condition:
            self._expression(node.condition, "a condition")
            self._result(node.condition)
        self._leave()

    def _unary(self, node: nodes.Unary, inside: str) -> None:
        self._expression(node.value, "an expression")
        self._result(node.value)

    def _binary(self, node: nodes.Binary | nodes.Logic, inside: str) -> None:
        self._expression(node.left, "an expression")
        self._expression_if(node.right, isinstance(node, nodes.Logic))
        for operand in () if self.telling and node.op == "+" else _needed(node):
            self._result(operand)

    def _conditional(self, node: nodes.Conditional, inside: str) -> None:
        self._expression(node.condition, "an expression")
        self._expression_if(node.yes, True)
        self._expression_if(node.no, True)
        self._result(node.condition)

    def _expression_if(self, node: Node, depends: bool) -> None:
        """Checks an operand. `depends`: it is not always evaluated.

        The help must not move an await out of such an operand to where it would always run.
        """
        before, self.depends = self.depends, self.depends or depends
        self._expression(node, "an expression")
        self.depends = before

    def _member(self, node: nodes.Member, inside: str) -> None:
        self._expression(node.target, "an expression")
        self._result(node.target)

    def _index(self, node: nodes.Index, inside: str) -> None:
        self._expression(node.target, "an expression")
        self._result(node.target)
        self._expression(node.index, "an index")

    _EXPRESSIONS: dict[type[Node], Any] = {
        nodes.Name: _name,
        nodes.Template: _template,
        nodes.Spread: _spread,
        nodes.ListLiteral: _list,
        nodes.ObjectLiteral: _object,
        nodes.Comprehension: _comprehension,
        nodes.Unary: _unary,
        nodes.Binary: _binary,
        nodes.Logic: _binary,
        nodes.Conditional: _conditional,
        nodes.Member: _member,
        nodes.Index: _index,
        nodes.Call: _call,
        nodes.Await: _refuse_await,
        nodes.BranchBlock: _refuse_operation,
    }


def _needed(node: nodes.Binary | nodes.Logic) -> tuple[Node, ...]:
    """Returns the operands whose own value is needed.

    Ids may be compared with each other, and looked for in a list.
    """
    if isinstance(node, nodes.Logic):
        return (node.left,)
    if node.op in ("==", "!="):
        written = isinstance(node.left, nodes.Literal) or isinstance(node.right, nodes.Literal)
        return (node.left, node.right) if written else ()
    return (node.right,) if node.op == "in" else (node.left, node.right)
