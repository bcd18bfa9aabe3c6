"""What the audit tells of events that are published and signals that are sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rhythm.store.access import Act, act
from rhythm.store.base import NewEvent, NewSignal

MOST_ACTS = 100  # rows for one turn


def sending_acts(published: Iterable[NewEvent], sent: Iterable[NewSignal]) -> list[Act]:
    """Audit rows for what was published and sent: one for each type of event, and for each receiver and name of a signal.

    The audit is kept for ever, so a workflow that publishes in a loop must not fill it: a row says how many it
    stands for (`count`, and the id of the `last`). The last of too many rows says how many are missing (`more`).
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for event in published:
        groups.setdefault(("event.publish", event.type), []).append(event.id)
    for signal in sent:
        groups.setdefault(("execution.signal", signal.execution_id, signal.name), []).append(signal.id)
    kept = list(groups.items())[:MOST_ACTS]
    more = sum(map(len, groups.values())) - sum(len(ids) for _, ids in kept)
    return [_act(group, ids, more if group is kept[-1][0] else 0) for group, ids in kept]


def _act(group: tuple[str, ...], ids: list[str], more: int) -> Act:
    counted: dict[str, Any] = {"count": len(ids), "last": ids[-1]} if len(ids) > 1 else {}
    counted |= {"more": more} if more else {}
    if group[0] == "event.publish":
        return act(group[0], ids[0], type=group[1], **counted)
    return act(group[0], group[1], signal=group[2], id=ids[0], **counted)
