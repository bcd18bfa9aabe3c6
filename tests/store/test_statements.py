"""The statements of the `.sql` files and the code that names them: neither is there without the
other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rhythm.store
from rhythm.store.sqlfile import statements
from tests.support.stores import KINDS

STORES = Path(rhythm.store.__file__).parent


@pytest.mark.parametrize("kind", KINDS)
def test_every_statement_that_is_named_is_there_and_is_used(kind: str) -> None:
    code = "".join(path.read_text("utf-8") for path in (STORES / kind).glob("*.py"))
    calls = r'\.(?:all|one|first|count|do|batch|ask)\(\s*(?:\w+, )?"(\w+)"'
    named = {*re.findall(calls, code), *re.findall(r"""SQL\[["'](\w+)["']\]""", code)}
    files = sorted(path.name for path in (STORES / kind).glob("*.sql") if path.name != "doctor.sql")
    there = {name for file in files for name in statements(f"rhythm.store.{kind}", file)}
    assert named - there == set()
    assert {
        name for name in there - named if f'"{name}"' not in code and not name.startswith("prune_")
    } == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_statement_says_what_it_is_for(kind: str) -> None:
    for path in (STORES / kind).glob("*.sql"):
        parts = re.split(r"^-- name: (\w+)\n", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            purpose = text.partition("\n")[0]
            assert re.fullmatch(r"-- \S.{10,}", purpose), f"{path.name}, {name}: say what it is for"
            assert len(purpose) <= 100, f"{path.name}, {name}"


def test_what_is_said_for_readers_is_not_sent_to_the_database() -> None:
    for kind in KINDS:
        for path in (STORES / kind).glob("*.sql"):
            sent = statements(f"rhythm.store.{kind}", path.name).values()
            assert not [text for text in sent if re.search(r"^\s*--", text, re.MULTILINE)]
