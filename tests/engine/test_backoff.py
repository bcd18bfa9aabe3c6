"""Backoff: exponential, with full jitter and a ceiling."""

from __future__ import annotations

import pytest

from rhythm.engine.backoff import Backoff, backoff_of


def test_wait_doubles_with_each_failure_up_to_the_ceiling() -> None:
    backoff = Backoff(initial_s=2, factor=2, max_s=60, jitter=False)
    assert [backoff.delay_s(failures, 0.5) for failures in (1, 2, 3, 5, 6, 10_000)] == [
        2,
        4,
        8,
        32,
        60,
        60,
    ]


def test_first_delay_beyond_the_ceiling_is_kept_unless_a_ceiling_is_given() -> None:
    hour = backoff_of({}, 3600.0)
    assert [hour.delay_s(failures, 0.5) for failures in (1, 2, 9)] == [3600, 3600, 3600]
    assert Backoff(200, jitter=False).delay_s(2, 0.5) == 300
    assert Backoff(3600, max_s=60, jitter=False).delay_s(1, 0.5) == 60


def test_full_jitter_draws_from_nothing_to_all_of_it() -> None:
    assert [Backoff(initial_s=4).delay_s(2, chance) for chance in (0.0, 0.5, 1.0)] == [0, 4, 8]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Backoff(7.0, jitter=False)),
        ({"backoff": {"initial_s": 3.0}}, Backoff(3.0, jitter=False)),
        ({"backoff": {"initial_s": 3.0, "max_s": 9.0}}, Backoff(3.0, max_s=9.0)),
        ({"backoff": {"factor": 1.0}}, Backoff(factor=1.0)),
    ],
)
def test_options_of_a_call_win_over_the_task(options: dict[str, object], expected: Backoff) -> None:
    assert backoff_of(options, 7.0) == expected


def test_without_any_wish_the_default_has_jitter() -> None:
    assert backoff_of({}, None) == Backoff(1.0, jitter=True)
