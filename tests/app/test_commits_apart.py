"""A worker decides while a commit is under way, where the store can send one and go on; nothing else
is different."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rhythm
from rhythm.errors import Unavailable
from rhythm.store.postgres.turns import PostgresTurns
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.turns import Turns
from tests.app.conftest import MakeApp
from tests.support.full_way import short_ways

STEPS = """
workflow steps(n: number) {
  let total = 0
  for (i in range(n)) {
    let x = await task("add", { x: i })
    total += x
  }
  return total
}
"""
SOON_S = 120.0


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a few workflows are one commit; and on a busy machine tasks get rows."""
    monkeypatch.setattr(WorkerSettings, "min_group", 1)
    monkeypatch.setattr(WorkerSettings, "owner_run_limit_s", 3600.0)


class Order:
    """What a worker on PostgreSQL does, in order: `sent`, `decided` and `answered`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        begin, turn = PostgresTurns.begin_commit, Turns._turn

        def sent(turns: Any, commits: Any, ends: Any) -> Any:
            answer = begin(turns, commits, ends)
            if answer is None:
                return None
            self.seen.append("sent")

            def answered() -> Any:
                self.seen.append("answered")
                return answer()

            return answered

        def decided(turns: Any, *args: Any) -> Any:
            self.seen.append("decided")
            return turn(turns, *args)

        monkeypatch.setattr(PostgresTurns, "begin_commit", sent)
        monkeypatch.setattr(Turns, "_turn", decided)


def add(x: int) -> int:
    return x


def run_steps(app: rhythm.Rhythm) -> None:
    with app.worker():
        handles = app.start_many("steps", [{"n": 10}] * 20)
        assert [handle.result(SOON_S) for handle in handles] == [45] * 20


@short_ways
def test_half_of_the_turns_are_decided_while_the_commit_of_the_others_is_under_way(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    order = Order(monkeypatch)
    run_steps(make_app(add, flows=(STEPS,)))
    meanwhile = [
        order.seen[at + 1] == "decided" for at, what in enumerate(order.seen) if what == "sent"
    ]
    assert any(meanwhile) == url.startswith("postgresql")


def test_no_more_tasks_run_at_once_than_there_are_slots(make_app: MakeApp) -> None:
    """Tasks of turns that are being committed have their slots already."""
    lock, running, most, runs = threading.Lock(), [0], [0], [0]

    def add(x: int) -> int:
        with lock:
            running[0], runs[0] = running[0] + 1, runs[0] + 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1
        return x

    app = make_app(add, flows=(STEPS,))
    with app.worker(concurrency=3):
        handles = app.start_many("steps", [{"n": 10}] * 20)
        assert [handle.result(SOON_S) for handle in handles] == [45] * 20
    assert most[0] <= 3
    assert runs[0] == 200


def test_what_is_given_up_while_it_ends_leaves_one_row(make_app: MakeApp) -> None:
    """Of several tasks of one workflow one fails, and the others end at the same time. Each runs
    once, whenever its end comes."""
    runs: list[int] = []

    def fails(n: int) -> None:
        runs.append(n)
        raise rhythm.TaskFailed("no")

    def ends(n: int) -> int:
        runs.append(n)
        return n

    flow = """
    workflow race_to_the_end(n: number) {
      try {
        await all([task("ends", { n }), task("fails", { n }), task("ends", { n })])
      } catch (e) {
        return e.code
      }
    }
    """
    app = make_app(fails, ends, flows=(flow,))
    with app.worker(concurrency=20):
        handles = app.start_many("race_to_the_end", [{"n": n} for n in range(100)])
        assert {handle.result(SOON_S) for handle in handles} == {"TaskFailed"}
    assert len(runs) <= 300
    assert all(len(app.children(handle.id).items) == 3 for handle in handles)


@pytest.mark.parametrize("at", ["sending", "answering"])
@pytest.mark.parametrize(
    "problem", [RuntimeError("a bug"), Unavailable("gone")], ids=["bug", "gone"]
)
def test_what_goes_wrong_with_a_commit_under_way_is_as_if_it_were_not_apart(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, at: str, problem: Exception
) -> None:
    """Whether it was committed is found out, and the rest is sent again: each step counts once."""
    begin, failed = PostgresTurns.begin_commit, [0]

    def sometimes(turns: Any, commits: Any, ends: Any) -> Any:
        failed[0] += 1
        fails = failed[0] in (2, 4, 6)
        if fails and at == "sending":
            raise problem
        answer = begin(turns, commits, ends)

        def answered() -> Any:
            found = answer()
            if fails:
                raise problem
            return found

        return answered

    monkeypatch.setattr(PostgresTurns, "begin_commit", sometimes)
    run_steps(make_app(add, flows=(STEPS,)))
