"""`rhythm top` and the overview behind it, on both databases and over HTTP."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rhythm.app import Rhythm, overview
from rhythm.errors import ExecutionFailed
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.places import on_database
from tests.cli.test_executions import Command, until, waits_for_signal
from tests.cli.test_queues import lines, worker
from tests.support.counting import counting
from tests.support.stores import migrated_file

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
app = executions.app
FAIL = 'workflow fail() {\n  throw "no money"\n}'


def test_empty_database_says_so(rhythm: Command, app: Rhythm) -> None:
    ran = rhythm("top")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1:] == [
        "live         none",
        "last minute  0 started, none ended",
        "approvals    none open",
        "",
        "no queue has ready work",
        "",
        "no workers",
    ]


def test_everything_is_counted_and_shown(rhythm: Command, app: Rhythm) -> None:
    app.register(FAIL)
    with app.worker(), pytest.raises(ExecutionFailed):
        app.start_workflow("fail", id="f").result("120s")
    until(app, app.start_workflow("order", {"id": "A"}).id, waits_for_signal)
    app.start_workflow("order", {"id": "B"}, id="paused")
    app.pause("paused")
    for _ in range(3):
        app.queue_task("somewhere", queue="mail")
    app.pause_queue("fax")
    worker(app, "box-7")
    found = lines(rhythm("top --once").out)
    assert found[1:4] == [
        ["live", "1 suspended, 1 paused"],
        ["last minute", "6 started, 1 failed"],
        ["approvals", "none open"],
    ]
    assert [row[0] for row in found[5:9]] == ["QUEUE", "mail", "default", "fax"]
    assert found[6][:2] == ["mail", "3"]
    assert found[8] == ["fax", "0", "paused"]
    (own,) = [row for row in found if row[0] == "box-7"]
    assert own[:5] == ["box-7", "live", "3/20", "0", "box"]
    assert (found[-1][:2], found[-1][-1].endswith("no money")) == (["f", "fail"], True)
    document = rhythm("top --output json").json
    assert (document["live"], document["started"], document["ended"]) == (
        {"suspended": 1, "paused": 1},
        6,
        {"failed": 1},
    )
    assert document["queues"][0]["name"] == "mail"


def test_count_that_is_large_is_cut(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST_COUNTED", 2)
    app.start_many("order", [{"id": n} for n in range(4)])
    out = rhythm("top").out
    assert "live         2+ pending\n" in out
    assert "last minute  2+ started, none ended\n" in out
    assert ["default", "2+"] in [row[:2] for row in lines(out)]


@on_database("it is about statements")
def test_it_takes_three_statements_however_much_there_is(rhythm: Command, app: Rhythm) -> None:
    app.start_many("order", [{"id": n} for n in range(300)])
    with counting(app.store) as asked:
        app.overview()
    assert len(asked.statements) == 3
    assert asked.rows < 20


def test_interval_has_a_least_length(rhythm: Command, app: Rhythm) -> None:
    ran = rhythm("top --interval 10ms")
    assert (ran.code, ran.err) == (2, "rhythm: --interval is at least 1s, not 10ms\n")


def test_on_a_terminal_it_is_drawn_again_until_q(tmp_path: Path) -> None:
    migrated_file(tmp_path / "app.db")
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "rhythm", "top", "--interval", "1s"]
    command += ["--database", "sqlite:///app.db"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=tmp_path, env=environment
    )
    os.close(slave)
    shown, last = b"", time.monotonic() + 60
    try:
        while time.monotonic() < last and process.poll() is None:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    shown += os.read(master, 65536)
                except OSError:
                    break
            if shown.count(b"\x1b[H\x1b[2J") == 2:
                os.write(master, b"q")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert shown.count(b"\x1b[H\x1b[2J") >= 2
    assert shown.startswith(b"\x1b[?1049h")
    assert b"no queue has ready work" in shown


def test_application_and_server_return_the_same(make_app: MakeApp) -> None:
    seen = make_app().overview()
    assert (seen.live, seen.started, seen.ended, seen.queues) == ({}, 0, {}, ())
