"""The tasks and workflows that exist outside the file, and whether what it starts is among them."""

from __future__ import annotations

from collections.abc import Mapping

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.problems import Problems
from rhythm.record import Record
from rhythm.suggest import nearest


class TaskShape(Record):
    """What is known of a registered task: the inputs that it takes.

    `params` has the JSON types that each input may have; an empty set means any.
    """

    params: Mapping[str, frozenset[str]]
    required: frozenset[str]
    open: bool = False  # it takes any further inputs (**kwargs)


class Surroundings(Record):
    """What exists outside the file. None: nothing is known, so nothing can be missing."""

    tasks: Mapping[str, TaskShape] | None = None
    workflows: frozenset[str] | None = None


def json_type(value: object) -> str:
    """Returns the JSON type of a value, as messages name it."""
    if value is None:
        return "null"
    names: list[tuple[type, str]] = [
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (str, "text"),
        (list, "a list"),
    ]
    return next((name for cls, name in names if isinstance(value, cls)), "an object")


def check_target(
    node: nodes.Call, known: Surroundings, siblings: frozenset[str], problems: Problems
) -> None:
    """Warns if what a call starts does not exist. `siblings`: the workflows of the same file."""
    if node.name == "approval" and known.tasks is not None and node.args:
        _check_notice(node.args[0], known.tasks, problems)
    if (
        not node.args
        or not isinstance(node.args[0], nodes.Literal)
        or not isinstance(node.args[0].value, str)
    ):
        return
    name = node.args[0]
    if node.name == "task" and known.tasks is not None:
        _check_task(node, name, known.tasks, problems)
    if node.name == "workflow":
        _check_workflow(name, known.workflows, siblings, problems)


def _check_workflow(
    name: nodes.Literal, known: frozenset[str] | None, siblings: frozenset[str], problems: Problems
) -> None:
    near = nearest(name.value, siblings if known is None else known, 0.8 if known is None else 0.65)
    if name.value not in (siblings if known is None else known) and (near or known is not None):
        help = (
            f'did you mean "{near}"?'
            if near
            else "check the file that holds it together with this one"
        )
        problems.about("F105", f"no workflow `{name.value}` is in these files", name, help=help)


def _check_notice(options: Node, tasks: Mapping[str, TaskShape], problems: Problems) -> None:
    """Warns if the task that notifies people of an approval does not exist."""
    for entry in options.entries if isinstance(options, nodes.ObjectLiteral) else ():
        named = entry.value if isinstance(entry, nodes.Entry) and entry.key == "notify" else None
        if (
            isinstance(named, nodes.Literal)
            and isinstance(named.value, str)
            and named.value not in tasks
        ):
            _no_task(named, tasks, problems)


def _no_task(name: nodes.Literal, tasks: Mapping[str, TaskShape], problems: Problems) -> None:
    near = nearest(name.value, tasks)
    problems.about(
        "F103",
        f"no task `{name.value}` is registered here",
        name,
        help=f'did you mean "{near}"?'
        if near
        else "define it in Python: @rhythm.task, def " + name.value + "(…)",
    )


def _check_task(
    node: nodes.Call, name: nodes.Literal, tasks: Mapping[str, TaskShape], problems: Problems
) -> None:
    shape = tasks.get(name.value)
    if shape is None:
        _no_task(name, tasks, problems)
    elif len(node.args) < 2 or isinstance(node.args[1], nodes.ObjectLiteral):
        _check_inputs(name, shape, node.args[1] if len(node.args) > 1 else None, problems)


def _check_inputs(
    name: nodes.Literal, shape: TaskShape, inputs: Node | None, problems: Problems
) -> None:
    entries = inputs.entries if isinstance(inputs, nodes.ObjectLiteral) else ()
    given = {entry.key: entry for entry in entries if isinstance(entry, nodes.Entry)}
    for key, entry in given.items():
        if key not in shape.params and not shape.open:
            near = nearest(key, shape.params)
            takes = f"it takes {', '.join(shape.params)}" if shape.params else "it takes no inputs"
            problems.about(
                "F104",
                f"task `{name.value}` has no input `{key}`",
                entry,
                help=f"did you mean `{near}`?" if near else takes,
            )
        elif key in shape.params and isinstance(entry.value, nodes.Literal):
            _check_type(name, key, entry.value, shape.params[key], problems)
    missing = shape.required - given.keys()
    if missing and not any(isinstance(entry, nodes.Spread) for entry in entries):
        problems.about(
            "F104",
            f"task `{name.value}` also needs {', '.join(f'`{key}`' for key in sorted(missing))}",
            inputs or name,
            help=f"it takes {', '.join(shape.params)}",
        )


def _check_type(
    name: nodes.Literal, key: str, value: nodes.Literal, allowed: frozenset[str], problems: Problems
) -> None:
    if allowed and json_type(value.value) not in allowed:
        types = " or ".join(sorted(allowed))
        message = f"`{key}` of task `{name.value}` is {types}, not {json_type(value.value)}"
        problems.about("F104", message, value, help=f"pass {types}")
