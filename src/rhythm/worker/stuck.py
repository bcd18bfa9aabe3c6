"""Explains why an execution cannot go on, when nothing runs and nothing is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rhythm.engine.payload import load
from rhythm.ids import child_id
from rhythm.ir.awaiting import leaves, rows_of, waits_for_mail
from rhythm.store.interfaces.executions import Execution
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Needed
from rhythm.store.lifecycle import WORKFLOW

ON_COMMAND_LINE = {
    "signal": "pass --signal {name}=JSON",
    "approval": "pass --approve {name} or --reject",
}
MAX_WAITS = 5  # awaits that are named; the rest is counted


def why_stuck(store: Store, execution: Execution, ways: Mapping[str, str] = ON_COMMAND_LINE) -> str:
    """Returns what the execution waits for, or what the child waits for that it awaits.

    `ways`: how a signal is sent here, and an approval decided.
    """
    waits_for = list(leaves(load(execution.awaiting)))
    ended = {
        outcome.n
        for outcome in store.turns.outcomes(
            [Needed(execution.id, [leaf["n"] for leaf in waits_for])], brief=True
        )[execution.id]
    }
    children = {child.id: child for child in store.reading.children(execution.id)}
    events = {wait.n: wait for wait in store.messages.waits(execution.id)}
    waits: list[str] = []
    for leaf in waits_for:
        child = children.get(child_id(execution.id, leaf["n"]))
        if leaf["n"] in ended:
            continue
        if child and child.type == WORKFLOW and child.status != "pending":
            return why_stuck(store, child, ways)
        event = events.get(leaf["n"])
        # A child that is parked has begun (see above); nothing is left in a queue here.
        begun = not (event.held if event else child)
        known = (
            {"op": "event", "name": event.type}
            if event
            else {"op": "task", "name": child.name}
            if child
            else {}
        )
        shown = _shown(execution.id, {**leaf, **known}, ways)
        waits.append(shown if begun else f"{shown}, which has not begun")
    waits = list(dict.fromkeys(waits))
    more = f" and {len(waits) - MAX_WAITS} more" if len(waits) > MAX_WAITS else ""
    return (
        f"`{execution.name}` waits for {', '.join(waits[:MAX_WAITS])}{more}, and nothing can "
        f"bring it here; a timeout would end the wait{_unread(store, execution.id)}"
    )


def _unread(store: Store, id: str) -> str:
    """Returns which signals came that the workflow does not ask for; empty if there are none."""
    names = sorted({mail.name for mail in store.messages.mailed(id)})
    shown = ", ".join(f"`{name}`" for name in names[:MAX_WAITS])
    lie = "lies" if len(names) == 1 else "lie"
    more = f" and {len(names) - MAX_WAITS} more" if len(names) > MAX_WAITS else ""
    return f"; {shown}{more} {lie} in the mailbox unread" if names else ""


def _shown(id: str, leaf: dict[str, Any], ways: Mapping[str, str]) -> str:
    """Returns an await in words, with what would end it."""
    for kind, way in ways.items():
        if waits_for_mail(leaf) if kind == "signal" else kind in rows_of(leaf):
            return f"{kind} `{leaf['name']}` ({way.format(name=leaf['name'])})"
    return (
        f"{leaf['op']} `{leaf['name']}`"
        if leaf.get("name")
        else f"{leaf['op']} {child_id(id, leaf['n'])}"
    )
