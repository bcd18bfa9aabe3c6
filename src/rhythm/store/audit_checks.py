"""What the audit says must be so: decisions and tokens are as the rows tell that were written with
them.

Pure: rows in, problems out. The doctor asks for the rows; whether they are those of the chain is
judged elsewhere (`access.Links`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rhythm.record import Record
from rhythm.store.access import fingerprint

DECISION = ("role", "comment", "shown")  # what the detail of a decision repeats of it
TOKEN = ("name", "roles", "business_roles", "expires_at", "fingerprint")  # and that of a token


class DecisionTold(Record):
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


TokenFacts = dict[str, Any]  # what the audit says of a token, by field; `revoked_at` too


def other_decisions(decisions: Iterable[DecisionTold]) -> Iterator[tuple[str, str]]:
    """Decisions whose rows in the audit tell something else: approval, and what is wrong."""
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
    """Adds to what is known of tokens what these rows tell, which follow those before."""
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
    """Tokens that are not as the audit says, or not in one of the two: id, and what is wrong."""
    for token in tokens:
        if "name" not in facts.get(token.id, ()):
            yield (
                token.id,
                f"nobody made it: the audit has no token.create of this token of {token.name}",
            )
            continue
        is_so, said = _facts_of(token), facts[token.id]
        # which the audit did not have at first
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
    """The object that a text holds; of one that somebody has forged it may hold anything."""
    value = _json(text)
    return value if isinstance(value, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
