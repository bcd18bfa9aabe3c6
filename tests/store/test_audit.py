"""The audit: one chain, whoever writes at once, and whatever is changed in it is found."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rhythm.errors import StoreError
from rhythm.store.access import PAGE_ROWS, Act, Actor, AuditRow, Filter, Grant, Head
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import WORKFLOW
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
    with store.db.transaction():
        return work()


def act(store: Any, *objects: str, actor: Actor | None = ANN) -> None:
    within(
        store,
        lambda: store.auditor.add(
            actor,
            [Act("test.act", name, '{"why": "ümläut \\" \\\\ \\n"}') for name in objects],
            NOW,
        ),
    )


def chain(store: Store) -> list[AuditRow]:
    return store.access.audit_after(0, 1000)


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
    row = AuditRow(
        1, NOW, "änn", None, "cli", "queue.pause", "mail", '{"reason":"x\\ny"}', "0" * 64, ""
    )
    assert row.computed == "b89c31e95cb671434f3e5e1022caae681154c0fc15ef86c3d39c68facb14446c"


def test_what_nobody_asked_for_is_not_recorded(store: Store) -> None:
    act(store, "a", actor=None)
    act(store)
    assert chain(store) == []


def test_an_act_that_is_undone_leaves_no_row(store: Store) -> None:
    act(store, "a")

    def fail() -> None:
        store.auditor.add(ANN, [Act("test.act", "b")], NOW)  # type: ignore[attr-defined]  # of both databases
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        within(store, fail)
    act(store, "c")
    assert [(row.n, row.object) for row in chain(store)] == [(1, "a"), (2, "c")]


def test_many_writers_at_once_make_one_chain(stores: Stores, store: Store) -> None:
    others = [stores.store(lambda: NOW) for _ in range(4)]
    threads = [
        threading.Thread(
            target=lambda other=other, i=i: [
                act(other, f"{i}.{j}.a", f"{i}.{j}.b") for j in range(10)
            ]
        )
        for i, other in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = chain(store)
    assert sorted(row.object for row in written) == sorted(
        f"{i}.{j}.{k}" for i in range(4) for j in range(10) for k in "ab"
    )
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
    assert (chain(store), store.access.verify_audit()) == (before, (Head(2, before[1].hash), []))


@pytest.mark.parametrize(
    "text",
    [
        (
            "INSERT OR REPLACE INTO audit SELECT n, at, 'bob', token, source, action, object, "
            "detail, prev, hash FROM audit WHERE n = 1"
        ),
        "INSERT OR REPLACE INTO audit_head SELECT one, n + 1, hash FROM audit_head",
    ],
)
def test_rows_cannot_be_replaced(store: Store, text: str) -> None:
    # which has no such statement: ON CONFLICT DO UPDATE is an update
    if isinstance(store, PostgresStore):
        text = (
            text.replace("OR REPLACE ", "")
            + f" ON CONFLICT ({'one' if 'one' in text else 'n'}) DO UPDATE SET hash = ''"
        )
    act(store, "a", "b")
    before = chain(store)
    with pytest.raises(Exception, match="rows of audit are only ever added"):
        rows(store, text)
    assert (chain(store), store.access.verify_audit()) == (before, (Head(2, before[1].hash), []))


def forged(row: AuditRow, **changes: Any) -> AuditRow:
    """With these values, and the hash that goes with them unless another one is given."""
    made = row.replace(**changes)
    return made if "hash" in changes else made.replace(hash=made.computed)


BESIDE: dict[str, Callable[[AuditRow], AuditRow]] = {
    "before the first": lambda last: forged(last, n=0, prev="0" * 64),
    "far before the first": lambda last: forged(last, n=-(2**63)),
    "before the first, after the last": lambda last: forged(last, n=-1, prev=last.hash),
    "where one is": lambda last: forged(last, n=1, prev="0" * 64),
    "with a gap": lambda last: forged(last, n=last.n + 2, prev=last.hash),
    "far after the last": lambda last: forged(last, n=2**63 - 1, prev=last.hash),
    "after another": lambda last: forged(last, n=last.n + 1, prev="0" * 64),
    "after another, the same number": lambda last: forged(last, n=last.n + 1, prev=last.prev),
}


@pytest.mark.parametrize("where", BESIDE)
def test_a_row_that_does_not_follow_the_head_is_refused_and_later_acts_are_not(
    store: Store, where: str
) -> None:
    act(store, "a", "b")
    before = chain(store)
    with pytest.raises(Exception, match="rows of audit are only ever added"):
        insert(store, BESIDE[where](before[-1]))
    assert (everything(store), store.access.verify_audit()) == (
        before,
        (Head(2, before[1].hash), []),
    )
    act(store, "c")
    assert ([row.object for row in chain(store)], store.access.verify_audit()[1]) == (
        ["a", "b", "c"],
        [],
    )


@pytest.mark.parametrize("how", ["OR IGNORE", "OR REPLACE", "OR FAIL", "OR ROLLBACK"])
def test_no_way_to_insert_gets_around_that(tmp_path: Path, how: str) -> None:
    """Of SQLite, where a statement may say what becomes of those that are refused."""
    store = SqliteStore(str(tmp_path / "a.db"), lambda: NOW)
    store.schema.migrate()
    act(store, "a", "b")
    before = chain(store)
    for beside in BESIDE.values():
        with pytest.raises(sqlite3.IntegrityError, match="rows of audit are only ever added"):
            insert(store, beside(before[-1]), how)
    assert (everything(store), store.access.verify_audit()) == (
        before,
        (Head(2, before[1].hash), []),
    )
    store.close()


def test_whoever_adds_a_row_that_follows_the_head_moves_it(store: Store) -> None:
    """So nobody else fails: the row is one of the chain, with the hash of the one before."""
    act(store, "a")
    last = chain(store)[-1]
    insert(store, forged(last, n=2, prev=last.hash, object="b"))
    act(store, "c")
    assert ([row.object for row in chain(store)], store.access.verify_audit()[1]) == (
        ["a", "b", "c"],
        [],
    )


@pytest.mark.parametrize(
    "text", ["UPDATE audit_head SET n = n + 1", "UPDATE audit_head SET n = n + 7, hash = 'x'"]
)
def test_the_head_moves_with_its_rows_only(store: Store, text: str) -> None:
    act(store, "a")
    head = rows(store, "SELECT n, hash FROM audit_head")
    with pytest.raises(Exception, match="rows of audit are only ever added"):
        rows(store, text)
    assert rows(store, "SELECT n, hash FROM audit_head") == head


@contextmanager
def unguarded(store: Store) -> Iterator[None]:
    """For one who may take the triggers away."""
    if isinstance(store, SqliteStore):
        made = rows(store, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in made:
            rows(store, f"DROP TRIGGER {name}")
        yield
        for _, text in made:
            rows(store, text)
        return
    for table in ("audit", "audit_head"):
        rows(store, f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    for table in ("audit", "audit_head"):
        rows(store, f"ALTER TABLE {table} ENABLE TRIGGER USER")


@contextmanager
def of_before(store: Store) -> Iterator[None]:
    """For one who did it before a row had to follow the head."""
    with unguarded(store):
        if isinstance(store, PostgresStore):
            rows(store, "ALTER TABLE audit DROP CONSTRAINT audit_counts_from_one")
        yield
        if isinstance(store, PostgresStore):
            rows(
                store,
                "ALTER TABLE audit ADD CONSTRAINT audit_counts_from_one CHECK (n > 0) NOT VALID",
            )


def everything(store: Store) -> list[AuditRow]:
    return [
        AuditRow(*row)
        for row in rows(store, f"SELECT {', '.join(AuditRow._fields)} FROM audit ORDER BY n")
    ]


def put_some_before(store: Store, written: list[AuditRow]) -> None:
    for n in (-(2**63), -1, 0):
        insert(store, forged(written[0], n=n, prev="0" * 64))


def test_rows_that_were_put_before_the_first_are_found_whichever_head_was_kept(
    store: Store,
) -> None:
    act(store, "a", "b")
    known, written = store.access.verify_audit()[0], chain(store)
    with of_before(store):
        put_some_before(store, written)
    problems = [
        (n, f"row {n} is none of the chain, which begins with row 1: somebody has put it there")
        for n in (-(2**63), -1, 0)
    ]
    assert store.access.verify_audit() == store.access.verify_audit(known) == (known, problems)
    found = [
        finding.message for finding in store.operating.check(0.0) if finding.rule == "audit_chained"
    ]
    assert sorted(found) == sorted(message for _, message in problems)
    act(store, "c")
    assert store.access.verify_audit()[1] == problems


def insert(store: Store, row: AuditRow, how: str = "") -> None:
    rows(
        store,
        f"INSERT {how} INTO audit ({', '.join(AuditRow._fields)}) VALUES ({', '.join('?' * 10)})",
        row.astuple(),
    )


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
    change_one_and_its_hash: [
        (3, "row 3 does not follow the row before it: one of the two is not what it was")
    ],
    delete_one: [
        (3, "row 2 is gone"),
        (3, "row 3 does not follow the row before it: one of the two is not what it was"),
    ],
    delete_the_first: [
        (2, "row 1 is gone"),
        (2, "row 2 does not follow the row before it: one of the two is not what it was"),
    ],
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
def test_whatever_is_changed_in_the_chain_is_found(
    store: Store, damage: Callable[[Store, list[AuditRow]], None]
) -> None:
    act(store, "a", "b")
    act(store, "c", "d")
    written = chain(store)
    assert store.access.verify_audit() == (Head(4, written[3].hash), [])
    with unguarded(store):
        damage(store, written)
    assert store.access.verify_audit()[1] == DAMAGES[damage]
    found = [finding for finding in store.operating.check(0.0) if finding.rule == "audit_chained"]
    assert sorted((finding.subject, finding.message) for finding in found) == sorted(
        (f"row {n}", text) for n, text in DAMAGES[damage]
    )


def test_a_chain_that_is_cut_with_its_head_is_found_by_whoever_has_kept_the_head(
    store: Store,
) -> None:
    act(store, "a", "b", "c")
    known = store.access.verify_audit()[0]
    act(store, "d")
    written = chain(store)
    assert store.access.verify_audit(known)[1] == []
    with unguarded(store):
        rows(store, "DELETE FROM audit WHERE n > 2")
        move(store, 2, written[1].hash)
    assert store.access.verify_audit()[1] == []
    assert store.access.verify_audit(known)[1] == [
        (3, "row 3, which was the head, is gone: the chain ends with row 2")
    ]


def test_a_chain_that_is_written_anew_is_found_by_whoever_has_kept_the_head(store: Store) -> None:
    act(store, "a", "b")
    known = store.access.verify_audit()[0]
    with unguarded(store):
        rows(store, "DELETE FROM audit")
        move(store, 0, "0" * 64)
    act(store, "x", "b")
    assert store.access.verify_audit()[1] == []
    assert store.access.verify_audit(known)[1] == [
        (2, "row 2 is not the one that was the head: the chain was written anew")
    ]


def test_the_chain_is_read_in_pages(store: Store) -> None:
    act(store, *(f"{i}" for i in range(PAGE_ROWS + 2)))
    assert store.access.verify_audit()[1] == []
    with unguarded(store):
        rows(store, "UPDATE audit SET object = 'other' WHERE n = ?", [PAGE_ROWS + 1])
    assert [n for n, _ in store.access.verify_audit()[1]] == [PAGE_ROWS + 1]


def test_an_empty_audit_is_a_chain(store: Store) -> None:
    head = Head(0, "0" * 64)
    assert (
        store.access.verify_audit(),
        store.access.verify_audit(head),
        store.access.audit(Filter(), 10),
    ) == ((head, []), (head, []), [])


def test_rows_are_found_by_who_did_what_to_what(store: Store) -> None:
    act(store, "a", "b")
    act(store, "a", actor=Actor("bob", token="t1", source="10.0.0.1"))
    audit = store.access.audit
    found = {
        "all": audit(Filter(), 10),
        "first": audit(Filter(), 1),
        "older": audit(Filter(before=3), 10),
        "ann": audit(Filter(actor="ann"), 10),
        "a": audit(Filter(object="a"), 10),
        "both": audit(Filter(actor="bob", object="a", action="test.act"), 10),
        "none": audit(Filter(action="other"), 10),
    }
    assert {name: [row.n for row in page] for name, page in found.items()} == {
        "all": [3, 2, 1],
        "first": [3],
        "older": [2, 1],
        "ann": [2, 1],
        "a": [3, 1],
        "both": [3],
        "none": [],
    }
    assert (found["first"][0].token, found["first"][0].source) == ("t1", "10.0.0.1")


def test_a_row_that_was_put_after_the_head_before_blocks_the_chain_and_is_told(
    store: Store,
) -> None:
    """As it did before. The head stays, whatever is done about the row that is in the way."""
    act(store, "a")
    last = chain(store)[-1]
    with of_before(store):
        insert(store, forged(last, n=2, prev=last.hash))
    hash = "NULL" if isinstance(store, PostgresStore) else "hash"
    new = (
        f"INSERT INTO audit SELECT n + 1, 1, 'bob', NULL, '', 'a', 'b', '{{}}', hash, {hash} "
        f"FROM audit_head WHERE n > 0"
    )
    for text in (new, f"{new} ON CONFLICT DO NOTHING"):
        with pytest.raises(
            Exception,
            match=r"there is a row 2 of audit, though only 1 were written|only ever added",
        ):
            rows(store, text)
    assert rows(store, "SELECT n FROM audit_head") == [(1,)]
    assert store.access.verify_audit()[1] == [
        (2, "only 1 were written, but the chain goes on to row 2: somebody has added to it")
    ]
    if isinstance(store, PostgresStore):
        with pytest.raises(
            StoreError,
            match=(
                "refuses it: there is a row 2 of audit, though only 1 were written: `rhythm "
                "audit verify`"
            ),
        ):
            act(store, "c")


ODD = [
    "",
    "ümläut",
    'q" \\ /',
    "".join(map(chr, range(1, 0x80))),
    "\u2028\x7f\x85\ufffd",
    "\U0001f600",
    "%s {}",
]


@pytest.mark.parametrize("text", ODD)
def test_the_hash_is_the_same_whoever_computes_it(store: Store, text: str) -> None:
    actor = Actor(text, token=text or None, source=text)
    within(store, lambda: store.auditor.add(actor, [Act(text, text, text)], NOW))  # type: ignore[attr-defined]  # of both databases
    (row,) = chain(store)
    assert (row.actor, row.token, row.detail, row.hash) == (text, text or None, text, row.computed)


PRIVILEGES = """
CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};
REVOKE UPDATE, DELETE ON {schema}.audit FROM {role}
"""
# as the page says since rows move the head
HEAD_TOO = "; REVOKE INSERT, UPDATE, DELETE ON {schema}.audit_head FROM {role}"


@pytest.fixture(params=[HEAD_TOO, ""], ids=["privileges of now", "privileges of before"])
def worker(schemas: Schemas, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    """A store whose user owns nothing."""
    store, role = schemas.empty_store(), f"{schemas.name}_worker"
    within(store, lambda: store.auditor.add(ANN, [Act("test.act", "a")], NOW))
    schemas.admin.execute(
        (PRIVILEGES.strip() + request.param).format(role=role, schema=schemas.name).encode()
    )
    worker = PostgresStore(f"{schemas.url}&user={role}", schemas.name)
    yield worker
    worker.close()
    schemas.admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_user_who_owns_nothing_needs_no_more_than_the_page_says_and_cannot_touch_the_audit(
    worker: PostgresStore,
) -> None:
    worker.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
    assert worker.claims.claim("a", ["default"], 1, 30.0)
    assert worker.executions.cancel(["w"], ANN) == {"w": True}
    assert worker.access.create_token(Grant("t", "ann", "h", (), (), None), ANN)
    for text in (
        "UPDATE audit SET actor = 'bob'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "ALTER TABLE audit DISABLE TRIGGER USER",
        "DROP TRIGGER audit_unchanged ON audit",
        "DROP TRIGGER audit_follows ON audit",
        "DROP TRIGGER audit_head_follows ON audit_head",
        "ALTER TABLE audit DROP CONSTRAINT audit_counts_from_one",
        (
            "CREATE OR REPLACE FUNCTION add_to_audit() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RETURN new; END'"
        ),
        "SET session_replication_role = replica",
        "UPDATE audit_head SET n = 1",
        "UPDATE audit_head SET n = n + 1, hash = 'x'",
        "DELETE FROM audit_head",
    ):
        with pytest.raises(StoreError, match="lacks a privilege"):
            rows(worker, text)
    head, problems = worker.access.verify_audit()
    assert (head.n, problems) == (3, [])


@pytest.mark.parametrize("where", BESIDE)
def test_a_user_who_owns_nothing_puts_no_row_beside_the_chain(
    worker: PostgresStore, where: str
) -> None:
    before = everything(worker)
    with pytest.raises(StoreError, match="rows of audit are only ever added"):
        insert(worker, BESIDE[where](before[-1]))
    assert (everything(worker), worker.access.verify_audit()[1]) == (before, [])
    assert worker.workers.pause_queue("mail", True, ANN)


@pytest.mark.parametrize("given", ["n = 0", "n = 7", "prev = 'x'", "hash = 'x'"])
def test_what_is_given_of_a_row_must_be_right(worker: PostgresStore, given: str) -> None:
    """And what is not is filled in."""
    column, _, value = given.partition(" = ")
    text = (
        "INSERT INTO audit (at, actor, source, action, object, detail{}) VALUES (1, 'bob', "
        "'', 'a', 'b', '{{}}'{})"
    )
    with pytest.raises(StoreError, match="rows of audit are only ever added"):
        rows(worker, text.format(f", {column}", f", {value}"))
    rows(worker, text.format("", ""))
    assert ([row.n for row in everything(worker)], worker.access.verify_audit()[1]) == ([1, 2], [])


TRICKS = {
    # the head is looked for where the function's owner has it, not in the tables of whoever inserts
    "a head of one's own": (
        "CREATE TEMP TABLE audit_head (one smallint, n bigint, hash text)",
        "INSERT INTO pg_temp.audit_head VALUES (1, 100, 'x')",
        ("INSERT INTO audit (at, actor, source, action, object, detail) VALUES (1, 'bob', "
                "'', 'a', 'b', '{}')"),
    ),
    # the function that moves the head, on a table of one's own, or from within another trigger
    "the trigger on another table": (
        "CREATE TEMP TABLE mine (LIKE audit)",
        "CREATE TRIGGER mine BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION add_to_audit()",
        ("INSERT INTO mine (at, actor, source, action, object, detail) VALUES (1, 'bob', "
                "'', 'a', 'b', '{}')"),
    ),
    "the head from within a trigger": (
        "CREATE TEMP TABLE mine (n int)",
        ("CREATE FUNCTION pg_temp.mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE "
                "audit_head SET n = n + 1; RETURN new; END'"),
        "CREATE TRIGGER mine BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION pg_temp.mine()",
        "INSERT INTO mine VALUES (1)",
    ),
    "many at once, one of them beside": (
        "INSERT INTO audit (n, at, actor, source, action, object, detail) VALUES"
        " (NULL, 1, 'bob', '', 'a', 'b', '{}'), (0, 1, 'bob', '', 'a', 'b', '{}')",
    ),
    "a row that is there, ignored": (
        "INSERT INTO audit SELECT * FROM audit WHERE n = 1 ON CONFLICT DO NOTHING",
    ),
}  # fmt: skip


def test_what_the_page_says_about_rows_of_before_mends_the_chain(schemas: Schemas) -> None:
    store = schemas.empty_store(lambda: NOW)
    act(store, "a", "b")
    known, written = store.access.verify_audit()[0], chain(store)
    with of_before(store):
        put_some_before(store, written)
        insert(store, forged(written[1], n=3, prev=written[1].hash))
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    schemas.admin.execute(f"SET search_path = {schemas.name}; {script}".encode())
    act(store, "c")
    assert (store.access.verify_audit(known)[1], [row.object for row in everything(store)]) == (
        [],
        ["a", "b", "c"],
    )


@pytest.mark.parametrize("trick", TRICKS)
def test_no_trick_moves_the_head_without_a_row_or_adds_a_row_without_the_head(
    worker: PostgresStore, trick: str
) -> None:
    try:
        for text in TRICKS[trick]:
            rows(worker, text)
    except (StoreError, psycopg.Error):
        pass
    worker.db._forget()  # with its temporary tables
    head, problems = worker.access.verify_audit()
    assert (len(everything(worker)), problems) == (head.n, [])
    assert worker.workers.pause_queue("mail", True, ANN)
    assert worker.access.verify_audit()[0].n == head.n + 1
