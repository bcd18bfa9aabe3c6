"""Tokens and the audit chain of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rhythm.store.access import Actor, AuditRow, Chain, Filter, Grant, Head, StoredToken
from rhythm.store.reading import Found


class AccessStore(ABC):
    """Tokens and the audit chain of a database."""

    @abstractmethod
    def create_token(self, grant: Grant, actor: Actor | None = None) -> StoredToken | None:
        """Creates a token. Returns None if its id is taken."""

    def token(self, id: str) -> StoredToken | None:
        """Returns the token with this id, also if it is no longer valid. None: there is no such
        token."""
        return self.tokens_of([id]).get(id)

    @abstractmethod
    def tokens_of(self, ids: Sequence[str]) -> dict[str, StoredToken]:
        """Returns the tokens with these ids, by id, also those that are no longer valid. Those that
        do not exist are left out.

        This is one statement, and it does not wait for callers that read a lot of data.
        """

    @abstractmethod
    def tokens(self) -> list[StoredToken]:
        """Returns all tokens, newest first."""

    @abstractmethod
    def touch_tokens(self, ids: Sequence[str]) -> None:
        """Records that these tokens were used just now.

        It does not wait for transactions that decide with them or change them.
        """

    @abstractmethod
    def revoke_token(self, id: str, actor: Actor | None = None) -> bool | None:
        """Revokes a token. False: it was revoked before. None: there is no token with this id."""

    @abstractmethod
    def change_token(
        self,
        id: str,
        roles: tuple[str, ...] | None,
        business_roles: tuple[str, ...] | None,
        actor: Actor | None = None,
    ) -> StoredToken | None:
        """Replaces the roles of a token and returns the token. None: there is no token with this
        id.

        `roles` or `business_roles` None leaves those as they are. A revoked token is not changed.
        """

    @abstractmethod
    def audit(self, wanted: Filter, limit: int, most_bytes: int | None = None) -> Found[AuditRow]:
        """Returns the matching rows of the audit, newest first, at most `limit`.

        `most_bytes`: reading stops once the rows have this many bytes; at least one row is
        returned.
        """

    @abstractmethod
    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        """Returns at most `limit` rows of the audit after row `n`, in the order of the chain."""

    @abstractmethod
    def audit_chain(
        self,
        known: Head | None = None,
        after: Head | None = None,
        limit: int | None = None,
        size: int | None = None,
    ) -> Chain:
        """Reads the chain in one snapshot and returns what is wrong with it (see `Links`).

        Reading begins at row `after`, or at the lowest row without it. It stops after `limit` rows,
        or once the details of the rows have `size` characters. `known`: a head that was kept
        elsewhere.
        """

    def verify_audit(self, known: Head | None = None) -> tuple[Head, list[tuple[int, str]]]:
        """Reads the whole chain. Returns where it ends, and what is wrong with it: row numbers and
        messages."""
        chain = self.audit_chain(known)
        return chain.head, list(chain.problems)
