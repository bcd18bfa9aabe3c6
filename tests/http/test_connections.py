"""Connections: those who keep a server waiting are ended, and make room for those who do not."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import httpx

from rhythm.http.connections import (
    FILES,
    FULL,
    GRACE_S,
    HEAD_S,
    LEAST,
    MAX_TURNED_AWAY,
    SLOWEST,
    UNSENT,
    Connections,
    open_files,
)
from rhythm.settings import load_settings
from tests.http.conftest import Client, until
from tests.http.test_sharing import Clock


class Transport:
    def __init__(self) -> None:
        self.unsent, self.sent, self.ended = 0, b"", ""

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return bool(self.ended)

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def abort(self) -> None:
        self.ended = self.ended or "aborted"


class Cycle:
    response_complete = False


class Loop:
    def call_later(self, seconds: float, call: Any) -> None:
        pass


class Base:
    """As much of uvicorn's protocol as is looked at."""

    loop = Loop()

    def __init__(self, address: str = "203.0.113.7") -> None:
        self.client, self.transport = (address, 1), cast(Any, Transport())
        self.timeout_keep_alive_task: object = None
        self.cycle: Any = None
        self.scope = dict[str, Any]()
        self.received = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        pass


class House:
    """A server's connections, on a clock of the test."""

    def __init__(
        self, files: int | None = None, proxies: tuple[str, ...] = (), **settings: Any
    ) -> None:
        self.clock, self.told = Clock(), list[tuple[str, str]]()
        given = load_settings(
            {f"server_{name}": value for name, value in settings.items()}, {}, "/nowhere"
        )
        self.all = Connections(
            given,
            files,
            proxies,
            lambda address, reason: self.told.append((address, reason)),
            self.clock,
        )
        self.protocol = self.all.protocol(Base)

    def comes(self, doing: str = "head", address: str = "203.0.113.7") -> Any:
        made = self.protocol(address)
        made.connection_made(made.transport)
        does(made, doing)
        return made

    def later(self, seconds: float) -> None:
        """It is looked at once a second."""
        for _ in range(round(seconds)):
            self.clock.now += 1
            self.all.check()


def does(connection: Any, doing: str) -> None:
    connection.timeout_keep_alive_task = object() if doing == "idle" else None
    connection.cycle = Cycle() if doing in ("busy", "sending", "hasty") else None
    connection.scope = {"rhythm.hasty": True} if doing == "hasty" else {}
    if doing == "sending":
        sends(connection, 100_000)


def sends(connection: Any, size: int) -> None:
    connection.transport.write(b"x" * size)
    connection.transport._transport.unsent += size


def takes(connection: Any, size: int) -> None:
    connection.transport._transport.unsent -= size


def test_who_takes_nothing_is_cut_off_however_it_closes() -> None:
    house = House(write_timeout=20)
    slow, quick = house.comes("sending"), house.comes("sending")
    house.later(1)
    for _ in range(30):
        takes(quick, SLOWEST // 15)
        house.later(1)
    assert (slow.transport.ended, quick.transport.ended) == ("aborted", "")
    assert house.told == [("203.0.113.7", "write_timeout")]


def test_who_takes_a_byte_now_and_then_is_cut_off_as_well() -> None:
    house = House(write_timeout=20)
    slow = house.comes("sending")
    for _ in range(25):
        takes(slow, 10)
        house.later(1)
    assert slow.transport.ended == "aborted"


def test_what_is_added_to_an_answer_is_not_taken_for_slowness_and_does_not_hide_it() -> None:
    house = House(write_timeout=20)
    stream, deaf = house.comes("sending"), house.comes("sending")
    for _ in range(40):
        takes(stream, 5000)
        sends(stream, 5000)
        sends(deaf, 100)
        house.later(1)
    assert (stream.transport.ended, deaf.transport.ended) == ("", "aborted")


def test_who_begins_a_request_and_does_not_send_it_is_cut_off() -> None:
    house = House()
    slow, busy, idle = house.comes("head"), house.comes("busy"), house.comes("idle")
    again = house.comes("busy")
    house.later(1)
    does(again, "head")
    house.later(HEAD_S - 1)
    assert [each.transport.ended for each in (slow, busy, idle, again)] == ["aborted", "", "", ""]
    house.later(2)
    assert again.transport.ended == "aborted", "it has had its time since its last request"
    assert house.told == [("203.0.113.7", "head_timeout")] * 2


def test_those_who_keep_the_server_waiting_for_longest_make_room() -> None:
    house = House(connections=4)
    idle = house.comes("idle", "192.0.2.1")
    house.later(1)
    head, sending, busy = (
        house.comes("head", "192.0.2.2"),
        house.comes("sending", "192.0.2.3"),
        house.comes("busy", "192.0.2.4"),
    )
    house.later(1 + GRACE_S)
    gone = list[Any]()
    for _ in range(3):
        house.comes("busy")
        gone.append([each.transport.ended == "aborted" for each in (sending, head, idle, busy)])
    assert gone == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
    ]
    assert house.comes("busy").transport.ended == "", (
        "it is told that there is no room when it asks"
    )
    assert house.told == [("203.0.113.7", "too_many_connections")]
    assert len(house.all._seen) == 4


def test_who_has_just_come_is_not_ended_for_others() -> None:
    house = House(connections=2)
    first = [house.comes("head"), house.comes("head")]
    third = house.comes("head")
    assert [each.transport.ended for each in first] == ["", ""]
    third.data_received(b"GET / HTTP/1.1\r\n")
    assert (third.transport.sent, third.transport.ended, third.received) == (FULL, "closed", b"")
    third.data_received(b"Host: x\r\n\r\n")
    assert third.transport.sent == FULL


def test_who_asks_too_often_makes_room_at_once() -> None:
    house = House(connections=2)
    hasty, busy = house.comes("hasty"), house.comes("busy")
    house.comes("busy")
    assert (hasty.transport.ended, busy.transport.ended) == ("aborted", "")


def test_who_has_begun_to_be_served_meanwhile_is_not_ended() -> None:
    house = House(connections=2)
    one, other = house.comes("head"), house.comes("head")
    house.later(GRACE_S)
    assert house.all._make_room(None), "and both were found to be waiting"
    left = other if one.transport.ended else one
    does(left, "busy")
    house.all._seen.setdefault(one, house.all._seen[left])
    assert not house.all._make_room(None)
    assert left.transport.ended == ""


def test_no_more_are_turned_away_politely_than_there_are_places_for_that() -> None:
    house = House(connections=1)
    house.comes("busy")
    away = [house.comes() for _ in range(MAX_TURNED_AWAY + 5)]
    assert [each.transport.ended for each in away] == [""] * MAX_TURNED_AWAY + ["aborted"] * 5
    for each in away:
        each.connection_lost(None)
    assert (house.all._away, len(house.all._seen)) == (set(), 1)


def test_one_address_has_its_share_and_makes_room_for_itself_alone() -> None:
    house = House(connections=10, connections_per_address=2)
    others = [house.comes("sending", "198.51.100.1"), house.comes("idle", "198.51.100.1")]
    one = [house.comes("idle"), house.comes("busy")]
    house.later(1 + GRACE_S)
    assert house.comes("busy").transport.ended == ""
    assert [each.transport.ended for each in (*one, *others)] == ["aborted", "", "", ""]
    refused = house.comes("busy")
    refused.data_received(b"x")
    assert refused.transport.sent == FULL
    assert house.comes("busy", "192.0.2.1").received == b""
    assert house.told == [("203.0.113.7", "too_many_connections")]


def test_a_proxy_is_everybody() -> None:
    house = House(proxies=("203.0.113.7",), connections=10, connections_per_address=2)
    for _ in range(10):
        house.comes("busy")
    assert (len(house.all._seen), house.told) == (10, [])


def test_what_waits_for_all_clients_together_is_bounded() -> None:
    house = House(write_timeout="1h")
    many = [house.comes("sending") for _ in range(5)]
    house.later(1)
    for each in many:
        sends(each, UNSENT // 3 - 100_000)
    house.later(1)
    assert [each.transport.ended for each in many] == ["aborted", "aborted", "", "", ""]


def test_whoever_goes_is_forgotten() -> None:
    house = House()
    for each in [house.comes() for _ in range(3)]:
        each.connection_lost(None)
        each.connection_lost(None)
    assert (house.all._seen, house.all._of) == ({}, {})


def test_there_are_no_more_places_than_files() -> None:
    assert House(files=None).all.most == 2000
    assert House(files=100_000).all.most == 2000
    assert House(files=1024).all.most == 1024 - FILES - MAX_TURNED_AWAY
    assert House(files=64).all.most == LEAST
    assert House(files=64).all.most_of_one == LEAST
    assert open_files() is None or open_files() > 0  # type: ignore[operator]


# a real one

WAIT = 'workflow wait() {\n  return await signal("go")\n}'
PIPELINED = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 60


@contextmanager
def rhythm_server(folder: Path, changes: str = "pass", **settings: object) -> Iterator[str]:
    """The URL of `rhythm server`, as a process in which these settings and changes hold."""
    code = (
        f"import sys, resource, rhythm.http.connections as c, rhythm.cli.main as m; "
        f"{changes}; sys.exit(m.main(['server', '--port', '0']))"
    )
    given = {
        **os.environ,
        **{f"RHYTHM_SERVER_{name.upper()}": str(value) for name, value in settings.items()},
    }
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stderr=subprocess.PIPE, text=True, env=given
    ) as process:
        try:
            assert process.stderr is not None
            yield re.findall(r"http://[0-9.:]+", process.stderr.readline())[0]
        finally:
            process.kill()


def deaf(base: str) -> socket.socket:
    """A client that asks for much, and takes nothing."""
    host, port = base.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    made.settimeout(60)
    made.connect((host, int(port)))
    made.sendall(PIPELINED)
    return made


def is_over(client: socket.socket) -> bool:
    """Whether its connection was ended. What had come before is taken first."""
    try:
        while client.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    return True


def test_clients_that_do_not_read_are_cut_off(tmp_path: Path) -> None:
    with (
        rhythm_server(tmp_path, "c.POLL_INTERVAL_S = 0.1", write_timeout="0.3s") as base,
        ExitStack() as stack,
    ):
        slow = [stack.enter_context(deaf(base)) for _ in range(20)]
        with Client(base) as me:
            me.post("/api/v1/workflows", json={"source": WAIT})
            with me.stream("GET", f"/api/v1/executions/{me.start('wait')}/stream") as answer:
                lines = answer.iter_lines()
                next(lines)
                assert all(map(is_over, slow))
                assert httpx.get(f"{base}/healthz").status_code == 200
                me.get("/api/v1/executions")
                assert any("execution" in line for line in lines), (
                    "a stream with nothing to say is no slow client"
                )


def test_a_server_answers_however_many_do_not_read(tmp_path: Path) -> None:
    """With as few files as it takes: four times as many clients as there are places."""
    few = "resource.setrlimit(resource.RLIMIT_NOFILE, (240, 240)); c.GRACE_S = 0.0"
    with rhythm_server(tmp_path, few, write_timeout="1h") as base, ExitStack() as stack:
        clients = [
            stack.enter_context(deaf(base)) for _ in range(4 * (240 - FILES - MAX_TURNED_AWAY))
        ]
        # some may be told to come back while the storm lasts
        until(lambda: _status(f"{base}/healthz") == 200)
        with httpx.Client(timeout=60, headers={"Connection": "close"}) as me:
            assert {me.get(f"{base}/healthz").status_code for _ in range(20)} == {200}
            assert me.get(f"{base}/api/v1/executions").status_code == 200
        assert clients


def test_who_finds_no_place_is_told_so(tmp_path: Path) -> None:
    with rhythm_server(tmp_path, connections=2, streams=2) as base, Client(base) as me:
        me.post("/api/v1/workflows", json={"source": WAIT})
        path = f"/api/v1/executions/{me.start('wait')}/stream"
        with me.stream("GET", path) as first:
            lines = first.iter_lines()  # it ends with this
            next(lines)
            refused = httpx.get(f"{base}{path}", timeout=30)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams"), (
                "some room is kept for those who ask"
            )
            host, port = base.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port)), 30) as second:
                head = (
                    "POST /api/v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                    "application/json\r\nContent-Length: 5\r\n\r\n"
                )
                second.sendall(head.encode())
                until(lambda: _status(f"{base}/healthz") == 503)
                answer = httpx.get(f"{base}/healthz", timeout=30)
                assert (
                    answer.status_code,
                    answer.json()["code"],
                    answer.headers["Retry-After"],
                ) == (503, "too_many_connections", "5")
                assert answer.headers["Content-Type"] == "application/problem+json"


def _status(url: str) -> int:
    try:
        return httpx.get(url, timeout=30).status_code
    except httpx.TransportError:
        return 0
