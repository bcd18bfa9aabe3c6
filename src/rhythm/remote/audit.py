"""The audit of a server: what was done by whom, and whether the record was changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.app.audit import AuditCheck, AuditPage, AuditView, known_head
from rhythm.app.checks import LARGEST_PAGE, at_least, valid_name

if TYPE_CHECKING:
    from rhythm.remote.client import Client

MAX_PROBLEMS = 1000  # that are kept of a check; all of them are counted


class RemoteAudit:
    """The audit: what was done by whom. Calling it returns a page of acts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        object: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> AuditPage:
        """Returns a page of what was done by whom, newest first. See `Rhythm.audit`."""
        asked = {"actor": actor, "action": action, "object": object}
        words = {
            what: None if value is None else valid_name(value, what)
            for what, value in asked.items()
        }
        most = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        items, after = self._client.page(["audit"], most, cursor, **words)
        return AuditPage(tuple(self._client.read(AuditView, item) for item in items), after)

    def verify(self, head: str | None = None) -> AuditCheck:
        """Has the server read the whole audit, part by part, and returns what is wrong with its
        chain. See `Rhythm.verify_audit`."""
        if head is not None:
            known_head(head)
        rows, broken, problems = 0, 0, list[str]()
        after: str | None = None
        while True:
            # the row of the head is read with the first part
            known = head if after is None else None
            part = self._client.view(AuditCheck, "audit", "verify", head=known, after=after)
            rows, broken = rows + part.rows, broken + part.broken
            problems += part.problems[: MAX_PROBLEMS - len(problems)]
            if part.next is None or part.next == after:
                return part.replace(rows=rows, broken=broken, problems=tuple(problems), next=None)
            after = part.next
