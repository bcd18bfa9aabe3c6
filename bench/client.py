"""A client of the HTTP interface that costs next to nothing, as it shares the machine with the
server: requests that are sent at once."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from typing import Any

from rhythm.record import Record

LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")


class Asked(Record):
    """A request. `secret`: of the token it is sent with."""

    path: str
    secret: str = ""
    method: str = "POST"
    body: Any = None

    def written(self) -> bytes:
        body = b"" if self.body is None else json.dumps(self.body).encode()
        head = [
            f"{self.method} {self.path} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {self.secret}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*head, "", ""]).encode() + body


class Answer(Record):
    """What came back, when it was asked for (by this machine's clock), and the seconds until it
    came."""

    status: int
    body: Any
    sent: float
    took: float


def at_once(port: int, requests: Sequence[Asked]) -> list[Answer]:
    """Their answers. Each has a connection of its own, and all connections are open before the
    first request is sent."""
    return asyncio.run(_at_once(port, requests))


async def _at_once(port: int, requests: Sequence[Asked]) -> list[Answer]:
    ways = [await asyncio.open_connection("127.0.0.1", port) for _ in requests]
    try:
        return await asyncio.gather(
            *(_ask(*way, request.written()) for way, request in zip(ways, requests, strict=True))
        )
    finally:
        for _, writer in ways:
            writer.close()


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> Answer:
    sent, began = time.time(), time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return Answer(
        int(head.split(b" ", 2)[1]), json.loads(body or b"null"), sent, time.perf_counter() - began
    )
