"""A server that is gone, silent, or another than before: nobody waits for it for ever, and nobody
stays with the wrong one."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from rhythm.errors import StoreError, Unavailable
from rhythm.settings import show_url
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.turns import TaskEnd
from rhythm.store.lifecycle import TASK, WORKFLOW
from rhythm.store.open import open_store
from rhythm.store.postgres import connecting, hints
from rhythm.store.postgres.connecting import Access
from rhythm.store.postgres.connection import Hints
from rhythm.store.postgres.store import PostgresStore
from tests.support.between import Between, between
from tests.support.postgres import Schemas

SOON_S = 120.0
ANSWER_S = 0.3


@pytest.fixture
def middle(schemas: Schemas) -> Iterator[Between]:
    with between(schemas.url) as made:
        yield made


@pytest.fixture
def store(schemas: Schemas, middle: Between) -> Iterator[PostgresStore]:
    schemas.empty_store()
    store = PostgresStore(
        f"{middle.url}&connect_timeout=1", schemas.name, access=Access(answer_s=ANSWER_S)
    )
    yield store
    middle.silent = False
    store.close()


def started(store: PostgresStore, id: str) -> bool:
    return store.executions.start([NewExecution(id, WORKFLOW, "main", "default")])[0].created


def test_server_that_says_nothing_more_is_a_store_error_in_time(
    store: PostgresStore, middle: Between
) -> None:
    assert started(store, "w")
    middle.silent = True
    with pytest.raises(StoreError, match=r"the server has not answered for 0.3 s"):
        store.reading.get(["w"])
    middle.silent = False
    assert store.reading.get(["w"])["w"].status == "pending"


def test_commit_of_a_transactional_task_does_not_wait_for_ever_either(
    store: PostgresStore, middle: Between
) -> None:
    """How long its handler takes is its own business."""
    store.executions.start([NewExecution("t", TASK, "work", "default")])
    claim = store.claims.claim("a", ["default"], 1, 30.0)[0]

    def work(connection: psycopg.Connection) -> TaskEnd:
        connection.execute("SELECT pg_sleep(%s)", [2 * ANSWER_S])
        middle.silent = True
        return TaskEnd(claim.id, claim.fence, 5, "1")

    with pytest.raises(StoreError, match="has not answered"):
        store.turns.complete_within(work)


def test_listener_finds_out_that_nothing_comes_any_more(
    store: PostgresStore, middle: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "PING_S", 0.05)
    monkeypatch.setattr(hints, "RETRY_S", (0.01, 0.05))
    heard, problem = threading.Semaphore(0), threading.Event()
    listening = store.listen(lambda queues: heard.release())
    monkeypatch.setattr(
        listening, "_say", lambda said: problem.set() if "is lost" in said else None
    )
    assert heard.acquire(timeout=SOON_S)
    middle.silent = True
    assert problem.wait(SOON_S)
    middle.silent = False
    assert heard.acquire(timeout=SOON_S)
    listening.close()


def test_session_that_was_in_use_when_others_were_lost_is_not_used_again(schemas: Schemas) -> None:
    """It leads to the same server, which is another than before, or gone."""
    store = schemas.direct_store()
    inside, ended = threading.Event(), threading.Event()

    def slow() -> int:
        pid = store.db.query(b"SELECT pg_backend_pid()").fetchall()[0][0]
        inside.set()
        ended.wait(SOON_S)
        return int(pid)

    with ThreadPoolExecutor(1) as pool:
        slowly = pool.submit(store.db.autocommit, slow)
        assert inside.wait(SOON_S)
        with pytest.raises(StoreError):
            store.db.autocommit(
                lambda: store.db.query(b"SELECT pg_terminate_backend(pg_backend_pid())")
            )
        ended.set()
        old = slowly.result()
    assert store.db._idle == []
    assert store.db.autocommit(lambda: store.db.query(b"SELECT pg_backend_pid()").fetchall()) != [
        (old,)
    ]


@pytest.mark.parametrize("how", [b"DISCARD ALL", b"DEALLOCATE ALL"])
def test_a_session_that_was_reset_is_left_for_a_new_one(schemas: Schemas, how: bytes) -> None:
    """As by a pooler that lends sessions from now on. It is not the fault of what was sent."""
    store = schemas.direct_store()
    new = NewExecution("t", TASK, "work", "default")
    store.executions.start([new])
    era, before = store.era, store.db.backend
    assert store.db.autocommit(lambda: store.db.query(how)) is not None
    with pytest.raises(Unavailable, match="was reset"):
        store.executions.start([new.replace(id="u")])
    assert store.era > era
    assert store.executions.start([new.replace(id="u")])[0].id == "u"
    assert store.db.backend != before


def given(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a connection is told besides its URL."""
    seen: dict[str, Any] = {}

    def refuse(url: str, **parameters: Any) -> None:
        seen.update(parameters)
        raise psycopg.OperationalError("not here")

    monkeypatch.setattr(connecting.PatientConnection, "connect", refuse)
    with pytest.raises(StoreError):
        PostgresStore(url).schema.version()
    return {
        name: value
        for name, value in seen.items()
        if name not in ("autocommit", "prepare_threshold")
    }


def test_connections_notice_that_the_other_side_is_gone_and_what_the_url_says_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"client_encoding": "utf8"}  # whatever the URL says
    assert given("postgresql://me@host/app", monkeypatch) == connecting.DEFAULTS | ours
    chosen = "connect_timeout=3&keepalives_idle=60&tcp_user_timeout=1000"
    assert given(f"postgresql://me@host/app?{chosen}", monkeypatch) == {
        **ours,
        "keepalives_interval": "5",
        "keepalives_count": "3",
    }
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "7")
    assert "connect_timeout" not in given("postgresql://me@host/app", monkeypatch)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("postgresql://me@one,two/app", "read-write"),
        ("postgresql://me@one:5432,two:5433/app", "read-write"),
        ("postgresql:///app?host=/one,/two", "read-write"),
        ("postgresql://me@one,two/app?target_session_attrs=any", None),
        ("postgresql://me@one/app", None),
    ],
)
def test_of_several_servers_the_one_that_can_be_written_to_is_wanted(
    url: str, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert given(url, monkeypatch).get("target_session_attrs") == wanted


def test_url_of_several_servers_keeps_them_and_loses_what_is_ours() -> None:
    store = open_store(
        "postgresql://me:secret@one:5432,two:5433/app?pooled=true&sslmode=require&schema=other&notify=off"
    )
    assert isinstance(store, PostgresStore)
    assert store.db.url == "postgresql://me:secret@one:5432,two:5433/app?sslmode=require"
    assert (store.db.schema, store.db.access) == ("other", Access(pooled=True, notify=False))
    listens = open_store(
        "postgresql://me@pooler/app?pooled=on",
        listen_url="postgresql://me@server/app?schema=rhythm",
    )
    assert isinstance(listens, PostgresStore)
    assert listens.db.access.listen_url == "postgresql://me@server/app"
    with pytest.raises(StoreError, match="write pooled=on or pooled=off"):
        open_store("postgresql://me@host/app?pooled=perhaps")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://me:secret@one:5432,two:5433/app",
            "postgresql://me:***@one:5432,two:5433/app",
        ),
        ("postgresql://me:se@cret@one,two/app", "postgresql://me:***@one,two/app"),
        (
            "postgresql://one,two/app?user=me&password=secret",
            "postgresql://one,two/app?user=me&password=***",
        ),
        (
            "postgresql://one/app?sslpassword=secret&a=b@c",
            "postgresql://one/app?sslpassword=***&a=b@c",
        ),
        ("postgresql://me:se?cret@one/app?user=a@b", "postgresql://me:***@one/app?user=a@b"),
        ("postgresql://me:se?c/ret@one/app", "postgresql://me:***@one/app"),
        ("postgresql://me:se/c?ret@one/app?user=you", "postgresql://me:***@one/app?user=you"),
        ("postgresql://m?e:secret@one", "postgresql://m?e:***@one"),
        (
            "postgresql://[::1]:5432,two:5433?user=me&password=se?cret",
            "postgresql://[::1]:5432,two:5433?user=me&password=***",
        ),
        ("sqlite:///a@b.db", "sqlite:///a@b.db"),
    ],
)
def test_password_is_nowhere_shown(url: str, shown: str) -> None:
    assert show_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:p%zzsecret@host/app",
        "postgresql://me:p%secret@host/app?schema=other",
        "postgresql://me:p@secret@host/app",
        "postgresql://me:p/secret@host/app",
        "postgresql://me:p?@secret@host/app",
        "postgresql://me:p@host/app?secret",
        "postgresql://me:p@host:secret/app",
    ],
)
def test_url_that_cannot_be_used_is_not_repeated(url: str) -> None:
    with pytest.raises(StoreError, match=r"URL cannot be used: check that .* %40 for @") as refused:
        open_store(url).schema.version()
    assert "secret" not in "".join(traceback.format_exception(refused.value)).replace(__file__, "")


def test_parameters_are_found_behind_a_password_with_a_question_mark() -> None:
    store = open_store("postgresql://me:top?secret@one/app?schema=other")
    assert isinstance(store, PostgresStore)
    assert (store.db.url, store.db.schema) == ("postgresql://me:top?secret@one/app", "other")


def test_hint_that_was_swallowed_is_sent_again(
    store: PostgresStore, middle: Between, schemas: Schemas
) -> None:
    heard: list[frozenset[str]] = []
    changed = threading.Condition()

    def hear(queues: frozenset[str]) -> None:
        with changed:
            heard.append(queues)
            changed.notify_all()

    listening = schemas.store().listen(hear)
    with changed:
        assert changed.wait_for(lambda: heard, SOON_S)
    assert started(store, "w")
    wait_for(changed, lambda: {"default"} in heard)
    middle.silent = True
    store._notifier.notify(Hints({"mail"}, set()))
    on_its_way = time.monotonic() + 1.0  # unless its connection must be made anew: then nothing is
    while store._notifier._pending and time.monotonic() < on_its_way:
        time.sleep(0.001)
    middle.silent = False
    wait_for(changed, lambda: any("mail" in queues for queues in heard))
    listening.close()


def wait_for(changed: threading.Condition, done: Callable[[], bool]) -> None:
    with changed:
        assert changed.wait_for(done, SOON_S)
