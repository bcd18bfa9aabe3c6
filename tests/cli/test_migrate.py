"""`rhythm migrate`, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rhythm.store.sqlfile import migrations
from tests.cli.conftest import Shell
from tests.support.postgres import Schemas
from tests.support.stores import KINDS

NAMES = [name for _, name, _ in migrations("rhythm.store.sqlite")]
AT = f"the database is at schema {int(NAMES[-1][:4])}\n"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite:///new.db"
    else:
        schemas: Schemas = request.getfixturevalue("schemas")
        yield f"{schemas.url}&schema={schemas.name}_cli"
        schemas.admin.execute(f"DROP SCHEMA IF EXISTS {schemas.name}_cli CASCADE".encode())


def test_a_dry_run_says_what_would_run_and_touches_nothing(shell: Shell, url: str) -> None:
    for _ in range(2):
        assert shell.rhythm("migrate", "--dry-run", "--database", url).stdout == "".join(
            f"would run {name}\n" for name in NAMES
        )
    assert not (shell.folder / "new.db").exists()
    assert (
        shell.rhythm("migrate", RHYTHM_DATABASE_URL=url).stdout
        == "".join(f"ran {name}\n" for name in NAMES) + AT
    )
    assert shell.rhythm("migrate", "--dry-run", "--database", url).stdout == f"nothing to do: {AT}"
    assert shell.rhythm("migrate", "--database", url).stdout == AT


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("sqlite:////nowhere/x.db", ") WITHOUT ROWID;"),
        ("postgresql://nobody@127.0.0.1:1/none?schema=mine", 'SET LOCAL search_path = "mine";'),
    ],
)
def test_the_sql_is_printed_without_a_database(shell: Shell, url: str, line: str) -> None:
    lines = shell.rhythm("migrate", "--dump-sql", "--database", url).stdout.splitlines()
    assert (lines[:2], lines[-2]) == (["-- 0001_initial", "BEGIN;"], "COMMIT;")
    assert line in lines


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/x.db", "postgresql://nobody@127.0.0.1:1/none", "mysql://x"]
)
def test_a_database_that_cannot_be_opened_is_one_line_and_exit_code_2(
    shell: Shell, url: str
) -> None:
    ran = shell.rhythm("migrate", "--database", url)
    assert (ran.returncode, ran.stdout, ran.stderr[:8]) == (2, "", "rhythm: ")
    assert "Traceback" not in ran.stderr


def test_the_settings_of_the_folder_say_which_database_is_meant(shell: Shell) -> None:
    shell.write("rhythm.toml", 'database_url = "sqlite:///of-the-file.db"\n')
    assert shell.rhythm("migrate").returncode == 0
    assert (shell.folder / "of-the-file.db").exists()
    assert shell.rhythm("doctor").returncode == 0
    shell.write("rhythm.toml", "databse_url = 1\n")
    for command in ("migrate", "doctor"):
        ran = shell.rhythm(command)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr == (
            "rhythm: there is no setting `databse_url` (rhythm.toml); did you mean "
            "`database_url`?\n"
        )
