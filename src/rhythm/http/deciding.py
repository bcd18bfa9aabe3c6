"""Decisions that come at the same time are made together, in one transaction.

Decisions follow one another in any case, since each extends the one audit chain. A hundred of them
in a hundred threads would only make each thread wait for the others.
"""

from __future__ import annotations

import asyncio

from starlette.concurrency import run_in_threadpool

from rhythm.app import Rhythm
from rhythm.app.approvals import ApprovalView, WantedDecision
from rhythm.errors import StoreError
from rhythm.http.gathering import Gathering

MOST_TOGETHER = 50  # decisions in one transaction: the others wait for no more than these
AT_ONCE = 2  # transactions: while one waits for what another process holds, others are made


class Deciding:
    """Makes the decisions of the callers of one server."""

    def __init__(self, app: Rhythm) -> None:
        self._app = app
        self._gathering: Gathering[WantedDecision, ApprovalView] = Gathering(
            self._together, most=MOST_TOGETHER, at_once=AT_ONCE, apart=lambda each: each.family
        )

    async def decide(self, wanted: WantedDecision) -> ApprovalView:
        """Makes a decision, and returns the approval. Raises what `Approvals.approve` does."""
        return await self._gathering.ask(wanted)

    async def _together(self, wanted: list[WantedDecision]) -> list[ApprovalView | Exception]:
        try:
            return await self._made(wanted)
        except Exception as problem:
            # If the database failed, they may have been made, and must not be made again.
            if len(wanted) == 1 or isinstance(problem, StoreError):
                raise
        # Nothing was done, because of one of them: so each alone.
        return await asyncio.gather(*map(self._alone, wanted))

    async def _alone(self, wanted: WantedDecision) -> ApprovalView | Exception:
        try:
            (answer,) = await self._made([wanted])
            return answer
        except Exception as problem:
            return problem

    async def _made(self, wanted: list[WantedDecision]) -> list[ApprovalView | Exception]:
        return await run_in_threadpool(self._app.approvals.decide_all, wanted)
