"""Plans: what the snapshot remembers of an operation, as plain JSON `{"op", "n", …}`.

A group's plan holds its items' plans, or, for a fan-out of one kind, only the range of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Plan = dict[str, Any]
PLAIN = frozenset({"op", "n", "name"})


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


def leaves(plan: Plan) -> Iterator[Plan]:
    """What a plan waits for, without the groups and without what has been settled."""
    if "items" in plan or "first" in plan:
        for item in items_of(plan):
            yield from leaves(item)
    elif plan["op"] != "settled":
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
    """The positions of the items that the group itself started: a group takes its number before them. The others run already."""
    if "first" in plan:
        return range(plan["count"]) if plan["first"] > plan["n"] else ()
    return [i for i, item in enumerate(plan["items"]) if item["n"] > plan["n"]]


def size_of(plan: Plan) -> int:
    """How many items a group has."""
    return int(plan["count"]) if "first" in plan else len(plan["items"])


def has_signals(plan: Plan) -> bool:
    return plan["op"] == "signal" or ("items" in plan and any(map(has_signals, plan["items"])))


def compressed(items: list[Plan]) -> Plan:
    """The items as a range of numbers where they are all alike, so that a fan-out costs the snapshot nothing."""
    if len(items) > 1:
        first = items[0]
        alike = {**first, "n": 0}
        plain = first.keys() <= PLAIN and first["op"] != "signal"
        if plain and all(item["n"] == first["n"] + i and {**item, "n": 0} == alike for i, item in enumerate(items)):
            return {"first": first["n"], "count": len(items), "of": {name: first[name] for name in first if name != "n"}}
    return {"items": items}
