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
    calls = r'(?:\.(?:all|do|batch)|\b_(?:all|one|count)|\b_first)\((?:\w+, )?\s*"(\w+)"'
    named = {*re.findall(calls, code), *re.findall(r"""SQL\[["'](\w+)["']\]""", code)}
    files = sorted(path.name for path in (STORES / kind).glob("*.sql") if path.name != "doctor.sql")
    there = {name for file in files for name in statements(f"rhythm.store.{kind}", file)}
    assert named - there == set()
    assert {
        name for name in there - named if f'"{name}"' not in code and not name.startswith("prune_")
    } == set()
