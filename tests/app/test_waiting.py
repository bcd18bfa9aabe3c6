"""Waiting for what has just begun: its end is waited for before anything is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.app.waiting import HEAD_START_S, MOST_BEGUN, Changes
from rhythm.store.interfaces.store import Listening
from tests.app.conftest import MakeApp

FLOW = "workflow w { return 1 }"


class Hints(Listening):
    """What a database would hint at, said by a test."""

    problem, hears = "", True

    @property
    def hears_all(self) -> bool:
        return self.hears

    def close(self) -> None:
        pass


class Hearing:
    """A store that tells of ends when a test says so."""

    def __init__(self, reading: Any = None) -> None:
        self.hints, self.reading = Hints(), reading

    def listen_ends(self, ended: Callable[[frozenset[str]], None]) -> Listening:
        self.ended = ended
        return self.hints


@pytest.fixture
def store() -> Hearing:
    return Hearing()


@pytest.fixture
def changes(store: Hearing) -> Changes:
    changes: Changes = Changes(store)  # type: ignore[arg-type]  # all that is asked of it
    with changes.awaited("before", lambda: None):
        return changes


def test_only_what_was_begun_here_has_a_head_start_and_only_once(changes: Changes) -> None:
    changes.begin(["a"])
    assert changes.head_start_s("b") == 0
    assert 0 < changes.head_start_s("a") <= HEAD_START_S
    assert changes.head_start_s("a") == 0


def test_what_has_ended_meanwhile_has_none(changes: Changes, store: Hearing) -> None:
    changes.begin(["a", "b"])
    store.ended(frozenset({"a", "x"}))
    assert changes.head_start_s("a") == 0
    assert changes.head_start_s("b") > 0


@pytest.mark.parametrize("anything", ["told by a worker here", "heard of the database"])
def test_nothing_has_one_once_anything_may_have_ended(
    changes: Changes, store: Hearing, anything: str
) -> None:
    changes.begin(["a", "b"])
    changes.notify() if anything == "told by a worker here" else store.ended(frozenset())
    assert changes.head_start_s("a") == changes.head_start_s("b") == 0


def test_nothing_has_one_unless_every_end_is_heard(changes: Changes, store: Hearing) -> None:
    changes.begin(["a"])
    store.hints.hears = False
    assert changes.head_start_s("a") == 0
    changes.begin(["b"])
    store.hints.hears = True
    assert changes.head_start_s("b") == 0
    nobody = Changes(store)  # type: ignore[arg-type]  # as above; nobody has waited yet
    nobody.begin(["a"])
    assert nobody.head_start_s("a") == 0
    changes.driver = lambda id: None
    changes.begin(["c"])
    assert changes.head_start_s("c") == 0


def test_it_is_known_of_so_many(changes: Changes) -> None:
    changes.begin(["old"])
    changes.begin([str(n) for n in range(MOST_BEGUN + 1)])
    assert changes.head_start_s("old") == changes.head_start_s("0") == 0
    assert changes.head_start_s("1") > 0


@pytest.fixture
def app(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> Rhythm:
    """An application that hears of every end, by a test, and gives all the time to hear it."""
    monkeypatch.setattr("rhythm.app.waiting.HEAD_START_S", 60.0)
    app = make_app(flows=(FLOW,))
    hearing = Hearing(app.store.reading)
    app.changes._store = hearing  # type: ignore[assignment]  # see above
    with app.changes.awaited("before", lambda: None):
        app.start_workflow("w")
    return app


def ended_elsewhere(app: Rhythm, id: str) -> None:
    """Runs it as another process would, which tells nobody here but by a hint."""
    with Rhythm(app.settings.database_url, (), tasks=[], environment={}) as other:
        runner_of(other, id)
    store: Any = app.changes._store
    store.ended(frozenset({id}))


def runner_of(app: Rhythm, id: str) -> None:
    with app.worker():
        app.result(id)


@pytest.mark.parametrize("how", ["result", "aio"])
def test_a_result_is_asked_for_once_when_its_end_was_heard(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    asked: list[str] = []
    reading = type(app.store.reading)
    result = reading.result

    def counted(self: Any, id: str) -> Any:
        if self is app.store.reading:
            asked.append(id)
        return result(self, id)

    monkeypatch.setattr(reading, "result", counted)
    run = app.start_workflow("w")
    ending = threading.Thread(target=ended_elsewhere, args=(app, run.id))
    ending.start()
    assert (run.result() if how == "result" else asyncio.run(app.aio.result(run))) == 1
    ending.join()
    assert asked == [run.id]
    assert run.result() == 1
    assert asked == [run.id, run.id]


def test_an_end_that_was_heard_before_anybody_waited_is_asked_for_at_once(app: Rhythm) -> None:
    run = app.start_workflow("w")
    ended_elsewhere(app, run.id)
    assert run.result() == 1


def test_a_timeout_ends_a_head_start(app: Rhythm) -> None:
    run = app.start_workflow("w")
    with pytest.raises(TimeoutError):
        run.result(timeout=0.01)
