"""Describes executions, times and values in words, for a terminal.

All functions are pure: the current time is an argument.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from rhythm.ir.awaiting import KINDS, in_words, joiner, leaves
from rhythm.printable import one_line

printable = one_line  # the text on one line, without characters that a terminal would obey
MAX_WAITS = 3  # things in a group that are named; the others are counted


class Paused(Protocol):
    """Anything that can be paused, with when, by whom and why."""

    @property
    def paused_at(self) -> datetime | None: ...
    @property
    def paused_by(self) -> str: ...
    @property
    def paused_reason(self) -> str: ...


def brief(value: Any, width: int = 60) -> str:
    """Returns a JSON value on one line, cut after `width` characters."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= width else text[: width - 1] + "…"


def laid_out(value: Any) -> str:
    """Returns a JSON value as text: on one line if it is short, else indented on several."""
    short = json.dumps(value, ensure_ascii=False)
    text = short if len(short) <= 80 else json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(map(printable, text.split("\n")))


def call(name: str, inputs: Any) -> str:
    """Returns a task or workflow with its inputs: `charge(order="A17")`."""
    given = (
        ", ".join(f"{printable(key)}={brief(value, 44)}" for key, value in inputs.items())
        if isinstance(inputs, dict)
        else brief(inputs)
    )
    return f"{printable(name)}({given})"


def length(seconds: float) -> str:
    """Returns a length of time in its two largest units: 12ms, 4.2s, 3m20s, 2d4h."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole, parts = int(seconds), list[str]()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count and len(parts) < 2:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return "".join(parts)


def age(at: datetime, now: datetime) -> str:
    """Returns how long ago a time was, in one unit: now, 12s, 5m, 3h, 2d."""
    seconds = int((now - at).total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return "now"


def moment(at: datetime, now: datetime) -> str:
    """Returns a time, and how far away it is: `2026-03-01 12:00:05 UTC, 3m20s ago`."""
    seconds = (at - now).total_seconds()
    far = (
        f"in {length(seconds)}"
        if seconds > 0
        else "now"
        if seconds > -1
        else f"{length(-seconds)} ago"
    )
    return f"{at:%Y-%m-%d %H:%M:%S} UTC, {far}"


def counted(words: Iterable[str]) -> str:
    """Counts equal words, the most frequent first: `2 completed, 1 failed`."""
    return ", ".join(f"{count:,} {word}" for word, count in Counter(words).most_common())


def waits_for(plan: Mapping[str, Any] | None, ended: Container[int] = ()) -> str:
    """Returns what an execution waits for, in words; empty if it waits for nothing.

    `ended` has the numbers of the children that have ended: they are left out.
    """
    if plan is None:
        return ""
    counts = Counter(
        in_words(leaf, printable) for leaf in leaves(dict(plan)) if leaf["n"] not in ended
    )
    shown = [
        f"{count:,} × {leaf}" if count > 1 else leaf
        for leaf, count in counts.most_common(MAX_WAITS)
    ]
    more = [f"{len(counts) - MAX_WAITS:,} more"] if len(counts) > MAX_WAITS else []
    return joiner(dict(plan)).join((*shown, *more))


def tasks_of(plan: Mapping[str, Any] | None) -> list[str]:
    """Returns the names of the tasks that are waited for, sorted."""
    waits = leaves(dict(plan) if plan else None)
    return sorted({str(leaf["name"]) for leaf in waits if KINDS[leaf["op"]].row == "task"})


def paused_since(thing: Paused, now: datetime) -> str:
    """Returns when something was paused, by whom and why: `5m ago by Ada: the bank is down`."""
    ago = age(thing.paused_at or now, now)
    by = f" by {thing.paused_by}" if thing.paused_by else ""
    why = f": {thing.paused_reason}" if thing.paused_reason else ""
    return f"{'now' if ago == 'now' else f'{ago} ago'}{by}{why}"
