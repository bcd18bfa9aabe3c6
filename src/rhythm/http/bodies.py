"""The bodies of requests: limited in size as they are read, and parsed by the one function through
which all values come."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from rhythm.engine.payload import parse
from rhythm.errors import InvalidPayload
from rhythm.http.problems import Refused
from rhythm.limits import DEFAULT_LIMITS

ENVELOPE = 64 * 1024  # for what surrounds the largest value in a body
MAX_BODY_BYTES = DEFAULT_LIMITS.payload_bytes + ENVELOPE
LIMITS = DEFAULT_LIMITS.replace(payload_bytes=MAX_BODY_BYTES)
# A body larger than this is parsed in a thread, so that others do not wait for it.
LARGE_BODY_BYTES = 16 * 1024
LONG = 128 * 1024  # bodies larger than this are parsed one at a time
READ_S = 30.0  # for the whole body
JSON_KINDS = ("application/json",)


class CheckedRequest(Request):
    """A request whose body has a limited size, and whose JSON is checked.

    The limit is what could be stored.
    """

    async def body(self) -> bytes:
        """Returns the whole body. Raises `Refused` if it is too large, too slow, or ends early."""
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
        """Whether the body has been read and takes long to parse."""
        return len(getattr(self, "_body", b"")) > LONG

    async def json(self) -> Any:
        """Returns the body as a JSON value. Raises `Refused` if it is not valid."""
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
    """Refuses a body that is not of one of these media types (415).

    A form on another site could send other types without the browser asking us first.
    """
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
