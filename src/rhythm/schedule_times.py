"""When a schedule is due: the moments (slots) of a cron expression in a time zone, of an interval,
or of one date.

Pure: the time is an argument. Slots are microseconds since 1970. The next slot follows from the one
before, never from the time at which somebody asks. `cronsim` finds the times on a wall clock; what
they mean where clocks are put forward or back is decided here:

- A time that the clock skips becomes the first moment after the gap; several in one gap are one
  slot.
- A time that the clock shows twice is the first of the two, unless the schedule runs in every hour:
  then it runs in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from rhythm.limits import TEXTS
from rhythm.record import Record

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

US = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The first and last slot keep two days' distance from the ends of the calendar, so that no time
# zone shows a year that a datetime cannot hold.
FIRST_US = (datetime(1, 1, 3, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LAST_US = (datetime(9999, 12, 29, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LEAST_EVERY_US = US  # the shortest interval: a schedule must not become a busy loop
FIELDS = "minute hour day month weekday"
# what a slot may do while an earlier execution of the schedule still runs
OVERLAPS = ("skip", "queue", "allow", "cancel_other")
MOST_CAUGHT_UP = 1000
AHEAD_US = 100 * 366 * 86_400 * US  # how far ahead slots are listed for people


class Timing(Record):
    """When a schedule is due: one of `cron`, `every_us` and `at` is set.

    `cron` is in the time zone `tz`; `every_us` is counted from `anchor_at`.
    """

    cron: str | None = None
    tz: str = "UTC"
    every_us: int | None = None
    anchor_at: int = 0
    at: int | None = None


def next_slot(timing: Timing, after: int) -> int | None:
    """Returns the first slot after this moment, or None if there are no more.

    Raises `ValueError` if the cron expression or the time zone cannot be read.
    """
    if not FIRST_US <= after < LAST_US:
        return None
    slot = _next_slot(timing, after)
    return slot if slot is not None and slot <= LAST_US else None


def _next_slot(timing: Timing, after: int) -> int | None:
    if timing.cron is not None:
        try:
            return _next_cron(timing.cron, timing.tz, after)
        except OverflowError:  # the search went beyond the last year
            return None
    if timing.every_us is not None:
        passed = max(after - timing.anchor_at, 0) // timing.every_us
        return timing.anchor_at + (passed + 1) * timing.every_us
    return timing.at if timing.at is not None and timing.at > after else None


def slots(timing: Timing, after: int) -> Iterator[int]:
    """Yields all slots after this moment, in order."""
    slot = next_slot(timing, after)
    while slot is not None:
        yield slot
        slot = next_slot(timing, slot)


def first_slots(timing: Timing, after: int, count: int, within_us: int = AHEAD_US) -> list[int]:
    """Returns the first slots after this moment: at most `count`, none beyond `within_us` from it.

    The second limit ends the search for a date that is very rare.
    """
    return list(
        islice(takewhile(lambda slot: slot <= after + within_us, slots(timing, after)), count)
    )


def latest_slots(timing: Timing, first: int, until: int, count: int) -> list[int]:
    """Returns the last slots from `first` to `until`, at most `count`.

    `first` must be a slot itself. It looks at few slots, however many there were.
    """
    if timing.every_us is not None:
        last = until - (until - first) % timing.every_us
        return list(
            range(max(first, last - (count - 1) * timing.every_us), until + 1, timing.every_us)
        )
    back = 60 * US * count
    while True:
        after = max(until - back, first - 1)
        found = list(takewhile(lambda slot: slot <= until, slots(timing, after)))
        if len(found) >= count or after < first:
            return found[-count:]
        back *= 2


def check_overlap(overlap: object) -> None:
    """Raises `ValueError` if this is not one of the policies in `OVERLAPS`."""
    if overlap not in OVERLAPS:
        raise ValueError(f"overlap is one of {', '.join(OVERLAPS)}, not {overlap!r:.80}")


def catch_up_number(given: object) -> int:
    """Returns how many missed slots are made up for: `skip` is 0, `one` is 1, a number is itself.

    Raises `ValueError` for anything else.
    """
    if given in ("skip", "one"):
        return int(given == "one")
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_CAUGHT_UP:
        return given
    raise ValueError(
        f"catch_up is skip, one or a whole number from 1 to {MOST_CAUGHT_UP}, not {given!r:.80}"
    )


def check_timing(timing: Timing) -> None:
    """Raises `ValueError` for a timing that can never be due.

    The message says what to write instead.
    """
    given = [timing.cron is not None, timing.every_us is not None, timing.at is not None]
    if sum(given) != 1:
        raise ValueError("give a schedule exactly one of cron, every and at")
    if not isinstance(timing.cron, str | None):
        raise ValueError(f"cron is a text, not {timing.cron!r:.80}")
    if timing.every_us is not None and timing.every_us < LEAST_EVERY_US:
        raise ValueError("every must be a second or longer")
    if timing.at is not None and not FIRST_US <= timing.at <= LAST_US:
        raise ValueError(
            "at lies outside of what a calendar can show: write a time before the end of "
            "the year 9999"
        )
    zone(timing.tz)
    if timing.cron is not None and next_slot(timing, 0) is None:
        raise ValueError(f"the cron expression {timing.cron!r} never comes: there is no such date")


def zone(name: str) -> ZoneInfo:
    """Returns the time zone with this name.

    Raises `ValueError` if this machine does not know it.
    """
    from zoneinfo import ZoneInfo

    if not isinstance(name, str):
        raise ValueError(f"tz is a text such as 'Europe/Berlin', not {name!r:.80}")
    if len(name) > TEXTS.time_zone:
        raise ValueError(f"tz has at most {TEXTS.time_zone} characters, not {len(name):,}")
    try:
        return ZoneInfo(name)
    # KeyError: there is no such zone. The others: the name is a path, a folder or too long.
    except (ValueError, OSError, KeyError) as problem:
        raise ValueError(_no_zone(name)) from problem


def _no_zone(name: str) -> str:
    from zoneinfo import available_timezones

    from rhythm.suggest import nearest

    known = available_timezones()
    if not known:
        return (
            f"this machine has no time zone data, so {name!r:.80} is not known: install the "
            f"package tzdata"
        )
    near = nearest(name, sorted(known))
    return f"there is no time zone {name!r:.80}; " + (
        f"did you mean {near!r}?" if near else "names are such as 'Europe/Berlin' or 'UTC'"
    )


def _next_cron(cron: str, tz: str, after: int) -> int | None:
    # An earlier version may have stored a longer one.
    if len(cron) > TEXTS.cron:
        raise ValueError(f"cron has at most {TEXTS.cron} characters, not {len(cron):,}")
    where, every_hour = zone(tz), _every_hour(cron)
    earliest = _earliest_wall(where, after) if every_hour else _wall(where, after)
    best: int | None = None
    for wall in _walls(cron, earliest):
        first, second = _instants(where, wall)
        if best is not None and first >= best:
            break
        later = [at for at in ((first, second) if every_hour else (first,)) if at > after]
        best = min([*later, *([best] if best is not None else [])], default=None)
        if best is not None and not every_hour:
            break
    return best


def _walls(cron: str, after: datetime) -> Iterator[datetime]:
    """Yields the wall-clock times of the expression, on a clock that is never changed."""
    from cronsim import CronSim

    return iter(CronSim(cron, after))


@lru_cache(256)
def _every_hour(cron: str) -> bool:
    """Tells whether the expression runs in every hour of its days.

    Raises `ValueError` if it is not valid.
    """
    from cronsim import CronSim, CronSimError

    if len(cron.split()) != 5:
        raise ValueError(
            f"a cron expression has five fields: {FIELDS}, such as '0 9 * * 1-5'; not {cron!r:.80}"
        )
    try:
        return len(CronSim(cron, EPOCH).hours) == 24
    except (CronSimError, AssertionError, ValueError, RecursionError) as problem:
        raise ValueError(
            f"{cron!r:.80} is no cron expression: {problem or 'it cannot be read'}; "
            f"write minute, hour, day, month and weekday, such as '30 2 * * *'"
        ) from problem


def _earliest_wall(where: ZoneInfo, after: int) -> datetime:
    """Returns a lower bound of what the clock shows after this moment, even if it is put back."""
    now = _wall(where, after)
    return min(now, now + (_offset(where, after + 86_400 * US) - _offset(where, after)))


def _instants(where: ZoneInfo, wall: datetime) -> tuple[int, int]:
    """Returns the first and the last moment at which the clock shows this time.

    For a time that the clock skips, both are the first moment after the gap.
    """
    first, second = (us_of(wall.replace(tzinfo=where, fold=fold)) for fold in (0, 1))
    if first <= second:
        return first, second
    return (end := _change(where, second, first)), end


def _change(where: ZoneInfo, before: int, after: int) -> int:
    """Returns the moment between these two at which the clock was changed, to the second."""
    offset, low, high = _offset(where, after), before // US, after // US
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(where, middle * US) == offset else (middle, high)
    return high * US


def _offset(where: ZoneInfo, at: int) -> timedelta:
    """Returns the time zone's offset from UTC at this moment."""
    return (EPOCH + timedelta(microseconds=at)).astimezone(where).utcoffset() or timedelta()


def _wall(where: ZoneInfo, at: int) -> datetime:
    """Returns what the clock of the time zone shows at this moment."""
    return (EPOCH + timedelta(microseconds=at)).astimezone(where).replace(tzinfo=None, fold=0)


def us_of(at: datetime) -> int:
    """Returns a moment in microseconds since 1970.

    It also works if the moment lies in another year in UTC, outside of what a datetime can hold.
    """
    return (at - EPOCH) // timedelta(microseconds=1)
