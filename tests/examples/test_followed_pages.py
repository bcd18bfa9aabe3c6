"""Pages that people follow from top to bottom do what they show: the tutorial, the how-tos, and
what explains by example."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from rhythm.settings import load_settings
from tests.examples.markdown import pages, text_of
from tests.examples.reader import Reader
from tests.examples.test_all_pages import followed, problem_with

SERVER = "postgresql://localhost/shop"  # what pages call the database of the reader
QUICKER = {"time.sleep(20)": "time.sleep(3)"}  # people need more time to kill something than we do
ROLES = ("shop_owner", "shop_app")  # users that pages make there


@pytest.fixture
def own_database(database_url: str) -> Iterator[str]:
    """The URL of an empty database on the server of the tests."""
    name = f"page_{os.getpid()}"
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        yield url_of(database_url, database=name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        for role in ROLES:
            admin.execute(f"DROP ROLE IF EXISTS {role}".encode())


def url_of(url: str, *, user: str = "", database: str = "") -> str:
    """The URL with another user or another database."""
    parts = urlsplit(url)
    place = f"{user}@{parts.netloc.rpartition('@')[2]}" if user else parts.netloc
    return urlunsplit(parts._replace(netloc=place, path=f"/{database}" if database else parts.path))


@pytest.mark.parametrize("page", [page for page in pages() if followed(page)])
def test_everything_the_page_shows_happens(
    page: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    reader = Reader(tmp_path / "folder")
    reader.instead = dict(QUICKER)
    if SERVER in text_of(page):
        url = request.getfixturevalue("own_database")
        reader.instead |= {
            SERVER.replace("//", f"//{user}@"): url_of(url, user=user) for user in ROLES
        } | {SERVER: url}
    reader.follow(page, CHECKS)


def unit_is_understood(unit: Path) -> None:
    """By systemd itself, where there is one. The program is ours, since the page's is not here."""
    text, changed = re.subn(r"/opt/shop/.venv/bin/rhythm", "/bin/echo", unit.read_text())
    assert changed == 1
    assert [
        problem_with(line) for line in re.findall(r"ExecStart=\S*/(rhythm .*)", unit.read_text())
    ] == [""]
    unit.write_text(text)
    if verify := shutil.which("systemd-analyze"):
        ran = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True)
        assert unit.name not in ran.stderr, ran.stderr


def container_file_is_understood(file: Path) -> None:
    """Nothing is built here: its instructions are known, and its command exists."""
    lines = re.sub(r"\\\n", " ", file.read_text()).strip().splitlines()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "STOPSIGNAL", "CMD", "EXPOSE"}
    assert {line.split()[0] for line in lines} <= known
    (command,) = [json.loads(line.removeprefix("CMD")) for line in lines if line.startswith("CMD")]
    assert problem_with(shlex.join(command)) == ""
    for line in lines:
        if line.startswith("ENV RHYTHM_"):
            name, _, value = line.removeprefix("ENV ").partition("=")
            assert load_settings({}, {name: value}, str(file.parent)).sources


CHECKS = {".service": unit_is_understood, "Dockerfile": container_file_is_understood}
