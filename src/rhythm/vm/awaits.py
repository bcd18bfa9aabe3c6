"""When an await has ended, what follows for the rest, and which items of a group may begin.

`resolve` looks at a plan and at what has ended, and returns how the whole has ended, or None. It is
asked again in every turn and remembers nothing, so a lost wake loses nothing. `release` lets
further items of a group begin (`concurrency`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import islice
from typing import Any

from rhythm.ir.awaiting import (
    KINDS,
    PLAIN,
    Plan,
    Row,
    fresh,
    has_row,
    has_signals,
    is_group,
    is_loop,
    is_range,
    is_settled,
    items_of,
    key_at,
    number_at,
    numbers,
    ranges,
    runs_in_executions,
    signal_names,
    size_of,
    taken_bits,
    taken_count,
    with_taken,
)
from rhythm.vm import commands as c
from rhythm.vm.machine import Ends, Machine, Outcome
from rhythm.vm.values import Fault, kind


class Reserved(set[str]):
    """The signals that earlier waits of the same await will take.

    `upto`: how many signals of a name are already used. So thousands of waits for one name do not
    look at thousands of signals each.
    """

    @cached_property
    def upto(self) -> dict[str, int]:
        return {}

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Keeps only these signals, and forgets the counts of `upto`."""
        super().intersection_update(*others)
        self.upto.clear()


# Returns how a plan has ended, or None if it has not.
Resolver = Callable[[Machine, Plan, Reserved], Outcome | None]


def _outcomes(m: Machine, plan: Plan, reserved: Reserved) -> list[Outcome | None]:
    """Returns how each item of a group has ended, in order; None for those that have not."""
    m.charge(2 * size_of(plan))
    if "first" in plan:
        get = m.inputs.outcomes.get
        return [get(n) for n in range(plan["first"], plan["first"] + plan["count"])]
    return [resolve(m, item, reserved) for item in plan["items"]]


def release(m: Machine, plan: Plan) -> Plan:
    """Releases held items in place of those that have ended; returns the updated plan.

    Groups inside the group do the same.
    """
    if "items" in plan:
        plan = _updated(m, {**plan, "items": [release(m, item) for item in plan["items"]]})
    if "concurrency" not in plan:
        return plan
    return _released(m, plan, _may_begin(m, plan), _runnable)


def _may_begin(m: Machine, plan: Plan) -> int:
    """Returns how many of a group's items may begin: until `concurrency` of them have not ended.

    An item that is held back may have ended, too: it was cancelled.
    """
    if plan["n"] in m.inputs.may_begin:
        return m.inputs.may_begin[plan["n"]]
    started, upto = fresh(plan), int(plan["released"])
    if "first" in plan:
        gone = _range_of(m, plan).gone
        ended = (gone & ((1 << upto) - 1)).bit_count()
    else:
        ends = enumerate(_outcomes(m, plan, Reserved()))
        gone = taken_bits(plan) | sum(1 << i for i, end in ends if end is not None)
        ended = sum(gone >> i & 1 for i in started[:upto])
    free = plan["concurrency"] - (upto - ended)
    while upto < len(started) and free > 0:
        free -= not gone >> started[upto] & 1
        upto += 1
    return upto


def _range_of(m: Machine, plan: Plan) -> Ends:
    """Returns what has ended of a group that is a range of numbers.

    It is counted once a turn: nothing more can end during a turn, and a loop over thousands of
    items asks for each of them.
    """
    known = m.ends.get(plan["n"])
    if known is None:
        taken, ended = taken_bits(plan), _ended_of_range(m, plan)
        order = [i for i in ended if not taken >> i & 1]
        order.sort(key=lambda i: (ended[i], i))
        gone = taken | sum(1 << i for i in ended) if "concurrency" in plan else 0
        known = m.ends[plan["n"]] = Ends(order, gone, taken.bit_count())
    return known


def _ended_of_range(m: Machine, plan: Plan) -> dict[int, float]:
    """Returns when items of a range have ended, by position, as far as the turn was told.

    It looks at what has ended, or at all items, whichever is less.
    """
    first, count, outcomes = plan["first"], plan["count"], m.inputs.outcomes
    m.charge(2 * min(count, len(outcomes)))
    if len(outcomes) < count:
        return {n - first: end.ended_at for n, end in outcomes.items() if 0 <= n - first < count}
    return {i: outcomes[first + i].ended_at for i in range(count) if first + i in outcomes}


def release_all(m: Machine, plan: Plan) -> Plan:
    """Releases everything that a plan still holds, because nobody will release it later."""
    if "items" in plan:
        plan = _updated(m, {**plan, "items": [release_all(m, item) for item in plan["items"]]})
    return _released(m, plan, len(fresh(plan)), numbers) if "concurrency" in plan else plan


def _released(m: Machine, plan: Plan, upto: int, of_item: Callable[[Plan], Iterable[int]]) -> Plan:
    if upto <= plan["released"]:
        return plan
    more = fresh(plan)[plan["released"] : upto]
    if "first" in plan:
        held = iter([plan["first"] + i for i in more])
    else:
        held = (n for i in more for n in of_item(plan["items"][i]))
    for first, last in ranges(held):
        m.commands.append(c.Release(first, last, runs_in_executions(plan)))
    return _updated(m, {**plan, "released": upto})


def _updated(m: Machine, plan: Plan) -> Plan:
    """Returns the plan; if a copy of it is kept for a later await by id, replaces the copy."""
    kept = m.plans.get(str(plan["n"]))
    if kept and not is_settled(kept):
        m.plans[str(plan["n"])] = plan
    return plan


def _runnable(plan: Plan) -> Iterator[int]:
    """Yields the numbers of a plan's children, without those that its own `concurrency` holds."""
    if "items" in plan or "first" in plan:
        items = items_of(plan)
        for i in fresh(plan)[: plan.get("released")]:
            yield from _runnable(items[i])
    else:
        yield plan["n"]


def child_number(m: Machine, value: Any) -> int:
    """Returns the number of the child with this id. Raises Fault if this execution has none."""
    prefix = f"{m.id}."
    if isinstance(value, str) and value.startswith(prefix):
        rest = value[len(prefix) :]
        if rest.isascii() and rest.isdigit() and len(rest) < 18 and 0 < int(rest) < m.next_child:
            return int(rest)
    shown = f'"{value[:60]}"' if isinstance(value, str) else kind(value)
    advice = "; if it is a result already, leave out the `await`"
    raise Fault(
        "NotAChild", f"{shown} is not the id of something that this execution started{advice}"
    )


def plan_of_child(m: Machine, value: Any) -> Plan:
    """Returns the plan to wait for the child with this id."""
    n = child_number(m, value)
    return m.plans.get(str(n)) or {"op": "child", "n": n}


def remember(m: Machine, plan: Plan) -> None:
    """Keeps the plan of something started without await, if its number alone is not enough."""
    if not plan.keys() <= PLAIN or not has_row(plan):
        m.plans[str(plan["n"])] = plan


def resolve(m: Machine, plan: Plan, reserved: Reserved) -> Outcome | None:
    """Returns how the plan has ended, or None if it has not.

    `reserved` holds the signals that earlier waits of the same await will take.
    """
    return _RESOLVERS[plan["op"]](m, plan, reserved)


def _resolve_row(m: Machine, plan: Plan, reserved: Reserved | None = None) -> Outcome | None:
    """Returns how the thing behind a database row has ended, or None."""
    outcome = m.inputs.outcomes.get(plan["n"])
    if outcome is None:
        return None
    if "default" in plan and outcome.status == "failed" and outcome.value.get("code") == "Timeout":
        return outcome.replace(status="completed", value=plan["default"])
    return _settled(outcome) if plan.get("settle") else outcome


def _resolve_settled(m: Machine, plan: Plan, reserved: Reserved) -> Outcome:
    return Outcome(plan["status"], plan["value"], plan["at"])


def _matched(resolver: Resolver) -> Resolver:
    """Wraps a resolver so that its outcome is remembered, for `close` in the same turn."""

    def resolve_and_remember(m: Machine, plan: Plan, reserved: Reserved) -> Outcome | None:
        outcome = resolver(m, plan, reserved)
        if outcome is not None:
            m.matched[plan["n"]] = outcome
        return outcome

    return resolve_and_remember


def _resolve_signal(m: Machine, plan: Plan, reserved: Reserved) -> Outcome | None:
    timer = m.inputs.outcomes.get(plan["n"])
    mail = m.mail.get(plan["name"], [])
    free = max(reserved.upto.get(plan["name"], 0), _first_free(m, plan["name"]))
    for i in range(free, len(mail)):
        signal = mail[i]
        if signal.id not in m.taken and signal.id not in reserved:
            if timer is not None and timer.ended_at < signal.received_at:
                break
            reserved.add(signal.id)
            return Outcome("completed", signal.payload, signal.received_at, (signal.id,))
        reserved.upto[plan["name"]] = i + 1
    if timer is None and plan.get("timeout") != 0:
        return None
    ended_at = timer.ended_at if timer else 0.0
    if "default" in plan:
        return Outcome("completed", plan["default"], ended_at)
    return Outcome(
        "failed",
        {"code": "Timeout", "message": f"no signal `{plan['name']}` came in time", "data": None},
        ended_at,
    )


def _first_free(m: Machine, name: str) -> int:
    """Returns the place in the mailbox of the first signal of a name that is not consumed.

    A loop takes one signal after the other: it must not pass all that it has taken each time.
    """
    mail, i = m.mail.get(name, []), m.first_free.get(name, 0)
    while i < len(mail) and mail[i].id in m.taken:
        i += 1
    m.first_free[name] = i
    return i


def _knows_mail(m: Machine, plan: Plan) -> bool:
    """Whether the turn knows the signals that the plan waits for: all, or as many as it can take.

    Those that were not read come later.
    """
    if m.inputs.read is None:
        return True
    for name, count in signal_names(plan).items():
        rest = m.mail.get(name, [])[_first_free(m, name) :]
        free = (signal for signal in rest if signal.id not in m.taken)
        if name not in m.inputs.read and len(list(islice(free, count))) < count:
            return False
    return True


def _settled(outcome: Outcome) -> Outcome:
    """Returns the outcome as completed, with the status object as its value (`settle`)."""
    return outcome.replace(status="completed", value=status_of(outcome))


def status_of(outcome: Outcome) -> dict[str, Any]:
    """Returns the status object of an outcome: `{status, result}` or `{status, error}`."""
    if outcome.status == "completed":
        return {"status": "completed", "result": outcome.value}
    return {"status": outcome.status, "error": error_of(outcome)}


def error_of(outcome: Outcome) -> Any:
    """Returns the error of an outcome that did not complete."""
    cancelled = {"code": "Cancelled", "message": "it was cancelled", "data": None}
    return outcome.value if outcome.status == "failed" or outcome.value is not None else cancelled


def _resolve_all(m: Machine, plan: Plan, reserved: Reserved) -> Outcome | None:
    if plan["n"] in m.inputs.undecided:
        return None
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
        reserved.intersection_update(before)
        return None
    values = [status_of(outcome) if plan.get("settle") else outcome.value for outcome in done]
    result = dict(zip(plan["keys"], values, strict=True)) if "keys" in plan else values
    takes = tuple(id for outcome in done for id in outcome.takes)
    return Outcome(
        "completed", result, max((outcome.ended_at for outcome in done), default=0.0), takes
    )


def _resolve_any(m: Machine, plan: Plan, reserved: Reserved) -> Outcome | None:
    before = set(reserved)
    ended = _outcomes(m, plan, reserved)
    found = _resolve_need(m, plan, ended, 1, reserved, before)
    if found is None or found.status != "completed":
        return found
    return found.replace(value=found.value[0])


def _resolve_need(
    m: Machine,
    plan: Plan,
    ended: list[Outcome | None],
    need: int,
    reserved: Reserved,
    before: set[str],
) -> Outcome | None:
    """Returns the first `need` successes, or the failure to get them; None while it is open."""
    good = [
        (i, outcome)
        for i, outcome in enumerate(ended)
        if outcome is not None and outcome.status == "completed"
    ]
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
    errors = [
        error_of(outcome)
        for outcome in ended
        if outcome is not None and outcome.status != "completed"
    ]
    last = max((outcome.ended_at for outcome in ended if outcome is not None), default=0.0)
    message = f"`{plan['op']}`: {_why_unmet(need, len(errors), len(ended))}"
    return Outcome(
        "failed", {"code": "AllFailed", "message": message, "data": {"errors": errors}}, last
    )


def _why_unmet(need: int, failed: int, count: int) -> str:
    if not count:
        return "nothing to wait for"
    if failed == count:
        return "all of them failed"
    if need > count:
        return f"{need} are needed, and there are only {count}"
    return f"{failed} of {count} failed, and {need} are needed"


def _resolve_race(m: Machine, plan: Plan, reserved: Reserved) -> Outcome | None:
    before = set(reserved)
    ended = [
        (i, outcome)
        for i, outcome in enumerate(_outcomes(m, plan, reserved))
        if outcome is not None
    ]
    reserved.intersection_update(before)
    if not ended:
        return None
    i, first = min(ended, key=lambda pair: pair[1].ended_at)
    reserved.update(first.takes)
    return Outcome(
        "completed", {**_which(m, plan, i), **status_of(first)}, first.ended_at, first.takes
    )


def _which(m: Machine, plan: Plan, position: int) -> dict[str, Any]:
    return {"item_id": f"{m.id}.{number_at(plan, position)}", "key": key_at(plan, position)}


# A leaf ends when what stands for it in the database ends; a group ends as its mode says.
_BY_ROW: dict[Row, Resolver] = {
    "task": _resolve_row, "execution": _resolve_row, "timer": _resolve_row, "wait": _resolve_row,
    "approval": _resolve_row, "mailbox": _matched(_resolve_signal), "none": _resolve_settled,
}  # fmt: skip
_GROUPS: dict[str, Resolver] = {"all": _resolve_all, "any": _resolve_any, "race": _resolve_race}
_RESOLVERS: dict[str, Resolver] = {
    **{kind.op: _BY_ROW[kind.row] for kind in KINDS.values()},
    **{mode: _matched(resolver) for mode, resolver in _GROUPS.items()},
}
# The kinds of a single thing with a row that says how it has ended.
_OF_A_ROW = frozenset(op for op, resolver in _RESOLVERS.items() if resolver is _resolve_row)


def knows(m: Machine, plan: Plan) -> bool:
    """Whether this turn knows everything that decides a wait which it begins itself.

    If not, the workflow suspends there, and its owner reads what is missing before the next turn.
    Otherwise a mailbox that nobody has read would seem empty, and of two things that have ended the
    one that happens to be known would win. For the await in the snapshot, the turn was given
    everything.
    """
    if has_signals(plan) and not _knows_mail(m, plan):
        return False
    if m.inputs.asked is None or plan["n"] in m.known or plan["n"] in m.inputs.asked:
        return True
    if is_loop(plan) and is_range(plan) and _knows_next(m, plan):
        return True
    if not all(map(partial(_is_known, m), _earlier(m, plan))):
        return False
    m.known.add(plan["n"])  # a loop over `completed` asks again for each item
    return True


def _is_known(m: Machine, n: int) -> bool:
    return n in m.inputs.outcomes or (m.inputs.asked is not None and n in m.inputs.asked)


def _earlier(m: Machine, plan: Plan) -> Iterator[int]:
    """Yields the numbers of a plan's children that earlier turns started."""
    if "items" in plan:
        for item in plan["items"]:
            yield from _earlier(m, item)
    elif "first" in plan:
        yield from range(plan["first"], min(plan["first"] + plan["count"], m.first_new))
    elif not is_settled(plan) and plan["n"] < m.first_new:
        yield plan["n"]


def settle(m: Machine, plan: Plan) -> Outcome | None:
    """Returns how the awaited plan has ended, or None.

    If it has, takes its signals and cancels what it no longer waits for.
    """
    # Most awaits are of a single task: it takes no signals, and leaves nothing behind.
    if plan["op"] in _OF_A_ROW:
        return _resolve_row(m, plan)
    outcome = resolve(m, plan, Reserved())
    if outcome is None:
        return None
    _take(m, outcome)
    close(m, plan)
    return outcome


def settle_begun(m: Machine, plan: Plan) -> Outcome | None:
    """Returns how a plan has ended that this turn begins to await, or None.

    None, too, if the turn does not know everything that decides it.
    """
    # Nothing that this turn has asked for can have ended yet.
    if plan["n"] >= m.first_new and plan["op"] in _OF_A_ROW:
        return None
    return settle(m, plan) if knows(m, plan) else None


def _take(m: Machine, outcome: Outcome) -> None:
    for id in outcome.takes:
        m.taken.add(id)
        m.commands.append(c.TakeSignal(id))


def close(m: Machine, plan: Plan) -> None:
    """Cancels what the plan waited for and has not ended: nobody waits for it any more.

    A plan with `keep` lets it run instead.
    """
    for first, last in ranges(_closed(m, plan, False)):
        m.commands.append(c.Cancel(first, last))


def _closed(m: Machine, plan: Plan, keep: bool) -> Iterator[int]:
    """Yields the numbers to cancel.

    A signal has no row. So how a wait for a signal ended is kept in its plan, for a later await by
    id.
    """
    n, known = plan["n"], m.matched.get(plan["n"])
    final = known is not None and m.taken.issuperset(known.takes)
    if str(n) in m.plans and has_signals(plan) and (final or not keep):
        m.plans[str(n)] = _settled_plan(n, known if known and final else Outcome("cancelled"))
    if is_group(plan):
        keep = keep or bool(plan.get("keep"))
        plan = release_all(m, plan) if keep else plan
        for item in items_of(plan):
            yield from _closed(m, item, keep)
    elif not keep and n not in m.inputs.outcomes and has_row(plan):
        yield n


def _settled_plan(n: int, outcome: Outcome) -> Plan:
    return {
        "op": "settled",
        "n": n,
        "status": outcome.status,
        "value": outcome.value,
        "at": outcome.ended_at,
    }


def next_completed(m: Machine, state: Plan) -> tuple[Plan, dict[str, Any] | None]:
    """Returns the new state of a `completed` loop, and the next item that it takes.

    That is the first to end of the items not yet taken; None if no further one has ended.
    """
    if "first" in state:
        return _next_of_range(m, state)
    taken = taken_bits(state)
    ended = [
        (i, out)
        for i, out in enumerate(_outcomes(m, state, Reserved()))
        if not taken >> i & 1 and out is not None
    ]
    if not ended:
        return state, None
    i, first = min(ended, key=lambda pair: pair[1].ended_at)
    _take(m, first)
    item = state["items"][i]
    close(m, item)
    items = [
        _settled_plan(item["n"], Outcome("completed")) if i == j else other
        for j, other in enumerate(state["items"])
    ]
    return with_taken({**state, "items": items}, i), {
        **_which(m, state, i),
        **status_of(first),
    }


def _next_of_range(m: Machine, state: Plan) -> tuple[Plan, dict[str, Any] | None]:
    i = _next_position(m, state)
    if i is None:
        return state, None
    m.charge(state["count"] // 256)
    return with_taken(state, i), {
        **_which(m, state, i),
        **status_of(m.inputs.outcomes[state["first"] + i]),
    }


def _next_position(m: Machine, state: Plan) -> int | None:
    """Returns the position of the item that a loop over a range takes next, if it is known."""
    ends = _range_of(m, state)
    nth = taken_count(state) - ends.taken
    return ends.order[nth] if nth < len(ends.order) else None


def _knows_next(m: Machine, state: Plan) -> bool:
    """Whether the next item of a loop was read as one of the first to end.

    Those that end later come later. An end that is known for another reason may not be the first.
    """
    i = _next_position(m, state)
    return i is not None and number_at(state, i) in m.inputs.firsts


def forget_unused(m: Machine, locals: dict[str, Any]) -> None:
    """Drops the plans whose ids no variable holds any more.

    A workflow that starts things for years must not grow.
    """
    prefix, used, below = f"{m.id}.", set[str](), list(locals.values())
    while below:
        value = below.pop()
        if type(value) is str and value.startswith(prefix):
            used.add(value[len(prefix) :])
        elif type(value) is list or type(value) is dict:
            below += value.values() if type(value) is dict else value
    m.plans = {n: plan for n, plan in m.plans.items() if n in used}
