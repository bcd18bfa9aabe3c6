"""A short form of each attack: what got through must be nothing."""

from __future__ import annotations

import pytest

from tests.attack import four_eyes, server_load
from tests.attack.places import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_decides_on_what_they_had_a_hand_in_and_everybody_else_may(kind: str) -> None:
    with KINDS[kind]() as fresh:
        asked, through, out = four_eyes.play(fresh(), 7, 40)
    assert (asked, through, out) == (40, [], [])


@pytest.mark.parametrize("kind", KINDS)
def test_who_behaves_is_answered_whatever_others_do(kind: str) -> None:
    """How long it takes is measured by `make attack`, on a machine that does nothing else."""
    with KINDS[kind]() as fresh:
        _, good, did, mb = server_load.play(fresh(), 0.02)
    assert good.ids
    assert good.wrong == {}
    assert did["deaf"]["connections"] > 100
    assert mb < server_load.LARGEST_MB
