"""Programs in processes of their own, without the start of an interpreter for each.

A process that has imported Rhythm, and nothing else has happened in it, forks itself for every
program: the program has its own folder, environment, streams and exit code, as after
`subprocess.run([sys.executable, …])`, in a few milliseconds where the imports alone would take
hundreds. What a start imports, and what it does before `main`, is not seen here: tests of that,
and those that kill what they have started, start Python themselves.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]
MODULES = (
    "rhythm.app", "rhythm.app.aio", "rhythm.app.application", "rhythm.cli.commands.run", "rhythm.cli.commands.check",
    "rhythm.cli.commands.fmt", "rhythm.cli.commands.start", "rhythm.cli.commands.list", "rhythm.cli.commands.show", "rhythm.cli.commands.graph",
    "rhythm.cli.commands.doctor", "rhythm.lang.steps.compile", "rhythm.store.sqlite.store",
    "rhythm.worker.runner",
)  # fmt: skip
LIMIT_S = 120


def run(
    args: Sequence[str],
    cwd: Path | str,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGS` does: `-m MODULE …` or `FILE …`; with `merged`, both streams in one, as a
    terminal has them."""
    given = dict(os.environ if env is None else env)
    if sys.platform != "linux" or _starts_otherwise(given):
        return _started(args, cwd, stdin, given, merged)
    with (
        tempfile.TemporaryFile() as input,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        input.write(stdin.encode())
        input.seek(0)
        connection.settimeout(LIMIT_S)
        connection.connect(_server())
        asked = json.dumps({"args": [*args], "cwd": str(cwd), "env": given}).encode()
        streams = [input.fileno(), output.fileno(), (output if merged else errors).fileno()]
        socket.send_fds(connection, [len(asked).to_bytes(4)], streams)
        connection.sendall(asked)
        pid = int.from_bytes(_received(connection, 4))
        try:
            code = int.from_bytes(_received(connection, 4), signed=True)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        texts = [_read(file) for file in (output, errors)]
    return subprocess.CompletedProcess([sys.executable, *args], code, *texts)


def _starts_otherwise(given: Mapping[str, str]) -> bool:
    """Whether Python itself is told something that it reads when it starts."""
    names = {name for name in {*given, *os.environ} if name.startswith("PYTHON")}
    return any(given.get(name) != os.environ.get(name) for name in names)


def _started(
    args: Sequence[str], cwd: Path | str, stdin: str, env: Mapping[str, str], merged: bool
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        text=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        env=env,
        check=False,
    )


def _read(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    text: str = file.read().decode()  # type: ignore[attr-defined]
    return text.replace("\r\n", "\n")


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the process that forks has gone")
        data += more
    return data


@cache
def _server() -> str:
    """Where the process listens that forks; it ends with this one."""
    folder = tempfile.TemporaryDirectory(prefix="rhythm-fork-", dir="/tmp")
    path = f"{folder.name}/socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forked", path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def end() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
        folder.cleanup()

    atexit.register(end)
    assert process.stdout.readline() == b"listens\n"
    process.stdout.close()
    return path


def _serve(path: str) -> None:
    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # nobody's garbage: no fork copies its pages to look
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(50)
        os.write(1, b"listens\n")
        while listener in select.select([listener, 0], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> None:
    """Becomes the program that is asked for; another process stays and tells how it ended."""
    size, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    asked = json.loads(_received(connection, int.from_bytes(size)))
    if pid := os.fork():
        connection.sendall(pid.to_bytes(4))
        _, status = os.waitpid(pid, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    _become(*asked["args"])


def _become(first: str, *rest: str) -> NoReturn:
    if first == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = [*rest]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")
    raise SystemExit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])
