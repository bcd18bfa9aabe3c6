"""Names and places: everything that can be refused or warned about before a workflow is registered.

Walks the tree once. Each variable is found in its scope; `await` and operations stand only where a snapshot can be taken;
calls fit the tables of `ir.operations`. What passes here can be lowered without further questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rhythm.durations import duration_s
from rhythm.ir.operations import BUILTINS, CALLABLE, EMITS, GROUPS, OPERATIONS, UNLIMITED, Signature
from rhythm.lang.flow import nodes
from rhythm.lang.flow.elsewhere import FUNCTIONS_FROM_ELSEWHERE, WORDS_FROM_ELSEWHERE
from rhythm.lang.flow.nodes import Block, Broken, Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.tokens import RESERVED
from rhythm.lang.source import Source, nearest
from rhythm.limits import INT_MAX, Limits
from rhythm.record import Record

COLLECTIONS = nodes.ListLiteral | nodes.ObjectLiteral | nodes.Comprehension  # in which operations may stand
OPERATION_NAMES = frozenset(OPERATIONS) | frozenset(GROUPS)
_CODE = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|/(?!/)|[^"'`/])*""")  # a line up to its comment
# What an option's literal value must be; durations and counts are checked further.
OPTION_TYPES = {
    "retries": "count", "backoff": "backoff", "timeout": "duration", "queue": "text", "priority": "integer", "key": "text",
    "settle": "bool", "id": "text", "version": "text", "where": "object", "concurrency": "positive", "need": "positive",
    "keep": "bool", "role": "text", "reason": "text", "quorum": "positive", "four_eyes": "bool",
    "initial": "duration", "max": "duration", "factor": "factor", "jitter": "bool",
}  # fmt: skip
OPTION_EXAMPLES = {
    "count": "3", "backoff": '"2s"', "duration": '"30s"', "text": '"name"', "integer": "0", "bool": "true", "object": '{ "order.id": 7 }',
    "positive": "1", "factor": "2",
}  # fmt: skip
BACKOFF = frozenset({"initial", "factor", "max", "jitter"})
NAMED = ("task", "workflow", "signal", "event", "publish")  # what takes a name first
TAKE_IDS = ("str", "json", "hash", "base64")  # builtins whose first argument may well be an id
ANNOTATIONS = {
    "queue": '@queue("name")', "timeout": '@timeout("30d")', "on": '@on("event.type")',
    "schedule": '@schedule("0 9 * * *", { tz: "Europe/Berlin", overlap: "skip" })', "version": '@version("label")',
}  # fmt: skip


class TaskShape(Record):
    """What is known of a registered task: the inputs it takes, and which JSON types each may have (none: any)."""

    params: Mapping[str, frozenset[str]]
    required: frozenset[str]
    open: bool = False  # takes any further inputs (**kwargs)


class Variable(Record):
    name: str
    start: int
    end: int
    constant: bool = False
    barrier: int = 0  # how many branches deep it was declared
    started: Node | None = None  # the operation whose id it holds, or the list, object or comprehension of operations
    bound: bool = False  # by a loop, a catch or a comprehension
    missing: bool = False  # never declared: reported once, and then quiet


class Known(Record):
    """What exists outside the file; None where nothing is known and so nothing can be missing."""

    tasks: Mapping[str, TaskShape] | None = None
    workflows: frozenset[str] | None = None


class Resolver:
    def __init__(self, source: Source, problems: Problems, known: Known, limits: Limits, siblings: frozenset[str] = frozenset()) -> None:
        self.source = source
        self.problems = problems
        self.known = known
        self.limits = limits
        self.siblings = siblings  # the workflows of this file

    def check(self, workflow: nodes.Workflow) -> dict[str, Any]:
        """Reports what is wrong with the workflow; returns the options its annotations set."""
        self.repeated: Node | None = None  # the condition of the `while` whose head is being checked
        self.script = workflow.script
        self.scopes: list[dict[str, Variable]] = [{}]
        self.ended: dict[str, Variable] = {}
        self.read: set[str] = set()
        self.leaving: set[int] = set()  # blocks, by identity, whose end is never reached
        self.comprehension: nodes.Comprehension | None = None  # whose element or condition is being checked
        self.depends = False  # inside an operand that is not always computed
        self.loops = 0
        self.finallys = 0  # that a way out of here has to pass
        self.exits = 0
        self.branches = 0
        self.racing = False  # inside race or any, where another item can end the wait
        self.telling = False  # inside a command, where an id may be part of what is told
        self.settled: set[str] = set()  # variables that were started with an operation, and may hold something else by now
        for name in workflow.params:
            self.scopes[0][name] = Variable(name, workflow.start, workflow.start + 8, constant=True)
        self._statements(workflow.body)
        return self._annotations(workflow.annotations)

    # statements

    def _block(self, block: Block, declare: tuple[nodes.Name, ...] = ()) -> None:
        self.scopes.append({})
        for name in declare:
            self._declare(name, bound=True)
        self._statements(block)
        self._leave()

    def _leave(self) -> None:
        for variable in self.scopes.pop().values():
            self.ended[variable.name] = variable
            self._warn_if_forgotten(variable)

    def _statements(self, block: Block) -> None:
        over = False
        for statement in block.statements:
            if over:
                self._report("F101", "this is never reached", statement, help="delete it, or the statement above that always leaves")
                over = False
            self._STATEMENTS[type(statement)](self, statement)
            over = self._always_leaves(statement)
            if over:
                self.leaving.add(id(block))
        if len(self.scopes) == 1:
            for variable in self.scopes[0].values():
                self._warn_if_forgotten(variable)

    def _always_leaves(self, node: Node) -> bool:
        """Whether the statement after this one, which has been checked, can never run."""
        if isinstance(node, nodes.Return | nodes.Throw | nodes.Break | nodes.Continue):
            return True
        if isinstance(node, nodes.If):
            blocks = [node.otherwise, *(block for _, block in node.arms)]
            return all(id(block) in self.leaving for block in blocks)
        if isinstance(node, nodes.While):
            forever = isinstance(node.condition, nodes.Literal) and node.condition.value is True
            return forever and not _breaks(node.body)
        if isinstance(node, nodes.Try):
            attempt = [block for block in (node.body, node.handler) if block]
            return id(node.cleanup) in self.leaving or all(id(block) in self.leaving for block in attempt)
        return False

    def _warn_if_forgotten(self, variable: Variable) -> None:
        if variable.started and variable.name not in self.read and not variable.name.startswith("_"):
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
        if started is not None and self._is_operation(started):
            self._report("F033", "the id of something started cannot be taken apart", started, help="await it: … = await …")

    def _unpacked(self, pattern: nodes.ListPattern, value: Node | None) -> Iterator[tuple[nodes.Name, Node | None]]:
        """Each name of the pattern, with the operation whose id it gets if that can be seen."""
        items = value.items if isinstance(value, nodes.ListLiteral) else ()
        plain = not any(isinstance(item, nodes.Spread) for item in items)
        for i, name in enumerate(pattern.names):
            yield name, items[i] if plain and i < len(items) and self._is_operation(items[i]) else None

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
                self._report("F033", "`?.` cannot be assigned through", root, help="write `.`, and set the outer value first")
            if isinstance(root, nodes.Index):
                self._expression(root.index, "an index")
            root = root.target
        if isinstance(root, nodes.Name):
            self._result(root)
            variable = self._lookup(root)
            if variable:
                self._may_change(variable, root)
        elif not isinstance(root, Broken):
            self._report("F033", "only a variable's property or element can be assigned to", root, help="give the value a name first")

    def _may_change(self, variable: Variable, node: Node) -> None:
        if variable.missing:
            return
        if self._is_given(variable):
            self._report("F022", f"`{variable.name}` is read-only", node, help=f"change a copy: let copy = {variable.name}")
        elif variable.constant:
            self._report(
                "F022",
                f"`{variable.name}` is a constant",
                node,
                help=f"declare it with `let {variable.name}`",
                related=((variable.start, variable.end, "declared here"),),
            )
        elif variable.barrier < self.branches:
            self._report(
                "F029",
                f"a branch works on a copy of `{variable.name}`; changing it here changes nothing outside",
                node,
                help="return the value from the branch, and use the result of `await`",
                related=((variable.start, variable.end, "declared outside"),),
            )

    def _is_given(self, variable: Variable) -> bool:
        """Whether it is `inputs` or `ctx`."""
        return variable.constant and variable.name in ("inputs", "ctx") and variable in self.scopes[0].values()

    def _expression_statement(self, node: nodes.ExpressionStatement) -> None:
        value = node.value
        self._value(value, "statement")
        if self._is_operation(value) and not self.script and not (isinstance(value, nodes.Call) and value.name == "completed"):
            self._report(
                "F102",
                "this is started and never awaited",
                value,
                help=("write `await` before it;", "let _ = … says that nobody waits for it"),
            )

    def _if(self, node: nodes.If) -> None:
        for condition, block in node.arms:
            self._expression(condition, "a condition")
            self._result(condition)
            self._block(block)
        if node.otherwise:
            self._block(node.otherwise)

    def _while(self, node: nodes.While) -> None:
        self.repeated = node.condition
        self._expression(node.condition, "a condition")
        self._result(node.condition)
        self.repeated = None
        self._loop(node.body, ())

    def _for(self, node: nodes.For) -> None:
        if isinstance(node.source, nodes.Call) and node.source.name == "completed":
            self._group(node.source)
            if len(node.names) > 1:
                self._report(
                    "F017", "`completed` gives one thing at a time", node.names[1], help="write for (r in completed([…])); r.key says which"
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

    def _count_exit(self, node: Node, finallys: int) -> None:
        """Each way out of a `finally` is code of its own, so their number is limited."""
        self.exits += finallys
        if self.exits > self.limits.exits >= self.exits - finallys:
            self._report(
                "F006",
                f"more than {self.limits.exits:,} ways out through `finally`",
                node,
                help="move the inner blocks to a child workflow",
            )

    def _jump(self, node: Node) -> None:
        self._count_exit(node, self.finallys)
        if not self.loops:
            word = "break" if isinstance(node, nodes.Break) else "continue"
            ends = "`return` ends the branch, which is no part of the loop around it" if self.branches else "`return` ends the workflow"
            self._report("F028", f"`{word}` outside a loop", node, help=f"it belongs in for (…) {{ … }} or while (…) {{ … }}; {ends}")

    def _return(self, node: nodes.Return) -> None:
        self._count_exit(node, self.finallys)
        if node.value is not None:
            self._value(node.value, "return")
            self._result(node.value)

    def _throw(self, node: nodes.Throw) -> None:
        self._expression(node.value, "`throw`")
        if isinstance(node.value, nodes.Literal) and not isinstance(node.value.value, str):
            self._report(
                "F026", "`throw` takes text or an object", node.value, help='write throw "message", or throw { code, message, data }'
            )

    def _try(self, node: nodes.Try) -> None:
        self.finallys += node.cleanup is not None
        self._block(node.body)
        if node.handler:
            self._block(node.handler, (node.error,) if node.error else ())
        self.finallys -= node.cleanup is not None
        if node.cleanup:
            self._block(node.cleanup)

    def _broken(self, node: Node) -> None:
        """Reported already."""

    _STATEMENTS: dict[type[Node], Any] = {
        nodes.Let: _let, nodes.Assign: _assign, nodes.ExpressionStatement: _expression_statement, nodes.If: _if, nodes.For: _for,
        nodes.While: _while, nodes.Break: _jump, nodes.Continue: _jump, nodes.Return: _return, nodes.Throw: _throw, nodes.Try: _try,
        Broken: _broken,
    }  # fmt: skip

    # values in the places where operations may stand

    def _value(self, node: Node, where: str) -> None:
        """A whole statement, a whole right side or what `return` returns: the places where a snapshot can be taken."""
        if isinstance(node, nodes.Await):
            self._awaited(node)
        elif self._is_operation(node):
            self._placed_operation(node, where)
        elif isinstance(node, nodes.Call) and node.name in EMITS and where == "statement":
            self.telling = True
            self._arguments(node, EMITS[node.name])
            self.telling = False
        elif where == "right side" and self._holds_operations(node):
            self._operands(node)
        else:
            self._expression(node, "an expression")

    def _placed_operation(self, node: Node, where: str) -> None:
        if isinstance(node, nodes.Call) and node.name == "completed":
            self._refuse_completed(node)
        elif where == "return":
            text = self._text(node)
            self._report("F014", "an operation is awaited before it is returned", node, help=f"write return await {text}")
        self._operation(node)

    def _refuse_completed(self, node: Node) -> None:
        self._report("F017", "`completed` stands in the head of a `for`", node, help="write for (r in completed([…])) { … }")

    def _is_operation(self, node: Node | None) -> bool:
        return isinstance(node, nodes.BranchBlock) or (isinstance(node, nodes.Call) and node.name in OPERATION_NAMES)

    def _holds_operations(self, node: Node) -> bool:
        return any(self._is_operation(item) for item in _elements(node))

    def _starts(self, value: Node | None) -> Node | None:
        """The value, if it gives the id, or ids, of what it starts."""
        if value is None or (self._is_operation(value) and self.script):
            return None
        return value if self._is_operation(value) or self._holds_operations(value) else None

    def _awaited(self, await_: nodes.Await) -> None:
        node = await_.value
        started = self._started(node)
        if self._is_operation(node):
            if isinstance(node, nodes.Call) and node.name == "completed":
                self._refuse_completed(node)
            self._operation(node)
        elif self._is_operation(root := _root(node)):
            self._refuse_operation(root, "an expression", await_.start)
        elif started is not None and not self._is_operation(started):
            self._expression(node, "what is awaited")
            text = self._text(node)
            self._report("F015", f"`{text}` holds several ids", node, help=f"wait for all of them with: await all({text})")
        elif isinstance(node, nodes.Name | nodes.Member | nodes.Index | nodes.Conditional | Broken):
            self._expression(node, "what is awaited")
        elif isinstance(node, nodes.Call) and node.name not in EMITS and node.name not in BUILTINS:
            self._unknown_function(node)
        else:
            self._refuse_awaited(node)

    def _refuse_awaited(self, node: Node) -> None:
        help: str | tuple[str, ...] = "await takes an operation (task, workflow, sleep, signal, …) or the id of one that was started"
        if isinstance(node, COLLECTIONS):
            help = f"wait for all of them with: await all({self._text(node)})"
        elif isinstance(node, nodes.Call) and node.name in EMITS:
            help = f"{node.name} is not waited for: leave `await` out"
        elif isinstance(node, nodes.Call):
            help = f"{node.name} gives its value at once: leave `await` out"
        elif isinstance(node, nodes.Await):
            help = "one `await` is enough"
        self._report("F015", "this cannot be awaited", node, help=help)

    def _operation(self, node: Node) -> None:
        if isinstance(node, nodes.BranchBlock):
            self._branch(node)
        elif isinstance(node, nodes.Call) and node.name in GROUPS:
            self._group(node)
        elif isinstance(node, nodes.Call):
            self._arguments(node, OPERATIONS[node.name])
            self._known_target(node)
            self._advise_timeout(node)

    def _branch(self, node: nodes.BranchBlock) -> None:
        outside, self.loops, self.finallys = (self.loops, self.finallys), 0, 0
        self.branches += 1
        self._block(node.body)
        self.branches -= 1
        self.loops, self.finallys = outside

    def _group(self, node: nodes.Call) -> None:
        signature = GROUPS[node.name]
        if self._refuse_loose_items(node) or not self._count(node, signature):
            return
        items = node.args[0]
        if isinstance(items, nodes.Literal | nodes.Template):
            message = f"`{node.name}` takes a list or an object of operations"
            self._report("F026", message, items, help=f'write {node.name}([task("name"), …])')
        elif isinstance(items, COLLECTIONS):
            racing, self.racing = self.racing, node.name in ("race", "any")
            self._operands(items)
            self.racing = racing
        else:
            self._expression(items, "an argument")
        for option in node.args[1:]:
            self._expression(option, "an argument")
        self._options(node, signature)

    def _refuse_loose_items(self, node: nodes.Call) -> bool:
        """Operations or ids that stand side by side as arguments, not in a list."""
        if not any(map(self._is_item, node.args)) or isinstance(node.args[0], COLLECTIONS):
            return False
        args, last = [arg.value if isinstance(arg, nodes.Await) else arg for arg in node.args], node.args[-1]
        count = len(args) - (isinstance(last, nodes.ObjectLiteral) and not self._holds_operations(last))  # without the options
        texts = [self._text(arg) for arg in args]
        written = ", ".join([f"[{', '.join(texts[:count])}]", *texts[count:]])
        message = f"`{node.name}` takes a list or an object of operations"
        self.problems.report("F026", message, node.args[0].start, args[count - 1].end, help=f"write {node.name}({written})")
        for item in args[:count]:
            self._operand(item)
        return True

    def _is_item(self, node: Node) -> bool:
        return self._is_operation(node) or isinstance(node, nodes.Await) or self._is_operation(self._started(node))

    def _operands(self, node: Node) -> None:
        """A list, object or comprehension in which operations stand as elements."""
        if isinstance(node, nodes.Comprehension):
            self._each(node, self._operand)
        elif isinstance(node, nodes.ObjectLiteral):
            self._unique_keys(node)
        for item in () if isinstance(node, nodes.Comprehension) else _elements(node):
            self._operand(item)

    def _operand(self, node: Node) -> None:
        if isinstance(node, nodes.Call) and node.name == "completed":
            self._refuse_completed(node)
        elif self._is_operation(node):
            self._operation(node)
        elif isinstance(node, nodes.Await):
            self._report(
                "F012", "`await` cannot stand inside a list", node, help=f"leave it out; the group waits: {self._text(node.value)}"
            )
        elif isinstance(node, nodes.Spread):
            self._expression(node.value, "a list")
        else:
            self._expression(node, "a list")

    def _known_target(self, node: nodes.Call) -> None:
        if not node.args or not isinstance(node.args[0], nodes.Literal) or not isinstance(node.args[0].value, str):
            return
        name = node.args[0]
        if node.name == "task" and self.known.tasks is not None:
            self._known_task(node, name, self.known.tasks)
        if node.name == "workflow":
            self._known_workflow(name)

    def _known_workflow(self, name: nodes.Literal) -> None:
        known = self.known.workflows
        near = nearest(name.value, self.siblings if known is None else known, 0.8 if known is None else 0.65)
        if name.value not in (self.siblings if known is None else known) and (near or known is not None):
            help = f'did you mean "{near}"?' if near else "check the file that holds it together with this one"
            self._report("F105", f"no workflow `{name.value}` is in these files", name, help=help)

    def _known_task(self, node: nodes.Call, name: nodes.Literal, tasks: Mapping[str, TaskShape]) -> None:
        shape = tasks.get(name.value)
        if shape is None:
            near = nearest(name.value, tasks)
            self._report(
                "F103",
                f"no task `{name.value}` is registered here",
                name,
                help=f'did you mean "{near}"?' if near else "define it in Python: @rhythm.task, def " + name.value + "(…)",
            )
        elif len(node.args) < 2 or isinstance(node.args[1], nodes.ObjectLiteral):
            self._fits(name, shape, node.args[1] if len(node.args) > 1 else None)

    def _fits(self, name: nodes.Literal, shape: TaskShape, inputs: Node | None) -> None:
        entries = inputs.entries if isinstance(inputs, nodes.ObjectLiteral) else ()
        given = {entry.key: entry for entry in entries if isinstance(entry, nodes.Entry)}
        for key, entry in given.items():
            if key not in shape.params and not shape.open:
                near = nearest(key, shape.params)
                takes = f"it takes {', '.join(shape.params)}" if shape.params else "it takes no inputs"
                self._report("F104", f"task `{name.value}` has no input `{key}`", entry, help=f"did you mean `{near}`?" if near else takes)
            elif key in shape.params and isinstance(entry.value, nodes.Literal):
                self._fits_type(name, key, entry.value, shape.params[key])
        missing = shape.required - given.keys()
        if missing and not any(isinstance(entry, nodes.Spread) for entry in entries):
            self._report(
                "F104",
                f"task `{name.value}` also needs {', '.join(f'`{key}`' for key in sorted(missing))}",
                inputs or name,
                help=f"it takes {', '.join(shape.params)}",
            )

    def _fits_type(self, name: nodes.Literal, key: str, value: nodes.Literal, allowed: frozenset[str]) -> None:
        if allowed and json_type(value.value) not in allowed:
            types = " or ".join(sorted(allowed))
            message = f"`{key}` of task `{name.value}` is {types}, not {json_type(value.value)}"
            self._report("F104", message, value, help=f"pass {types}")

    def _advise_timeout(self, node: nodes.Call) -> None:
        if node.name not in ("signal", "event") or self.racing:
            return
        options = node.args[1] if len(node.args) > 1 else None
        if options is None or (isinstance(options, nodes.ObjectLiteral) and "timeout" not in _literal_keys(options, "timeout")):
            self._report("F201", "this can wait for ever", node, help='give it a { timeout: "3d" }, or race it against a sleep')

    # expressions: no await, no operation

    def _expression(self, node: Node, inside: str) -> None:
        check = self._EXPRESSIONS.get(type(node))
        if check:
            check(self, node, inside)
        elif isinstance(node, nodes.Call):
            self._call(node, inside)
        elif isinstance(node, nodes.Await):
            self._refuse_await(node, inside)
        elif isinstance(node, nodes.BranchBlock):
            self._refuse_operation(node, inside)

    def _refuse_await(self, node: nodes.Await, inside: str) -> None:
        if not self._is_operation(node.value) and self._is_operation(root := _root(node.value)):
            return self._refuse_operation(root, inside, node.start)
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
        """`start`: where an `await` stands before it that goes to the line of its own, too."""
        name = self._fresh_name(node)
        line = f"{name} = {self._text(node)}" if self.script else f"let {name} = await {self._text(node)}"
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

    def _call(self, node: nodes.Call, inside: str) -> None:
        if node.name in BUILTINS:
            self._arguments(node, BUILTINS[node.name])
            for arg in () if node.name in TAKE_IDS else node.args[:1]:
                self._result(arg)
        elif node.name == "completed":
            self._refuse_completed(node)
        elif self._is_operation(node):
            self._refuse_operation(node, inside)
        elif node.name in EMITS:
            self._report("F016", f"`{node.name}` gives no value", node, help=f"write {node.name}(…) as a statement of its own")
            self._arguments(node, EMITS[node.name])
        else:
            self._unknown_function(node)

    def _unknown_function(self, node: nodes.Call) -> None:
        for arg in node.args:
            self._expression(arg, "an argument")
        instead = FUNCTIONS_FROM_ELSEWHERE.get(node.name)
        near = nearest(node.name, CALLABLE)
        mine = f'to run your own code, write await task("{node.name}", {{ … }})'
        if self.known.tasks and node.name in self.known.tasks:
            near, instead = None, None
        help = f"write {instead}" if instead else f"did you mean `{near}`?" if near else mine
        self.problems.report("F023", f"there is no function `{node.name}`", node.start, node.name_end, help=help)

    def _arguments(self, node: nodes.Call, signature: Signature) -> None:
        if node.name in NAMED and node.args and isinstance(node.args[0], nodes.Name):
            self._refuse_bare_name(node, node.args[0])
        for arg in node.args:
            self._expression(arg, "an argument")
        if self._count(node, signature):
            self._options(node, signature)
            self._check_literals(node)

    def _count(self, node: nodes.Call, signature: Signature) -> bool:
        if signature.least <= len(node.args) <= signature.most:
            return True
        least, most = signature.least, signature.most
        wanted = f"{least}" if least == most else f"{least} or more" if most == UNLIMITED else f"{least} to {most}"
        help = f"write {signature.usage}"
        plural = "" if wanted == "1" else "s"
        self.problems.report(
            "F024", f"`{node.name}` takes {wanted} argument{plural}, not {len(node.args)}", node.start, node.end, help=help
        )
        return False

    def _options(self, node: nodes.Call, signature: Signature) -> None:
        if not signature.options or len(node.args) <= signature.options_at:
            return
        options = node.args[signature.options_at]
        if isinstance(options, nodes.Literal | nodes.ListLiteral | nodes.Template):
            self._report("F026", f"the options of `{node.name}` are an object", options, help=f"write {signature.usage}")
        self._known_options(node.name, options, signature.options)

    def _known_options(self, name: str, options: Node, known: frozenset[str]) -> None:
        for entry in options.entries if isinstance(options, nodes.ObjectLiteral) else ():
            if not isinstance(entry, nodes.Entry):
                continue
            if entry.key not in known:
                near = nearest(entry.key, known)
                help = f"did you mean `{near}`?" if near else f"`{name}` knows {', '.join(sorted(known))}"
                self._report("F025", f"`{name}` has no option `{entry.key}`", entry, help=help)
            elif problem := _option_problem(entry):
                self._report("F026", problem, entry.value, help=f"write {{ {entry.key}: {OPTION_EXAMPLES[OPTION_TYPES[entry.key]]} }}")
            elif entry.key == "backoff":
                self._known_options("backoff", entry.value, BACKOFF)

    def _check_literals(self, node: nodes.Call) -> None:
        """Arguments that are written out and cannot work."""
        first = node.args[0] if node.args else None
        if node.name == "approval" and isinstance(first, nodes.ObjectLiteral) and "role" not in _literal_keys(first, "role"):
            self._report("F026", "an approval needs a `role`: who may decide", first, help='write approval({ role: "manager", … })')
        if not isinstance(first, nodes.Literal):
            return
        if node.name == "sleep":
            try:
                duration_s(first.value)
            except ValueError as problem:
                self._report("F026", str(problem), first, help='write sleep("30s"), sleep("1h30m") or sleep(90)')
        elif node.name in NAMED and (not isinstance(first.value, str) or not first.value):
            self._report("F026", f"the first argument of `{node.name}` is a name", first, help=f'write {node.name}("name", …)')

    def _name(self, node: nodes.Name, inside: str) -> None:
        self._lookup(node)

    def _lookup(self, node: nodes.Name) -> Variable | None:
        variable = self._find(node.name)
        self.read.add(node.name)
        if variable is None:
            self._unknown(node)
        return variable

    def _unknown(self, node: nodes.Name) -> None:
        ended = self.ended.get(node.name)
        if ended:
            self._report(
                "F020",
                f"`{node.name}` is not known here: it lives in the block where it was declared",
                node,
                help=self._how_to_keep(ended),
                related=((ended.start, ended.end, "declared here"),),
            )
            self._say_once(node)
            return
        instead = WORDS_FROM_ELSEWHERE.get(node.name)
        near = nearest(node.name, [name for scope in self.scopes for name in scope if not scope[name].missing])
        help = f"write {instead}" if instead else f"did you mean `{near}`?" if near else f"declare it first: let {node.name} = …"
        if node.name in CALLABLE:
            help = f"`{node.name}` is called with arguments: {node.name}(…)"
        elif node.name in ("inputs", "ctx"):
            help = "name it in the header: workflow name(ctx, inputs) { … }"
        self._report("F020", f"unknown variable `{node.name}`", node, help=help)
        self._say_once(node)

    def _refuse_bare_name(self, node: nodes.Call, name: nodes.Name) -> None:
        """The name of a task, workflow, signal or event without its quotes."""
        if self._find(name.name) is None and name.name not in self.ended and name.name not in ("inputs", "ctx"):
            near = nearest(name.name, [known for scope in self.scopes for known in scope])
            help = f'write it in quotes: {node.name}("{name.name}"{", …" if len(node.args) > 1 else ""})'
            self._report("F020", f"unknown variable `{name.name}`", name, help=(help, *([f"or did you mean `{near}`?"] if near else [])))
            self._say_once(name)

    def _started(self, node: Node) -> Node | None:
        """The operation, or list, object or comprehension of operations, whose id or ids the variable holds for sure."""
        variable = self._find(node.name) if isinstance(node, nodes.Name) else None
        return variable.started if variable and variable.name not in self.settled else None

    def _result(self, node: Node) -> None:
        """Warns where a value is needed and the variable holds an id: an `await` was forgotten. Passing an id on needs no value."""
        operation = self._started(node)
        if not isinstance(node, nodes.Name) or operation is None or not self._is_operation(operation):
            return
        self._report(
            "F102",
            f"`{node.name}` is the id of something that was started, not its result",
            node,
            help=(f"write let {node.name} = await {self._text(operation)},", f"or before this line: let result = await {node.name}"),
            related=((operation.start, operation.end, "started here"),),
        )
        self.settled.add(node.name)
        self.read.add(node.name)

    def _how_to_keep(self, ended: Variable) -> str:
        if ended.barrier > self.branches:
            return "return it from the branch, and use the result of `await`"
        if ended.bound:
            return "copy it there into a variable that was declared before"
        return f"declare it before: let {ended.name} = null"

    def _say_once(self, node: nodes.Name) -> None:
        self.scopes[0][node.name] = Variable(node.name, node.start, node.end, missing=True)

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
            self._expression(entry.value if isinstance(entry, nodes.Entry) else entry, inside if inside == "an argument" else "an object")

    def _unique_keys(self, node: nodes.ObjectLiteral) -> None:
        seen: dict[str, nodes.Entry] = {}
        for entry in node.entries:
            if isinstance(entry, nodes.Entry):
                if first := seen.get(entry.key):
                    self._report(
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
        """An operand that is not always computed: an await in it must not be moved to where it always would be."""
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
        nodes.Name: _name, nodes.Template: _template, nodes.Spread: _spread, nodes.ListLiteral: _list, nodes.ObjectLiteral: _object,
        nodes.Comprehension: _comprehension, nodes.Unary: _unary, nodes.Binary: _binary, nodes.Logic: _binary,
        nodes.Conditional: _conditional, nodes.Member: _member, nodes.Index: _index,
    }  # fmt: skip

    # scopes

    def _find(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def _declare(self, name: nodes.Name, constant: bool = False, started: Node | None = None, bound: bool = False) -> None:
        first = self._find(name.name)
        self.settled.discard(name.name)
        if first and name.name != "_" and not first.missing:
            self._refuse_second(name, first, bound)
        else:
            self.scopes[-1][name.name] = Variable(name.name, name.start, name.end, constant, self.branches, started, bound)
        self._refuse_too_many(name)

    def _refuse_too_many(self, name: nodes.Name) -> None:
        if sum(map(len, self.scopes)) == self.limits.variables + 1:
            self._report(
                "F006",
                f"more than {self.limits.variables} variables at once",
                name,
                help="put values that belong together into an object, or move steps to a child workflow",
            )

    def _refuse_second(self, name: nodes.Name, first: Variable, bound: bool) -> None:
        given = self._is_given(first)
        assignable = not (given or bound or first.constant or first.barrier < self.branches)
        self._report(
            "F021",
            f"`{name.name}` is declared already",
            name,
            help="assign to it without `let`, or choose another name" if assignable else "choose another name",
            related=() if given else ((first.start, first.end, "declared here"),),
        )

    # annotations

    def _annotations(self, annotations: tuple[nodes.Annotation, ...]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for annotation in annotations:
            if annotation.name not in ANNOTATIONS:
                near = nearest(annotation.name, ANNOTATIONS)
                help = f"did you mean `@{near}`?" if near else f"known are {', '.join('@' + name for name in ANNOTATIONS)}"
                self._report("F031", f"there is no annotation `@{annotation.name}`", annotation, help=help)
            else:
                self._annotation(annotation, options)
        return options

    def _annotation(self, annotation: nodes.Annotation, options: dict[str, Any]) -> None:
        try:
            values = [_constant(arg) for arg in annotation.args]
            value = _annotation_value(annotation.name, values)
        except ValueError as problem:
            self._report(
                "F032",
                str(problem) or f"wrong arguments for `@{annotation.name}`",
                annotation,
                help=f"write {ANNOTATIONS[annotation.name]}",
            )
            return
        if annotation.name in ("on", "schedule"):
            options.setdefault(annotation.name, []).append(value)
        elif annotation.name in options:
            self._report("F032", f"`@{annotation.name}` stands twice", annotation, help="keep one of them")
        else:
            options[annotation.name] = value

    # help that shows the author's own code

    def _text(self, node: Node) -> str:
        text = " ".join(self.source.text[node.start : node.end].split())
        return text if len(text) <= 100 else text[:99] + "…"

    def _fresh_name(self, node: Node) -> str:
        """A name for the value: the task's own if it has one."""
        base = "result"
        if isinstance(node, nodes.Call):
            first = node.args[0] if node.args else None
            wanted = first.value if isinstance(first, nodes.Literal) else "results" if node.name in GROUPS else node.name
            if isinstance(wanted, str) and wanted.isascii() and wanted.isidentifier() and wanted not in RESERVED:
                base = wanted
        name, number = base, 2
        while self._find(name):
            name, number = f"{base}{number}", number + 1
        return name

    def _hoisted(self, node: Node, line: str, name: str) -> tuple[str, ...]:
        """How to write what awaits inside an expression: the await on a line of its own, which in the head of a loop is inside it."""
        if self.comprehension is not None:
            return self._gathered(node, self.comprehension)
        if self.depends:
            return (
                "await it in an `if` of its own, so that it runs only when it should:",
                f"let {name} = null",
                f"if (…) {{ {line.removeprefix('let ')} }}",
            )
        if self.repeated is None:
            return "await it first, on a line of its own:", line, self._rewritten(node, name)
        text = self.source.text
        condition = " ".join(f"{text[self.repeated.start : node.start]}{name}{text[node.end : self.repeated.end]}".split())
        return "await it in the loop:", "while (true) {", f"  {line}", f"  if (!({condition})) {{ break }}", "  …"

    def _gathered(self, node: Node, around: nodes.Comprehension) -> tuple[str, ...]:
        """What awaits in a comprehension is started for every element, and awaited together."""
        operation = node.value if isinstance(node, nodes.Await) else node
        rest = " ".join(self.source.text[around.element.end : around.end].split())
        return "start them all and wait for all of them:", f"let results = await all([{self._text(operation)} {rest})"

    def _rewritten(self, node: Node, name: str) -> str:
        """The line of the node with the name in its place."""
        number, column = self.source.position(node.start)
        line = self.source.line(number)
        end = column - 1 + (node.end - node.start)
        rest = line[end:] if end <= len(line) else " …"
        if len(line) > 200:
            return f"… {line[max(column - 61, 0) : column - 1]}{name}{rest[:60]} …"
        return _without_comment(f"{line[: column - 1]}{name}{rest}").strip()

    def _report(self, code: str, message: str, node: Node, label: str = "", help: str | tuple[str, ...] = (),
                related: tuple[tuple[int, int, str], ...] = ()) -> None:  # fmt: skip
        self.problems.report(code, message, node.start, node.end, label, help, related)


def _without_comment(line: str) -> str:
    code = _CODE.match(line)
    return code[0] if code and line.startswith("//", code.end()) else line


def json_type(value: object) -> str:
    """The JSON type of a value, as messages name it."""
    if value is None:
        return "null"
    names: list[tuple[type, str]] = [(bool, "true or false"), (int, "a number"), (float, "a number"), (str, "text"), (list, "a list")]
    return next((name for cls, name in names if isinstance(value, cls)), "an object")


def _elements(node: Node | None) -> tuple[Node, ...]:
    """What stands directly in a list, object or comprehension."""
    if isinstance(node, nodes.ListLiteral):
        return node.items
    if isinstance(node, nodes.ObjectLiteral):
        return tuple(entry.value if isinstance(entry, nodes.Entry) else entry for entry in node.entries)
    return (node.element,) if isinstance(node, nodes.Comprehension) else ()


def _root(node: Node) -> Node:
    """What a path begins with."""
    while isinstance(node, nodes.Member | nodes.Index):
        node = node.target
    return node


def _needed(node: nodes.Binary | nodes.Logic) -> tuple[Node, ...]:
    """The operands whose own value counts. Ids may be compared with each other, and looked for in a list."""
    if isinstance(node, nodes.Logic):
        return (node.left,)
    if node.op in ("==", "!="):
        written = isinstance(node.left, nodes.Literal) or isinstance(node.right, nodes.Literal)
        return (node.left, node.right) if written else ()
    return (node.right,) if node.op == "in" else (node.left, node.right)


def _literal_keys(node: nodes.ObjectLiteral, wanted: str) -> set[str]:
    if any(isinstance(entry, nodes.Spread) for entry in node.entries):
        return {wanted}  # it may be in what is spread
    return {entry.key for entry in node.entries if isinstance(entry, nodes.Entry)}


def _breaks(block: Block) -> bool:
    """Whether a `break` in this block leaves the loop it is the body of."""
    for statement in block.statements:
        if isinstance(statement, nodes.Break | Broken):
            return True
        if isinstance(statement, nodes.If):
            inner = [body for _, body in statement.arms] + ([statement.otherwise] if statement.otherwise else [])
        elif isinstance(statement, nodes.Try):
            inner = [body for body in (statement.body, statement.handler, statement.cleanup) if body]
        else:
            inner = []
        if any(_breaks(body) for body in inner):
            return True
    return False


def _option_problem(entry: nodes.Entry) -> str:
    """What is wrong with an option that is written out; empty if nothing, or if it is computed."""
    kind = OPTION_TYPES.get(entry.key)
    if kind == "object":
        return f"`{entry.key}` is an object" if isinstance(entry.value, nodes.Literal | nodes.ListLiteral | nodes.Template) else ""
    if not isinstance(entry.value, nodes.Literal) or kind is None:
        return ""
    value = entry.value.value
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == "duration" or (kind == "backoff" and not isinstance(value, dict)):
        try:
            duration_s(value)
        except ValueError as problem:
            return f"`{entry.key}`: {problem}"
        return ""
    checks = {
        "count": (whole and 0 <= value <= INT_MAX, "is a whole number, 0 or more"),
        "positive": (whole and value > 0, "is a whole number, 1 or more"),
        "integer": (whole, "is a whole number"),
        "text": (isinstance(value, str) and value != "", "is text, and not empty"),
        "bool": (isinstance(value, bool), "is true or false"),
        "factor": (isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= 100, "is a number from 1 to 100"),
    }  # fmt: skip
    fits, says = checks[kind]
    return "" if fits else f"`{entry.key}` {says}"


def _constant(node: Node) -> Any:
    if isinstance(node, nodes.Literal):
        return node.value
    if isinstance(node, nodes.ObjectLiteral):
        return {entry.key: _constant(entry.value) for entry in node.entries if isinstance(entry, nodes.Entry)}
    raise ValueError("annotations take constants")


def _annotation_value(name: str, values: list[Any]) -> Any:
    """The value an annotation sets; ValueError (with or without a reason) if the arguments do not fit."""
    if not values or not isinstance(values[0], str) or not values[0] or len(values) > (2 if name == "schedule" else 1):
        if name == "timeout" and len(values) == 1:
            return duration_s(values[0])
        raise ValueError
    if name == "timeout":
        return duration_s(values[0])
    if name != "schedule":
        return values[0]
    options = values[1] if len(values) > 1 else {}
    if len(values[0].split()) != 5:
        raise ValueError("a schedule has five fields: minute hour day month weekday")
    if not isinstance(options, dict) or not options.keys() <= {"tz", "overlap"} or not all(isinstance(v, str) for v in options.values()):
        raise ValueError("a schedule takes { tz, overlap }, both text")
    return {"cron": values[0], **options}
