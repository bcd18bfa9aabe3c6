"""Which Rhythm is tested: the sources, or, in `make test-compiled`, the compiled modules of a wheel
that is installed."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import pytest

import rhythm

VARIABLE = "RHYTHM_TEST_COMPILED"
COMPILED = VARIABLE in os.environ
# Where it is imported from: the `PYTHONPATH` of processes that tests start elsewhere.
IMPORTED_FROM = Path(rhythm.__file__).parents[1]


def check_compiled() -> None:
    """Ends the run if it would test a source where a compiled module is to be tested."""
    from hatch_build import MODULES

    names = [f"rhythm.{name.replace('/', '.')}" for name in MODULES]
    if sources := [name for name in names if not _is_compiled(name)]:
        pytest.exit(f"not compiled: {', '.join(sources)}; run `make test-compiled`", 4)


def _is_compiled(name: str) -> bool:
    found = find_spec(name)
    return bool(found and found.origin and found.origin.endswith(tuple(EXTENSION_SUFFIXES)))
