"""A server under attack by those who may use it and by those who may not, all at once: others must
hardly notice.

A viewer asks for the largest traces and lists over 45 connections, an author registers texts and
starts executions with large inputs over 8, and 1,000 clients ask for much and take nothing, all
from the address of the one who behaves. That one starts executions, now and then with large inputs,
looks at them and sends signals, and writes down how long each answer took; `/healthz` it asks over
a new connection each time. Each kind of attacker is a process: this module, run by `play`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

import rhythm
from rhythm.app import Rhythm
from rhythm.worker.handlers import Task
from tests.attack.places import KINDS
from tests.chaos.report import Figure, at_least, at_most, none, percentile, shown

SECONDS = 25.0  # of each database, at full size,
GATHER_S = 3.0  # and before that, until all attackers are there
# of the execution whose trace is asked for; executions that fill a list
CHILDREN, BULKY = 10_000, 300
VIEWERS, AUTHORS, DEAF = 45, 8, 1000
LATEST_S, LARGEST_MB = 1.0, 500.0
LARGE, LARGE_EVERY = "x" * 200_000, 5  # inputs of the one who behaves, in every fifth round
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


# those who attack


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
    kind = (
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        if body is not None
        else ""
    )
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        f"{secret}\r\n{kind}\r\n"
    ).encode() + content


async def viewer(base: str, secret: str, id: str, keep: Keep, count: Counter[str]) -> None:
    paths = [
        f"/executions/{id}/trace?limit=1",
        f"/executions/{id}/trace?limit=1000",
        f"/executions/{id}/children?limit=1000",
        "/executions?limit=1000",
        "/workflows?limit=1000",
        f"/executions/{id}",
        f"/executions/{id}/why",
    ]
    asked = [request("GET", f"/api/v1{paths[n % len(paths)]}", secret) for n in range(VIEWERS)]
    await asyncio.gather(*(ask(base, lambda each=each: each, keep, count) for each in asked))


async def author(base: str, secret: str, id: str, keep: Keep, count: Counter[str]) -> None:
    """Half of them register what takes longest to compile, a new version each time; half start with
    inputs that take longest to read."""
    versions, yearly = itertools.count(), '@schedule("0 0 29 2 *")\n'

    def text() -> bytes:
        many = ", ".join([str(next(versions))] * 110)
        flows = "\n".join(f"{yearly}workflow w{i}() {{ return [{many}] }}" for i in range(200))
        return request("POST", "/api/v1/workflows", secret, {"source": flows})

    inputs = {"workflow": "wait", "inputs": [[]] * 100_000, "attributes": {"note": "x" * 4000}}
    large = request("POST", "/api/v1/executions", secret, inputs)
    makers: list[Callable[[], bytes]] = [text, lambda: large]
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
    """Until its time is over; then it ends, whatever it waits for."""
    count, until = Counter[str](), time.monotonic() + seconds

    async def whole() -> None:
        task = asyncio.create_task(
            ATTACKERS[kind](base, secret, id, lambda: time.monotonic() < until, count)
        )
        await asyncio.wait([task], timeout=seconds)
        print(json.dumps(count), flush=True)
        os._exit(0)

    asyncio.run(whole())


def attacking(kind: str, base: str, secret: str, id: str, seconds: float) -> subprocess.Popen[str]:
    """`attack` in a process of its own, which says in the end what it did."""
    command = [sys.executable, "-m", "tests.attack.server_load"]
    given = [kind, base, secret, id, str(seconds)]
    return subprocess.Popen([*command, *given], stdout=subprocess.PIPE, text=True)


# what is attacked


@contextlib.contextmanager
def serving(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`rhythm server` on a database, as a process, and its address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open(Path(folder) / "log", "w+", encoding="utf-8") as log,
    ):
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")
        }
        plain["PYTHONPATH"] = str(Path(rhythm.__file__).parents[1])  # also if it was a relative one
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
    (found,) = re.findall(
        r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    )
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
    """Whoever behaves: one request after the other, and how long each took until there was an
    answer."""

    def __init__(self, base: str, secret: str) -> None:
        self.base, self.headers = base, {"Authorization": f"Bearer {secret}"}
        self.took = defaultdict[str, list[float]](list)  # by what was asked
        self.wrong = Counter[str]()

    @property
    def all(self) -> list[float]:
        return [seconds for each in self.took.values() for seconds in each]

    def client(self) -> httpx.Client:
        """With a connection of its own. Nothing is loaded for TLS (`verify`): that is slow."""
        return httpx.Client(base_url=self.base, headers=self.headers, timeout=60.0, verify=False)

    def work(self, seconds: float, pause_s: float = 0.05) -> None:
        until = time.monotonic() + seconds
        with self.client() as kept:
            for n in itertools.count():
                if time.monotonic() > until:
                    return
                self.round(kept, large=n % LARGE_EVERY == 0)
                with self.client() as fresh:
                    self.one(fresh, "health", "GET", "/healthz")
                time.sleep(pause_s)

    def round(self, client: httpx.Client, large: bool) -> None:
        """Starts an execution, looks at it, and ends it."""
        what, inputs = ("large start", LARGE) if large else ("start", "x")
        executions = "/api/v1/executions"
        started = self.one(client, what, "POST", executions, {"workflow": "wait", "inputs": inputs})
        self.one(client, "list", "GET", f"{executions}?limit=10")
        if started is not None:
            path = f"{executions}/{started['id']}"
            self.one(client, "look", "GET", path)
            self.one(client, "status", "GET", f"{path}/status")
            self.one(client, "signal", "POST", f"{path}/signals", {"name": "go"})

    def one(self, client: httpx.Client, what: str, method: str, path: str, body: Any = None) -> Any:
        """The answer; None if there was none, or another than was asked for."""
        began = time.monotonic()
        try:
            answer = client.request(method, path, json=body)
        except httpx.TransportError as problem:
            self.wrong[f"{what}: {type(problem).__name__}"] += 1
            return None
        finally:
            self.took[what].append(time.monotonic() - began)
        if answer.is_success:
            return answer.json()
        self.wrong[f"{what}: {answer.status_code}"] += 1
        return None


class Seen(NamedTuple):
    """What was to be seen of an attack."""

    before: Good
    good: Good
    did: dict[str, Counter[str]]  # by each kind of attacker: statuses of answers, and connections
    mb: float  # memory of the server


def play(url: str, scale: float) -> Seen:
    """Attacks a server on an empty database."""
    seconds = max(SECONDS * scale, 3.0)
    id, secrets = fill(url, scale)
    with serving(url) as (process, base):
        before, good = Good(base, secrets["good"]), Good(base, secrets["good"])
        before.work(seconds / 5)
        until_s = seconds + GATHER_S
        attackers = {kind: attacking(kind, base, secrets[kind], id, until_s) for kind in ATTACKERS}
        try:
            time.sleep(GATHER_S)
            good.work(seconds)
        finally:
            said = {kind: each.communicate(timeout=60)[0] for kind, each in attackers.items()}
        did = {kind: Counter[str](json.loads(text or "{}")) for kind, text in said.items()}
        return Seen(before, good, did, memory_mb(process))


def figures_of(kind: str, seen: Seen) -> list[Figure]:
    took = seen.good.took
    wrong = [f"{count} × {what}" for what, count in seen.good.wrong.items()]
    return [
        shown(f"p99 s before the attack, {kind}", percentile(seen.before.all, 0.99)),
        at_least(f"requests of the one who behaves, {kind}", len(seen.good.all), 20),
        none(f"of these without an answer, {kind}", wrong),
        shown(f"p50 s, {kind}", percentile(seen.good.all, 0.5)),
        at_most(f"p99 s, {kind}", percentile(seen.good.all, 0.99), LATEST_S),
        *(shown(f"longest s of {len(s)} × {what}, {kind}", max(s)) for what, s in took.items()),
        at_most(f"memory of the server in MB, {kind}", seen.mb, LARGEST_MB),
        none(f"mistakes of the attackers, {kind}", sum(did["422"] for did in seen.did.values())),
        *(shown(f"{who}, {kind}", listed(did)) for who, did in seen.did.items()),
    ]


def listed(counts: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))


def scenario(seed: int, scale: float) -> list[Figure]:
    figures = list[Figure]()
    for kind, place in KINDS.items():
        with place() as fresh:
            figures += figures_of(kind, play(fresh(), scale))
    return figures


if __name__ == "__main__":
    kind, base, secret, id, seconds = sys.argv[1:]
    attack(kind, base, secret, id, float(seconds))
