"""Checks that decisions and tokens are as the audit recorded them.

Pure: rows in, problems out. The doctor reads the rows. Whether the audit rows themselves are
genuine is checked elsewhere (`access.Links`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rhythm.record import Record
from rhythm.store.access import fingerprint

DECISION = ("role", "comment", "shown")  # fields of a decision that its audit detail repeats
TOKEN = ("name", "roles", "business_roles", "expires_at", "fingerprint")  # the same for a token


class AuditedDecision(Record):
    """A decision, and the detail of its audit row."""

    approval_id: str
    n: int
    decision: str
    actor: str
    role: str
    comment: str
    shown: str
    detail: str


class TokenAct(Record):
    """An audit row about a token."""

    n: int
    at: int
    action: str
    object: str
    detail: str


class TokenRow(Record):
    """A token as it is in its table."""

    id: str
    name: str
    hash: str
    roles: str
    business_roles: str
    expires_at: int | None
    revoked_at: int | None


TokenFacts = dict[str, Any]  # what the audit says of a token, by field; also `revoked_at`


def other_decisions(decisions: Iterable[AuditedDecision]) -> Iterator[tuple[str, str]]:
    """Yields the decisions that differ from their audit rows: the approval's id, and how."""
    for made in decisions:
        facts = _object(made.detail)
        if wrong := [name for name in DECISION if facts.get(name) != getattr(made, name)]:
            yield (
                made.approval_id,
                (
                    f"{made.decision} of {made.actor} has another {' and '.join(wrong)} than "
                    f"the audit says"
                ),
            )


def collect_token_facts(known: dict[str, TokenFacts], acts: Sequence[TokenAct]) -> None:
    """Adds what these audit rows say about tokens to `known`.

    Call it with the rows in their order.
    """
    for act in acts:
        detail = _object(act.detail)
        match act.action:
            case "token.create":
                known.setdefault(act.object, detail)
            case "token.change":
                known.setdefault(act.object, {}).update(_granted(detail.get("after")))
            case "token.revoke":
                known.setdefault(act.object, {})["revoked_at"] = act.at


def other_tokens(
    tokens: Sequence[TokenRow], facts: dict[str, TokenFacts]
) -> Iterator[tuple[str, str]]:
    """Yields tokens that differ from the audit, or are missing in the audit or in the table: id,
    and what is wrong."""
    for token in tokens:
        if "name" not in facts.get(token.id, ()):
            yield (
                token.id,
                f"nobody made it: the audit has no token.create of this token of {token.name}",
            )
            continue
        is_so, said = _facts_of(token), facts[token.id]
        # Older audit rows have no fingerprint.
        audited = {"fingerprint": is_so["fingerprint"], **said}
        if wrong := [name.replace("_", " ") for name in TOKEN if audited.get(name) != is_so[name]]:
            yield (
                token.id,
                f"the token of {token.name} has another {' and '.join(wrong)} than the audit says",
            )
        if said.get("revoked_at") != token.revoked_at:
            has = (
                "is not revoked, but was"
                if token.revoked_at is None
                else "is revoked, but not when the audit says, or not by anyone"
            )
            yield token.id, f"the token of {token.name} {has}"
    for id in sorted(facts.keys() - {token.id for token in tokens}):
        yield id, "the token is in the audit, and is gone"


def _facts_of(token: TokenRow) -> dict[str, Any]:
    roles, business = _json(token.roles), _json(token.business_roles)
    named = {
        "name": token.name,
        "expires_at": token.expires_at,
        "fingerprint": fingerprint(token.hash),
    }
    return {**named, "roles": roles, "business_roles": business}


def _granted(value: Any) -> dict[str, Any]:
    return (
        {name: value.get(name) for name in ("roles", "business_roles")}
        if isinstance(value, dict)
        else {}
    )


def _object(text: str) -> dict[str, Any]:
    """Returns the JSON object in a text; empty if it holds anything else, which a forged row
    may."""
    value = _json(text)
    return value if isinstance(value, dict) else {}


def _json(text: str) -> Any:
    """Returns the parsed JSON; None if the text is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
