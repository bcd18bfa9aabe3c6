"""Who acts, with which rights, and the record of it: tokens and the audit chain.

An act that an operator or a decider asks for is recorded in the transaction that does it: `audit` rows are only ever added, and each
carries the hash of the one before, so that a row which is changed, left out or put in between is found (`verify`).
"""

from __future__ import annotations

from rhythm.record import Record


class Actor(Record):
    """Who asks for something.

    With a `token` its roles are those of the token, looked up in the transaction of the act; without one, whoever has the database
    says which `roles` the actor has.
    """

    name: str
    roles: tuple[str, ...] | None = None  # business roles, for approvals; None: all, for which whoever has the database answers
    token: str | None = None  # the id of the token, never its secret
    source: str = ""  # an address, "cli" or "python"


class Act(Record):
    """What was done to what, for the audit."""

    action: str  # such as "execution.pause"
    object: str  # an id or name
    detail: str = "{}"  # JSON
