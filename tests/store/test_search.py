"""Searches find what a filter means, whichever index they go along: each is compared with reading
everything, on every database."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from rhythm.filters import ExecutionFilter, FilterError, Term, parse_filter
from rhythm.filters.fields import FIELDS, STATUSES, refuse_without_index
from rhythm.limits import TEXTS
from rhythm.store import search
from rhythm.store.interfaces.executions import Execution, NewExecution
from rhythm.store.interfaces.operating import Selection
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import NewTimer
from rhythm.store.lifecycle import COMPLETED, PAUSED, SUSPENDED
from rhythm.store.postgres.connection import NAMED as POSTGRES_NAMED
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.postgres.wire import statement_of
from rhythm.store.sqlite.session import NAMED as SQLITE_NAMED
from tests.store.test_conformance import (
    NOW,
    TTL,
    Clock,
    begun,
    claims,
    outcome,
    task,
    turn,
    workflow,
)
from tests.support.length import sampled
from tests.support.stores import Stores, rows

COUNT = 60
S, H = 1_000_000, 3_600_000_000
NAMES = ("order", "order line", "refund")
ATTRIBUTES: tuple[dict[str, Any], ...] = (
    {},
    {"customer": "acme", "n": 5},
    {"customer": "acme", "n": 5.5, "vip": True},
    {"customer": 'q"u\\o\n,te', "n": "5", "vip": "true"},
    {"customer": "", "list": [1], "none": None},
    {"customer": "x" * (TEXTS.searched_bytes - 2), "n": 1e16},
    {"customer": "x" * (TEXTS.searched_bytes - 1), 'odd "name"': -0.25},
)
ENDS = {5: "completed", 6: "failed", 7: "cancelled", 8: "blocked"}
KEYS = (None, "invoice-1", "invoice-2", "person:" + "a" * 64)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


class Known(dict[str, Any]):
    """What the test itself has given an execution, by its id."""


def filled(store: Store, clock: Clock, seed: int) -> Known:
    """Roots of every kind, each with a task, in an order that nothing depends on."""
    draw, known = random.Random(seed), Known()
    for n in range(COUNT):
        id = f"{draw.choice(('ord', 'or', 'z'))}-{n:02}"
        name = draw.choice(NAMES)
        key = None if (key := draw.choice(KEYS)) is None else f"{key}{n if len(key) < 71 else ''}"
        new = workflow(
            id,
            name=f"{name}{n}" if key and len(key) == 71 else name,
            queue=draw.choice(("default", "mail")),
            version=draw.choice("12"),
            attributes=json.dumps(draw.choice(ATTRIBUTES)),
            key=key,
            started_by=draw.choice((None, "anna", "schedule:nightly")),
        )
        store.executions.start([new])
        known[id] = new
        clock.forward(draw.choice((0, 1, 3600)))
    claimed = {claim.id for claim in store.claims.claim("a", ["mail"], 6, TTL)}
    for n, id in enumerate(known):
        child = task(f"{id}.1", attributes='{"customer":"acme"}')
        if id not in claimed:
            end_somehow(store, draw, id, n, clock())
        store.executions.start([child])
    return known


def end_somehow(store: Store, draw: random.Random, id: str, n: int, now: int) -> None:
    status = (0, 1, 2, 5, 6, 6, 7, 8)[n % 8]
    if status in ENDS:
        code = draw.choice(("Timeout", "Payment: declined", "é"))
        error = json.dumps({"code": code, "message": "m"}, ensure_ascii=False)
        values = [status, now - draw.choice((0, 60 * S, 30 * H)), error if status > 5 else None, id]
        text = "UPDATE executions SET status = ?, finished_at = ?, error = ? WHERE id = ?"
        rows(store, text, values)
        rows(store, "DELETE FROM ready WHERE id = ?", [id])
    else:
        paused_at = draw.choice((None, None, now)) if n > COUNT // 2 else None
        text = "UPDATE executions SET status = ?, paused_at = ? WHERE id = ?"
        if paused_at is None:
            rows(store, "UPDATE executions SET status = ? WHERE id = ?", [status, id])
        else:
            rows(store, text, [status, paused_at, id])


def meets(term: Term, row: Execution, new: NewExecution, now: int) -> bool:
    """What a term means, said once more, without an index."""
    values, us = term.values, term.us
    match term.field:
        case "status":
            found = row.status in values
        case "workflow":
            found = row.name in values
        case "queue" | "version" | "started_by":
            found = getattr(row, term.field) in values
        case "error":
            found = row.error is not None and json.loads(row.error)["code"] in values
        case "attr":
            given = json.loads(new.attributes)
            value = given.get(term.name, [])
            size = len(json.dumps(value, ensure_ascii=False).encode())
            plain = not isinstance(value, list) and size <= TEXTS.searched_bytes
            found = plain and any(reads_as(value, text) for text in values)
        case "id":
            found = row.id.startswith(values)
        case "key":
            found = new.key is not None and len(new.key) < 71 and new.key.startswith(values)
        case "age":
            ago = now - us
            found = row.created_at < ago if term.op == "over" else row.created_at > ago
        case _:
            at = row.created_at if term.field == "created" else row.finished_at
            found = (
                at is not None
                and (term.after is None or at >= term.after)
                and (term.before is None or at < term.before)
            )
    return found is not term.negative


def reads_as(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return value == text
    try:
        asked = json.loads(text)
    except ValueError:
        return False
    return type(asked) in (int, float, bool, type(None)) and (
        asked == value and isinstance(asked, bool) is isinstance(value, bool)
    )


TERMS: tuple[str, ...] = (
    *(f"status:{status}" for status in STATUSES),
    "status:failed,cancelled", "status:paused,suspended,running", "-status:completed",
    "-status:failed,completed", "status:completed,failed",
    "workflow:order", 'workflow:"order line",refund', "workflow:nothing", "-workflow:order",
    "queue:mail", "-queue:mail", "version:1", "version:1,2", "-version:2",
    "started_by:anna", "started_by:schedule:nightly,anna", "-started_by:anna",
    "error:Timeout", 'error:"Payment: declined",é', "-error:Timeout",
    "attr.customer=acme", "attr.n=5", "attr.n=5.0", "attr.n=5.5,5", "attr.vip=true",
    'attr.customer=""', 'attr.none=null', 'attr.list="[1]"', "-attr.customer=acme",
    'attr."odd \\"name\\""=-0.25', "attr.n=10000000000000000,acme",
    "id:ord-", "id:or,ord", "id:z-1,z-2", "id:none", "key:invoice-", "key:invoice-1,invoice-2",
    "key:person:",
    "age>2h", "age<2h", "age>0s", "created:2027-01-15", "created:..2027-01-16",
    "finished:2027-01-15..", "finished:..2027-01-15", "finished:2027-01-15T08:00Z..2027-01-16",
)  # fmt: skip


def drawn(seed: int) -> Iterator[ExecutionFilter]:
    """Every term alone, and filters of several of them."""
    draw = random.Random(seed)
    for text in TERMS:
        yield parse_filter(text)
    for _ in range(sampled(60, 600)):
        terms = [parse_filter(text).terms[0] for text in draw.sample(TERMS, draw.choice((2, 3)))]
        yield ExecutionFilter(tuple({(t.field, t.name, t.negative): t for t in terms}.values()))
    odd = Term("attr", values=('q"u\\o\n,te',), name="customer")
    yield ExecutionFilter((odd,))
    yield ExecutionFilter((odd.replace(values=("x" * (TEXTS.searched_bytes - 2),)),))


@pytest.mark.parametrize("enough", [search.ENOUGH, 3], ids=["few rows", "many rows"])
@pytest.mark.parametrize("seed", range(sampled(1, 8)))
def test_search_finds_what_reading_everything_finds(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, seed: int, enough: int
) -> None:
    monkeypatch.setattr(search, "ENOUGH", enough)
    known = filled(store, clock, seed)
    everything = store.reading.find(None, None, None, 1000)
    assert {row.id for row in everything} == known.keys()
    assert {row.status for row in everything} == set(STATUSES)
    draw = random.Random(seed)
    for wanted in drawn(seed):
        names = draw.choice((None, None, ("order", "refund"), ()))
        found = [
            row
            for row in everything
            if all(meets(term, row, known[row.id], clock()) for term in wanted.terms)
            and (names is None or row.name in names)
        ]
        selection = Selection(wanted, names=names)
        said = f"{wanted} in {names}"
        newest = sorted((place(row, selection) for row in found), reverse=True)
        assert pages(store, selection) == newest, said
        assert store.operating.count(selection)[0] == len(found), said
        oldest = sorted((row.created_at, row.id) for row in found)
        assert bulk_pages(store, selection) == oldest, said


def place(row: Execution, selection: Selection) -> tuple[int, str]:
    at = row.created_at if selection.order == "created" else row.finished_at
    assert at is not None
    return at, row.id


def pages(store: Store, selection: Selection) -> list[tuple[int, str]]:
    made, before = list[tuple[int, str]](), None
    while page := store.reading.search(selection, before, 7, brief=True):
        made += (place(row, selection) for row in page)
        before = made[-1]
    return made


def bulk_pages(store: Store, selection: Selection) -> list[tuple[int, str]]:
    made, after = list[tuple[int, str]](), (-1, "")
    while page := store.operating.select(selection, after, 11):
        made += page
        after = made[-1]
    return made


def test_every_field_is_searched_for_by_the_test(store: Store) -> None:
    tried = {term.field for text in TERMS for term in parse_filter(text).terms}
    assert FIELDS.keys() - tried == {"stuck", "line"}  # these have tests of their own


def test_what_no_index_answers_is_never_searched_for_alone() -> None:
    for text in TERMS:
        wanted = parse_filter(text)
        if not search.Search(Selection(wanted), search.SQLITE, NOW, "created").drivers:
            with_completed = wanted.of("status")
            if with_completed is None and wanted.of("status", negative=True) is None:
                with pytest.raises(FilterError):
                    refuse_without_index(wanted)


def indexed(store: Store) -> list[tuple[str, str, str]]:
    text = "SELECT execution_id, name, value FROM execution_attributes ORDER BY 1, 2"
    return [tuple(row) for row in rows(store, text)]


def found(store: Store, text: str, clock: Clock | None = None) -> list[str]:
    return [row.id for row in store.reading.search(Selection(parse_filter(text)), None, 99)]


def test_attributes_are_searched_for_as_they_are_now(store: Store, clock: Clock) -> None:
    store.executions.start([workflow("w", attributes='{"customer":"acme","n":1}'), workflow("v")])
    claim = claims(store)["w"]
    assert found(store, "attr.customer=acme") == ["w"]
    assert outcome(store, turn(claim, attributes='{"customer":"bolt","new":true}')) == "parked"
    assert found(store, "attr.customer=acme") == []
    assert found(store, "attr.customer=bolt attr.n=1 attr.new=true") == ["w"]
    assert indexed(store) == [("w", "customer", '"bolt"'), ("w", "n", "1"), ("w", "new", "true")]


def test_attributes_of_children_are_not_searched_for(store: Store) -> None:
    child = workflow("w.1", parent_id="w", child_no=1, root_id="w", attributes='{"a":1}')
    outcome(store, turn(begun(store, "w"), starts=(child,)))
    outcome(store, turn(claims(store)["w.1"], attributes='{"b":2}'))
    assert indexed(store) == []


def test_starts_that_differ_in_their_inputs_only_have_attributes_too(store: Store) -> None:
    ids = {f"w{n:03}": "1" for n in range(300)}
    store.executions.start_alike(workflow(attributes='{"customer":"acme"}'), ids)
    store.executions.start_alike(task(""), {"t": "1"})
    assert len(indexed(store)) == 300
    assert store.operating.count(Selection(parse_filter("attr.customer=acme")))[0] == 300


def test_second_start_of_the_same_id_changes_no_attributes(store: Store) -> None:
    store.executions.start([workflow("w", attributes='{"a":1}')])
    store.executions.start([workflow("w", attributes='{"a":2}'), workflow("v", attributes="{}")])
    assert indexed(store) == [("w", "a", "1")]


def test_retry_has_the_attributes_and_pruning_takes_them(store: Store, clock: Clock) -> None:
    store.executions.start([workflow("w", attributes='{"a":"x"}')])
    outcome(store, turn(claims(store)["w"], end="finish", status=COMPLETED))
    retried = store.executions.retry(
        "w",
        lambda family: family.replace(
            executions=(
                family.executions[0].replace(
                    id="r", root_id="r", status=0, finished_at=None, retry_of="w", awaiting="null"
                ),
            )
        ),
        whole=False,
    )
    assert retried is not None
    assert sorted(found(store, "attr.a=x")) == ["r", "w"]
    rows(store, "UPDATE executions SET status = 5, finished_at = 1 WHERE id = 'r'")
    clock.forward(10)
    assert store.maintenance.prune(1.0, 10) == 2
    assert indexed(store) == []


@pytest.mark.parametrize("enough", [search.ENOUGH, 0])
def test_page_of_a_filter_asks_a_fixed_number_of_times(
    store: Store, monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    """It reads no more than a page of rows, however many there are."""
    monkeypatch.setattr(search, "ENOUGH", enough)
    ids = {f"w{n:03}": "1" for n in range(200)}
    store.executions.start_alike(workflow(attributes='{"a":1}'), ids)
    asked: list[int] = []
    page = search.ids_of_page

    def counted(ask: Any, *args: Any) -> Any:
        def one(text: str, values: Any) -> Any:
            got = ask(text, values)
            asked.append(len(got))
            return got

        return page(one, *args)

    module = __import__(type(store.reading).__module__, fromlist=["ids_of_page"])
    monkeypatch.setattr(module, "ids_of_page", counted)
    assert (
        len(store.reading.search(Selection(parse_filter("attr.a=1 workflow:main")), None, 5)) == 5
    )
    assert asked == [1, 5]


# stuck


def stuck(store: Store, text: str = "stuck>1h") -> list[str]:
    return sorted(found(store, text))


def test_waiting_for_nothing_that_has_a_time_is_stuck(store: Store, clock: Clock) -> None:
    outcome(store, turn(begun(store, "signal"), status=SUSPENDED))
    outcome(store, turn(begun(store, "approval"), status=PAUSED))
    sleeps = NewTimer(1, 3 * 3600.0, None)
    outcome(store, turn(begun(store, "sleeps"), status=SUSPENDED, timers=(sleeps,)))
    clock.forward(3600)
    assert stuck(store) == [], "not yet"
    clock.forward(1)
    assert stuck(store) == ["approval", "signal"]
    assert stuck(store, "stuck>2h") == []
    assert stuck(store, "stuck>1h status:paused") == ["approval"]


def test_what_nobody_claims_is_stuck_and_what_is_claimed_is_not(store: Store, clock: Clock) -> None:
    store.executions.start([workflow("new"), task("task"), workflow("later", delay_s=9e4)])
    store.executions.start([workflow("run", queue="mail"), task("held", queue="mail")])
    claims(store, queues=("mail",))
    clock.forward(3601)
    assert stuck(store) == ["new", "task"]
    rows(store, "UPDATE executions SET status = 7, finished_at = 1 WHERE id = 'new'")
    assert stuck(store) == ["task"]


def test_task_that_is_tried_again_and_again_is_stuck(store: Store, clock: Clock) -> None:
    store.executions.start([task("old", max_attempts=9), task("new", max_attempts=9)])
    text = "UPDATE ready SET state = 2, due_at = ?, attempt = 3 WHERE id = ?"
    for id, started in (("old", NOW), ("new", NOW + 1800 * S)):
        rows(store, text, [NOW + 9 * H, id])
        rows(store, "UPDATE executions SET started_at = ? WHERE id = ?", [started, id])
    clock.forward(3601)
    assert stuck(store) == ["old"]


def test_family_of_which_anything_moves_is_not_stuck(store: Store, clock: Clock) -> None:
    for id in ("sleeps", "works", "waits", "turns"):
        child = workflow(f"{id}.1", parent_id=id, child_no=1, root_id=id, queue=id)
        outcome(store, turn(begun(store, id), status=SUSPENDED, starts=(child,)))
    store.executions.start([workflow("sleeps-too", queue="none")])  # an id that begins alike
    timers = (NewTimer(1, 9 * 3600.0, None),)
    sleeping = claims(store, queues=("sleeps",))["sleeps.1"]
    outcome(store, turn(sleeping, status=SUSPENDED, timers=timers))
    outcome(store, turn(claims(store, queues=("waits",))["waits.1"], status=SUSPENDED))
    clock.forward(1800)
    outcome(store, turn(claims(store, queues=("turns",))["turns.1"], status=SUSPENDED))
    clock.forward(1801)
    claims(store, queues=("works",))
    assert stuck(store) == ["sleeps-too", "waits"]


# lines


def test_line_is_that_of_the_statement_of_its_version(store: Store) -> None:
    for id, version, statement in (("a", "1", 3), ("b", "1", 4), ("c", "2", 3), ("d", "2", 5)):
        outcome(store, turn(begun(store, id, version=version), status=SUSPENDED))
        text = "UPDATE workflow_execution_context SET statement = ? WHERE execution_id = ?"
        rows(store, text, [statement, id])
    wanted = parse_filter("workflow:main line:7")
    lines = (("1", (3,)), ("2", (5, 6)), ("0", ()))
    selection = Selection(wanted, lines=lines)
    assert sorted(row.id for row in store.reading.search(selection, None, 9)) == ["a", "d"]
    assert store.operating.count(Selection(wanted))[0] == 0, "a line that no version has"


def test_statements_of_searches_displace_none_of_the_workers(store: Store) -> None:
    """They have as many forms as there are filters: none is kept, nor prepared on the server."""
    for text in (*TERMS[:3], "finished:2027-01-15"):  # the statements that are always the same
        found(store, text)
        store.operating.count(Selection(parse_filter(text)))
    prepared, known = prepared_statements(store), statement_of.cache_info().currsize
    columns = len(SQLITE_NAMED._columns), len(POSTGRES_NAMED._columns)
    for text in TERMS:
        found(store, f"{text} attr.other=1")
        store.operating.count(Selection(parse_filter(text)))
    assert (len(SQLITE_NAMED._columns), len(POSTGRES_NAMED._columns)) == columns
    assert (statement_of.cache_info().currsize, prepared_statements(store)) == (known, prepared)


def prepared_statements(store: Store) -> int:
    text = "SELECT count(*) FROM pg_prepared_statements WHERE statement NOT LIKE '%%prepared_st%%'"
    return rows(store, text)[0][0] if isinstance(store, PostgresStore) else 0
