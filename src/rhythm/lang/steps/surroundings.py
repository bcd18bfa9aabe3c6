"""Whether the tasks that steps name exist, and take the inputs that they are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rhythm.lang.flow.rules.surroundings import Surroundings, TaskShape, misfit_words
from rhythm.lang.shapes import LIST, Kind, ValueShape, misfit, of_object, of_value
from rhythm.lang.steps.document import Json
from rhythm.lang.steps.problems import StepProblems, one_of
from rhythm.lang.steps.read import JsonStep
from rhythm.suggest import nearest


def check_tasks(steps: tuple[JsonStep, ...], known: Surroundings, problems: StepProblems) -> None:
    """Warns of tasks that are not registered, and of inputs that they do not take."""
    tasks: Mapping[str, TaskShape] = known.tasks or {}
    for name, task, inputs in _calls(steps):
        shape = tasks.get(task)
        if shape is None and not known.all_tasks:
            continue
        if shape is None:
            near = nearest(task, tasks)
            help = (
                f'did you mean "{near}"?'
                if near
                else f"define it in Python: @rhythm.task, def {task}(…)"
            )
            problems.at("S103", f"no task `{task}` is registered here", name, help)
        elif inputs is None or isinstance(inputs.value, dict):
            _check_inputs(name, task, shape, inputs, problems)


def _calls(steps: tuple[JsonStep, ...]) -> Iterator[tuple[Json, str, Json | None]]:
    """Yields where each task is named, its name, and its inputs."""
    for step in steps:
        if "task" in step.keys:
            yield step.keys["task"], step.keys["task"].value, step.keys.get("inputs")
        for item in step.keys["execute"].items if "execute" in step.keys else ():
            yield from _executed(item)
        for _, branch in step.branches:
            yield from _calls(branch)


def _executed(item: Json) -> Iterator[tuple[Json, str, Json | None]]:
    type, task = item.get("type"), item.get("task")
    if type and type.value == "notify":
        given = {key: inner for key, inner in item.entries.items() if key != "type"}
        yield type, "notify", item.replace(entries=given)
    elif type and type.value == "task" and task and isinstance(task.value, str):
        yield task, task.value, item.get("inputs")


def _check_inputs(
    name: Json, task: str, shape: TaskShape, inputs: Json | None, problems: StepProblems
) -> None:
    given = inputs.entries if inputs else {}
    for key in given:
        if inputs and key not in shape.params and not shape.open:
            help = one_of(key, list(shape.params)) if shape.params else "it takes no inputs"
            problems.at("S104", f"task `{task}` has no input `{key}`", inputs.key(key), help)
        elif found := misfit(_written(given[key]), shape.params.get(key)):
            message, help = misfit_words(key, f"task `{task}`", found)
            problems.at("S104", message, given[key], help)
    if missing := shape.required - given.keys():
        needs = ", ".join(f"`{key}`" for key in sorted(missing))
        problems.at(
            "S104", f"task `{task}` also needs {needs}", name, f"it takes {', '.join(shape.params)}"
        )


def _written(place: Json) -> ValueShape | None:
    """Returns what is known of an input; one with `${…}` in it may be anything."""
    if isinstance(place.value, dict):
        return of_object({key: _written(inner) for key, inner in place.entries.items()})
    if isinstance(place.value, list):
        return ValueShape((Kind(LIST, list, parts=tuple(map(_written, place.items))),))
    if isinstance(place.value, str) and "${" in place.value:
        return None
    return of_value(place.value)
