"""Frozen value classes that cost nothing to import.

Syntax nodes, instructions, commands and snapshots are all plain values: compared by content, never
changed. `dataclasses` would generate and `exec` half a millisecond of code for each of our hundred
classes on every start of `rhythm check`. This base class does the same work from the annotations
alone, and type checkers treat its subclasses as dataclasses. A class that a process instantiates
thousands of times gets a generated constructor, which takes half the time: a worker makes a dozen
records for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, dataclass_transform

_new = object.__new__
OFTEN = 1000  # after this many instances, a class gets its own constructor


@dataclass_transform(frozen_default=True)
class Record:
    """Base class of values.

    The annotated names of a subclass are its fields; a default is the class attribute with the
    field's name.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _known: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()
    _least: ClassVar[int] = 0  # this many positional values set all required fields
    _made: ClassVar[int] = 0  # instances made by the general constructor

    def __init_subclass__(cls) -> None:
        own = (name for name in cls.__annotations__ if name not in cls._fields)
        cls._fields = cls.__match_args__ = (*cls._fields, *own)  # type: ignore[attr-defined, misc]  # a dunder that only `match` reads
        cls._known = frozenset(cls._fields)
        cls._required = frozenset(name for name in cls._fields if not hasattr(cls, name))
        cls._least = max(
            (i + 1 for i, name in enumerate(cls._fields) if name in cls._required), default=0
        )
        cls._made = 0
        cls.__init__ = Record.__init__  # type: ignore[method-assign]  # not the generated constructor of its base, which has other fields

    def __init__(self, *values: Any, **named: Any) -> None:
        fields, given = self.__dict__, len(values)
        fields.update(zip(self._fields, values, strict=False))
        if not named:
            fits = self._least <= given <= len(self._fields)
        else:
            fields.update(named)
            # Fewer fields than values: there were too many values, or one field was given twice.
            all_known = len(fields) == given + len(named) and named.keys() <= self._known
            fits = all_known and (given >= self._least or fields.keys() >= self._required)
        if not fits:
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._fields)}")
        cls = type(self)
        cls._made += 1
        if cls._made >= OFTEN and cls._least == len(cls._required):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]  # it takes the same arguments, and is faster

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is a value and cannot be changed; use replace()"
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.astuple() == other.astuple())

    def __hash__(self) -> int:
        return hash((type(self), self.astuple()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({fields})"

    def astuple(self) -> tuple[Any, ...]:
        """Returns the values of all fields, in order."""
        return tuple([getattr(self, name) for name in self._fields])

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed.

        Raises `TypeError` for a name that is not a field.
        """
        if not self._known.issuperset(changes):
            raise TypeError(f"{type(self).__name__} has {', '.join(self._fields)}")
        changed = _new(type(self))
        fields = changed.__dict__
        fields |= self.__dict__
        fields |= changes
        return changed


def _constructor(cls: type[Record]) -> Callable[..., None]:
    """Returns a constructor for the fields of one class. The required fields must come first."""
    defaults = {name: getattr(cls, name) for name in cls._fields if name not in cls._required}
    taken = ", ".join(
        f"{name}=_default_{name}" if name in defaults else name for name in cls._fields
    )
    # A field with its default is left out: the class has it, and a small record is made faster.
    kept = [
        f"if {name} is not _default_{name}: _fields[{name!r}] = {name}"
        if name in defaults
        else f"_fields[{name!r}] = {name}"
        for name in cls._fields
    ]
    made: dict[str, Any] = {f"_default_{name}": value for name, value in defaults.items()}
    lines = "\n    ".join(["_fields = self.__dict__", *kept])
    exec(f"def __init__(self, {taken}) -> None:\n    {lines}", made)
    constructor: Callable[..., None] = made["__init__"]
    return constructor
