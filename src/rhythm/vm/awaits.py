"""Operations: how one is started, and when what is awaited has ended.

A *plan* is what the snapshot remembers of an operation: plain JSON, `{"op", "n", …}`. A group's plan holds its items'
plans, or, for a fan-out of one kind, only the range of their numbers. `resolve` looks at a plan and at what has ended and
says how the whole has ended, or None. It is asked anew at every turn and remembers nothing, so a lost wake loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rhythm.durations import duration_s
from rhythm.vm import commands as c
from rhythm.vm.builtins import parse_time, show_time
from rhythm.vm.machine import COMMAND_WORK, Machine, Outcome
from rhythm.vm.values import Fault, LimitFault, as_text, equal, kind, truthy, weigh

Plan = dict[str, Any]

STARTED = "$started"  # plans of what was started without await, where its number alone does not tell how to wait for it
_PLAIN = frozenset({"op", "n", "name"})


# starting


def start_operation(m: Machine, op: str, args: list[Any]) -> Plan:
    """Asks for the operation in this turn; returns the plan to wait for it."""
    return _STARTERS[op](m, _next_number(m), *args)


def _next_number(m: Machine) -> int:
    """The number of one more operation of the statement, which may not start more than a group may have."""
    m.started += 1
    check_fan_out(m, m.started)
    m.charge(COMMAND_WORK)
    m.next_child += 1
    return m.next_child - 1


def _start_task(m: Machine, n: int, name: Any, inputs: Any = None, options: Any = None) -> Plan:
    given = _options("task", options)
    m.commands.append(c.StartTask(n, _name("task", name), _payload(m, inputs, f"the inputs of task `{name}`"), _task_options(m, given)))
    return _with_settle({"op": "task", "n": n, "name": name}, given)


def _start_workflow(m: Machine, n: int, name: Any, inputs: Any = None, options: Any = None) -> Plan:
    given = _options("workflow", options)
    child = c.StartWorkflow(n, _name("workflow", name), _payload(m, inputs, f"the inputs of workflow `{name}`"), _child_options(m, given))
    m.commands.append(child)
    return _with_settle({"op": "workflow", "n": n, "name": name}, given)


def start_branch(m: Machine, branch: int, copies: dict[str, Any]) -> Plan:
    """Asks for a branch with copies of these locals."""
    n = _next_number(m)
    m.charge(weigh(copies, m.limits.snapshot_bytes, "what a branch takes with it", m.limits.depth) // 64)
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
    m.commands.append(c.WaitEvent(n, _name("event", type), where, _timeout(given)))
    return _with_default({"op": "event", "n": n, "name": type}, given)


def _approval(m: Machine, n: int, options: Any) -> Plan:
    given = _options("approval", options)
    quorum = _count("quorum", given.get("quorum", 1), 1)
    reason = "" if given.get("reason") is None else as_text(given["reason"], m.limits)
    m.commands.append(
        c.RequestApproval(
            n, _text("role", given.get("role")), reason, _payload(m, given.get("data"), "the data of an approval"),
            _timeout(given), quorum, truthy(given.get("four_eyes", True)), given.get("escalate"),
        )
    )  # fmt: skip
    return {"op": "approval", "n": n, "name": given["role"]}


_STARTERS: dict[str, Callable[..., Plan]] = {
    "task": _start_task, "workflow": _start_workflow, "sleep": _sleep, "sleep_until": _sleep_until, "signal": _signal, "event": _event,
    "approval": _approval,
}  # fmt: skip


def _options(op: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Fault("InvalidArgument", f"the options of `{op}` are an object, not {kind(value)}")
    return value


def _name(op: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Fault("InvalidArgument", f"`{op}` needs a name, not {kind(value) if value != '' else 'an empty text'}")
    return value


def _text(option: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Fault("InvalidArgument", f"`{option}` is text, not {kind(value) if value != '' else 'an empty one'}")
    return value


def _payload(m: Machine, value: Any, what: str) -> Any:
    m.charge(weigh(value, m.limits.payload_bytes, what, m.limits.depth) // 64)
    return value


def _duration(what: str, value: Any) -> float:
    try:
        return duration_s(value)
    except ValueError as problem:
        raise Fault("InvalidArgument", f"`{what}`: {problem}") from None


def _timeout(options: dict[str, Any]) -> float | None:
    value = options.get("timeout")
    return None if value is None else _duration("timeout", value)


def _task_options(m: Machine, given: dict[str, Any]) -> dict[str, Any]:
    chosen = _common_options(m, given)
    if given.get("retries") is not None:
        chosen["retries"] = _count("retries", given["retries"])
    if given.get("backoff") is not None:
        chosen["backoff"] = _backoff(given["backoff"])
    return chosen


def _child_options(m: Machine, given: dict[str, Any]) -> dict[str, Any]:
    chosen = _common_options(m, given)
    for name in ("id", "version"):
        if given.get(name) is not None:
            chosen[name] = _text(name, given[name])
    return chosen


def _common_options(m: Machine, given: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if given.get("timeout") is not None:
        chosen["timeout_s"] = _duration("timeout", given["timeout"])
    if given.get("queue") is not None:
        chosen["queue"] = _text("queue", given["queue"])
    if given.get("priority") is not None:
        chosen["priority"] = _count("priority", given["priority"], least=-32768, most=32767)
    if given.get("key") is not None:
        chosen["key"] = as_text(given["key"], m.limits)
    return chosen


def _count(what: str, value: Any, least: int = 0, most: int = 1_000_000) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Fault("InvalidArgument", f"`{what}` is a whole number from {least:,} to {most:,}")
    return value


def _backoff(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"initial_s": _duration("backoff", value)}
    unknown = value.keys() - {"initial", "factor", "max", "jitter"}
    if unknown:
        raise Fault("InvalidArgument", f"`backoff` knows initial, factor, max and jitter, not {sorted(unknown)[0]}")
    chosen: dict[str, Any] = {f"{name}_s": _duration(f"backoff.{name}", value[name]) for name in ("initial", "max") if name in value}
    if "factor" in value:
        if not isinstance(value["factor"], int | float) or not 1 <= value["factor"] <= 100:
            raise Fault("InvalidArgument", "`backoff.factor` is a number from 1 to 100")
        chosen["factor"] = value["factor"]
    if "jitter" in value:
        chosen["jitter"] = truthy(value["jitter"])
    return chosen


def _with_settle(plan: Plan, options: dict[str, Any]) -> Plan:
    return {**plan, "settle": True} if truthy(options.get("settle")) else plan


def _with_default(plan: Plan, options: dict[str, Any]) -> Plan:
    return {**plan, "default": options["default"]} if "default" in options else plan


# groups


def start_group(m: Machine, mode: str, n: int, items: list[Plan], keys: list[str] | None, options: Any) -> Plan:
    """The plan of a group whose items were started just now; those over its `concurrency` are held back."""
    given = _options(mode, options)
    if mode == "race" and not items:
        raise Fault("InvalidArgument", "a race of nothing never ends")
    plan: Plan = {"op": mode, "n": n, **_compressed(items)}
    if keys is not None:
        plan["keys"] = keys
    for flag in ("settle", "keep"):
        if truthy(given.get(flag)):
            plan[flag] = True
    if given.get("need") is not None:
        plan["need"] = _count("need", given["need"], 1)
    if given.get("concurrency") is not None:
        limit = _count("concurrency", given["concurrency"], 1)
        if limit < len(items):
            _hold(m, items[limit:])
            plan["concurrency"] = plan["released"] = limit
    return plan


def check_fan_out(m: Machine, count: int) -> None:
    if count > m.limits.fan_out:
        raise LimitFault(f"{count:,} operations at once; the limit is {m.limits.fan_out:,}")


def _compressed(items: list[Plan]) -> Plan:
    """The items as a range of numbers where they are all alike, so that a fan-out costs the snapshot nothing."""
    if len(items) > 1:
        first = items[0]
        alike = {**first, "n": 0}
        plain = first.keys() <= _PLAIN and first["op"] != "signal"
        if plain and all(item["n"] == first["n"] + i and {**item, "n": 0} == alike for i, item in enumerate(items)):
            return {"first": first["n"], "count": len(items), "of": {name: first[name] for name in first if name != "n"}}
    return {"items": items}


def items_of(plan: Plan) -> list[Plan]:
    """The plans of a group's items, in order."""
    if "first" in plan:
        return [{**plan["of"], "n": n} for n in range(plan["first"], plan["first"] + plan["count"])]
    return list(plan["items"])


def _outcomes(m: Machine, plan: Plan, reserved: set[str]) -> list[Outcome | None]:
    """How each item of a group has ended, in order."""
    if "first" in plan:
        get = m.inputs.outcomes.get
        return [get(n) for n in range(plan["first"], plan["first"] + plan["count"])]
    return [resolve(m, item, reserved) for item in plan["items"]]


def _number_at(plan: Plan, position: int) -> int:
    return int(plan["first"] + position if "first" in plan else plan["items"][position]["n"])


def _key(plan: Plan, position: int) -> Any:
    return plan["keys"][position] if "keys" in plan else position


def _hold(m: Machine, items: list[Plan]) -> None:
    held = {n for item in items for n in numbers(item)}
    m.commands = [cmd.replace(held=True) if getattr(cmd, "n", None) in held else cmd for cmd in m.commands]


def release(m: Machine, plan: Plan) -> Plan:
    """Lets held items run in place of those that have ended, in groups inside groups too; the plan that remembers it."""
    if "items" in plan:
        plan = {**plan, "items": [release(m, item) for item in plan["items"]]}
    if "concurrency" not in plan:
        return plan
    ended = _outcomes(m, plan, set())
    running = sum(1 for outcome in ended[: plan["released"]] if outcome is None)
    upto = min(len(ended), plan["released"] + plan["concurrency"] - running)
    if upto == plan["released"]:
        return plan
    items = items_of(plan)
    for first, last in _ranges(n for item in items[plan["released"] : upto] for n in _runnable(item)):
        m.commands.append(c.Release(first, last))
    return {**plan, "released": upto}


def _runnable(plan: Plan) -> Iterator[int]:
    """The numbers of a plan's children, without those that its own `concurrency` still holds back."""
    if "items" in plan or "first" in plan:
        for item in items_of(plan)[: plan.get("released")]:
            yield from _runnable(item)
    else:
        yield plan["n"]


def numbers(plan: Plan) -> Iterator[int]:
    """The numbers of all children that belong to a plan."""
    if "first" in plan:
        yield from range(plan["first"], plan["first"] + plan["count"])
    elif "items" in plan:
        for item in plan["items"]:
            yield from numbers(item)
    else:
        yield plan["n"]


def _ranges(all_numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring numbers put together."""
    first = last = None
    for n in sorted(set(all_numbers)):
        if last is not None and n == last + 1:
            last = n
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = n
    if first is not None and last is not None:
        yield first, last


# by id


def child_number(m: Machine, value: Any) -> int:
    """The number of the child with this id."""
    prefix = f"{m.id}."
    if isinstance(value, str) and value.startswith(prefix):
        rest = value[len(prefix) :]
        if rest.isascii() and rest.isdigit() and len(rest) < 18 and 0 < int(rest) < m.next_child:
            return int(rest)
    shown = f'"{value[:60]}"' if isinstance(value, str) else kind(value)
    raise Fault("NotAChild", f"{shown} is not the id of something that this execution started")


def plan_of_child(m: Machine, value: Any, started: dict[str, Plan]) -> Plan:
    n = child_number(m, value)
    return started.get(str(n)) or {"op": "child", "n": n}


def without_signals(plan: Plan) -> Plan:
    """The plan whose signals are cancelled: no row stands for a signal that is waited for, so the plan itself must say it."""
    if "items" in plan:
        return {**plan, "items": [without_signals(item) for item in plan["items"]]}
    return {**plan, "cancelled": True} if plan["op"] == "signal" else plan


def remember(locals: dict[str, Any], plan: Plan) -> None:
    """Keeps the plan of something started without await, unless its number says it all."""
    if not plan.keys() <= _PLAIN or plan["op"] == "signal":
        locals[STARTED] = {**locals.get(STARTED, {}), str(plan["n"]): plan}


# ending


def resolve(m: Machine, plan: Plan, reserved: set[str]) -> Outcome | None:
    """How the plan has ended, or None. `reserved` holds signals that earlier waits of the same await will take."""
    op = plan["op"]
    if op in ("all", "any", "race"):
        return _GROUPS[op](m, plan, reserved)
    if op == "signal":
        return _resolve_signal(m, plan, reserved)
    outcome = m.inputs.outcomes.get(plan["n"])
    if outcome is None:
        return None
    if "default" in plan and outcome.status == "failed" and outcome.value.get("code") == "Timeout":
        return outcome.replace(status="completed", value=plan["default"])
    return _settled(outcome) if plan.get("settle") else outcome


def _resolve_signal(m: Machine, plan: Plan, reserved: set[str]) -> Outcome | None:
    if plan.get("cancelled"):
        return Outcome("cancelled")
    timer = m.inputs.outcomes.get(plan["n"])
    for signal in m.inputs.signals:
        if signal.name == plan["name"] and signal.id not in m.taken and signal.id not in reserved:
            if timer is not None and timer.ended_at < signal.received_at:
                break
            reserved.add(signal.id)
            return Outcome("completed", signal.payload, signal.received_at, (signal.id,))
    if timer is None and plan.get("timeout") != 0:
        return None
    ended_at = timer.ended_at if timer else 0.0
    if "default" in plan:
        return Outcome("completed", plan["default"], ended_at)
    return Outcome("failed", {"code": "Timeout", "message": f"no signal `{plan['name']}` came in time", "data": None}, ended_at)


def _settled(outcome: Outcome) -> Outcome:
    """The status object instead of a failure."""
    return outcome.replace(status="completed", value=status_of(outcome))


def status_of(outcome: Outcome) -> dict[str, Any]:
    if outcome.status == "completed":
        return {"status": "completed", "result": outcome.value}
    return {"status": outcome.status, "error": error_of(outcome)}


def error_of(outcome: Outcome) -> Any:
    cancelled = {"code": "Cancelled", "message": "it was cancelled", "data": None}
    return outcome.value if outcome.status == "failed" or outcome.value is not None else cancelled


def _resolve_all(m: Machine, plan: Plan, reserved: set[str]) -> Outcome | None:
    before = set(reserved)
    ended = _outcomes(m, plan, reserved)
    if "need" in plan:
        return _resolve_need(m, plan, ended, plan["need"], reserved, before)
    done = [outcome for outcome in ended if outcome is not None]
    if not plan.get("settle"):
        failed = [outcome for outcome in done if outcome.status != "completed"]
        if failed:
            reserved.intersection_update(before)
            return min(failed, key=lambda outcome: outcome.ended_at)
    if len(done) < len(ended):
        return None
    values = [status_of(outcome) if plan.get("settle") else outcome.value for outcome in done]
    result = dict(zip(plan["keys"], values, strict=True)) if "keys" in plan else values
    takes = tuple(id for outcome in done for id in outcome.takes)
    return Outcome("completed", result, max((outcome.ended_at for outcome in done), default=0.0), takes)


def _resolve_any(m: Machine, plan: Plan, reserved: set[str]) -> Outcome | None:
    before = set(reserved)
    ended = _outcomes(m, plan, reserved)
    found = _resolve_need(m, plan, ended, 1, reserved, before)
    if found is None or found.status != "completed":
        return found
    return found.replace(value=found.value[0])


def _resolve_need(
    m: Machine, plan: Plan, ended: list[Outcome | None], need: int, reserved: set[str], before: set[str]
) -> Outcome | None:  # fmt: skip
    """The first `need` successes, or the failure to get them."""
    good = [(i, outcome) for i, outcome in enumerate(ended) if outcome is not None and outcome.status == "completed"]
    open_ = sum(1 for outcome in ended if outcome is None)
    reserved.intersection_update(before)
    if len(good) >= need:
        good = sorted(good, key=lambda pair: pair[1].ended_at)[:need]
        takes = tuple(id for _, outcome in good for id in outcome.takes)
        reserved.update(takes)
        value = [{**_which(m, plan, i), "result": outcome.value} for i, outcome in good]
        return Outcome("completed", value, good[-1][1].ended_at, takes)
    if len(good) + open_ >= need:
        return None
    errors = [error_of(outcome) for outcome in ended if outcome is not None and outcome.status != "completed"]
    last = max((outcome.ended_at for outcome in ended if outcome is not None), default=0.0)
    message = f"`{plan['op']}`: {_why_unmet(need, len(errors), len(ended))}"
    return Outcome("failed", {"code": "AllFailed", "message": message, "data": {"errors": errors}}, last)


def _why_unmet(need: int, failed: int, count: int) -> str:
    if not count:
        return "nothing to wait for"
    if failed == count:
        return "all of them failed"
    if need > count:
        return f"{need} are needed, and there are only {count}"
    return f"{failed} of {count} failed, and {need} are needed"


def _resolve_race(m: Machine, plan: Plan, reserved: set[str]) -> Outcome | None:
    before = set(reserved)
    ended = [(i, outcome) for i, outcome in enumerate(_outcomes(m, plan, reserved)) if outcome is not None]
    reserved.intersection_update(before)
    if not ended:
        return None
    i, first = min(ended, key=lambda pair: pair[1].ended_at)
    reserved.update(first.takes)
    return Outcome("completed", {**_which(m, plan, i), **status_of(first)}, first.ended_at, first.takes)


def _which(m: Machine, plan: Plan, position: int) -> dict[str, Any]:
    return {"item_id": f"{m.id}.{_number_at(plan, position)}", "key": _key(plan, position)}


_GROUPS: dict[str, Callable[[Machine, Plan, set[str]], Outcome | None]] = {"all": _resolve_all, "any": _resolve_any, "race": _resolve_race}


def settle(m: Machine, plan: Plan) -> Outcome | None:
    """How the awaited plan has ended; takes its signals, cancels what is left over and releases what was held."""
    outcome = resolve(m, plan, set())
    if outcome is None:
        return None
    for id in outcome.takes:
        m.taken.add(id)
        m.commands.append(c.TakeSignal(id))
    cancel_rest(m, plan)
    return outcome


def cancel_rest(m: Machine, plan: Plan) -> None:
    """Cancels what a settled plan no longer waits for, unless it says to keep it."""
    if plan.get("keep"):
        return
    for first, last in _ranges(_open_numbers(m, plan)):
        m.commands.append(c.Cancel(first, last))


def _open_numbers(m: Machine, plan: Plan) -> Iterator[int]:
    if "items" in plan or "first" in plan:
        for item in items_of(plan):
            if not item.get("keep"):
                yield from _open_numbers(m, item)
    elif plan["n"] not in m.inputs.outcomes and (plan["op"] != "signal" or plan.get("timeout")):
        yield plan["n"]


def next_completed(m: Machine, state: Plan) -> tuple[Plan, dict[str, Any] | None]:
    """The item of a `completed` loop that ended first of those not yet taken, and the state without it."""
    taken = set(state["taken"])
    ended = [(i, out) for i, out in enumerate(_outcomes(m, state, set())) if i not in taken and out is not None]
    if not ended:
        return state, None
    i, first = min(ended, key=lambda pair: pair[1].ended_at)
    for id in first.takes:
        m.taken.add(id)
        m.commands.append(c.TakeSignal(id))
    if "items" in state:
        cancel_rest(m, state["items"][i])
    return {**state, "taken": [*state["taken"], i]}, {**_which(m, state, i), **status_of(first)}


def size_of(plan: Plan) -> int:
    """How many items a group has."""
    return int(plan["count"]) if "first" in plan else len(plan["items"])


def same_plan(left: Plan | None, right: Plan | None) -> bool:
    return left is right or equal(left, right, lambda work: None)
