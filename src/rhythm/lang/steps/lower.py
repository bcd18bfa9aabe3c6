"""Steps to a program: each step becomes a run of instructions, and its targets become jumps.

The whole state is the context, one hidden local: the result of a step is put into it. The
interpreter puts in the data that people give when they resume the execution (`vm.machine.CONTEXT`).
Labels are numbers that are given out before their place is known.
"""

from __future__ import annotations

from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program, version_of
from rhythm.ir.versions import ir_version
from rhythm.lang.source import Source
from rhythm.lang.steps.conditions import condition
from rhythm.lang.steps.document import Json
from rhythm.lang.steps.paths import CONTEXT, filled
from rhythm.lang.steps.problems import StepProblems
from rhythm.lang.steps.read import JsonStep, StepsDocument
from rhythm.lang.steps.shapes import TASK_OPTIONS

LANGUAGE = "steps"
KEEP = (CONTEXT.name,)
APPROVAL_OPTIONS = ("role", "timeout", "quorum", "four_eyes", "escalate", "notify")
NO_OBJECT = {
    "code": "TypeMismatch",
    "message": "the inputs of a workflow of JSON steps are an object: its context",
    "data": None,
}
ANSWER, RESULT, ERROR = ir.Local("$answer"), ir.Local("$result"), ir.Local("$error")


def lower(source: Source, workflow: StepsDocument, problems: StepProblems) -> Program:
    """Returns the program of a workflow.

    Reports what is wrong with conditions and values; the program cannot be used then.
    """
    return _Lowering(problems).program(workflow, source)


class _Body:
    """One list of steps: the execution itself, or a branch of it."""

    def __init__(
        self, steps: tuple[JsonStep, ...], branch: bool, labels: dict[str, int], end: int
    ) -> None:
        self.steps, self.branch, self.labels, self.end = steps, branch, labels, end
        self.gives = dict.fromkeys(key for step in steps for key in _given(step))


def _given(step: JsonStep) -> tuple[str, ...]:
    """Returns the keys of the context that a step may set."""
    own = step.keys["into"].value if "into" in step.keys else step.id
    failure = ("error",) if "on_failure" in step.keys else ()
    if step.asks:
        return own, "approval"
    if step.type in ("task", "parallel"):
        return own, *failure
    return (
        (own, "event" if "event" in step.keys else "signal")
        if step.keys.keys() & {"event", "signal"}
        else ()
    )


class _Lowering:
    def __init__(self, problems: StepProblems) -> None:
        self.problems = problems
        self.code: list[ir.Instruction] = []
        self.places: list[int] = []  # the places of labels
        self.handlers: list[ir.Handler] = []
        self.steps: list[tuple[int, str, str | None]] = []
        self.branches: list[tuple[JsonStep, ...]] = []

    def program(self, workflow: StepsDocument, source: Source) -> Program:
        given = ir.Logic("??", ir.Member(ir.Local("ctx"), "resume_data"), ir.Const({}))
        inputs = ir.Logic("??", ir.Local("inputs"), ir.Const({}))
        first = self._here()
        self._emit(
            ir.Set(CONTEXT.name, ir.Call("merge", (inputs, given), workflow.start), workflow.start)
        )
        last = self._here()
        self._lower_body(self._body(workflow.steps, False))
        entries: list[int] = []
        while len(entries) < len(self.branches):  # lowering a branch may find more branches
            entries.append(len(self.code))
            self._lower_body(self._body(self.branches[len(entries) - 1], True))
        self.handlers.append(ir.Handler(first, last, self._here(), ERROR.name, "catch"))
        self._emit(ir.Throw(ir.Const(NO_OBJECT), workflow.start))
        code = tuple(self._placed(instruction, "to") for instruction in self.code)
        return Program(
            name=workflow.name,
            language=LANGUAGE,
            version=version_of(LANGUAGE, source.text),
            code=code,
            handlers=tuple(
                self._placed(handler, "first", "last", "target") for handler in self.handlers
            ),
            branches=tuple(entries),
            options=workflow.options,
            file=source.name,
            lines=source.lines,
            steps=tuple(self.steps),
            ir=ir_version(code),
        )

    def _placed(self, record: Any, *names: str) -> Any:
        places = {
            name: self.places[record.__dict__[name]] for name in names if name in record.__dict__
        }
        return record.replace(**places) if places else record

    def _label(self) -> int:
        self.places.append(-1)
        return len(self.places) - 1

    def _here(self, label: int | None = None) -> int:
        label = self._label() if label is None else label
        self.places[label] = len(self.code)
        return label

    def _emit(self, instruction: ir.Instruction) -> None:
        self.code.append(instruction)

    # Lists of steps.

    def _body(self, steps: tuple[JsonStep, ...], branch: bool) -> _Body:
        return _Body(steps, branch, {step.id: self._label() for step in steps}, self._label())

    def _lower_body(self, body: _Body) -> None:
        self.body, self.ends = body, False  # `ends`: whether anything leads to the end of the list
        for step in body.steps:
            self._here(body.labels[step.id])
            ways = dict(step.ways())
            self.steps.append((len(self.code), step.id, ways.get("next", ways.get("on_true"))))
            self._STEPS[step.type](self, step)
        self._here(body.end)
        if self.ends:
            self._emit(ir.Return(self._ended(), body.steps[-1].place.end - 1))

    def _ended(self) -> ir.Expression:
        """Returns the value at the end of the list: for a branch, all that its steps have set."""
        if not self.body.branch:
            return ir.Const({"outcome": "completed"})
        return ir.Call("pick", (CONTEXT, ir.Const(list(self.body.gives))))

    def _target(self, id: str | None) -> int:
        self.ends = self.ends or id is None
        return self.body.end if id is None else self.body.labels[id]

    def _go(self, step: JsonStep, key: str) -> None:
        """Jumps to where the key leads."""
        self._emit(ir.Jump(self._target(dict(step.ways())[key]), step.at))

    def _go_on(self, step: JsonStep, key: str) -> None:
        """Jumps to where the key leads, unless that is just the next step in the list."""
        if dict(step.ways())[key] != step.following or step.following is None:
            self._go(step, key)

    def _put(self, step: JsonStep, value: ir.Expression, *names: str) -> None:
        """Puts a value into the context under these names."""
        entries = (
            (None, ir.Spread(CONTEXT, step.at)),
            *((name, value) for name in dict.fromkeys(names)),
        )
        self._emit(ir.Set(CONTEXT.name, ir.ObjectOf(entries, step.at), step.at))

    def _own(self, step: JsonStep) -> str:
        return str(step.keys["into"].value) if "into" in step.keys else step.id

    def _value(self, place: Json) -> ir.Expression:
        return filled(place, self.problems)

    def _options(
        self, keys: dict[str, Json], names: tuple[str, ...], *more: tuple[str, ir.Expression]
    ) -> ir.Expression:
        return ir.ObjectOf(
            (*((name, self._value(keys[name])) for name in names if name in keys), *more)
        )

    # Steps.

    def _condition(self, step: JsonStep) -> None:
        no = dict(step.ways())["on_false"]
        self._emit(
            ir.JumpUnless(
                condition(step.keys["condition"], self.problems), self._target(no), step.at
            )
        )
        self._go_on(step, "on_true")

    def _action(self, step: JsonStep) -> None:
        for item in step.keys["execute"].items if "execute" in step.keys else ():
            self._execute(item)
        if step.asks:
            self._ask(step)
        elif step.keys["action"].value == "block":
            reason = self._reason(step, f"blocked at step {step.id}")
            self._emit(ir.Block(reason, ir.Const({"step": step.id}), step.at))
        elif self.body.branch:
            self._emit(ir.Jump(self._target(None), step.at))
        else:
            self._emit(
                ir.Return(
                    self._options(step.keys, ("reason",), ("outcome", ir.Const("allowed"))), step.at
                )
            )

    def _reason(self, step: JsonStep, otherwise: str) -> ir.Expression:
        return self._value(step.keys["reason"]) if "reason" in step.keys else ir.Const(otherwise)

    def _execute(self, place: Json) -> None:
        """Starts or publishes something that is not awaited: its success changes nothing here."""
        if place.entries["type"].value == "publish":
            event, data = place.entries["event"], place.get("data")
            self._emit(
                ir.Emit(
                    "publish",
                    (self._value(event), self._value(data) if data else ir.Const(None)),
                    place.start,
                )
            )
        elif place.entries["type"].value == "task":
            self._emit(ir.Start(self._call(place.entries, place.start), None, place.start))
        else:
            inputs = tuple(
                (key, self._value(inner)) for key, inner in place.entries.items() if key != "type"
            )
            call = ir.Operation(
                "task", (ir.Const("notify"), ir.ObjectOf(inputs, place.start)), place.start
            )
            self._emit(ir.Start(call, None, place.start))

    def _call(self, keys: dict[str, Json], at: int) -> ir.Operation:
        inputs = self._value(keys["inputs"]) if "inputs" in keys else ir.Const(None)
        options = self._options(keys, TASK_OPTIONS) if keys.keys() & set(TASK_OPTIONS) else None
        given = (inputs, options) if options else (inputs,) if "inputs" in keys else ()
        return ir.Operation("task", (ir.Const(keys["task"].value), *given), at)

    def _ask(self, step: JsonStep) -> None:
        keys = step.keys["requires"].entries
        reason = self._reason(step, f"step {step.id} requires approval")
        shown = ("data", self._value(keys["data"]) if "data" in keys else CONTEXT)
        options = self._options(keys, APPROVAL_OPTIONS, ("reason", reason), shown)
        self._emit(
            ir.Await(ir.Operation("approval", (options,), step.at), ANSWER.name, KEEP, step.at)
        )
        self._put(step, ANSWER, step.id, "approval")
        refused = self._label()
        self._emit(
            ir.JumpUnless(
                ir.Binary("==", ir.Member(ANSWER, "decision"), ir.Const("approved")),
                refused,
                step.at,
            )
        )
        self._go(step, "on_true")
        self._here(refused)
        if "on_false" in step.keys:
            self._go_on(step, "on_false")
        else:
            why = ir.Template((reason, ir.Const(": "), ir.Member(ANSWER, "decision")), step.at)
            self._emit(
                ir.Block(
                    why,
                    ir.ObjectOf(((None, ir.Spread(ANSWER)), ("step", ir.Const(step.id)))),
                    step.at,
                )
            )

    def _wait(self, step: JsonStep) -> None:
        keys = step.keys
        if "for" in keys or "until" in keys:
            kind, place = (
                ("sleep", keys["for"]) if "for" in keys else ("sleep_until", keys["until"])
            )
            self._emit(
                ir.Await(ir.Operation(kind, (self._value(place),), step.at), None, KEEP, step.at)
            )
            return self._go_on(step, "next")
        kind = "event" if "event" in keys else "signal"
        call = ir.Operation(
            kind, (self._value(keys[kind]), self._options(keys, ("where", "timeout"))), step.at
        )
        first = self._here()
        self._emit(ir.Await(call, RESULT.name, KEEP, step.at))
        last = self._here()
        self._put(
            step, ir.Member(RESULT, "data") if kind == "event" else RESULT, self._own(step), kind
        )
        if "on_timeout" not in keys:
            return self._go_on(step, "next")
        self._go(step, "next")
        self.handlers.append(ir.Handler(first, last, self._here(), ERROR.name, "catch"))
        other = self._label()
        self._emit(
            ir.JumpUnless(
                ir.Binary("==", ir.Member(ERROR, "code"), ir.Const("Timeout")), other, step.at
            )
        )
        self._go(step, "on_timeout")
        self._here(other)
        return self._emit(ir.Throw(ERROR, step.at))

    def _task(self, step: JsonStep) -> None:
        first = self._here()
        self._emit(ir.Await(self._call(step.keys, step.at), RESULT.name, KEEP, step.at))
        last = self._here()
        self._put(step, RESULT, self._own(step))
        if "on_failure" not in step.keys:
            return self._go_on(step, "next")
        self._go(step, "next")
        self.handlers.append(ir.Handler(first, last, self._here(), ERROR.name, "catch"))
        return self._fail(step)

    def _fail(self, step: JsonStep) -> None:
        """Goes on with `on_failure`, with the error in the context."""
        self._put(step, ERROR, "error")
        self._go_on(step, "on_failure")

    def _parallel(self, step: JsonStep) -> None:
        """Runs the branches together.

        A blocked branch blocks the execution. A failed branch fails it, or leads to `on_failure`.
        """
        entries = []
        for name, steps in step.branches:
            entries.append((name, ir.Branch(len(self.branches), KEEP, step.at)))
            self.branches.append(steps)
        listed = isinstance(step.keys["branches"].value, list)
        items = (
            ir.OperandList(tuple(branch for _, branch in entries), step.at)
            if listed
            else ir.OperandObject(tuple(entries), step.at)
        )
        first = self._here()
        self._emit(ir.Await(ir.Group("all", items, None, step.at), RESULT.name, KEEP, step.at))
        last = self._here()
        self._put(step, RESULT, self._own(step))
        self._go(step, "next")
        self.handlers.append(ir.Handler(first, last, self._here(), ERROR.name, "catch"))
        reason, failed = ir.Member(ir.Member(ERROR, "data"), "error", True), self._label()
        self._emit(
            ir.JumpUnless(
                ir.Binary("==", ir.Member(reason, "code", True), ir.Const("Blocked")),
                failed,
                step.at,
            )
        )
        self._emit(ir.Block(ir.Member(reason, "message"), ir.Member(reason, "data"), step.at))
        self._here(failed)
        self._fail(step) if "on_failure" in step.keys else self._emit(ir.Throw(ERROR, step.at))

    def _end(self, step: JsonStep) -> None:
        status, result = step.keys.get("status"), step.keys.get("result")
        reason = self._reason(step, f"ended at step {step.id}")
        if status and status.value == "blocked":
            self._emit(ir.Block(reason, ir.Const({"step": step.id}), step.at))
        elif status and status.value == "failed":
            error = (
                ("code", ir.Const("Failed")),
                ("message", ir.Call("str", (reason,))),
                ("data", ir.Const({"step": step.id})),
            )
            self._emit(ir.Throw(ir.ObjectOf(error, step.at), step.at))
        elif result:
            self._emit(ir.Return(self._value(result), step.at))
        else:
            self._emit(ir.Jump(self._target(None), step.at))

    _STEPS = {
        "condition": _condition,
        "action": _action,
        "wait": _wait,
        "task": _task,
        "parallel": _parallel,
        "end": _end,
    }
