"""How the databases find what a filter asks for: along the index of one of its terms, never through a
large table, whatever they believe of their tables."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rhythm.filters import parse_filter
from rhythm.filters.fields import FIELDS
from rhythm.store import search
from rhythm.store.interfaces.operating import Selection
from rhythm.store.postgres.searching import as_given
from rhythm.store.search import POSTGRES, SQLITE, Dialect, Search
from rhythm.store.sqlite.store import SqliteStore
from tests.store.test_plans import STATES, Plans, full_file, plans, scans, steps_of

__all__ = ["full_file", "plans"]

# A filter, and the index along which it goes if everything is large.
ALONG = {
    "": "executions_newest",
    "status:failed": "executions_ill",
    "status:cancelled,blocked": "executions_ill",
    "status:pending": "executions_open",
    "status:suspended": "executions_open",
    "status:paused": "executions_held",
    "status:completed": "executions_newest",
    "workflow:name1": "executions_roots",
    "workflow:name1,name2": "executions_roots",
    "attr.customer=acme": "attributes_by_value|execution_attributes",
    "attr.n=5": "attributes_by_value|execution_attributes",
    "error:Timeout": "executions_errors",
    "started_by:anna": "executions_starters",
    "age>2h": "executions_newest",
    "created:2026-11-18": "executions_newest",
    "finished:2026-11-18": "executions_ended",
    "stuck>1h": "executions_open",
    # pairs
    "status:failed attr.customer=acme": "executions_ill",
    "status:failed workflow:name1": "executions_ill",
    "status:failed finished:2026-11-18": "executions_ended",
    "attr.customer=acme workflow:name1": "attributes_by_value|execution_attributes",
    "attr.customer=acme attr.n=5": "attributes_by_value|execution_attributes",
    "attr.customer=acme finished:2026-11-18": "executions_ended",
    "workflow:name1 age<2h": "executions_roots|executions_newest",
    "workflow:name1 status:running,pending": "executions_open",
    "error:Timeout workflow:name1 age<1d": "executions_errors",
    "queue:mail status:suspended": "executions_open",
    "version:1 workflow:name1": "executions_roots",
    "line:4 workflow:name1": "executions_roots",
    "-workflow:name1 status:failed": "executions_ill",
}
# What is sorted, and so goes along its index only where it finds few.
FEW = {
    "id:w1": "executions_pkey|sqlite_autoindex_executions_1",
    "key:w1": "executions_key",
    "status:running": "ready_claimed",
    "id:w1 status:completed": "executions_pkey|sqlite_autoindex_executions_1",
}
SCOPED = {"": "executions_roots", "attr.customer=acme": "attributes_by_value|execution_attributes"}


def asked(text: str, dialect: Dialect, names: tuple[str, ...] | None = None) -> Search:
    selection = Selection(parse_filter(text), names=names, lines=(("1", (3, 4)),))
    return Search(selection, dialect, 10**15, selection.order)


def statements(of: Search, few: bool) -> dict[str, str]:
    """The statements that a search may send, for the driver that it takes if all find many."""
    counts = [0 if few else search.ENOUGH] * len(of.drivers)
    driver = of.best(counts) if of.drivers else search._NEWEST
    made = {
        "first page": of.page(driver, descending=True, begins=False),
        "next page": of.page(driver, descending=True, begins=True),
        "oldest first": of.page(driver, descending=False, begins=True),
        "count": of.count(driver),
    }
    return made | ({"probe": of.probe()} if of.drivers else {})


CASES = [
    *((text, index, False, None) for text, index in ALONG.items()),
    *((text, index, True, None) for text, index in FEW.items()),
    *((text, index, False, ("name1", "name2")) for text, index in SCOPED.items()),
]
IDS = [f"{text or 'all'}{' in names' if names else ''}" for text, _, _, names in CASES]


def test_every_field_has_its_plan_asserted() -> None:
    tried = {term.field for text, *_ in CASES for term in parse_filter(text).terms}
    assert tried == FIELDS.keys()


# They are planned whenever they are asked, and so never when there were few rows.
STATES_NOW = [state for state in STATES if state != "planned when few"]


@pytest.mark.parametrize("plans", STATES_NOW, indirect=True)
@pytest.mark.parametrize(("text", "index", "few", "names"), CASES, ids=IDS)
def test_postgres_searches_along_the_index(
    plans: Plans, text: str, index: str, few: bool, names: tuple[str, ...] | None
) -> None:
    of = asked(text, POSTGRES, names)
    made = statements(of, few)
    values: dict[str, Any] = {**of.values, "limit": 10, "at": 10**15, "after": "w1"}
    for what, statement in made.items():
        given = as_given(statement)
        needed = {n: v for n, v in values.items() if re.search(rf"%\({n}\)".encode(), given)}
        plan = plans.of(typed(given, needed), needed)
        if what != "probe":  # which goes along the indexes of all terms
            assert re.search(rf"(using|Scan on) ({index})\b", plan), (what, plan)
        whole = [scan for scan in scans(plan) if scan not in ("r", "ready")]
        assert whole == [], (what, plan)


def typed(text: bytes, values: dict[str, Any]) -> bytes:
    """A statement that says of which types its values are, as the connection does."""
    for name, value in values.items():
        kind = {str: "text", int: "bigint", list: "text[]", float: "float8"}[type(value)]
        place = f"%({name})s"
        text = text.replace(f"{place}::text[]".encode(), place.encode())
        text = text.replace(place.encode(), f"{place}::{kind}".encode())
    return text


@pytest.mark.parametrize(("text", "index", "few", "names"), CASES, ids=IDS)
def test_sqlite_searches_along_the_index(
    full_file: SqliteStore, text: str, index: str, few: bool, names: tuple[str, ...] | None
) -> None:
    of = asked(text, SQLITE, names)
    values: dict[str, Any] = {"limit": 10, "at": 10**15, "after": "w1"}
    for what, statement in statements(of, few).items():
        steps = steps_of(full_file, statement, of.values | values)
        plan = "\n".join(steps)
        if what != "probe":
            assert re.search(index, plan) or "SEARCH a USING PRIMARY KEY" in plan, (what, plan)
        through = [
            step for step in steps if step.startswith("SCAN") and not re.match(MAY_SCAN, step)
        ]
        assert through == [], (what, plan)


# What other parts have made of few rows; and an index that is read in its order until a page is full.
MAY_SCAN = (
    r"SCAN (n|w|b|json_each|\w+ VIRTUAL TABLE|u|c|q\d|i|\(subquery|(\d+ )?CONSTANT ROW)\b"
    r"|SCAN n VIRTUAL|SCAN r USING (COVERING )?INDEX ready_claimed"
    r"|SCAN e USING (COVERING )?INDEX executions_(newest|open|held)"
)
