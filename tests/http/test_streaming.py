"""The stream of an execution: what it tells, when it ends, and who may listen."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.http import Server, streaming, watching
from rhythm.http.answers import document
from tests.http.conftest import Client, until
from tests.support.serving import serving


def events(answer: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and data of each event."""
    id = ""
    for line in answer.iter_lines():
        if line.startswith("id: "):
            id = line[4:]
        elif line.startswith("data: "):
            yield id, json.loads(line[6:])


def test_a_stream_tells_every_state_that_lasts_and_ends_with_the_execution(
    app: Rhythm, admin: Client
) -> None:
    id = admin.start("wait")
    with admin.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        told = events(answer)
        assert next(told)[1]["status"] == "pending"
        with app.worker():
            assert any(view["status"] == "suspended" for _, view in told)
            app.signal(id, "go", 5)
            last = list(told)[-1]
    assert last[1] == app.get(id).as_json()
    again = admin.get(f"/api/v1/executions/{id}/stream", headers={"Last-Event-ID": last[0]})
    assert again.status_code == 204
    (only,) = events(admin.get(f"/api/v1/executions/{id}/stream", headers={"Last-Event-ID": "0"}))
    assert only == last


def test_a_stream_with_logs_has_every_line_once(app: Rhythm, admin: Client) -> None:
    app.register('workflow says() {\n  log("one")\n  await signal("go")\n  log("two")\n}')
    id = admin.start("says")
    path = f"/api/v1/executions/{id}/stream"
    with app.worker():
        with admin.stream("GET", path, params={"logs": "true"}) as answer:
            told = events(answer)
            known, first = next((id, data) for id, data in told if "message" in data)
        app.signal(id, "go")
        headers = {"Last-Event-ID": known}
        with admin.stream("GET", path, params={"logs": "true"}, headers=headers) as answer:
            rest = list(events(answer))
    assert first == json.loads(document(app.logs(id)[0]))
    assert [data["message"] for _, data in rest if "message" in data] == ["two"]
    assert rest[-1][0].endswith(f";{app.logs(id)[1].position}")
    again = admin.get(path, params={"logs": "true"}, headers={"Last-Event-ID": rest[-1][0]})
    assert again.status_code == 204
    found = list(events(admin.get(path, headers={"Last-Event-ID": "0;x"})))
    assert [data["status"] for _, data in found] == ["completed"]


def test_whoever_comes_back_is_told_only_what_is_new(app: Rhythm, admin: Client) -> None:
    id = admin.start("wait")
    with admin.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
        known, _ = next(events(answer))
    with admin.stream(
        "GET", f"/api/v1/executions/{id}/stream", headers={"Last-Event-ID": known}
    ) as answer:
        told = events(answer)
        app.cancel(id)
        new, view = next(told)
    assert new != known
    assert view["cancel_requested_at"] is not None


def test_many_streams_have_one_watcher_which_ends_with_the_last(app: Rhythm) -> None:
    server = Server(app, tokens=False)
    with serving(server) as base, Client(base) as me:
        ids = [me.start("wait") for _ in range(10)]

        def follow(id: str) -> list[str]:
            with me.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
                return [view["status"] for _, view in events(answer)]

        with ThreadPoolExecutor(20) as pool:
            followed = [pool.submit(follow, id) for id in ids * 2]
            until(lambda: len(server.watcher._followed) == 20 and app.changes._listeners)
            assert len(app.changes._listeners) == 1
            with app.worker():
                for id in ids:
                    app.signal(id, "go")
                assert {one.result()[-1] for one in followed} == {"completed"}
        until(lambda: server.watcher._thread is None)
        assert "rhythm_http_streams 0" in me.get("/metrics").text


def test_streams_share_what_they_send_and_forget_it_after_that(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many follow one execution and do not read, its view is read once and made into bytes
    once."""
    id = app.start_workflow("wait", {"text": "x" * 1000}).id
    read, get = list[str](), app.store.reading.get
    monkeypatch.setattr(app.store.reading, "get", lambda ids: read.extend(ids) or get(ids))
    watcher = watching.Watcher(app)

    async def follow() -> None:
        with ExitStack() as streams:
            first = [streams.enter_context(watcher.following(id)) for _ in range(5)]
            assert all([await one.next(30) for one in first])
            later = streams.enter_context(watcher.following(id))
            assert await later.next(30)
            assert {one.update for one in first} == {later.update}
            assert b'"text":"xxx' in (later.update.body if later.update else b"")
            assert (read, len(watcher._updates)) == ([id], 1)
            assert all(one.take() for one in (*first, later))
            assert later.take() is None
            until(lambda: not watcher._updates)  # the watcher itself may be about to let go of it

    asyncio.run(follow())
    watcher.close()


def test_a_large_view_is_handed_out_in_slices(app: Rhythm) -> None:
    update = watching.Update("s", app.get(app.start_workflow("wait", "x" * 1_000_000).id))
    parts = list(streaming._slices(update))
    assert max(map(len, parts)) == streaming.SLICE_BYTES == 64 * 1024
    assert (len(parts), b"".join(parts)) == (16, update.body)


def test_a_stream_ends_when_its_token_is_revoked(
    app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BEAT_S", 0.05)
    made = app.create_token("Ada", roles=["operator"])
    with Client(base, made.secret) as ada:
        id = ada.start("wait")
        with ada.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
            told = answer.iter_lines()
            while "event: execution" not in next(told):
                pass
            assert ": " in {next(told) for _ in range(6)}  # a sign of life
            app.revoke_token(made.view.id)
            assert not [line for line in told if line.startswith("data")]


def test_a_stream_of_what_changes_all_the_time_ends_with_its_token_too(
    app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BEAT_S", 0.5)
    made, ended = app.create_token("Ada", roles=["operator"]), threading.Event()
    with Client(base, made.secret) as ada:
        id = ada.start("wait")

        def change() -> None:
            while not ended.is_set():
                app.pause(id)
                app.resume(id)

        with (
            ada.stream("GET", f"/api/v1/executions/{id}/stream") as answer,
            ThreadPoolExecutor(1) as pool,
        ):
            told = events(answer)
            next(told)
            app.revoke_token(made.view.id)
            pool.submit(change)
            last = time.monotonic() + 120
            try:
                assert all(time.monotonic() < last for _ in told)
            finally:
                ended.set()


def test_a_stream_ends_when_its_token_may_look_no_more(
    app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BEAT_S", 0.05)
    made = app.create_token("Ada", roles=["operator"])
    with Client(base, made.secret) as ada:
        id = ada.start("wait")
        with ada.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
            told = events(answer)
            next(told)
            app.change_token(made.view.id, roles=[])
            assert list(told) == []


def test_streams_end_when_the_server_stops(app: Rhythm) -> None:
    server = Server(app, tokens=False)
    with serving(server) as base, Client(base) as me:
        id = me.start("wait")
        with me.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
            told = events(answer)
            next(told)
            server.close()
            assert list(told) == []


def test_the_stream_of_what_does_not_exist_is_a_problem(admin: Client) -> None:
    answer = admin.get("/api/v1/executions/nothing/stream")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_execution")


def test_a_watcher_without_answers_makes_the_server_unready(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(app, tokens=False)
    monkeypatch.setattr(watching, "UNHEALTHY_AFTER_S", -1.0)
    with serving(server) as base, Client(base) as me:
        id = me.start("wait")
        assert me.get("/readyz").status_code == 200
        with me.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
            told = events(answer)
            next(told)
            ready = httpx.get(f"{base}/readyz")
            assert (ready.status_code, ready.json()["problems"]) == (
                503,
                ["the watcher of streams gets no answers"],
            )
