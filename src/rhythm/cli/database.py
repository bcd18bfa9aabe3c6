"""The database that a command works on: `--database`, else `RHYTHM_DATABASE_URL`, else a file in this folder."""

from __future__ import annotations

import os

from rhythm.cli.options import Option

VARIABLE = "RHYTHM_DATABASE_URL"
DEFAULT_URL = "sqlite:///rhythm.db"
DATABASE = Option("--database", f"where the executions are; without it {VARIABLE} says so, or else it is {DEFAULT_URL}", value="URL")


def database_url(given: str | None) -> str:
    return given or os.environ.get(VARIABLE) or DEFAULT_URL
