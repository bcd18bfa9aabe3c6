"""Restate: a server with a log of its own, which calls services over HTTP.

When it starts, the server asks GitHub for its newest release; no setting that we know stops that,
and nothing waits for the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import peer
import restate

PROCESSES, IN_FLIGHT = 2, 200
HOST = "127.0.0.1"
ENDED = "BENCH_ENDED"  # names a file that grows by a byte for each task
Call = Callable[[str, object], Awaitable[bytes]]

service = restate.Service("bench")


@service.handler()
async def note(context: restate.Context, x: int) -> int:
    with open(os.environ[ENDED], "ab", buffering=0) as file:
        file.write(b".")
    return x


@service.handler()
async def child(context: restate.Context, x: int) -> int:
    return x


@service.handler()
async def steps(context: restate.Context, n: int) -> int:
    for _ in range(n):
        await context.run_typed("step", nothing)
    return n


@service.handler()
async def children(context: restate.Context, n: int) -> int:
    await restate.gather(*[context.service_call(child, arg=x) for x in range(n)])
    return n


async def nothing() -> dict[str, int]:
    return {"x": 1}


app = restate.app([service])


async def j1(where: str) -> None:
    peer.settings(
        f"one request each, {IN_FLIGHT} in flight; {PROCESSES} hypercorn processes; tasks run "
        "while others are sent: from the first request to the last end"
    )
    async with running(where) as call:
        began = time.perf_counter()
        await many(call, "note/send", range(peer.TASKS))
        enqueued = time.perf_counter() - began
        while os.path.getsize(os.environ[ENDED]) < peer.TASKS:
            await asyncio.sleep(peer.POLL_S)
        drained = time.perf_counter() - began
    peer.tell(enqueued_per_s=peer.TASKS / enqueued, drained_per_s=peer.TASKS / drained)


async def j2(where: str) -> None:
    peer.settings(
        f"{peer.WORKFLOWS:,} workflows, {IN_FLIGHT} in flight; {PROCESSES} hypercorn processes"
    )
    async with running(where) as call:
        began = time.perf_counter()
        await many(call, "steps", [peer.STEPS] * peer.WORKFLOWS)
        took = time.perf_counter() - began
    peer.tell(steps_per_s=peer.WORKFLOWS * peer.STEPS / took)


async def j3(where: str) -> None:
    peer.settings(f"a request and its answer; {PROCESSES} hypercorn processes")
    async with running(where) as call:
        times = [await timed(call, "steps", 1) for _ in range(peer.SINGLES)]
        long = [await timed(call, "steps", peer.LONG) for _ in range(peer.LONGS)]
    peer.tell(**peer.spread(times), ms_per_step=peer.a_step(long))


async def j4(where: str) -> None:
    peer.settings(f"calls of a service by a service; {PROCESSES} hypercorn processes")
    async with running(where) as call:
        took = await timed(call, "children", peer.CHILDREN)
    peer.tell(children_s=took)


async def timed(call: Call, handler: str, given: object) -> float:
    """Seconds for one call."""
    began = time.perf_counter()
    await call(handler, given)
    return time.perf_counter() - began


async def many(call: Call, handler: str, inputs: Iterable[object]) -> None:
    """A call for each input, so many of them in flight."""
    waiting = iter(inputs)

    async def some() -> None:
        for given in waiting:
            await call(handler, given)

    await asyncio.gather(*[some() for _ in range(IN_FLIGHT)])


@asynccontextmanager
async def running(where: str) -> AsyncIterator[Call]:
    """The server and the service, warmed up, and what calls a handler."""
    ports = free_ports(4)
    os.environ[ENDED] = f"{where}/ended"
    Path(os.environ[ENDED]).touch()
    commands = [server_command(where), service_command(ports[3])]
    with peer.ended(commands, env=environment(ports)) as started:
        deploy(f"http://{HOST}:{ports[1]}/deployments", f"http://{HOST}:{ports[3]}", started)
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def call(handler: str, given: object) -> bytes:
                url = f"http://{HOST}:{ports[0]}/bench/{handler}"
                async with session.post(url, json=given) as answer:
                    answer.raise_for_status()
                    return await answer.read()

            await many(call, "steps", [1] * IN_FLIGHT)
            yield call


def server_command(folder: str) -> list[str]:
    """The server itself, not the script around it."""
    [program] = Path(sys.prefix).glob(
        "node_modules/@restatedev/restate-server-*/bin/restate-server"
    )
    return [str(program), "--base-dir", folder, "--no-logo", "--node-name", "bench"]


def service_command(port: int) -> list[str]:
    hypercorn = [sys.executable, "-m", "hypercorn", "-k", "uvloop", "-w", str(PROCESSES)]
    return [*hypercorn, "--bind", f"{HOST}:{port}", "--log-level", "error", "peer_restate:app"]


def environment(ports: list[int]) -> dict[str, str]:
    """With all of the server on the loopback interface, and nothing sent anywhere."""
    ingress, admin, node, _ = map(str, ports)
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "RESTATE_BIND_IP": HOST,
        "RESTATE_ADVERTISED_HOST": HOST,
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_PORT": node,
        "RESTATE_INGRESS__BIND_PORT": ingress,
        "RESTATE_ADMIN__BIND_PORT": admin,
        "RESTATE_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
        "RESTATE_LOG_FILTER": "error",
    }


def deploy(admin: str, uri: str, started: list[subprocess.Popen[str]]) -> None:
    """Tells the server of the service, as soon as both answer."""
    body = json.dumps({"uri": uri}).encode()
    request = urllib.request.Request(admin, body, {"content-type": "application/json"})
    while all(process.poll() is None for process in started):
        try:
            urllib.request.urlopen(request, timeout=30).read()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    sys.exit("the server or the service ended")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    peer.main({"j1": j1, "j2": j2, "j3": j3, "j4": j4})
