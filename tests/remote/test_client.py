"""What becomes of a request: against servers that do not listen, send something else, or break off.

Each of them is one clear error; what may have been done is said, and nothing is done twice.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from rhythm import errors
from rhythm.remote import client as clients
from rhythm.remote import transport
from rhythm.remote.address import parse_address
from rhythm.remote.client import Client

JSON = "application/json"
PROBLEM = "application/problem+json"
Serve = Callable[[socket.socket, list[bytes]], None]


class Listening:
    """A server that answers each request with the next of these, and remembers what it was sent.

    An answer is bytes, sent as they are; empty: the connection is closed without one.
    """

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(60)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, suppress(OSError):  # a client may break off, too
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        while self.answers:
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(65536)
                if not part:
                    return
                request += part
            head, _, body = request.partition(b"\r\n\r\n")
            length = next(
                (
                    int(line[15:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            while len(body) < length:
                body += connection.recv(65536)
            self.requests.append(head + b"\r\n\r\n" + body)
            answer = self.answers.pop(0)
            connection.sendall(answer)
            if not answer or b"\r\nconnection: close" in answer.lower():
                return

    def close(self) -> None:
        self._listener.close()


def answer(value: Any, status: int = 200, kind: str = JSON, **headers: str) -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def problem(status: int, code: str, detail: str, **more: Any) -> bytes:
    return answer({"status": status, "code": code, "detail": detail, **more}, status, PROBLEM)


@pytest.fixture
def server() -> Iterator[Listening]:
    made = Listening()
    yield made
    made.close()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def client(server: Listening, slept: list[float]) -> Iterator[Client]:
    made = Client(parse_address(server.url), "rhy_secret", slept.append)
    yield made
    made.close()


def test_connection_is_kept_and_the_token_is_sent_as_a_header(
    server: Listening, client: Client
) -> None:
    server.answers += [answer({"n": 1}), answer({"n": 2})]
    assert client.get("a b", "c/d", x="ä", y=None, z=[1, 2]) == {"n": 1}
    assert client.get("e") == {"n": 2}
    assert server.connections == 1
    first = server.requests[0].decode()
    assert first.startswith("GET /api/v1/a%20b/c%2Fd?x=%C3%A4&z=1&z=2 HTTP/1.1\r\n")
    assert "\r\nAuthorization: Bearer rhy_secret\r\n" in first
    assert "\r\nAccept-Encoding: identity\r\n" in first


def test_connection_that_the_server_has_closed_is_made_anew(
    server: Listening, client: Client
) -> None:
    server.answers += [answer(1, Connection="close"), answer(2)]
    assert (client.get("a"), client.post("b")) == (1, 2)
    assert server.connections == 2


def test_nobody_listens_and_no_such_host_say_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for call in (lambda c: c.get("a"), lambda c: c.post("a", check="look")):
        with pytest.raises(
            errors.Unavailable, match=rf"^nothing listens at {url}: is the URL right"
        ):
            call(Client(parse_address(url), None))
    with pytest.raises(errors.Unavailable, match=r"there is no host 'nowhere.invalid'"):
        Client(parse_address("http://nowhere.invalid"), None).get("a")


LOST = [
    b"",
    b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{",
    b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nff\r\n{",
    b"\x16\x03\x01\x00\x00 no HTTP\r\nconnection: close\r\n\r\n",
]


@pytest.mark.parametrize("lost", LOST)
def test_answer_that_is_lost_is_asked_for_again_unless_it_is_an_act(
    server: Listening, client: Client, slept: list[float], lost: bytes
) -> None:
    server.answers += [lost, lost, answer(1)]
    assert client.get("a") == 1
    server.answers += [lost, answer(2)]
    assert client.post("a", key="k") == 2
    assert server.requests[-1] == server.requests[-2]
    assert b"\r\nIdempotency-Key: k\r\n" in server.requests[-1]
    assert slept == [clients.PAUSE_S] * 3
    server.requests.clear()
    server.answers += [lost, answer(3)]
    with pytest.raises(
        errors.Unavailable, match=r"was lost: .*; it may have been done: look there"
    ):
        client.post("a", check="look there")
    assert len(server.requests) == 1


def test_answer_that_is_lost_again_and_again_is_given_up(server: Listening, client: Client) -> None:
    server.answers += [b""] * 6
    with pytest.raises(errors.Unavailable, match=r"the answer of http://127.0.0.1:.* was lost"):
        client.get("a")
    with pytest.raises(errors.Unavailable, match="it may have been done: look there"):
        client.post("a", key="k", check="look there")
    assert len(server.requests) == 6


def test_answer_that_does_not_end_is_given_up(
    server: Listening, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "TIMES", 1)
    head = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n1"
    server.answers += [head, answer(1)]
    with pytest.raises(errors.Unavailable, match=r"no whole answer within 0 s; it may have been"):
        client.post("a", within_s=0.05)


def test_answer_that_is_too_large_is_refused(
    server: Listening, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 1000)
    server.answers += [answer(b"1" * 200_000), answer(2)]
    with pytest.raises(errors.ServerError, match="the answer has more than 0 MiB"):
        client.get("a")


@pytest.mark.parametrize(
    ("sent", "kind", "message"),
    [
        (answer(b"<html>", kind="text/html"), errors.ServerError,
            "cannot read the answer of .*: it is of the type 'text/html', not application/json; is it a server of Rhythm"),
        (answer(b"{"), errors.ServerError, "cannot read the answer of .*: it is not JSON"),
        (answer(b"[" * 5000), errors.ServerError, "cannot read the answer of .*: it is not JSON"),
        (answer(b"no", 404, "text/html"), errors.ServerError,
            "what answers at .* is no server of Rhythm: it answers 404 of the type 'text/html'"),
        (answer(b"no", 502, "text/html"), errors.Unavailable, "a proxy at .* answers 502"),
        (answer(b"", 302, Location="https://evil.example/"), errors.ServerError,
            "sends elsewhere, to 'https://evil.example/', and a token is not sent on"),
        (problem(404, "no_such_path", "nothing"), errors.ServerError, "another version of Rhythm"),
        (problem(405, "method_not_allowed", "no"), errors.ServerError, "another version of Rhythm"),
        (problem(401, "token_missing", "send a token"), errors.ServerError,
            "refuses whoever asks: send a token; give a token with --token-file"),
        (problem(403, "permission_missing", "this needs x"), errors.ServerError,
            "refuses this: this needs x"),
        (problem(403, "self_approval", "four eyes"), errors.Denied, "^four eyes$"),
        (problem(404, "unknown_execution", "there is none"), errors.UnknownExecution, "^there is none$"),
        (problem(409, "conflict", "taken", id="x"), errors.Conflict, "^taken$"),
        (problem(409, "already_decided", "late"), errors.Undecidable, "^late$"),
        (problem(409, "execution_ended", "late"), errors.NotDelivered, "^late$"),
        (problem(429, "mailbox_full", "full"), errors.NotDelivered, "^full$"),
        (problem(409, "not_retryable", "no"), errors.NotRetryable, "^no$"),
        (problem(413, "body_too_large", "too much"), errors.ServerError, "answers 413: too much"),
        (problem(422, "invalid_request", "limit is"), ValueError, "^limit is$"),
        (problem(422, "invalid_inputs", "a is missing"), errors.InvalidInputs, "^a is missing$"),
        (problem(422, "invalid_workflow", "line 2", problems=[{"code": "E1", "message": "m"}]),
            errors.FlowError, "line 2"),
        (problem(429, "too_many_failures", "wait"), errors.Unavailable, "is asked too often: wait"),
        (problem(500, "internal_error", "in the log"), errors.ServerError, "answers 500: in the log"),
        (problem(503, "database_unavailable", "try again"), errors.Unavailable, "says: try again"),
    ],
)  # fmt: skip
def test_answer_that_is_no_success_is_one_clear_error(
    server: Listening,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    sent: bytes,
    kind: type[Exception],
    message: str,
) -> None:
    monkeypatch.setattr(clients, "TIMES", 1)
    server.answers.append(sent)
    with pytest.raises(kind, match=message) as refused:
        client.get("a")
    assert type(refused.value) is kind
    assert "rhy_secret" not in str(refused.value)


def test_act_that_a_database_or_a_proxy_did_not_answer_may_have_been_done(
    server: Listening, client: Client
) -> None:
    for sent in (problem(503, "database_unavailable", "x"), answer(b"", 504, "text/html")):
        server.answers.append(sent)
        with pytest.raises(errors.Unavailable, match="it may have been done: look there"):
            client.post("a", check="look there")


def test_who_asks_too_often_waits_as_long_as_the_server_says(
    server: Listening, client: Client, slept: list[float]
) -> None:
    busy = answer({"code": "too_many_requests", "detail": "slowly"}, 429, PROBLEM, Retry_After="4")
    server.answers += [busy, busy, answer(1)]
    assert client.post("a") == 1
    assert slept == [4.0, 4.0]
    server.answers += [busy] * 3
    with pytest.raises(errors.Unavailable, match="is asked too often: slowly"):
        client.get("a")


def test_list_is_read_page_by_page_up_to_what_is_wanted(server: Listening, client: Client) -> None:
    server.answers += [
        answer({"items": [1, 2], "cursor": "b"}),
        answer({"items": [3], "cursor": "c"}),
        answer({"items": [1, 2], "cursor": "b"}),
        answer({"items": [3], "cursor": None}),
    ]
    assert client.page(["a"], 3, None, x=1) == ([1, 2, 3], "c")
    assert list(client.all("a")) == [1, 2, 3]
    asked = [request.split(b" ")[1].decode() for request in server.requests]
    assert asked == [
        "/api/v1/a?limit=3&x=1",
        "/api/v1/a?limit=1&cursor=b&x=1",
        "/api/v1/a?limit=1000",
        "/api/v1/a?limit=1000&cursor=b",
    ]


@pytest.mark.parametrize(
    "pages",
    [
        [{"items": [1], "cursor": "b"}, {"items": [2], "cursor": "b"}],
        [{"items": [], "cursor": "b"}],
        [{"items": 1, "cursor": None}],
        [{"items": []}],
        [[]],
    ],
)
def test_list_that_does_not_go_on_is_refused(
    server: Listening, client: Client, pages: list[Any]
) -> None:
    server.answers += map(answer, pages)
    with pytest.raises(errors.ServerError, match="cannot read the answer of"):
        list(client.all("a"))
