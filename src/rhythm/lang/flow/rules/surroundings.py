"""The tasks and workflows that exist outside the file, and whether what it starts is among them."""

from __future__ import annotations

from collections.abc import Mapping

from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.problems import Problems
from rhythm.lang.flow.rules.kinds import COMPUTED, constant_of
from rhythm.lang.shapes import (
    LIST,
    TEXT,
    Kind,
    Misfit,
    ValueShape,
    misfit,
    of_object,
    of_value,
    of_words,
)
from rhythm.record import Record
from rhythm.suggest import nearest


class TaskShape(Record):
    """What is known of a registered task: the inputs that it takes, and what it gives.

    None in place of a shape means anything.
    """

    params: Mapping[str, ValueShape | None]
    required: frozenset[str]
    open: bool = False  # it takes any further inputs (**kwargs)
    result: ValueShape | None = None


class Surroundings(Record):
    """What exists outside the file. None: nothing is known, so nothing can be missing."""

    tasks: Mapping[str, TaskShape] | None = None
    workflows: frozenset[str] | None = None
    all_tasks: bool = True  # false: there may be tasks besides these


def check_target(
    node: nodes.Call, known: Surroundings, siblings: frozenset[str], problems: Problems
) -> None:
    """Warns if what a call starts does not exist. `siblings`: the workflows of the same file."""
    if node.name == "approval" and known.tasks is not None and known.all_tasks and node.args:
        _check_notice(node.args[0], known.tasks, problems)
    if (
        not node.args
        or not isinstance(node.args[0], nodes.Literal)
        or not isinstance(node.args[0].value, str)
    ):
        return
    name = node.args[0]
    tasks = known.tasks if node.name == "task" else None
    if tasks is not None and (known.all_tasks or name.value in tasks):
        _check_task(node, name, tasks, problems)
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
        elif found := misfit(written(entry.value), shape.params.get(key)):
            message, help = misfit_words(key, f"task `{name.value}`", found)
            problems.about("F104", message, entry.value, help=help)
    missing = shape.required - given.keys()
    if missing and not any(isinstance(entry, nodes.Spread) for entry in entries):
        problems.about(
            "F104",
            f"task `{name.value}` also needs {', '.join(f'`{key}`' for key in sorted(missing))}",
            inputs or name,
            help=f"it takes {', '.join(shape.params)}",
        )


MUST_BE = "must be "  # how `misfit` begins where it names what is expected


def misfit_words(key: str, callee: str, found: Misfit) -> tuple[str, str]:
    """Returns the message and the help for an input that does not fit what a callee takes."""
    path, problem = found
    wanted = problem.removeprefix(MUST_BE).partition(", not ")[0]
    help = (
        f"pass {wanted}" if problem.startswith(MUST_BE) else "write the object that its hint names"
    )
    return f"`{key}{path}` of {callee} {problem}", help


def written(node: Node) -> ValueShape | None:
    """Returns what is known of a value from how it is written; None if it is computed."""
    match node:
        case nodes.ListLiteral(items=items) if not _spreads(items):
            return ValueShape((Kind(LIST, list, parts=tuple(map(written, items))),))
        case nodes.ObjectLiteral(entries=entries):
            fields = {e.key: written(e.value) for e in entries if isinstance(e, nodes.Entry)}
            return of_object(fields, others=_spreads(entries))
        case nodes.Template():
            return of_words([TEXT])
    value = constant_of(node)
    return None if value is COMPUTED else of_value(value)


def _spreads(parts: tuple[Node, ...]) -> bool:
    return any(isinstance(part, nodes.Spread) for part in parts)
