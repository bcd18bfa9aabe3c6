"""What an answer that is no success means: the exception that the same call of `rhythm.app` would
have raised, or a `ServerError` that says what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rhythm import errors
from rhythm.lang.source import Diagnostic
from rhythm.remote.address import Address
from rhythm.remote.decoding import NotUnderstood, parsed
from rhythm.remote.transport import Reply

PROBLEM = "application/problem+json"
MAX_CHARACTERS = 4000  # of what a server says
TOKEN = (
    "give a token with --token-file FILE, or with the variable RHYTHM_TOKEN_FILE or RHYTHM_TOKEN"
)
# How the errors are made of which the class says all; the others are below, by their code.
PLAIN: tuple[type[errors.RhythmError], ...] = (
    errors.UnknownExecution,
    errors.UnknownWorkflow,
    errors.UnknownApproval,
    errors.UnknownSchedule,
    errors.ScheduleOfWorkflow,
    errors.ScheduleTaken,
    errors.ScheduleChanged,
    errors.NotRetryable,
    errors.InvalidId,
    errors.InvalidPayload,
    errors.InvalidInputs,
    errors.InvalidEvent,
    errors.InvalidSchedule,
)
DENIED = ("wrong_role", "role_revoked", "self_approval", "too_many_contributors")
UNDECIDABLE = (
    "already_decided", "decision_repeated", "approval_changed", "approval_expired",
    "approval_cancelled", "no_escalation", "approval_open",
)  # fmt: skip
NOT_DELIVERED = ("execution_ended", "mailbox_full")
# a request that was not begun: the caller asks too often, and may ask again
BUSY = "too_many_requests"
# this server has no such route: it is older than we are, or newer
OTHER_VERSION = ("no_such_path", "method_not_allowed")
Make = Callable[[str, Mapping[str, Any]], Exception]


def by_code() -> Mapping[str, Make]:
    """Returns, for each code of a problem that `rhythm.app` raises, how its error is made."""
    made: dict[str, Make] = {
        kind.code: lambda said, more, kind=kind: kind(said)  # type: ignore[misc]  # bound to its own kind
        for kind in PLAIN
    }
    made |= {code: lambda said, more: errors.Denied(said, more["code"]) for code in DENIED}
    made |= {
        code: lambda said, more: errors.Undecidable(said, more["code"]) for code in UNDECIDABLE
    }
    made |= {
        code: lambda said, more: errors.NotDelivered(said, more["code"]) for code in NOT_DELIVERED
    }
    made["conflict"] = lambda said, more: errors.Conflict(said, str(more.get("id", "")))
    made["invalid_workflow"] = lambda said, more: errors.FlowError(_diagnostics(more), said)
    for code in ("invalid_request", "idempotency_key_reused", "selection_missing"):
        made[code] = lambda said, more: ValueError(said)
    return made


MADE = by_code()


def code_of(answer: Reply) -> str:
    """Returns the code of a problem; empty if the answer is no problem of a server of Rhythm."""
    return str(_problem(answer).get("code", ""))


def error_of(answer: Reply, address: Address, version: str) -> Exception:
    """Returns the exception for an answer that is no success. `version`: that of this Rhythm."""
    problem, status = _problem(answer), answer.status
    if 300 <= status < 400:
        elsewhere = answer.headers.get("location", "")
        return errors.ServerError(
            f"{address} sends elsewhere, to {elsewhere!r:.200}, and a token is not sent on: give "
            f"the URL of the server itself"
        )
    if not problem:
        return _no_problem(answer, address)
    code, said = str(problem["code"]), str(problem["detail"])[:MAX_CHARACTERS]
    if code in MADE:
        return MADE[code](said, problem)
    if code in OTHER_VERSION:
        return errors.ServerError(
            f"the server at {address} does not have what this command asks for: it runs another "
            f"version of Rhythm than {version}, which is here"
        )
    if status == 401:
        return errors.ServerError(f"{address} refuses whoever asks: {said}; {TOKEN}")
    if status == 403:
        return errors.ServerError(f"{address} refuses this: {said}")
    if status == 429:
        return errors.Unavailable(f"{address} is asked too often: {said}; try again later")
    if status == 503:
        return errors.Unavailable(f"the server at {address} says: {said}")
    return errors.ServerError(f"the server at {address} answers {status}: {said}")


def not_understood(address: Address, version: str, problem: object) -> errors.ServerError:
    """Returns the error for an answer that is none of this version of Rhythm."""
    return errors.ServerError(
        f"cannot read the answer of {address}: {problem}; is it a server of Rhythm, of about the "
        f"version that is here ({version})?"
    )


def _no_problem(answer: Reply, address: Address) -> Exception:
    if answer.status in (502, 503, 504):
        return errors.Unavailable(
            f"a proxy at {address} answers {answer.status}: it does not reach the server behind it"
        )
    kind = f" of the type {answer.kind!r:.80}" if answer.kind else ""
    return errors.ServerError(
        f"what answers at {address} is no server of Rhythm: it answers {answer.status}{kind}; "
        f"is the URL right?"
    )


def _problem(answer: Reply) -> Mapping[str, Any]:
    """Returns the problem that an answer describes; empty if it describes none."""
    if answer.kind != PROBLEM:
        return {}
    try:
        found = parsed(answer.body)
    except NotUnderstood:
        return {}
    whole = isinstance(found, dict) and {"code", "detail"} <= found.keys()
    return found if whole else {}


def _diagnostics(more: Mapping[str, Any]) -> list[Diagnostic]:
    found = more.get("problems")
    return [
        Diagnostic(str(each.get("code", "")), "error", str(each.get("message", "")), 0, 0)
        for each in (found if isinstance(found, list) else ())
        if isinstance(each, dict)
    ]
