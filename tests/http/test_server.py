"""The server as a whole: health, readiness and metrics; mounted in another application; and `rhythm
server`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from rhythm.app import Rhythm
from rhythm.errors import Unavailable
from rhythm.http import Server, health
from tests.app.conftest import MakeApp
from tests.http.conftest import Client, until
from tests.support.serving import serving


def test_a_server_lives_and_is_ready_as_long_as_its_database_answers(
    app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert httpx.get(f"{base}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{base}/readyz").json() == {"ready": True, "problems": []}


def test_a_database_that_fails_or_is_silent_makes_the_server_unready(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise Unavailable("the server at 10.1.2.3 does not answer")

    def hang() -> int:
        may_end.wait(120)
        return 1

    may_end = threading.Event()
    monkeypatch.setattr(health, "ANSWER_S", 0.05)
    for ask in (fail, hang):
        server = Server(app)
        server._probe = health.DatabaseProbe(ask)
        with serving(server) as base:
            answer = httpx.get(f"{base}/readyz")
            assert (answer.status_code, answer.json()["problems"]) == (
                503,
                ["the database does not answer"],
            )
            assert httpx.get(f"{base}/healthz").status_code == 200
    may_end.set()


def test_a_worker_whose_loop_is_late_makes_the_server_unready(
    app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app.worker("one") as worker:
        until(lambda: httpx.get(f"{base}/readyz").status_code == 200)
        monkeypatch.setattr(
            type(worker._worker.claimer),
            "asked_at",
            property(lambda self: -1e9, lambda self, at: None),
            raising=False,
        )
        answer = httpx.get(f"{base}/readyz")
        assert (answer.status_code, answer.json()["problems"]) == (
            503,
            [f"worker {worker.name}: a loop of it is late or fails"],
        )
        monkeypatch.undo()
    assert httpx.get(f"{base}/readyz").status_code == 200


def test_requests_are_counted_by_route_and_not_by_path(admin: Client) -> None:
    admin.start("wait")
    for id in ("a", "b"):
        admin.get(f"/api/v1/executions/{id}")
    for n in range(3):
        admin.get(f"/nothing/{n}")
    answer = admin.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert (
        'rhythm_http_requests_total{method="GET",route="/api/v1/executions/{id}",status="404"} 2'
        in answer.text
    )
    assert 'rhythm_http_requests_total{method="",route="",status="404"} 3' in answer.text
    assert 'rhythm_queue_depth{queue="default"} 1' in answer.text


def test_metrics_of_a_worker_in_the_same_process_are_told_along(app: Rhythm, admin: Client) -> None:
    with app.worker():
        text = admin.get("/metrics").text
    assert "rhythm_worker_slots" in text
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(names) == len(set(names))


def test_a_server_is_mounted_in_another_application_with_its_guard(app: Rhythm) -> None:
    server = app.server()
    site = FastAPI(lifespan=server.lifespan)
    site.mount("/rhythm", server)
    secret = app.create_token("Ada", roles=["operator"]).secret
    with serving(site) as base:
        assert httpx.get(f"{base}/rhythm/healthz").status_code == 200
        assert httpx.get(f"{base}/rhythm/api/v1/executions").status_code == 401
        with Client(base, secret) as ada:
            started = ada.post("/rhythm/api/v1/executions", json={"workflow": "wait"})
            assert (
                started.headers["Location"] == f"/rhythm/api/v1/executions/{started.json()['id']}"
            )
            assert ada.get(started.headers["Location"]).status_code == 200
    assert server.watcher._closed


def test_nothing_but_http_is_spoken(app: Rhythm) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(app.server()({"type": "websocket", "path": "/api/v1/executions"}, None, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


@contextmanager
def rhythm_server(folder: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`rhythm server` as a process, and its first line."""
    command = [sys.executable, "-m", "rhythm", "server", "--port", "0", *args]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        try:
            assert process.stderr is not None
            yield process, process.stderr.readline()
        finally:
            process.kill()


def test_the_command_serves_until_it_is_stopped_also_with_streams_open(tmp_path: Path) -> None:
    with rhythm_server(tmp_path) as (process, said):
        assert "for everyone on this machine, as there is no token yet" in said
        (base,) = re.findall(r"http://127\.0\.0\.1:\d+", said)
        with Client(base) as me:
            me.post(
                "/api/v1/workflows",
                json={"source": 'workflow wait() {\n  return await signal("go")\n}'},
            )
            id = me.start("wait")
            with me.stream("GET", f"/api/v1/executions/{id}/stream") as answer:
                lines = answer.iter_lines()
                next(lines)
                process.send_signal(signal.SIGTERM)
                assert not [
                    line
                    for line in lines
                    if line.startswith("data") and json.loads(line[6:])["id"] != id
                ]
        assert process.wait(120) == 0


def test_the_command_waits_for_no_request_that_does_not_come(tmp_path: Path) -> None:
    code = (
        "import sys, rhythm.http.connections as s, rhythm.cli.main as m; s.HEAD_S = 0.5; "
        "sys.exit(m.main(['server', '--port', '0']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            (port,) = re.findall(r":(\d+)/", process.stderr.readline())
            request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
            for begun in (b"", b"GET /healthz HTTP/1.1\r\nX-Slow:", request + b"GET /healthz"):
                with socket.create_connection(("127.0.0.1", int(port)), 20) as slow:
                    slow.sendall(begun)
                    while slow.recv(4096):  # until it is closed; else a timeout
                        pass
            with Client(f"http://127.0.0.1:{port}") as me:
                me.post(
                    "/api/v1/workflows",
                    json={"source": 'workflow wait() {\n  return await signal("go")\n}'},
                )
                with me.stream("GET", f"/api/v1/executions/{me.start('wait')}/stream") as answer:
                    lines = answer.iter_lines()
                    next(lines)
                    assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        finally:
            process.kill()


def test_the_command_asks_for_tokens_once_there_are_any(
    url: str, make_app: MakeApp, tmp_path: Path
) -> None:
    secret = make_app().create_token("Ada", roles=["viewer"]).secret
    with rhythm_server(tmp_path, "--database", url, "--host", "0.0.0.0") as (_, said):
        assert "for those who have a token" in said
        port = re.findall(r":(\d+)/", said)[0]
        assert httpx.get(f"http://127.0.0.1:{port}/api/v1/executions").status_code == 401
        answer = httpx.get(
            f"http://127.0.0.1:{port}/api/v1/executions",
            headers={"Authorization": f"Bearer {secret}"},
        )
        assert answer.status_code == 200


def test_the_command_refuses_what_cannot_be(tmp_path: Path) -> None:
    def refused(*args: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "rhythm", "server", *args],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 2, ran
        return ran.stderr

    for host in ("0.0.0.0", "::"):
        assert "there is no valid token: make one first" in refused("--host", host, "--port", "0")
    assert "through a proxy others come in" in refused("--proxy", "127.0.0.1")
    assert "--port is a number" in refused("--port", "x")
    assert "no address" in refused("--host", "..")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "choose another --port" in refused("--port", str(taken.getsockname()[1]))
