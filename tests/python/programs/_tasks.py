"""Tasks that the programs call, and the exceptions that they raise."""

from __future__ import annotations

from typing import Any

import rhythm


class ShopError(Exception):
    """The base of the exceptions of these tasks."""


class OutOfStock(ShopError):
    """A class below a class of our own."""


class BadCard(ShopError, ValueError):
    """A class with two bases."""


@rhythm.task
async def echo(x: Any) -> Any:
    return x


@rhythm.task
async def add(a: Any, b: Any) -> Any:
    return a + b


@rhythm.task
async def double(x: Any) -> Any:
    return x * 2


@rhythm.task
async def upper(text: str) -> str:
    return text.upper()


@rhythm.task
async def is_even(n: int) -> bool:
    return n % 2 == 0


@rhythm.task
async def nothing() -> Any:
    return None


@rhythm.task
def plain(x: Any) -> Any:
    return [x, x]


@rhythm.task
async def numbers(n: int, start: int = 0) -> list[int]:
    return list(range(start, start + n))


KINDS: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "KeyError": KeyError,
    "IndexError": IndexError,
    "TypeError": TypeError,
    "ZeroDivisionError": ZeroDivisionError,
    "RuntimeError": RuntimeError,
    "OSError": OSError,
    "ConnectionError": ConnectionError,
    "PermissionError": PermissionError,
    "ShopError": ShopError,
    "OutOfStock": OutOfStock,
    "BadCard": BadCard,
}


@rhythm.task
async def fails(kind: str, message: str = "it failed") -> Any:
    raise KINDS[kind](message)


@rhythm.task
async def fails_bare(kind: str) -> Any:
    raise KINDS[kind]


@rhythm.task
async def maybe(x: Any, bad: Any = None) -> Any:
    if x == bad:
        raise ValueError(f"bad {x}")
    return x


@rhythm.task
async def failed_with_code(code: str, data: Any = None) -> Any:
    raise rhythm.TaskFailed("refused", code=code, data=data)
