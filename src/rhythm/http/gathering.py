"""Answers questions that wait at the same time together: with one hand-over to a thread, and one
transaction, for all of them.

A question waits for nothing but the answers that are being found: alone it is answered at once. It
knows no database and no question: whoever makes a `Gathering` says how questions are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Gathering(Generic[Q, A]):
    """Gathers questions. Call it only from the event loop.

    - `answer`: returns the answers to some questions, in order; an exception among them is raised
      for who asked that question, and a task is an answer that will come: nobody else waits for it.
    - `most`: questions that are answered together.
    - `at_once`: how many times `answer` runs at once: while it waits for something, others go on.
    - `apart`: two questions with the same word are not answered together.
    """

    def __init__(
        self,
        answer: Callable[[list[Q]], Awaitable[Sequence[A | Exception | asyncio.Task[A]]]],
        *,
        most: int,
        at_once: int,
        apart: Callable[[Q], str] | None = None,
    ) -> None:
        self._answer, self._most, self._at_once, self._apart = answer, most, at_once, apart
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, question: Q) -> A:
        """Returns the answer to a question, which is answered with others that wait."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # what another loop has left, which is no more
            self._loop, self._waiting, self._running = loop, [], set()
        answer: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, answer))
        if len(self._running) < self._at_once:
            # It begins when all that has come until now has been looked at.
            self._running.add(loop.create_task(self._run_to_the_end()))
        return await answer

    async def _run_to_the_end(self) -> None:
        """Answers until no question waits. Whoever asks right after that finds it gone."""
        running, this = self._running, asyncio.current_task()
        try:
            await self._run()
        finally:
            if this is not None:
                running.discard(this)

    async def _run(self) -> None:
        while taken := self._taken():
            answers: Sequence[A | Exception | asyncio.Task[A]]
            try:
                answers = await self._answer([question for question, _ in taken])
            except Exception as problem:
                answers = [problem] * len(taken)
            except BaseException:  # the server is stopped
                for _, waiting in taken:
                    waiting.cancel()
                raise
            for (_, waiting), answer in zip(taken, answers, strict=True):
                _settle(waiting, answer)

    def _taken(self) -> list[tuple[Q, asyncio.Future[A]]]:
        """Takes the questions that are answered together next, in the order in which they came."""
        taken, left = list[Any](), list[Any]()
        words = set[str]()
        for each in self._waiting:
            question, waiting = each
            word = self._apart(question) if self._apart else str(len(words))
            if waiting.done():  # nobody waits for it any more
                continue
            if len(taken) < self._most and word not in words:
                words.add(word)
                taken.append(each)
            else:
                left.append(each)
        self._waiting = left
        return taken


def _settle(waiting: asyncio.Future[A], answer: A | Exception | asyncio.Task[A]) -> None:
    """Gives an answer to who waits for it, if anybody still does."""
    if isinstance(answer, asyncio.Task):
        answer.add_done_callback(lambda ended: _settle(waiting, _outcome(ended)))
    elif waiting.done():
        return
    elif isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)


def _outcome(ended: asyncio.Task[A]) -> A | Exception:
    if ended.cancelled():
        return TimeoutError("the server is stopped")
    problem = ended.exception()
    return problem if isinstance(problem, Exception) else ended.result()
