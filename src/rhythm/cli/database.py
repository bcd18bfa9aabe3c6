"""The database that a command works on.

It is the URL of --database, else of RHYTHM_DATABASE_URL, else of the settings in this folder, else
a file in this folder.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rhythm.settings import Settings

VARIABLE = "RHYTHM_DATABASE_URL"
SERVER = "RHYTHM_SERVER"  # the URL of a server to ask in place of a database


def read_settings(given: str | None) -> Settings:
    """Returns the settings; `given` is the URL of --database, or None if it was not given."""
    from rhythm.settings import load_settings

    return load_settings({"database_url": given}, os.environ)


def database_url(given: str | None) -> str:
    """Returns the URL of the database; `given` is the value of --database, or None."""
    return read_settings(given).database_url
