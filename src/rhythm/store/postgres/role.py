"""The base class of every role of the store on PostgreSQL."""

from __future__ import annotations

from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.connection import Connection
from rhythm.store.postgres.rows import PostgresRows


class PostgresRole:
    """A part of the store: its connection, the steps that transactions share, and the audit."""

    def __init__(self, db: Connection, rows: PostgresRows, auditor: PostgresAuditor) -> None:
        self.db, self.rows, self.auditor = db, rows, auditor
