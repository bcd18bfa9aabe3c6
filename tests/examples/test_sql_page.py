"""docs/sql.md is true: what it shows runs on the databases that it names.

Its tables and privileges are tested in `tests/store/test_views.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rhythm.store.interfaces.store import Store
from tests.examples.markdown import Block, blocks
from tests.support.postgres import Schemas
from tests.support.stores import KINDS, rows, sqlite_in_memory

BLOCKS = [(block, kind) for block in blocks("docs/sql.md") for kind in KINDS
          if block.language == "sql" and block.name in ("", kind)]  # fmt: skip


@pytest.fixture
def roles(schemas: Schemas) -> Iterator[None]:
    """The role of the page is there for no longer than its test."""
    yield
    if schemas.admin.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reporting'").fetchall():
        schemas.admin.execute(b"DROP OWNED BY reporting; DROP ROLE reporting")


@pytest.mark.parametrize(
    ("block", "kind"), BLOCKS, ids=[f"line {block.line}, {kind}" for block, kind in BLOCKS]
)
def test_block_runs(block: Block, kind: str, schemas: Schemas, roles: None) -> None:
    if kind == "sqlite":
        store: Store = sqlite_in_memory(lambda: 1_800_000_000_000_000)
        rows(store, block.text)
        return
    schemas.empty_store()
    text = block.text.replace("SCHEMA rhythm", f"SCHEMA {schemas.name}")
    text = text.replace("rhythm.rhythm_", f"{schemas.name}.rhythm_")
    schemas.admin.execute(f"SET search_path = {schemas.name}; {text}".encode())


def test_some_are_for_one_database_only() -> None:
    assert {block.name for block, _ in BLOCKS} == {"", "postgres", "sqlite"}
