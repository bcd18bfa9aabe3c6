"""The bodies of requests: limited before they are read to their end, and parsed through the one
gate of all values."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from rhythm.engine.payload import parse
from rhythm.errors import InvalidPayload
from rhythm.http.problems import Refused
from rhythm.limits import DEFAULT_LIMITS

ENVELOPE = 64 * 1024  # around the largest value
MAX_BODY_BYTES = DEFAULT_LIMITS.payload_bytes + ENVELOPE
LIMITS = DEFAULT_LIMITS.replace(payload_bytes=MAX_BODY_BYTES)
LARGE_BODY_BYTES = 16 * 1024  # takes long enough to parse that others should not wait for it,
LONG = 128 * 1024  # and so long that it is done for one at a time
READ_S = 30.0  # for the whole body
JSON_KINDS = ("application/json",)


class CheckedRequest(Request):
    """A request whose body is no larger than anything we could store, and whose JSON is JSON."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            if (length := self.headers.get("content-length", "")).isdecimal() and int(
                length
            ) > MAX_BODY_BYTES:
                raise _too_large()
            try:
                async with asyncio.timeout(READ_S):
                    self._body = await self._read()
            except TimeoutError:
                raise Refused(
                    408,
                    "body_timeout",
                    f"the body has not come within {READ_S:.0f} s",
                    {"Connection": "close"},
                ) from None
        return self._body

    async def _read(self) -> bytes:
        chunks, size = [], 0
        try:
            async for chunk in self.stream():
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise _too_large()
                chunks.append(chunk)
        except ClientDisconnect:
            raise Refused(400, "body_incomplete", "the body ended early") from None
        return b"".join(chunks)

    @property
    def is_large(self) -> bool:
        """Whether its body has been read, and takes long to parse."""
        return len(getattr(self, "_body", b"")) > LONG

    async def json(self) -> Any:
        text = await self.body()
        try:
            return (
                await run_in_threadpool(parse, text, "the body", LIMITS)
                if len(text) > LARGE_BODY_BYTES
                else parse(text, "the body", LIMITS)
            )
        except InvalidPayload as error:
            raise Refused(422, error.code, str(error)) from None


def must_be_json(request: Request, kinds: tuple[str, ...]) -> None:
    """Other kinds of bodies are refused: a form of another site could send them without asking."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = (
        "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
    )
    if has_body and kind not in kinds:
        raise Refused(
            415,
            "unsupported_media_type",
            f"the body must be {' or '.join(kinds)}: set Content-Type",
            {"Accept": ", ".join(kinds)},
        )


def _too_large() -> Refused:
    return Refused(
        413,
        "body_too_large",
        f"a body has at most {MAX_BODY_BYTES:,} bytes",
        {"Connection": "close"},
    )
