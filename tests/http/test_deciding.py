"""Decisions that come at the same time are made together; if that is not possible, each alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rhythm.app import Rhythm
from rhythm.app.approvals import ApprovalView, WantedDecision
from rhythm.errors import RhythmError, StoreError, Unavailable
from rhythm.http.deciding import Deciding
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
    """Makes decisions at once; how many were made together is kept."""

    def __init__(self, app: Rhythm, fails: Exception | None = None, above: int = 1) -> None:
        self.sizes: list[int] = []
        self.app, decide_all = app, app.approvals.decide_all

        def watched(wanted: Sequence[WantedDecision]) -> list[ApprovalView | Exception]:
            self.sizes.append(len(wanted))
            if fails is not None and len(wanted) > above:
                raise fails
            return decide_all(wanted)

        app.approvals.decide_all = watched  # type: ignore[method-assign]

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
    assert found == ["open", "approved", "approved", "already_decided"]
    assert watched.sizes == [2, 1, 1]
    assert [each.actor for each in app.approval(a).decisions] == ["ann", "bob"]


def test_what_cannot_be_decided_together_is_decided_alone(app: Rhythm) -> None:
    a, b = asked(app, 1, 1)
    watched = Watched(app, LookupError("one of the rows is not what it should be"))
    assert watched.at_once(approve(a), approve(b)) == ["approved", "approved"]
    assert sorted(watched.sizes) == [1, 1, 2]


@pytest.mark.parametrize("problem", [Unavailable("no answer"), StoreError("the disk is full")])
def test_what_may_have_been_decided_is_not_decided_again(app: Rhythm, problem: StoreError) -> None:
    a, b = asked(app, 1, 1)
    watched = Watched(app, problem)
    assert watched.at_once(approve(a), approve(b)) == [problem.code] * 2
    assert watched.sizes == [2]


def test_an_error_of_one_alone_is_not_that_of_others(app: Rhythm) -> None:
    watched = Watched(app, LookupError("broken"), above=0)
    assert watched.at_once(approve("a.1"), approve("b.1")) == ["LookupError"] * 2
    assert sorted(watched.sizes) == [1, 1, 2]
