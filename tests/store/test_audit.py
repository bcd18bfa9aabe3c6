"""The audit: one chain, whoever writes at once, and whatever is changed in it is found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rhythm.errors import StoreError
from rhythm.store.access import Act, Actor, AuditRow
from rhythm.store.base import Store
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
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


@pytest.mark.parametrize("text", ["UPDATE audit SET actor = 'bob'", "DELETE FROM audit WHERE n = 1", "TRUNCATE audit"])
def test_rows_cannot_be_changed_or_deleted(store: Store, text: str) -> None:
    act(store, "a", "b")
    if isinstance(store, SqliteStore) and text == "TRUNCATE audit":
        text = "DELETE FROM audit"
    before = chain(store)
    with pytest.raises(Exception, match="rows of audit are only ever added") as refused:
        rows(store, text)
    assert not isinstance(store, PostgresStore) or isinstance(refused.value, StoreError)
    assert chain(store) == before
