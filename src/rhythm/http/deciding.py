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
AT_ONCE = 2  # transactions: while one waits for a moment for what others hold, another is made


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

    async def _together(
        self, wanted: list[WantedDecision]
    ) -> list[ApprovalView | Exception | asyncio.Task[ApprovalView]]:
        try:
            return [*await run_in_threadpool(self._app.approvals.decide_all, wanted)]
        except StoreError:  # they may have been made, and must not be made again
            raise
        except Exception:
            # Nothing was done, because of one of them: so each alone. Others do not wait for that.
            return [asyncio.create_task(self._alone(each)) for each in wanted]

    async def _alone(self, wanted: WantedDecision) -> ApprovalView:
        return await run_in_threadpool(self._app.approvals.decide, wanted)
