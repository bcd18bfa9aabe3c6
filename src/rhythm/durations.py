"""Durations as people write them: a number of seconds, `"1h30m"`, or ISO 8601 (`"PT15M"`,
`"P1DT12H"`)."""

from __future__ import annotations

import re

from rhythm.limits import TEXTS

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SHORT = r"(?a)(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d|w))+"
_PIECE = r"(?a)([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)"
_ISO = r"(?a)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
# What people write for a unit. Months and years are not among them: they have no fixed length.
_WORDS = {
    "ms": "ms", "msec": "ms", "millis": "ms", "millisecond": "ms", "s": "s", "sec": "s",
    "second": "s", "m": "m", "min": "m", "minute": "m", "h": "h", "hr": "h", "hour": "h", "d": "d",
    "day": "d", "w": "w", "week": "w",
}  # fmt: skip
_NO_UNIT = ("mo", "y")  # how months and years begin
# A hundred years: a longer duration is more likely a typing error than a plan.
LONGEST_S = 100 * 366 * 86400.0

HOW = (
    'write seconds as a number, or text such as "90s", "1h30m", "3d" or "PT15M" (months and '
    "years have no fixed length)"
)


def duration_s(value: object) -> float:
    """Returns the duration in seconds. Raises `ValueError` if it is not a valid duration.

    A duration is not valid if it cannot be read (the message says how to write one), is negative,
    or is longer than a hundred years.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"not a duration; {HOW}")
    try:
        seconds = _parse(value) if isinstance(value, str) else float(value)
    except OverflowError:  # an integer too large for a float
        seconds = float("inf" if isinstance(value, int) and value > 0 else "-inf")
    if seconds is None:
        meant = meant_duration(value)
        near = f'did you mean "{meant}"? Else ' if meant else ""
        raise ValueError(f'"{value:.80}" is not a duration; {near}{HOW}')
    if seconds < 0 or seconds != seconds:
        raise ValueError("a duration cannot be negative")
    if seconds > LONGEST_S:
        raise ValueError("a duration cannot be longer than a hundred years")
    return seconds


def _parse(text: str) -> float | None:
    """Returns the seconds of a duration given as text, or None if the text is not a duration."""
    if len(text) > TEXTS.time:
        return None
    if re.fullmatch(_SHORT, text):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PIECE, text))
    iso = re.fullmatch(_ISO, text)
    if iso and any(iso.groups()) and not text.endswith("T"):
        return sum(
            float(part or 0) * size
            for part, size in zip(iso.groups(), (604800, 86400, 3600, 60, 1), strict=True)
        )
    return None


def meant_duration(value: object) -> str:
    """Returns the duration that was probably meant: "30d" for "30 dayz"; empty if none is."""
    if not isinstance(value, str) or len(value) > TEXTS.time:
        return ""
    found = re.findall(r"(?a)[0-9]+(?:\.[0-9]+)?|[A-Za-z]+|\S", value)
    parts = [part for part in found if part not in (",", "and")]
    numbers, words = parts[::2], parts[1::2]
    units = [_unit(word) for word in words]
    if len(numbers) != len(units) or not all(units):
        return ""
    meant = "".join(number + unit for number, unit in zip(numbers, units, strict=True))
    return meant if _parse(meant) is not None else ""


def _unit(word: str) -> str:
    """Returns the unit that a word probably names; empty if none does."""
    if word == "M" or word.lower().startswith(_NO_UNIT):
        return ""
    from rhythm.suggest import nearest

    word = word.lower()
    known = _WORDS.get(word) or _WORDS.get(word.removesuffix("s"))
    return known or _WORDS.get(nearest(word, _WORDS) or "", "")


def show_duration(seconds: float) -> str:
    """Returns the duration as short text for people: `1h30m`, `2.5s`, `300ms`."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    whole, parts = int(seconds), []
    for unit in ("d", "h", "m"):
        count, whole = divmod(whole, int(_UNITS[unit]))
        if count:
            parts.append(f"{count}{unit}")
    rest = whole + (seconds - int(seconds))
    return "".join(parts) + (f"{rest:g}s" if rest or not parts else "")
