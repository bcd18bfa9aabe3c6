"""Large values are told once for each name, before they are too large."""

from __future__ import annotations

import logging

import pytest

from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.turns import Done, TaskEnd, TurnCommit
from rhythm.store.lifecycle import COMPLETED
from rhythm.worker.sizes import Sizes
from tests.engine.driver import World

SMALL = DEFAULT_LIMITS.replace(payload_warn_bytes=20, snapshot_warn_bytes=100)
LONG = '"' + "x" * 30 + '"'


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "rhythm" and record.levelno == logging.WARNING
    ]


def test_large_payload_is_told_once_for_each_name(caplog: pytest.LogCaptureFixture) -> None:
    sizes = Sizes(SMALL)
    for id in ("a", "b"):
        sizes.end("charge", TaskEnd(id, 1, COMPLETED, LONG))
        sizes.end("refund", TaskEnd(id, 1, COMPLETED, "1"))
    assert events(caplog) == [
        "payload_large what=result of=charge execution_id=a bytes=32 limit=1048576"
    ]


def test_size_is_in_bytes(caplog: pytest.LogCaptureFixture) -> None:
    Sizes(SMALL).end("charge", TaskEnd("a", 1, COMPLETED, '"ééééééééééé"'))
    assert events(caplog) == [
        "payload_large what=result of=charge execution_id=a bytes=24 limit=1048576"
    ]


def test_everything_that_a_turn_stores_is_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    done = Done(1, "done", "q", LONG, COMPLETED, LONG, 1, 1)
    start, signal = NewExecution("w.2", 1, "start", "q", LONG), NewSignal("s", "x", "go", LONG)
    turn = TurnCommit(
        "w",
        0,
        1,
        0,
        "finish",
        "a",
        "turn",
        value=LONG,
        done=(done,),
        starts=(start,),
        signals=(signal,),
    )
    Sizes(SMALL).turn("main", turn)
    assert [
        line.split(" execution")[0].removeprefix("payload_large ") for line in events(caplog)
    ] == [
        "what=inputs of=done",
        "what=result of=done",
        "what=inputs of=start",
        "what=signal of=go",
        "what=result of=main",
    ]


@pytest.mark.parametrize("owner_run", [True, False])
def test_worker_tells_of_large_snapshots_and_results_once(
    caplog: pytest.LogCaptureFixture, owner_run: bool
) -> None:
    text = """
    workflow main(ctx, inputs) {
      let text = await task("value", { x: inputs.text })
      await task("value", { x: 1 })
      await task("value", { x: 2 })
      return len(text)
    }
    """
    sizes = Sizes(DEFAULT_LIMITS.replace(payload_warn_bytes=50, snapshot_warn_bytes=160))
    world = World(text, sizes=sizes, owner_run=owner_run)
    world.start(inputs={"text": "x" * 60})
    world.run()
    assert sorted(line.split(" execution")[0] for line in events(caplog)) == [
        "payload_large what=inputs of=value",
        "payload_large what=result of=value",
        "snapshot_large what=snapshot of=main",
    ]


def test_worker_tells_of_the_large_result_of_a_task_while_it_waits_for_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sizes = Sizes(DEFAULT_LIMITS.replace(payload_warn_bytes=50))
    text = (
        'workflow main(ctx, inputs) { await all([task("value", { x: inputs.text }), '
        'task("value", { x: 1, took: 0.5 })]) }'
    )
    world = World(text, sizes=sizes)
    world.start(inputs={"text": "x" * 60})
    while not events(caplog):
        world.round()
    assert world.inner.reading.get(["run"])["run"].finished_at is None
    assert events(caplog)[0].startswith("payload_large what=inputs of=value execution_id=run ")
