"""Statements: the walk through a workflow that finds everything to report about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Block, Broken, Node
from rhythm.lang.flow.rules.annotations import annotation_options, check_schedules
from rhythm.lang.flow.rules.kinds import is_operation
from rhythm.lang.flow.rules.operations import Operations
from rhythm.lang.flow.types import inputs_schema


class Resolver(Operations):
    """Checks one workflow."""

    exits = 0  # exits through `finally` blocks so far

    def check(self) -> dict[str, Any]:
        """Reports what is wrong with the workflow; returns its options.

        They are those that its annotations set, and the schema of the inputs that it declares.
        """
        self._statements(self.workflow.body)
        for variable in self.scopes[0].values():
            self._warn_if_forgotten(variable)
        options = annotation_options(self.workflow.annotations, self.problems)
        if self.workflow.inputs is not None:
            options["inputs"] = inputs_schema(self.workflow.inputs, other_keys="on" in options)
            check_schedules(self.workflow, options, self.problems)
        return options

    def _block(self, block: Block, declare: tuple[nodes.Name, ...] = ()) -> bool:
        self.scopes.append({})
        for name in declare:
            self._declare(name, bound=True)
        left = self._statements(block)
        self._leave()
        return left

    def _statements(self, block: Block) -> bool:
        """Checks the statements of a block; True if its end is never reached."""
        over = left = False
        for statement in block.statements:
            if over:
                self.problems.about(
                    "F101",
                    "this is never reached",
                    statement,
                    help="delete it, or the statement above that always leaves",
                )
            over = bool(self._STATEMENTS[type(statement)](self, statement))
            left = left or over
        return left

    def _let(self, node: nodes.Let) -> None:
        if node.value is not None:
            self._value(node.value, "right side")
        started = self._starts(node.value)
        if isinstance(node.target, nodes.Name):
            self._declare(node.target, node.constant, started)
        elif isinstance(node.target, nodes.ListPattern):
            self._refuse_unpacking_ids(started)
            for name, item in self._unpacked(node.target, started):
                self._declare(name, node.constant, item)
        elif isinstance(node.target, nodes.ObjectPattern):
            self._refuse_unpacking_ids(started)
            self._fields(node.target, node.constant)

    def _fields(self, pattern: nodes.ObjectPattern, constant: bool) -> None:
        for field in pattern.fields:
            if field.default is not None:
                self._expression(field.default, "a default")
        for field in pattern.fields:
            self._declare(field.name, constant)

    def _refuse_unpacking_ids(self, started: Node | None) -> None:
        if started is not None and is_operation(started):
            self.problems.about(
                "F033",
                "the id of something started cannot be taken apart",
                started,
                help="await it: … = await …",
            )

    def _unpacked(
        self, pattern: nodes.ListPattern, value: Node | None
    ) -> Iterator[tuple[nodes.Name, Node | None]]:
        """Yields each name of the pattern, with the operation whose id it gets, or None.

        The operation is known only if a list literal without spreads is unpacked.
        """
        items = value.items if isinstance(value, nodes.ListLiteral) else ()
        plain = not any(isinstance(item, nodes.Spread) for item in items)
        for i, name in enumerate(pattern.names):
            yield name, items[i] if plain and i < len(items) and is_operation(items[i]) else None

    def _assign(self, node: nodes.Assign) -> None:
        self._value(node.value, "right side")
        started = self._starts(node.value)
        if isinstance(node.target, nodes.Name):
            self._assign_name(node.target, node.op, started)
        elif isinstance(node.target, nodes.ListPattern):
            self._refuse_unpacking_ids(started)
            for name, item in self._unpacked(node.target, started):
                self._assign_name(name, "=", item)
        else:
            self._assign_path(node.target)

    def _assign_name(self, name: nodes.Name, op: str, started: Node | None) -> None:
        if op != "=":
            self._result(name)
        variable = self._find(name.name)
        if op == "=" and (variable is None or variable.missing):
            self._declare(name, started=started)
        elif variable is None:
            self._unknown(name)
        else:
            self._may_change(variable, name)
            self.settled.add(name.name)

    def _assign_path(self, target: Node) -> None:
        root = target
        while isinstance(root, nodes.Member | nodes.Index):
            if root.optional:
                self.problems.about(
                    "F033",
                    "`?.` cannot be assigned through",
                    root,
                    help="write `.`, and set the outer value first",
                )
            if isinstance(root, nodes.Index):
                self._expression(root.index, "an index")
            root = root.target
        if isinstance(root, nodes.Name):
            self._result(root)
            variable = self._lookup(root)
            if variable:
                self._may_change(variable, root)
        elif not isinstance(root, Broken):
            self.problems.about(
                "F033",
                "only a variable's property or element can be assigned to",
                root,
                help="give the value a name first",
            )

    def _expression_statement(self, node: nodes.ExpressionStatement) -> None:
        value = node.value
        self._value(value, "statement")
        if (
            is_operation(value)
            and not self.workflow.script
            and not (isinstance(value, nodes.Call) and value.name == "completed")
        ):
            self.problems.about(
                "F102",
                "this is started and never awaited",
                value,
                help=("write `await` before it;", "let _ = … says that nobody waits for it"),
            )

    def _if(self, node: nodes.If) -> bool:
        left = True
        for condition, block in node.arms:
            self._expression(condition, "a condition")
            self._result(condition)
            left = self._block(block) and left
        return node.otherwise is not None and self._block(node.otherwise) and left

    def _while(self, node: nodes.While) -> bool:
        self.repeated = node.condition
        self._expression(node.condition, "a condition")
        self._result(node.condition)
        self.repeated = None
        self._loop(node.body, ())
        forever = isinstance(node.condition, nodes.Literal) and node.condition.value is True
        return forever and not _breaks(node.body)

    def _for(self, node: nodes.For) -> None:
        if isinstance(node.source, nodes.Call) and node.source.name == "completed":
            self._group(node.source)
            if len(node.names) > 1:
                self.problems.about(
                    "F017",
                    "`completed` gives one thing at a time",
                    node.names[1],
                    help="write for (r in completed([…])); r.key says which",
                )
        elif isinstance(node.source, nodes.Await):
            self._refuse_await(node.source, "the head of a `for`")
        else:
            self._expression(node.source, "the head of a `for`")
            self._result(node.source)
        self._loop(node.body, node.names)

    def _loop(self, body: Block, names: tuple[nodes.Name, ...]) -> None:
        self.loops += 1
        self._block(body, names)
        self.loops -= 1

    def _jump(self, node: Node) -> bool:
        self._count_exit(node, self.finallys)
        if not self.loops:
            word = "break" if isinstance(node, nodes.Break) else "continue"
            ends = (
                "`return` ends the branch, which is no part of the loop around it"
                if self.branches
                else "`return` ends the workflow"
            )
            self.problems.about(
                "F028",
                f"`{word}` outside a loop",
                node,
                help=f"it belongs in for (…) {{ … }} or while (…) {{ … }}; {ends}",
            )
        return True

    def _count_exit(self, node: Node, finallys: int) -> None:
        """Counts the exits through `finally`: each becomes code of its own, so they are limited."""
        self.exits += finallys
        if self.exits > self.limits.exits >= self.exits - finallys:
            self.problems.about(
                "F006",
                f"more than {self.limits.exits:,} ways out through `finally`",
                node,
                help="move the inner blocks to a child workflow",
            )

    def _return(self, node: nodes.Return) -> bool:
        self._count_exit(node, self.finallys)
        if node.value is not None:
            self._value(node.value, "return")
            self._result(node.value)
        return True

    def _throw(self, node: nodes.Throw) -> bool:
        self._expression(node.value, "`throw`")
        if isinstance(node.value, nodes.Literal) and not isinstance(node.value.value, str):
            self.problems.about(
                "F026",
                "`throw` takes text or an object",
                node.value,
                help='write throw "message", or throw { code, message, data }',
            )
        return True

    def _try(self, node: nodes.Try) -> bool:
        self.finallys += node.cleanup is not None
        left = self._block(node.body)
        if node.handler:
            left = self._block(node.handler, (node.error,) if node.error else ()) and left
        self.finallys -= node.cleanup is not None
        return (node.cleanup is not None and self._block(node.cleanup)) or left

    def _broken(self, node: Node) -> None:
        """Does nothing: the statement was reported already."""

    # Each returns whether the statement after it can never run.
    _STATEMENTS: dict[type[Node], Any] = {
        nodes.Let: _let,
        nodes.Assign: _assign,
        nodes.ExpressionStatement: _expression_statement,
        nodes.If: _if,
        nodes.For: _for,
        nodes.While: _while,
        nodes.Break: _jump,
        nodes.Continue: _jump,
        nodes.Return: _return,
        nodes.Throw: _throw,
        nodes.Try: _try,
        Broken: _broken,
    }


def _breaks(block: Block) -> bool:
    """Whether a `break` in this block leaves the loop whose body it is."""
    for statement in block.statements:
        if isinstance(statement, nodes.Break | Broken):
            return True
        if isinstance(statement, nodes.If):
            inner = [body for _, body in statement.arms] + (
                [statement.otherwise] if statement.otherwise else []
            )
        elif isinstance(statement, nodes.Try):
            inner = [
                body for body in (statement.body, statement.handler, statement.cleanup) if body
            ]
        else:
            inner = []
        if any(_breaks(body) for body in inner):
            return True
    return False
