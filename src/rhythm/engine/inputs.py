"""Turns rows into the inputs of the interpreter: everything that a turn may know. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from rhythm.engine.payload import load
from rhythm.ids import child_id
from rhythm.ir.awaiting import KINDS, Plan, is_limited, is_range, leaves, needs_all, numbers
from rhythm.store.interfaces.messages import Mail
from rhythm.store.interfaces.turns import ChildOutcome, Loaded, Needed
from rhythm.store.lifecycle import APPROVAL, BLOCKED, CANCELLED, COMPLETED, EVENT, WORKFLOW
from rhythm.store.provenance import Provenance, load_authority
from rhythm.vm.builtins import show_time
from rhythm.vm.machine import STARTED, Inputs, Outcome, Signal
from rhythm.vm.snapshot import Snapshot


def needed(id: str, snapshot: Snapshot) -> Needed:
    """Returns what must be read to know whether the workflow can go on.

    That is what it awaits, and the items of groups with a limit of concurrency that run in the
    background.
    """
    plan = snapshot.awaiting
    started = snapshot.locals.get(STARTED, {}).values()
    behind = [n for kept in started if is_limited(kept) for n in numbers(kept)]
    if plan is None:
        return Needed(id, tuple(behind))
    whole = is_range(plan) and needs_all(plan) and not behind
    return Needed(id, (*numbers(plan), *behind), whole, fails=not plan.get("settle"))


def inputs_of(
    loaded: Loaded,
    snapshot: Snapshot,
    outcomes: Iterable[ChildOutcome],
    mail: Iterable[Mail],
    seed: str,
    now_us: int,
) -> Inputs:
    """Returns everything that a turn of the workflow may know, if all that is `needed` was read."""
    ended = list(outcomes)
    # Only then the operation says more about an end than its row does.
    like_branches = any(each.type == WORKFLOW and each.name == loaded.name for each in ended)
    ops = kinds(snapshot.awaiting) if like_branches else {}
    return Inputs(
        now=moment(now_us),
        seed=seed,
        inputs=load(loaded.inputs),
        ctx=_context(loaded),
        outcomes={
            outcome.n: outcome_of(loaded.id, loaded.name, outcome, ops.get(outcome.n, ""))
            for outcome in ended
        },
        signals=[Signal(m.id, m.name, load(m.payload), m.received_at / 1e6) for m in mail],
        cancel=loaded.ending,
        resume_data=resume_data(loaded),
        forbidden=forbidden(loaded.authority),
    )


def _context(loaded: Loaded) -> dict[str, Any]:
    return {
        "id": loaded.id,
        "workflow": loaded.name,
        "version": loaded.version,
        "started_at": moment(loaded.created_at),
        "attempt": 1,
        "parent_id": loaded.parent_id,
    }


@lru_cache(256)
def forbidden(authority: str | None) -> frozenset[str]:
    """Returns which of `publish` and `send` the workflow may not do.

    That depends on the permissions of those who asked for the execution. An event reaches
    everybody, so each of them must be allowed to signal every execution. A signal reaches one
    execution, and whether they may signal that one is checked where it arrives.
    """
    asked = Provenance(authority=load_authority(authority))
    allowed = {
        "publish": asked.allows("execution:signal"),
        "send": asked.allows_some("execution:signal"),
    }
    return frozenset(operation for operation, may in allowed.items() if not may)


def resume_data(loaded: Loaded) -> dict[str, Any] | None:
    """Returns the data of the resumes since the last turn; None if there is none.

    Later values win over earlier ones.
    """
    pending = [load(data) for _, data in load(loaded.resumes)] if loaded.resumes else []
    given = [data for data in pending if isinstance(data, dict)]
    return {name: value for data in given for name, value in data.items()} if given else None


def kinds(plan: Plan | None) -> dict[int, str]:
    """Returns the kind of await behind each number of a plan."""
    return {leaf["n"]: leaf["op"] for leaf in leaves(plan)}


# how a child has ended


def outcome_of(parent_id: str, parent_name: str, row: ChildOutcome, operation: str) -> Outcome:
    """Returns how a child, a timer or a wait has ended, as the parent sees it."""
    ended_at = row.ended_at / 1e6
    if row.status == CANCELLED:
        return Outcome("cancelled", None, ended_at)
    if row.type is None:
        return Outcome("completed", None, ended_at)
    value = load(row.value)
    if row.type == APPROVAL:
        return Outcome("completed", {**value, "at": moment(row.ended_at)}, ended_at)
    if row.type == EVENT:
        return _event_outcome(row, value, ended_at)
    if row.status == COMPLETED:
        return Outcome("completed", value, ended_at)
    value = without_frames(value)
    if row.type == WORKFLOW:
        # A child that is awaited by name is a workflow, even if it has the name of its parent.
        is_branch = row.name == parent_name and not (operation and KINDS[operation].named)
        child = f"a branch of `{row.name}`" if is_branch else f"`{row.name}`"
        blocked = row.status == BLOCKED
        value = _child_error(child_id(parent_id, row.n), child, value, blocked)
    return Outcome("failed", value, ended_at)


def without_frames(error: dict[str, Any]) -> dict[str, Any]:
    """Returns an error as workflows see it, without the lines of Python, which are for people."""
    return {name: value for name, value in error.items() if name != "frames"}


def _child_error(id: str, child: str, error: dict[str, Any], blocked: bool) -> dict[str, Any]:
    """Returns the error of a child workflow as its parent sees it.

    The position in the child's source is left out.
    """
    error.pop("at", None)
    data = {"id": id, "error": error}
    if error["code"] == "Timeout" and error["data"] == {"execution": id}:
        return {"code": "Timeout", "message": error["message"], "data": data}
    how = "was blocked" if blocked else "failed"
    message = f"{child} {how}: {error['message']}"
    return {"code": "ChildFailed", "message": message, "data": data}


def _event_outcome(row: ChildOutcome, value: Any, ended_at: float) -> Outcome:
    if row.status == COMPLETED:
        at = moment(value["at"])
        event = {"id": value["id"], "type": row.name, "data": value["data"], "at": at}
        return Outcome("completed", event, ended_at)
    message = f"no event `{row.name}` came in time"
    return Outcome("failed", {"code": "Timeout", "message": message, "data": None}, ended_at)


def moment(us: int) -> str:
    """Returns microseconds since 1970 as a time of the language."""
    second, fraction = divmod(us, 1_000_000)
    return f"{_second(second)}.{fraction:06}Z" if fraction else f"{_second(second)}Z"


@lru_cache(16)
def _second(s: int) -> str:
    """Returns seconds since 1970 as a time, without its zone: nearly all turns want the same."""
    return show_time(datetime.fromtimestamp(s, UTC)).removesuffix("Z")
