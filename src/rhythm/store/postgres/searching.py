"""How searches ask PostgreSQL: with the values of `store.search` in its own form."""

from __future__ import annotations

import re

from rhythm.store.postgres.connection import Connection
from rhythm.store.search import Ask

_GIVEN = re.compile(r"(?<!:):([a-z]\w*)")  # a value that is given by name, and no cast


def asker(db: Connection) -> Ask:
    """Returns what runs a statement of a search on this connection, and returns its rows."""
    return lambda text, values: db.query_once(as_given(text), values)


def as_given(text: str) -> bytes:
    """Returns a statement with its values written as `%(name)s`."""
    return _GIVEN.sub(r"%(\1)s", text).encode()
