"""Finished executions, many in a moment: what real ones have left is copied by statements.

Tasks and workflows run for real once. All the rows that they leave are copied with other ids and
other times, so they have the shape of this version's rows, whatever that is. Half of the executions
are children.
"""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

from bench.growth.measuring import drained, stepped
from bench.places import Place

# of the executions that are copied together: 9 + 1 × 11 + 10 × 2
TASKS, LONG, SHORT, EXECUTIONS = 9, 1, 10, 40
DAY_US = 86_400_000_000
DAYS = 2  # in which they ended: each filling takes one of them

# the tables that have something of an execution after its end, and their columns with its id
TABLES = {
    "executions": "id",
    "workflow_execution_context": "execution_id",
    "history": "execution_id",
}
IDS = ("id", "execution_id", "parent_id", "root_id")
TIMES = ("created_at", "started_at", "finished_at", "updated_at", "at")


class Filler:
    """Fills one database. It needs a worker when it is made, and none later."""

    def __init__(self, place: Place) -> None:
        self._place, self._fillings = place, 0
        drained(place, TASKS)
        stepped(place, LONG)
        stepped(place, SHORT, "one", 1)
        with closing(place.connect()) as db:
            roots = [*_newest(db, "note", TASKS), *_newest(db, "steps", LONG)]
            roots += _newest(db, "one", SHORT)
        self._listed = ", ".join(f"'{id}'" for id in roots)

    def fill(self, count: int) -> int:
        """Adds about so many executions. Returns how many."""
        units = math.ceil(count / EXECUTIONS)
        self._fillings += 1
        with closing(self._place.connect()) as db:
            postgres = self._place.name == "PostgreSQL"
            (_prepare_postgres if postgres else _prepare_sqlite)(db)
            shift = f"{(DAYS - self._fillings) * DAY_US} + {DAY_US} / {units} * ({units} - n)"
            self._choose(db, units, shift, POSTGRES_ID if postgres else SQLITE_ID)
            for table, id in TABLES.items():
                self._copy(db, table, id)
            _settle(db, postgres)
        return units * EXECUTIONS

    def _choose(self, db: Any, units: int, shift: str, new_id: str) -> None:
        """Makes the table of copies: of which root, its new id, and how much earlier."""
        db.execute(f"""
            CREATE TEMP TABLE copies AS WITH RECURSIVE
              numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {units}),
              moved AS (
                SELECT e.id, e.created_at, {shift} AS shift
                FROM numbers CROSS JOIN executions e WHERE e.id IN ({self._listed}))
            SELECT id AS source, {new_id} AS root, shift FROM moved ORDER BY shift DESC""")

    def _copy(self, db: Any, table: str, id: str) -> None:
        """Copies all rows of the chosen executions in one table."""
        names = [each[0] for each in db.execute(f"SELECT * FROM {table} LIMIT 0").description]
        db.execute(f"""
            CREATE TEMP TABLE sources_{table} AS SELECT e.root_id AS source, t.*
            FROM {table} t JOIN executions e ON e.id = t.{id}
            WHERE e.root_id IN ({self._listed})""")
        db.execute(f"CREATE INDEX sources_of_{table} ON sources_{table} (source)")
        db.execute(f"""
            INSERT INTO {table} ({", ".join(names)}) SELECT {", ".join(map(_moved, names))}
            FROM copies c CROSS JOIN sources_{table} t WHERE t.source = c.source""")


def _newest(db: Any, name: str, count: int) -> list[str]:
    text = f"""
        SELECT id FROM executions WHERE name = '{name}' AND parent_id IS NULL
        ORDER BY created_at DESC LIMIT {count}"""
    return [id for (id,) in db.execute(text).fetchall()]


# As long as ours, and in the order of time; sorted before all that are made now.
POSTGRES_ID = (
    "lpad(to_hex((created_at - shift) / 1000), 12, '0') || substr(md5(random()::text), 1, 14)"
)
SQLITE_ID = "printf('%012x', (created_at - shift) / 1000) || lower(hex(randomblob(7)))"


def _prepare_postgres(db: Any) -> None:
    db.execute("SET synchronous_commit = off; SET work_mem = '256MB'")


def _prepare_sqlite(db: Any) -> None:
    for setting in ("synchronous = OFF", "cache_size = -500000", "temp_store = MEMORY"):
        db.execute(f"PRAGMA {setting}")


def _moved(column: str) -> str:
    if column in IDS:
        return f"c.root || substr(t.{column}, length(c.source) + 1)"
    return f"t.{column} - c.shift" if column in TIMES else f"t.{column}"


def _settle(db: Any, postgres: bool) -> None:
    """Does what has happened by itself where executions have come one by one."""
    if postgres:
        db.execute("VACUUM ANALYZE")
        db.execute("CHECKPOINT")
    else:
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
