"""The audit rows for what people, turns and services do to executions and approvals. Pure."""

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
    """Returns audit rows for published events and sent signals: one for each type of event, and for
    each receiver and name of a signal.

    The audit is kept for ever, so a workflow that publishes in a loop must not fill it: a row says
    how many it stands for (`count`, and the id of the `last`). If there are more than `MOST_ACTS`
    rows, the last one says how many are missing (`more`).
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


# Executions. Callers pass only the ids of executions that were changed.


def cancel_acts(ids: Iterable[str]) -> list[Act]:
    """Returns audit rows for executions that were asked to end."""
    return [Act("execution.cancel", id) for id in ids]


def replaced_acts(ids: Iterable[str]) -> list[Act]:
    """Returns audit rows for executions that a start replaced: it took their keys, and asked them
    to end."""
    return [act("execution.cancel", id, reason="it was replaced") for id in ids]


def terminate_acts(ids: Iterable[str]) -> list[Act]:
    """Returns audit rows for executions that were terminated."""
    return [Act("execution.terminate", id) for id in ids]


def retry_acts(id: str, retry: str) -> list[Act]:
    """Returns the audit row for a retry: its id is in the detail."""
    return [act("execution.retry", id, retry=retry)]


def pause_acts(
    ids: Iterable[str],
    reason: str,
    timeout_s: float | None,
    then: AfterPause | None,
    metadata: str | None = None,
) -> list[Act]:
    """Returns audit rows for executions that were paused."""
    said = {"reason": reason, "timeout_s": timeout_s, "then": then}
    detail = json.dumps(said | _metadata(metadata))
    return [Act("execution.pause", id, detail) for id in ids]


def resume_acts(
    ids: Iterable[str], reason: str, data: str, metadata: str | None = None
) -> list[Act]:
    """Returns audit rows for executions that were resumed.

    Of the data only the keys are recorded: not everybody who reads the audit may see the values.
    Metadata are there for whoever looks at it later, so they are recorded.
    """
    said = {"reason": reason, "data": sorted(json.loads(data) or ())}
    detail = json.dumps(said | _metadata(metadata))
    return [Act("execution.resume", id, detail) for id in ids]


def _metadata(given: str | None) -> dict[str, Any]:
    """Returns what an audit row has of metadata: all of it, if there is any."""
    return {} if given is None else {"metadata": json.loads(given)}


def pause_over_act(id: str, then: AfterPause) -> Act:
    """Returns the audit row for a pause whose time is over."""
    action = "execution.cancel" if pause_cancels(then) else "execution.resume"
    return Act(action, id, '{"reason": "its pause is over"}')


# approvals


def decision_act(made: StoredDecision, verdict: Verdict) -> Act:
    """Returns the audit row for a decision about an approval."""
    return Act(f"approval.{made.decision}", made.approval_id, detail(made, verdict))


def deadline_act(approval: StoredApproval) -> Act:
    """Returns the audit row for an approval whose deadline has passed."""
    action = "approval.escalate" if approval.escalates else "approval.expire"
    return Act(action, approval.id)


def registered_acts(definitions: Sequence[Definition], before: Mapping[str, Listed]) -> list[Act]:
    """Returns audit rows for workflows that have a new current version."""
    new = [
        each
        for each in definitions
        if each.name not in before or before[each.name].version != each.version
    ]
    return [act("workflow.register", each.name, version=each.version) for each in new]


def queue_acts(queue: str, paused: bool, reason: str) -> list[Act]:
    """Returns the audit row for a queue that an operator paused or resumed."""
    return [act("queue.pause", queue, reason=reason) if paused else act("queue.resume", queue)]
