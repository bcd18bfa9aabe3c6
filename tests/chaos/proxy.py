"""A way to PostgreSQL that breaks at the worst moments: it knows a commit when it sees one.

It cuts the connection before a commit is passed on, or after the server has carried it out and
before its answer is passed back; it swallows what is sent for a while; it passes on one byte at a
time.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

WRITES = re.compile(rb"\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
HOLE_S = 3.0


class Proxy:
    """Between clients, which use `url`, and the server's socket. `calm` lets everything through;
    `queries` counts what was asked."""

    def __init__(self, socket: str, chance: Random) -> None:
        self.socket, self.chance, self.met = socket, chance, Counter[str]()
        # for each commit
        self.chances = dict.fromkeys(("cut before", "cut after", "black hole", "byte by byte"), 0.0)
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="proxy")

    def __enter__(self) -> Proxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10.0)
        return self

    def __exit__(self, *problem: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def calm(self) -> None:
        self.chances = dict.fromkeys(self.chances, 0.0)

    def fault(self) -> str:
        """What is done to a commit, if anything."""
        return next(
            (what for what, chance in self.chances.items() if self.chance.random() < chance), ""
        )

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = (
            f"postgresql://rhythm@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable"
        )

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            up = await asyncio.open_unix_connection(self.socket)
            try:
                await Wire(self, (reader, writer), up).run()
            finally:
                up[1].close()
        writer.close()


class Cut(Exception):
    """The connection ends here."""


class Wire:
    """One connection: messages up, messages down."""

    def __init__(self, proxy: Proxy, client: Any, server: Any) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.prepared: dict[bytes, bytes] = {}
        self.texts: list[bytes] = []  # of the statements since the last answer was asked for
        self.inside = False  # a transaction
        self.withheld = self.slow = False

    async def run(self) -> None:
        startup = await self._read(self.client[0], typed=False)
        self.server[1].write(startup)
        tasks = [asyncio.ensure_future(self._up()), asyncio.ensure_future(self._down())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                with suppress(Cut, OSError, asyncio.IncompleteReadError):
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader, typed: bool = True) -> bytes:
        head = await reader.readexactly(5 if typed else 4)
        return head + await reader.readexactly(int.from_bytes(head[-4:], "big") - 4)

    async def _up(self) -> None:
        batch = b""
        while True:
            message = await self._read(self.client[0])
            batch += message
            self._note(message[:1], message[5:])
            if message[:1] not in b"QSHX":
                continue
            if message[:1] in b"QS" and self.texts:
                self.proxy.met["queries"] += len(self.texts)
                if self._commits():
                    await self._strike(self.proxy.fault())
            await self._pass(self.server[1], batch)
            self.texts, batch = [], b""

    async def _down(self) -> None:
        while True:
            message = await self._read(self.server[0])
            if message[:1] == b"Z":
                self.inside = message[5:6] != b"I"
                if self.withheld:
                    raise Cut
            if not self.withheld:
                await self._pass(self.client[1], message)

    def _note(self, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            self.texts.append(body)
        elif kind == b"P":
            name, text, *_ = body.split(b"\0")
            self.prepared[name] = text
        elif kind == b"B":
            self.texts.append(self.prepared.get(body.split(b"\0")[1], b""))

    def _commits(self) -> bool:
        if any(text.lstrip().upper().startswith(b"COMMIT") for text in self.texts):
            return True
        return not self.inside and any(WRITES.search(text) for text in self.texts)

    async def _strike(self, fault: str) -> None:
        self.proxy.met["commits"] += 1
        self.proxy.met[fault] += bool(fault)
        if fault == "cut before":
            raise Cut
        if fault == "black hole":
            await asyncio.sleep(HOLE_S)
            raise Cut
        self.withheld = fault == "cut after"
        self.slow = fault == "byte by byte"

    async def _pass(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        for i in range(0, len(data), 1) if self.slow else ():
            writer.write(data[i : i + 1])
            await writer.drain()
            await asyncio.sleep(0)
        if not self.slow:
            writer.write(data)
            await writer.drain()
