"""Rows become records by the names of their columns, and statements have the columns of records."""

from __future__ import annotations

import pytest

from rhythm.record import Record
from rhythm.store.columns import filled
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.messages import Mail
from rhythm.store.rows import (
    STORED,
    STORED_WITHOUT_BOOLEANS,
    Columns,
    Result,
    records,
    records_with,
)


class Item(Record):
    id: str
    held: bool
    roles: tuple[str, ...] = ()
    note: str = "none"


def result(names: str, *rows: tuple[object, ...], booleans: bool = True) -> Result:
    made = Result(rows)
    made.columns = Columns(names.split(), STORED if booleans else STORED_WITHOUT_BOOLEANS)
    return made


@pytest.mark.parametrize(
    ("names", "row"), [("id held note", ("a", True, "n")), ("note id held", ("n", "a", True))]
)
def test_order_of_the_columns_does_not_matter(names: str, row: tuple[object, ...]) -> None:
    assert records(Item, result(names, row)) == [Item("a", True, note="n")]


def test_field_without_a_column_has_its_default() -> None:
    assert records(Item, result("held id", (False, "a"))) == [Item("a", False)]


def test_field_is_made_of_what_stands_for_it_in_the_database() -> None:
    (item,) = records(Item, result("id held roles", ("a", 1, '["x", "y"]'), booleans=False))
    assert item == Item("a", True, ("x", "y"))
    assert item.held is True


def test_columns_beside_a_record_are_no_part_of_it() -> None:
    rows = result("id at held n", ("a", 7, True, 1))
    ((item, told),) = records_with(Item, rows, "n", "at")
    assert (item, told) == (Item("a", True), (1, 7))
    assert vars(item).keys() == {"id", "held"}
    assert records_with(Item, result("id held n", ("a", True, 1)), "n") == [(Item("a", True), 1)]


@pytest.mark.parametrize(
    ("names", "problem"),
    [("id", "held"), ("id held size", "size"), ("id held id", "id"), ("id held n m", "m")],
    ids=["missing", "unknown", "twice", "unknown beside others"],
)
def test_column_that_is_missing_or_unknown_is_an_error(names: str, problem: str) -> None:
    rows = result(names, (1,) * len(names.split()))
    with pytest.raises(TypeError, match=f"Item.* cannot be read from the columns .*: {problem}$"):
        records_with(Item, rows, "n") if "n" in names.split() else records(Item, rows)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT {Mail} FROM x", "SELECT id, name, payload, received_at FROM x"),
        (
            "{s.Mail but payload, name}, 1 AS name",
            "s.id AS id, s.received_at AS received_at, 1 AS name",
        ),
        ("VALUES ({:Mail})", "VALUES (:id, :name, :payload, :received_at)"),
        ("{$Mail but id, name, payload}", "json_extract(value, '$.received_at') AS received_at"),
        (
            "unnest({%Mail})",
            (
                "unnest(%(id)s::text[], %(name)s::text[], %(payload)s::text[], "
                "%(received_at)s::bigint[])"
            ),
        ),
        ("{%old_Mail but id, name}", "%(old_payload)s::text[], %(old_received_at)s::bigint[]"),
        (
            "SET {Mail = excluded but id, payload}",
            "SET name = excluded.name, received_at = excluded.received_at",
        ),
        ("""'{}' || '{"id":' || '}'""", """'{}' || '{"id":' || '}'"""),
    ],
)
def test_name_of_a_record_stands_for_its_columns(text: str, told: str) -> None:
    assert filled(text) == told


@pytest.mark.parametrize("text", ["{Nothing}", "{Mail but gone}"])
def test_name_that_stands_for_nothing_is_an_error(text: str) -> None:
    with pytest.raises(KeyError, match=r"Nothing|Mail has no column gone"):
        filled(text)


def test_record_of_a_row_is_a_value_like_any_other() -> None:
    (claim,) = records(
        Claim, result("crashes id kind queue fence wakes attempt", (1, "a", 0, "q", 5, 2, 3))
    )
    assert claim == Claim("a", 0, "q", 5, 2, 3, 1)
    assert claim.replace(id="b") == Claim("b", 0, "q", 5, 2, 3, 1)
    assert records(Mail, []) == []
