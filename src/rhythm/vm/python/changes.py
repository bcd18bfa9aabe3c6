"""Methods of lists and dicts that change them: made on a copy, which comes back with the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import key_looked_up, looked_up
from rhythm.vm.python.comparing import find, ordered
from rhythm.vm.python.conversions import entries_of
from rhythm.vm.python.methods import check_arguments, check_call, no_method
from rhythm.vm.python.raised import no_key, shortened
from rhythm.vm.python.text import written
from rhythm.vm.values import Fault, check_entries

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine


def _changed(m: Machine, x: Any, name: Any, args: Any, kwargs: Any = None) -> list[Any]:
    """Returns the changed copy of the value, and what the method returns."""
    change = _TABLE.get(type(x), {}).get(name) if type(name) is str else None
    if change is None:
        raise no_method(x, name)
    args, kwargs = check_call(args, kwargs)
    m.charge(len(x) // (16 if type(x) is list else 8))
    copy = x.copy()
    result = change(m, copy, args, kwargs)
    check_entries(len(copy), m.limits)
    return [copy, list(result) if type(result) is tuple else result]


def _native(name: str) -> Callable[..., Any]:
    """Returns Python's own method, for what takes no more than the copy does."""
    return lambda m, x, args, kwargs: getattr(x, name)(*args, **kwargs)


# lists


def _extend(m: Machine, x: list[Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    for more in args:
        size = len(more) if type(more) in (list, dict, str) else 0
        check_entries(len(x) + size, m.limits)
        m.charge(size // 4)
    x.extend(*args, **kwargs)


def _remove(m: Machine, x: list[Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    check_arguments([].remove, args, kwargs)
    found = find(m, x, *args)
    if found < 0:
        raise ValueError("list.remove(x): x not in list")
    del x[found]


def _sort(m: Machine, x: list[Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    # In place of a function there are the keys that it would give.
    keys, kwargs = kwargs.get("keys"), {k: v for k, v in kwargs.items() if k != "keys"}
    check_arguments([].sort, args, kwargs)
    if kwargs.get("key") is not None:
        raise TypeError(f"'{type(kwargs['key']).__name__}' object is not callable")
    x[:] = ordered(m, x, kwargs.get("reverse", False), keys)


# dicts


def _update(m: Machine, x: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    if len(args) > 1:
        raise TypeError(f"update expected at most 1 argument, got {len(args)}")
    for more in (*(entries_of(m, arg) for arg in args), kwargs):
        check_entries(max(len(x), len(more)), m.limits)
        m.charge(len(more) // 2 + looked_up(more))
        x.update(more)


def _pop(m: Machine, x: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    m.charge(key_looked_up(args[0]) if args else 0)
    if not x and len(args) == 1 and type(args[0]) in (list, dict):
        # Of an empty dict Python looks at no key: its message would show all of it.
        raise Fault("KeyError", shortened(written(m, args[0], repr)))
    return x.pop(*args, **kwargs)


def _setdefault(m: Machine, x: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    check_arguments({}.setdefault, args, kwargs)
    if type(args[0]) is not str:
        raise no_key(args[0])
    m.charge(key_looked_up(args[0]))
    return x.setdefault(*args)


_TABLE: dict[type, dict[str, Callable[..., Any]]] = {
    list: {
        **{name: _native(name) for name in ("append", "insert", "pop", "clear", "reverse")},
        "extend": _extend, "remove": _remove, "sort": _sort,
    },
    dict: {
        **{name: _native(name) for name in ("popitem", "clear")},
        "update": _update, "pop": _pop, "setdefault": _setdefault,
    },
}  # fmt: skip

CHANGES: dict[str, Callable[..., Any]] = {"changed": _changed}
