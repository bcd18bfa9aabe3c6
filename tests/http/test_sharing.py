"""What one may take of a server that is everybody's: nobody can keep the others from being
answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.http import Server, server, sharing
from rhythm.http.bodies import LONG
from rhythm.http.problems import Refused
from rhythm.http.sharing import KNOWN_CALLERS, Buckets, Shares, whose
from rhythm.settings import load_settings
from rhythm.store.postgres import connection
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.session import IDLE
from tests.app.conftest import MakeApp
from tests.http.conftest import FLOWS, Client, until
from tests.support.counting import counting
from tests.support.serving import serving


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _no_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PENALTY_S", 0.0)


@contextmanager
def served(
    app: Rhythm, *names: str, tokens: bool | None = True
) -> Iterator[tuple[Server, list[Client]]]:
    """A server, and clients who may look, each with a token of its own."""
    served = Server(app, tokens=tokens)
    with serving(served) as base, ExitStack() as stack:
        yield (
            served,
            [
                stack.enter_context(Client(base, app.create_token(name, roles=["viewer"]).secret))
                for name in names
            ],
        )


@contextmanager
def authors(app: Rhythm, *names: str) -> Iterator[tuple[Server, list[Client]]]:
    """A server, and clients who may register workflows and start them."""
    made = Server(app)
    with serving(made) as base, ExitStack() as stack:
        secrets = [app.create_token(name, roles=["author"]).secret for name in names]
        yield made, [stack.enter_context(Client(base, secret)) for secret in secrets]


class Held:
    """Calls of a function that do not come back until they are let go."""

    def __init__(self) -> None:
        self.inside, self.most, self._lock, self._go = 0, 0, threading.Lock(), threading.Event()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        assert self._go.wait(60)
        with self._lock:
            self.inside -= 1
        raise ValueError("let go")

    def let_go(self) -> None:
        self._go.set()

    @contextmanager
    def asking(self) -> Iterator[ThreadPoolExecutor]:
        """Threads to ask with; in the end whoever is held is let go."""
        with ThreadPoolExecutor(80) as pool:
            try:
                yield pool
            finally:
                self.let_go()


@contextmanager
def holding(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Held, Callable[[Client, int], list[Future[httpx.Response]]]]]:
    """Whoever asks for an execution waits; and a function that lets a client ask for many at
    once."""
    held = Held()
    monkeypatch.setattr(app, "get", held)
    with held.asking() as pool:
        yield (
            held,
            lambda client, n: [pool.submit(client.get, "/api/v1/executions/x") for _ in range(n)],
        )


# so much a second


def test_a_bucket_gives_what_has_come_in_and_no_more_than_it_holds() -> None:
    clock = Clock()
    buckets = Buckets(2.0, 4.0, clock)
    assert [buckets.take("a") for _ in range(4)] == [0.0] * 4
    assert buckets.take("a") == 0.5
    assert buckets.take("b") == 0.0, "everyone has one of their own"
    clock.now += 0.5
    assert [bool(buckets.take("a")) for _ in range(2)] == [False, True]
    clock.now += 1000
    assert [bool(buckets.take("a")) for _ in range(5)] == [False] * 4 + [True]


def test_no_more_are_remembered_than_fit() -> None:
    buckets = Buckets(1.0, 1.0, Clock())
    for n in range(KNOWN_CALLERS + 5):
        buckets.take(str(n))
    assert len(buckets._left) == KNOWN_CALLERS
    assert buckets.take(str(KNOWN_CALLERS)) > 0, "the latest are remembered"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("203.0.113.7", "203.0.113.8", False), ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:203.0.113.7", "203.0.113.7", True), ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "", True), ("testclient", "x", False),
    ],
)  # fmt: skip
def test_of_ipv6_a_whole_network_is_one_persons(one: str, other: str, same: bool) -> None:
    assert (whose(one) == whose(other)) == same


def test_a_token_that_asks_too_often_is_refused_before_the_database_is_asked(
    make_app: MakeApp,
) -> None:
    app = make_app(flows=(FLOWS,), server_requests_per_second=2)
    with served(app, "Ada", "Otto") as (made, (ada, otto)):
        clock = made.shares._requests.clock = Clock()
        assert [ada.get("/api/v1/executions").status_code for _ in range(4)] == [200] * 4
        with counting(app.store) as asked:
            answer = ada.get("/api/v1/executions")
        assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
            429,
            "too_many_requests",
            "1",
        )
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert asked.statements == []
        assert otto.get("/api/v1/executions").status_code == 200
        assert ada.get("/healthz").status_code == 200
        clock.now += 0.5
        assert [ada.get("/api/v1/executions").status_code for _ in range(2)] == [200, 429]


def test_to_find_out_who_asks_takes_one_statement(app: Rhythm) -> None:
    with served(app, "Ada") as (_, (ada,)):
        ada.get("/api/v1/executions")  # its use is noted once a minute
        with counting(app.store) as asked:
            assert ada.post("/api/v1/executions", json={"workflow": "wait"}).status_code == 403
        assert len(asked.statements) == 1, asked.statements


def test_an_open_server_counts_by_address(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOWS,), server_requests_per_second=1)
    made = Server(app, tokens=None)
    made.shares._requests.clock = Clock()
    with serving(made) as base:
        assert [httpx.get(f"{base}/api/v1/executions").status_code for _ in range(3)] == [
            200,
            200,
            429,
        ]


def test_the_document_that_anybody_may_read_is_counted_by_address(make_app: MakeApp) -> None:
    made = Server(make_app(server_requests_per_second=10))  # two documents in one moment
    made.shares._requests.clock = Clock()
    with serving(made) as base:
        assert [httpx.get(f"{base}/api/v1/openapi.json").status_code for _ in range(3)] == [
            200,
            200,
            429,
        ]
        assert [httpx.get(f"{base}/healthz").status_code for _ in range(5)] == [200] * 5


# who fails


def test_an_address_that_fails_too_often_is_not_looked_up_again(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOWS,), server_failures_per_minute=3)
    with served(app, "Ada", "Otto") as (made, (ada, otto)):
        clock = made.shares._failures.clock = Clock()
        assert ada.get("/api/v1/executions").status_code == 200
        wrong = f"rhy_{'0' * 12}_{'0' * 52}"
        with Client(str(ada.base_url)) as nobody, Client(str(ada.base_url), wrong) as eve:
            assert [who.get("/api/v1/executions").status_code for who in (nobody, eve, eve)] == [
                401
            ] * 3
            with counting(app.store) as asked:
                answer = eve.get("/api/v1/executions")
            assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
                429,
                "too_many_failures",
                "20",
            )
            assert asked.statements == []
            assert nobody.get("/api/v1/executions").status_code == 429
            assert ada.get("/api/v1/executions").status_code == 200, (
                "who was let in before is not shut out by a neighbour"
            )
            assert otto.get("/api/v1/executions").status_code == 429
            clock.now += 20
            assert otto.get("/api/v1/executions").status_code == 200
            assert [eve.get("/api/v1/executions").status_code for _ in range(2)] == [401, 429]


def test_a_token_that_was_valid_is_known_by_its_secret_and_not_by_its_id(make_app: MakeApp) -> None:
    """The id is no secret: whoever knows it must not be able to use up what its owner may ask."""
    app = make_app(flows=(FLOWS,), server_requests_per_second=1)
    with served(app, "Ada") as (made, (ada,)):
        made.shares._requests.clock = Clock()
        assert ada.get("/api/v1/executions").status_code == 200
        secret = ada.headers["Authorization"].removeprefix("Bearer ")
        forged = secret[:-1] + ("0" if secret[-1] != "0" else "1")
        with Client(str(ada.base_url), forged) as eve:
            assert [eve.get("/api/v1/executions").status_code for _ in range(5)] == [401] * 5
        assert ada.get("/api/v1/executions").status_code == 200


# at once


def test_of_one_token_only_so_many_are_under_way(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(flows=(FLOWS,), server_requests_at_once=3, server_threads_per_token=3)
    with (
        served(app, "Ada", "Otto") as (made, (ada, otto)),
        holding(app, monkeypatch) as (held, ask),
    ):
        first = ask(ada, 3)
        until(lambda: held.inside == 3)
        answer = ada.get("/api/v1/executions")
        assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
            429,
            "too_many_requests",
            "1",
        )
        assert otto.get("/api/v1/executions").status_code == 200
        held.let_go()
        assert [each.result().status_code for each in first] == [422] * 3
        assert ada.get("/api/v1/executions").status_code == 200
        until(lambda: not made.shares._at_once)


def test_one_token_uses_its_share_of_the_threads_and_the_rest_is_for_others(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = app.settings.server_threads_per_token
    with (
        served(app, "Ada", "Otto") as (made, (ada, otto)),
        holding(app, monkeypatch) as (held, ask),
    ):
        asked = ask(ada, 3 * share)
        until(lambda: made.shares._at_once.total() == 3 * share)
        until(lambda: held.inside >= share)
        assert [otto.get("/api/v1/executions").status_code for _ in range(5)] == [200] * 5
        held.let_go()
        assert [each.result().status_code for each in asked] == [422] * 3 * share
        until(lambda: (made.shares._threads._places, made.shares._at_once) == ({}, {}))
    assert held.most == share


def test_who_comes_in_and_health_are_answered_while_all_threads_are_busy(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(flows=(FLOWS,), server_requests_at_once=100, server_threads_per_token=100)
    with served(app, "Ada", "Otto") as (_, (ada, otto)), holding(app, monkeypatch) as (held, ask):
        ask(ada, 60)
        until(lambda: held.inside == 40)
        ada.timeout = otto.timeout = httpx.Timeout(20)
        assert otto.post("/api/v1/executions", json={"workflow": "wait"}).status_code == 403
        assert httpx.get(f"{ada.base_url}/api/v1/executions").status_code == 401
        assert (ada.get("/healthz").status_code, ada.get("/readyz").status_code) == (200, 200)


REGISTER = ("register", "/api/v1/workflows", {"source": "x"})
LARGE_START = ("start_workflow", "/api/v1/executions", {"workflow": "wait", "inputs": "x" * LONG})


@pytest.mark.parametrize(("call", "path", "body"), [REGISTER, LARGE_START])
def test_what_takes_long_is_done_one_at_a_time_and_others_are_answered_meanwhile(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch, call: str, path: str, body: dict[str, Any]
) -> None:
    held = Held()
    monkeypatch.setattr(app, call, held)
    with authors(app, "Ada", "Otto", "Grace") as (made, clients), held.asking() as pool:
        asked = [pool.submit(client.post, path, json=body) for client in clients for _ in range(2)]
        until(lambda: made.shares._at_once.total() == 6 and held.inside >= 1)
        assert [client.get("/api/v1/executions").status_code for client in clients] == [200] * 3
        held.let_go()
        assert [each.result().status_code for each in asked] == [422] * 6
    assert held.most == 1


def test_a_large_start_waits_for_no_compiler(app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    held, (call, register, text), (_, start, large) = Held(), REGISTER, LARGE_START
    monkeypatch.setattr(app, call, held)
    with authors(app, "Ada", "Otto") as (made, (ada, otto)), held.asking() as pool:
        asked = [pool.submit(ada.post, register, json=text) for _ in range(6)]
        until(lambda: made.shares._at_once.total() == 6 and held.inside == 1)
        assert [client.post(start, json=large).status_code for client in (otto, ada)] == [201] * 2
        held.let_go()
        assert [each.result().status_code for each in asked] == [422] * 6


async def settle() -> None:
    """Lets everybody go on until they wait for each other."""
    for _ in range(100):
        await asyncio.sleep(0)


Asked = tuple[str, str]  # who, and for which kind of turn
ADA, OTTO, GRACE, ADA_AT_ONCE = ("Ada", "x"), ("Otto", "x"), ("Grace", "x"), ("Ada", "")


def order_of(*asked: Asked) -> list[Asked]:
    """The order in which they are let in who ask at the same time; a token has two threads."""
    shares, order = Shares(load_settings({"server_threads_per_token": 2}, {})), list[Asked]()

    async def ask(who: str, turn: str) -> None:
        async with shares.thread(who, turn):
            order.append((who, turn))
            await settle()

    async def all_at_once() -> None:
        await asyncio.gather(*(ask(*each) for each in asked))

    asyncio.run(all_at_once())
    return order


def test_who_wants_many_turns_stands_in_the_queue_once() -> None:
    assert order_of(*[ADA] * 6, OTTO, GRACE) == [ADA, OTTO, GRACE, *[ADA] * 5]


def test_nobody_has_a_turn_and_waits_for_their_own_threads() -> None:
    assert order_of(ADA_AT_ONCE, ADA_AT_ONCE, ADA, OTTO) == [ADA_AT_ONCE, ADA_AT_ONCE, OTTO, ADA]


def test_who_waits_for_a_turn_has_threads_for_the_rest() -> None:
    assert order_of(OTTO, ADA, ADA, ADA, ADA_AT_ONCE) == [OTTO, ADA_AT_ONCE, ADA, ADA, ADA]


@contextmanager
def busy(app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All connections with which one looks are in use, and nobody has the patience to open
    another."""
    monkeypatch.setattr(connection, "PATIENCE_S", 1000.0)
    with ExitStack() as stack:
        if isinstance(app.store, PostgresStore):
            for _ in range(app.store.db._sessions):
                stack.enter_context(app.store.db._room)
        else:
            for _ in range(IDLE):
                app.store.db.readers._taken().close()  # type: ignore[attr-defined]
        yield


def test_who_comes_in_waits_for_nobody_who_looks(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(app, "Ada") as (_, (ada,)), busy(app, monkeypatch):
        assert ada.post("/api/v1/executions", json={"workflow": "wait"}).status_code == 403
        assert ada.get("/readyz").status_code == 200


def test_those_who_ask_for_readiness_at_once_share_one_look(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, go = list[int](), threading.Event()

    def problems() -> list[str]:
        looks.append(1)
        go.wait(30)
        return []

    with served(app) as (made, _), ThreadPoolExecutor(20) as pool:
        monkeypatch.setattr(made, "problems", problems)
        asked = [pool.submit(asyncio.run, made.looked_at()) for _ in range(1)]
        until(lambda: looks)
        go.set()
        assert [each.result() for each in asked] == [[]]

        async def together() -> list[list[str]]:
            return await asyncio.gather(*(made.looked_at() for _ in range(20)))

        assert asyncio.run(together()) == [[]] * 20
        assert len(looks) == 2
        assert made._looking is None


# streams


def test_no_more_streams_than_there_are_places_however_many_come_at_once(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(
        flows=(FLOWS,), server_streams=5, server_streams_per_token=3, server_threads_per_token=30
    )
    id = app.start_workflow("wait").id
    together, get = threading.Barrier(5), app.get

    def all_at_once(id: str) -> Any:
        together.wait(30)
        return get(id)

    with (
        served(app, "Ada", "Otto") as (made, (ada, otto)),
        ThreadPoolExecutor(40) as pool,
        ExitStack() as stack,
    ):
        monkeypatch.setattr(app, "get", all_at_once)

        def follow(client: Client) -> int:
            with client.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
                if answer.status_code == 429:
                    assert (answer.read(), answer.json()["code"])[1] == "too_many_streams"
                    assert answer.headers["Retry-After"] == "10"
                for _ in answer.iter_lines():
                    pass
                return answer.status_code

        stack.callback(made.close)  # also where something is wrong: a stream has no end of its own
        of_one = [pool.submit(follow, ada) for _ in range(10)]
        until(lambda: sum(each.done() for each in of_one) + made.shares.streams == 10)
        assert made.shares.streams == 3
        of_other = [pool.submit(follow, otto) for _ in range(10)]
        until(lambda: sum(each.done() for each in (*of_one, *of_other)) + made.shares.streams == 20)
        assert made.shares.streams == 5
        until(lambda: not made.shares._at_once)
        assert ada.get("/api/v1/executions").status_code == 200, (
            "a stream is no request that is under way"
        )
        made.close()
        assert sorted(each.result() for each in of_one) == [200] * 3 + [429] * 7
        assert sorted(each.result() for each in of_other) == [200] * 2 + [429] * 8
        until(lambda: made.shares.streams == 0)


def test_a_stream_that_never_begins_gives_its_place_back(app: Rhythm) -> None:
    with served(app, "Ada") as (made, (ada,)):
        assert ada.get("/api/v1/executions/nothing/stream").status_code == 404
        until(lambda: (made.shares.streams, made.shares._at_once) == (0, {}))


# those who take nothing


def call(made: Server, path: str, secret: str, send: Callable[[Any], Any]) -> None:
    """Asks a server without one around it."""
    headers = [(b"host", b"x"), (b"authorization", f"Bearer {secret}".encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": headers,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> Any:
        await asyncio.sleep(60)

    asyncio.run(made(scope, receive, send))


def test_a_client_that_takes_nothing_loses_its_place_in_any_server(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOWS,), server_write_timeout="20ms")
    id, secret, made = (
        app.start_workflow("wait").id,
        app.create_token("Ada", roles=["viewer"]).secret,
        Server(app),
    )
    began = list[str]()

    async def takes_the_head_alone(message: Any) -> None:
        began.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    for path in (f"/api/v1/executions/{id}/stream", f"/api/v1/executions/{id}"):
        call(made, path, secret, takes_the_head_alone)
    assert began == ["http.response.start", "http.response.body"] * 2
    assert (made.shares.streams, made.shares._at_once) == (0, {})
    made.close()


def test_a_large_answer_is_sent_in_pieces_each_after_the_one_before_was_taken(app: Rhythm) -> None:
    id, secret = (
        app.start_workflow("wait", "x" * 200_000).id,
        app.create_token("Ada", roles=["viewer"]).secret,
    )
    sent = list[Any]()

    async def take(message: Any) -> None:
        sent.append(message)

    call(Server(app), f"/api/v1/executions/{id}", secret, take)
    bodies = [message for message in sent if message["type"] == "http.response.body"]
    assert max(len(message["body"]) for message in bodies) <= server.PIECE
    assert [message.get("more_body", False) for message in bodies] == [True] * (len(bodies) - 1) + [
        False
    ]
    assert len(bodies) > 3
    whole = b"".join(message["body"] for message in bodies)
    assert httpx.Response(200, content=whole).json()["inputs"] == "x" * 200_000
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(whole)).encode()


def test_a_refusal_says_when_to_come_back() -> None:
    refusal = sharing._too_many("x", "y", 2.1)
    assert isinstance(refusal, Refused)
    assert refusal.headers == {"Retry-After": "3"}
