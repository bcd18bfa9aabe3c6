"""The short form of every scenario of `make chaos`: the same faults, a few of each."""

from __future__ import annotations

import pytest

from tests.chaos.__main__ import SCENARIOS, run


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_wrong_or_done_twice(name: str) -> None:
    wrong = [
        figure.line() for figure in run(f"tests.chaos.{name}", seed=1, scale=0.0) if not figure.good
    ]
    assert not wrong
