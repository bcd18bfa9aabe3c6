"""Statements straight over libpq: values, several in one round trip, errors, and what is left after
them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.store.postgres import wire
from rhythm.store.postgres.connecting import PatientConnection, connected
from rhythm.store.postgres.wire import Wire, bind
from tests.support.postgres import Schemas

ANSWER_S = 30.0
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
BIGINTS = st.integers(-(2**63), 2**63 - 1)
VALUES = {
    "text": TEXTS, "bigint": BIGINTS, "int": st.integers(-(2**31), 2**31 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1), "bool": st.booleans(),
    "float8": st.floats(allow_nan=False), "bytea": st.binary(max_size=20),
}  # fmt: skip


@pytest.fixture(scope="module")
def session(database_url: str) -> Iterator[PatientConnection]:
    with closing(connected(database_url)) as connection:
        connection.wire = Wire(connection, prepares=True)
        yield connection


def asked(session: PatientConnection, text: bytes, **values: Any) -> list[Any]:
    return session.wire.exchange([bind(text, values)], ANSWER_S)[0].rows


@pytest.mark.parametrize("name", VALUES)
def test_what_is_sent_comes_back(session: PatientConnection, name: str) -> None:
    @given(VALUES[name] | st.none(), st.lists(VALUES[name] | st.none(), max_size=5))
    def sent(value: Any, values: list[Any]) -> None:
        text = f"SELECT %(value)s::{name}, %(values)s::{name}[]".encode()
        assert asked(session, text, value=value, values=values) == [(value, values)]

    sent()


@pytest.mark.parametrize(
    ("value", "type"),
    [("x", "text"), (1, "bigint"), (True, "boolean"), (1.5, "double precision"), (b"x", "bytea")],
)
def test_without_a_cast_the_class_of_a_value_says_its_type(
    session: PatientConnection, value: Any, type: str
) -> None:
    text = b"SELECT pg_typeof(%(value)s)::text, %(value)s"
    assert asked(session, text, value=value) == [(type, value)]


def test_a_value_that_has_no_type_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match="set needs a cast"):
        bind(b"SELECT %(value)s", {"value": {1}})


def test_a_percent_sign_is_written_twice(session: PatientConnection) -> None:
    assert asked(session, b"SELECT 'a' LIKE 'a%%' AND %(x)s", x=True) == [(True,)]


def test_many_statements_are_one_round_trip(session: PatientConnection) -> None:
    many = [bind(b"SELECT %(n)s", {"n": n}) for n in range(2000)]
    answers = session.wire.exchange(many, ANSWER_S)
    assert [answer.rows for answer in answers] == [[(n,)] for n in range(2000)]


def test_more_than_a_socket_holds_goes_both_ways_at_once(session: PatientConnection) -> None:
    long = "x" * 1_000_000
    many = [bind(b"SELECT %(x)s", {"x": long})] * 40
    assert [answer.rows for answer in session.wire.exchange(many, ANSWER_S)] == [[(long,)]] * 40


def test_after_an_error_nothing_that_follows_is_done(session: PatientConnection) -> None:
    session.execute("CREATE TEMP TABLE made (n bigint)")
    insert = bind(b"INSERT INTO made VALUES (%(n)s)", {"n": 1})
    with pytest.raises(psycopg.errors.DivisionByZero):
        session.wire.exchange([insert, bind(b"SELECT 1 / %(n)s", {"n": 0}), insert], ANSWER_S)
    assert asked(session, b"SELECT count(*) FROM made") == [(0,)]
    session.wire.exchange([insert, insert], ANSWER_S)
    assert asked(session, b"SELECT count(*) FROM made") == [(2,)]


def test_a_statement_that_could_not_be_prepared_is_prepared_the_next_time(
    session: PatientConnection,
) -> None:
    text = b"SELECT n FROM later WHERE n > %(n)s"
    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedTable):
            asked(session, text, n=1)
    session.execute("CREATE TEMP TABLE later (n bigint)")
    session.execute("INSERT INTO later VALUES (2)")
    assert asked(session, text, n=1) == [(2,)]


def test_what_follows_an_error_is_prepared_the_next_time(session: PatientConnection) -> None:
    fails, follows = bind(b"SELECT 1 / %(n)s", {"n": 0}), bind(b"SELECT 'follows'", {})
    with pytest.raises(psycopg.errors.DivisionByZero):
        session.wire.exchange([fails, follows], ANSWER_S)
    assert session.wire.exchange([follows], ANSWER_S)[0].rows == [("follows",)]


def test_statements_without_end_are_not_all_kept(
    session: PatientConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = lambda: asked(session, b"SELECT count(*) FROM pg_prepared_statements")[0][0]  # noqa: E731 - short
    monkeypatch.setattr(wire, "MAX_PREPARED", before := kept())
    for n in range(20):
        assert asked(session, f"SELECT {n}".encode()) == [(n,)]
    assert kept() == before


def test_a_connection_that_is_not_ours_alone_keeps_no_statement(database_url: str) -> None:
    with closing(connected(database_url, prepares=False)) as session:
        session.wire = Wire(session, prepares=False)
        assert asked(session, b"SELECT %(x)s", x="x") == [("x",)]
        assert asked(session, b"SELECT count(*) FROM pg_prepared_statements") == [(0,)]


def test_a_server_that_does_not_answer_is_given_up(database_url: str) -> None:
    with closing(connected(database_url)) as session:
        session.wire = Wire(session, prepares=True)
        with pytest.raises(psycopg.OperationalError, match=r"has not answered for 0\.1 s"):
            session.wire.exchange([bind(b"SELECT pg_sleep(%(s)s)", {"s": 20.0})], 0.1)
        assert session.closed


def test_what_is_posted_is_done_without_waiting_and_answered_before_what_follows(
    session: PatientConnection,
) -> None:
    session.execute("CREATE TEMP TABLE posted (n bigint)")
    insert = [bind(b"INSERT INTO posted VALUES (%(n)s)", {"n": n}) for n in (1, 2)]
    fails = bind(b"SELECT 1 / %(n)s", {"n": 0})
    session.wire.post(insert[:1], ANSWER_S)
    session.wire.post([insert[0], fails], ANSWER_S)  # is undone
    assert len(session.wire.posted) == 2
    one = bind(b"SELECT 'x'", {})
    answers = session.wire.exchange([one], ANSWER_S, behind=insert[1:])
    assert ([answer.rows for answer in answers], len(session.wire.posted)) == ([[("x",)]], 1)
    long = "x" * 1_000_000
    many = [bind(b"SELECT %(x)s", {"x": long})] * 20
    assert [answer.rows for answer in session.wire.exchange(many, ANSWER_S)] == [[(long,)]] * 20
    assert session.wire.posted == []
    assert asked(session, b"SELECT n FROM posted ORDER BY n") == [(1,), (2,)]
    session.wire.post([bind(b"SELECT %(x)s", {"x": long})] * 20, ANSWER_S)
    session.wire.settle(ANSWER_S)
    assert session.execute("SELECT 1").fetchall() == [(1,)]


def test_what_is_behind_a_transaction_that_fails_is_not_done(session: PatientConnection) -> None:
    session.execute("CREATE TEMP TABLE behind (n bigint)")
    begin, fails, rollback = (bind(text, {}) for text in (b"BEGIN", b"SELECT 1 / 0", b"ROLLBACK"))
    insert = bind(b"INSERT INTO behind VALUES (1)", {})
    with pytest.raises(psycopg.errors.DivisionByZero):
        session.wire.exchange([begin, fails], ANSWER_S, behind=[insert])
    assert session.wire.in_transaction
    session.wire.exchange([rollback], ANSWER_S)
    assert asked(session, b"SELECT count(*) FROM behind") == [(0,)]


def test_a_connection_that_breaks_in_the_middle_is_an_error(
    database_url: str, schemas: Schemas
) -> None:
    with closing(connected(database_url)) as session:
        session.wire = Wire(session, prepares=True)
        pid = session.info.backend_pid
        sleep = [bind(b"SELECT pg_sleep(%(s)s)", {"s": 20.0}), bind(b"SELECT 1", {})]
        ending = threading.Thread(target=_end, args=(schemas.admin, pid))
        ending.start()
        with pytest.raises(psycopg.OperationalError):
            session.wire.exchange(sleep, ANSWER_S)
        ending.join()
        with pytest.raises(psycopg.Error):
            session.wire.exchange(sleep, ANSWER_S)


def _end(admin: psycopg.Connection, pid: int) -> None:
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
    while not admin.execute(sleeping, [pid]).fetchall():
        pass
    admin.execute("SELECT pg_terminate_backend(%s)", [pid])


def test_an_exchange_that_is_interrupted_ends_its_connection(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows which answers are still to come on it."""
    with closing(connected(database_url)) as session:
        session.wire = Wire(session, prepares=True)
        monkeypatch.setattr(session.wire, "_read", lambda result: _interrupt())
        with pytest.raises(KeyboardInterrupt):
            session.wire.exchange([bind(b"SELECT 1", {}), bind(b"SELECT 2", {})], ANSWER_S)
        assert session.closed


def _interrupt() -> None:
    raise KeyboardInterrupt
