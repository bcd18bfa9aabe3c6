"""What the audit tells of what people, turns and services do to executions and approvals. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rhythm.store.access import Act, act
from rhythm.store.approvals import (
    AfterPause,
    StoredApproval,
    StoredDecision,
    Verdict,
    detail,
    pause_cancels,
)
from rhythm.store.interfaces.definitions import Definition, Listed
from rhythm.store.interfaces.messages import NewEvent, NewSignal

MOST_ACTS = 100  # rows for one turn


def sending_acts(published: Iterable[NewEvent], sent: Iterable[NewSignal]) -> list[Act]:
    """Audit rows for what was published and sent: one for each type of event, and for each receiver
    and name of a signal.

    The audit is kept for ever, so a workflow that publishes in a loop must not fill it: a row says
    how many it stands for (`count`, and the id of the `last`). The last of too many rows says how
    many are missing (`more`).
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for event in published:
        groups.setdefault(("event.publish", event.type), []).append(event.id)
    for signal in sent:
        groups.setdefault(("execution.signal", signal.execution_id, signal.name), []).append(
            signal.id
        )
    kept = list(groups.items())[:MOST_ACTS]
    more = sum(map(len, groups.values())) - sum(len(ids) for _, ids in kept)
    return [_act(group, ids, more if group is kept[-1][0] else 0) for group, ids in kept]


def _act(group: tuple[str, ...], ids: list[str], more: int) -> Act:
    counted: dict[str, Any] = {"count": len(ids), "last": ids[-1]} if len(ids) > 1 else {}
    counted |= {"more": more} if more else {}
    if group[0] == "event.publish":
        return act(group[0], ids[0], type=group[1], **counted)
    return act(group[0], group[1], signal=group[2], id=ids[0], **counted)


# executions: of those of whom it has changed something


def cancel_acts(ids: Iterable[str]) -> list[Act]:
    return [Act("execution.cancel", id) for id in ids]


def replaced_acts(ids: Iterable[str]) -> list[Act]:
    """A start has taken the keys of these, and asked them to end."""
    return [act("execution.cancel", id, reason="it was replaced") for id in ids]


def terminate_acts(ids: Iterable[str]) -> list[Act]:
    return [Act("execution.terminate", id) for id in ids]


def retry_acts(id: str, retry: str) -> list[Act]:
    return [act("execution.retry", id, retry=retry)]


def pause_acts(
    ids: Iterable[str], reason: str, timeout_s: float | None, then: AfterPause | None
) -> list[Act]:
    detail = json.dumps({"reason": reason, "timeout_s": timeout_s, "then": then})
    return [Act("execution.pause", id, detail) for id in ids]


def resume_acts(ids: Iterable[str], reason: str, data: str) -> list[Act]:
    """Of what was given only the names: the values may not be for everyone who reads this."""
    detail = json.dumps({"reason": reason, "data": sorted(json.loads(data) or ())})
    return [Act("execution.resume", id, detail) for id in ids]


def pause_over_act(id: str, then: AfterPause) -> Act:
    """The time of a pause is over."""
    action = "execution.cancel" if pause_cancels(then) else "execution.resume"
    return Act(action, id, '{"reason": "its pause is over"}')


# approvals


def decision_act(made: StoredDecision, verdict: Verdict) -> Act:
    return Act(f"approval.{made.decision}", made.approval_id, detail(made, verdict))


def deadline_act(approval: StoredApproval) -> Act:
    """The time of an approval is over."""
    action = "approval.escalate" if approval.escalates else "approval.expire"
    return Act(action, approval.id)


def registered_acts(definitions: Sequence[Definition], before: Mapping[str, Listed]) -> list[Act]:
    """Which workflows have another version by now, for the audit."""
    new = [
        each
        for each in definitions
        if each.name not in before or before[each.name].version != each.version
    ]
    return [act("workflow.register", each.name, version=each.version) for each in new]


def queue_acts(queue: str, paused: bool, reason: str) -> list[Act]:
    """What an operator did to a queue, for the audit."""
    return [act("queue.pause", queue, reason=reason) if paused else act("queue.resume", queue)]
