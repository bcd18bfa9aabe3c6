"""A server under attack by those who may use it and by those who may not, all at once: others must hardly notice.

A viewer asks for the largest traces and lists over 45 connections, an author registers texts and starts executions as large as they may be
over 8, and 1,000 clients ask for much and take nothing, all from the address of the one who behaves. That one starts executions, looks at
them and sends signals, now and then over a new connection, and writes down how long each answer took. `python -m tests.attack.server_load`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from rhythm.app import Rhythm
from rhythm.worker.handlers import Task
from tests.attack.places import KINDS
from tests.chaos.report import Figure, at_least, at_most, none, percentile, shown

SECONDS = 25.0  # of each database, at full size
CHILDREN, BULKY = 10_000, 300  # of the execution whose trace is asked for; executions that fill a list
VIEWERS, AUTHORS, DEAF = 45, 8, 1000
LATEST_S, LARGEST_MB = 1.0, 500.0
FLOWS = """
workflow fan(inputs) {
  return await all([task("nap", { n: i }) for i in range(inputs.n)])
}
workflow wait(inputs) {
  return await signal("go")
}
"""


def nap(n: int) -> int:
    return n


# those who attack: each kind is a process of its own


Keep = Callable[[], bool]  # whether it goes on


async def ask(base: str, request: Callable[[], bytes], keep: Keep, count: Counter[str]) -> None:
    """Asks again and again over one connection, and opens another one when it is closed."""
    host, port = base.removeprefix("http://").split(":")
    while keep():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError, IndexError):
            reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 21)
            try:
                while keep():
                    writer.write(request())
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(re.findall(rb"content-length: (\d+)", head.lower())[0])
                    await reader.readexactly(length)
                    count[head.split(b" ", 2)[1].decode()] += 1
            finally:
                writer.close()
        count["connections"] += 1
        await asyncio.sleep(0.02)


def request(method: str, path: str, secret: str, body: Any = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if body is not None else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n{kind}\r\n".encode() + content


async def viewer(base: str, secret: str, id: str, keep: Keep, count: Counter[str]) -> None:
    paths = [
        f"/executions/{id}/trace?limit=1", f"/executions/{id}/trace?limit=1000", f"/executions/{id}/children?limit=1000",
        "/executions?limit=1000", "/workflows?limit=1000", f"/executions/{id}", f"/executions/{id}/why",
    ]  # fmt: skip
    asked = [request("GET", f"/api/v1{paths[n % len(paths)]}", secret) for n in range(VIEWERS)]
    await asyncio.gather(*(ask(base, lambda each=each: each, keep, count) for each in asked))


async def author(base: str, secret: str, id: str, keep: Keep, count: Counter[str]) -> None:
    numbers = iter(range(10**9))

    def text() -> bytes:
        n = next(numbers)
        flows = "\n".join(f"workflow w{i}(inputs) {{\n  let x = {n}\n  return [{', '.join(['x'] * 300)}]\n}}" for i in range(100))
        return request("POST", "/api/v1/workflows", secret, {"source": flows})

    large = {"workflow": "wait", "inputs": [[]] * 100_000, "attributes": {"note": "x" * 4000}}
    makers: list[Callable[[], bytes]] = [text, lambda: request("POST", "/api/v1/executions", secret, large)]
    await asyncio.gather(*(ask(base, makers[n % 2], keep, count) for n in range(AUTHORS)))


async def deaf(base: str, secret: str, id: str, keep: Keep, count: Counter[str]) -> None:
    """Most of them are nobody; some have a token, and ask for pages as large as there are."""
    host, port = base.removeprefix("http://").split(":")
    nobody = request("GET", "/api/v1/openapi.json", "x") * 60
    known = request("GET", f"/api/v1/executions/{id}/trace?limit=1000", secret) * 20

    async def one(n: int) -> None:
        await asyncio.sleep(n / DEAF * 2)
        while keep():
            with contextlib.suppress(OSError):
                async with connected(host, int(port)) as writer:
                    writer.write(known if n % 20 == 0 else nobody)
                    count["connections"] += 1
                    while keep() and not writer.transport.is_closing():
                        await asyncio.sleep(0.5)
            await asyncio.sleep(1.0)

    await asyncio.gather(*(one(n) for n in range(DEAF)))


@contextlib.asynccontextmanager
async def connected(host: str, port: int) -> AsyncIterator[asyncio.StreamWriter]:
    """A connection of which nothing is read."""
    import socket

    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    raw.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(raw, (host, port))
    except OSError:
        raw.close()
        raise
    reader, writer = await asyncio.open_connection(sock=raw)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    try:
        yield writer
    finally:
        writer.transport.abort()


ATTACKERS = {"viewer": viewer, "author": author, "deaf": deaf}


def attack(kind: str, base: str, secret: str, id: str, seconds: float) -> None:
    count, until = Counter[str](), time.monotonic() + seconds
    with contextlib.suppress(TimeoutError):
        asyncio.run(asyncio.wait_for(ATTACKERS[kind](base, secret, id, lambda: time.monotonic() < until, count), seconds + 5))
    print(json.dumps(count))


# what is attacked


@contextlib.contextmanager
def serving(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`rhythm server` on a database, as a process, and its address."""
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+", encoding="utf-8") as log:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")}
        command = [sys.executable, "-m", "rhythm", "server", "--port", "0", "--database", url]
        process = subprocess.Popen(command, cwd=folder, stderr=log, text=True, env=plain)
        try:
            yield process, _address(process, Path(folder) / "log")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    while process.poll() is None:
        if found := re.findall(r"http://[0-9.:]+", log.read_text(encoding="utf-8")):
            return str(found[0])
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))


def memory_mb(process: subprocess.Popen[str]) -> float:
    """The most that a process has had."""
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(encoding="ascii"))
    return int(found) / 1024


def fill(url: str, scale: float) -> tuple[str, dict[str, str]]:
    """An execution with very many children, executions that fill a list, and tokens."""
    with Rhythm(url, (), tasks=[Task(nap, "nap", "default", 0, None, None)], environment={}) as app:
        app.register(FLOWS)
        for _ in range(max(int(BULKY * scale), 20)):
            app.start_workflow("wait", attributes={f"a{n}": "x" * 3500 for n in range(4)})
        fan = app.start_workflow("fan", {"n": max(int(CHILDREN * scale), 200)})
        with app.worker():
            fan.result("10m")
        roles = {"viewer": "viewer", "author": "author", "deaf": "viewer", "good": "operator"}
        tokens = {name: app.create_token(name, roles=[role]).secret for name, role in roles.items()}
    gc.collect()  # what is closed is not to be opened again by processes that are made
    return fan.id, tokens


class Good:
    """Whoever behaves: one request after the other, and how long each took until there was an answer."""

    def __init__(self, base: str, secret: str) -> None:
        self.base, self.headers = base, {"Authorization": f"Bearer {secret}"}
        self.took, self.wrong, self.ids = list[float](), Counter[str](), list[str]()

    def work(self, seconds: float, pause_s: float = 0.05) -> None:
        until, limits = time.monotonic() + seconds, httpx.Timeout(60.0)
        with httpx.Client(base_url=self.base, headers=self.headers, timeout=limits) as kept:
            while time.monotonic() < until:
                with httpx.Client(base_url=self.base, headers=self.headers, timeout=limits, verify=False) as fresh:
                    self.round(kept)
                    self.one(fresh, "GET", "/healthz")
                time.sleep(pause_s)

    def round(self, client: httpx.Client) -> None:
        self.one(client, "POST", "/api/v1/executions", {"workflow": "wait", "inputs": {"n": 1}})
        for path in (f"/executions/{self.ids[-1]}", "/executions?limit=10", f"/executions/{self.ids[-1]}/status") if self.ids else ():
            self.one(client, "GET", f"/api/v1{path}")
        if self.ids:
            self.one(client, "POST", f"/api/v1/executions/{self.ids[-1]}/signals", {"name": "go"})

    def one(self, client: httpx.Client, method: str, path: str, body: Any = None) -> None:
        began = time.monotonic()
        try:
            answer = client.request(method, path, json=body)
        except httpx.TransportError as problem:
            self.wrong[type(problem).__name__] += 1
        else:
            if answer.status_code == 201:
                self.ids.append(str(answer.json()["id"]))
            elif answer.status_code != 200:
                self.wrong[str(answer.status_code)] += 1
        self.took.append(time.monotonic() - began)


def play(url: str, scale: float) -> tuple[list[float], Good, dict[str, Counter[str]], float]:
    """Attacks a server: how long answers took before, what the one saw who behaves, what the others did, and the memory of the server
    in MB."""
    seconds = max(SECONDS * scale, 3.0)
    id, secrets = fill(url, scale)
    with serving(url) as (process, base):
        before, good = Good(base, secrets["good"]), Good(base, secrets["good"])
        before.work(seconds / 5)
        command = [sys.executable, "-m", "tests.attack.server_load"]
        attackers = {
            kind: subprocess.Popen([*command, kind, base, secrets[kind], id, str(seconds + 3)], stdout=subprocess.PIPE, text=True)
            for kind in ATTACKERS
        }
        try:
            time.sleep(3)  # until they are all there
            good.work(seconds)
        finally:
            did = {kind: Counter(json.loads(each.communicate(timeout=60)[0] or "{}")) for kind, each in attackers.items()}
        return before.took, good, did, memory_mb(process)


def figures_of(kind: str, before: list[float], good: Good, did: dict[str, Counter[str]], mb: float) -> list[Figure]:
    return [
        shown(f"p99 s before the attack, {kind}", percentile(before, 0.99)),
        at_least(f"requests of the one who behaves, {kind}", len(good.took), 20),
        none(f"of these without an answer, {kind}", [f"{count} × {what}" for what, count in good.wrong.items()]),
        shown(f"p50 s, {kind}", percentile(good.took, 0.5)),
        at_most(f"p99 s, {kind}", percentile(good.took, 0.99), LATEST_S),
        shown(f"the longest s, {kind}", max(good.took, default=0.0)),
        at_most(f"memory of the server in MB, {kind}", mb, LARGEST_MB),
        *(shown(f"{who}, {kind}", ", ".join(f"{what} {count}" for what, count in sorted(what.items()))) for who, what in did.items()),
    ]


def scenario(seed: int, scale: float) -> list[Figure]:
    figures = list[Figure]()
    for kind, place in KINDS.items():
        with place() as fresh:
            figures += figures_of(kind, *play(fresh(), scale))
    return figures


def main() -> int:
    if len(sys.argv) > 2:
        kind, base, secret, id, seconds = sys.argv[1:]
        attack(kind, base, secret, id, float(seconds))
        return 0
    figures = scenario(0, float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    for figure in figures:
        print(figure.line())
    return 0 if all(figure.good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
