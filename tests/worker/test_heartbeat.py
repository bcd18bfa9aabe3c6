"""The heartbeat: who is not heard of loses its work, and knows it before the others take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rhythm.errors import StoreError
from rhythm.store.interfaces.workers import Beat, OwnClaims
from rhythm.worker.heartbeat import Heartbeat, HeartSettings

SETTINGS = HeartSettings(every_s=5.0, dead_after_s=30.0, claim_ttl_s=60.0, margin_s=6.0)
BEAT = Beat("w", "host", 1, ("default",), 10, 0, draining=False, version="")


class Database:
    """Answers to beats, each after a while, or not at all."""

    def __init__(self) -> None:
        self.now, self.takes_s, self.down, self.workers = 0.0, 0.0, False, self
        self.claims: dict[str, int] = {}
        self.locked: set[str] = set()
        self.prolonged: list[Mapping[str, int]] = []

    def clock(self) -> float:
        return self.now

    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        self.now += self.takes_s
        if self.down:
            raise StoreError("down")
        self.prolonged.append(claims)
        return OwnClaims(((id, fence, 0) for id, fence in self.claims.items()), self.locked)


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def heart(database: Database) -> Heartbeat:
    store: Any = database
    return Heartbeat(
        lambda: store, lambda: BEAT, lambda: dict(database.claims), SETTINGS, database.clock
    )


def test_worker_is_trusted_from_before_its_beat_was_sent(
    heart: Heartbeat, database: Database
) -> None:
    database.now, database.takes_s = 100.0, 7.0
    heart.run_once()
    assert heart.until == 100.0 + 30.0 - 6.0
    assert [answer.sent_at for answer in heart.answers() if answer] == [100.0]


def test_worker_lapses_before_others_may_take_it_for_dead(
    heart: Heartbeat, database: Database
) -> None:
    heart.run_once()
    database.now = 23.9
    assert not heart.lapse()
    database.now = 24.0
    assert heart.lapse()


def test_worker_hears_that_it_lapsed_before_it_hears_of_a_later_beat(
    heart: Heartbeat, database: Database
) -> None:
    heart.run_once()
    database.now = 40.0
    assert heart.lapse()
    heart.run_once()
    assert [answer and answer.sent_at for answer in heart.answers()] == [0.0, None, 40.0]


def test_lapse_is_told_once(heart: Heartbeat, database: Database) -> None:
    heart.run_once()
    database.now = 40.0
    assert (heart.lapse(), heart.lapse()) == (True, False)


def test_claims_are_prolonged_when_a_third_of_their_time_has_passed(
    heart: Heartbeat, database: Database
) -> None:
    database.claims = {"a": 1}
    for at in (0.0, 5.0, 19.9, 20.0, 25.0):
        database.now = at
        heart.run_once()
    assert database.prolonged == [{}, {}, {}, {"a": 1}, {}]


def test_prolonging_is_tried_again_when_it_got_no_answer(
    heart: Heartbeat, database: Database
) -> None:
    database.claims, database.now, database.down = {"a": 1}, 20.0, True
    with pytest.raises(StoreError):
        heart.run_once()
    database.now, database.down = 21.0, False
    heart.run_once()
    assert database.prolonged == [{"a": 1}]


def test_what_somebody_had_locked_is_prolonged_by_the_next_beat(
    heart: Heartbeat, database: Database
) -> None:
    database.claims, database.locked = {"a": 1, "b": 2}, {"b"}
    for at in (20.0, 25.0, 30.0):
        database.now = at
        heart.run_once()
        database.locked = set()
    assert database.prolonged == [{"a": 1, "b": 2}, {"a": 1, "b": 2}, {}]
    first, second, _ = [answer for answer in heart.answers() if answer]
    assert (first.prolongs("a"), first.prolongs("b"), second.prolongs("b")) == (True, False, True)


def test_silence_of_others_is_blamed_on_them_only_after_the_database_was_there_for_long(
    heart: Heartbeat, database: Database
) -> None:
    heart.run_once()
    assert not heart.steady()
    for at in range(0, 31, 5):
        database.now = float(at)
        heart.run_once()
    assert heart.steady()
    database.now = 60.0  # nothing got through for half a minute: neither did the beats of others
    heart.lapse()
    heart.run_once()
    assert not heart.steady()


def test_process_that_was_stopped_hears_that_it_lapsed_although_its_next_beat_gets_through(
    heart: Heartbeat, database: Database
) -> None:
    heart.run_once()
    database.now = 40.0
    heart.run_once()
    assert [answer and answer.sent_at for answer in heart.answers()] == [0.0, None, 40.0]


def test_nobody_is_settled_while_a_beat_is_overdue(heart: Heartbeat, database: Database) -> None:
    for at in range(0, 31, 5):
        database.now = float(at)
        heart.run_once()
    assert (heart.settled(), heart.steady()) == (True, True)
    database.now = 46.0
    assert (heart.settled(), heart.steady()) == (False, False)
    heart.run_once()
    assert (heart.settled(), heart.steady()) == (False, False)


def test_gap_that_nobody_noticed_begins_the_wait_anew(heart: Heartbeat, database: Database) -> None:
    """The process was stopped: no lapse was told in between."""
    for at in range(0, 31, 5):
        database.now = float(at)
        heart.run_once()
    database.now = 1000.0
    heart.run_once()
    assert not heart.steady()


@pytest.mark.parametrize(
    ("settings", "between_s"),
    [
        (SETTINGS, 5.0),
        (SETTINGS.replace(claim_ttl_s=3.0), 1.0),
        (SETTINGS.replace(dead_after_s=6.0), 2.0),
    ],
)
def test_beats_come_often_enough_for_what_hangs_on_them(
    settings: HeartSettings, between_s: float
) -> None:
    assert settings.between_s == between_s
