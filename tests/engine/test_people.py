"""Executions that wait for people, on the real worker: whatever is interrupted, they end as if it had not been."""

from __future__ import annotations

import json

import pytest

from rhythm.store.access import Actor
from rhythm.store.approvals import Decision
from tests.engine.driver import World
from tests.support.stores import MakeStore, sqlite_in_memory

GO = 'workflow main(ctx, inputs) {\n  await signal("go")\n  return ctx.resume_data\n}'


def test_a_resume_that_leads_to_a_failure_says_so_whatever_failed(make_store: MakeStore) -> None:
    world = World(GO, make_store=make_store)
    world.start()
    while not world.worker.idle or not world.inner.get(["run"])["run"].started_at:
        world.round()
    world.inner.pause(["run"])
    world.inner.resume(["run"], data='{"k": 1}')
    world.worker.programs = lambda name, version: None
    assert world.run().status == "failed"
    (request,) = world.inner.resumes("run")
    assert request.executed_at is not None
    assert "cannot be run by this worker" in (request.error_message or "")


ASKING = """workflow main(ctx, inputs) {
  let asked = approval({ role: "a", reason: "1", timeout: "1h" })
  let first = await all([asked, task("value", { x: 1 }), approval({ role: "b", reason: "2" })],
    { concurrency: 2 })
  let second = await race([approval({ role: "c", reason: "3" }), sleep("5s")])
  let third = await approval({ role: "d", reason: "4", timeout: "9s", escalate: { role: "e", after: "3s" } })
  return [first[0].decision, first[1], first[2].decision, second.key, third.decision, ctx.resume_data]
}"""


def lived(make_store: MakeStore, fail_at: int = 0, mode: str = "") -> World:
    """The people of this world decide as soon as they are asked, and somebody pauses and resumes it once."""
    world = World(ASKING, fail_at, mode, make_store)
    world.start()
    paused = False
    for _ in range(3000):
        if world.inner.get(["run"])["run"].finished_at is not None:
            break
        for each in world.inner.approvals(None, "open", "run", None, 10):
            if each.role in ("a", "b"):
                world.inner.decide(each.id, Decision(Actor("ann"), "approve", key="k"))
            if each.role == "a" and not paused:
                paused = world.inner.pause(["run"], timeout_s=2)["run"]
                world.inner.resume(["run"], data='{"k": 1}')
        world.round()
    return world


@pytest.mark.parametrize("mode", ["before", "after", "lost"])
def test_interrupted_at_any_store_call_people_are_asked_once(make_store: MakeStore, mode: str) -> None:
    wanted = ["approved", 1, "approved", 1, "expired", {"k": 1}]
    plain = lived(make_store)
    assert json.loads(plain.run().result or "") == wanted
    for n in range(1, plain.store.calls, 1 if make_store is sqlite_in_memory else 7):
        world = lived(make_store, n, mode)
        assert json.loads(world.run().result or "") == wanted, n
        asked = [(each.role, each.decision) for each in reversed(world.inner.approvals(None, None, "run", None, 10))]
        assert sorted(asked, key=str) == [("a", "approved"), ("b", "approved"), ("c", None), ("e", "expired")]
        assert all(request.executed_at for request in world.inner.resumes("run"))
