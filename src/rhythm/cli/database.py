"""Which database a command works on: the flag, else the variable, else the settings of the folder, else a file in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rhythm.cli.options import Option

if TYPE_CHECKING:
    from rhythm.settings import Settings

VARIABLE = "RHYTHM_DATABASE_URL"
DATABASE = Option("--database", f"where executions live; else {VARIABLE} or rhythm.toml says it, else sqlite:///rhythm.db", value="URL")
CONNECT_S = 10  # the longest wait for a PostgreSQL server to answer, unless the URL or PGCONNECT_TIMEOUT says another


def read_settings(given: str | None) -> Settings:
    """The settings, with the database that the flag gives."""
    from rhythm.settings import load_settings

    return load_settings({"database_url": given}, os.environ)


def database_url(given: str | None) -> str:
    return bounded(read_settings(given).database_url)


def bounded(url: str) -> str:
    """A PostgreSQL URL with an end to the waiting: psycopg's own comes after two minutes."""
    if not url.startswith(("postgres://", "postgresql://")) or "connect_timeout=" in url or "PGCONNECT_TIMEOUT" in os.environ:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={CONNECT_S}"
