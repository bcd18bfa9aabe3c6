"""The base class of every role of the store on SQLite."""

from __future__ import annotations

from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.session import SqliteSession


class SqliteRole:
    """A part of the store. Each of its public methods is one transaction."""

    def __init__(self, db: SqliteSession, rows: SqliteRows, auditor: SqliteAuditor) -> None:
        self.db, self.rows, self.auditor = db, rows, auditor
