"""Statements over rows that get one row, and have values in place of arrays then."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from rhythm.store.postgres.connection import SQL, statement_with
from rhythm.store.postgres.single import OFTEN_SINGLE, for_single_rows
from rhythm.store.postgres.wire import Wire, bind
from tests.support.postgres import Schemas

TWO = (
    b"SELECT x.id, x.n, d.t FROM unnest(%(id)b::text[], %(n)b::bigint[]) AS x(id, n) "
    b"LEFT JOIN unnest(%(t)b::text[]) AS d(t) ON true"
)
ROWS: list[dict[str, list[Any]]] = [
    {"id": ["a"], "n": [1], "t": ["x"]},
    {"id": ["a"], "n": [None], "t": []},
    {"id": ["a", "b"], "n": [1, 2], "t": ["x"]},
    {"id": ["a"], "n": [1], "t": ["x", None]},
    {"id": [], "n": [], "t": ["x"]},
]


@pytest.mark.parametrize("values", ROWS)
def test_the_answer_is_that_of_the_arrays(schemas: Schemas, values: dict[str, list[Any]]) -> None:
    with psycopg.connect(schemas.url, autocommit=True) as session:
        wire = Wire(session, prepares=True)
        [arrays] = wire.exchange([bind(TWO, values)], 10.0)
        text, given = for_single_rows(TWO, values)
        [single] = wire.exchange([bind(text, given)], 10.0)
    assert single.rows == arrays.rows
    ones = [len(column) == 1 for column in (values["id"], values["t"])]
    assert text.count(b"unnest") == ones.count(False)


@pytest.mark.parametrize("name", sorted(OFTEN_SINGLE))
def test_every_array_of_a_hot_statement_is_replaced(name: str) -> None:
    """One that stands elsewhere, too, would be given a value in place of its array there."""
    assert b"unnest" in SQL[name]
    arrays = {each.decode() for each in _arrays(SQL[name])}
    text, values = statement_with(name, {each: ["1"] for each in arrays})
    assert not _arrays(text)
    assert values == dict.fromkeys(arrays, "1")


def _arrays(text: bytes) -> list[bytes]:
    """The names of the values that are arrays."""
    return re.findall(rb"%\((\w+)\)b::\w+\[\]", text)
