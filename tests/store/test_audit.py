"""The audit: one chain, whoever writes at once, and whatever is changed in it is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rhythm.errors import StoreError
from rhythm.store.access import PAGE, Act, Actor, AuditRow, Filter, Grant, Head
from rhythm.store.base import WORKFLOW, NewExecution, Store
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from tests.support.postgres import Schemas
from tests.support.stores import Stores, rows

NOW = 1_800_000_000_000_000
ANN = Actor("ann", source="cli")


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.empty_store(lambda: NOW)


def within(store: Store, work: Callable[[], Any]) -> Any:
    """In a transaction of the store."""
    if isinstance(store, PostgresStore):
        return store.db.transaction(work)
    assert isinstance(store, SqliteStore)
    with store._transaction():
        return work()


def act(store: Any, *objects: str, actor: Actor | None = ANN) -> None:
    within(store, lambda: store._audit(actor, [Act("test.act", name, '{"why": "ümläut \\" \\\\ \\n"}') for name in objects], NOW))


def chain(store: Store) -> list[AuditRow]:
    return store.audit_after(0, 1000)


def test_acts_form_one_chain(store: Store) -> None:
    act(store, "a", "b")
    act(store, "c")
    written = chain(store)
    assert [row.object for row in written] == ["a", "b", "c"]
    assert [row.n for row in written] == [1, 2, 3]
    assert [row.prev for row in written] == ["0" * 64, written[0].hash, written[1].hash]
    assert all(row.hash == row.computed for row in written)
    assert rows(store, "SELECT n, hash FROM audit_head") == [(3, written[2].hash)]


def test_the_hash_of_a_row_never_changes_its_meaning() -> None:
    row = AuditRow(1, NOW, "änn", None, "cli", "queue.pause", "mail", '{"reason":"x\\ny"}', "0" * 64, "")
    assert row.computed == "b89c31e95cb671434f3e5e1022caae681154c0fc15ef86c3d39c68facb14446c"


def test_what_nobody_asked_for_is_not_recorded(store: Store) -> None:
    act(store, "a", actor=None)
    act(store)
    assert chain(store) == []


def test_an_act_that_is_undone_leaves_no_row(store: Store) -> None:
    act(store, "a")

    def fail() -> None:
        store._audit(ANN, [Act("test.act", "b")], NOW)  # type: ignore[attr-defined]  # of both databases
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        within(store, fail)
    act(store, "c")
    assert [(row.n, row.object) for row in chain(store)] == [(1, "a"), (2, "c")]


def test_many_writers_at_once_make_one_chain(stores: Stores, store: Store) -> None:
    others = [stores.store(lambda: NOW) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda other=other, i=i: [act(other, f"{i}.{j}.a", f"{i}.{j}.b") for j in range(10)])
        for i, other in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = chain(store)
    assert sorted(row.object for row in written) == sorted(f"{i}.{j}.{k}" for i in range(4) for j in range(10) for k in "ab")
    assert [row.n for row in written] == list(range(1, 81))
    assert [row.prev for row in written[1:]] == [row.hash for row in written[:-1]]
    assert all(row.hash == row.computed for row in written)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE audit SET actor = 'bob'",
        "DELETE FROM audit WHERE n = 1",
        "TRUNCATE audit",
        "UPDATE audit_head SET n = n - 1",
        "UPDATE audit_head SET hash = ''",
        "DELETE FROM audit_head",
    ],
)
def test_rows_cannot_be_changed_or_deleted(store: Store, text: str) -> None:
    act(store, "a", "b")
    if isinstance(store, SqliteStore) and text == "TRUNCATE audit":
        text = "DELETE FROM audit"
    before = chain(store)
    with pytest.raises(Exception, match="rows of audit are only ever added") as refused:
        rows(store, text)
    assert not isinstance(store, PostgresStore) or isinstance(refused.value, StoreError)
    assert (chain(store), store.verify_audit()) == (before, (Head(2, before[1].hash), []))


@pytest.mark.parametrize(
    "text",
    [
        "INSERT OR REPLACE INTO audit SELECT n, at, 'bob', token, source, action, object, detail, prev, hash FROM audit WHERE n = 1",
        "INSERT OR REPLACE INTO audit_head SELECT one, n + 1, hash FROM audit_head",
    ],
)
def test_rows_cannot_be_replaced(store: Store, text: str) -> None:
    if isinstance(store, PostgresStore):  # which has no such statement: ON CONFLICT DO UPDATE is an update
        text = text.replace("OR REPLACE ", "") + f" ON CONFLICT ({'one' if 'one' in text else 'n'}) DO UPDATE SET hash = ''"
    act(store, "a", "b")
    before = chain(store)
    with pytest.raises(Exception, match="rows of audit are only ever added"):
        rows(store, text)
    assert (chain(store), store.verify_audit()) == (before, (Head(2, before[1].hash), []))


@contextmanager
def unguarded(store: Store) -> Iterator[None]:
    """For one who may take the triggers away."""
    if isinstance(store, SqliteStore):
        for (name,) in rows(store, "SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            rows(store, f"DROP TRIGGER {name}")
        yield
        return
    for table in ("audit", "audit_head"):
        rows(store, f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    for table in ("audit", "audit_head"):
        rows(store, f"ALTER TABLE {table} ENABLE TRIGGER USER")


def insert(store: Store, row: AuditRow) -> None:
    rows(store, f"INSERT INTO audit ({', '.join(AuditRow._fields)}) VALUES ({', '.join('?' * 10)})", row.astuple())


def move(store: Store, n: int, hash: str) -> None:
    rows(store, "UPDATE audit_head SET n = ?, hash = ?", [n, hash])


def change_one(store: Store, written: list[AuditRow]) -> None:
    rows(store, "UPDATE audit SET actor = 'bob' WHERE n = 2")


def change_one_and_its_hash(store: Store, written: list[AuditRow]) -> None:
    row = written[1].replace(actor="bob")
    rows(store, "UPDATE audit SET actor = 'bob', hash = ? WHERE n = 2", [row.computed])


def delete_one(store: Store, written: list[AuditRow]) -> None:
    rows(store, "DELETE FROM audit WHERE n = 2")


def delete_the_first(store: Store, written: list[AuditRow]) -> None:
    rows(store, "DELETE FROM audit WHERE n = 1")


def delete_the_last(store: Store, written: list[AuditRow]) -> None:
    rows(store, "DELETE FROM audit WHERE n = 4")


def delete_all(store: Store, written: list[AuditRow]) -> None:
    rows(store, "DELETE FROM audit")


def put_one_between(store: Store, written: list[AuditRow]) -> None:
    rows(store, "UPDATE audit SET n = n + 100 WHERE n > 2")
    rows(store, "UPDATE audit SET n = n - 99 WHERE n > 100")
    row = written[1].replace(n=3, prev=written[1].hash)
    insert(store, row.replace(hash=row.computed))


def add_one(store: Store, written: list[AuditRow]) -> None:
    row = written[3].replace(n=5, prev=written[3].hash)
    insert(store, row.replace(hash=row.computed))


DAMAGES: dict[Callable[[Store, list[AuditRow]], None], list[tuple[int, str]]] = {
    change_one: [(2, "row 2 was changed after it was written")],
    change_one_and_its_hash: [(3, "row 3 does not follow the row before it: one of the two is not what it was")],
    delete_one: [(3, "row 2 is gone"), (3, "row 3 does not follow the row before it: one of the two is not what it was")],
    delete_the_first: [(2, "row 1 is gone"), (2, "row 2 does not follow the row before it: one of the two is not what it was")],
    delete_the_last: [(4, "the chain ends with row 3, but 4 were written: the last ones are gone")],
    delete_all: [(1, "the chain ends with row 0, but 4 were written: the last ones are gone")],
    put_one_between: [
        (4, "row 4 does not follow the row before it: one of the two is not what it was"),
        (4, "row 4 was changed after it was written"),
        (5, "row 5 was changed after it was written"),
        (5, "only 4 were written, but the chain goes on to row 5: somebody has added to it"),
    ],
    add_one: [(5, "only 4 were written, but the chain goes on to row 5: somebody has added to it")],
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_whatever_is_changed_in_the_chain_is_found(store: Store, damage: Callable[[Store, list[AuditRow]], None]) -> None:
    act(store, "a", "b")
    act(store, "c", "d")
    written = chain(store)
    assert store.verify_audit() == (Head(4, written[3].hash), [])
    with unguarded(store):
        damage(store, written)
    assert store.verify_audit()[1] == DAMAGES[damage]
    found = [finding for finding in store.check(0.0) if finding.rule == "audit_chained"]
    assert sorted((finding.subject, finding.message) for finding in found) == sorted((f"row {n}", text) for n, text in DAMAGES[damage])


def test_a_chain_that_is_cut_with_its_head_is_found_by_whoever_has_kept_the_head(store: Store) -> None:
    act(store, "a", "b", "c")
    known = store.verify_audit()[0]
    act(store, "d")
    written = chain(store)
    assert store.verify_audit(known)[1] == []
    with unguarded(store):
        rows(store, "DELETE FROM audit WHERE n > 2")
        move(store, 2, written[1].hash)
    assert store.verify_audit()[1] == []
    assert store.verify_audit(known)[1] == [(3, "row 3, which was the head, is gone: the chain ends with row 2")]


def test_a_chain_that_is_written_anew_is_found_by_whoever_has_kept_the_head(store: Store) -> None:
    act(store, "a", "b")
    known = store.verify_audit()[0]
    with unguarded(store):
        rows(store, "DELETE FROM audit")
        move(store, 0, "0" * 64)
    act(store, "x", "b")
    assert store.verify_audit()[1] == []
    assert store.verify_audit(known)[1] == [(2, "row 2 is not the one that was the head: the chain was written anew")]


def test_the_chain_is_read_in_pages(store: Store) -> None:
    act(store, *(f"{i}" for i in range(PAGE + 2)))
    assert store.verify_audit()[1] == []
    with unguarded(store):
        rows(store, "UPDATE audit SET object = 'other' WHERE n = ?", [PAGE + 1])
    assert [n for n, _ in store.verify_audit()[1]] == [PAGE + 1]


def test_an_empty_audit_is_a_chain(store: Store) -> None:
    head = Head(0, "0" * 64)
    assert (store.verify_audit(), store.verify_audit(head), store.audit(Filter(), 10)) == ((head, []), (head, []), [])


def test_rows_are_found_by_who_did_what_to_what(store: Store) -> None:
    act(store, "a", "b")
    act(store, "a", actor=Actor("bob", token="t1", source="10.0.0.1"))
    found = {
        "all": store.audit(Filter(), 10), "first": store.audit(Filter(), 1), "older": store.audit(Filter(before=3), 10),
        "ann": store.audit(Filter(actor="ann"), 10), "a": store.audit(Filter(object="a"), 10),
        "both": store.audit(Filter(actor="bob", object="a", action="test.act"), 10), "none": store.audit(Filter(action="other"), 10),
    }  # fmt: skip
    assert {name: [row.n for row in page] for name, page in found.items()} == {
        "all": [3, 2, 1], "first": [3], "older": [2, 1], "ann": [2, 1], "a": [3, 1], "both": [3], "none": [],
    }  # fmt: skip
    assert (found["first"][0].token, found["first"][0].source) == ("t1", "10.0.0.1")


def test_a_user_who_owns_nothing_needs_no_more_than_the_page_says_and_cannot_touch_the_audit(schemas: Schemas) -> None:
    store, role = schemas.empty_store(), f"{schemas.name}_worker"
    within(store, lambda: store._audit(ANN, [Act("test.act", "a")], NOW))
    grants = f"""
    CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schemas.name} TO {role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schemas.name} TO {role};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schemas.name} TO {role};
    REVOKE UPDATE, DELETE ON {schemas.name}.audit FROM {role}"""
    schemas.admin.execute(grants.encode())
    try:
        worker = PostgresStore(f"{schemas.url}&user={role}", schemas.name)
        worker.start([NewExecution("w", WORKFLOW, "main", "default")])
        assert worker.claim("a", ["default"], 1, 30.0)
        assert worker.cancel(["w"], ANN) == {"w": True}
        assert worker.create_token(Grant("t", "ann", "h", (), (), None), ANN)
        for text in (
            "UPDATE audit SET actor = 'bob'",
            "DELETE FROM audit",
            "TRUNCATE audit",
            "ALTER TABLE audit DISABLE TRIGGER USER",
            "DROP TRIGGER audit_unchanged ON audit",
            "UPDATE audit_head SET n = 1",
        ):
            with pytest.raises(StoreError, match="lacks a right"):
                rows(worker, text)
        head, problems = worker.verify_audit()
        assert (head.n, problems) == (3, [])
        worker.close()
    finally:
        schemas.admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
