"""Tokens and the audit chain of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rhythm.store.access import Actor, AuditRow, Chain, Filter, Grant, Head, StoredToken
from rhythm.store.reading import Found


class AccessStore(ABC):
    """Tokens and the audit chain of a database."""

    @abstractmethod
    def create_token(self, grant: Grant, actor: Actor | None = None) -> StoredToken | None:
        """Makes a token; None if its id is taken."""

    @abstractmethod
    def token(self, id: str) -> StoredToken | None:
        """A token, also one that is no longer valid. One statement, which waits for nobody who
        looks at something large."""

    @abstractmethod
    def tokens(self) -> list[StoredToken]:
        """All tokens, newest first."""

    @abstractmethod
    def touch_token(self, id: str) -> None:
        """Notes that the token is used. It waits for nobody who decides with it or changes it."""

    @abstractmethod
    def revoke_token(self, id: str, actor: Actor | None = None) -> bool | None:
        """The token is valid no more. False: it was revoked before; None: there is none of this
        id."""

    @abstractmethod
    def change_token(
        self,
        id: str,
        roles: tuple[str, ...] | None,
        business_roles: tuple[str, ...] | None,
        actor: Actor | None = None,
    ) -> StoredToken | None:
        """Gives a token other roles; None leaves them as they are. One that is revoked stays as it
        is. None: there is none of this id."""

    @abstractmethod
    def audit(self, wanted: Filter, limit: int, most_bytes: int | None = None) -> Found[AuditRow]:
        """The audit, newest first. `most_bytes`: no more than these and one row."""

    @abstractmethod
    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        """What follows row `n` of the audit, in the order of the chain."""

    @abstractmethod
    def audit_chain(
        self,
        known: Head | None = None,
        after: Head | None = None,
        limit: int | None = None,
        size: int | None = None,
    ) -> Chain:
        """Reads the chain in one snapshot, from row `after` on (else from the lowest), and says
        what is wrong with it (see `Links`).

        No more than `limit` rows, and none after as many characters of details as `size` says.
        `known`: a head that was kept.
        """

    def verify_audit(self, known: Head | None = None) -> tuple[Head, list[tuple[int, str]]]:
        """Reads the whole chain: where it ends, and what is wrong with it."""
        chain = self.audit_chain(known)
        return chain.head, list(chain.problems)
