"""The plugin of pytest: found by its entry point, with nothing to configure."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import psycopg
import pytest

from rhythm.store.open import open_store
from rhythm.store.postgres.store import PostgresStore
from rhythm.testing import Env

pytest_plugins = ["pytester"]

APP = """
import rhythm

@rhythm.task
async def greet(name: str) -> str:
    return f"Hello, {name}"

@rhythm.workflow
async def hello(name: str) -> str:
    await rhythm.sleep("365d")
    return await greet(name)
"""
TESTS = """
import os, pytest
from app import hello

def test_hello(env):
    assert env.run(hello, "Ann") == "Hello, Ann"

def test_flow(env):
    env.task("greet").returns("Hi")
    assert env.run("twice", {}) == "HiHi"

@pytest.mark.rhythm(database="sqlite")
def test_on_a_file(env):
    assert env.run(hello, "Ann") == "Hello, Ann"
    assert not os.path.exists("rhythm.db")

@pytest.mark.rhythm(database="postgresql")
def test_on_postgres(env):
    assert env.run(hello, "Ann") == "Hello, Ann"

def test_is_isolated(env):
    assert env.app.list().items == ()
"""
FLOW = 'workflow twice() {\n  let a = await task("greet", { name: "x" })\n  return a + a\n}\n'


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    (pytester.path / "workflows").mkdir()
    (pytester.path / "workflows" / "twice.flow").write_text(FLOW)
    pytester.makepyfile(app=APP, test_app=TESTS)
    monkeypatch.delenv("RHYTHM_TEST_DATABASE_URL", raising=False)
    return pytester.path


def test_it_is_an_entry_point() -> None:
    found = {point.name: point.value for point in entry_points(group="pytest11")}
    assert found["rhythm"] == "rhythm.testing.plugin"


def test_a_project_is_tested_without_configuration(
    project: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setenv("RHYTHM_TEST_DATABASE_URL", database_url)
    pytester.runpytest_subprocess("-q", "-W", "error", "--strict-markers").assert_outcomes(passed=5)


def test_without_a_server_a_test_on_postgres_says_what_to_set(
    project: Path, pytester: pytest.Pytester
) -> None:
    ran = pytester.runpytest_subprocess("-q", "-k", "postgres")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*set RHYTHM_TEST_DATABASE_URL=postgresql://*"])


def test_a_marker_with_a_bare_value_says_how_to_write_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\n@pytest.mark.rhythm('sqlite')\ndef test_it(env):\n    pass\n"
    )
    ran = pytester.runpytest_subprocess("-q")
    ran.stdout.fnmatch_lines(["*write pytest.mark.rhythm(database='sqlite'), by name*"])


def test_a_run_that_does_not_use_the_kit_does_not_import_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n\n\ndef test_it():\n"
        "    heavy = [name for name in sys.modules if name.startswith('rhythm.')]\n"
        "    assert sorted(heavy) == ['rhythm.testing', 'rhythm.testing.plugin']\n"
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_a_refusal_is_shown_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(env):\n    env.run('nothing')\n")
    ran = pytester.runpytest_subprocess("-q")
    ran.stdout.fnmatch_lines(["*UnknownWorkflow: there is no workflow `nothing`*"])
    ran.stdout.no_fnmatch_line("*testing?env.py*")
    pytester.runpytest_subprocess("-q", "--full-trace").stdout.fnmatch_lines(["*testing?env.py*"])


def test_a_url_with_a_driver_and_parameters_of_ours_leaves_no_schema(database_url: str) -> None:
    plain = open_store(database_url)
    assert isinstance(plain, PostgresStore)
    url = plain.db.url.replace("postgresql://", "postgresql+psycopg://", 1)
    with Env(f"{url}{'&' if '?' in url else '?'}schema=other&notify=off", workflow_paths=()) as env:
        store = env.app.store
        assert isinstance(store, PostgresStore)
        schema = store.db.schema
    with psycopg.connect(plain.db.url) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    plain.close()
    assert schema.startswith("rhythm_test_")
    assert not {(schema,), ("other",)} & {*found}
