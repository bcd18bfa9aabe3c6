"""Whether a decorated function is one that was decorated before, defined anew.

A notebook's cell that runs again, `importlib.reload` and reloaders define a function anew: the new
one takes the place of the old one. Another function of the same name is a mistake.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


def place_of(function: Callable[..., Any]) -> str:
    """Returns the file and line where a function is defined."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def is_defined_anew(before: Callable[..., Any], after: Callable[..., Any]) -> bool:
    """Returns whether `after` takes the place of `before`. Call it while `after` is decorated.

    It does if it has the same name, in the same file or in a module of the same name. Each run of
    a cell is a file of its own, in the module `__main__`. Two functions of one name in the code
    that runs just now are a mistake: the second one hides the first.
    """
    if place_of(before) == place_of(after):
        return True
    before, after = inspect.unwrap(before), inspect.unwrap(after)
    if not isinstance(before, FunctionType) or not isinstance(after, FunctionType):
        return False
    same_home = (
        before.__module__ == after.__module__
        or before.__code__.co_filename == after.__code__.co_filename
    )
    return (
        same_home
        and before.__qualname__ == after.__qualname__
        and not _is_defined_beside(before.__code__, after)
    )


def _is_defined_beside(code: CodeType, after: FunctionType) -> bool:
    """Whether the code that defines `after` just now is also the code that defined the other."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals is not after.__globals__:
        frame = frame.f_back  # type: ignore[assignment]  # the first frame has none before it
    return frame is not None and any(code is each for each in frame.f_code.co_consts)
