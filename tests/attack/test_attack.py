"""A short form of each attack: what got through must be nothing."""

from __future__ import annotations

import pytest

from tests.attack import four_eyes
from tests.attack.places import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_decides_on_what_they_had_a_hand_in_and_everybody_else_may(kind: str) -> None:
    with KINDS[kind]() as fresh:
        asked, through, out = four_eyes.play(fresh(), 7, 40)
    assert (asked, through, out) == (40, [], [])
