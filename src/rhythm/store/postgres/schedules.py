"""Schedules on PostgreSQL."""

from __future__ import annotations

from rhythm.store.postgres.session import Session


class PostgresSchedules(Session): ...
