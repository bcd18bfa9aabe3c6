"""Starts operations: makes the command that asks for one, and the plan to wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rhythm.durations import duration_s
from rhythm.ir.awaiting import Plan, compressed, fresh, numbers
from rhythm.ir.operations import GROUPS, OPERATIONS
from rhythm.ir.options import BACKOFF, INSTEAD, STAGE, is_factor, whole_problem
from rhythm.limits import LONGEST_NAME, REFUSED, TEXTS
from rhythm.vm import commands as c
from rhythm.vm.awaits import close, plan_of_child
from rhythm.vm.builtins import parse_time, show_time
from rhythm.vm.machine import COMMAND_WORK, Machine
from rhythm.vm.values import Fault, LimitFault, as_text, is_number, kind, measure, truthy, weigh


def start_operation(m: Machine, op: str, args: list[Any]) -> Plan:
    """Asks for the operation in this turn; returns the plan to wait for it."""
    return _STARTERS[op](m, _next_number(m), *args)


def _next_number(m: Machine) -> int:
    """Returns the number of one more operation of the statement."""
    m.started += 1
    m.charge(COMMAND_WORK)
    m.next_child += 1
    return m.next_child - 1


def _start_task(m: Machine, n: int, name: Any, inputs: Any = None, options: Any = None) -> Plan:
    check_room(m)
    given = _options("task", options)
    m.commands.append(
        c.StartTask(
            n,
            _name("task", name),
            _payload(m, inputs, f"the inputs of task `{name}`"),
            _task_options(given),
        )
    )
    return _with_settle({"op": "task", "n": n, "name": name}, given)


def _start_workflow(m: Machine, n: int, name: Any, inputs: Any = None, options: Any = None) -> Plan:
    check_room(m)
    check_generations(m)
    given = _options("workflow", options)
    child = c.StartWorkflow(
        n,
        _name("workflow", name),
        _payload(m, inputs, f"the inputs of workflow `{name}`"),
        _child_options(given),
    )
    m.commands.append(child)
    return _with_settle({"op": "workflow", "n": n, "name": name}, given)


def start_branch(m: Machine, branch: int, copies: dict[str, Any]) -> Plan:
    """Asks for a branch with copies of these locals; returns the plan to wait for it."""
    check_room(m)
    check_generations(m)
    n = _next_number(m)
    m.charge(
        weigh(copies, m.limits.snapshot_bytes, "what a branch takes with it", m.limits.depth) // 16
    )
    m.commands.append(c.StartBranch(n, branch, copies))
    return {"op": "branch", "n": n}


def _sleep(m: Machine, n: int, duration: Any) -> Plan:
    m.commands.append(c.StartTimer(n, _duration("sleep", duration)))
    return {"op": "sleep", "n": n}


def _sleep_until(m: Machine, n: int, time: Any) -> Plan:
    m.commands.append(c.StartTimer(n, None, show_time(parse_time(time))))
    return {"op": "sleep", "n": n}


def _signal(m: Machine, n: int, name: Any, options: Any = None) -> Plan:
    given = _options("signal", options)
    plan: Plan = {"op": "signal", "n": n, "name": _name("signal", name)}
    timeout = _timeout(given)
    if timeout is not None:
        plan["timeout"] = timeout
        if timeout > 0:
            m.commands.append(c.StartTimer(n, timeout, signal=plan["name"]))
    return _with_default(plan, given)


def _event(m: Machine, n: int, type: Any, options: Any = None) -> Plan:
    given = _options("event", options)
    where = given.get("where") or {}
    if not isinstance(where, dict):
        raise Fault("InvalidArgument", "`where` of an event is an object of paths and values")
    m.charge(weigh(where, TEXTS.where_bytes, "`where` of an event", m.limits.depth) // 16)
    m.commands.append(c.WaitEvent(n, _name("event", type), where, _timeout(given)))
    return _with_default({"op": "event", "n": n, "name": type}, given)


def _approval(m: Machine, n: int, options: Any) -> Plan:
    given = _options("approval", options)
    quorum = _count("quorum", given.get("quorum", 1))
    reason = "" if given.get("reason") is None else as_text(given["reason"], m.limits, m.charge)
    if len(reason) > TEXTS.comment:
        raise Fault(
            "InvalidArgument",
            (
                f"the reason of an approval has at most {TEXTS.comment:,} characters, not "
                f"{len(reason):,}"
            ),
        )
    m.commands.append(
        c.RequestApproval(
            n,
            _text("role", given.get("role")),
            reason,
            _payload(m, given.get("data"), "the data of an approval"),
            _timeout(given),
            quorum,
            truthy(given.get("four_eyes", True)),
            _escalation(m, given.get("escalate")),
            notify="" if given.get("notify") is None else _text("notify", given["notify"]),
        )
    )
    return {"op": "approval", "n": n, "name": given["role"]}


def _escalation(m: Machine, value: Any) -> tuple[dict[str, Any], ...]:
    """Returns the stages of `escalate`: a role, `{ role, after, timeout }`, or a list of them."""
    stages = value if isinstance(value, list) else [] if value is None else [value]
    if len(stages) > TEXTS.escalations:
        raise Fault(
            "InvalidArgument",
            f"`escalate` has at most {TEXTS.escalations} stages, not {len(stages):,}",
        )
    m.charge(COMMAND_WORK * len(stages))
    return tuple(_stage(stage) for stage in stages)


def _stage(value: Any) -> dict[str, Any]:
    given = value if isinstance(value, dict) else {"role": value}
    if unknown := given.keys() - STAGE:
        raise Fault(
            "InvalidArgument", f"`escalate` knows role, after and timeout, not {sorted(unknown)[0]}"
        )
    stage: dict[str, Any] = {"role": _text("escalate.role", given.get("role"))}
    for name in ("after", "timeout"):
        if given.get(name) is not None:
            stage[f"{name}_s"] = _duration(f"escalate.{name}", given[name])
    return stage


_STARTERS: dict[str, Callable[..., Plan]] = {
    "task": _start_task, "workflow": _start_workflow, "sleep": _sleep, "sleep_until": _sleep_until,
    "signal": _signal, "event": _event,
    "approval": _approval,
}  # fmt: skip


def start_group(
    m: Machine, mode: str, n: int, items: list[Plan], keys: list[str] | None, options: Any
) -> Plan:
    """Returns the plan of a group whose items were just started.

    Items beyond its `concurrency` are held back.
    """
    given = _options(mode, options)
    if mode == "race" and not items:
        raise Fault("InvalidArgument", "a race of nothing never ends")
    plan: Plan = {"op": mode, "n": n, **compressed(items)}
    if keys is not None:
        plan["keys"] = keys
    for flag in ("settle", "keep"):
        if truthy(given.get(flag)):
            plan[flag] = True
    if given.get("need") is not None:
        if plan.get("settle"):
            raise Fault(
                "InvalidArgument",
                "`need` and `settle` exclude each other: with `need`, failures are left out",
            )
        plan["need"] = _count("need", given["need"])
    if given.get("concurrency") is not None:
        limit, started = _count("concurrency", given["concurrency"]), fresh(plan)
        if limit < len(started):
            _hold(m, [items[i] for i in started[limit:]])
            plan["concurrency"] = plan["released"] = limit
    return plan


def check_room(m: Machine) -> None:
    """Raises LimitFault if the store refused to start more executions.

    What is over a limit may start some more, in its `finally` blocks.
    """
    if m.inputs.refused and m.limit is None:
        raise LimitFault(m.inputs.refused, data=REFUSED)


def check_generations(m: Machine) -> None:
    """Raises LimitFault if this execution has too many generations above it to start a child.

    The id of a child is its parent's id and a number, so the dots in an id count the generations.
    """
    if m.id.count(".") >= m.limits.generations:
        what = (
            f"a workflow that is {m.limits.generations + 1:,} generations below the one that "
            f"all of this began with"
        )
        raise LimitFault(f"{what}; the limit is {m.limits.generations:,}. Let it loop instead")


def check_fan_out(m: Machine, count: int) -> None:
    """Raises LimitFault if one statement starts too many operations."""
    if count > m.limits.fan_out:
        raise LimitFault(f"{count:,} operations at once; the limit is {m.limits.fan_out:,}")


def _hold(m: Machine, items: list[Plan]) -> None:
    """Holds back these items of a group.

    Their commands are the last of the statement. The search stops at their beginning, since one
    statement may have thousands of groups.
    """
    held = {n for item in items for n in numbers(item)}
    first = min(held, default=m.next_child)
    for i in range(len(m.commands) - 1, m.mark - 1, -1):
        n = getattr(m.commands[i], "n", first)
        if n < first:
            break
        if n in held:
            m.commands[i] = m.commands[i].replace(held=True)


def _options(op: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Fault(
            "InvalidArgument", f"the options of `{op}` must be an object, not {kind(value)}"
        )
    known = (GROUPS.get(op) or OPERATIONS[op]).options
    for name in value:
        if name not in known:
            instead = INSTEAD.get(name) or f"it knows {', '.join(sorted(known))}"
            raise Fault("InvalidArgument", f"`{op}` has no option `{name}`; {instead}")
    return value


def _name(op: str, value: Any) -> str:
    if type(value) is str and 0 < len(value) <= LONGEST_NAME:
        return value
    if not isinstance(value, str) or not value:
        raise Fault(
            "InvalidArgument",
            f"`{op}` needs a name, not {kind(value) if value != '' else 'an empty text'}",
        )
    return _short(op, value)


def _short(op: str, value: str) -> str:
    """Returns the name; raises Fault if it is too long for the indexes of the database."""
    if len(value) > LONGEST_NAME:
        raise Fault(
            "InvalidArgument",
            f"a name of `{op}` has at most {LONGEST_NAME} characters, not {len(value):,}",
        )
    return value


def _text(option: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Fault(
            "InvalidArgument",
            f"`{option}` must be text, not {kind(value) if value != '' else 'an empty one'}",
        )
    return _short(option, value)


def _payload(m: Machine, value: Any, what: str) -> Any:
    m.charge(measure(value, m.limits.payload_bytes, what, m.limits.depth)[0] // 16)
    return value


def _duration(what: str, value: Any) -> float:
    try:
        return duration_s(value)
    except ValueError as problem:
        raise Fault("InvalidArgument", f"`{what}`: {problem}") from None


def _timeout(options: dict[str, Any]) -> float | None:
    value = options.get("timeout")
    return None if value is None else _duration("timeout", value)


def _task_options(given: dict[str, Any]) -> dict[str, Any]:
    if not given:
        return {}
    chosen = _common_options(given)
    if given.get("retries") is not None:
        chosen["retries"] = _count("retries", given["retries"])
    if given.get("backoff") is not None:
        chosen["backoff"] = _backoff(given["backoff"])
    return chosen


def _child_options(given: dict[str, Any]) -> dict[str, Any]:
    if not given:
        return {}
    chosen = _common_options(given)
    if given.get("version") is not None:
        chosen["version"] = _text("version", given["version"])
    return chosen


def _common_options(given: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if given.get("timeout") is not None:
        chosen["timeout_s"] = _duration("timeout", given["timeout"])
    if given.get("queue") is not None:
        chosen["queue"] = _text("queue", given["queue"])
    if given.get("priority") is not None:
        chosen["priority"] = _count("priority", given["priority"])
    return chosen


def _count(option: str, value: Any) -> int:
    if problem := whole_problem(option, value):
        raise Fault("InvalidArgument", problem)
    return int(value)


def _backoff(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"initial_s": _duration("backoff", value)}
    unknown = value.keys() - BACKOFF
    if unknown:
        raise Fault(
            "InvalidArgument",
            f"`backoff` knows initial, factor, max and jitter, not {sorted(unknown)[0]}",
        )
    chosen: dict[str, Any] = {
        f"{name}_s": _duration(f"backoff.{name}", value[name])
        for name in ("initial", "max")
        if name in value
    }
    if "factor" in value:
        if not is_factor(value["factor"]):
            raise Fault("InvalidArgument", "`backoff.factor` is a number from 1 to 100")
        chosen["factor"] = value["factor"]
    if "jitter" in value:
        chosen["jitter"] = truthy(value["jitter"])
    return chosen


def _with_settle(plan: Plan, options: dict[str, Any]) -> Plan:
    return {**plan, "settle": True} if options and truthy(options.get("settle")) else plan


def _with_default(plan: Plan, options: dict[str, Any]) -> Plan:
    return {**plan, "default": options["default"]} if "default" in options else plan


def emit(m: Machine, kind_of: str, args: list[Any]) -> None:
    """Asks for something that nobody waits for. Raises Fault if it is forbidden."""
    m.charge(COMMAND_WORK)
    if kind_of in m.inputs.forbidden:
        raise Fault(
            "Forbidden",
            (
                f"`{kind_of}` reaches other executions, for which whoever started this one "
                f"has no permission"
            ),
        )
    command = _EMITTERS[kind_of](m, *args)
    if command is not None:
        m.commands.append(command)


def _publish(m: Machine, type: Any, data: Any = None) -> c.Command:
    return c.Publish(_name("publish", type), _payload(m, data, "the data of an event"))


def _send(m: Machine, execution: Any, name: Any, payload: Any = None) -> c.Command:
    return c.Send(
        _name("send", execution),
        _name("send", name),
        _payload(m, payload, "the payload of a signal"),
    )


def _log(m: Machine, message: Any, fields: Any = None) -> c.Command:
    if fields is not None and type(fields) is not dict:
        raise Fault("TypeMismatch", f"the fields of `log` must be an object, not {kind(fields)}")
    return c.Log(_message(m, message), _payload(m, fields or {}, "the fields of a log line"))


def _progress(m: Machine, fraction: Any, message: Any = "") -> c.Command:
    if not is_number(fraction) or not 0 <= fraction <= 1:
        raise Fault("InvalidArgument", "`progress` takes a number from 0 to 1")
    return c.Progress(float(fraction), _message(m, message))


def _set_attribute(m: Machine, name: Any, value: Any) -> c.Command:
    if type(value) in (list, dict):
        raise Fault(
            "TypeMismatch",
            f"an attribute must be text, a number, true, false or null, not {kind(value)}",
        )
    size = weigh(_name("set_attribute", name), TEXTS.attributes_bytes, "the name of an attribute")
    size += weigh(value, TEXTS.attribute_bytes, f"the attribute `{name}`")
    m.charge(size // 16)
    m.attributes[name] = size
    if len(m.attributes) > TEXTS.attributes or sum(m.attributes.values()) > TEXTS.attributes_bytes:
        raise LimitFault(
            f"an execution has at most {TEXTS.attributes} attributes, of "
            f"{TEXTS.attributes_bytes:,} bytes together: `{name}` is too much"
        )
    return c.SetAttribute(name, value)


def _cancel(m: Machine, id: Any) -> None:
    close(m, {**plan_of_child(m, id), "keep": False})


def _message(m: Machine, value: Any) -> str:
    text = as_text(value, m.limits, m.charge)
    m.charge(len(text) // 16)
    return text


_EMITTERS: dict[str, Callable[..., Any]] = {
    "publish": _publish, "send": _send, "log": _log, "progress": _progress,
    "set_attribute": _set_attribute, "cancel": _cancel,
}  # fmt: skip
