"""From the document to its steps, and whether the keys of each step make sense together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rhythm.durations import duration_s
from rhythm.lang.flow.rules.arguments import is_name
from rhythm.lang.steps.conditions import condition
from rhythm.lang.steps.document import Json
from rhythm.lang.steps.paths import filled
from rhythm.lang.steps.problems import StepProblems, one_of
from rhythm.lang.steps.shapes import APPROVAL, DOCUMENT, EXECUTE, STAGE, STEPS, Shape, checked
from rhythm.limits import DEFAULT_LIMITS, TEXTS
from rhythm.record import Record

WAITS = ("event", "signal", "for", "until")
BACKOFF = Shape(
    "`backoff`", {"initial": "length", "factor": "factor", "max": "length", "jitter": "bool"}
)
NOT_FILLED = {"id", "type", "name", "description", "condition", "requires", "execute", "branches"}
MEANT = {
    "approve": "allow",
    "permit": "allow",
    "deny": "block",
    "reject": "block",
    "forbid": "block",
}


class JsonStep(Record):
    """One step.

    `keys` are the entries that passed the checks. `following` is the id of the next step in its
    list.
    """

    id: str
    type: str
    place: Json
    keys: dict[str, Json]
    following: str | None
    branches: tuple[tuple[str, tuple[JsonStep, ...]], ...] = ()

    @property
    def at(self) -> int:
        """The offset at which problems with the step are reported."""
        return self.keys["id"].start if "id" in self.keys else self.place.start

    @property
    def asks(self) -> bool:
        """Whether it waits for an approval."""
        return "requires" in self.keys

    @property
    def awaits(self) -> bool:
        """Whether it waits for anything."""
        return self.asks or self.type in ("wait", "task", "parallel")

    def ways(self) -> Iterator[tuple[str, str | None]]:
        """Yields where the step may lead: the key, and the id of the step.

        None instead of an id is the end of the list.
        """
        default = {
            "condition": ("on_true", "on_false"),
            "action": ("on_true",) if self.asks else (),
        }.get(self.type, ("next",))
        for key in default if self.type != "end" else ():
            yield key, self.keys[key].value if key in self.keys else self.following
        for key in ("on_false", "on_timeout", "on_failure"):
            if key in self.keys and key not in default:
                yield key, self.keys[key].value


class StepsDocument(Record):
    """The whole document: a workflow's name, place, steps and options."""

    name: str
    start: int
    steps: tuple[JsonStep, ...]
    options: dict[str, Any]


def read_workflow(document: Json, problems: StepProblems) -> StepsDocument:
    """Returns the workflow; reports what is wrong with it."""
    if not isinstance(document.value, dict):
        problems.at(
            "S006",
            "a workflow is an object",
            document,
            'write { "workflow_id": "…", "steps": [ … ] }',
        )
        return StepsDocument("", 0, (), {})
    keys = checked(document, DOCUMENT, problems)
    name = keys.get("workflow_id")
    reader = _Reader(problems, "timeout" in keys)
    steps = reader.steps(keys["steps"]) if "steps" in keys else ()
    return StepsDocument(
        name.value if name else "", name.start if name else 0, steps, _options(keys, problems)
    )


def _options(keys: dict[str, Json], problems: StepProblems) -> dict[str, Any]:
    options: dict[str, Any] = {key: keys[key].value for key in ("queue", "version") if key in keys}
    if "name" in keys:
        options["title"] = keys["name"].value
    if "timeout" in keys:
        options["timeout"] = duration_s(keys["timeout"].value)
    for key in ("on", "schedule"):
        if key in keys and len(keys[key].items or ()) > DEFAULT_LIMITS.annotations:
            problems.at(
                "S002",
                f'"{key}" has more than {DEFAULT_LIMITS.annotations} entries',
                keys[key],
                "split the workflow into several",
            )
            return options
    if "on" in keys:
        options["on"] = (
            keys["on"].value if isinstance(keys["on"].value, list) else [keys["on"].value]
        )
    if "schedule" in keys:
        options["schedule"] = [
            _schedule(place, problems) for place in keys["schedule"].items or (keys["schedule"],)
        ]
    return options


def _schedule(place: Json, problems: StepProblems) -> dict[str, Any]:
    from rhythm.lang.flow.rules.annotations import schedule_option

    given = {"cron": place.value} if isinstance(place.value, str) else place.value
    try:
        if not isinstance(given, dict) or not isinstance(given.get("cron"), str):
            raise ValueError("a schedule needs `cron`")
        return schedule_option(
            given["cron"], {key: value for key, value in given.items() if key != "cron"}
        )
    except ValueError as problem:
        problems.at(
            "S006",
            str(problem),
            place,
            (
                'write "0 9 * * *", or { "cron": "0 9 * * *", "tz": "Europe/Berlin", '
                '"overlap": "skip" }'
            ),
        )
        return {}


class _Reader:
    def __init__(self, problems: StepProblems, limited: bool) -> None:
        self.problems = problems
        self.limited = limited  # the workflow has a timeout: no wait is for ever
        self.ids: dict[str, Json] = {}

    def steps(self, place: Json) -> tuple[JsonStep, ...]:
        ids = [self._id(item) for item in place.items]
        following = [*ids[1:], None][: len(ids)]
        return tuple(self._step(*each) for each in zip(place.items, ids, following, strict=True))

    def _id(self, place: Json) -> str:
        """Returns the id of a step.

        A step without an id gets a name that no author can write, so that the rest can be checked.
        """
        id = place.get("id")
        if id is None or not isinstance(id.value, str):
            return f"{place.pointer}#"
        if id.value in self.ids:
            self.problems.at(
                "S008",
                f'two steps have the id "{id.value}"',
                id,
                "give each its own",
                (self.ids[id.value], "the first"),
            )
        self.ids.setdefault(id.value, id)
        return id.value

    def _step(self, place: Json, id: str, following: str | None) -> JsonStep:
        type = place.get("type")
        shape = STEPS.get(type.value) if type and isinstance(type.value, str) else None
        if shape is None:
            self._no_shape(place, type)
            # It leads to the next step, so that the steps after it can be checked.
            return JsonStep(id, "unknown", place, {}, following)
        keys = checked(place, shape.replace(needs=("id", *shape.needs)), self.problems)
        assert type is not None
        step = JsonStep(id, type.value, place, keys, following)
        self._CHECKS[type.value](self, step)
        self._fill(keys)
        return (
            step.replace(branches=self._branches(keys["branches"])) if "branches" in keys else step
        )

    def _no_shape(self, place: Json, type: Json | None) -> None:
        if not isinstance(place.value, dict):
            self.problems.at(
                "S006", "a step is an object", place, 'write { "id": "…", "type": "…" }'
            )
        elif type is None:
            self.problems.at("S005", 'a step needs "type"', place, f"one of {', '.join(STEPS)}")
        else:
            self.problems.at(
                "S007", "there is no such type of step", type, one_of(type.value, list(STEPS))
            )

    def _branches(self, place: Json) -> tuple[tuple[str, tuple[JsonStep, ...]], ...]:
        named = list(place.entries.items()) or [
            (str(number), item) for number, item in enumerate(place.items)
        ]
        for _, inner in named:
            if not inner.items:
                self.problems.at(
                    "S006", "a branch is a list of steps", inner, "write [ { … }, { … } ]"
                )
        return tuple((name, self.steps(inner)) for name, inner in named)

    # Which keys go together.

    def _together(self, step: JsonStep, key: str, fits: bool, why: str, help: str) -> None:
        """Reports the key if the step has it and it does not fit the others."""
        if key in step.place.entries and not fits:
            self.problems.at("S012", why, step.place.key(key), help)

    def _fill(self, keys: dict[str, Json]) -> None:
        """Reports what is wrong with `${…}` in the values."""
        for key, inner in keys.items():
            if key not in NOT_FILLED:
                filled(inner, self.problems)

    def _condition(self, step: JsonStep) -> None:
        if "condition" in step.keys:
            condition(step.keys["condition"], self.problems)
        if not step.place.entries.keys() & {"on_true", "on_false"}:
            self.problems.at(
                "S005",
                'a condition step needs "on_true" or "on_false"',
                step.place,
                "name the step to go to",
            )

    def _action(self, step: JsonStep) -> None:
        action = step.keys.get("action")
        if action and action.value not in ("allow", "block"):
            meant = MEANT.get(action.value)
            self.problems.at(
                "S007",
                "an action is allow or block",
                action,
                f'did you mean "{meant}"?' if meant else "write one of them",
            )
        blocks = not action or action.value != "allow"
        self._together(
            step,
            "requires",
            blocks,
            '"allow" requires nothing',
            'write "block": approved, it lets the execution go on',
        )
        for key in ("on_true", "on_false"):
            self._together(
                step,
                key,
                step.asks,
                f'without "requires" nothing leads to "{key}"',
                "this action ends the execution",
            )
        if step.asks:
            self._requires(step.keys["requires"])
        for item in step.keys["execute"].items if "execute" in step.keys else ():
            self._execute(item)

    def _requires(self, place: Json) -> None:
        keys = checked(place, APPROVAL, self.problems)
        self._fill(keys)
        if "type" in keys and keys["type"].value != "approval":
            self.problems.at(
                "S007", "only an approval can be required", keys["type"], 'write "approval"'
            )
        if "escalate" in keys:
            self._escalate(keys["escalate"])

    def _escalate(self, place: Json) -> None:
        stages = place.items or (place,)
        if len(stages) > TEXTS.escalations:
            most = f"at most {TEXTS.escalations} stages, one after the other"
            self.problems.at("S002", f'"escalate" has {len(stages)} stages', place, most)
        for stage in stages:
            if isinstance(stage.value, dict):
                checked(stage, STAGE, self.problems)
            elif not is_name(stage.value):
                self.problems.at(
                    "S006",
                    "whom to ask next is a role",
                    stage,
                    'write "director", { "role": "director", "after": "4h" }, or a list of them',
                )

    def _execute(self, place: Json) -> None:
        self._fill(place.entries)
        type = place.get("type")
        if type is None:
            self.problems.at(
                "S005", 'what is executed needs "type"', place, "notify, task or publish"
            )
        elif isinstance(type.value, str) and type.value in EXECUTE:
            self._backoff(checked(place, EXECUTE[type.value], self.problems))
        elif type.value != "notify":
            self.problems.at(
                "S007", "this cannot be executed", type, one_of(type.value, ["notify", *EXECUTE])
            )

    def _wait(self, step: JsonStep) -> None:
        given = [key for key in WAITS if key in step.place.entries]
        if not given:
            self.problems.at(
                "S005",
                "a wait step says what it waits for",
                step.place,
                f"give it one of {', '.join(WAITS)}",
            )
        for key in given[1:]:
            self._together(
                step,
                key,
                False,
                f'a step waits for one thing, and there is "{given[0]}" already',
                "make two steps of it",
            )
        outside = bool(given) and given[0] in ("event", "signal")
        timed = "timeout" in step.place.entries
        self._together(step, "where", given[:1] == ["event"], '"where" is for events', "remove it")
        for key in ("timeout", "into"):
            self._together(step, key, outside, f'"{key}" is for events and signals', "remove it")
        self._together(
            step, "on_timeout", timed, '"on_timeout" needs a "timeout"', "say how long to wait"
        )
        if outside and not timed and not self.limited:
            help = 'give it a "timeout", and "on_timeout" if the workflow is to go on then'
            self.problems.at("S201", "this may wait for ever", step.place.key(given[0]), help)

    def _task(self, step: JsonStep) -> None:
        self._backoff(step.keys)

    def _backoff(self, keys: dict[str, Json]) -> None:
        if "backoff" in keys and isinstance(keys["backoff"].value, dict):
            checked(keys["backoff"], BACKOFF, self.problems)

    def _parallel(self, step: JsonStep) -> None: ...

    def _end(self, step: JsonStep) -> None:
        status = step.keys.get("status")
        if status and status.value not in ("completed", "failed", "blocked"):
            self.problems.at(
                "S007",
                "no execution ends like this",
                status,
                one_of(status.value, ["completed", "failed", "blocked"]),
            )
        completes = not status or status.value == "completed"
        self._together(
            step,
            "result",
            completes,
            "only what completes has a result",
            "remove it, or the status",
        )
        self._together(
            step,
            "reason",
            not completes,
            "what completes needs no reason",
            'put it into the "result"',
        )

    _CHECKS = {
        "condition": _condition,
        "action": _action,
        "wait": _wait,
        "task": _task,
        "parallel": _parallel,
        "end": _end,
    }
