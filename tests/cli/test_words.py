"""Ages, lengths, waits and tables, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rhythm.cli.output.table import columns, cut
from rhythm.cli.output.words import age, brief, call, length, moment, waits_for

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0ms"),
        (0.0124, "12ms"),
        (1, "1.0s"),
        (4.25, "4.2s"),
        (60, "1m"),
        (200, "3m20s"),
        (3600, "1h"),
        (3601, "1h"),
        (187_200, "2d4h"),
        (86_460, "1d"),
    ],
)
def test_length_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert length(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "now"), (0, "now"), (59, "59s"), (60, "1m"), (7199, "1h"), (200_000, "2d")],
)
def test_age_has_one_unit(seconds: float, text: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


def test_moment_says_how_far_it_is() -> None:
    assert moment(NOW, NOW) == "2026-03-01 12:00:00 UTC, now"
    assert moment(NOW - timedelta(seconds=200), NOW) == "2026-03-01 11:56:40 UTC, 3m20s ago"
    assert moment(NOW + timedelta(hours=1), NOW) == "2026-03-01 13:00:00 UTC, in 1h"


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (None, ""),
        ({"op": "task", "n": 1, "name": "charge"}, "task charge"),
        ({"op": "workflow", "n": 1, "name": "sub"}, "workflow sub"),
        ({"op": "signal", "n": 1, "name": "go", "timeout": 5}, "signal go"),
        ({"op": "event", "n": 1, "name": "paid"}, "event paid"),
        ({"op": "approval", "n": 1, "name": "boss"}, "an approval by boss"),
        ({"op": "sleep", "n": 1}, "a timer"),
        ({"op": "branch", "n": 1}, "a branch"),
        ({"op": "child", "n": 7}, "execution 7"),
        ({"op": "all", "n": 1, "first": 2, "count": 1000, "of": {"op": "task", "name": "t"}},
            "1,000 × task t"),
        ({"op": "race", "n": 1, "items": [{"op": "sleep", "n": 2}, {"op": "signal", "n": 3,
            "name": "go"}]}, "a timer or signal go"),
        ({"op": "all", "n": 1, "items": [{"op": "settled", "n": 2}, {"op": "sleep", "n": 3}]},
            "a timer"),
        ({"op": "any", "n": 1, "items": [{"op": "event", "n": n, "name": n} for n in "abcde"]},
            "event a or event b or event c or 2 more"),
        ({"op": "signal", "n": 1, "name": "a\x1bb"}, "signal a\N{REPLACEMENT CHARACTER}b"),
    ],
)  # fmt: skip
def test_what_is_waited_for_in_words(plan: dict[str, Any] | None, text: str) -> None:
    assert waits_for(plan) == text


def test_what_has_ended_is_not_waited_for() -> None:
    plan = {"op": "all", "n": 1, "first": 2, "count": 3, "of": {"op": "task", "name": "t"}}
    assert waits_for(plan, {2, 4}) == "task t"


def test_values_are_cut_to_a_line() -> None:
    assert brief({"a": "x" * 100}, 20) == '{"a": "' + "x" * 12 + "…"
    assert call("charge", {"order": "A\n17", "n": 2}) == 'charge(order="A\\n17", n=2)'
    assert call("charge", [1]) == "charge([1])"


@pytest.mark.parametrize(
    ("text", "cut_text"),
    [
        ("short", "short"),
        ("a longer text", "a long…"),
        ("日本語です", "日本語…"),
        ("x́" * 9, "x́" * 6 + "…"),
    ],
)
def test_cell_is_cut_to_its_columns(text: str, cut_text: str) -> None:
    assert cut(text, 7) == cut_text
    assert columns(cut(text, 7)) <= 7


def test_cutting_a_very_long_text_takes_no_time_worth_mentioning() -> None:
    assert cut("é" * 1_000_000, 10) == "é" * 9 + "…"
