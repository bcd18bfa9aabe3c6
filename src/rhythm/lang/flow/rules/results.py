"""Results of tasks that are used against their hints: fields that they do not have.

Only variables with one value are looked at: those that are declared once, and never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node, walk
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.rules.kinds import literal_keys, root
from rhythm.lang.flow.rules.surroundings import TaskShape
from rhythm.lang.shapes import LIST, OBJECT, ValueShape, either
from rhythm.suggest import nearest

Bound = tuple[Node, bool]  # a value, and whether the variable walks over it


def check_results(
    workflow: nodes.Workflow, tasks: Mapping[str, TaskShape], problems: Problems
) -> None:
    """Warns of fields that the result of a task has not, by its hint."""
    _Results(workflow, tasks, problems).check()


class _Results:
    def __init__(
        self, workflow: nodes.Workflow, tasks: Mapping[str, TaskShape], problems: Problems
    ) -> None:
        self.tasks, self.problems, self.script = tasks, problems, workflow.script
        self.all = list(walk(workflow.body))
        self.bound: dict[str, list[Bound | None]] = {}
        for node in self.all:
            for name, value in _bindings(node):
                self.bound.setdefault(name, []).append(value)

    def check(self) -> None:
        before_default = {
            id(_last_of(node.left))
            for node in self.all
            if isinstance(node, nodes.Logic) and node.op == "??"
        }
        for node in self.all:
            if id(node) in before_default:  # may be missing, as after `?.`
                continue
            if isinstance(node, nodes.Member) and not node.optional:
                end = node.name_start + len(node.name)
                self._check(node.target, node.name, node.name_start, end)
            elif isinstance(node, nodes.Index) and not node.optional:
                key = node.index.value if isinstance(node.index, nodes.Literal) else None
                if isinstance(key, str):
                    self._check(node.target, key, node.index.start, node.index.end)

    def _check(self, target: Node, key: str, start: int, end: int) -> None:
        shape = self._shape(target)
        if shape is None or not shape.kinds:
            return
        fields: list[str] = []
        for kind in shape.kinds:
            if kind.word == OBJECT and (not kind.name or not kind.fields or key in kind.fields):
                return
            fields += kind.fields or ()
        names = " or ".join(dict.fromkeys(kind.name or kind.word for kind in shape.kinds))
        near = nearest(key, fields)
        help = f"it has {', '.join(fields)}" if fields else "correct it, or the hint of the task"
        self.problems.report(
            "F106",
            f"there is no `{key}` here: by the hint of its task, this is {names}",
            start,
            end,
            help=f"did you mean `{near}`?" if near else help,
        )

    def _shape(self, node: Node) -> ValueShape | None:
        match node:
            case nodes.Await(value=nodes.Call() as call):
                return self._result(call)
            case nodes.Call() if self.script:
                return self._result(node)
            case nodes.Name(name=name):
                return self._variable(name)
            case nodes.Member(target=target, name=key):
                return _field(self._shape(target), key)
            case nodes.Index(target=target, index=nodes.Literal(value=str(key))):
                return _field(self._shape(target), key)
            case nodes.Index(target=target):
                return _element(self._shape(target))
        return None

    def _variable(self, name: str) -> ValueShape | None:
        match self.bound.get(name):
            case [(value, walks)]:
                shape = self._shape(value)
                return _element(shape) if walks else shape
        return None

    def _result(self, call: nodes.Call) -> ValueShape | None:
        name = call.args[0] if call.name == "task" and call.args else None
        options = call.args[2] if len(call.args) > 2 else None
        settles = options is not None and (
            not isinstance(options, nodes.ObjectLiteral)
            or "settle" in literal_keys(options, "settle")
        )
        if settles or not isinstance(name, nodes.Literal):
            return None
        task = self.tasks.get(name.value)
        return task.result if task else None


def _last_of(node: Node) -> Node:
    """Returns what an expression gives if all that stands before a `??` in it is null."""
    while isinstance(node, nodes.Logic) and node.op == "??":
        node = node.right
    return node


def _bindings(node: Node) -> Iterator[tuple[str, Bound | None]]:
    """Yields the variables that a node sets, each with its value if that is all there is to it."""
    match node:
        case nodes.Let(target=nodes.Name(name=name), value=value) if value is not None:
            yield name, (value, False)
        case nodes.Assign(target=nodes.Name(name=name), op="=", value=value):
            yield name, (value, False)
        case nodes.Assign(target=nodes.Member() | nodes.Index() as target):
            if isinstance(first := root(target), nodes.Name):
                yield first.name, None
        case nodes.Let(target=target) | nodes.Assign(target=target):
            yield from ((name, None) for name in _names(target))
        case (
            nodes.For(names=[name], source=source)
            | nodes.Comprehension(names=[name], source=source)
        ):
            yield name.name, (source, True)
        case nodes.For(names=names) | nodes.Comprehension(names=names):
            yield from ((name.name, None) for name in names)
        case nodes.Try(error=nodes.Name(name=name)):
            yield name, None


def _names(target: Node) -> Iterator[str]:
    match target:
        case nodes.Name(name=name):
            yield name
        case nodes.ListPattern(names=names):
            yield from (name.name for name in names)
        case nodes.ObjectPattern(fields=fields):
            yield from (field.name.name for field in fields)


def _field(shape: ValueShape | None, key: str) -> ValueShape | None:
    if shape is None:
        return None
    return either(
        (kind.fields.get(key) if kind.fields is not None else kind.items)
        if kind.word == OBJECT
        else None
        for kind in shape.kinds
    )


def _element(shape: ValueShape | None) -> ValueShape | None:
    if shape is None:
        return None
    return either(
        (kind.items if kind.parts is None else either(kind.parts)) if kind.word == LIST else None
        for kind in shape.kinds
    )
