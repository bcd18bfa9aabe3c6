"""Methods of texts, lists, dicts and numbers that change nothing, by name.

Most are Python's own. Before one is called, its guard counts what it may take, and checks how large
its result can be. Tuples come out as lists, and views of dicts as well.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import characters, entries, key_looked_up, looked_up, search, search_back
from rhythm.vm.python.comparing import find, same
from rhythm.vm.python.raised import named
from rhythm.vm.python.text import written
from rhythm.vm.values import LimitFault, check_entries, check_text

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

Guard = Callable[["Machine", Any, tuple[Any, ...], dict[str, Any]], None]
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def _method(m: Machine, x: Any, name: Any, args: Any, kwargs: Any = None) -> Any:
    kind = int if type(x) is bool else type(x)
    call = _TABLE.get(kind, {}).get(name) if type(name) is str else None
    if call is None:
        raise no_method(x, name)
    return call(m, x, *check_call(args, kwargs))


def check_call(args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Returns the list `args` and the dict `kwargs` (None: empty). Raises TypeError for others."""
    if type(args) is not list or type(kwargs) not in (dict, type(None)):
        raise TypeError("the arguments of a method are a list, and an object for those with a name")
    return args, kwargs or {}


def no_method(x: Any, name: Any) -> AttributeError:
    """Returns the error of a method that the value does not have, in Python or only here."""
    here = " in a workflow" if type(name) is str and hasattr(x, name) else ""
    return AttributeError(f"'{type(x).__name__}' object has no attribute '{named(name)}'{here}")


def _native(name: str, guard: Guard) -> Callable[..., Any]:
    """Returns Python's own method, behind its guard."""

    def call(m: Machine, x: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        guard(m, x, tuple(args), kwargs)
        result = getattr(x, name)(*args, **kwargs)
        if type(result) is str:
            return check_text(result, m.limits)
        return list(result) if type(result) is tuple else result

    return call


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str = "") -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


# guards of texts


def _read(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    m.charge(len(x) // 32)


def _search(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    m.charge(search(x, _argument(args, kwargs, 0, "sep")))


def _search_back(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    m.charge(search_back(x, _argument(args, kwargs, 0, "sep")))


def _strip(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    # Python looks for each character in the ones that are taken off.
    m.charge(len(x) // 32 + len(x) * characters(_argument(args, kwargs, 0)) // 1024)


def _split(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _search(m, x, args, kwargs)
    _check_parts(m, x, args, kwargs)


def _split_back(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _search_back(m, x, args, kwargs)
    _check_parts(m, x, args, kwargs)


def _check_parts(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    m.charge(len(x) // 32)
    separator = _argument(args, kwargs, 0, "sep")
    most = _argument(args, kwargs, 1, "maxsplit")
    limited = isinstance(most, int) and 0 <= most < m.limits.entries
    if len(x) > m.limits.entries and not limited and type(separator) in (str, type(None)):
        check_entries(len(x.split(separator, m.limits.entries)), m.limits)


def _split_lines(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    m.charge(len(x) // 32)
    check_entries(sum(map(x.count, _LINE_ENDS)) - x.count("\r\n"), m.limits)


def _join(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    parts = _argument(args, kwargs, 0)
    if type(parts) in (list, dict, str):
        m.charge(len(parts))
        size = len(parts) if type(parts) is str else sum(map(characters, parts))
        _check_length(m, size + len(x) * (len(parts) - 1))


def _replace(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    old, new = _argument(args, kwargs, 0), _argument(args, kwargs, 1)
    m.charge(2 * search(x, old))
    if type(old) is str and type(new) is str:
        count = _argument(args, kwargs, 2, "count")
        places = x.count(old)
        if isinstance(count, int) and count >= 0:
            places = min(places, count)
        _check_length(m, len(x) + places * (len(new) - len(old)))


def _begins(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    parts = _argument(args, kwargs, 0)
    m.charge(characters(parts) // 128 + entries(parts) + looked_up(parts))


def _widened(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    width = _argument(args, kwargs, 0)
    _check_length(m, width if isinstance(width, int) else 0)
    m.charge(len(x) // 32)


def _tabs(m: Machine, x: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    size = _argument(args, kwargs, 0, "tabsize")
    m.charge(len(x) // 16)
    _check_length(m, len(x) + x.count("\t") * (size if isinstance(size, int) else 8))


def _check_length(m: Machine, size: int) -> None:
    if size > m.limits.text_bytes:
        raise LimitFault(f"a text over {m.limits.text_bytes // 1024:,} KiB")


def _either(name: str) -> Callable[..., Any]:
    """Returns `startswith` or `endswith`: a list stands for the tuple of texts."""
    native = _native(name, _begins)

    def call(m: Machine, x: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if args and type(args[0]) is list:
            m.charge(entries(args[0]))
            args = [tuple(args[0]), *args[1:]]
        return native(m, x, args, kwargs)

    return call


# lists, dicts, numbers


def check_arguments(method: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    """Raises TypeError if the method of an empty list or dict refuses such arguments."""
    with suppress(ValueError):  # nothing is in it
        method(*args, **kwargs)


def _list_index(m: Machine, x: list[Any], args: list[Any], kwargs: dict[str, Any]) -> int:
    # Without the element: the message of the error would show all of it.
    check_arguments([].index, [None, *args[1:]] if args else [], kwargs)
    found = find(m, x, *args)
    if found < 0:
        raise ValueError(f"{written(m, args[0], repr)} is not in list")
    return found


def _list_count(m: Machine, x: list[Any], args: list[Any], kwargs: dict[str, Any]) -> int:
    check_arguments([].count, args, kwargs)
    m.charge(2 * len(x))
    return sum(same(item, args[0], m.charge) for item in x)


def _copy(m: Machine, x: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    check_arguments(type(x)().copy, args, kwargs)
    return x  # values are never changed in place


def _get(m: Machine, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    m.charge(key_looked_up(args[0]) if args else 0)


def _items(m: Machine, x: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    m.charge(4 * len(x))
    return [list(entry) for entry in x.items(*args, **kwargs)]


def _viewed(name: str) -> Callable[..., Any]:
    """Returns `keys` or `values`."""
    return lambda m, x, args, kwargs: list(getattr(x, name)(*args, **kwargs))


def _free(m: Machine, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Guards what takes no longer than any call."""


_GUARDS: dict[type, dict[Guard, str]] = {
    str: {
        _read: "upper lower title capitalize swapcase casefold isdigit isalpha isalnum isspace "
        "isupper islower isnumeric isdecimal isidentifier istitle isascii removeprefix "
        "removesuffix",
        _strip: "strip lstrip rstrip",
        _search: "find index count partition",
        _search_back: "rfind rindex rpartition",
        _widened: "center ljust rjust zfill",
        _split: "split",
        _split_back: "rsplit",
        _split_lines: "splitlines",
        _join: "join",
        _replace: "replace",
        _tabs: "expandtabs",
    },
    int: {_free: "bit_length bit_count"},
    float: {_free: "is_integer"},
    dict: {_get: "get"},
}
_OWN: dict[type, dict[str, Callable[..., Any]]] = {
    str: {name: _either(name) for name in ("startswith", "endswith")},
    list: {"index": _list_index, "count": _list_count, "copy": _copy},
    dict: {"keys": _viewed("keys"), "values": _viewed("values"), "items": _items, "copy": _copy},
}
_TABLE: dict[type, dict[str, Callable[..., Any]]] = {
    kind: {
        **{
            name: _native(name, guard)
            for guard, names in _GUARDS.get(kind, {}).items()
            for name in names.split()
        },
        **_OWN.get(kind, {}),
    }
    for kind in (str, list, dict, int, float)
}

METHODS: dict[str, Callable[..., Any]] = {"method": _method}
