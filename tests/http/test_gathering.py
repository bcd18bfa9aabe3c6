"""Questions that wait at the same time are answered together, and each as if it were alone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from rhythm.http.gathering import Gathering


class Answering:
    """Answers numbers with their double, when it is told to; what was asked together is kept."""

    def __init__(self, **settings: Any) -> None:
        self.asked: list[list[int]] = []
        self.may = asyncio.Event()
        self.gathering: Gathering[int, int] = Gathering(
            self.answer, **{"most": 100, "at_once": 1, **settings}
        )

    async def answer(self, numbers: list[int]) -> list[int | Exception]:
        self.asked.append(numbers)
        await self.may.wait()
        if 13 in numbers:
            raise LookupError("unlucky")
        return [ValueError(f"{each}") if each < 0 else 2 * each for each in numbers]

    def ask(self, *numbers: int) -> list[asyncio.Task[int]]:
        return [asyncio.create_task(self.gathering.ask(number)) for number in numbers]


async def passing(times: int = 5) -> None:
    """Until all that can go on has gone on."""
    for _ in range(times):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_what_waits_is_answered_together_and_in_order() -> None:
    async def work() -> None:
        answering = Answering()
        first = answering.ask(1, 2)
        await passing()
        later = answering.ask(3, 4, 5)
        await passing()
        assert answering.asked == [[1, 2]]
        answering.may.set()
        assert await asyncio.gather(*first, *later) == [2, 4, 6, 8, 10]
        assert answering.asked == [[1, 2], [3, 4, 5]]
        assert await asyncio.gather(*answering.ask(6)) == [12], "it goes on when it had ended"

    run(work())


def test_no_more_are_answered_together_than_are_wanted() -> None:
    async def work() -> None:
        answering = Answering(most=2)
        answering.may.set()
        assert await asyncio.gather(*answering.ask(1, 2, 3, 4, 5)) == [2, 4, 6, 8, 10]
        assert answering.asked == [[1, 2], [3, 4], [5]]

    run(work())


def test_what_must_be_apart_is_answered_one_after_the_other() -> None:
    async def work() -> None:
        answering = Answering(apart=lambda number: str(number % 10))
        answering.may.set()
        assert await asyncio.gather(*answering.ask(1, 11, 2, 21, 12)) == [2, 22, 4, 42, 24]
        assert answering.asked == [[1, 2], [11, 12], [21]]

    run(work())


def test_others_go_on_while_some_wait() -> None:
    async def work() -> None:
        answering = Answering(at_once=2)
        asked = list[asyncio.Task[int]]()
        for number in (1, 2, 3, 4):
            asked += answering.ask(number)
            await passing()
        assert answering.asked == [[1], [2]]
        answering.may.set()
        assert await asyncio.gather(*asked) == [2, 4, 6, 8]
        assert answering.asked == [[1], [2], [3, 4]]

    run(work())


def test_an_error_is_that_of_who_asked_and_one_of_all_is_everyones() -> None:
    async def work() -> None:
        answering = Answering()
        answering.may.set()
        good, bad = answering.ask(1, -1)
        assert await good == 2
        with pytest.raises(ValueError, match="-1"):
            await bad
        for each in answering.ask(12, 13):
            with pytest.raises(LookupError):
                await each
        assert await answering.gathering.ask(14) == 28

    run(work())


def test_what_nobody_waits_for_is_not_asked() -> None:
    async def work() -> None:
        answering = Answering()
        first, second, third = (*answering.ask(1), *[]), answering.ask(2), answering.ask(3)
        await passing()
        fourth, fifth = answering.ask(4, 5)
        await passing()
        fourth.cancel()
        second[0].cancel()  # it is being answered
        await passing()
        answering.may.set()
        assert await asyncio.gather(*first, *third, fifth) == [2, 6, 10]
        assert answering.asked == [[1, 2, 3], [5]]

    run(work())


def test_who_asks_as_soon_as_the_answer_is_there_is_answered_too() -> None:
    """The one that has answered is just about to end, and looks for no further question."""

    async def one_after_the_other() -> list[int]:
        answering = Answering()
        answering.may.set()
        return [await asyncio.wait_for(answering.gathering.ask(n), 60) for n in range(5)]

    async def at_once() -> list[int]:
        answering = Answering()
        answering.may.set()

        async def asks(n: int) -> int:
            return await answering.gathering.ask(await answering.gathering.ask(n))

        return await asyncio.wait_for(asyncio.gather(*map(asks, range(3))), 60)

    assert asyncio.run(one_after_the_other()) == [0, 2, 4, 6, 8]
    assert asyncio.run(at_once()) == [0, 4, 8]
