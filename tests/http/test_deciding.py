"""Decisions that come at the same time are made together; if that is not possible, each alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from rhythm.app import Rhythm
from rhythm.app.approvals import ApprovalView, WantedDecision
from rhythm.errors import RhythmError, StoreError, Unavailable, UnknownApproval
from rhythm.http.deciding import Deciding
from rhythm.store.approvals import NotTogether
from tests.http.conftest import until

FLOW = """
workflow order(inputs) {
  return await approval({ role: "boss", quorum: inputs })
}
"""


def asked(app: Rhythm, *quorums: int) -> list[str]:
    """The ids of approvals that wait."""
    app.register(FLOW)
    ids = [app.start_workflow("order", quorum, by="sue").id for quorum in quorums]
    with app.worker():
        until(lambda: len(app.approvals(limit=1000).items) == len(quorums))
    return [app.approvals(execution=id)[0].id for id in ids]


class Watched:
    """Makes decisions at once; how many were made together is kept, and who was alone."""

    def __init__(self, app: Rhythm, fails: Exception | None = None) -> None:
        self.sizes, self.alone = list[int](), list[str]()
        self.app, decide_all, decide = app, app.approvals.decide_all, app.approvals.decide

        def together(wanted: Sequence[WantedDecision]) -> list[ApprovalView | Exception]:
            self.sizes.append(len(wanted))
            if fails is not None:
                raise fails
            return decide_all(wanted)

        def alone(wanted: WantedDecision) -> ApprovalView:
            self.alone.append(str(wanted.id))
            return decide(wanted)

        app.approvals.decide_all = together  # type: ignore[method-assign]
        app.approvals.decide = alone  # type: ignore[method-assign]

    def at_once(self, *wanted: WantedDecision) -> list[str]:
        """What becomes of each: the status of its approval, or the code of its error."""

        async def work() -> list[ApprovalView | BaseException]:
            deciding = Deciding(self.app)
            return await asyncio.gather(*map(deciding.decide, wanted), return_exceptions=True)

        return [
            each.status
            if isinstance(each, ApprovalView)
            else each.code
            if isinstance(each, RhythmError)
            else type(each).__name__
            for each in asyncio.run(work())
        ]


def approve(id: str, by: str = "ann", **more: str) -> WantedDecision:
    return WantedDecision(id, "approve", by, **more)


def test_decisions_at_once_are_one_transaction_and_each_has_its_own_answer(app: Rhythm) -> None:
    a, b, c = asked(app, 1, 2, 1)
    watched = Watched(app)
    assert watched.at_once(
        approve(a),
        approve(b),
        approve(c, "sue"),
        approve("nothing.1"),
        approve("else.1", "\n"),
        WantedDecision("more.1", "approve", "ann", key="k" * 10_000),
    ) == ["approved", "open", "self_approval", "unknown_approval", "ValueError", "ValueError"]
    assert watched.sizes == [6]
    assert [app.approval(id).status for id in (a, b, c)] == ["approved", "open", "open"]
    assert app.verify_audit().intact


def test_two_who_decide_the_same_at_once_both_count(app: Rhythm) -> None:
    a, b = asked(app, 2, 1)
    watched = Watched(app)
    found = watched.at_once(approve(a, "ann"), approve(a, "bob"), approve(b), approve(a, "cee"))
    # Who of the three comes first is open: they are in transactions of their own.
    assert sorted(found) == ["already_decided", "approved", "approved", "open"]
    assert found[2] == "approved"
    assert sorted(watched.sizes) == [1, 1, 2]
    assert len({each.actor for each in app.approval(a).decisions}) == 2


@pytest.mark.parametrize("problem", [NotTogether(), LookupError("a row is not what it should be")])
def test_what_cannot_be_decided_together_is_decided_alone(app: Rhythm, problem: Exception) -> None:
    a, b = asked(app, 1, 1)
    watched = Watched(app, problem)
    assert watched.at_once(approve(a), approve(b), approve("nothing.1")) == [
        "approved",
        "approved",
        "unknown_approval",
    ]
    assert (watched.sizes, sorted(watched.alone)) == ([3], sorted([a, b, "nothing.1"]))


@pytest.mark.parametrize("problem", [Unavailable("no answer"), StoreError("the disk is full")])
def test_what_may_have_been_decided_is_not_decided_again(app: Rhythm, problem: StoreError) -> None:
    a, b = asked(app, 1, 1)
    watched = Watched(app, problem)
    assert watched.at_once(approve(a), approve(b)) == [problem.code] * 2
    assert (watched.sizes, watched.alone) == ([2], [])


def test_others_decide_while_some_wait_alone(app: Rhythm) -> None:
    """However many wait for what somebody else holds: they do so in threads of their own."""
    (a,) = asked(app, 1)
    decide_all, held, waiting = app.approvals.decide_all, threading.Event(), list[str]()

    def together(wanted: Sequence[WantedDecision]) -> list[ApprovalView | Exception]:
        if any(str(each.id).startswith("held") for each in wanted):
            raise NotTogether
        return decide_all(wanted)

    def alone(wanted: WantedDecision) -> ApprovalView:
        waiting.append(str(wanted.id))
        assert held.wait(60)
        raise UnknownApproval("it is gone")

    app.approvals.decide_all = together  # type: ignore[method-assign]
    app.approvals.decide = alone  # type: ignore[method-assign]

    async def work() -> list[BaseException | ApprovalView]:
        deciding = Deciding(app)
        some = [asyncio.create_task(deciding.decide(approve(f"held{n}.1"))) for n in range(5)]
        while len(waiting) < len(some):
            await asyncio.sleep(0.001)
        assert (await deciding.decide(approve(a))).status == "approved"
        held.set()
        return await asyncio.gather(*some, return_exceptions=True)

    assert {type(each) for each in asyncio.run(work())} == {UnknownApproval}
