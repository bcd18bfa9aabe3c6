"""Compiles instructions to closures, each of which runs one instruction on a frame.

A closure returns the number of the next instruction, or SUSPEND, DONE or BLOCKED.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.awaiting import Plan, size_of, taken_count
from rhythm.limits import INT_MAX, INT_MIN, Limits
from rhythm.vm.awaits import (
    error_of,
    knows,
    next_completed,
    plan_of_child,
    release,
    remember,
    settle,
    settle_begun,
)
from rhythm.vm.builtins import range_bounds
from rhythm.vm.closures import Compiled, Frame, placed
from rhythm.vm.expressions import ExpressionCompiler, elements_of, spread_list, spread_object
from rhythm.vm.machine import COMMAND_WORK, Machine, Outcome
from rhythm.vm.operations import check_fan_out, emit, start_branch, start_group, start_operation
from rhythm.vm.origins import carriers, followed
from rhythm.vm.prices import statement_work
from rhythm.vm.python.raised import raising
from rhythm.vm.python.walking import range_bounds as python_range_bounds
from rhythm.vm.values import (
    CancelFault,
    Fault,
    LimitFault,
    as_text,
    check_entries,
    kind,
    truthy,
    weigh,
    with_element,
)

SUSPEND = -1
DONE = -2
BLOCKED = -3

# What counts in a loop without making a list: how to get its start, stop and step.
_COUNTS: dict[str, Callable[..., tuple[int, int, int]]] = {
    "range": range_bounds,
    "py.range": raising(python_range_bounds),
}

Run = Callable[[Frame], int]
Starter = Callable[[Frame], Plan]


class StatementCompiler:
    """Compiles one program's instructions.

    Jumps are resolved beforehand: an instruction that leads to a jump goes straight to where it
    ends.
    """

    def __init__(self, code: Sequence[ir.Instruction], limits: Limits, language: str = "") -> None:
        self.code = code
        self.limits = limits
        self.expressions = ExpressionCompiler(limits, language)
        self.value = self.expressions.compile
        self.carriers = carriers(code)

    def compile(self) -> list[Run]:
        """Returns one closure for each instruction."""
        return [
            self._compiled(instruction, self._landing(pc + 1))
            for pc, instruction in enumerate(self.code)
        ]

    def _compiled(self, instruction: ir.Instruction, next: int) -> Run:
        run: Run = self._TABLE[type(instruction)](self, instruction, next)
        run = followed(instruction, run, self.carriers)
        work = statement_work(instruction)
        if not work:
            return run

        def long(frame: Frame) -> int:
            frame["$m"].charge(work)
            return run(frame)

        return long

    def _landing(self, pc: int) -> int:
        """Returns the instruction that is reached from here through jumps alone.

        A loop of nothing but jumps is left to run until the fuel is spent.
        """
        for _ in range(len(self.code)):
            if pc >= len(self.code) or not isinstance(instruction := self.code[pc], ir.Jump):
                break
            pc = instruction.to
        return pc

    def _set(self, node: ir.Set, next: int) -> Run:
        name, value = node.name, self.value(node.value)

        def run(frame: Frame) -> int:
            frame[name] = value(frame)
            return next

        match node.value:
            case ir.Binary("+" | "-" as op, ir.Local(counter), ir.Const(int() as number)) | ir.Call(
                "py.add" | "py.iadd" | "py.sub" as op,
                (ir.Local(counter), ir.Const(int() as number)),
            ) if type(number) is int:
                step = -number if op in ("-", "py.sub") else number
                return self._count(name, counter, step, run, next)
        return run

    def _count(self, name: str, counter: str, step: int, otherwise: Run, next: int) -> Run:
        """Compiles `i = i + 1`, the most common statement in loops, to one call."""

        def count(frame: Frame) -> int:
            value = frame[counter]
            if type(value) is int and INT_MIN <= (result := value + step) <= INT_MAX:
                frame[name] = result
                return next
            return otherwise(frame)

        return count

    def _set_path(self, node: ir.SetPath, next: int) -> Run:
        name, at, limits = node.name, node.at, self.limits
        path, value = [self.value(part) for part in node.path], self.value(node.value)

        def run(frame: Frame) -> int:
            new, keys = value(frame), [part(frame) for part in path]
            frame[name] = placed(
                at, with_element, frame[name], keys, new, limits, frame["$m"].charge
            )
            return next

        return run

    def _jump(self, node: ir.Jump, next: int) -> Run:
        to = self._landing(node.to)
        return lambda frame: to

    def _jump_unless(self, node: ir.JumpUnless, next: int) -> Run:
        condition, to = self.value(node.condition), self._landing(node.to)

        def run(frame: Frame) -> int:
            value = condition(frame)
            if value is True:
                return next
            return next if value is not False and truthy(value) else to

        return run

    def _iterate(self, node: ir.Iterate, next: int) -> Run:
        """Compiles the beginning of a loop.

        The loop's hidden state is its list, or `{"range": […]}`, so that counting far costs the
        snapshot nothing.
        """
        state, position, arity, at = node.state, f"{node.state}.i", node.arity, node.at
        if arity == 1 and isinstance(node.source, ir.Call) and node.source.name in _COUNTS:
            return self._iterate_range(node, node.source, next)
        source = self.value(node.source)

        def run(frame: Frame) -> int:
            frame[state] = placed(at, elements_of, source(frame), arity, frame["$m"].charge)
            frame[position] = 0
            return next

        return run

    def _iterate_range(self, node: ir.Iterate, call: ir.Call, next: int) -> Run:
        state, position, at = node.state, f"{node.state}.i", node.at
        args, bounds = [self.value(arg) for arg in call.args], _COUNTS[call.name]

        def run(frame: Frame) -> int:
            numbers = placed(at, bounds, frame["$m"], *[arg(frame) for arg in args])
            frame[state] = {"range": list(numbers)}
            frame[position] = 0
            return next

        return run

    def _next(self, node: ir.Next, next: int) -> Run:
        state = node.state
        position = f"{node.state}.i"
        names = node.names
        exit = self._landing(node.exit)
        first = names[0]

        def run(frame: Frame) -> int:
            items, i = frame[state], frame[position]
            if type(items) is dict:
                items = range(*items["range"])
            if i >= len(items):
                return exit
            frame[position] = i + 1
            if len(names) == 1:
                frame[first] = items[i]
            else:
                frame[first], frame[names[1]] = items[i]
            return next

        return run

    def _await(self, node: ir.Await, next: int) -> Run:
        start, into, keep, at = self._starter(node.operand), node.into, node.keep, node.at

        def run(frame: Frame) -> int:
            machine: Machine = frame["$m"]
            plan = given = machine.awaiting
            machine.begun = None
            if plan is None:
                plan = _undone_on_fault(machine, start, frame)
                machine.begun = len(machine.commands)
            outcome = settle(machine, plan) if given else settle_begun(machine, plan)
            if outcome is None:
                machine.awaiting, machine.keep = release(machine, plan), keep
                return SUSPEND
            machine.awaiting = None
            result = _value_of(outcome, at)
            if into is not None:
                frame[into] = result
            return next

        return run

    def _start(self, node: ir.Start, next: int) -> Run:
        start, into = self._started(node.operand), node.into

        def run(frame: Frame) -> int:
            ids = _undone_on_fault(frame["$m"], start, frame)
            if into is not None:
                frame[into] = ids
            return next

        return run

    def _gather(self, node: ir.Gather, next: int) -> Run:
        start, state = self._starter(node.group), node.state

        def run(frame: Frame) -> int:
            frame[state] = {**_undone_on_fault(frame["$m"], start, frame), "taken": []}
            return next

        return run

    def _take(self, node: ir.Take, next: int) -> Run:
        state, into, exit, keep = node.state, node.into, self._landing(node.exit), node.keep

        def run(frame: Frame) -> int:
            machine: Machine = frame["$m"]
            given, machine.awaiting = machine.awaiting, None
            plan = given or frame[state]
            if taken_count(plan) == size_of(plan):
                return exit
            plan, item = (
                next_completed(machine, plan) if given or knows(machine, plan) else (plan, None)
            )
            plan = release(machine, plan)
            # While it waits, the plan is only in `awaiting`, where `why` and `doctor` read it: not
            # stored twice.
            if item is None:
                frame.pop(state, None)
                machine.awaiting, machine.keep, machine.begun = plan, keep, None
                return SUSPEND
            frame[state], frame[into] = plan, item
            return next

        return run

    def _emit(self, node: ir.Emit, next: int) -> Run:
        args, kind_of, at = [self.value(arg) for arg in node.args], node.kind, node.at

        def run(frame: Frame) -> int:
            placed(at, emit, frame["$m"], kind_of, [arg(frame) for arg in args])
            return next

        return run

    def _return(self, node: ir.Return, next: int) -> Run:
        value, at, limits = self.value(node.value), node.at, self.limits

        def run(frame: Frame) -> int:
            result = value(frame)
            placed(at, weigh, result, limits.payload_bytes, "the result", limits.depth)
            frame["$m"].result = result
            return DONE

        return run

    def _throw(self, node: ir.Throw, next: int) -> Run:
        value, at, limits = self.value(node.value), node.at, self.limits
        name = node.value.name if isinstance(node.value, ir.Local) else ""

        def run(frame: Frame) -> int:
            error = value(frame)
            frame["$m"].charge(
                placed(at, weigh, error, limits.payload_bytes, "the error", limits.depth) // 16
            )
            raise _thrown(error, frame["$m"].origins.get(name, at))

        return run

    def _block(self, node: ir.Block, next: int) -> Run:
        reason = self.value(node.reason)
        data = self.value(node.data)
        at = node.at
        limits = self.limits

        def run(frame: Frame) -> int:
            error = {
                "code": "Blocked",
                "message": as_text(reason(frame), limits, frame["$m"].charge),
                "data": data(frame),
            }
            placed(at, weigh, error, limits.payload_bytes, "the reason", limits.depth)
            frame["$m"].result = error
            return BLOCKED

        return run

    def _pend(self, node: ir.Pend, next: int) -> Run:
        state, to, block = node.state, node.to, node.block

        def run(frame: Frame) -> int:
            frame[state] = {"to": to}
            return block

        return run

    def _end_finally(self, node: ir.EndFinally, next: int) -> Run:
        state = node.state

        def run(frame: Frame) -> int:
            pending = frame.pop(state)
            if "to" in pending:
                return int(pending["to"])
            if pending["cancel"]:
                raise CancelFault(pending["at"])
            error = pending["throw"]
            if "limit" in pending:
                raise LimitFault(error["message"], pending["at"], error["data"])
            raise Fault(error["code"], error["message"], error["data"], pending["at"])

        return run

    _TABLE: dict[type, Any] = {
        ir.Set: _set,
        ir.SetPath: _set_path,
        ir.Jump: _jump,
        ir.JumpUnless: _jump_unless,
        ir.Iterate: _iterate,
        ir.Next: _next,
        ir.Await: _await,
        ir.Start: _start,
        ir.Gather: _gather,
        ir.Take: _take,
        ir.Emit: _emit,
        ir.Return: _return,
        ir.Throw: _throw,
        ir.Block: _block,
        ir.Pend: _pend,
        ir.EndFinally: _end_finally,
    }

    # operations

    def _starter(self, operand: Any) -> Starter:
        """Compiles the start of an operand; the closure returns its plan.

        An expression gives the id of something that was started before.
        """
        # A variable has no place of its own; problems with it are reported at the whole statement.
        at = getattr(operand, "at", None)
        match operand:
            case ir.Operation(kind_, args):
                values = [self.value(arg) for arg in args]
                return lambda frame: placed(
                    at, start_operation, frame["$m"], kind_, [value(frame) for value in values]
                )
            case ir.Branch(entry, captures):
                return lambda frame: placed(
                    at, start_branch, frame["$m"], entry, {name: frame[name] for name in captures}
                )
            case ir.Group():
                return self._group_starter(operand)
        id = self.value(operand)
        return lambda frame: placed(at, plan_of_child, frame["$m"], id(frame))

    def _group_starter(self, group: ir.Group) -> Starter:
        plans = self._collection(group.items)
        options = self.value(group.options) if group.options else None
        at = group.at

        def start(frame: Frame) -> Plan:
            machine: Machine = frame["$m"]
            n = machine.next_child
            machine.next_child += 1
            keys, items = plans(frame)
            given = options(frame) if options else None
            # Groups inside groups are counted together.
            placed(at, check_fan_out, machine, max(len(items), machine.started))
            return placed(at, start_group, machine, group.mode, n, items, keys, given)

        return start

    def _collection(self, items: Any) -> Callable[[Frame], tuple[list[str] | None, list[Plan]]]:
        """Compiles the start of a collection's operations; the closure returns keys and plans.

        The keys are None unless the collection is an object.
        """
        if isinstance(items, ir.OperandObject):
            return self._plan_object(items)
        if isinstance(items, ir.OperandList):
            return self._plan_list(items)
        if isinstance(items, ir.Comprehension):
            return self._plan_each(items)
        ids, at = self.value(items), getattr(items, "at", None)
        return lambda frame: placed(at, _plans_of_ids, frame, ids(frame))

    def _plan_object(
        self, items: ir.OperandObject
    ) -> Callable[[Frame], tuple[list[str], list[Plan]]]:
        starters: list[tuple[str | None, Any]] = [
            (key, self.value(item.value) if isinstance(item, ir.Spread) else self._starter(item))
            for key, item in items.entries
        ]
        at = items.at

        def start(frame: Frame) -> tuple[list[str], list[Plan]]:
            plans: dict[str, Plan] = {}
            for key, starter in starters:
                if key is None:
                    keys, more = placed(
                        at,
                        _plans_of_ids,
                        frame,
                        placed(at, spread_object, starter(frame), frame["$m"].charge),
                    )
                    plans.update(zip(keys or (), more, strict=True))
                else:
                    plans[key] = starter(frame)
            return list(plans), list(plans.values())

        return start

    def _plan_list(self, items: ir.OperandList) -> Callable[[Frame], tuple[None, list[Plan]]]:
        starters: list[tuple[bool, Any]] = [
            (True, self.value(item.value))
            if isinstance(item, ir.Spread)
            else (False, self._starter(item))
            for item in items.items
        ]
        at = items.at

        def start(frame: Frame) -> tuple[None, list[Plan]]:
            plans: list[Plan] = []
            for spread, starter in starters:
                if spread:
                    plans += placed(
                        at,
                        _plans_of_ids,
                        frame,
                        placed(at, spread_list, starter(frame), frame["$m"].charge),
                    )[1]
                else:
                    plans.append(starter(frame))
            return None, plans

        return start

    def _plan_each(self, node: ir.Comprehension) -> Callable[[Frame], tuple[None, list[Plan]]]:
        start, each = self._starter(node.element), self._each(node)
        return lambda frame: (None, each(frame, start))

    def _each(self, node: ir.Comprehension) -> Callable[[Frame, Compiled], list[Any]]:
        condition = self.value(node.condition) if node.condition else None
        bind, at = self.expressions.binder(node), node.at

        def each(frame: Frame, make: Compiled) -> list[Any]:
            made: list[Any] = []
            for _ in bind(frame):
                if condition is None or truthy(condition(frame)):
                    made.append(make(frame))
                    placed(at, check_fan_out, frame["$m"], len(made))
            return made

        return each

    def _started(self, operand: Any) -> Compiled:
        """Compiles a start without waiting; the closure returns the id.

        For a list or object that contains operations, it returns the list or object with their ids.
        """
        match operand:
            case ir.OperandList():
                return self._started_list(operand)
            case ir.OperandObject():
                return self._started_object(operand)
            case ir.Comprehension(element) if not isinstance(element, ir.Expression):
                start, each = self._started(element), self._each(operand)
                return lambda frame: each(frame, start)
            case ir.Operation() | ir.Branch() | ir.Group():
                return self._id_of(self._starter(operand))
        return self.value(operand)

    def _started_list(self, operand: ir.OperandList) -> Compiled:
        parts = [
            (isinstance(item, ir.Spread), self._started(_spread_or_self(item)))
            for item in operand.items
        ]
        at, limits = operand.at, self.limits

        def started(frame: Frame) -> list[Any]:
            made: list[Any] = []
            for spread, part in parts:
                made += (
                    placed(at, spread_list, part(frame), frame["$m"].charge)
                    if spread
                    else [part(frame)]
                )
                placed(at, check_entries, len(made), limits)
            return made

        return started

    def _started_object(self, operand: ir.OperandObject) -> Compiled:
        parts = [(key, self._started(_spread_or_self(item))) for key, item in operand.entries]
        at, limits = operand.at, self.limits

        def started(frame: Frame) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for key, part in parts:
                made.update(
                    placed(at, spread_object, part(frame), frame["$m"].charge)
                    if key is None
                    else {key: part(frame)}
                )
                placed(at, check_entries, len(made), limits)
            return made

        return started

    @staticmethod
    def _id_of(start: Starter) -> Compiled:
        def started(frame: Frame) -> str:
            plan = start(frame)
            remember(frame["$m"], plan)
            return f"{frame['$m'].id}.{plan['n']}"

        return started


def _spread_or_self(item: Any) -> Any:
    return item.value if isinstance(item, ir.Spread) else item


def _undone_on_fault(machine: Machine, start: Compiled, frame: Frame) -> Any:
    """Starts everything or nothing: if an operation fails, undoes what was asked for before it."""
    machine.mark, child, machine.started = len(machine.commands), machine.next_child, 0
    try:
        return start(frame)
    except (Fault, RecursionError):
        del machine.commands[machine.mark :]
        for n in range(child, machine.next_child):
            machine.plans.pop(str(n), None)
        machine.next_child = child
        raise


def _plans_of_ids(frame: Frame, ids: Any) -> tuple[list[str] | None, list[Plan]]:
    if type(ids) is dict or type(ids) is list:
        check_fan_out(frame["$m"], len(ids))
        frame["$m"].charge(COMMAND_WORK * len(ids))
    if type(ids) is dict:
        return list(ids), [plan_of_child(frame["$m"], id) for id in ids.values()]
    if type(ids) is list:
        return None, [plan_of_child(frame["$m"], id) for id in ids]
    raise Fault("TypeMismatch", f"a list or object of ids can be awaited together, not {kind(ids)}")


def _value_of(outcome: Outcome, at: int) -> Any:
    if outcome.status == "completed":
        return outcome.value
    error = error_of(outcome)
    raise Fault(error.get("code", "Error"), error.get("message", ""), error.get("data"), at)


def _thrown(value: Any, at: int) -> Fault:
    """Returns the fault of a `throw` of text, or of an object with code, message, data."""
    if type(value) is str:
        return Fault("Error", value, None, at)
    if (
        type(value) is dict
        and type(value.get("message", "")) is str
        and type(value.get("code", "Error")) is str
    ):
        return Fault(value.get("code", "Error"), value.get("message", ""), value.get("data"), at)
    return Fault(
        "TypeMismatch", "`throw` takes text, or an object whose code and message are text", None, at
    )
