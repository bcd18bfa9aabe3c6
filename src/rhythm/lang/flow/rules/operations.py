"""Operations and awaits: the places where a snapshot can be taken, and what may stand there."""

from __future__ import annotations

from abc import abstractmethod

from rhythm.ir.operations import BUILTINS, EMITS, GROUPS, OPERATIONS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Block, Broken, Node
from rhythm.lang.flow.rules.arguments import check_group, check_options, counted
from rhythm.lang.flow.rules.expressions import ExpressionRules
from rhythm.lang.flow.rules.kinds import (
    COLLECTIONS,
    constant_of,
    elements,
    holds_operations,
    is_operation,
    literal_keys,
    root,
)
from rhythm.lang.flow.rules.surroundings import check_target


class Operations(ExpressionRules):
    """Checks operations, groups and awaits."""

    loops = 0  # how many loops `break` and `continue` can refer to here
    finallys = 0  # how many `finally` blocks an exit from here passes
    racing = False  # inside race or any, where another item can end the wait

    @abstractmethod
    def _block(self, block: Block, declare: tuple[nodes.Name, ...] = ()) -> bool:
        """Checks the statements of a branch; True if their end is never reached."""

    def _value(self, node: Node, where: str) -> None:
        """Checks a whole statement, a whole right side, or the value of a `return`.

        These are the places where a snapshot can be taken.
        """
        if isinstance(node, nodes.Await):
            self._awaited(node)
        elif is_operation(node):
            self._placed_operation(node, where)
        elif isinstance(node, nodes.Call) and node.name in EMITS and where == "statement":
            self.telling = True
            self._arguments(node, EMITS[node.name])
            self.telling = False
        elif where == "right side" and holds_operations(node):
            self._operands(node)
        else:
            self._expression(node, "an expression")

    def _placed_operation(self, node: Node, where: str) -> None:
        if isinstance(node, nodes.Call) and node.name == "completed":
            self._refuse_completed(node)
        elif where == "return":
            text = self._text(node)
            self.problems.about(
                "F014",
                "an operation is awaited before it is returned",
                node,
                help=f"write return await {text}",
            )
        self._operation(node)

    def _starts(self, value: Node | None) -> Node | None:
        """Returns the value if it starts operations without awaiting them; else None.

        What it gives are then the ids of the operations. In a script they would be awaited.
        """
        if value is None or (is_operation(value) and self.workflow.script):
            return None
        return value if is_operation(value) or holds_operations(value) else None

    def _awaited(self, await_: nodes.Await) -> None:
        node = await_.value
        started = self._started(node)
        if is_operation(node):
            if isinstance(node, nodes.Call) and node.name == "completed":
                self._refuse_completed(node)
            self._operation(node)
        elif is_operation(first := root(node)):
            self._refuse_operation(first, "an expression", await_.start)
        elif started is not None and not is_operation(started):
            self._expression(node, "what is awaited")
            text = self._text(node)
            self.problems.about(
                "F015",
                f"`{text}` holds several ids",
                node,
                help=f"wait for all of them with: await all({text})",
            )
        elif isinstance(node, nodes.Name | nodes.Member | nodes.Index | nodes.Conditional | Broken):
            self._expression(node, "what is awaited")
        elif isinstance(node, nodes.Call) and node.name not in EMITS and node.name not in BUILTINS:
            self._unknown_function(node)
        else:
            self._refuse_awaited(node)

    def _refuse_awaited(self, node: Node) -> None:
        help: str | tuple[str, ...] = (
            "await takes an operation (task, workflow, sleep, signal, …) or the id of one "
            "that was started"
        )
        if isinstance(node, COLLECTIONS):
            help = f"wait for all of them with: await all({self._text(node)})"
        elif isinstance(node, nodes.Call) and node.name in EMITS:
            help = f"{node.name} is not waited for: leave `await` out"
        elif isinstance(node, nodes.Call):
            help = f"{node.name} gives its value at once: leave `await` out"
        elif isinstance(node, nodes.Await):
            help = "one `await` is enough"
        self.problems.about("F015", "this cannot be awaited", node, help=help)

    def _operation(self, node: Node) -> None:
        if isinstance(node, nodes.BranchBlock):
            self._branch(node)
        elif isinstance(node, nodes.Call) and node.name in GROUPS:
            self._group(node)
        elif isinstance(node, nodes.Call):
            self._arguments(node, OPERATIONS[node.name])
            check_target(node, self.known, self.siblings, self.problems)
            self._advise_timeout(node)

    def _branch(self, node: nodes.BranchBlock) -> None:
        outside, self.loops, self.finallys = (self.loops, self.finallys), 0, 0
        self.branches += 1
        self._block(node.body)
        self.branches -= 1
        self.loops, self.finallys = outside

    def _group(self, node: nodes.Call) -> None:
        signature = GROUPS[node.name]
        if self._refuse_loose_items(node) or not counted(node, signature, self.problems):
            return
        items = node.args[0]
        if isinstance(items, nodes.Literal | nodes.Template):
            message = f"`{node.name}` takes a list or an object of operations"
            self.problems.about(
                "F026", message, items, help=f'write {node.name}([task("name"), …])'
            )
        elif isinstance(items, COLLECTIONS):
            racing, self.racing = self.racing, node.name in ("race", "any")
            self._operands(items)
            self.racing = racing
        else:
            self._expression(items, "an argument")
        for option in node.args[1:]:
            self._expression(option, "an argument")
        check_options(node, signature, self.problems)
        check_group(node, self.problems)

    def _refuse_loose_items(self, node: nodes.Call) -> bool:
        """Reports operations or ids that are written as arguments, not in a list.

        False if there are none.
        """
        if not any(map(self._is_item, node.args)) or isinstance(node.args[0], COLLECTIONS):
            return False
        args = [arg.value if isinstance(arg, nodes.Await) else arg for arg in node.args]
        last = node.args[-1]
        # the options are not an item
        count = len(args) - (isinstance(last, nodes.ObjectLiteral) and not holds_operations(last))
        texts = [self._text(arg) for arg in args]
        written = ", ".join([f"[{', '.join(texts[:count])}]", *texts[count:]])
        message = f"`{node.name}` takes a list or an object of operations"
        self.problems.report(
            "F026",
            message,
            node.args[0].start,
            args[count - 1].end,
            help=f"write {node.name}({written})",
        )
        for item in args[:count]:
            self._operand(item)
        return True

    def _is_item(self, node: Node) -> bool:
        return (
            is_operation(node) or isinstance(node, nodes.Await) or is_operation(self._started(node))
        )

    def _operands(self, node: Node) -> None:
        """Checks a list, object or comprehension whose elements are operations."""
        if isinstance(node, nodes.Comprehension):
            self._each(node, self._operand)
        elif isinstance(node, nodes.ObjectLiteral):
            self._unique_keys(node)
        for item in () if isinstance(node, nodes.Comprehension) else elements(node):
            self._operand(item)

    def _operand(self, node: Node) -> None:
        if isinstance(node, nodes.Call) and node.name == "completed":
            self._refuse_completed(node)
        elif is_operation(node):
            self._operation(node)
        elif isinstance(node, nodes.Await):
            self.problems.about(
                "F012",
                "`await` cannot stand inside a list",
                node,
                help=f"leave it out; the group waits: {self._text(node.value)}",
            )
        elif isinstance(node, nodes.Spread):
            self._expression(node.value, "a list")
        else:
            self._expression(node, "a list")

    def _advise_timeout(self, node: nodes.Call) -> None:
        """Notes a wait that nothing ends: no timeout of its own, no race, none of the workflow."""
        limited = any(annotation.name == "timeout" for annotation in self.workflow.annotations)
        if not self.racing and not limited and waits_for_ever(node):
            self.problems.about(
                "F201",
                "this can wait for ever",
                node,
                help='give it a { timeout: "3d" }, or race it against a sleep',
            )


def waits_for_ever(node: nodes.Call) -> bool:
    """Whether it is a wait for a signal or event that has no timeout.

    An approval has one also if it does not say so.
    """
    if node.name not in ("signal", "event"):
        return False
    options = node.args[1] if len(node.args) > 1 else None
    if options is None:
        return True
    if not isinstance(options, nodes.ObjectLiteral):
        return False
    given = [e.value for e in options.entries if isinstance(e, nodes.Entry) and e.key == "timeout"]
    return all(constant_of(value) is None for value in given) and (
        bool(given) or "timeout" not in literal_keys(options, "timeout")
    )
