"""Which database a command works on: the flag, else the variable, else the settings of the folder,
else a file in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rhythm.settings import Settings

VARIABLE = "RHYTHM_DATABASE_URL"


def read_settings(given: str | None) -> Settings:
    """The settings, with the database that the flag gives."""
    from rhythm.settings import load_settings

    return load_settings({"database_url": given}, os.environ)


def database_url(given: str | None) -> str:
    return read_settings(given).database_url
