"""Whatever the gate accepts comes back equal from every database, through the rows of a real
execution; the rest never gets there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rhythm.engine.payload import dump, dump_trusted, load
from rhythm.errors import InvalidPayload
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Done, TaskEnd, TurnCommit
from rhythm.store.lifecycle import COMPLETED, FAILED, TASK, WORKFLOW
from rhythm.worker.ended import AttemptEnd, ended_by
from rhythm.worker.handlers import Task
from tests.engine.driver import World
from tests.support.stores import MakeStore, Stores

# any code point, also those that cannot be stored
TEXT = st.text(st.characters(codec=None), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
WHOLE = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
TASK_OF = Task(lambda: None, "work", "default", 0, None, None)
numbers = itertools.count()


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.empty_store(lambda: 1_800_000_000_000_000)


def canonical(value: Any) -> str:
    """Equal for equal JSON values; 1 and 1.0 are different, 0.0 and -0.0 are not."""
    return json.dumps(normal(value), sort_keys=True)


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return 0.0 if isinstance(value, float) and value == 0 else value


def passed(value: Any) -> str | None:
    try:
        return dump(value, "inputs")
    except InvalidPayload:
        return None


@WHOLE
@given(value=JSON)
def test_what_the_gate_accepts_comes_back_from_every_column(store: Store, value: Any) -> None:
    """As inputs, as result and error of a task that its owner ran and of one that was queued, as
    signal and as attributes."""
    text = passed(value)
    if text is None:
        return
    id = f"w{next(numbers)}"
    attributes = dump({"value": value}, "attributes")
    store.executions.start(
        [NewExecution(id, WORKFLOW, "main", id, text, "1", attributes=attributes)]
    )
    claim = store.claims.claim("a", [id], 1, 30.0)[0]
    store.messages.signal(NewSignal(f"s{id}", id, "go", text), 10)
    done = (
        Done(1, "t", id, text, COMPLETED, text, 1, 1),
        Done(2, "t", id, text, FAILED, text, 1, 1),
    )
    starts = (NewExecution(f"{id}.3", TASK, "t", id, text, parent_id=id, child_no=3, root_id=id),)
    store.turns.commit(
        [TurnCommit(id, 0, claim.fence, claim.wakes, "own", "a", "turn", done=done, starts=starts)],
        [],
    )
    task = store.claims.claim("a", [id], 1, 30.0)[0]
    store.turns.commit([], [TaskEnd(task.id, task.fence, COMPLETED, text)])
    rows = store.reading.get([id, *(f"{id}.{n}" for n in (1, 2, 3))])
    seen = [
        rows[id].inputs,
        rows[f"{id}.1"].result,
        rows[f"{id}.2"].error,
        rows[f"{id}.3"].inputs,
        rows[f"{id}.3"].result,
    ]
    seen += [store.turns.load([id])[0].inputs, store.messages.mail([id])[id][0].payload]
    assert [canonical(load(found or "")) for found in seen] == [canonical(value)] * len(seen)
    assert canonical(load(rows[id].attributes)) == canonical({"value": value})


@WHOLE
@given(value=JSON)
def test_whatever_a_task_gives_ends_it_once(store: Store, value: Any) -> None:
    """Its result is stored, or it has failed with an error that is stored: nothing that the
    database would refuse gets there."""
    id = f"t{next(numbers)}"
    store.executions.start([NewExecution(id, TASK, "work", id)])
    claim = store.claims.claim("a", [id], 1, 30.0)[0]
    ended: AttemptEnd = ended_by(TASK_OF, lambda: value)
    status, text = (
        (COMPLETED, ended.result) if ended.error is None else (FAILED, dump_trusted(ended.error))
    )
    assert store.turns.commit([], [TaskEnd(id, claim.fence, status, text)])[1] == {id}
    row = store.reading.get([id])[id]
    assert (row.status == "completed") == (passed(value) is not None)
    if row.error:
        assert (load(row.error)["data"]["type"], ended.retry) == ("InvalidResult", False)


@pytest.mark.parametrize("owner_run", [True, False])
@pytest.mark.parametrize(
    ("give", "message"),
    [
        (
            lambda: {"order": {"items": [{"price": float("nan")}]}},
            "result.order.items[0].price is NaN: JSON has no such number",
        ),
        (
            lambda: "x" * 2**20,
            (
                "result has 1,048,578 bytes; the limit is 1,048,576: store it elsewhere and "
                "pass a reference"
            ),
        ),
    ],
)
def test_result_that_cannot_be_stored_fails_its_task_at_once(
    make_store: MakeStore, owner_run: bool, give: Callable[[], Any], message: str
) -> None:
    world = World(
        'workflow main { try { await task("odd") } catch (e) { return e.message } }',
        make_store=make_store,
        owner_run=owner_run,
    )
    ran: list[int] = []
    world.tasks["odd"] = Task(lambda: (ran.append(1), give())[1], "odd", "default", 5, None, None)
    world.start()
    assert load(world.run().result or "null") == f"task `odd` failed: InvalidResult: {message}"
    assert len(ran) == 1
