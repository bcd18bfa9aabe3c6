"""Steps on both runners and both databases: what the interpreter's own bench gives, they give."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.steps import (
    allow,
    approval,
    block,
    choice,
    compiled,
    document,
    end,
    parallel,
    task,
    wait,
)
from tests.support.stores import Stores, sqlite_in_memory
from tests.support.world import World
from tests.worker.test_language import Checkpointing, InProcess

Steps = tuple[dict[str, Any], ...]
VIP = {"field": "vip", "operator": "eq", "value": True}
TELL = [
    {"type": "task", "task": "echo", "inputs": {"id": "${id}"}},
    {"type": "publish", "event": "told", "data": {"id": "${id}"}},
]

CASES: dict[str, Steps] = {
    "allowed": (choice("if", VIP, "yes", "no"), block("no"), allow("yes", execute=TELL)),
    "blocked, and what was started goes on": (block("no", reason="order ${id}", execute=TELL),),
    "expired": (approval(timeout="1h", reason="order ${id}"), end("end")),
    "expired, and goes elsewhere": (approval(timeout="1h", on_false="late"), end("end"),
        end("late", "${ask.decision}")),
    "a task, its result, its failure": (
        task("a", "add", inputs={"a": 1, "b": "${id}"}),
        task("b", "fail", on_failure="sorry"),
        end("end"),
        end("sorry", ["${a}", "${error.code}"]),
    ),
    "an event of its own branch": (
        parallel(
            "p",
            [[wait("e", event="told", where={"id": "${id}"}, timeout="1h")],
                [wait("s", **{"for": 5}), allow("a", execute=TELL)]]
        ),
        end("end", "${p.0.e.id}"),
    ),
    "no event in time": (wait("w", event="never", timeout="1d", on_timeout="late"), end("end"),
        end("late")),
    "no event in time, and no way on": (wait("w", event="never", timeout="1d"), end("end")),
    "a branch is blocked": (parallel("p",
        [[wait("x", **{"for": 1}), block("no", reason="no")], [wait("y", **{"for": "9d"})]]),
        end("end")),
    "a branch fails": (parallel("p", [[task("x", "fail")]], on_failure="sorry"), end("end"),
        end("sorry", "${error.data.error.code}")),
    "round and round": (
        task("a", "add", inputs={"a": "${id}", "b": 1}, into="id"),
        wait("w", **{"for": "1m"}),
        choice("if", {"field": "id", "operator": "lt", "value": 12}, "a", "end"),
        end("end", "${id}"),
    ),
}  # fmt: skip
INPUTS = {"id": 7, "vip": True}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_runners_agree_with_the_interpreter(steps: Steps, stores: Stores) -> None:
    program = compiled(*steps)
    bench = World([program], through_json=True).run("main", INPUTS)
    expected = bench.status, bench.value
    alone = InProcess((program,), sqlite_in_memory)
    assert alone.end(alone.start("main", INPUTS, "run"))[:2] == expected
    alone.store.close()
    durable = Checkpointing((program,), stores.empty_store, document(*steps))
    assert durable.end(durable.start("main", INPUTS, "run"))[:2] == expected


def test_what_a_blocked_execution_started_runs_to_its_end(stores: Stores) -> None:
    told = {"type": "task", "task": "echo", "inputs": {"took": 100}}
    steps = approval(timeout=5, execute=[told]), end("end")
    program = compiled(*steps)
    alone = InProcess((program,), sqlite_in_memory)
    assert alone.end(alone.start("main", INPUTS, "run"))[0] == "blocked"
    assert alone.store.reading.get(["run.1"])["run.1"].status == "completed"
    alone.store.close()
    durable = Checkpointing((program,), stores.empty_store, document(*steps))
    assert durable.end(durable.start("main", INPUTS, "run"))[0] == "blocked"
    while (task := durable.store.reading.get(["run.1"])["run.1"]).finished_at is None:
        durable._round()
    assert task.status == "completed"


def test_the_cases_end_in_every_way() -> None:
    ended = {World([compiled(*steps)]).run("main", INPUTS).status for steps in CASES.values()}
    assert ended == {"completed", "failed", "blocked"}
