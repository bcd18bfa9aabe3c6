"""`rhythm worker`, as real processes: work, signals, death, poison, a database that is not there
yet."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.app import Rhythm
from tests.app import conftest as applications
from tests.support.between import between
from tests.support.stores import rows

url = applications.url
LONG_S = 120  # for a loaded machine; nothing is measured by it
TASKS = """
import os, time, rhythm

@rhythm.task
def pid() -> int:
    return os.getpid()

@rhythm.task
def forever(file: str) -> None:
    open(file, "a").write(f"{os.getpid()}\\n")
    while not os.path.exists(file + ".end"):
        time.sleep(0.01)

@rhythm.task
def poison(file: str, code: int) -> None:
    open(file, "a").write("x")
    os._exit(code)

@rhythm.task
async def block(seconds: float, file: str) -> float:
    open(file, "a").write("x")
    time.sleep(seconds)  # in the event loop, where nobody else can run meanwhile
    return seconds
"""
FLOWS = """
workflow pids(inputs) {
  return await all([task("pid") for n in range(inputs.n)])
}
workflow forever(inputs) {
  await task("forever", { file: inputs.file })
  return "ended"
}
"""


class Workers:
    """`rhythm worker` in a folder of its own; what it writes to standard error is in `log`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url, self.log = folder, url, folder / "log"
        self.log.touch()
        self.running: list[subprocess.Popen[bytes]] = []
        (folder / "tasks.py").write_text(TASKS)
        (folder / "flows.flow").write_text(FLOWS)

    def start(self, *args: str, app: str = "tasks.py", **settings: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "rhythm",
            "worker",
            "--app",
            app,
            "--workflows",
            "flows.flow",
            *args,
        ]
        given = {
            f"RHYTHM_{name.upper()}": value
            for name, value in {"database_url": self.url, **settings}.items()
        }
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**os.environ, **given}, stderr=log, stdout=log
            )
        self.running.append(process)
        return process

    def began(self, *args: str, **settings: str) -> subprocess.Popen[bytes]:
        """Started, and at work."""
        before = self.log.read_text().count(": worker ")
        process = self.start(*args, **settings)
        self.until(
            lambda: self.log.read_text().count(": worker ") > before or process.poll() is not None
        )
        assert process.poll() is None, self.log.read_text()
        return process

    def until(self, reached: Callable[[], Any]) -> None:
        for _ in range(LONG_S * 100):
            if reached():
                return
            signal.sigtimedwait([], 0.01)
        raise AssertionError(f"never: {self.log.read_text()}")

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture
def workers(tmp_path: Path, url: str) -> Iterator[Workers]:
    made = Workers(tmp_path, url)
    yield made
    made.close()


@pytest.fixture
def app(url: str, workers: Workers) -> Iterator[Rhythm]:
    """A client in another process than the workers."""
    with Rhythm(url, workers.folder / "flows.flow", environment={}) as made:
        yield made


def begun(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def claims(app: Rhythm) -> list[Any]:
    return rows(app.store, "SELECT id FROM ready WHERE state = 1")


def test_worker_does_the_work_and_ends_when_it_is_told(workers: Workers, app: Rhythm) -> None:
    process = workers.began("--queues", "default,other", "--concurrency", "3", "--name", "ann")
    assert app.start_workflow("pids", {"n": 5}).result(timeout=LONG_S) == [process.pid] * 5
    (seen,) = app.workers()
    assert (seen.name[:4], seen.pid, seen.queues, seen.concurrency) == (
        "ann-",
        process.pid,
        ("default", "other"),
        3,
    )
    process.send_signal(signal.SIGTERM)
    assert (process.wait(LONG_S), claims(app), app.workers()) == (0, [], [])


@pytest.mark.parametrize(
    ("args", "signals"),
    [(("--grace", "0s"), 1), (("--grace", "1h"), 2)],
    ids=["no grace", "a second signal"],
)
def test_what_has_not_ended_is_given_back(
    workers: Workers, app: Rhythm, args: tuple[str, ...], signals: int
) -> None:
    file = workers.folder / "file"
    process = workers.began(*args)
    handle = app.start_workflow("forever", {"file": str(file)})
    workers.until(lambda: begun(file))
    for n in range(signals):
        process.send_signal(signal.SIGTERM)
        workers.until(lambda n=n: n or "stopping" in workers.log.read_text())  # type: ignore[misc]  # mypy cannot infer a lambda's default
    assert (process.wait(LONG_S), claims(app)) == (0, [])
    workers.began()
    Path(f"{file}.end").touch()
    assert handle.result(timeout=LONG_S) == "ended"


LEAVING = """
import atexit, threading, rhythm

class Said:
    def __del__(self):
        print("taken apart")

SAID = Said()
threading.Thread(target=threading.Event().wait).start()
atexit.register(lambda: print("exit function"))

@rhythm.task
def nothing():
    pass
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_stopped_process_runs_its_exit_functions_and_does_not_take_its_modules_apart(
    workers: Workers, processes: str
) -> None:
    """Taking them apart costs a busy machine a second; nor does it wait for the task's threads."""
    (workers.folder / "leaving.py").write_text(LEAVING)
    process = workers.began("--processes", processes, app="leaving.py")
    workers.until(lambda: workers.log.read_text().count(": worker ") == int(processes))
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG_S) == 0
    said = workers.log.read_text()
    assert said.count("exit function") == int(processes)
    assert "taken apart" not in said


def test_within_its_grace_a_task_ends_and_is_committed(workers: Workers, app: Rhythm) -> None:
    file = workers.folder / "file"
    process = workers.began("--grace", "1h")
    handle = app.start_workflow("forever", {"file": str(file)})
    workers.until(lambda: begun(file))
    process.send_signal(signal.SIGTERM)
    workers.until(lambda: "stopping" in workers.log.read_text())
    Path(f"{file}.end").touch()
    assert process.wait(LONG_S) == 0
    workers.began()
    assert (handle.result(timeout=LONG_S), len(begun(file))) == ("ended", 1)


def test_worker_on_the_same_machine_takes_over_at_once_what_a_killed_one_held(
    workers: Workers, app: Rhythm
) -> None:
    file = workers.folder / "file"
    process = workers.began(dead_after="1h", claim_ttl="1h")
    handle = app.start_workflow("forever", {"file": str(file)})
    workers.until(lambda: begun(file))
    process.kill()
    process.wait()
    workers.began(dead_after="1h", claim_ttl="1h")
    workers.until(lambda: len(begun(file)) == 2)
    Path(f"{file}.end").touch()
    assert handle.result(timeout=LONG_S) == "ended"


def test_worker_elsewhere_takes_over_what_a_silent_one_held(workers: Workers, app: Rhythm) -> None:
    """A stopped process is still there: its silence tells."""
    file = workers.folder / "file"
    silent = {"dead_after": "1s", "heartbeat_interval": "200ms", "claim_ttl": "1h"}
    process = workers.began(**silent)
    handle = app.start_workflow("forever", {"file": str(file)})
    workers.until(lambda: begun(file))
    process.send_signal(signal.SIGSTOP)
    workers.began(**silent)
    workers.until(lambda: len(begun(file)) == 2)
    process.send_signal(signal.SIGCONT)
    workers.until(
        lambda: "lost" in workers.log.read_text() or "given up" in workers.log.read_text()
    )
    Path(f"{file}.end").touch()
    assert handle.result(timeout=LONG_S) == "ended"


def test_handler_that_blocks_the_event_loop_does_not_stop_the_heart(
    workers: Workers, app: Rhythm
) -> None:
    file = workers.folder / "file"
    fast = {"dead_after": "1s", "heartbeat_interval": "100ms", "claim_ttl": "1s"}
    workers.began(**fast)
    workers.began(**fast)
    handle = app.queue_task("block", {"seconds": 3, "file": str(file)})
    assert (handle.result(timeout=LONG_S), begun(file)) == (3, ["x"])


@pytest.mark.parametrize("code", [9, 2], ids=["any code", "the code of those who cannot begin"])
def test_processes_that_die_are_replaced_and_what_kills_them_fails_after_the_limit(
    workers: Workers, app: Rhythm, code: int
) -> None:
    file = workers.folder / "file"
    supervisor = workers.began("--processes", "2", crash_limit="3")
    poison = app.queue_task("poison", {"file": str(file), "code": code})
    healthy = app.start_workflow("pids", {"n": 3})
    assert len(healthy.result(timeout=LONG_S)) == 3
    workers.until(lambda: poison.get().finished_at)
    assert (begun(file), poison.get().status, "died 3 times" in str(poison.get().error)) == (
        ["xxx"],
        "failed",
        True,
    )
    pids = set(app.start_workflow("pids", {"n": 3}).result(timeout=LONG_S))
    assert supervisor.pid not in pids
    supervisor.send_signal(signal.SIGTERM)
    assert (supervisor.wait(LONG_S), claims(app), app.workers()) == (0, [], [])


def test_processes_end_with_their_supervisor(workers: Workers, app: Rhythm) -> None:
    supervisor = workers.began("--processes", "2")
    workers.until(lambda: len(app.workers()) == 2)
    supervisor.kill()
    workers.until(lambda: not app.workers())


PARENT = """
import os, signal, subprocess, sys
nowhere = subprocess.DEVNULL
print(subprocess.Popen(sys.argv[1:], stdout=nowhere, stderr=nowhere).pid, flush=True)
sys.stdin.read()
"""


def test_worker_outlives_the_process_that_started_it(workers: Workers, app: Rhythm) -> None:
    """A terminal is closed, `nohup rhythm worker &`: it works on until it is told to stop."""
    command = [sys.executable, "-m", "rhythm", "worker", "--app", "tasks.py"]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *command, "--database", workers.url],
        cwd=workers.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        handle = app.queue_task("block", {"seconds": 0, "file": str(workers.folder / "file")})
        handle.result(timeout=LONG_S)
        parent.communicate()
        # longer than a worker needs to notice that its parent has changed
        long = app.queue_task("block", {"seconds": 2, "file": str(workers.folder / "file")})
        long.result(timeout=LONG_S)
        assert app.start_workflow("pids", {"n": 1}).result(timeout=LONG_S) == [pid]
    finally:
        os.kill(pid, signal.SIGKILL)


TOLD_TOO_EARLY = {
    "before the new process has begun": """
def setsid():
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()  # until it has come back from there
os.setsid = setsid
""",
    "before the new process is known": """
fork = os.fork
def fork_and_tell():
    if pid := fork():
        os.kill(os.getpid(), signal.SIGTERM)
    return pid
os.fork = fork_and_tell
""",
}
SUPERVISOR = """
import os, signal
from rhythm.cli import supervisor
from rhythm.cli.commands import worker
{when}
def work(number, ready):
    stopping = worker.Stopping()
    stopping.wait(3600)
    return 0
print(supervisor.supervise(2, work, print))
"""


@pytest.mark.parametrize("when", TOLD_TOO_EARLY.values(), ids=TOLD_TOO_EARLY.keys())
def test_signal_at_any_moment_reaches_every_process(when: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SUPERVISOR.format(when=when)],
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )
    assert (told.returncode, told.stdout.strip(), told.stderr) == (0, "0", "")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_storm_of_signals_ends_a_worker_in_good_order(
    workers: Workers, app: Rhythm, processes: str
) -> None:
    """Each one interrupts whatever is done about those before it."""
    file = workers.folder / "file"
    process = workers.began("--grace", "1h", "--processes", processes)
    app.start_workflow("forever", {"file": str(file)})
    workers.until(lambda: begun(file))
    last = time.monotonic() + LONG_S
    while process.poll() is None and time.monotonic() < last:
        process.send_signal(signal.SIGTERM)
    assert (process.poll(), claims(app)) == (0, [])


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_two_signals_that_a_busy_process_gets_as_one_still_end_its_grace(
    workers: Workers, app: Rhythm
) -> None:
    file = workers.folder / "file"
    process = workers.began("--grace", "1h", "--processes", "2")
    app.start_workflow("forever", {"file": str(file)})
    workers.until(lambda: begun(file))
    pids = [worker.pid for worker in app.workers()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for _ in range(2):  # both are passed on while nobody takes them
        process.send_signal(signal.SIGTERM)
        workers.until(lambda: all(_waits(pid, signal.SIGTERM) for pid in pids))
        threading.Event().wait(0.2)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert process.wait(LONG_S) == 0


def _waits(pid: int, number: int) -> bool:
    """Whether a signal waits for a process that does not run."""
    (pending,) = re.findall(
        r"^ShdPnd:\s+(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    return bool(int(pending, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("by", ["the command", "its file"])
def test_worker_that_waits_for_a_database_ends_at_once(workers: Workers, by: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        database_url = f"postgresql://me@127.0.0.1:{mute.getsockname()[1]}/app?connect_timeout=3600"
        if by == "its file":
            (workers.folder / "tasks.py").write_text(
                f"import rhythm\nrhythm.init({database_url!r})"
            )
        process = workers.start("--grace", "1h", database_url=database_url)
        mute.settimeout(LONG_S)
        with mute.accept()[0]:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONG_S) == 0


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_worker_waits_for_a_database_that_is_not_there_yet(
    workers: Workers, app: Rhythm, database_url: str
) -> None:
    with between(database_url) as way:
        later, way.url = way.url, ""
        schema = workers.url.partition("schema=")[2].partition("&")[0]
        here = f"{later}&schema={schema}"
        hidden = Path(later.partition("host=")[2]) / ".s.PGSQL.5432"
        hidden.rename(hidden.with_name("away"))
        executed = workers.folder / "executed"
        with (workers.folder / "tasks.py").open("a") as tasks:
            tasks.write(f"\nopen({str(executed)!r}, 'a').write('x')\n")
        workers.start(database_url=here)
        workers.until(lambda: "waiting for the database" in workers.log.read_text())
        hidden.with_name("away").rename(hidden)
        handle = app.start_workflow("pids", {"n": 1})
        assert (len(handle.result(timeout=LONG_S)), begun(executed)) == (1, ["x"])


APP = """
import rhythm
from tasks import pid
rhythm.init("{url}", "flows.flow", tasks=[pid])
other = rhythm.Rhythm("{url}", tasks=[pid], queues=["special"])
none = 1
"""


@pytest.mark.parametrize(("name", "queue"), [("app.py", "default"), ("app.py:other", "special")])
def test_application_of_the_file_is_used(
    workers: Workers, app: Rhythm, name: str, queue: str
) -> None:
    (workers.folder / "app.py").write_text(APP.format(url=workers.url))
    process = workers.began(app=name, database_url="sqlite:///nowhere/else.db")
    assert app.queue_task("pid", queue=queue).result(timeout=LONG_S) == process.pid


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("args", "said", "code"),
    [
        (("--app", "missing.py"), "there is no file missing.py", 2),
        (("--app", "app.py:none"), "app.py has no application none", 2),
        (("--concurrency", "0"), "--concurrency is a whole number from 1 on, not 0", 2),
        (("--processes", "x"), "--processes is a whole number from 1 on, not x", 2),
        (("--grace", "soon"), "--grace", 2),
        (("--processes", "2", "--app", "missing.py"), "there is no file missing.py", 2),
        (("--database", "mysql://x"), "no database can be opened with `mysql://x`", 1),
    ],
)
def test_what_cannot_begin_is_said_and_ends(
    workers: Workers, app: Rhythm, args: tuple[str, ...], said: str, code: int
) -> None:
    (workers.folder / "app.py").write_text(APP.format(url=workers.url))
    assert workers.start(*args).wait(LONG_S) == code
    assert said in workers.log.read_text()
