"""`rhythm dev`, as real processes: what it says, what a change does, what ends it and what does not."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.cli.main import main
from tests.app import conftest as applications
from tests.support import forked
from tests.support.dev import APP, FLOW, LONG_S, Dev
from tests.support.length import long, sampled, sweep
from tests.support.stores import migrated_file, rows

url = applications.url


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Dev]:
    migrated_file(tmp_path / "rhythm.db")
    made = Dev(tmp_path, f"sqlite:///{tmp_path / 'rhythm.db'}")
    yield made
    made.close()


@pytest.fixture
def dev(empty: Dev) -> Dev:
    empty.project()
    return empty


@pytest.fixture
def app(empty: Dev) -> Iterator[Rhythm]:
    """A client in another process."""
    with Rhythm(empty.url, (), environment={}) as made:
        yield made


@pytest.fixture
def on_each(tmp_path: Path, url: str) -> Iterator[tuple[Dev, Rhythm]]:
    """The same on each kind of database, for what depends on it."""
    made = Dev(tmp_path, url)
    made.project()
    with Rhythm(url, (), environment={}) as client:
        yield made, client
        made.close()


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def runs(pid: int) -> bool:
    """Whether there is such a process; one that has ended, and nobody asked about, does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_it_says_where_it_is_what_it_found_and_three_commands_that_work(
    dev: Dev, app: Rhythm
) -> None:
    pid = dev.began().pid
    assert re.search(rf"^rhythm dev: pid {pid}, http://127.0.0.1:\d+/api/v1, on ", dev.said, re.M)
    assert "3 tasks: greet, kill, wait_for" in dev.said
    assert "4 workflows: hello, kills, wait, waits" in dev.said
    commands = re.findall(r"^  rhythm (.*)$", dev.said, re.M)
    assert commands == [
        "start waits --id waits-1 -i name=A1",
        "trace waits-1",
        "list",
    ]
    for command in commands:
        ran = forked.run(
            ["-m", "rhythm", *shlex.split(command)],
            dev.folder,
            env={**os.environ, "RHYTHM_DATABASE_URL": dev.url},
        )
        assert ran.returncode == 0, ran
    dev.says("waits for signal go  (rhythm signal waits-1 go)")
    app.signal("waits-1", "go", 5)
    assert app.result("waits-1", timeout=LONG_S) == ["OLD", "5", "Hello, A1"]


def test_commands_of_a_new_project_work_as_its_readme_has_them(empty: Dev) -> None:
    assert main(["new", str(empty.folder)]) == 0
    quick = empty.folder / "workflows" / "express.flow"
    quick.write_text(quick.read_text().replace("10s", "10ms"))
    empty.began()
    commands = re.findall(r"^\$ rhythm (.*)$", (empty.folder / "README.md").read_text(), re.M)
    assert [command.split()[0] for command in commands] == [
        "dev", "start", "list", "why", "signal", "trace", "start",
    ]  # fmt: skip
    for command in commands[1:]:
        ran = forked.run(["-m", "rhythm", *shlex.split(command)], empty.folder)
        assert ran.returncode == 0, ran
        empty.says("waits for signal approve")
    assert "A2 is on its way" in ran.stdout


def test_each_thing_that_happens_is_a_line_with_the_id_of_its_execution(
    dev: Dev, app: Rhythm
) -> None:
    fails = APP + (
        "\n@rhythm.task(retries=1, backoff='10ms')\ndef fail() -> None:\n"
        "    raise ValueError('no way')\n"
    )
    dev.write("app.py", fails)
    dev.write("workflows/fails.flow", 'workflow fails() {\n  await task("fail")\n}\n')
    dev.began()
    app.start_workflow("hello", {"name": "Ann"}, id="h1")
    app.start_workflow("fails", id="f1")
    dev.says("(rhythm why f1)", "completed hello")
    lines = [line for line in dev.said.splitlines() if re.match(r"\d\d:\d\d:\d\d  ", line)]
    of = {
        id: [re.sub(r" in \d+ ms", "", line[24:]) for line in lines if line[10:12] == id]
        for id in ("h1", "f1")
    }
    assert of["h1"] == [
        "▶ hello",
        '→ greet(name="Ann")',
        '✓ greet(name="Ann") = "Hello, Ann"',
        "■ completed hello",
    ]
    assert of["f1"] == [
        "▶ fails",
        "→ fail()",
        "↻ fail(): ValueError: no way (app.py:27); again in 10ms",
        "→ fail() attempt 2",
        "✗ fail(): ValueError: no way (app.py:27)",
        "■ failed fails: task `fail` failed: ValueError: no way  (rhythm why f1)",
    ]
    assert "\x1b" not in dev.said


def test_after_a_change_tasks_that_run_end_with_the_old_code_and_all_that_begins_has_the_new(
    on_each: tuple[Dev, Rhythm],
) -> None:
    dev, app = on_each
    dev.began()
    app.start_workflow("waits", {"name": "Ann"}, id="old")
    runs = app.start_workflow("wait", {"file": str(dev.folder / "end")}, id="runs")
    dev.says("waits for signal go")
    dev.until((dev.folder / "end.begun").exists)
    dev.reloaded(
        lambda: dev.write("app.py", APP.replace("OLD", "NEW").replace("words.", "'Bye' or words."))
    )
    assert "1 task of the old code may end first" in dev.said
    app.start_workflow("waits", {"name": "Ann"}, id="new")
    for id in ("old", "new"):
        app.signal(id, "go", 1)
    # the old execution has the old workflow, which calls the new task
    assert app.result("old", timeout=LONG_S) == ["OLD", "1", "Bye, Ann"]
    assert app.result("new", timeout=LONG_S) == ["NEW", "1", "Bye, Ann"]
    (dev.folder / "end").touch()
    assert runs.result(timeout=LONG_S) == "OLD"
    assert (dev.folder / "end.begun").read_text() == "OLD\n"


@long
def test_task_that_does_not_end_within_the_grace_is_begun_again_with_the_new_code(
    on_each: tuple[Dev, Rhythm],
) -> None:
    dev, app = on_each
    dev.began(shutdown_grace="0s")
    runs = app.start_workflow("wait", {"file": str(dev.folder / "end")})
    dev.until((dev.folder / "end.begun").exists)
    dev.reloaded(lambda: dev.write("app.py", APP.replace("OLD", "NEW")))
    dev.until(lambda: (dev.folder / "end.begun").read_text() == "OLD\nNEW\n")
    (dev.folder / "end").touch()
    assert runs.result(timeout=LONG_S) == "NEW"


def test_imported_modules_and_workflow_files_are_loaded_again_and_what_is_gone_is_gone(
    dev: Dev, app: Rhythm
) -> None:
    dev.began()

    def hello(id: str) -> Any:
        return app.start_workflow("hello", {"name": "Ann"}, id=id).result(timeout=LONG_S)

    assert hello("a") == "Hello, Ann"
    dev.reloaded(lambda: dev.write("words.py", 'GREETING = "Bye"\n'))
    assert hello("b") == "Bye, Ann"
    dev.reloaded(lambda: dev.write("workflows/more.flow", "workflow more() {\n  return 1\n}\n"))
    assert "new workflows: more" in dev.said
    assert app.start_workflow("more").result(timeout=LONG_S) == 1
    dev.reloaded(lambda: dev.write("app.py", APP.replace("def kill(", "def kill_it(")))
    assert "new tasks: kill_it; tasks that are gone: kill (running executions" in dev.said
    dev.reloaded((dev.folder / "workflows/more.flow").unlink)
    assert "workflows that are gone: more\n" in dev.said


@long
def test_file_that_was_not_loaded_changes_nothing(dev: Dev) -> None:
    dev.write("other.py", "1\n")
    for folder in (".hidden", "node_modules"):
        (dev.folder / folder).mkdir()
        (dev.folder / folder / "module.py").write_text("1\n")
    dev.began()
    dev.write("other.py", "2\n")
    (dev.folder / "node_modules" / "module.py").write_text("2\n")
    dev.reloaded(lambda: dev.write("words.py", 'GREETING = "Bye"\n'))
    assert re.findall(r"(\S+) changed", dev.said) == ["words.py"]


@pytest.mark.parametrize(
    ("file", "text", "shown"),
    [
        ("app.py", "def broken(:\n", "def broken(:"),
        pytest.param(
            "app.py",
            "import nowhere\n",
            "ModuleNotFoundError: No module named 'nowhere'",
            marks=long,
        ),
        ("app.py", APP.replace("await greet.run(name)", "await wrong.run(name)"), "error[P020]"),
        pytest.param("words.py", "1 / 0\n", "ZeroDivisionError", marks=long),
        ("workflows/flows.flow", "workflow hello(name: text) {\n  let = 1\n}\n", "flows.flow:2:7"),
        (
            "app.py",
            "import os\nos._exit(7)\n",
            "ended the process while it was loaded (exit code 7)",
        ),
    ],
    ids=["syntax", "import", "workflow", "module", "flow", "exit"],
)
def test_code_that_cannot_be_loaded_is_shown_and_the_code_before_goes_on(
    dev: Dev, app: Rhythm, file: str, text: str, shown: str
) -> None:
    dev.began()
    before = (dev.folder / file).read_text()
    dev.write(file, text)
    dev.says(shown, "the code before goes on; save a file to try again")
    hello = app.start_workflow("hello", {"name": "Ann"})
    assert hello.result(timeout=LONG_S) == "Hello, Ann"
    dev.reloaded(lambda: dev.write(file, before.replace("Hello", "Bye")))
    assert app.start_workflow("hello", {"name": "Ann"}).result(timeout=LONG_S)


def test_what_is_most_likely_a_mistake_is_shown_as_check_shows_it(dev: Dev) -> None:
    dev.began()
    text = "workflow hello(name: text) {\n  return name\n  return 1\n}\n"
    dev.reloaded(lambda: dev.write("workflows/flows.flow", text))
    assert "warning[F101]: this is never reached\n" in dev.said
    assert "3 │   return 1\n" in dev.said
    assert "workflow_warned" not in dev.said


def test_code_that_cannot_be_loaded_at_first_is_tried_again(dev: Dev, app: Rhythm) -> None:
    dev.write("app.py", "def broken(:\n")
    dev.start()
    dev.says("nothing runs; save a file to try again")
    dev.write("app.py", APP)
    dev.says("Ctrl-C ends it")
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"


@long
def test_code_that_never_ends_loading_is_given_up_when_it_is_saved_again(
    dev: Dev, app: Rhythm
) -> None:
    dev.began()
    dev.write("app.py", "open('loading', 'w')\nimport threading\nthreading.Event().wait()\n")
    dev.until((dev.folder / "loading").exists)
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"
    dev.reloaded(lambda: dev.write("app.py", APP))


def held(pid: int, kind: str = "") -> int:
    """How many files of a kind a process has open."""
    files = Path(f"/proc/{pid}/fd")
    return sum(os.readlink(files / each).startswith(kind) for each in os.listdir(files))


@sweep
def test_twenty_reloads_leave_nothing_behind(dev: Dev) -> None:
    """No process, no thread and no file. A generation is a new process, which can only inherit."""
    parent = dev.began().pid

    def counts() -> list[int]:
        dev.until(lambda: len(children(parent)) == 1)
        (generation,) = children(parent)
        threads = len(os.listdir(f"/proc/{parent}/task"))
        return [threads, held(parent), held(generation, "pipe:")]

    dev.reloaded(lambda: dev.write("words.py", 'GREETING = "first"\n'))
    before = counts()
    assert before[0] == 1
    for number in range(sampled(5, 20)):
        dev.reloaded(lambda number=number: dev.write("words.py", f'GREETING = "{number}"\n'))  # type: ignore[misc]  # mypy cannot infer a lambda's default
    assert counts() == before


def test_task_that_kills_its_process_is_reported_and_everything_else_goes_on(
    on_each: tuple[Dev, Rhythm],
) -> None:
    dev, app = on_each
    process = dev.began(crash_limit="2")
    poison = app.start_workflow("kills", {"code": 9})
    dev.says("ended with exit code 9 (did a task crash it?); another one begins")
    dev.until(lambda: app.get(poison.id).ended)
    assert "died 2 times" in str(app.get(poison.id).error)
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"
    assert process.poll() is None


@long
def test_task_that_kills_each_process_before_it_is_ready_fails_in_the_end(
    on_each: tuple[Dev, Rhythm],
) -> None:
    dev, app = on_each
    poison = app.queue_task("kill", {"code": 9})
    process = dev.start(crash_limit="2")
    dev.until(lambda: app.get(poison.id).ended)
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"
    assert process.poll() is None


def test_executions_go_on_after_it_was_killed(on_each: tuple[Dev, Rhythm]) -> None:
    dev, app = on_each
    process = dev.began()
    app.start_workflow("waits", {"name": "Ann"}, id="w")
    dev.says("waits for signal go")
    process.kill()
    process.wait()
    app.signal("w", "go", 1)
    dev.began()
    assert app.result("w", timeout=LONG_S) == ["OLD", "1", "Hello, Ann"]


def test_whoever_kills_the_pid_that_it_prints_kills_its_tasks_too(dev: Dev, app: Rhythm) -> None:
    process = dev.began()
    (generation,) = children(process.pid)
    (pid,) = re.findall(r"^rhythm dev: pid (\d+),", dev.said, re.M)
    app.start_workflow("wait", {"file": "end"}, id="w")
    dev.until((dev.folder / "end.begun").exists)
    os.kill(int(pid), signal.SIGKILL)
    process.wait()
    dev.until(lambda: not runs(generation))
    assert app.get("w").status != "completed"


@long
def test_generation_that_never_ends_loading_ends_when_its_parent_is_gone(dev: Dev) -> None:
    process = dev.began()
    loading = dev.folder / "loading"
    dev.write(
        "app.py",
        "import os\nwith open('pid', 'w') as file: file.write(str(os.getpid()))\n"
        "os.rename('pid', 'loading')\nwhile True: pass\n",
    )
    dev.until(loading.exists)
    process.kill()
    process.wait()
    dev.until(lambda: not Path(f"/proc/{loading.read_text()}").exists())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_in_one_line(dev: Dev, app: Rhythm, number: signal.Signals) -> None:
    process = dev.began()
    app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S)
    before = dev.said
    process.send_signal(number)
    assert process.wait(LONG_S) == 0
    lines = dev.said.removeprefix(before).splitlines()
    assert [line[10:] for line in lines if "hello" not in line] == [
        "stopped; what has not ended goes on with the next `rhythm dev`"
    ]
    assert (app.workers(), rows(app.store, "SELECT id FROM ready WHERE state = 1")) == ([], [])


@long
def test_it_ends_when_nobody_reads_what_it_says(dev: Dev, app: Rhythm) -> None:
    """Its terminal is closed, or it is `rhythm dev | head`."""
    command = [sys.executable, "-m", "rhythm", "dev", "--port", "0"]
    environment = {**os.environ, "RHYTHM_DATABASE_URL": dev.url}
    process = subprocess.Popen(command, cwd=dev.folder, env=environment, stdout=subprocess.PIPE)
    dev.running.append(process)
    assert process.stdout is not None
    while b"Ctrl-C ends it" not in process.stdout.readline():
        pass
    process.stdout.close()
    app.start_workflow("hello", {"name": "A"})
    assert process.wait(LONG_S) == 0
    dev.until(lambda: app.workers() == [])


@long
def test_second_signal_does_not_wait_for_tasks(on_each: tuple[Dev, Rhythm]) -> None:
    dev, app = on_each
    process = dev.began(shutdown_grace="1h")
    app.start_workflow("wait", {"file": str(dev.folder / "end")})
    dev.until((dev.folder / "end.begun").exists)
    process.send_signal(signal.SIGINT)
    dev.says("stopping: 1 task may end first; Ctrl-C again to stop now")
    process.send_signal(signal.SIGINT)
    assert process.wait(LONG_S) == 0
    assert rows(app.store, "SELECT id FROM ready WHERE state = 1") == []


@long
def test_two_in_one_folder_share_the_work_and_say_so(dev: Dev, app: Rhythm) -> None:
    first = dev.began()
    dev.began()
    assert "another `rhythm dev` works on this database, too (process " in dev.said
    dev.until(lambda: len(app.workers()) == 2)
    first.send_signal(signal.SIGINT)
    first.wait(LONG_S)
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"


def asked(dev: Dev, path: str, method: str = "GET", **headers: str) -> int:
    (address,) = re.findall(r"rhythm dev: pid \d+, (http://[^,]+)/api/v1,", dev.said)
    request = urllib.request.Request(
        f"{address}{path}",
        method=method,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        data=json.dumps({"workflow": "hello", "inputs": {"name": "A"}}).encode()
        if method == "POST"
        else None,
    )
    try:
        with urllib.request.urlopen(request, timeout=LONG_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


def test_api_answers_this_machine_and_no_page_of_another_site(dev: Dev) -> None:
    dev.began()
    start, kind = "/api/v1/executions", {"Content_Type": "application/json"}
    assert asked(dev, start) == 200
    assert asked(dev, start, "POST", **kind) == 201
    # a name that somebody lets resolve to this machine
    assert asked(dev, start, Host="evil.example") == 403
    assert asked(dev, start, "POST", **kind, Host="evil.example") == 403
    # a page of another site, or of another port
    assert asked(dev, start, "POST", **kind, Origin="https://evil.example") == 403
    assert asked(dev, start, "POST", **kind, Origin="http://localhost:3000") == 403
    assert asked(dev, start, "POST", **kind, Origin="null") == 403
    assert asked(dev, start, Sec_Fetch_Site="cross-site") == 403
    # after a change it is the same address
    dev.reloaded(lambda: dev.write("words.py", 'GREETING = "Bye"\n'))
    assert asked(dev, start) == 200


@long
def test_address_that_others_can_reach_needs_a_token(dev: Dev, app: Rhythm) -> None:
    refused = dev.start("--host", "0.0.0.0")
    assert refused.wait(LONG_S) == 2
    assert "there is no valid token" in dev.said
    app.create_token("ann", roles=["admin"])
    dev.began("--host", "0.0.0.0")
    (port,) = re.findall(r"http://0.0.0.0:(\d+)/", dev.said)
    with pytest.raises(urllib.error.HTTPError, match="401") as answer:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/executions", timeout=LONG_S)
    answer.value.close()


def test_port_in_use_is_left_to_its_owner(dev: Dev) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        dev.began("--port", str(port))
        found = re.search(rf"port {port} is in use: taking (\d+)", dev.said)
        assert found
        assert f"http://127.0.0.1:{found[1]}/api/v1" in dev.said


def test_without_the_extra_it_goes_on_without_the_api(dev: Dev, app: Rhythm) -> None:
    blocked = dev.folder / "blocked"
    blocked.mkdir()
    (blocked / "fastapi.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join([str(blocked), os.environ.get("PYTHONPATH", "")])
    before, os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH"), path
    try:
        dev.began()
    finally:
        os.environ["PYTHONPATH"] = before or ""
    assert dev.said.count("without the HTTP API") == 1
    assert "[server]" in dev.said
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"


def test_folder_with_nothing_to_run_is_left_as_it_is(empty: Dev) -> None:
    assert empty.start().wait(LONG_S) == 2
    assert "`rhythm new .` writes a small project" in empty.said
    assert sorted(os.listdir(empty.folder)) == ["log", "rhythm.db"]
    empty.write("shop.py", APP)
    assert empty.start().wait(LONG_S) == 2
    assert "`rhythm dev --app shop.py` runs shop.py" in empty.said
    assert empty.start("shop.py").wait(LONG_S) == 2
    assert "to use this file, write --app shop.py\n" in empty.said
    assert empty.start("--no-reload", "--app", "shap.py").wait(LONG_S) == 2
    assert "there is no file shap.py; did you mean shop.py?\n" in empty.said


@long
def test_own_application_and_other_files_are_run(empty: Dev, app: Rhythm) -> None:
    (empty.folder / "flows").mkdir()
    empty.write("words.py", 'GREETING = "Hello"\n')
    empty.write("shop.py", f"{APP}\nrhythm.init({empty.url!r}, workflow_paths=['flows'])\n")
    empty.write("flows/flows.flow", FLOW)
    empty.began("--app", "shop.py", database_url="sqlite:///nowhere.db")
    assert not (empty.folder / "nowhere.db").exists()
    assert "--database" in "".join(re.findall(r"^  rhythm list.*$", empty.said, re.M))
    assert app.start_workflow("hello", {"name": "A"}).result(timeout=LONG_S) == "Hello, A"
    empty.reloaded(lambda: empty.write("flows/more.flow", "workflow more() {\n  return 1\n}\n"))
    assert app.start_workflow("more").result(timeout=LONG_S) == 1


def test_only_application_of_a_file_is_used_by_itself(empty: Dev, app: Rhythm) -> None:
    empty.write("words.py", 'GREETING = "Hello"\n')
    empty.write("app.py", f"{APP}\nmine = rhythm.Rhythm({empty.url!r}, [])\n")
    empty.began(database_url="sqlite:///nowhere.db")
    assert not (empty.folder / "nowhere.db").exists()
    app.start_workflow("waits", {"name": "A"}, id="w")
    empty.says("waits for signal go")


def test_database_in_memory_is_refused(dev: Dev) -> None:
    assert dev.start("--database", "sqlite:///:memory:").wait(LONG_S) == 2
    assert "name a file" in dev.said


@long
def test_without_reloading_files_are_not_watched_and_broken_code_ends_it(dev: Dev) -> None:
    dev.began("--no-reload")
    dev.write("app.py", "def broken(:\n")
    assert dev.start("--no-reload").wait(LONG_S) == 2
    assert "changed" not in dev.said


@long
def test_many_tasks_at_once_are_counted(dev: Dev, app: Rhythm) -> None:
    dev.write(
        "workflows/many.flow",
        'workflow many(n: number) {\n  return await all([task("greet", { name: "A" }) for i in range(n)])\n}\n',
    )
    dev.began()
    assert len(app.start_workflow("many", {"n": 1000}).result(timeout=LONG_S)) == 1000
    dev.until(lambda: re.search(r"… [\d,]+ more: .*tasks ended", dev.said))
    assert dev.said.count("✓ greet") < 500
