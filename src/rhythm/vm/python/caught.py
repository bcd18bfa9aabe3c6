"""Errors that a Python workflow catches: which exception classes one is of, and how it is shown.

An error is `{code, message, data}`. What Python raised in the workflow has the name of its class
as its code. A failed task has the code `TaskFailed`, and `data` names the class that was raised
and its bases. A failed child has the error of the child in its `data`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

from rhythm.vm.machine import Machine
from rhythm.vm.python.text import written
from rhythm.vm.values import Fault

# What the engine itself calls its failures; no task has raised them.
OF_THE_ENGINE = frozenset({"Timeout", "ChildFailed", "AllFailed", "Cancelled", "Blocked"})
MAX_CHILDREN = 20  # how many failed children inside each other are looked through
_BUILTIN: dict[str, frozenset[str]] = {
    name: frozenset(base.__name__ for base in cls.__mro__)
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, Exception)
}
_BUILTIN["JSONDecodeError"] = _BUILTIN["ValueError"] | {"JSONDecodeError"}
_BUILTIN["Timeout"] = _BUILTIN["TimeoutError"] | {"Timeout", "RhythmError", "WorkflowError"}
# What Python would have raised in place of what the engine says.
_MEANT = {
    "InvalidArgument": "ValueError", "TypeMismatch": "TypeError", "NotAChild": "TypeError",
    "MissingProperty": "KeyError", "IndexOutOfRange": "IndexError", "Overflow": "OverflowError",
    "DivisionByZero": "ZeroDivisionError",
}  # fmt: skip
_BUILTIN |= {code: _BUILTIN[meant] | {code} for code, meant in _MEANT.items()}
for _name in ("ChildFailed", "AllFailed"):
    _BUILTIN[_name] = frozenset({_name, "RhythmError", "WorkflowError", "Exception"})


def _matches(m: Machine, error: Any, names: Any) -> bool:
    """Whether the error is of one of these exception classes, or of a class below one of them."""
    if type(error) is not dict or type(names) is not list:
        raise Fault("TypeError", "an error and a list of names of exception classes")
    m.charge(2 * len(names))
    wanted = {name for name in names if type(name) is str}
    if wanted & {"Exception", "BaseException"}:
        return True
    return any(wanted & classes for classes in _classes(m, error))


def _classes(m: Machine, error: Any) -> Iterator[frozenset[str]]:
    """Yields the names of an error's exception classes and, if a child failed, of the child's."""
    for _ in range(MAX_CHILDREN):
        if type(error) is not dict:
            return
        code = error.get("code")
        data = error["data"] if type(error.get("data")) is dict else {}
        yield _named(code) | _named(data.get("type"))
        yield _bases(m, error.get("bases")) | _bases(m, data.get("bases"))
        if _is_of_a_task(code, data):
            yield frozenset({"TaskFailed", "RhythmError"})
        error = data.get("error") if code == "ChildFailed" else None


def _bases(m: Machine, names: Any) -> frozenset[str]:
    """Returns the names of base classes that an error brings with it."""
    if type(names) is not list:
        return frozenset()
    m.charge(len(names))
    return frozenset(name for name in names if type(name) is str)


def _named(name: Any) -> frozenset[str]:
    return _BUILTIN.get(name, frozenset({name})) if isinstance(name, str) else frozenset()


def _is_of_a_task(code: Any, data: dict[str, Any]) -> bool:
    """Whether a task has failed: by an exception, or by `TaskFailed` with a code of its own."""
    if code == "TaskFailed" or "task" in data:
        return True
    return code not in _BUILTIN and code not in OF_THE_ENGINE and "bases" not in data


def _error(m: Machine, error: Any, what: Any) -> str:
    """Returns the text of an error, or the name of its class, as the `except` block sees it."""
    if type(error) is not dict or what not in ("text", "name"):
        raise Fault("TypeError", 'an error, and "text" or "name"')
    error = _of_innermost_child(error)
    data: dict[str, Any] = error["data"] if type(error.get("data")) is dict else {}
    kind = _text(m, data.get("type") or "")
    if what == "name":
        return kind or _text(m, error.get("code", "Exception"))
    message, task = _text(m, error.get("message", "")), _text(m, data.get("task", ""))
    # A failed task is shown to people with its name and class; Python shows the message alone.
    for before in (f"task `{task}` failed: {kind}: ", f"task `{task}` failed: "):
        if message.startswith(before):
            rest = message.removeprefix(before)
            return "" if rest == kind else rest
    return message


def _text(m: Machine, value: Any) -> str:
    return value if type(value) is str else written(m, value, str)


def _of_innermost_child(error: dict[str, Any]) -> dict[str, Any]:
    """Returns the error of the child that failed first: in Python it passes through its parents."""
    for _ in range(MAX_CHILDREN):
        data = error.get("data") if error.get("code") == "ChildFailed" else None
        inner = data.get("error") if type(data) is dict else None
        if type(inner) is not dict:
            break
        error = inner
    return error


CAUGHT: dict[str, Callable[..., Any]] = {"matches": _matches, "error": _error}
