"""Python's exceptions as faults of the workflow, and the numbers that JSON cannot hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from rhythm.limits import INT_MAX, INT_MIN
from rhythm.vm.values import Fault

# LookupError and ArithmeticError stand for KeyError, IndexError, ZeroDivisionError, OverflowError.
EXCEPTIONS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
LONGEST_MESSAGE = 500  # a KeyError shows the whole key
BITS_SHOWN = 128


def raising(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with faults in place of Python's exceptions.

    The fault's code is the name of the exception's class, its message the text of the exception.
    """

    @wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except EXCEPTIONS as error:
            raise Fault(type(error).__name__, shortened(str(error))) from None

    return call


def shortened(message: str) -> str:
    """Returns the message, cut if it is very long."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"


def named(value: Any) -> str:
    """Returns a name for a message. Of what is no text only its type is shown.

    Through sharing, a small list can be an enormous tree, which nobody must write out.
    """
    return shortened(value) if type(value) is str else f"<{type(value).__name__}>"


def number(value: Any) -> Any:
    """Returns the result of a computation. Raises a Fault if JSON cannot hold it."""
    kind = type(value)
    if kind is int:
        if not INT_MIN <= value <= INT_MAX:
            raise too_large(value)
    elif kind is float:
        if not math.isfinite(value):
            raise Fault("OverflowError", f"the result is too large for a float: {value}")
        if value == 0.0:
            return 0.0  # a database keeps no sign of zero
    elif kind is complex:
        raise Fault("ValueError", "the result is a complex number, and there are none here")
    return value


def too_large(value: int | str) -> Fault:
    """Returns the fault of an integer over 64 bits; `value` is the integer, or how it is written.

    A very large integer is not written out: Python refuses to, or takes long.
    """
    if not isinstance(value, str):
        bits = value.bit_length()
        value = str(value) if bits <= BITS_SHOWN else f"about 2 ** {bits}"
    return Fault("OverflowError", f"the result does not fit 64 bits: {value}")


def no_key(key: Any) -> Fault:
    """Returns the fault of a key that is not text, where an entry would be made."""
    return Fault(
        "TypeError",
        f"the keys of a dict must be text here, not {type(key).__name__}; write str(key)",
    )


def check_keys(keys: Any) -> None:
    """Raises a Fault if one of the keys is not text."""
    for key in keys:
        if type(key) is not str:
            raise no_key(key)
