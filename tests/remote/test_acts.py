"""An act whose answer was lost is done once, and said to have been done."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rhythm import errors
from rhythm.remote.address import parse_address
from rhythm.remote.application import RemoteRhythm
from rhythm.remote.client import Client
from tests.remote.test_client import Listening, answer, problem


@pytest.fixture
def server() -> Iterator[Listening]:
    made = Listening()
    yield made
    made.close()


@pytest.fixture
def app(server: Listening) -> Iterator[RemoteRhythm]:
    with RemoteRhythm(Client(parse_address(server.url), None, lambda seconds: None)) as app:
        yield app


def bodies(server: Listening) -> list[dict[str, object]]:
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]


def test_start_has_an_id_of_its_own_and_is_new_however_often_it_was_sent(
    app: RemoteRhythm, server: Listening
) -> None:
    server.answers += [b"", answer({"id": "x", "created": False})]
    handle = app.start_workflow("order", {"a": 1}, by="ann")
    first, second = bodies(server)
    assert first == second
    assert len(str(first["id"])) == 26
    assert "by" not in first
    assert handle.created


def test_start_that_conflicts_with_itself_was_made(app: RemoteRhythm, server: Listening) -> None:
    def conflict() -> bytes:
        return problem(409, "conflict", "taken", id=str(bodies(server)[0]["id"]))

    server.answers += [b"", b"later"]
    talk = server._talk

    def patched(connection: object) -> None:
        if server.requests:
            server.answers[:] = [conflict()]
        talk(connection)  # type: ignore[arg-type]  # a socket

    server._talk = patched  # type: ignore[method-assign]  # the answer repeats what was sent
    handle = app.start_workflow("order", on_conflict="fail")
    assert (handle.created, str(handle)) == (True, bodies(server)[0]["id"])


def test_start_with_an_id_or_key_is_as_new_as_the_server_says(
    app: RemoteRhythm, server: Listening
) -> None:
    server.answers += [answer({"id": "x", "created": False})] * 2
    assert not app.start_workflow("order", id="x").created
    assert not app.start_workflow("order", idempotency_key="k").created
    assert b"\r\nIdempotency-Key: k\r\n" in server.requests[1]
    assert "id" not in bodies(server)[1]


def test_replacement_whose_answer_is_lost_is_not_sent_again(
    app: RemoteRhythm, server: Listening
) -> None:
    server.answers += [b"", answer(1)]
    with pytest.raises(errors.Unavailable, match="it may have been done: the same key starts it"):
        app.start_workflow("order", idempotency_key="k", on_conflict="replace")
    assert len(server.requests) == 1


def test_signal_and_event_are_sent_once(app: RemoteRhythm, server: Listening) -> None:
    server.answers += [b"", answer({"id": "x", "sent": False})]
    assert app.signal("x", "go")
    assert server.requests[0] == server.requests[1]
    server.answers += [answer({"id": "x", "sent": False})]
    assert not app.signal("x", "go", signal_id="mine")
    server.requests.clear()
    server.answers += [b"", answer({"published": 0, "repeated": 1})]
    assert app.publish("paid", {"a": 1})
    assert server.requests[0] == server.requests[1]
    server.answers += [answer({"published": 0, "repeated": 1})]
    assert not app.publish("paid", event_id="mine")


def test_act_without_a_key_says_how_to_see_whether_it_was_done(
    app: RemoteRhythm, server: Listening
) -> None:
    server.answers += [b"", answer(1)]
    with pytest.raises(errors.Unavailable, match=r"it may have been done: `rhythm show x` tells"):
        app.pause("x")
    assert len(server.requests) == 1


@pytest.mark.parametrize("id", ["", ".", "..", "a/b", "a\nb", "x" * 30_000])
def test_id_that_cannot_be_is_not_sent(app: RemoteRhythm, server: Listening, id: str) -> None:
    with pytest.raises(errors.UnknownExecution):
        app.get(id)
    with pytest.raises(errors.UnknownApproval):
        app.approval(id)
    assert app.executions.get_many([id]) == {}
    assert server.requests == []
