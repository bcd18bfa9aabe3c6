"""The builtins `py.*` by name. `ir.operations.PYTHON` says how each is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rhythm.vm.python.arithmetic import ARITHMETIC
from rhythm.vm.python.caught import CAUGHT
from rhythm.vm.python.changes import CHANGES
from rhythm.vm.python.comparing import COMPARISONS
from rhythm.vm.python.containers import CONTAINERS
from rhythm.vm.python.conversions import CONVERSIONS
from rhythm.vm.python.methods import METHODS
from rhythm.vm.python.numbers import NUMBERS
from rhythm.vm.python.raised import raising
from rhythm.vm.python.random_values import RANDOM_VALUES
from rhythm.vm.python.text import TEXTS
from rhythm.vm.python.walking import WALKS

PYTHON_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"py.{name}": raising(function)
    for name, function in {
        **ARITHMETIC, **COMPARISONS, **CONTAINERS, **WALKS, **TEXTS, **CONVERSIONS, **METHODS,
        **CHANGES, **NUMBERS, **RANDOM_VALUES, **CAUGHT,
    }.items()
}  # fmt: skip
