"""A short form of each attack: what got through must be nothing. Control characters and slow
clients are tests of their own parts already; how long others wait is measured on a quiet machine
(`make attack`)."""

from __future__ import annotations

import pytest

from tests.attack import audit, bombs, four_eyes
from tests.attack.places import KINDS
from tests.support.length import sampled, sweep
from tests.support.postgres import GIVEN


@pytest.fixture(autouse=True)
def one_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """All attacks of this process meet the same server."""
    if kind == "postgres":
        monkeypatch.setenv(GIVEN, request.getfixturevalue("database_url"))


@pytest.mark.parametrize("kind", KINDS)
@sweep
def test_nobody_decides_on_what_they_had_a_hand_in_and_everybody_else_may(kind: str) -> None:
    with KINDS[kind]() as fresh:
        silent, through, out = four_eyes.play(fresh(), 7, sampled(4, 40))
    assert (silent, through, out) == ([], [], [])


@pytest.mark.parametrize("forgery", audit.FORGED, ids=[each.__name__ for each in audit.FORGED])
@pytest.mark.parametrize("kind", KINDS)
def test_a_forgery_is_refused_or_told(kind: str, forgery: audit.Forgery) -> None:
    with KINDS[kind]() as fresh:
        assert audit.unnoticed(fresh(), forgery, 7) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_what_asks_for_too_much_is_refused(kind: str) -> None:
    with KINDS[kind]() as fresh:
        assert bombs.taken(fresh()) == []


@pytest.mark.parametrize("kind", KINDS)
@sweep
def test_a_cancel_reaches_every_loop(kind: str) -> None:
    with KINDS[kind]() as fresh:
        assert bombs.looped(fresh(), *sampled((["int"], 1), (bombs.LOOPS, 10)))[1] == []
