"""When schedules are due: laws over real time zones around their changes, against a second meaning
of cron that goes minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rhythm import schedule_times as module
from rhythm.schedule_times import (
    FIRST_US,
    LAST_US,
    US,
    Timing,
    check_timing,
    first_slots,
    latest_slots,
    next_slot,
    slots,
)
from tests.support.length import sampled, sweep

MINUTE = 60 * US
DAYS = 3
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Hours and half hours, at night and at midnight, both hemispheres, in Ramadan, a zone that was
# moved, a day that was left out.
ZONES = [
    "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Beirut",
    "Africa/Casablanca", "America/Havana",
    "Asia/Tehran", "America/Sao_Paulo", "Pacific/Apia", "Atlantic/Azores", "Asia/Pyongyang",
    "Europe/Dublin", "Africa/Cairo", "UTC",
]  # fmt: skip


def us(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return int((datetime(year, month, day, hour, minute, tzinfo=UTC) - EPOCH).total_seconds()) * US


def shown(at: int, tz: str) -> str:
    return f"{(EPOCH + timedelta(microseconds=at)).astimezone(ZoneInfo(tz)):%m-%d %H:%M %z}"


def some(timing: Timing, after: int, count: int) -> list[int]:
    return list(islice(slots(timing, after), count))


@cache
def changes(tz: str) -> list[int]:
    """The moments from 2005 to 2030 at which the clocks of a zone were or will be changed, to the
    minute."""
    zone, found, step = ZoneInfo(tz), [], 1800 * US
    offset = lambda at: (EPOCH + timedelta(microseconds=at)).astimezone(zone).utcoffset()  # noqa: E731 - one line, used here
    days = range(us(2005, 1, 1), us(2030, 1, 1), 86_400 * US)
    for day in (day for day in days if offset(day) != offset(day + 86_400 * US)):
        found += [
            at
            for at in range(day + step, day + 86_400 * US + 1, step)
            if offset(at) != offset(at - step)
        ]
    return found


def numbers(least: int, most: int) -> st.SearchStrategy[str]:
    one = st.integers(least, most).map(str)
    ranges = st.tuples(st.integers(least, most), st.integers(least, most)).map(
        lambda pair: f"{min(pair)}-{max(pair)}"
    )
    steps = st.integers(2, max(2, most // 2)).map(lambda n: f"*/{n}")
    several = st.lists(st.integers(least, most), min_size=2, max_size=3, unique=True).map(
        lambda found: ",".join(map(str, found))
    )
    return st.one_of(st.just("*"), one, several, ranges, steps)


CRONS = st.tuples(
    numbers(0, 59),
    numbers(0, 23),
    st.just("*") | numbers(1, 31),
    st.just("*"),
    st.just("*") | numbers(0, 6),
).map(" ".join)


@st.composite
def near_a_change(draw: st.DrawFn) -> tuple[str, int]:
    tz = draw(st.sampled_from(ZONES))
    at = draw(st.sampled_from(changes(tz) or [us(2026, 1, 1)]))
    return tz, at - draw(st.integers(-120, 2 * 24 * 60)) * MINUTE


@cache
def field(text: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{least}-{most}" if span == "*" else span).partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def matches(cron: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = cron.split()
    days, weekdays = wall.day in field(day, 1, 31), wall.isoweekday() % 7 in field(weekday, 0, 6)
    fits = days and weekdays if day.startswith("*") or weekday.startswith("*") else days or weekdays
    return (
        fits
        and wall.minute in field(minute, 0, 59)
        and wall.hour in field(hour, 0, 23)
        and wall.month in field(month, 1, 12)
    )


def minute_by_minute(cron: str, tz: str, after: int, until: int) -> list[int]:
    """The slots by looking at the clock every minute: a time that it skips counts where it goes on,
    one that it shows again only where the schedule runs in every hour."""
    zone, found, seen, shows = ZoneInfo(tz), set[int](), set[datetime](), None
    everywhere = len(field(cron.split()[1], 0, 23)) == 24
    # what the clock has shown before counts as shown
    begin = after - after % MINUTE - 26 * 60 * MINUTE
    for at in range(begin, until + 1, MINUTE):
        before, shows = (
            shows,
            (EPOCH + timedelta(microseconds=at)).astimezone(zone).replace(tzinfo=None, fold=0),
        )
        skipped = []
        while before is not None and before + timedelta(minutes=1) < shows:
            before += timedelta(minutes=1)
            skipped.append(before)
        for wall in (*skipped, shows):
            if matches(cron, wall) and (everywhere or wall not in seen):
                found.add(at)
        seen |= {*skipped, shows}
    return sorted(at for at in found if at > after)


@given(CRONS, near_a_change())
@settings(max_examples=sampled(30, 100))
@sweep
@example("30 2 * * *", ("Europe/Berlin", us(2026, 3, 28)))
@example("30 2 * * *", ("Europe/Berlin", us(2026, 10, 24)))
@example("30 2 * * *", ("Europe/Berlin", us(2026, 10, 25, 1, 10)))
@example("*/15 * * * *", ("Europe/Berlin", us(2026, 10, 25)))
@example("*/30 5 * * *", ("Australia/Lord_Howe", us(2026, 4, 3)))
@example("0 0 * * *", ("America/Santiago", us(2026, 9, 4)))
@example("0 12 30 * *", ("Pacific/Apia", us(2011, 12, 28)))
def test_slots_are_those_that_somebody_finds_who_looks_at_the_clock_every_minute(
    cron: str, place: tuple[str, int]
) -> None:
    tz, after = place
    until = after + DAYS * 86_400 * US
    expected = minute_by_minute(cron, tz, after, until)
    found = [slot for slot in some(Timing(cron, tz), after, len(expected) + 1) if slot <= until]
    assert [shown(at, tz) for at in found] == [shown(at, tz) for at in expected]


@given(CRONS, near_a_change(), st.integers(0, 3 * 86_400))
@settings(max_examples=sampled(30, 100))
@sweep
def test_the_next_slot_is_the_same_from_anywhere_before_it(
    cron: str, place: tuple[str, int], seconds: int
) -> None:
    """So whoever computes it, whenever, finds the same slot: none is left out, and none comes
    twice."""
    timing, after = Timing(cron, place[0]), place[1]
    slot = next_slot(timing, after)
    assert slot is not None
    assert slot > after
    between = min(after + seconds * US, slot - 1)
    assert next_slot(timing, between) == slot
    following = next_slot(timing, slot)
    assert following is not None
    assert following > slot


@given(st.one_of(CRONS.map(lambda cron: (cron, None)),
    st.integers(1, 4000).map(lambda s: (None, s * US))), near_a_change(),
       st.integers(1, 12), st.integers(0, 4 * 24 * 60))  # fmt: skip
@settings(max_examples=sampled(30, 100))
@sweep
def test_the_latest_slots_are_the_last_of_all(
    given: tuple[str | None, int | None], place: tuple[str, int], count: int, minutes: int
) -> None:
    timing = Timing(given[0], place[0], given[1], anchor_at=place[1] - 7 * US)
    first = next_slot(timing, place[1])
    assert first is not None
    until = first + minutes * MINUTE
    every = [first]
    while (
        (slot := next_slot(timing, every[-1])) is not None and slot <= until and len(every) < 7000
    ):
        every.append(slot)
    if len(every) < 7000:
        assert latest_slots(timing, first, until, count) == every[-count:]


def test_half_past_two_where_clocks_are_put_forward_is_three_and_where_they_are_put_back_is_the_first_of_two() -> (
    None
):
    nightly = Timing("30 2 * * *", "Europe/Berlin")
    spring = [shown(at, nightly.tz) for at in some(nightly, us(2026, 3, 27, 12), 3)]
    autumn = [shown(at, nightly.tz) for at in some(nightly, us(2026, 10, 23, 12), 3)]
    assert spring == ["03-28 02:30 +0100", "03-29 03:00 +0200", "03-30 02:30 +0200"]
    assert autumn == ["10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100"]


def test_what_runs_every_hour_runs_in_the_hour_that_comes_twice_and_once_after_the_one_that_is_left_out() -> (
    None
):
    hourly = Timing("30 * * * *", "Europe/Berlin")
    autumn = [shown(at, hourly.tz) for at in some(hourly, us(2026, 10, 24, 23, 45), 4)]
    spring = [
        shown(at, hourly.tz)
        for at in some(Timing("*/20 * * * *", hourly.tz), us(2026, 3, 29, 0, 40), 3)
    ]
    assert autumn == [
        "10-25 02:30 +0200",
        "10-25 02:30 +0100",
        "10-25 03:30 +0100",
        "10-25 04:30 +0100",
    ]
    assert spring == ["03-29 03:00 +0200", "03-29 03:20 +0200", "03-29 03:40 +0200"]


def test_an_interval_counts_from_its_anchor_and_not_from_when_somebody_looks() -> None:
    timing = Timing(every_us=90 * US, anchor_at=1000 * US)
    assert some(timing, 0, 2) == [1090 * US, 1180 * US]
    assert some(timing, 1090 * US, 1) == some(timing, 1179 * US, 1) == [1180 * US]


def test_one_date_comes_once() -> None:
    assert some(Timing(at=5), 4, 3) == [5]
    assert next_slot(Timing(at=5), 5) is None


@pytest.mark.parametrize("minutes", [10**6, 10**7])
def test_after_years_of_standstill_only_the_last_slots_are_looked_at(minutes: int) -> None:
    timing, first = Timing("* * * * *", "Europe/Berlin"), us(2000, 1, 1)
    until = first + minutes * MINUTE + 5
    assert latest_slots(timing, first, until, 3) == [until - 5 - n * MINUTE for n in (2, 1, 0)]


@pytest.mark.parametrize(
    ("timing", "says"),
    [
        (Timing("* * *"), "a cron expression has five fields"),
        (Timing("0 0 0 * * *"), "a cron expression has five fields"),
        (Timing("61 * * * *"), "no cron expression: Bad minute"),
        (Timing("0 0 30 2 *"), "no cron expression: Bad day"),
        (Timing("0 0 * 2 1#5,x"), "no cron expression"),
        (Timing("0 0 31 4,6 *"), "no cron expression: Bad day"),
        (Timing("LW/2 0 * * *"), "no cron expression"),
        (Timing("0 9 * * *", "Europe/Berln"), "did you mean 'Europe/Berlin'"),
        (Timing("0 9 * * *", "../etc/passwd"), "there is no time zone"),
        (Timing("0 9 * * *", "Europe"), "there is no time zone"),
        (Timing("0 9 * * *", ""), "there is no time zone"),
        (Timing("0 9 * * *", "x" * 100), "there is no time zone"),
        (Timing("0 9 * * *", "x" * 101), "tz has at most 100 characters, not 101"),
        (Timing("0-59," * 40 + "1 9 * * *"), "cron has at most 200 characters, not 209"),
        (Timing(at=LAST_US + 1), "at lies outside of what a calendar can show"),
        (Timing(at=FIRST_US - 1), "at lies outside of what a calendar can show"),
        (Timing("0 9 * * *", "a\0b"), "there is no time zone"),
        (Timing(every_us=1), "a second or longer"),
        (Timing(), "one of cron, every and at"),
        (Timing("0 9 * * *", every_us=US), "one of cron, every and at"),
    ],
)
def test_what_can_never_be_due_is_refused_with_advice(timing: Timing, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_timing(timing)


def test_without_time_zone_data_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import zoneinfo

    monkeypatch.setattr(
        zoneinfo,
        "ZoneInfo",
        lambda name: (_ for _ in ()).throw(zoneinfo.ZoneInfoNotFoundError(name)),
    )
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    with pytest.raises(ValueError, match="install the package tzdata"):
        check_timing(Timing("0 9 * * *", "Europe/Berlin"))


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/Los_Angeles", "Europe/Berlin"])
@pytest.mark.parametrize(
    "timing",
    [
        Timing("*/7 * * * *"),
        Timing("0 0 29 2 *"),
        Timing(every_us=US),
        Timing(every_us=100 * 366 * 86_400 * US),
        Timing(at=LAST_US),
    ],
)
def test_there_is_no_slot_that_no_calendar_shows(timing: Timing, zone: str) -> None:
    timing = timing.replace(tz=zone)
    for after in (LAST_US, LAST_US + US, 2**62, FIRST_US - 1, -(2**62)):
        assert next_slot(timing, after) is None
    last = list(islice(slots(timing, LAST_US - 40 * 60 * US), 5000))
    assert all(LAST_US - 40 * 60 * US < slot <= LAST_US for slot in last)
    for slot in last[-3:]:
        (EPOCH + timedelta(microseconds=slot)).astimezone(ZoneInfo(zone)).isoformat()


def test_a_rare_date_is_not_searched_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    found = module.next_slot

    def counted(timing: Timing, after: int) -> int | None:
        asked.append(after)
        return found(timing, after)

    monkeypatch.setattr(module, "next_slot", counted)
    rare = first_slots(Timing("0 0 * 2 1#5"), us(2026, 1, 1), 1000)  # a fifth Monday in February
    assert [(EPOCH + timedelta(microseconds=slot)).year for slot in rare] == [2044, 2072, 2112]
    assert len(asked) == 4
    assert (
        len(
            first_slots(Timing(every_us=100 * 366 * 86_400 * US, anchor_at=0), us(2026, 1, 1), 1000)
        )
        == 1
    )
    assert len(first_slots(Timing("* * * * *"), us(2026, 1, 1), 1000)) == 1000
