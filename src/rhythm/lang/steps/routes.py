"""Where the steps lead: only to steps that exist, to every step, and not in endless circles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from rhythm.lang.steps.problems import StepProblems, one_of
from rhythm.lang.steps.read import JsonStep

MAX_CYCLES = 20  # at most this many circles are reported


def check_routes(
    steps: tuple[JsonStep, ...], problems: StepProblems, everywhere: Iterable[str] = ()
) -> None:
    """Checks one list of steps, and those of its branches.

    `everywhere`: the ids of all lists around it.
    """
    known = {step.id: step for step in steps}
    outside = {
        *everywhere,
        *(inner.id for step in steps for _, branch in step.branches for inner in _all(branch)),
    }
    for step in steps:
        for _, branch in step.branches:
            check_routes(branch, problems, {*everywhere, *known})
    lost = [
        (step, key, to)
        for step in steps
        for key, to in step.ways()
        if to is not None and to not in known
    ]
    for step, key, to in lost:
        _unknown(step, key, to, known, outside, problems)
    if not lost:  # other problems with the routes may follow from these
        _check_ways(steps, known, problems)


def _check_ways(
    steps: tuple[JsonStep, ...], known: dict[str, JsonStep], problems: StepProblems
) -> None:
    reached = _reached(steps, known)
    for step in steps:
        if step.id not in reached:
            problems.at(
                "S101",
                f'nothing leads to the step "{step.id}"',
                step.keys.get("id", step.place),
                "name it in a step before it",
            )
    for circle in islice(_circles(steps), MAX_CYCLES):
        _round(circle, problems)


def _all(steps: tuple[JsonStep, ...]) -> Iterator[JsonStep]:
    for step in steps:
        yield step
        for _, branch in step.branches:
            yield from _all(branch)


def _unknown(
    step: JsonStep,
    key: str,
    to: str,
    known: dict[str, JsonStep],
    outside: set[str],
    problems: StepProblems,
) -> None:
    if to in outside:
        help = "a branch leads to its own steps only; when it has ended, its parallel step goes on"
        problems.at("S009", f'the step "{to}" is in another list', step.keys[key], help)
    else:
        problems.at(
            "S009",
            f'there is no step "{to}"',
            step.keys[key],
            one_of(to, [id for id in known if "#" not in id]),
        )


def _reached(steps: tuple[JsonStep, ...], known: dict[str, JsonStep]) -> set[str]:
    reached, ahead = set[str](), [step.id for step in steps[:1]]
    while ahead:
        id = ahead.pop()
        if id not in reached and id in known:
            reached.add(id)
            ahead += [to for _, to in known[id].ways() if to is not None]
    return reached


def _circles(steps: tuple[JsonStep, ...]) -> Iterator[list[JsonStep]]:
    """Yields circles, each step in at most one of them.

    First come those on which nothing is awaited, then those without a wait step and without an
    approval.
    """
    reported: set[str] = set()
    for moving in (
        [step for step in steps if not step.awaits],
        [step for step in steps if not step.asks and step.type != "wait"],
    ):
        left = {step.id: step for step in moving if step.id not in reported}
        while circle := _circle(left):
            yield circle
            reported.update(step.id for step in circle)
            left = {id: step for id, step in left.items() if id not in reported}


def _circle(left: dict[str, JsonStep]) -> list[JsonStep]:
    """Returns one circle among these steps, beginning with the first in the file; empty if none."""
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(
            {id: [to for _, to in step.ways() if to in left] for id, step in left.items()}
        ).prepare()
    except CycleError as found:
        # The cycle is reported in the other direction, with the first step repeated at the end.
        ids = found.args[1][:0:-1]
        first = min(range(len(ids)), key=lambda i: left[ids[i]].place.start)
        return [left[id] for id in (*ids[first:], *ids[:first])]
    return []


def _round(circle: list[JsonStep], problems: StepProblems) -> None:
    way = " → ".join(step.id for step in [*circle, circle[0]])
    place = circle[0].keys.get("id", circle[0].place)
    if any(step.awaits for step in circle):
        problems.at(
            "S102",
            f"these steps go round without a wait: {way}",
            place,
            'put a wait between them, such as { "for": "1m" }',
        )
    else:
        help = (
            "nothing changes on the way, so it would never end: let one of them wait, or lead "
            "elsewhere"
        )
        problems.at("S010", f"these steps go round for ever: {way}", place, help)
