"""What an await looks like: the plan that a snapshot keeps of it, and the table of all kinds.

A plan is plain JSON `{"op", "n", …}`. The plan of a group contains the plans of its items or, for a
fan-out of one kind, only the range of their numbers. A plan that is not a group is a leaf. Each
leaf has a kind in `KINDS`, which says what stands for it in the database, and how it is described
to people. Everything else follows from `Row`: how the await ends (`vm/awaits`), whether it is
cancelled and deleted, and what ends it. Only how an await begins is written for each kind
(`vm/operations`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rhythm.record import Record

Plan = dict[str, Any]
# The keys of a plain plan. Its number alone says as much, so such a plan need not be stored.
PLAIN = frozenset({"op", "n", "name"})
# Most positions that a loop over `completed` lists. A longer list would make every snapshot longer.
MAX_LISTED = 20
# What stands for an await in the database: a row of `executions` (a task has none while the owner
# of its workflow runs it); a row of `timer_tasks`, `event_waits` or `approvals`; the mailbox, with
# a row only for a deadline; or nothing, because the plan itself says how it ended.
Row = Literal["task", "execution", "timer", "wait", "approval", "mailbox", "none"]


class AwaitKind(Record):
    """A kind of await.

    `words` describes it to people, with its name or number in place of `{}`. `named`: its plan has
    the name of the awaited thing.
    """

    op: str
    row: Row
    words: str
    named: bool = True

    @property
    def pauses(self) -> bool:
        """Whether a person or an outside system ends it: who waits for it is `paused`."""
        return self.row in ("wait", "approval")

    @property
    def from_outside(self) -> bool:
        """Whether it comes from outside this execution: it is no error if nothing is there yet."""
        return self.row in ("wait", "approval", "mailbox")


_TABLE = (
    AwaitKind("task", "task", "task {}"),
    AwaitKind("workflow", "execution", "workflow {}"),
    AwaitKind("branch", "execution", "a branch", named=False),
    # an execution that was started earlier, and is awaited by its id
    AwaitKind("child", "execution", "execution {}", named=False),
    AwaitKind("sleep", "timer", "a timer", named=False),
    AwaitKind("signal", "mailbox", "signal {}"),
    AwaitKind("event", "wait", "event {}"),
    AwaitKind("approval", "approval", "an approval by {}"),
    AwaitKind("settled", "none", "what has ended", named=False),
)
KINDS: Mapping[str, AwaitKind] = {kind.op: kind for kind in _TABLE}
PAUSING = frozenset(kind.op for kind in _TABLE if kind.pauses)


def in_words(leaf: Mapping[str, Any], show: Callable[[str], str] = str) -> str:
    """Describes to people what a leaf waits for. `show` makes its name presentable."""
    return KINDS[leaf["op"]].words.format(show(str(leaf.get("name") or leaf["n"])))


def has_row(leaf: Plan) -> bool:
    """Whether a database row stands for the leaf: cancel the row when nobody waits any more."""
    row = KINDS[leaf["op"]].row
    return row not in ("mailbox", "none") or (row == "mailbox" and bool(leaf.get("timeout")))


def has_timer(leaf: Plan) -> bool:
    """Whether a timer can end the leaf: it is a sleep, or a wait for a signal with a deadline."""
    row = KINDS[leaf["op"]].row
    return row == "timer" or (row == "mailbox" and bool(leaf.get("timeout")))


def is_forgotten(leaf: Plan) -> bool:
    """Whether the leaf's row is deleted when the await is over: nobody can ask for it again."""
    return has_timer(leaf) or KINDS[leaf["op"]].row == "wait"


def rows_of(plan: Plan | None) -> set[Row]:
    """Returns the kinds of rows that stand for the things that a plan waits for."""
    if plan is None:
        return set()
    if "items" in plan:
        return set().union(*map(rows_of, plan["items"]))
    return {KINDS[(plan["of"] if "first" in plan else plan)["op"]].row}


def pauses(plan: Plan) -> bool:
    """Whether a person or an outside system ends any of the things that a plan waits for."""
    if "items" in plan:
        return any(map(pauses, plan["items"]))
    return (plan["of"] if "first" in plan else plan)["op"] in PAUSING


def waits_for_mail(plan: Plan | None) -> bool:
    """Whether the plan waits for one signal and for nothing else."""
    return plan is not None and not is_group(plan) and KINDS[plan["op"]].row == "mailbox"


def is_settled(plan: Plan) -> bool:
    """Whether the plan itself says how the await ended."""
    return bool(plan["op"] == "settled")


def needs_all(plan: Plan) -> bool:
    """Whether the plan is a task, or a group that ends only when all have ended or one failed.

    An owner that runs all items itself then needs to watch for nothing else.
    """
    if not is_group(plan):
        return KINDS[plan["op"]].row == "task"
    return plan["op"] == "all" and not plan.get("need") and not plan.get("concurrency")


def ends_as_a_whole(plan: Plan) -> bool:
    """Whether the plan is a range of numbers that ends when all have ended, or one has failed.

    Until then nobody needs to know which of them have ended.
    """
    return is_range(plan) and plan["op"] == "all" and not plan.get("need")


def whole_groups(plan: Plan | None) -> Iterator[Plan]:
    """Yields the groups of a plan, itself or inside it, that end as a whole."""
    if plan is not None and ends_as_a_whole(plan):
        yield plan
    for item in plan.get("items", ()) if plan is not None else ():
        yield from whole_groups(item)


def is_group(plan: Plan) -> bool:
    """Whether the plan waits for several things, each with a plan of its own."""
    return "items" in plan or "first" in plan


def is_range(plan: Plan) -> bool:
    """Whether a group keeps only the numbers of its items, which are all alike."""
    return "first" in plan


def is_loop(plan: Any) -> bool:
    """Whether it is the state of a loop over `completed`, which comes back for its next item."""
    return type(plan) is dict and "taken" in plan


def is_limited(plan: Plan) -> bool:
    """Whether a group begins only some of its items at a time (`concurrency`)."""
    return "concurrency" in plan


def runs_in_executions(plan: Plan) -> bool:
    """Whether a group is a range of numbers whose items are all rows of `executions`.

    What was started earlier, and is awaited by its id, may be a timer as well.
    """
    return is_range(plan) and plan["of"]["op"] in ("task", "workflow", "branch")


def taken_bits(plan: Plan) -> int:
    """Returns a bit for each position that a loop over `completed` has taken."""
    taken = plan.get("taken", ())
    if not isinstance(taken, str):
        return sum(1 << i for i in taken)
    upto, _, later = taken.partition("+")
    return (1 << int(upto)) - 1 | int(later, 16) << int(upto)


def taken_count(plan: Plan) -> int:
    """Returns how many items a loop over `completed` has taken."""
    taken = plan["taken"]
    return taken_bits(plan).bit_count() if isinstance(taken, str) else len(taken)


def with_taken(plan: Plan, position: int) -> Plan:
    """Returns the state of a loop over `completed` that has taken one more item.

    Every turn stores it, so a long list of positions becomes a text: how many it has taken without
    a gap, and bits for those after the gap (see `is_packed`).
    """
    taken = plan["taken"]
    if is_range(plan) and (isinstance(taken, str) or len(taken) >= MAX_LISTED):
        bits = taken_bits(plan) | 1 << position
        upto = (~bits & (bits + 1)).bit_length() - 1
        return {**plan, "taken": f"{upto}+{bits >> upto:x}"}
    return {**plan, "taken": [*taken, position]}


def is_packed(plan: Any) -> bool:
    """Whether it is the state of a loop that keeps a text, not a list: since snapshot version 3."""
    return is_loop(plan) and is_range(plan) and isinstance(plan["taken"], str)


def untaken(plan: Plan) -> list[tuple[int, int]]:
    """Returns the ranges of numbers that a loop over a range has let begin and not taken."""
    begun = released_range(plan)
    positions = f"{taken_bits(plan):0{len(begun)}b}"[::-1][: len(begun)]
    return [
        (begun[0] + run.start(), begun[0] + run.end() - 1) for run in re.finditer("0+", positions)
    ]


def untaken_among(plan: Plan, all_numbers: Iterable[int]) -> Iterator[int]:
    """Yields those of the numbers that are items of a loop over a range and not taken yet."""
    taken, items = taken_bits(plan), range_of(plan)
    return (n for n in all_numbers if n in items and not taken >> (n - items[0]) & 1)


def range_of(plan: Plan) -> range:
    """Returns the numbers of a range's items."""
    return range(plan["first"], plan["first"] + plan["count"])


def released_range(plan: Plan) -> range:
    """Returns the numbers of a range's items that were let begin."""
    return range_of(plan)[: plan.get("released")]


def limit_of(plan: Plan) -> int:
    """Returns how many items of a limited group may run at a time."""
    return int(plan["concurrency"])


def held_back(plan: Plan) -> Iterator[int]:
    """Yields the numbers of what a plan, or a group inside it, has not let begin yet."""
    if is_group(plan):
        items, started = items_of(plan), fresh(plan)
        upto = plan["released"] if is_limited(plan) else len(started)
        for i in started[:upto]:
            yield from held_back(items[i])
        for i in started[upto:]:
            yield from numbers(items[i])


def joiner(plan: Plan) -> str:
    """The word between the things that a plan waits for, for people."""
    return {"all": " and ", "any": " or ", "race": " or "}.get(plan["op"], ", ")


def items_of(plan: Plan) -> list[Plan]:
    """Returns the plans of a group's items, in order."""
    if "first" in plan:
        return [{**plan["of"], "n": n} for n in range(plan["first"], plan["first"] + plan["count"])]
    return list(plan["items"])


def numbers(plan: Plan) -> Sequence[int]:
    """Returns the numbers of all children that belong to a plan."""
    if "first" in plan:
        return range(plan["first"], plan["first"] + plan["count"])
    if "items" in plan:
        return [n for item in plan["items"] for n in numbers(item)]
    return (plan["n"],)


def first_numbers(plan: Plan) -> Sequence[int]:
    """Returns the lowest number of each leaf or range of a plan."""
    if "items" in plan:
        return [n for item in plan["items"] for n in first_numbers(item)]
    return (int(plan["first"] if "first" in plan else plan["n"]),)


def apart_from_whole_groups(plan: Plan | None) -> Iterator[int]:
    """Yields the numbers of what a plan still waits for, without its `whole_groups`."""
    if plan is None or ends_as_a_whole(plan) or is_settled(plan):
        return
    if "items" in plan:
        for item in plan["items"]:
            yield from apart_from_whole_groups(item)
    else:
        yield from numbers(plan)


def leaves(plan: Plan | None) -> Iterator[Plan]:
    """Yields the leaves that a plan still waits for: no groups, nothing settled or taken."""
    if plan is None:
        return
    if is_group(plan):
        taken = taken_bits(plan)
        for i, item in enumerate(items_of(plan)):
            if not taken >> i & 1:
                yield from leaves(item)
    elif not is_settled(plan):
        yield plan


def branches(plan: Plan | None) -> Iterator[int]:
    """Yields the numbers of the branches that a plan waits for: parts of the same program."""
    return (int(leaf["n"]) for leaf in leaves(plan) if leaf["op"] == "branch")


def ranges(all_numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Joins consecutive numbers: yields (first, last) for each run, in ascending order."""
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
    """Returns the child number of a group's item."""
    return int(plan["first"] + position if "first" in plan else plan["items"][position]["n"])


def key_at(plan: Plan, position: int) -> Any:
    """Returns the key of a group's item: its key in an object, else its position."""
    return plan["keys"][position] if "keys" in plan else position


def fresh(plan: Plan) -> Sequence[int]:
    """Returns the positions of the items that the group itself started; the others ran before.

    A group draws its number before it starts its items, so its own items have higher numbers.
    """
    if "first" in plan:
        return range(plan["count"]) if plan["first"] > plan["n"] else ()
    return [i for i, item in enumerate(plan["items"]) if item["n"] > plan["n"]]


def size_of(plan: Plan) -> int:
    """Returns how many items a group has."""
    return int(plan["count"]) if "first" in plan else len(plan["items"])


def has_signals(plan: Plan) -> bool:
    """Whether the plan waits for any signal, so that the mailbox says whether it has ended.

    A range of numbers never contains signals.
    """
    if "items" in plan:
        return any(map(has_signals, plan["items"]))
    return waits_for_mail(plan)


def signal_names(plan: Plan | None) -> Counter[str]:
    """Returns the names of the signals that a plan waits for, and how many of each."""
    if plan is None or not has_signals(plan):
        return Counter()
    return Counter(leaf["name"] for leaf in leaves(plan) if waits_for_mail(leaf))


def compressed(items: list[Plan]) -> Plan:
    """Returns `{"items": …}`, or only the range of their numbers if all items are alike.

    A large fan-out then costs the snapshot nothing.
    """
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
