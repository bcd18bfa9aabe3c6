"""The views that people read with SQL, and how migrations make them anew. Knows no database.

`views.sql` has them once, for both databases, so they have the same names and columns. Where the
two write something differently, it has a placeholder: `{at x.created_at}` is a stored time as a
time for people.

Views must not stand in the way of a migration that changes tables, and what people have built on
them should survive it. So each migration that is younger than the first views begins by taking the
views away from the tables, and the newest one makes all of them in the end, in its transaction.
SQLite drops them. PostgreSQL keeps each view, with the privileges on it and the views of others
that read it: until it is made anew it reads no table and has no rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from rhythm.store.lifecycle import STATUSES

FIRST_MIGRATION = 16  # the migration that made the first views
US = 1_000_000
# Times beyond these years are shown as NULL: many programs cannot read them.
EARLIEST_US, LATEST_US = -62_135_596_800 * US, 253_402_300_799 * US  # years 1 to 9999
AWAITED = "task workflow branch child".split()  # what is awaited and has an execution of its own

_VIEW = re.compile(r"^CREATE VIEW (\w+) AS\n(.*?);\n", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)(?: ([^{}]*))?\}")  # the innermost ones
_STATUS = " ".join(f"WHEN {status.number} THEN '{status.name}'" for status in STATUSES)
_IN_RANGE = f"CASE WHEN {{0}} BETWEEN {EARLIEST_US} AND {LATEST_US} THEN "
_BOTH = {"status": f"CASE {{0}} {_STATUS} END"}

# Nothing here fails because of what a row contains: one row must not hide all others. So texts are
# searched in place of JSON being taken apart, which PostgreSQL refuses for some characters.
POSTGRES = {
    **_BOTH,
    "at": f"{_IN_RANGE}'epoch'::timestamptz + ({{0}} / {US}) * interval '1 second' "
    f"+ ({{0}} % {US}) * interval '1 microsecond' END",
    "s": "({0}) / 1e6::float8",
    "json": "({0})::json",
    "code": """substring({0} from '^."code": ?"([^"\\\\]*)"')""",
    "awaited": f"""substring({{0}} from '^."op":"(?:{"|".join(AWAITED)})","n":(\\d+)')""",
    "state": "CASE WHEN substring({0} from 1 for 1) = '\\x7b'::bytea "
    "THEN convert_from({0}, 'UTF8')::json END",
    "bytes": "octet_length({0})",
    "text": '({0}) COLLATE "C"',
    "list": "LATERAL json_array_elements_text(({0})::json) AS s(value)",
    "now": f"(extract(epoch FROM statement_timestamp()) * {US})::bigint",
}
SQLITE = {
    **_BOTH,
    "at": f"{_IN_RANGE}strftime('%Y-%m-%dT%H:%M:%S', ({{0}}) / {US} - (({{0}}) % {US} < 0), "
    f"'unixepoch') || printf('.%06dZ', (({{0}}) % {US} + {US}) % {US}) END",
    "s": "({0}) / 1e6",
    "json": "{0}",
    "code": "CASE WHEN instr({0}, '\"' || json_extract({0}, '$.code') || '\"') > 0 "
    "THEN json_extract({0}, '$.code') END",
    "awaited": "CASE WHEN json_extract({0}, '$.op') IN ("
    + ", ".join(f"'{op}'" for op in AWAITED)
    + ") THEN json_extract({0}, '$.n') END",
    "state": "CASE WHEN substr({0}, 1, 1) = x'7b' THEN CAST({0} AS TEXT) END",
    "bytes": "length(CAST({0} AS BLOB))",
    "text": "{0}",
    "list": "json_each({0}) AS s",
    "now": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
}

_EMPTY_EACH = """DO $$
DECLARE
  v record;
BEGIN
  FOR v IN
    SELECT c.relname AS name, string_agg(format('NULL::%s%s AS %I',
      format_type(a.atttypid, a.atttypmod), CASE WHEN l.oid IS NOT NULL
      THEN format(' COLLATE %I.%I', o.nspname, l.collname) END, a.attname),
      ', ' ORDER BY a.attnum) AS columns
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    LEFT JOIN pg_namespace o ON o.oid = l.collnamespace
    WHERE c.relkind = 'v' AND c.relname IN (NAMES)
    GROUP BY c.relname
  LOOP
    EXECUTE format('CREATE OR REPLACE VIEW %I AS SELECT %s WHERE false', v.name, v.columns);
  END LOOP;
END $$;
"""


@cache
def views() -> Mapping[str, str]:
    """Returns the views by name, in the order in which they are made, with their placeholders."""
    text = (resources.files("rhythm.store") / "views.sql").read_text("utf-8")
    return dict(_VIEW.findall(text))


def filled(text: str, dialect: Mapping[str, str]) -> str:
    """Returns SQL with a dialect's text in place of each placeholder. `KeyError` for one that the
    dialect does not know."""

    def put(found: re.Match[str]) -> str:
        return dialect[found[1]].replace("{0}", found[2] or "")

    while _PLACEHOLDER.search(text):
        text = _PLACEHOLDER.sub(put, text)
    return text


def with_views_on_sqlite(number: int, newest: int, text: str) -> str:
    """Returns the text of a migration, and what it does to the views."""
    away = "".join(f"DROP VIEW IF EXISTS {name};\n" for name in views())
    return _around(number, newest, away, text, "CREATE VIEW", SQLITE)


def with_views_on_postgres(number: int, newest: int, text: str) -> str:
    """Returns the text of a migration, and what it does to the views.

    A view that is replaced keeps the privileges on it, and what was built on it. PostgreSQL refuses
    to replace one whose columns have changed other than by new ones at the end.
    """
    away = _EMPTY_EACH.replace("NAMES", ", ".join(f"'{name}'" for name in views()))
    return _around(number, newest, away, text, "CREATE OR REPLACE VIEW", POSTGRES)


def _around(
    number: int, newest: int, away: str, text: str, create: str, dialect: Mapping[str, str]
) -> str:
    parts: Sequence[str] = [away] if number > FIRST_MIGRATION else []
    made = [f"{create} {name} AS\n{filled(body, dialect)};" for name, body in views().items()]
    return "\n\n".join([*parts, text.strip(), *(made if number == newest else ())])
