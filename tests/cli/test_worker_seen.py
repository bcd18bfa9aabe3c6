"""`rhythm worker` as it is seen from outside: its log, its metrics, its health."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rhythm.cli import exporter
from rhythm.cli.command import UsageError
from rhythm.cli.exporter import Exporter
from rhythm.cli.main import main
from tests.app import conftest as applications
from tests.app.conftest import MakeApp

url, make_app = applications.url, applications.make_app
WAIT_S = 120
TASKS = "import rhythm\n\n\n@rhythm.task\ndef note() -> int:\n    return 1\n"


class Worker:
    """A worker process, and what it has written."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._log = process, log

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def says(self, pattern: str) -> re.Match[str]:
        last = time.monotonic() + WAIT_S
        while not (found := re.search(pattern, self.log(), re.MULTILINE)):
            assert time.monotonic() < last, self.log()
            assert self.process.poll() is None, self.log()
        return found

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_S) == 0, self.log()
        return self.log()


Start = Callable[..., Worker]


@pytest.fixture
def start(url: str, tmp_path: Path) -> Iterator[Start]:
    """Starts `rhythm worker` with these arguments on the database of the test."""
    (tmp_path / "tasks.py").write_text(TASKS)
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: str) -> Worker:
        log = tmp_path / f"log{len(started)}"
        command = [
            sys.executable,
            "-m",
            "rhythm",
            "worker",
            "--app",
            "tasks.py",
            "--database",
            url,
            *args,
        ]
        with log.open("wb") as out:
            started.append(subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out))
        return Worker(started[-1], log)

    yield run
    for process in started:
        process.kill()
        process.wait()


def got(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.headers["Content-Type"], problem.read().decode()


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody uses just now."""
    for port in range(20_000 + os.getpid() % 20_000, 65_000, count):
        try:
            for n in range(count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + n))
            return port
        except OSError:
            continue
    raise AssertionError("there is none")


def test_worker_tells_a_line_for_people_and_events_below_it(start: Start) -> None:
    worker = start("--name", "box")
    worker.says(r"^rhythm: worker box-\w+: 1 task, queue default, 100 at once, on ")
    said = worker.stop().splitlines()
    assert said[1] == "rhythm: stopping"
    assert re.fullmatch(
        (
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO worker_stopped worker=box-\w+: "
            r"nothing is claimed any more"
        ),
        said[2],
    )
    assert len(said) == 3


def test_every_line_of_a_json_log_is_a_document(start: Start) -> None:
    worker = start("--log-format", "json", "--log-level", "debug")
    worker.says('"worker_started"')
    events = [json.loads(line) for line in worker.stop().splitlines()]
    assert [event["event"] for event in events] == [
        "worker_started",
        "worker_draining",
        "worker_stopped",
    ]
    assert events[0].keys() >= {
        "time",
        "level",
        "logger",
        "worker",
        "queues",
        "concurrency",
        "detail",
    }


def test_logging_that_the_application_has_set_up_is_left_alone(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(
        f"import logging\n\nlogging.basicConfig(format='mine %(message)s', level='INFO')\n{TASKS}"
    )
    worker = start()
    worker.says("^mine worker_started worker=")
    assert " INFO worker_stopped" not in worker.stop()


def test_each_process_serves_metrics_and_health_on_a_port_of_its_own(
    start: Start, make_app: MakeApp
) -> None:
    port = free_ports(2)
    worker = start("--metrics-port", str(port), "--processes", "2")
    for n in range(2):
        worker.says(rf", metrics on http://127\.0\.0\.1:{port + n}/metrics$")
        base = f"http://127.0.0.1:{port + n}"
        assert got(f"{base}/healthz")[::2] == (200, "ok\n")
        last = time.monotonic() + WAIT_S
        while (ready := got(f"{base}/readyz"))[0] != 200:
            assert time.monotonic() < last, ready
        assert json.loads(ready[2])["problems"] == []
        status, kind, text = got(f"{base}/metrics?x=1")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert "# TYPE rhythm_commits_total counter\n" in text
        assert got(f"{base}/")[::2] == (404, "there is /metrics, /healthz, /readyz\n")
    worker.stop()


@contextmanager
def served(worker: Any) -> Iterator[str]:
    made = Exporter("127.0.0.1", 0)
    made.worker = worker
    try:
        yield made.url
    finally:
        made.server.shutdown()
        made.server.server_close()


def test_readiness_says_why_not(make_app: MakeApp) -> None:
    with served(None) as base:
        assert got(f"{base}/readyz") == (
            503,
            "application/json",
            '{"ready": false, "problems": ["it waits for the database"]}\n',
        )
        assert (got(f"{base}/healthz")[0], got(f"{base}/metrics")[::2]) == (200, (200, ""))
    worker = make_app().worker()
    with served(worker) as base:
        status, _, body = got(f"{base}/readyz")
        assert (status, json.loads(body)["problems"]) == (
            503,
            ["it has not asked for work yet", "it has ended"],
        )
        with worker:
            worker._worker.drain()
            status, _, body = got(f"{base}/readyz")
            assert (status, json.loads(body)["draining"], "it is being stopped" in body) == (
                503,
                True,
                True,
            )


def test_client_that_goes_away_or_says_nothing_is_nobodys_problem(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exporter._Handler, "timeout", 0.05)
    with served(make_app().worker()) as base:
        port = int(base.rpartition(":")[2])
        for said in (b"", b"GET /metr", b"GET /metrics HTTP/1.0\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(said)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.settimeout(WAIT_S)
            assert client.recv(1) == b""
        assert got(f"{base}/healthz")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_port_that_is_taken_or_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(
            UsageError,
            match=(
                r"metrics cannot be served on 127.0.0.1 port \d+: .*; choose another "
                r"--metrics-port"
            ),
        ):
            Exporter("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UsageError, match="choose another"):
        Exporter("127.0.0.1", 70_000)
    assert main(["worker", "--app", "tasks.py", "--metrics-port", "http"]) == 2
    assert capsys.readouterr().err.startswith(
        "rhythm: --metrics-port is a whole number from 1 on, not http\n"
    )
