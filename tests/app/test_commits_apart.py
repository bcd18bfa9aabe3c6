"""A worker decides while a commit is under way: what ends meanwhile goes into the next one, and
nothing else is different."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rhythm
from rhythm.worker.committer import Committer
from rhythm.worker.settings import WorkerSettings
from rhythm.worker.turns import Turns
from tests.app.conftest import MakeApp

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
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhythm.app.pooled.COMMITS_APART", True)


def test_what_ends_while_a_commit_is_under_way_is_decided_meanwhile(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last commit of `a` is held up until the last turn of `b` has been decided."""
    begun = {name: threading.Event() for name in "ab"}
    under_way, decided = threading.Event(), threading.Event()
    commit, turn = Committer.commit, Turns._turn

    def slow(x: str) -> str:
        begun[x].set()
        (under_way if x == "b" else begun["b"]).wait(SOON_S)
        return x

    def held_up(self: Any, turns: Any, ends: Any) -> Any:
        if any(each.id == "a" and each.done for each in turns):
            under_way.set()
            assert decided.wait(SOON_S), "nothing was decided meanwhile"
        return commit(self, turns, ends)

    def noted(self: Any, workflow: Any, *args: Any) -> Any:
        if workflow.id == "b" and workflow.ended:
            decided.set()
        return turn(self, workflow, *args)

    # Otherwise the tasks get rows of their own on a busy machine.
    monkeypatch.setattr(WorkerSettings, "owner_run_limit_s", 3600.0)
    monkeypatch.setattr(Committer, "commit", held_up)
    monkeypatch.setattr(Turns, "_turn", noted)
    app = make_app(slow, flows=('workflow one(x: text) { return await task("slow", { x }) }',))
    with app.worker():
        handles = [app.start_workflow("one", {"x": name}, id=name) for name in "ab"]
        assert [handle.result(SOON_S) for handle in handles] == ["a", "b"]


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


def test_an_error_in_the_thread_that_commits_is_that_of_the_worker(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost by it: everything is loaded anew, and goes on."""
    commit, failed = Committer.commit, [0]

    def sometimes(self: Any, turns: Any, ends: Any) -> Any:
        if threading.current_thread().name == "rhythm commits" and failed[0] < 3:
            failed[0] += 1
            raise RuntimeError("a bug")
        return commit(self, turns, ends)

    def add(x: int) -> int:
        return x

    monkeypatch.setattr(Committer, "commit", sometimes)
    monkeypatch.setattr("rhythm.worker.loop.AFTER_A_BUG_S", 0.0)
    app = make_app(add, flows=(STEPS,))
    with app.worker():
        handles = app.start_many("steps", [{"n": 10}] * 20)
        assert [handle.result(SOON_S) for handle in handles] == [45] * 20
    assert failed[0] == 3
