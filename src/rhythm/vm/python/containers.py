"""Elements of lists, dicts and texts: read, set in a copy, deleted from a copy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import key_looked_up
from rhythm.vm.python.raised import named, no_key
from rhythm.vm.values import Fault, check_entries, did_you_mean

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

HINT = 200  # the price of finding the nearest name


def item(m: Machine, x: Any, key: Any) -> Any:
    """Returns `x[key]`."""
    if type(x) is dict:
        m.charge(key_looked_up(key))
    return x[key]


def _slice(m: Machine, x: Any, start: Any, stop: Any, step: Any) -> Any:
    if type(x) is dict:
        raise TypeError("unhashable type: 'slice'")
    return x[start:stop:step]


def _attribute(m: Machine, x: Any, name: Any) -> Any:
    """Returns the field of a model, which is stored as an object."""
    if type(x) is not dict:
        raise AttributeError(f"'{type(x).__name__}' object has no attribute '{named(name)}'")
    m.charge(key_looked_up(name))
    if type(name) is str and name in x:
        return x[name]
    m.charge(HINT)
    raise AttributeError(f"there is no field '{named(name)}'{did_you_mean(named(name), x)}")


def _set(m: Machine, x: Any, path: Any, value: Any) -> Any:
    """Returns a copy of the value in which the element at the path is another one."""
    parents = _parents(m, x, path)
    new = value
    for parent, key in zip(reversed(parents), reversed(path), strict=True):
        new = _replaced(m, parent, key, new)
    return new


def _parents(m: Machine, x: Any, path: Any) -> list[Any]:
    """Returns what each step of the path leads into."""
    if type(path) is not list:
        raise Fault("TypeError", f"a path must be a list of keys, not {type(path).__name__}")
    parents: list[Any] = []
    for key in path:
        x = item(m, parents[-1], path[len(parents) - 1]) if parents else x
        parents.append(x)
        m.charge(3 + key_looked_up(key))
    return parents


def _replaced(m: Machine, parent: Any, key: Any, value: Any) -> Any:
    if type(parent) is dict:
        if type(key) is not str:
            raise no_key(key)
        m.charge(len(parent) // 8 + 3 * key_looked_up(key))
        check_entries(len(parent) + (key not in parent), m.limits)
        return {**parent, key: value}
    if type(parent) is list:
        m.charge(len(parent) // 16)
        copy = parent.copy()
        copy[key] = value
        return copy
    operator.setitem(parent, key, value)  # raises TypeError: nothing else has elements
    raise AssertionError(f"an element of {type(parent).__name__} was set")


def _without(m: Machine, x: Any, path: Any) -> Any:
    """Returns a copy of the value from which the element at the path is deleted."""
    parents = _parents(m, x, path)
    if not parents:
        raise Fault("TypeError", "a path has at least one key")
    new = parents.pop()
    if type(new) is dict or type(new) is list:
        m.charge(len(new) // 8 + key_looked_up(path[-1]))
        new = new.copy()
    operator.delitem(new, path[-1])
    for parent, key in zip(reversed(parents), reversed(path[:-1]), strict=True):
        new = _replaced(m, parent, key, new)
    return new


CONTAINERS: dict[str, Callable[..., Any]] = {
    "item": item, "slice": _slice, "attr": _attribute, "set": _set, "without": _without,
}  # fmt: skip
