"""Python's comparisons: equality, order, `in`, and what sorts.

Python itself compares only numbers, texts, and lists of these. Anything deeper is walked here, and
counted: through sharing, a small value can be an enormous tree.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from functools import cmp_to_key
from itertools import chain
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import LONG, characters, key_looked_up, search
from rhythm.vm.python.walking import items_of
from rhythm.vm.values import Charge, deep_equal

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

_PLAIN = frozenset((int, float, bool, str, type(None)))
_COMPARE = 4  # what a comparison costs that is made here and not by Python


def same(left: Any, right: Any, charge: Charge) -> bool:
    """Whether `left == right`."""
    if left is right:
        return True
    kinds = type(left), type(right)
    if list not in kinds and dict not in kinds:
        if kinds[0] is str and len(left) > LONG:
            charge(len(left) // LONG)
        return bool(left == right)
    return deep_equal(left, right, charge, same)


def in_order(compare: Callable[[Any, Any], bool], left: Any, right: Any, charge: Charge) -> bool:
    """Returns `left < right`, or what else `compare` says. Raises TypeError as Python does."""
    while type(left) is list and type(right) is list:
        found = _first_difference(left, right, charge)
        if found < 0:
            return compare(len(left), len(right))
        left, right = left[found], right[found]
    if type(left) is str:
        charge(len(left) // LONG)
    return bool(compare(left, right))


def _first_difference(left: list[Any], right: list[Any], charge: Charge) -> int:
    """Returns the first position at which the lists differ; -1 if the shorter one has none."""
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        charge(1)
        if not same(a, b, charge):
            return i
    return -1


def _equal(m: Machine, a: Any, b: Any) -> bool:
    return same(a, b, m.charge)


def _not_equal(m: Machine, a: Any, b: Any) -> bool:
    return not same(a, b, m.charge)


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    return lambda m, a, b: in_order(compare, a, b, m.charge)


def _contains(m: Machine, container: Any, item: Any) -> bool:
    if type(container) is list:
        return find(m, container, item) >= 0
    m.charge(key_looked_up(item) if type(container) is dict else search(container, item))
    return item in container


def find(m: Machine, items: list[Any], wanted: Any, start: int = 0, stop: int | None = None) -> int:
    """Returns the first position, from `start` on, of what equals `wanted`; -1 if there is none."""
    charge, stop = m.charge, len(items) if stop is None else stop
    if type(wanted) in _PLAIN:  # it is equal to nothing that holds anything: Python may compare
        charge(len(items) // 8 + len(items) * characters(wanted) // LONG)
        with suppress(ValueError):
            return items.index(wanted, start, stop)
        return -1
    for i in range(*slice(start, stop).indices(len(items))):
        charge(1)
        if same(items[i], wanted, charge):
            return i
    return -1


def ordered(m: Machine, x: Any, reverse: Any = False, keys: Any = None) -> list[Any]:
    """Returns `sorted(x, reverse=reverse)`, by the keys at the same positions if there are any."""
    items = items_of(m, x)
    by = _keys_of(items, keys)
    m.charge(3 * len(by))
    if not _is_flat(by):
        under = cmp_to_key(lambda a, b: -1 if _less(m, a, b) else 1)
        by = [under(key) for key in by]
    else:
        m.charge(_work(by, len(by).bit_length()))
        if keys is None:
            return sorted(items, reverse=reverse)
    return [items[i] for i in sorted(range(len(by)), key=by.__getitem__, reverse=reverse)]


def _less(m: Machine, a: Any, b: Any) -> bool:
    m.charge(_COMPARE)
    return in_order(operator.lt, a, b, m.charge)


def _keys_of(items: list[Any], keys: Any) -> list[Any]:
    if keys is None:
        return items
    if type(keys) is not list or len(keys) != len(items):
        raise ValueError("there must be one key for each item")
    return keys


def _is_flat(keys: list[Any]) -> bool:
    """Whether Python may compare the keys: they hold nothing that holds anything."""
    kinds = set(map(type, keys))
    if list in kinds:
        kinds.remove(list)
        lists = (key for key in keys if type(key) is list)
        kinds.update(map(type, chain.from_iterable(lists)))
    return kinds <= _PLAIN


def _work(keys: list[Any], rounds: int) -> int:
    """Returns the price of comparing each of the flat keys `rounds` times."""
    texts, parts = sum(map(characters, keys)), 0
    lists = [key for key in keys if type(key) is list]
    if lists:
        parts = sum(map(len, lists))
        texts += sum(map(characters, chain.from_iterable(lists)))
    return rounds * (len(lists) // 3 + parts // 16 + texts // LONG) + parts


def _extreme(
    name: str, pick: Callable[..., Any], compare: Callable[[Any, Any], bool]
) -> Callable[..., Any]:
    def extreme(m: Machine, x: Any, default: Any, keys: Any = None) -> Any:
        items = items_of(m, x)
        if not items and default:
            return default[0]
        by = _keys_of(items, keys)
        if not items or _is_flat(by):
            m.charge(2 * len(by) + _work(by, 1))
            return items[pick(range(len(by)), key=by.__getitem__)] if items else pick(())
        best = 0
        for i in range(1, len(by)):
            m.charge(_COMPARE)
            if in_order(compare, by[i], by[best], m.charge):
                best = i
        return items[best]

    return extreme


COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": _equal, "ne": _not_equal, "lt": _ordering(operator.lt), "le": _ordering(operator.le),
    "gt": _ordering(operator.gt), "ge": _ordering(operator.ge), "contains": _contains,
    "sorted": ordered, "min": _extreme("min", min, operator.lt),
    "max": _extreme("max", max, operator.gt),
}  # fmt: skip
