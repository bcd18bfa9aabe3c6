"""A turn is told a part of what has happened, and goes on as if it knew all of it: groups with a
limit, loops over what has ended, over signals and over events, on every database."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rhythm.engine import reading
from rhythm.store.interfaces.messages import NewEvent, NewSignal
from tests.engine.driver import World
from tests.support.stores import MakeStore

PAGE = 3


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "NEXT_ITEMS", PAGE)
    monkeypatch.setattr(reading, "NEXT_SIGNALS", PAGE)


def ended(world: World) -> Any:
    """What the workflow returns. Nothing has slept that could go on."""
    return json.loads(world.run().result or "null")


ALIKE = [f'task("value", {{ x: {x}, took: 1 }})' for x in range(5)]


@pytest.mark.parametrize("items", [ALIKE, [*ALIKE, "sleep(1)"]], ids=["alike", "mixed"])
def test_what_ended_while_it_was_held_back_holds_nobody_up(
    make_store: MakeStore, items: list[str]
) -> None:
    """Somebody cancels items before they begin: those after them begin in their place."""
    world = World(
        f"let r = await all([{', '.join(items)}], {{ concurrency: 1, settle: true }})\n"
        "return [each.status for each in slice(r, 0, 5)]",
        make_store=make_store,
    )
    world.start()
    while not world.ran:
        world.round()
    held = ["run.3", "run.4", "run.5"]
    assert all(world.inner.executions.cancel(held).values())
    assert ended(world) == ["completed", "cancelled", "cancelled", "cancelled", "completed"]


def test_never_more_run_than_the_limit_says(make_store: MakeStore) -> None:
    world = World(
        'let r = await all([task("value", { x, took: 1 + x % 3 }) for x in range(20)], '
        "{ concurrency: 4 })\nreturn r",
        make_store=make_store,
    )
    world.start()
    most = 0
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.round()
        most = max(most, len(world.handlers.agenda))
    assert (most, ended(world)) == (4, list(range(20)))


def test_a_failure_ends_a_group_while_others_are_held_back(make_store: MakeStore) -> None:
    world = World(
        'let r = await all([task("flaky", { x, fails: x == 1 ? 99 : 0 }, { retries: 0 }) '
        "for x in range(9)], { concurrency: 2 })\nreturn r",
        make_store=make_store,
    )
    world.start()
    assert world.run().status == "failed"
    assert len(world.ran) < 9


def test_ends_that_were_not_read_of_a_group_are_read_when_they_are_awaited(
    make_store: MakeStore,
) -> None:
    world = World(
        """
        workflow main() {
          let jobs = [task("value", { x: 0 }), workflow("waits")]
          let won = await race([all(jobs), sleep(20)], { keep: true })
          let first = await jobs[0]
          return first
        }
        workflow waits() { await signal("never") }
        """,
        make_store=make_store,
    )
    world.start()
    assert ended(world) == 0


@pytest.mark.parametrize("limit", ["", ", { concurrency: 4 }"])
@pytest.mark.parametrize(
    "body",
    ["", 'await task("value", { x: 0, took: 3 })', "if (len(order) == 0) { await sleep(99) }"],
)
def test_a_loop_takes_each_item_once_in_the_order_of_ends(
    make_store: MakeStore, limit: str, body: str
) -> None:
    """More have ended than are read at once, and others end while it is busy."""
    world = World(
        f"""
        let order = []
        for (r in completed([task("value", {{ x, took: 1 + x * 7 % 30 }}) for x in range(30)]{limit})) {{
          {body}
          order += [r.key]
        }}
        return order
        """,
        make_store=make_store,
    )
    world.start()
    order = ended(world)
    assert sorted(order) == list(range(30))
    if not limit:
        assert order == sorted(range(30), key=lambda x: (1 + x * 7 % 30, x))


def test_an_end_that_was_known_before_is_not_taken_for_the_first(make_store: MakeStore) -> None:
    world = World(
        """
        workflow main() {
          let slow = task("value", { x: "slow", took: 4 })
          let quick = task("value", { x: "quick", took: 2 })
          await sleep(9)
          let x = await slow
          let order = []
          for (r in completed([slow, quick])) { order += [r.result] }
          return order
        }
        """,
        make_store=make_store,
    )
    world.start()
    assert ended(world) == ["quick", "slow"]


@pytest.mark.parametrize("apart_s", [0.0, 0.5])
@pytest.mark.parametrize("body", ["", 'await task("value", { x: 0, took: 0.3 })', "await sleep(1)"])
def test_a_loop_takes_each_signal_once_in_the_order_of_sending(
    make_store: MakeStore, body: str, apart_s: float
) -> None:
    """Those of another name come first, more of them than are read at once."""
    world = World(
        f"""
        let got = []
        for (i in range(10)) {{
          let x = await signal("go")
          {body}
          got += [x]
        }}
        let none = await signal("go", {{ timeout: 0, default: "none" }})
        let other = await signal("other")
        return [...got, none, other]
        """,
        make_store=make_store,
    )
    for n in range(5):
        world.signal(0, "other", f"other {n}")
    for n in range(10):
        world.signal(0 if n < 6 else n * apart_s, "go", n)
    world.start()
    assert ended(world) == [*range(10), "none", "other 0"]


def test_a_signal_is_found_whose_wake_was_seen_while_others_were_known(
    make_store: MakeStore,
) -> None:
    world = World(
        """
        let x = await task("value", { x: 0, took: 0.8 })
        let go = await signal("go")
        return go
        """,
        make_store=make_store,
        beat_s=1e-6,
    )
    world.signal(0, "noise", 1)
    world.signal(0.4, "go", 2)
    world.start()
    assert ended(world) == 2


def test_waits_for_one_signal_each_get_one_of_their_own(make_store: MakeStore) -> None:
    """They wait for more signals of one name than are read at once."""
    waits = ", ".join(['signal("go")'] * 8)
    world = World(
        f'let r = await all([{waits}, signal("other")])\nreturn r',
        make_store=make_store,
    )
    for n in range(8):
        world.signal(n / 4, "go", n)
    world.signal(0.5, "other", "other")
    world.start()
    assert ended(world) == [*range(8), "other"]


def test_of_two_signals_the_first_that_came_wins_although_only_the_other_was_read(
    make_store: MakeStore,
) -> None:
    world = World(
        """
        let first = await signal("b")
        let x = await task("value", { x: 0, took: 1 })
        let won = await race({ a: signal("a"), b: signal("b") })
        return [first, won.key]
        """,
        make_store=make_store,
    )
    world.signal(0, "b", 1)
    world.signal(0.2, "a", 2)
    world.signal(0.4, "b", 3)
    world.start()
    assert ended(world) == [1, "a"]


@pytest.mark.parametrize("body", ["", 'await task("value", { x: 0, took: 0.3 })'])
@pytest.mark.parametrize("apart_s", [0.0, 0.1])
def test_a_loop_takes_each_event_once_in_the_order_of_publishing(
    make_store: MakeStore, body: str, apart_s: float
) -> None:
    """Another wait takes every third of them, now before and now after the loop gets there."""
    world = World(
        f"""
        let got = []
        for (i in range(20)) {{
          let e = await event("thing")
          {body}
          got += [e.data.n]
          if (i % 4 == 1) {{
            let third = await event("thing", {{ where: {{ third: true }} }})
            got += [third.data.n]
          }}
        }}
        return got
        """,
        make_store=make_store,
    )
    world.start()
    for n in range(25):
        data = json.dumps({"n": n, "third": n % 3 == 2})
        world.inner.messages.publish(NewEvent(f"e{n}", "thing", data))
        world.clock.seconds += apart_s
        world.round()
    got = ended(world)
    assert sorted(got) == list(range(25))
    assert [n for n in got if n % 3 != 2] == [n for n in range(25) if n % 3 != 2]


def test_events_are_found_after_the_clock_was_set_back(make_store: MakeStore) -> None:
    world = World(
        """
        let first = await event("thing")
        await sleep(1)
        let second = await event("thing")
        return [first.data, second.data]
        """,
        make_store=make_store,
    )
    world.clock.seconds = 100.0
    world.start()
    world.clock.seconds = 1000.0
    world.round()
    world.inner.messages.publish(NewEvent("e1", "thing", "1"))
    for _ in range(5):
        world.worker.run_round()
    world.clock.seconds = 900.0
    world.inner.messages.publish(NewEvent("e2", "thing", "2"))
    world.clock.seconds = 1002.0
    assert ended(world) == [1, 2]


def test_tasks_that_end_together_with_a_wake_decide_their_group(make_store: MakeStore) -> None:
    """Its owner runs them without rows, so nothing of them can be read when it was woken."""
    world = World(
        'let r = await all([task("value", { x: 1 }), task("value", { x: 2 })])\nreturn r',
        make_store=make_store,
        beat_s=1e-6,
    )
    world.start()
    while not world.handlers.agenda:
        world.worker.run_round()
    world.clock.seconds += 1
    assert world.handlers.run_due()
    assert world.handlers.run_due()
    world.inner.messages.signal(NewSignal("s", "run", "noise", "1"), 10)
    assert ended(world) == [1, 2]


def turns_with_ends_in_each_round(make_store: MakeStore, text: str, each_round: int) -> int:
    """How many turns a workflow takes if this many of its tasks end in each round."""
    world = World(text, make_store=make_store)
    world.start()
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.worker.run_round()
        for _ in range(each_round):
            world.handlers.run_due()
    assert ended(world) == 40
    return len(world.inner.reading.history("run"))


def test_ends_that_are_committed_together_are_seen_together(make_store: MakeStore) -> None:
    text = (
        'let r = await all([task("value", { x }) for x in range(40)], { concurrency: 4 })\n'
        "return len(r)"
    )
    assert turns_with_ends_in_each_round(make_store, text, 2) <= 40 / 4 + 2


def test_a_workflow_goes_on_while_its_tasks_end_in_every_round(make_store: MakeStore) -> None:
    text = (
        'let r = await all([task("value", { x }) for x in range(40)], { concurrency: 10 })\n'
        "return len(r)"
    )
    assert turns_with_ends_in_each_round(make_store, text, 1) >= 10


def times_loaded(make_store: MakeStore, group: str, batch: int) -> int:
    """How often a workflow is loaded that awaits child workflows, claimed so many at a time."""
    text = (
        f"workflow main {{ let r = await {group}\nreturn len(r) }}\n"
        "workflow kid(inputs) { return inputs }"
    )
    world = World(text, make_store=make_store, batch=batch)
    world.start()
    loaded = 0

    def after(name: str, answer: Any) -> None:
        nonlocal loaded
        if name == "load":
            loaded += any(row.id == "run" for row in answer)
        elif name == "claim":
            loaded += "run" in answer.workflows

    world.store.after = after
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.worker.run_round()
    assert ended(world) in (40, 240)
    return loaded


def test_who_awaits_all_of_many_is_not_loaded_for_each_few_that_end(make_store: MakeStore) -> None:
    """60 rounds with ends of children: it is owned meanwhile, and looks in every fifth."""
    assert times_loaded(make_store, 'all([workflow("kid", n) for n in range(240)])', 4) <= 60 / 4


def test_who_lets_children_begin_a_few_at_a_time_is_loaded_as_they_end(
    make_store: MakeStore,
) -> None:
    group = 'all([workflow("kid", n) for n in range(40)], { concurrency: 4 })'
    assert times_loaded(make_store, group, 4) >= 10


def test_a_worker_does_not_rest_before_it_has_looked_at_whom_it_was_woken_for(
    make_store: MakeStore,
) -> None:
    """Not even if it hears of nothing: the wake comes after it has looked, before it has parked."""
    world = World('let x = await signal("go")\nreturn x', make_store=make_store)
    world.start()

    def after(name: str, answer: Any) -> None:
        if name in ("claim", "load", "commit"):
            id = f"noise {world.store.calls}"
            world.inner.messages.signal(NewSignal(id, "run", "noise", "1"), 100)

    world.store.after, rested = after, 0
    for _ in range(5):
        if not world.worker.run_round():
            rested += 1
            assert world.worker.rest_s() == 0
    assert rested
    world.store.after = lambda name, answer: None
    world.inner.messages.signal(NewSignal("go", "run", "go", "7"), 100)
    assert ended(world) == 7
