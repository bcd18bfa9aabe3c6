"""Durations: how they are written, refused and shown."""

from __future__ import annotations

import pytest

from rhythm.durations import duration_s, meant_duration, show_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (0, 0), (90, 90), (0.25, 0.25), ("90s", 90), ("300ms", 0.3), ("1h30m", 5400),
        ("1.5h", 5400), ("3d", 259200), ("2w", 1209600),
        ("PT15M", 900), ("P1DT12H", 129600), ("PT0.5S", 0.5), ("P2W", 1209600),
    ],
)  # fmt: skip
def test_duration_can_be_written(written: object, seconds: float) -> None:
    assert duration_s(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "90",
        "s",
        "1 h",
        "-5s",
        "1y",
        "P1Y",
        "P1M",
        "PT",
        "P",
        "P1DT",
        "1h30",
        "٣s",
        "1" * 200 + "s",
        True,
        None,
        [],
        {},
    ],
)
def test_what_is_no_duration_is_refused_with_how_to_write_one(written: object) -> None:
    with pytest.raises(ValueError, match='write seconds as a number, or text such as "90s"'):
        duration_s(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("30 dayz", "30d"), ("5 minutes", "5m"), ("1 h", "1h"), ("2 Hours, 30 mins", "2h30m"),
        ("1 day and 2 hrs", "1d2h"), ("1.5 weeks", "1.5w"), ("10 secnds", "10s"),
        ("500 millis", "500ms"), ("3D", "3d"),
        ("soon", ""), ("1y", ""), ("3 months", ""), ("3 mo", ""), ("10M", ""), ("90", ""),
        ("h 1", ""), ("20 bananas", ""), ("-5s", ""), (90, ""), ("1" * 200 + " s", ""),
    ],
)  # fmt: skip
def test_a_duration_that_was_meant_is_suggested(written: object, meant: str) -> None:
    assert meant_duration(written) == meant
    if meant:
        with pytest.raises(ValueError, match=f'did you mean "{meant}"\\? Else write seconds'):
            duration_s(written)


@pytest.mark.parametrize("written", [-1, float("nan"), -0.001])
def test_negative_durations_are_refused(written: float) -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        duration_s(written)


@pytest.mark.parametrize("written", ["99999w", 1e300, float("inf"), "P9999999D"])
def test_a_hundred_years_are_the_limit(written: object) -> None:
    with pytest.raises(ValueError, match="hundred years"):
        duration_s(written)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0ms"), (0.3, "300ms"), (2.5, "2.5s"), (60, "1m"), (5400, "1h30m"), (90061, "1d1h1m1s")],
)
def test_durations_are_shown_as_they_are_written(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown
    assert duration_s(shown) == pytest.approx(seconds)
