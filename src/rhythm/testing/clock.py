"""The clock of a test: it stands still until somebody moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND_US = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SimulatedClock:
    """A clock that stands still, and never goes back."""

    def __init__(self, start: datetime | None = None) -> None:
        """`start`: what it shows first; else the real time, in whole seconds.

        Raises `ValueError` for a time without a time zone, and `TypeError` for what is no time.
        """
        start = datetime.now(UTC).replace(microsecond=0) if start is None else start
        if not isinstance(start, datetime):
            raise TypeError(
                f"start is a time, such as datetime(2026, 1, 1, tzinfo=UTC), not {start!r:.80}"
            )
        if start.tzinfo is None:
            raise ValueError(
                f"the time {start.isoformat()} has no time zone: write datetime(…, tzinfo=UTC)"
            )
        self._us = (start - EPOCH) // timedelta(microseconds=1)

    def us(self) -> int:
        """Returns the time in microseconds since 1970."""
        return self._us

    def seconds(self) -> float:
        """Returns the time in seconds since 1970."""
        return self._us / SECOND_US

    def now(self) -> datetime:
        """Returns the time, in UTC."""
        return EPOCH + timedelta(microseconds=self._us)

    def move_to(self, us: int) -> None:
        """Moves the clock forward to a time; one that has passed changes nothing."""
        self._us = max(self._us, us)
