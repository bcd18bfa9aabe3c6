"""Variables: where each is declared, found, changed and left, and which hold ids of operations.

An operation that was started without `await` gives such an id.
"""

from __future__ import annotations

from rhythm.ir.operations import CALLABLE
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.other_languages import WORDS_FROM_ELSEWHERE
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.rules.kinds import is_operation
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.source import Source
from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.suggest import nearest


class Variable(Record):
    """A variable that is visible here."""

    name: str
    start: int
    end: int
    constant: bool = False
    barrier: int = 0  # the number of branches around its declaration
    # The operation whose id it holds; or the list, object or comprehension of operations.
    started: Node | None = None
    bound: bool = False  # set by a loop, a catch or a comprehension
    missing: bool = False  # never declared; already reported, and not again


class Scopes:
    """The variables that are visible while the resolver walks through a workflow."""

    branches = 0  # how many branches are around here

    def __init__(
        self,
        workflow: nodes.Workflow,
        source: Source,
        problems: Problems,
        known: Surroundings,
        limits: Limits,
        siblings: frozenset[str],
    ) -> None:
        self.workflow = workflow
        self.source = source
        self.problems = problems
        self.known = known
        self.limits = limits
        self.siblings = siblings  # the workflows of this file
        given = {
            name: Variable(name, workflow.start, workflow.start + 8, constant=True)
            for name in workflow.params
        }
        given |= {
            each.name: Variable(each.name, each.start, each.end) for each in workflow.inputs or ()
        }
        self.scopes: list[dict[str, Variable]] = [given]
        self.ended: dict[str, Variable] = {}
        self.read: set[str] = set()
        # Variables that held an operation's id when declared, and may hold something else now.
        self.settled: set[str] = set()

    def _find(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def _declare(
        self,
        name: nodes.Name,
        constant: bool = False,
        started: Node | None = None,
        bound: bool = False,
    ) -> None:
        first = self._find(name.name)
        self.settled.discard(name.name)
        if first and name.name != "_" and not first.missing:
            self._refuse_second(name, first, bound)
        else:
            self.scopes[-1][name.name] = Variable(
                name.name, name.start, name.end, constant, self.branches, started, bound
            )
        self._refuse_too_many(name)

    def _refuse_too_many(self, name: nodes.Name) -> None:
        if sum(map(len, self.scopes)) == self.limits.variables + 1:
            self.problems.about(
                "F006",
                f"more than {self.limits.variables} variables at once",
                name,
                help=(
                    "put values that belong together into an object, or move steps to a child "
                    "workflow"
                ),
            )

    def _refuse_second(self, name: nodes.Name, first: Variable, bound: bool) -> None:
        given = self._is_given(first)
        assignable = not (given or bound or first.constant or first.barrier < self.branches)
        self.problems.about(
            "F021",
            f"`{name.name}` is declared already",
            name,
            help="assign to it without `let`, or choose another name"
            if assignable
            else "choose another name",
            related=() if given else ((first.start, first.end, "declared here"),),
        )

    def _is_given(self, variable: Variable) -> bool:
        """Whether the variable is the given `inputs` or `ctx`."""
        return (
            variable.constant
            and variable.name in ("inputs", "ctx")
            and variable in self.scopes[0].values()
        )

    def _may_change(self, variable: Variable, node: Node) -> None:
        """Reports an assignment to a variable that cannot be changed here."""
        if variable.missing:
            return
        if self._is_given(variable):
            self.problems.about(
                "F022",
                f"`{variable.name}` is read-only",
                node,
                help=f"change a copy: let copy = {variable.name}",
            )
        elif variable.constant:
            self.problems.about(
                "F022",
                f"`{variable.name}` is a constant",
                node,
                help=f"declare it with `let {variable.name}`",
                related=((variable.start, variable.end, "declared here"),),
            )
        elif variable.barrier < self.branches:
            self.problems.about(
                "F029",
                (
                    f"a branch works on a copy of `{variable.name}`; changing it here changes "
                    f"nothing outside"
                ),
                node,
                help="return the value from the branch, and use the result of `await`",
                related=((variable.start, variable.end, "declared outside"),),
            )

    def _leave(self) -> None:
        for variable in self.scopes.pop().values():
            self.ended[variable.name] = variable
            self._warn_if_forgotten(variable)

    def _warn_if_forgotten(self, variable: Variable) -> None:
        if (
            variable.started
            and variable.name not in self.read
            and not variable.name.startswith("_")
        ):
            self.problems.report(
                "F102",
                f"`{variable.name}` is started and never awaited",
                variable.start,
                variable.end,
                help=(
                    f"write let {variable.name} = await …, or await {variable.name} later;",
                    "a name that begins with _ says that nobody waits for it",
                ),
            )

    def _lookup(self, node: nodes.Name) -> Variable | None:
        variable = self._find(node.name)
        self.read.add(node.name)
        if variable is None:
            self._unknown(node)
        return variable

    def _unknown(self, node: nodes.Name) -> None:
        ended = self.ended.get(node.name)
        if ended:
            self.problems.about(
                "F020",
                f"`{node.name}` is not known here: it lives in the block where it was declared",
                node,
                help=self._how_to_keep(ended),
                related=((ended.start, ended.end, "declared here"),),
            )
            self._say_once(node)
            return
        instead = WORDS_FROM_ELSEWHERE.get(node.name)
        near = nearest(
            node.name, [name for scope in self.scopes for name in scope if not scope[name].missing]
        )
        help = (
            f"write {instead}"
            if instead
            else f"did you mean `{near}`?"
            if near
            else f"declare it first: let {node.name} = …"
        )
        if node.name in CALLABLE:
            help = f"`{node.name}` is called with arguments: {node.name}(…)"
        elif node.name == "inputs" and self.workflow.inputs is not None:
            names = ", ".join(each.name for each in self.workflow.inputs)
            help = f"the header names each input: use {names}"
        elif node.name in ("inputs", "ctx"):
            help = "name it in the header: workflow name(ctx, inputs) { … }"
        self.problems.about("F020", f"unknown variable `{node.name}`", node, help=help)
        self._say_once(node)

    def _how_to_keep(self, ended: Variable) -> str:
        if ended.barrier > self.branches:
            return "return it from the branch, and use the result of `await`"
        if ended.bound:
            return "copy it there into a variable that was declared before"
        return f"declare it before: let {ended.name} = null"

    def _say_once(self, node: nodes.Name) -> None:
        """Declares the unknown name, so that it is reported only once."""
        self.scopes[0][node.name] = Variable(node.name, node.start, node.end, missing=True)

    def _refuse_bare_name(self, node: nodes.Call, name: nodes.Name) -> None:
        """Reports the name of a task, workflow, signal or event that is written without quotes."""
        if (
            self._find(name.name) is None
            and name.name not in self.ended
            and name.name not in ("inputs", "ctx")
        ):
            near = nearest(name.name, [known for scope in self.scopes for known in scope])
            help = (
                f"write it in quotes: "
                f'{node.name}("{name.name}"{", …" if len(node.args) > 1 else ""})'
            )
            self.problems.about(
                "F020",
                f"unknown variable `{name.name}`",
                name,
                help=(help, *([f"or did you mean `{near}`?"] if near else [])),
            )
            self._say_once(name)

    def _started(self, node: Node) -> Node | None:
        """Returns the operation whose id the variable certainly holds, or None.

        It may also be a list, object or comprehension of operations.
        """
        variable = self._find(node.name) if isinstance(node, nodes.Name) else None
        return variable.started if variable and variable.name not in self.settled else None

    def _result(self, node: Node) -> None:
        """Warns if a value is needed and the variable holds an id: an `await` was forgotten.

        Passing an id on needs no value.
        """
        operation = self._started(node)
        if not isinstance(node, nodes.Name) or operation is None or not is_operation(operation):
            return
        self.problems.about(
            "F102",
            f"`{node.name}` is the id of something that was started, not its result",
            node,
            help=(
                f"write let {node.name} = await {self._text(operation)},",
                f"or before this line: let result = await {node.name}",
            ),
            related=((operation.start, operation.end, "started here"),),
        )
        self.settled.add(node.name)
        self.read.add(node.name)

    def _text(self, node: Node) -> str:
        text = " ".join(self.source.text[node.start : node.end].split())
        return text if len(text) <= 100 else text[:99] + "…"
