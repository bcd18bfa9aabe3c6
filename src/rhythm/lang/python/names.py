"""What a name of a Python workflow means outside of it: a task, a constant, a class, a function.

Names are looked up when the function is decorated, in its module and around it, as Python would.
What a workflow takes from there is a part of its version: a changed constant is another program.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, is_typeddict

from rhythm.limits import INT_MAX, INT_MIN
from rhythm.record import Record

MISSING: Any = object()  # no object stands for the name


class Callee(Record):
    """What a workflow can start by calling it: a task or another workflow.

    `takes_object` is true for one whose only input is the whole object, such as a `.flow`.
    """

    kind: Literal["task", "workflow"]
    name: str
    signature: inspect.Signature
    result: Any = Any  # the hint of what it returns
    is_async: bool = True  # else only `.run(…)` can be awaited, as in Python
    hints: Mapping[str, Any] = {}  # of its parameters


class Around:
    """The names around a function: closure, module, builtins."""

    def __init__(self, function: Callable[..., Any], more: Mapping[str, Any] | None = None) -> None:
        plain = inspect.unwrap(function)
        cells = zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=False)
        closed = {name: cell.cell_contents for name, cell in cells if _filled(cell)}
        self._spaces = (more or {}, closed, plain.__globals__, vars(builtins))
        self.shared: list[Any] = []  # lists and dicts of the module, as they are in the program
        # Fields whose hints say that they hold nothing: where they are read, and their names.
        self.plain = set[tuple[int, str]]()

    def find(self, name: str) -> Any:
        """Returns the object that a name stands for, or MISSING."""
        return next((space[name] for space in self._spaces if name in space), MISSING)

    def resolve(self, node: ast.AST) -> Any:
        """Returns the object of a name or dotted name, or MISSING.

        Only attributes of modules and classes are read: those of other objects could be code.
        """
        if isinstance(node, ast.Name):
            return self.find(node.id)
        if not isinstance(node, ast.Attribute):
            return MISSING
        owner = self.resolve(node.value)
        if isinstance(owner, types.ModuleType | type):
            return _attribute(owner, node.attr)
        if isinstance(owner, enum.Enum) and node.attr in ("value", "name"):
            return getattr(owner, node.attr)
        return MISSING

    def similar(self) -> list[str]:
        """Returns all names, for suggestions."""
        return [name for space in self._spaces for name in space if not name.startswith("_")]


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, MISSING)
    except Exception:  # a module's own `__getattr__` may raise anything
        return MISSING


def callee_of(value: Any) -> Callee | None:
    """Returns how a task or workflow is started, or None for anything else."""
    made = getattr(type(value), "__rhythm_callee__", None)
    return made(value) if made else None


def operation_of(value: Any) -> str | None:
    """Returns the name of the operation that a function of Rhythm or asyncio means, or None."""
    own = getattr(value, "__rhythm_operation__", None)
    return own if isinstance(own, str) else _ASYNCIO.get(key_of(value))


def key_of(value: Any) -> str:
    """Returns the full name of a function or class, by which the known ones are recognised."""
    owner = getattr(value, "__self__", None)
    name = getattr(value, "__name__", "")
    if isinstance(owner, type):
        return f"{owner.__module__}.{owner.__qualname__}.{name}"
    if owner is not None and not isinstance(owner, types.ModuleType):
        return f"{type(owner).__module__}.{type(owner).__qualname__}.{name}"
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", "")
    return f"{module}.{getattr(value, '__qualname__', name)}"


_ASYNCIO = {
    "asyncio.tasks.gather": "gather",
    "asyncio.tasks.sleep": "sleep",
    "asyncio.tasks.wait_for": "wait_for",
    "asyncio.tasks.create_task": "start",
    "asyncio.tasks.ensure_future": "start",
    "asyncio.timeouts.timeout": "timeout",
    "asyncio.taskgroups.TaskGroup": "task_group",
}


def json_of(value: Any) -> Any:
    """Returns a constant as JSON, or MISSING if it is none. Tuples become lists, enums values."""
    if isinstance(value, enum.Enum):
        return json_of(value.value)
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value) if INT_MIN <= value <= INT_MAX else MISSING
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else MISSING
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = [json_of(item) for item in value]
        return MISSING if any(item is MISSING for item in items) else items
    if isinstance(value, dict | types.MappingProxyType):
        return _json_object(value)
    return MISSING


def _json_object(value: Mapping[Any, Any]) -> Any:
    entries = {key: json_of(item) for key, item in value.items()}
    fits = all(isinstance(key, str) for key in entries)
    return entries if fits and all(item is not MISSING for item in entries.values()) else MISSING


class Model(Record):
    """A class whose instances are kept as objects: its fields with their hints and defaults."""

    cls: type
    fields: Mapping[str, Any]
    defaults: Mapping[str, Any]
    plain: bool  # calling it sets the fields, and does nothing else
    frozen: bool = False


def model_of(hint: Any) -> Model | None:
    """Returns the model that a hint names: a dataclass, NamedTuple, pydantic or msgspec class."""
    cls = _class_of(hint)
    if cls is None or issubclass(cls, enum.Enum):
        return None
    hints = _hints(cls)
    if dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        defaults = {
            field.name: field.default
            for field in fields
            if field.default is not dataclasses.MISSING
        }
        defaults |= {
            field.name: field.default_factory()
            for field in fields
            if field.default_factory is not dataclasses.MISSING
        }
        plain = not hasattr(cls, "__post_init__") and all(field.init for field in fields)
        frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]  # of a dataclass
        named = {field.name: hints.get(field.name, Any) for field in fields}
        return Model(cls, named, defaults, plain, frozen)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        named = {name: hints.get(name, Any) for name in cls._fields}
        return Model(cls, named, dict(getattr(cls, "_field_defaults", {})), True, True)
    if hasattr(cls, "model_fields"):
        return Model(cls, {name: hints.get(name, Any) for name in cls.model_fields}, {}, False)
    if hasattr(cls, "__struct_fields__"):
        return Model(cls, {name: hints.get(name, Any) for name in cls.__struct_fields__}, {}, False)
    return None


def _class_of(hint: Any) -> type | None:
    """Returns the class of a hint; of `X | None`, X."""
    if isinstance(hint, type) and not is_typeddict(hint):
        return hint
    options = [option for option in getattr(hint, "__args__", ()) if option is not type(None)]
    union = isinstance(hint, types.UnionType) or getattr(hint, "__origin__", None) is not None
    if union and len(options) == 1 and _is_union(hint):
        return _class_of(options[0])
    return None


def _is_union(hint: Any) -> bool:
    from typing import Union, get_origin

    return isinstance(hint, types.UnionType) or get_origin(hint) is Union


def _hints(cls: type) -> dict[str, Any]:
    from typing import get_type_hints

    try:
        return get_type_hints(cls)
    except Exception:  # a hint that cannot be evaluated says nothing
        return {}
