"""Approvals of a server: what people are asked to decide, and decisions of the token's owner."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from rhythm.app.approvals import STATUSES, ApprovalPage, ApprovalView, no_approval, one_hash
from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    can_be,
    parse_execution_id,
    valid_name,
    valid_text,
)
from rhythm.limits import TEXTS
from rhythm.remote.executions import fits_path

if TYPE_CHECKING:
    from rhythm.app.actors import Actor
    from rhythm.app.handle import Id
    from rhythm.remote.client import Client

HOW_TO_SEE = "`rhythm approvals {}` tells"


class RemoteApprovals:
    """What people decide. Calling it returns a page of approvals."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(
        self,
        *,
        role: str | None = None,
        status: str | None = "open",
        execution: Id | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> ApprovalPage:
        """Returns a page of approvals, newest first. See `Rhythm.approvals`."""
        if status is not None and status not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, not {status!r:.80}")
        items, after = self._client.page(
            ["approvals"],
            min(at_least(limit, 1, "limit"), LARGEST_PAGE),
            cursor,
            role=None if role is None else valid_name(role, "a role"),
            status=status or "all",
            execution=None if execution is None else parse_execution_id(execution),
        )
        return ApprovalPage(tuple(self._client.read(ApprovalView, item) for item in items), after)

    def get(self, id: str | ApprovalView) -> ApprovalView:
        """Returns one approval. Raises `UnknownApproval` if there is none with this id."""
        return self._client.view(ApprovalView, "approvals", _known(id))

    def approve(
        self,
        id: str | ApprovalView,
        *,
        by: Actor | str,
        comment: str = "",
        content_hash: str | None = None,
        key: str | None = None,
        shown: str | None = None,
    ) -> ApprovalView:
        """Approves, and returns the approval. See `Rhythm.approve`; who decides is the owner of the
        token."""
        return self._decided(id, "approve", comment, one_hash(content_hash, shown), key)

    def reject(
        self,
        id: str | ApprovalView,
        *,
        by: Actor | str,
        comment: str = "",
        content_hash: str | None = None,
        key: str | None = None,
        shown: str | None = None,
    ) -> ApprovalView:
        """Rejects, and returns the approval. See `Rhythm.reject`."""
        return self._decided(id, "reject", comment, one_hash(content_hash, shown), key)

    def escalate(
        self,
        id: str | ApprovalView,
        *,
        by: Actor | str,
        to: str | None = None,
        comment: str = "",
        content_hash: str | None = None,
        key: str | None = None,
        shown: str | None = None,
    ) -> ApprovalView:
        """Hands an approval to the next role, or to the role `to`. See `Rhythm.escalate`."""
        seen = one_hash(content_hash, shown)
        return self._decided(id, "escalate", comment, seen, key, {"to": to})

    def _decided(
        self,
        id: str | ApprovalView,
        what: str,
        comment: str,
        seen: str | None,
        key: str | None,
        more: dict[str, str | None] | None = None,
    ) -> ApprovalView:
        """Makes a decision. Every one has a key, so that the same request twice is one decision."""
        known = _known(id)
        valid_text(comment, "a comment", TEXTS.comment)
        done = self._client.post(
            "approvals",
            known,
            what,
            body={"comment": comment, "content_hash": seen, **(more or {})},
            key=secrets.token_hex(16) if key is None else valid_name(key, "a key"),
            check=HOW_TO_SEE.format(known),
        )
        return self._client.read(ApprovalView, done)


def _known(id: str | ApprovalView) -> str:
    """Returns the id of an approval, which may stand in a path. Raises `UnknownApproval`."""
    given = id.id if isinstance(id, ApprovalView) else id
    return given if can_be(given) and fits_path(given) else no_approval(given)
