"""A workflow that asks people in every way, interrupted at any store call: it ends as if it had not
been, and so is the record of it."""

from __future__ import annotations

import json

import pytest

from rhythm.store.access import Actor
from rhythm.store.approvals import Decision
from tests.engine.driver import World
from tests.engine.test_walking_skeleton import SERVER_EVERY
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, rows, sqlite_in_memory

EVERY = sampled(17, 5)  # of the calls

ASKS = """
workflow main(ctx, inputs) {
  let plain = await approval({ role: "boss", notify: "value", data: { x: 1 } })
  let two = await approval({ role: "boss", quorum: 2 })
  let late = await approval({ role: "boss", timeout: 3 })
  let higher = await approval({ role: "boss", escalate: { role: "chief", after: 4 } })
  let won = await race({ ok: approval({ role: "boss" }), late: sleep(50) })
  let lost = await race({ ok: approval({ role: "nobody" }), done: task("value", { x: "d", took: 2 }) })
  let both = await all([approval({ role: "boss", reason: str(i) }) for i in range(3)], { concurrency: 2 })
  let mixed = await all({ a: branch { let x = await approval({ role: "boss" })
    return x.decision }, t: task("value", { x: 9, took: 1 }) })
  return [plain.by, two.by, late.decision, higher.by, won.key, lost.key, [x.decision for x in both], mixed, ctx.resume_data]
}
"""
RESULT = [
    ["ann"],
    ["ann", "bob"],
    "expired",
    ["chief"],
    "ok",
    "done",
    ["approved", "approved", "approved"],
    {"a": "approved", "t": 9},
    {"n": 1},
]


def decide_all(world: World) -> None:
    """Whoever may, approves; what somebody else must decide, or nobody, is left."""
    for approval in world.inner.people.approvals(None, "open", None, None, 100):
        if (
            approval.timeout_us == 3_000_000
            or approval.role == "nobody"
            or (approval.role == "boss" and approval.on_deadline == "escalate")
        ):
            continue
        names = ("ann", "bob")[: approval.quorum] if approval.role == "boss" else ("chief",)
        for name in names:
            world.inner.people.decide(
                approval.id, Decision(Actor(name, (approval.role,)), "approve")
            )


def run(make_store: MakeStore, fail_at: int = 0, mode: str = "") -> World:
    world = World(ASKS, fail_at, mode, make_store)
    world.start()
    held = False
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.round()
        decide_all(world)
        # held while people decide and time goes by
        if not held and len(world.inner.people.resumes("run")) >= 2:
            held = world.inner.people.pause(["run"], actor=Actor("ops"), timeout_s=1000.0)["run"]
            until = world.clock.seconds + 3
            while world.clock.seconds < until:
                world.round()
                decide_all(world)
            assert world.inner.people.resume(["run"], data='{"n": 1}', actor=Actor("ops"))["run"]
    ended = world.run()
    assert (ended.status, json.loads(ended.result or "null")) == ("completed", RESULT), ended.error
    return world


def record(world: World) -> list[object]:
    """What is kept of it, without the times."""
    requests = [
        (each.triggered_by, each.triggered_by_id, each.executed_at is not None)
        for each in world.inner.people.resumes("run")
    ]
    decisions = rows(
        world.inner,
        "SELECT approval_id, actor, decision FROM approval_decisions ORDER BY approval_id, n",
    )
    told = rows(world.inner, "SELECT id, status FROM executions WHERE id > 'run-' AND id < 'run.'")
    approvals = rows(world.inner, "SELECT id, decision FROM approvals ORDER BY id")
    return [sorted(requests), decisions, told, approvals]


@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@sweep
def test_interrupted_at_any_store_call_everybody_is_asked_and_heard_once(
    make_store: MakeStore, mode: str
) -> None:
    plain = run(make_store)
    calls, expected = plain.store.calls, record(plain)
    every = EVERY if make_store is sqlite_in_memory else 5 * SERVER_EVERY
    for n in range(1 + len(mode) % every, calls + 1, every):
        world = run(make_store, n, mode)
        assert world.store.calls >= n
        assert record(world) == expected
