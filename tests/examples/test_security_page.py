"""docs/security.md is true: its roles are those of the code, its verifier verifies, and its acts
are those that are recorded."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import psycopg

from rhythm.app import Rhythm
from rhythm.app.tokens import SECRET
from rhythm.limits import TEXTS
from rhythm.permissions import PERMISSIONS, ROLES
from tests.examples.test_cli_page import plain
from tests.support import forked
from tests.support.postgres import Schemas

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_table_of_roles_is_that_of_the_code() -> None:
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith(("| perm", "| `")) and line.count("|") == 9
    ]
    assert table[0][2:] == list(ROLES)
    assert [(row[0].strip("`"), row[1]) for row in table[1:]] == list(PERMISSIONS.items())
    shown = {
        role: {row[0].strip("`") for row in table[1:] if row[2 + i]} for i, role in enumerate(ROLES)
    }
    assert shown == {role: set(held) for role, held in ROLES.items()}


def test_the_table_of_texts_is_that_of_the_code() -> None:
    section = PAGE.partition("## How long texts may be")[2].partition("\n## ")[0]
    shown = {
        name: int(number.replace(",", ""))
        for name, number in re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", section, re.MULTILINE)
    }
    assert shown == {name: getattr(TEXTS, name) for name in TEXTS._fields}


def test_the_pattern_of_secrets_is_that_of_the_code() -> None:
    assert SECRET.pattern.replace("(", "").replace(")", "") in PAGE


def test_every_kind_of_act_is_in_the_table() -> None:
    code = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src" / "rhythm").rglob("*.py")
    )
    recorded = {
        kind.split(".")[0] for kind in re.findall(r"""\b[aA]ct\(\s*f?"([a-z]+\.[a-z{])""", code)
    }
    assert {"token", "queue", "execution"} <= recorded
    assert recorded <= set(re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE))


def test_the_verifier_of_the_page_agrees_with_ours(tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)  # what the page tells its readers to run
    with Rhythm(f"sqlite:///{tmp_path / 'a.db'}", (), environment={}) as app:
        for i in range(3):
            app.pause_queue(f"q{i}", 'ünd \\ "so"\t\u2028', by="änn")
        rows = app.store.access.audit_after(0, 10)
    lines = [json.dumps(dict(zip(row._fields, row.astuple(), strict=True))) for row in rows]
    assert names["broken"](lines) == []
    assert names["broken"]([lines[0], lines[1].replace("q1", "q9"), lines[2]]) == [2]
    assert names["broken"]([lines[0], lines[2]]) == [3]


def test_commands_of_the_page_print_what_is_shown(tmp_path: Path) -> None:
    """But for secrets, times and the head of the audit."""
    session = "\n".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    found = re.findall(r"^\$ rhythm (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert len(found) == 3
    for command, shown in found:
        ran = forked.run(["-m", "rhythm", *shlex.split(command)], tmp_path)
        assert ran.returncode == 0, ran.stderr
        if shown.strip():
            said = re.sub(r"HEAD|\d+:[0-9a-f]+…", "HEAD", plain(ran.stderr + ran.stdout))
            assert said == re.sub(r"HEAD|\d+:[0-9a-f]+…", "HEAD", plain(shown)).rstrip() + "\n"


def test_forged_rows_are_removed_by_the_statements_of_the_page(schemas: Schemas) -> None:
    (statements,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    schemas.empty_store().close()
    with Rhythm(schemas.store_url, (), environment={}) as app:
        app.pause_queue("q", "why", by="ann")
        with psycopg.connect(schemas.url, autocommit=True) as db:
            db.execute(f"SET search_path TO {schemas.name}".encode())
            db.execute(statements.encode())
        assert app.verify_audit().intact
