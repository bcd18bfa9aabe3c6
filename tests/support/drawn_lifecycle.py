"""Draws docs/internals/lifecycle.md from the table of statuses and transitions: `python -m
tests.support.drawn_lifecycle`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from rhythm.store.lifecycle import CHANGES, LIVE, OF_TURN, STATUS_NAMES, STATUSES, Change, Type

DOCUMENT = Path(__file__).parents[2] / "docs" / "internals" / "lifecycle.md"
TEXT = """# The life of an execution

<!-- Drawn from the table in src/rhythm/store/lifecycle.py by `make modules`. -->

A status is what the last committed transition made of an execution. Whether it is being run, was asked to
end, or was paused by somebody is stored beside it: people see that as `running` and `paused`
([the statuses that people see](../python.md)).

{statuses}

## Workflows

{workflow}

## Tasks

{task}
"""


def document() -> str:
    return TEXT.format(
        statuses="\n".join(_statuses()), **{of: "\n".join(_section(of)) for of in get_args(Type)}
    )


def _statuses() -> Iterator[str]:
    yield "| stored as | status | an execution with it | is an end | children that were not awaited go on |"
    yield "| --- | --- | --- | --- | --- |"
    for each in STATUSES:
        orderly = "yes" if each.orderly else "no" if each.terminal else ""
        yield (
            f"| {each.number} | `{each.name}` | {each.says} | "
            f"{'yes' if each.terminal else 'no'} | {orderly} |"
        )


def _section(of: Type) -> Iterator[str]:
    changes = [change for change in CHANGES if change.of == of]
    yield "```mermaid"
    yield "stateDiagram-v2"
    used = {step.after for change in changes for step in change.transitions()}
    live = [STATUS_NAMES[status] for status in LIVE if status in used]
    if len(live) > 1:
        yield "\n    ".join(["  state live {", *live]) + "\n  }"
    arrows: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        for arrow in _arrows(change, tuple(status for status in LIVE if status in used)):
            ways = arrows.setdefault(arrow, [])
            ways += [change.by] if change.by not in ways else []
    for (before, after), ways in sorted(arrows.items(), key=lambda arrow: arrow[0][0] != "[*]"):
        yield f"  {before} --> {after}: {', '.join(ways)}"
    yield "```"
    yield ""
    yield "| by | from | to | it | in the history |"
    yield "| --- | --- | --- | --- | --- |"
    for change in changes:
        cause = (
            ""
            if change.cause is None
            else "the cause of the turn"
            if change.cause == OF_TURN
            else f"`{change.cause}`"
        )
        yield (
            f"| {change.by} | {_named(change.before)} | {_named(change.after) or 'the same'} "
            f"| {change.says} | {cause} |"
        )


def _arrows(change: Change, live: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """What stays as it is only in the table: but for a task that is tried again, it would be one
    knot."""
    if not change.after and change.by != "attempt":
        return
    every = len(live) > 1 and change.before == live
    for step in change.transitions():
        before = "[*]" if step.before is None else "live" if every else STATUS_NAMES[step.before]
        yield before, STATUS_NAMES[step.after]


def _named(statuses: tuple[int, ...]) -> str:
    return ", ".join(f"`{STATUS_NAMES[status]}`" for status in statuses)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
