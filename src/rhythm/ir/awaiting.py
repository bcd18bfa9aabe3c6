"""What an await looks like: the plan that a snapshot keeps of it, and the table of all kinds.

A plan is plain JSON `{"op", "n", …}`. A group's plan holds its items' plans, or, for a fan-out of
one kind, only the range of their numbers. What is not a group is a leaf, and each leaf has its kind
in `KINDS`: what stands for it in the database, and how people are told of it. Everything else
follows from `Row`: how it ends (`vm/awaits`), whether it is cancelled and forgotten, who brings it.
How it begins is the one thing that each kind has of its own (`vm/operations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rhythm.record import Record

Plan = dict[str, Any]
PLAIN = frozenset({"op", "n", "name"})  # of which a number says as much as the plan
# What stands for an await: a row of `executions`, which a task may lack while the owner of its
# workflow runs it; a row of `timer_tasks`, `event_waits` or `approvals`; the mailbox, which has a
# row only for the deadline; or nothing, since how it ended is in the plan.
Row = Literal["task", "execution", "timer", "wait", "approval", "mailbox", "none"]


class AwaitKind(Record):
    """A kind of await. `words`: how people are told of it, with its name or number in `{}`.
    `named`: its plan has the name of what it waits for."""

    op: str
    row: Row
    words: str
    named: bool = True

    @property
    def pauses(self) -> bool:
        """Whether it comes from a person or an outside system: whoever waits for it is paused."""
        return self.row in ("wait", "approval")

    @property
    def from_outside(self) -> bool:
        """Whether nothing of this execution brings it: that it is not there yet is no mistake."""
        return self.row in ("wait", "approval", "mailbox")


_TABLE = (
    AwaitKind("task", "task", "task {}"),
    AwaitKind("workflow", "execution", "workflow {}"),
    AwaitKind("branch", "execution", "a branch", named=False),
    # something started before, awaited by its id
    AwaitKind("child", "execution", "execution {}", named=False),
    AwaitKind("sleep", "timer", "a timer", named=False),
    AwaitKind("signal", "mailbox", "signal {}"),
    AwaitKind("event", "wait", "event {}"),
    AwaitKind("approval", "approval", "an approval by {}"),
    AwaitKind("settled", "none", "what has ended", named=False),
)
KINDS: Mapping[str, AwaitKind] = {kind.op: kind for kind in _TABLE}
PAUSING = frozenset(kind.row for kind in _TABLE if kind.pauses)


def in_words(leaf: Mapping[str, Any], show: Callable[[str], str] = str) -> str:
    """What a leaf waits for, for people. `show`: its name, as they may see it."""
    return KINDS[leaf["op"]].words.format(show(str(leaf.get("name") or leaf["n"])))


def has_row(leaf: Plan) -> bool:
    """Whether a row stands for it, which must be cancelled when nobody waits any more."""
    row = KINDS[leaf["op"]].row
    return row not in ("mailbox", "none") or (row == "mailbox" and bool(leaf.get("timeout")))


def has_timer(leaf: Plan) -> bool:
    """Whether a timer ends it: a sleep, or the deadline of a wait for a signal."""
    row = KINDS[leaf["op"]].row
    return row == "timer" or (row == "mailbox" and bool(leaf.get("timeout")))


def is_forgotten(leaf: Plan) -> bool:
    """Whether its row is deleted when the await is over: nobody can ask for it again."""
    return has_timer(leaf) or KINDS[leaf["op"]].row == "wait"


def rows_of(plan: Plan | None) -> set[Row]:
    """What stands for the things that a plan waits for."""
    if plan is None:
        return set()
    if "items" in plan:
        return set().union(*map(rows_of, plan["items"]))
    return {KINDS[(plan["of"] if "first" in plan else plan)["op"]].row}


def waits_for_mail(plan: Plan | None) -> bool:
    """Whether it waits for one signal, and for nothing else."""
    return plan is not None and not is_group(plan) and KINDS[plan["op"]].row == "mailbox"


def is_settled(plan: Plan) -> bool:
    """Whether how it ended is in the plan itself."""
    return bool(plan["op"] == "settled")


def needs_all(plan: Plan) -> bool:
    """Whether it is a task, or a group that ends only when all its items have, or one has failed:
    whoever runs them all has nothing else to look out for."""
    if not is_group(plan):
        return KINDS[plan["op"]].row == "task"
    return plan["op"] == "all" and not plan.get("need") and not plan.get("concurrency")


def is_group(plan: Plan) -> bool:
    """Whether it waits for several things, each with a plan of its own."""
    return "items" in plan or "first" in plan


def items_of(plan: Plan) -> list[Plan]:
    """The plans of a group's items, in order."""
    if "first" in plan:
        return [{**plan["of"], "n": n} for n in range(plan["first"], plan["first"] + plan["count"])]
    return list(plan["items"])


def numbers(plan: Plan) -> Iterator[int]:
    """The numbers of all children that belong to a plan."""
    if "first" in plan:
        yield from range(plan["first"], plan["first"] + plan["count"])
    elif "items" in plan:
        for item in plan["items"]:
            yield from numbers(item)
    else:
        yield plan["n"]


def leaves(plan: Plan | None) -> Iterator[Plan]:
    """What a plan waits for: without the groups, and without what has been settled or taken."""
    if plan is None:
        return
    if is_group(plan):
        taken = set(plan.get("taken", ()))
        for i, item in enumerate(items_of(plan)):
            if i not in taken:
                yield from leaves(item)
    elif not is_settled(plan):
        yield plan


def ranges(all_numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
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


def number_at(plan: Plan, position: int) -> int:
    return int(plan["first"] + position if "first" in plan else plan["items"][position]["n"])


def key_at(plan: Plan, position: int) -> Any:
    return plan["keys"][position] if "keys" in plan else position


def fresh(plan: Plan) -> Sequence[int]:
    """The positions of the items that the group itself started: a group takes its number before
    them. The others run already."""
    if "first" in plan:
        return range(plan["count"]) if plan["first"] > plan["n"] else ()
    return [i for i, item in enumerate(plan["items"]) if item["n"] > plan["n"]]


def size_of(plan: Plan) -> int:
    """How many items a group has."""
    return int(plan["count"]) if "first" in plan else len(plan["items"])


def has_signals(plan: Plan) -> bool:
    """Whether the mailbox says if it has ended: of a range of numbers it never does."""
    return waits_for_mail(plan) or ("items" in plan and any(map(has_signals, plan["items"])))


def compressed(items: list[Plan]) -> Plan:
    """The items as a range of numbers where they are all alike, so that a fan-out costs the
    snapshot nothing."""
    if len(items) > 1:
        first = items[0]
        alike = {**first, "n": 0}
        plain = first.keys() <= PLAIN and has_row(first)
        if plain and all(
            item["n"] == first["n"] + i and {**item, "n": 0} == alike
            for i, item in enumerate(items)
        ):
            return {
                "first": first["n"],
                "count": len(items),
                "of": {name: first[name] for name in first if name != "n"},
            }
    return {"items": items}
