"""Functions made from the methods of another class, with their signature and documentation.

So the flat names of the application and its coroutines are tables of names: nothing is written
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class Delegate:
    """Puts a plain function in its place when the class in whose body it stands is created."""

    def __init__(
        self, call: Callable[..., Any], method: Callable[..., Any], signature: Any = None
    ) -> None:
        self._call, self._method, self._signature = call, method, signature

    def __set_name__(self, owner: type, name: str) -> None:
        made: Any = update_wrapper(self._call, self._method)
        made.__name__, made.__qualname__ = name, f"{owner.__qualname__}.{name}"
        if self._signature is not None:
            made.__signature__ = self._signature
        setattr(owner, name, made)


def flat(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Returns a method of the application that calls this method of a room.

    The application has the room under the lower-case name of its class: `Tokens` is `app.tokens`.
    """
    room, _, name = method.__qualname__.partition(".")

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(getattr(self, room.lower()), name)(*args, **kwargs)

    made: Any = Delegate(call, method)
    return cast(Callable[Concatenate[Any, P], R], made)
