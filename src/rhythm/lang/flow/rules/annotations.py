"""The annotations before a workflow, and the options that they set."""

from __future__ import annotations

from typing import Any

from rhythm.durations import duration_s
from rhythm.lang.flow import nodes
from rhythm.lang.flow.constants import constant_of
from rhythm.lang.flow.problems import Problems
from rhythm.limits import LONGEST_NAME
from rhythm.suggest import nearest

ANNOTATIONS = {
    "queue": '@queue("name")',
    "timeout": '@timeout("30d")',
    "on": '@on("event.type")',
    "schedule": '@schedule("0 9 * * *", { tz: "Europe/Berlin", overlap: "skip" })',
    "version": '@version("label")',
}


def annotation_options(
    annotations: tuple[nodes.Annotation, ...], problems: Problems
) -> dict[str, Any]:
    """Returns the options that the annotations set; reports what is wrong with them."""
    options: dict[str, Any] = {}
    for annotation in annotations:
        if annotation.name not in ANNOTATIONS:
            near = nearest(annotation.name, ANNOTATIONS)
            help = (
                f"did you mean `@{near}`?"
                if near
                else f"known are {', '.join('@' + name for name in ANNOTATIONS)}"
            )
            problems.about(
                "F031", f"there is no annotation `@{annotation.name}`", annotation, help=help
            )
        else:
            _set_option(annotation, options, problems)
    return options


def check_schedules(workflow: nodes.Workflow, options: dict[str, Any], problems: Problems) -> None:
    """Reports schedules whose inputs are not those that the workflow declares."""
    from rhythm.errors import InvalidInputs
    from rhythm.ir.input_schema import check_inputs

    annotations = [each for each in workflow.annotations if each.name == "schedule"]
    schedules = options.get("schedule", [])
    if len(annotations) > len(schedules):
        return  # one of them was refused
    for annotation, schedule in zip(annotations, schedules, strict=True):
        try:
            check_inputs(workflow.name, options["inputs"], schedule.get("inputs"))
        except InvalidInputs as problem:
            problems.about(
                "F032",
                str(problem),
                annotation,
                help='write them after the time: @schedule("0 9 * * *", { inputs: { … } })',
            )


def _set_option(annotation: nodes.Annotation, options: dict[str, Any], problems: Problems) -> None:
    try:
        value = _value(
            annotation.name,
            [constant_of(arg, "annotations take constants") for arg in annotation.args],
        )
    except ValueError as problem:
        problems.about(
            "F032",
            str(problem) or f"wrong arguments for `@{annotation.name}`",
            annotation,
            help=f"write {ANNOTATIONS[annotation.name]}",
        )
        return
    if annotation.name in ("on", "schedule"):
        options.setdefault(annotation.name, []).append(value)
    elif annotation.name in options:
        problems.about(
            "F032", f"`@{annotation.name}` stands twice", annotation, help="keep one of them"
        )
    else:
        options[annotation.name] = value


def _value(name: str, values: list[Any]) -> Any:
    """Returns the value that an annotation sets.

    Raises ValueError, with or without a reason, if the arguments do not fit.
    """
    if name == "timeout" and len(values) == 1:
        return duration_s(values[0])
    if (
        not values
        or not isinstance(values[0], str)
        or not values[0]
        or len(values) > (2 if name == "schedule" else 1)
    ):
        raise ValueError
    if name != "schedule":
        if len(values[0]) > LONGEST_NAME:
            raise ValueError(
                f"`@{name}` takes at most {LONGEST_NAME} characters, not {len(values[0]):,}"
            )
        return values[0]
    return schedule_option(values[0], values[1] if len(values) > 1 else {})


def schedule_option(cron: str, options: Any) -> dict[str, Any]:
    """Returns a schedule as it is stored. Raises ValueError if it cannot work."""
    from rhythm.schedule_times import Timing, catch_up_number, check_overlap, check_timing

    if not isinstance(options, dict) or not options.keys() <= {
        "tz",
        "overlap",
        "catch_up",
        "inputs",
    }:
        raise ValueError("a schedule takes { tz, overlap, catch_up, inputs }")
    check_timing(Timing(cron, options.get("tz", "UTC")))
    check_overlap(options.get("overlap", "skip"))
    catch_up_number(options.get("catch_up", "one"))
    return {"cron": cron, **options}
