"""What happens by itself: found wakes, missing timers, supervision, leases, and what idling
costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import psycopg
import pytest

from rhythm.errors import StoreError
from rhythm.store.interfaces.messages import NewEvent
from rhythm.store.interfaces.store import Store
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from rhythm.worker.loading import Programs
from rhythm.worker.services import ServiceHealth, Services, ServiceSettings
from tests.engine.driver import World
from tests.support.around import Around
from tests.support.stores import MakeStore, ready_rows, rows, sqlite_in_memory

SLEEP = 'workflow main() {\n  await sleep("1h")\n  return 1\n}\n'
NO_TIMERS = ServiceSettings(timer_poll_s=1e6, sweep_every_s=300.0)


def parked(text: str, make_store: MakeStore, count: int = 1, **settings: Any) -> World:
    """Workflows that have gone as far as they can, and the world around them."""
    world = World(text, make_store=make_store, **settings)
    for i in range(count):
        world.start(id=f"run{i:04}" if count > 1 else "run")
    until_quiet(world)
    return world


def until_quiet(world: World) -> None:
    while ready_rows(world.inner) or not world.worker.idle:
        world.worker.run_round()
        while world.handlers.run_due():
            pass


def services(
    world: World, settings: ServiceSettings = NO_TIMERS, programs: Programs | None = None
) -> Services:
    return Services(
        world.inner,
        settings,
        world.clock.now,
        world.clock.us,
        programs or world.program,
        world.observe,
    )


def lose_wake(world: World, what: str) -> None:
    """Lets what the workflow awaits happen, and takes away the wake that came with it: the bug that
    must not be."""
    if what == "signal":
        world.signal(0, "go", 7)
        world.inner.messages.signal(world.signals.pop()[1], 10)
    else:
        world.clock.seconds += 3600
        world.inner.maintenance.fire_timers(10)
    while what == "child" and world.inner.reading.get(["run.1"])["run.1"].finished_at is None:
        world.worker.run_round()
    rows(world.inner, "DELETE FROM ready")


AWAITS = {
    "child": (
        'workflow main() {\n  return await workflow("other")\n}\nworkflow other() {\n  await '
        'sleep("1h")\n  return 7\n}\n'
    ),
    "signal": 'workflow main() {\n  return await signal("go")\n}\n',
    "timer": 'workflow main() {\n  await sleep("1h")\n  return 7\n}\n',
}


@pytest.mark.parametrize("what", AWAITS)
def test_a_lost_wake_is_found_and_told(make_store: MakeStore, what: str) -> None:
    world = parked(AWAITS[what], make_store)
    sweep = services(world)
    assert (sweep.run(), world.bugs, ready_rows(world.inner)) == ((False, 5.0), [], [])
    lose_wake(world, what)
    world.clock.seconds += 300
    assert sweep.run()[0]
    assert (world.bugs, ready_rows(world.inner)) == (
        ["run: it slept although it could go on; it was woken"],
        [("run", 0, 0)],
    )
    world.bugs.clear()
    assert world.run().result == "7"


@pytest.mark.parametrize(
    "awaited",
    ['await sleep("1h")', 'await signal("go", { timeout: "1h", default: null })',
     'await race([sleep("1h"), signal("go")])'],
)  # fmt: skip
def test_a_timer_whose_row_was_deleted_counts_as_fired(make_store: MakeStore, awaited: str) -> None:
    world = parked(f"workflow main() {{\n  {awaited}\n  return 7\n}}\n", make_store)
    rows(world.inner, "DELETE FROM timer_tasks")
    assert services(world).run()[0]
    assert len(world.bugs) == 1
    world.bugs.clear()
    assert (world.run().result, world.clock.seconds) == ("7", 0.0)


def test_a_workflow_that_waits_for_more_than_has_ended_sleeps_rightly(
    make_store: MakeStore,
) -> None:
    text = """workflow main() {
  let x = await all([task("value", { x: 1 }), sleep("1h"), signal("go"), workflow("other")])
  return x
}
workflow other() {
  try { await sleep("1h") } finally { await sleep("2h") }
}
"""
    world = parked(text, make_store)
    world.signal(0, "other", 1)
    world.inner.messages.signal(world.signals.pop()[1], 10)
    world.inner.executions.cancel(["run.5"])
    until_quiet(world)
    assert not services(world).run()[0]
    assert (world.bugs, ready_rows(world.inner)) == ([], [])


def test_a_paused_workflow_is_left_alone(make_store: MakeStore) -> None:
    world = parked(AWAITS["signal"], make_store)
    world.inner.people.pause(["run"])
    until_quiet(world)
    lose_wake(world, "signal")
    assert not services(world).run()[0]


def test_the_sweep_gets_through_all_of_them_batch_by_batch(make_store: MakeStore) -> None:
    world = parked(AWAITS["timer"], make_store, 7)
    rows(
        world.inner,
        (
            f"UPDATE timer_tasks SET fired_at = {world.clock.us()} WHERE execution_id IN "
            f"('run0002', 'run0006')"
        ),
    )
    sweep = services(world, NO_TIMERS.replace(sweep_batch=3))
    waits = []
    for _ in range(3):
        waits.append(sweep.run()[1])
        world.clock.seconds += 1
    assert (waits[:2], [bug.split(":")[0] for bug in world.bugs]) == (
        [1.0, 1.0],
        ["run0002", "run0006"],
    )
    assert sweep.services[2].after == ""  # type: ignore[attr-defined]  # the sweeper begins again


def test_one_process_at_a_time_sweeps_and_another_takes_over(make_store: MakeStore) -> None:
    world = parked(AWAITS["timer"], make_store)
    first, second = services(world), services(world)
    first.run()
    second.run()
    rows(world.inner, f"UPDATE timer_tasks SET fired_at = {world.clock.us()}")
    world.clock.seconds += 301
    second.run()
    assert world.bugs == []
    world.clock.seconds += 300  # the first has not been seen for twice its interval
    second.run()
    assert len(world.bugs) == 1


def without(inner: Store, broken: Sequence[str]) -> Any:
    """A store of which these methods never work."""

    def call(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if name in broken:
            raise StoreError("it does not work")
        return method

    return Around(inner, call)


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ("fire_timers", "timers"),
        ("recover", "rescue"),
        ("parked", "sweeper"),
        ("due", "schedules"),
        ("prune", "pruner"),
        ("prune_events", "events"),
        ("prune_lines", "logs"),
    ],
)
def test_a_service_that_fails_stops_no_other_and_rests_longer_and_longer(
    broken: str, name: str
) -> None:
    world = parked(SLEEP, sqlite_in_memory)
    said: list[tuple[str, str, str]] = []
    settings = ServiceSettings(retention_s=60.0, event_retention_s=60.0, log_retention_s=60.0)
    all_of_them = Services(
        without(world.inner, [broken]),
        settings,
        world.clock.now,
        world.clock.us,
        world.program,
        lambda *what: said.append(what),
    )
    waits = []
    for _ in range(8):
        all_of_them.run(busy=False)
        waits.append(all_of_them.wait_s(name))
        world.clock.seconds += waits[-1]
    assert [round(wait, 6) for wait in waits] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert all_of_them.health[name] == ServiceHealth(None, 8, "it does not work")
    assert {said[0], *said} == {("service_failed", name, "it does not work")}
    others = {service: health for service, health in all_of_them.health.items() if service != name}
    assert all(
        health.succeeded_at is not None and not health.failures for health in others.values()
    )


def test_health_is_good_again_after_a_pass_that_succeeds() -> None:
    world = parked(SLEEP, sqlite_in_memory)
    broken = ["recover"]
    found = Services(without(world.inner, broken), NO_TIMERS, world.clock.now, world.clock.us)
    found.run()
    broken.clear()
    world.clock.seconds = 10.0
    found.run()
    assert found.health["rescue"] == ServiceHealth(10.0)


def test_what_has_ended_is_kept_for_ever_unless_told_otherwise(make_store: MakeStore) -> None:
    world = parked("workflow main() {\n  return 1\n}\n", make_store, 5)
    world.clock.seconds += 1e9
    services(world).run()
    assert len(world.inner.reading.find(None, None, None, 9)) == 5
    prune = services(world, NO_TIMERS.replace(retention_s=60.0, batch=3))
    assert prune.run() == (True, 1.0)
    assert len(world.inner.reading.find(None, None, None, 9)) == 2
    world.clock.seconds += 1.0
    prune.run()
    assert world.inner.reading.find(None, None, None, 9) == []


def test_events_are_forgotten_after_their_time_a_batch_at_a_time(make_store: MakeStore) -> None:
    world = parked("workflow main() {\n  return 1\n}\n", make_store)
    for n in range(4):
        world.inner.messages.publish(NewEvent(f"e{n}", "paid", "1"))
    world.clock.seconds += 60.0
    world.inner.messages.publish(NewEvent("new", "paid", "1"))
    services(world).run()
    forget = services(world, NO_TIMERS.replace(event_retention_s=30.0, batch=3))
    assert forget.run() == (True, 1.0)
    assert rows(world.inner, "SELECT id FROM events ORDER BY published_at, n") == [
        ("e3",),
        ("new",),
    ]
    world.clock.seconds += 1.0
    forget.run()
    assert rows(world.inner, "SELECT id FROM events") == [("new",)]


def test_timers_fire_at_their_time_and_earlier_ones_of_this_process_are_noticed(
    make_store: MakeStore,
) -> None:
    world = parked(SLEEP, make_store)
    found = services(world, NO_TIMERS.replace(timer_poll_s=2.0))
    found.run()
    assert found.wait_s("timers") == 2.0
    world.clock.seconds = 3599.5
    found.run(busy=False)
    assert found.wait_s("timers") == 0.5
    rows(world.inner, f"UPDATE timer_tasks SET fire_at = {world.clock.us() + 100_000}")
    world.clock.seconds += 0.1
    assert found.run(busy=False)[0] is False
    assert found.run(busy=True)[0]


def test_a_clock_that_is_ahead_of_the_databases_makes_no_storm(make_store: MakeStore) -> None:
    world = parked(SLEEP, make_store)
    found = Services(
        world.inner, NO_TIMERS, world.clock.now, lambda: world.clock.us() + 7_200_000_000
    )
    found.run()
    assert found.wait_s("timers") == 0.05


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As long as the number of statements that a database was sent."""
    sent: list[str] = []
    wait = psycopg.Connection.wait

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append("")
        return wait(self, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "wait", counted)
    return sent


def test_an_idle_process_with_a_thousand_sleepers_asks_at_most_twice_in_a_poll_interval(
    make_store: MakeStore, asked: list[str]
) -> None:
    world = parked(SLEEP, make_store, 1000)
    # on PostgreSQL each comes with the setting of the test's clock
    counted_each = 1 if isinstance(world.inner, SqliteStore) else 2
    if isinstance(world.inner, PostgresStore) and world.inner.db.access.pooled:
        # and with the beginning and end of a transaction, of which most are sent together
        counted_each = 6
    if isinstance(world.inner, SqliteStore):
        db = world.inner.db.connection
        db.set_trace_callback(
            lambda text: (
                asked.append(text)
                if text == "COMMIT" or not (db.in_transaction or text == "BEGIN IMMEDIATE")
                else None
            )
        )
    idle = services(world, ServiceSettings(), cache(world.program))
    del asked[:]
    polls = 600
    for _ in range(polls):
        assert idle.run(busy=False)[0] is False
        world.worker.run_round()
        world.clock.seconds += 1.0
    assert world.bugs == []
    assert len(asked) / counted_each <= 2 * polls


def test_an_idle_process_wakes_once_for_all_that_looks_now_and_then() -> None:
    world = parked(SLEEP, sqlite_in_memory)
    idle, poll_s, wakes = services(world, ServiceSettings(), cache(world.program)), 1.0, 0
    idle.run()
    world.clock.seconds += 0.3
    idle.run(busy=True)  # now the timers are looked at in between
    began = world.clock.seconds
    while world.clock.seconds < began + 300 * poll_s:
        world.clock.seconds += min(poll_s, idle.run(busy=False)[1])
        wakes += 1
    assert wakes <= 303


class Polled:
    """Counts the polls for timers; each says when the next one is due."""

    def __init__(self) -> None:
        self.polls, self.during = 0, lambda: None
        self.maintenance = self

    def fire_timers(self, limit: int, late: Any = None) -> tuple[int, int | None]:
        self.polls += 1
        self.during()
        return 0, None

    def due(self, dead: bool) -> Any:
        raise StoreError("nothing else is asked here")

    recover = due


def test_a_timer_that_was_set_here_is_polled_for_at_its_time_and_not_before() -> None:
    clock, store = [0.0], Polled()
    services = Services(store, ServiceSettings(timer_poll_s=100.0), lambda: clock[0], lambda: 0)  # type: ignore[arg-type]  # as much of a store as it needs
    services.run(busy=False)
    services.expect(5.0)
    services.expect(7.0)
    for now, polls in ((0.0, 1), (4.9, 1), (5.0, 2), (6.0, 2)):
        clock[0] = now
        services.run(busy=False)
        assert store.polls == polls


def test_a_timer_that_is_set_while_the_database_is_polled_is_not_forgotten() -> None:
    """The poll may have missed it: it was stored after the poll had looked."""
    clock, store = [0.0], Polled()
    services = Services(store, ServiceSettings(timer_poll_s=100.0), lambda: clock[0], lambda: 0)  # type: ignore[arg-type]  # as above
    store.during = lambda: services.expect(3.0)
    services.run(busy=False)
    store.during = lambda: None
    assert services.wait_s("timers") == 3.0
    clock[0] = 3.0
    services.run(busy=False)
    assert store.polls == 2
