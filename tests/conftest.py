"""Fixtures that tests of several folders share."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rhythm.authoring.workflow import default_workflows
from tests.support.compiled import COMPILED, check_compiled
from tests.support.full_way import FULL_WAY, take_full_way
from tests.support.postgres import database_url, schemas
from tests.support.stores import (
    KINDS,
    MakeStore,
    SqliteFiles,
    Stores,
    close_in_memory,
    sqlite_in_memory,
)

__all__ = ["database_url", "make_store", "schemas", "stores"]

if COMPILED:
    check_compiled()
if FULL_WAY:
    take_full_way()

# A law holds however long an example takes: on a busy machine that says nothing about the code.
settings.register_profile("laws", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")

# Databases of tests lie in memory, where the machine lets us: every commit of a file on a disk waits
# for that disk, and what a disk does after a loss of power is not what these tests are about.
MEMORY, ROOM = "/dev/shm", 2 * 2**30
if "TMPDIR" not in os.environ:
    with contextlib.suppress(OSError):
        if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
            tempfile.tempdir = os.environ["TMPDIR"] = MEMORY

# started in the background by a shell: commands that are interrupted must notice
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_store_stays_open() -> Iterator[None]:
    """From 3.13 on Python tells of connections that nobody closes, in whatever test comes next."""
    yield
    close_in_memory()


@pytest.fixture(params=KINDS)
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    """Makes an empty store on a clock; only the last one made is in use."""
    return (
        sqlite_in_memory
        if request.param == "sqlite"
        else request.getfixturevalue("schemas").empty_store
    )


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Makes empty stores, and further connections to the last one."""
    if request.param == "postgres":
        yield request.getfixturevalue("schemas")
    else:
        files = SqliteFiles(tmp_path)
        yield files
        files.close()


@pytest.fixture(autouse=True)
def only_own_python_workflows(request: pytest.FixtureRequest) -> Iterator[None]:
    """Elsewhere than in tests/python, applications do not register the workflows of its modules."""
    known = default_workflows._workflows
    if "tests/python/" not in request.path.as_posix():
        default_workflows._workflows = {}
    yield
    default_workflows._workflows = known
