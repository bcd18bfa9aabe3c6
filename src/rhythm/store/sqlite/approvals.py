"""Approvals on SQLite."""

from __future__ import annotations

from rhythm.store.sqlite.session import Session


class SqliteApprovals(Session): ...
