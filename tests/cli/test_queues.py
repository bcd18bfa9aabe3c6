"""`rhythm workers`, `rhythm queues` and `rhythm queue`, on both databases."""

from __future__ import annotations

import json
import re

from rhythm.app import Rhythm
from rhythm.store.interfaces.workers import Beat
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command
from tests.support.stores import rows

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
BEAT = Beat("box-1f", "box", 71, ("mail", "default"), 20, 3, False, "0.1")


def lines(text: str) -> list[list[str]]:
    return [re.split(r" {2,}", line) for line in text.splitlines()]


def worker(app: Rhythm, name: str, silent_s: int = 0, draining: bool = False) -> None:
    app.store.workers.beat(BEAT.replace(worker=name, draining=draining), {}, 60)
    silent_us = silent_s * 1_000_000
    change = (
        "UPDATE worker_heartbeats SET beat_at = beat_at - ?, started_at = started_at - ? "
        "WHERE worker_id = ?"
    )
    rows(app.store, change, [silent_us, silent_us + 5_000_000, name])


def test_workers_are_listed_with_what_they_do_and_how_long_ago_they_were_heard_of(
    rhythm: Command, make_app: MakeApp
) -> None:
    app = make_app()
    assert rhythm("workers").out == "no workers: `rhythm worker --app FILE` starts one\n"
    worker(app, "a")
    worker(app, "b", silent_s=90)
    worker(app, "c", draining=True)
    app.queue_task("somewhere")
    app.store.claims.claim("a", ["default"], 5, 60)
    heads, *found = lines(rhythm("workers", "--output", "table").out)
    assert heads == [
        "WORKER",
        "STATE",
        "RUNNING",
        "CLAIMS",
        "LAST BEAT",
        "UP",
        "HOST",
        "PID",
        "VERSION",
        "QUEUES",
    ]
    assert found[0][:4] == ["a", "live", "3/20", "1"]
    assert found[0][5:] == ["5s", "box", "71", "0.1", "mail,default"]
    assert found[1][:5] == ["b", "dead", "3/20", "0", "1m30s ago"]
    assert found[2][:2] == ["c", "draining"]


def test_workers_and_queues_for_programs(rhythm: Command, make_app: MakeApp) -> None:
    app = make_app()
    worker(app, "a")
    app.pause_queue("mail", "down", "Ada")
    (seen,) = rhythm("workers --output json").json["items"]
    times = {name: seen.pop(name) for name in ("silent_s", "started_at", "beat_at")}
    assert seen == {
        "name": "a",
        "host": "box",
        "pid": 71,
        "queues": ["mail", "default"],
        "concurrency": 20,
        "running": 3,
        "claims": 0,
        "state": "live",
        "version": "0.1",
    }
    assert times["started_at"].endswith("Z")
    mail = [json.loads(line) for line in rhythm("queues --output ndjson").out.splitlines()][1]
    assert mail.pop("paused_at").endswith("Z")
    assert mail == {
        "name": "mail",
        "ready": 0,
        "oldest_s": None,
        "delayed": 0,
        "running": 0,
        "expired": 0,
        "workers": 1,
        "paused_by": "Ada",
        "paused_reason": "down",
    }


def test_queues_say_what_waits_for_how_long_and_that_nobody_serves_it(
    rhythm: Command, make_app: MakeApp
) -> None:
    app = make_app()
    assert rhythm("queues").out == "no queues: nothing waits, and no worker serves any\n"
    for delay in (None, None, "1h"):
        app.queue_task("somewhere", queue="mail", delay=delay)
    rows(app.store, "UPDATE ready SET order_key = order_key - 200000000")
    assert lines(rhythm("queues").out) == [
        ["QUEUE", "READY", "OLDEST", "DELAYED", "RUNNING", "WORKERS", "NOTE"],
        ["mail", "2", "3m20s", "1", "0", "0", "no worker serves it"],
    ]
    app.store.claims.claim("gone", ["mail"], 1, 60)
    rows(app.store, "UPDATE ready SET claim_expires_at = 0 WHERE claimed_by = 'gone'")
    worker(app, "a")
    found = lines(rhythm("queues").out)
    assert found[0] == [
        "QUEUE",
        "READY",
        "OLDEST",
        "DELAYED",
        "RUNNING",
        "EXPIRED",
        "WORKERS",
        "NOTE",
    ]
    assert found[2] == ["mail", "1", "3m20s", "1", "0", "1", "1"]


def test_queue_pause_and_resume_say_what_they_did_and_may_be_repeated(
    rhythm: Command, make_app: MakeApp
) -> None:
    app = make_app()
    app.queue_task("somewhere", queue="mail")
    ran = rhythm("queue pause mail --reason 'the server is down' --by Ada")
    assert (ran.code, ran.out, ran.err) == (
        0,
        (
            "paused queue mail (1 waits in it): nothing of it begins; `rhythm queue resume "
            "mail` lets it go on\n"
        ),
        "",
    )
    again = rhythm("queue pause mail --reason other")
    assert (again.code, again.out) == (
        0,
        (
            "queue mail is paused already (now by Ada: the server is down); `rhythm queue "
            "resume mail` lets it go on\n"
        ),
    )
    rows(app.store, "UPDATE queues SET paused_at = paused_at - 190000000")
    worker(app, "a")
    assert lines(rhythm("queues").out)[2][-1] == "paused 3m ago by Ada: the server is down"
    assert rhythm("queue resume mail").out == "resumed queue mail: workers take from it again\n"
    assert (rhythm("queue resume mail").out, rhythm("queue resume mail").code) == (
        "queue mail was not paused\n",
        0,
    )


def test_queue_that_nobody_knows_is_paused_with_a_note(rhythm: Command, make_app: MakeApp) -> None:
    app = make_app()
    app.queue_task("somewhere", queue="mail")
    ran = rhythm("queue pause mial")
    assert (ran.code, ran.err) == (
        0,
        "rhythm: nothing is in queue mial, and no worker serves it; did you mean mail?\n",
    )
    assert app.store.workers.paused_queues() == {"mial"}
    assert rhythm("queue resume mial").err == ""


def test_queue_of_resumes_and_wrong_words_are_refused(rhythm: Command, make_app: MakeApp) -> None:
    make_app()
    ran = rhythm("queue pause system")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(
        "rhythm: queue `system` cannot be paused: the workflows of all queues go on through it"
    )
    for command, message in {
        "queue": "say what to do: pause or resume",
        "queue stop mail": "there is no command `queue stop`; see rhythm queue --help",
        "queue pause": "NAME is missing: the queue; `rhythm queues` lists them",
        "queue resume mail --reason x": "--reason is for pause",
    }.items():
        ran = rhythm(command)
        assert (ran.code, message in ran.err) == (2, True), ran.err
