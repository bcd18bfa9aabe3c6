"""Empty databases for attacks: a file of SQLite, and a schema of a PostgreSQL server that is
started for them."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from tests.support.postgres import server

NUMBERS = itertools.count(1)
Fresh = Callable[[], str]


@contextlib.contextmanager
def sqlite() -> Iterator[Fresh]:
    """Makes URLs of new databases."""
    with tempfile.TemporaryDirectory() as folder:
        yield lambda: f"sqlite:///{Path(folder) / f'attack{next(NUMBERS)}.db'}"


@contextlib.contextmanager
def postgres() -> Iterator[Fresh]:
    with server() as url:
        made: list[str] = []

        def fresh() -> str:
            made.append(f"attack{next(NUMBERS)}")
            return f"{url}{'&' if '?' in url else '?'}schema={made[-1]}"

        yield fresh
        with psycopg.connect(url, autocommit=True) as admin:
            for name in made:
                admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


KINDS = {"sqlite": sqlite, "postgres": postgres}
