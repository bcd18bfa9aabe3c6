"""How much of a sweep is run: `make test` takes samples of it, `make test-long` all of it."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

LONG = "RHYTHM_TEST_LONG" in os.environ
T = TypeVar("T")

sweep = pytest.mark.sweep  # a test that takes samples: `make test-long` runs it again, with more
long = pytest.mark.long  # a test of `make test-long` alone


def sampled(short: T, whole: T) -> T:
    """The first in `make test`, the second in `make test-long`."""
    return whole if LONG else short
