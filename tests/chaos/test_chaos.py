"""The short form of every scenario of `make chaos`: the same faults, a few of each."""

from __future__ import annotations

import pytest

from tests.chaos.__main__ import SCENARIOS, run
from tests.support.length import long

# one for connections and one for people; workers and servers that die have tests of their own, and
# those here are in `make test-long`
SHORT = ("cut", "people")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in SHORT else long) for each in SCENARIOS]
)
def test_nothing_is_lost_wrong_or_done_twice(name: str) -> None:
    wrong = [
        figure.line() for figure in run(f"tests.chaos.{name}", seed=1, scale=0.0) if not figure.good
    ]
    assert not wrong
