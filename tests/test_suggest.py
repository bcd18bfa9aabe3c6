"""Which name is suggested for one that nobody has, and when none is."""

from __future__ import annotations

import pytest

from rhythm.cli.command import HABITS
from rhythm.cli.main import COMMANDS
from rhythm.settings import SETTINGS
from rhythm.suggest import nearest

GOOD = {
    "strat": "start", "sart": "start", "strt": "start", "restart": "start",
    "lst": "list", "lsit": "list", "shwo": "show", "chek": "check", "serve": "server",
    "results": "result", "que": "queue", "tokens": "token", "retr": "retry", "cancle": "cancel",
    "wokrflow": "workflows", "scheudle": "schedules", "migrations": "migrate",
    "termnate": "terminate", "Aprove": "approve", "show-all": "show",
}  # fmt: skip
BAD = (
    "prune status dashboard demo ui up rm ps delete kill describe inspect upgrade tail "
    "halt prompt purge runs-on setup x"
).split()
SETTINGS_MEANT = {
    "que": "queues", "database": "database_url", "poll_interval": "worker_poll_interval",
    "heartbeat": "heartbeat_interval", "concurency": "concurrency", "ClaimTTL": "claim_ttl",
}  # fmt: skip


@pytest.mark.parametrize("word", GOOD)
def test_command_that_was_meant_is_suggested(word: str) -> None:
    assert nearest(word, COMMANDS) == GOOD[word]


def test_a_habit_comes_before_what_is_similar() -> None:
    for word, meant in HABITS.items():
        assert meant in COMMANDS
        assert nearest(word, COMMANDS) not in (meant, None), "this needs no habit"


@pytest.mark.parametrize("word", BAD)
def test_command_that_nobody_can_have_meant_is_not_suggested(word: str) -> None:
    assert nearest(word, COMMANDS) is None


@pytest.mark.parametrize("word", SETTINGS_MEANT)
def test_setting_that_was_meant_is_suggested(word: str) -> None:
    assert nearest(word, SETTINGS) == SETTINGS_MEANT[word]


def test_second_best_is_suggested_where_the_best_cannot_be_meant() -> None:
    assert nearest("prune", ["run", "prunes_all"]) == "prunes_all"
