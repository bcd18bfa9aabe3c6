"""`rhythm watch`: what happens in an execution, as it happens, on both databases and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.cli.commands import trace
from rhythm.cli.commands.trace import Printer
from rhythm.errors import Unavailable
from tests.app import conftest as applications
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command, until, waits_for_signal

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
app = executions.app


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "interval_s", lambda args: 0.01)
    monkeypatch.setattr(trace, "SETTLED_S", 0.0)


def test_what_happens_is_printed_until_it_has_ended(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    asked: list[None] = []

    def go(seconds: float) -> None:
        asked.append(None)
        if len(asked) == 1:
            app.signal(id, "approve", {"ok": True})
            until(app, id, executions.ended)

    monkeypatch.setattr(trace, "sleep", go)
    ran = rhythm(f"watch {id}")
    assert (ran.code, ran.err, len(asked)) == (0, "", 1)
    assert ran.out == rhythm(f"trace {id}").out == rhythm(f"trace {id} --follow").out
    steps = [json.loads(line) for line in rhythm(f"watch {id} --output ndjson").out.splitlines()]
    assert steps == rhythm(f"trace {id} --output json").json["items"]


def test_failure_and_time_that_is_over_have_the_exit_codes_of_result(
    rhythm: Command, app: Rhythm
) -> None:
    id = app.start_workflow("order", {"id": "unpaid"}).id
    ran = rhythm(f"watch {id} --timeout 30ms")
    assert (ran.code, ran.err) == (3, f"rhythm: {id} had not ended after 30ms; it goes on\n")
    until(app, id, executions.ended)
    ran = rhythm(f"watch {id}")
    assert ran.code == 1
    assert "failed[" in ran.err
    assert "no money" in ran.err
    assert rhythm("watch nobody").code == 1


def test_ctrl_c_ends_it(rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    id = app.start_workflow("order").id

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trace, "sleep", stop)
    ran = rhythm(f"watch {id}")
    assert (ran.code, ran.err) == (130, f"rhythm: stopped watching; {id} goes on\n")


def test_database_that_goes_away_for_a_while_is_waited_for(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    app.terminate(id)
    whole = rhythm(f"trace {id}").out
    steps, failures = Printer._new_steps, [Unavailable("gone"), Unavailable("gone")]

    def gone(self: Printer, over: bool) -> Iterator[Any]:
        for n, step in enumerate(steps(self, over)):
            if n == 1 and failures:  # one more is printed each time
                raise failures.pop()
            yield step

    monkeypatch.setattr(Printer, "_new_steps", gone)
    ran = rhythm(f"watch {id}")
    assert (ran.code, ran.out) == (1, whole)
    failures += [Unavailable("gone")]
    monkeypatch.setattr(trace, "SILENCE_S", -1)
    assert rhythm(f"watch {id}").err == "rhythm: gone\n"
