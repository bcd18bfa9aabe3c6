"""The doctor's statements on PostgreSQL, run in the snapshot of a frozen transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from rhythm.store.doctor import RULES, bounded_text
from rhythm.store.postgres.connection import PACKAGE, Connection
from rhythm.store.postgres.wire import Row
from rhythm.store.sqlfile import statements


@cache
def doctor_sql() -> dict[str, bytes]:
    """Returns the doctor's statements by name. Those of rules return a bounded number of rows."""
    texts = statements(PACKAGE, "doctor.sql")
    return {
        name: (bounded_text(text, "%(limit)s") if name in RULES else text).encode()
        for name, text in texts.items()
    }


def ask(
    db: Connection, name: str, /, rows: Sequence[tuple[str, int]] | None = None, **values: Any
) -> list[Row]:
    """Runs one of the doctor's statements.

    `rows`: executions and numbers, for statements that take them as columns.
    """
    columns = {"id": [id for id, _ in rows], "n": [n for _, n in rows]} if rows is not None else {}
    return db.rows(doctor_sql()[name], {**values, **columns})
