"""Where the steps lead: to steps that exist, to every step, and not round and round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rhythm.lang.steps.problems import Problems, one_of
from rhythm.lang.steps.read import Step


def check_routes(steps: tuple[Step, ...], problems: Problems, everywhere: Iterable[str] = ()) -> None:
    """Checks one list of steps, and those of its branches. `everywhere`: the ids of all lists around it."""
    known = {step.id: step for step in steps}
    outside = {*everywhere, *(inner.id for step in steps for _, branch in step.branches for inner in _all(branch))}
    for step in steps:
        for _, branch in step.branches:
            check_routes(branch, problems, {*everywhere, *known})
    lost = [(step, key, to) for step in steps for key, to in step.ways() if to is not None and to not in known]
    for step, key, to in lost:
        _unknown(step, key, to, known, outside, problems)
    if not lost:  # what else is wrong with the routes may follow from these
        _check_ways(steps, known, problems)


def _check_ways(steps: tuple[Step, ...], known: dict[str, Step], problems: Problems) -> None:
    reached = _reached(steps, known)
    for step in steps:
        if step.id not in reached:
            problems.at("S101", f'nothing leads to the step "{step.id}"', step.keys.get("id", step.place), "name it in a step before it")
    for circle in _circles(steps, known):
        _round(circle, problems)


def _all(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        for _, branch in step.branches:
            yield from _all(branch)


def _unknown(step: Step, key: str, to: str, known: dict[str, Step], outside: set[str], problems: Problems) -> None:
    if to in outside:
        help = "a branch leads to its own steps only; when it has ended, its parallel step goes on"
        problems.at("S009", f'the step "{to}" is in another list', step.keys[key], help)
    else:
        problems.at("S009", f'there is no step "{to}"', step.keys[key], one_of(to, [id for id in known if "#" not in id]))


def _reached(steps: tuple[Step, ...], known: dict[str, Step]) -> set[str]:
    reached, ahead = set[str](), [step.id for step in steps[:1]]
    while ahead:
        id = ahead.pop()
        if id not in reached and id in known:
            reached.add(id)
            ahead += [to for _, to in known[id].ways() if to is not None]
    return reached


def _circles(steps: tuple[Step, ...], known: dict[str, Step]) -> Iterator[list[Step]]:
    """The ways round, each step in one of them: first those on which nothing is awaited, then those on which nothing pauses."""
    told: set[str] = set()
    for moving in ([step for step in steps if not step.awaits], [step for step in steps if not step.asks and step.type != "wait"]):
        left = _going_round({step.id: step for step in moving})
        for step in left.values():
            if step.id not in told and (circle := _way_back(step, left)):
                told.update(each.id for each in circle)
                yield circle


def _going_round(left: dict[str, Step]) -> dict[str, Step]:
    """Those of the steps that lead to others of them: what is left when all others have been taken away."""
    before = -1
    while len(left) != before:
        before = len(left)
        led_to = {to for step in left.values() for _, to in step.ways()}
        left = {id: step for id, step in left.items() if id in led_to and any(to in left for _, to in step.ways())}
    return left


def _way_back(start: Step, left: dict[str, Step]) -> list[Step]:
    """The shortest way from a step to itself; empty if there is none."""
    came: dict[str, Step] = {}
    ahead = [start]
    for step in ahead:
        for _, to in step.ways():
            if to == start.id:
                return _path(start, step, came)
            if to is not None and to in left and to not in came:
                came[to] = step
                ahead.append(left[to])
    return []


def _path(start: Step, last: Step, came: dict[str, Step]) -> list[Step]:
    path = [last]
    while path[-1].id != start.id:
        path.append(came[path[-1].id])
    return path[::-1]


def _round(circle: list[Step], problems: Problems) -> None:
    way, place = " → ".join(step.id for step in [*circle, circle[0]]), circle[0].keys.get("id", circle[0].place)
    if any(step.awaits for step in circle):
        problems.at("S102", f"these steps go round without a wait: {way}", place, 'put a wait between them, such as { "for": "1m" }')
    else:
        help = "nothing changes on the way, so it would never end: let one of them wait, or lead elsewhere"
        problems.at("S010", f"these steps go round for ever: {way}", place, help)
