"""What is read of executions in short: stamps, for those who follow them, and rows without what may
be large."""

from __future__ import annotations

from itertools import pairwise

from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.reading import LARGE_COLUMNS
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TaskEnd
from rhythm.store.lifecycle import COMPLETED, FAILED, TASK, WORKFLOW
from tests.support.stores import MakeStore


def rows(store: Store) -> dict[str, str]:
    return store.reading.stamps(["a", "t", "nothing"])


def test_a_stamp_is_another_one_whenever_an_execution_has_changed(make_store: MakeStore) -> None:
    clock = [1_000_000]
    store = make_store(lambda: clock[0])
    store.executions.start(
        [NewExecution("a", WORKFLOW, "w", "q"), NewExecution("t", TASK, "x", "q")]
    )
    seen = [rows(store)]
    assert seen[0].keys() == {"a", "t"}
    (first,) = [claim for claim in store.claims.claim("me", ["q"], 2, 60.0) if claim.id == "a"]
    seen.append(rows(store))
    store.claims.release({"a": first.fence})
    seen.append(rows(store))
    for change in (
        lambda: store.people.pause(["a"], reason="", actor=None),
        lambda: store.people.resume(["a"], actor=None),
        lambda: store.executions.cancel(["a"]),
    ):
        change()
        seen.append(rows(store))
    stamps = [each["a"] for each in seen]
    assert all(before != after for before, after in pairwise(stamps)), stamps
    assert rows(store) == seen[-1]
    assert seen[1]["t"] != seen[0]["t"]


def test_a_result_is_read_once_an_execution_has_completed(make_store: MakeStore) -> None:
    store = make_store(lambda: 1_000_000)
    store.executions.start([NewExecution(id, TASK, "x", "q") for id in ("a", "b")])
    assert store.reading.result("a") is None
    ends = [
        TaskEnd(claim.id, claim.fence, COMPLETED if claim.id == "a" else FAILED, '{"x": 1}')
        for claim in store.claims.claim("me", ["q"], 2, 60.0)
    ]
    store.turns.commit([], ends)
    found = [store.reading.result(id) for id in ("a", "b", "nothing")]
    assert found == ['{"x": 1}', None, None]


def test_a_brief_row_is_the_row_without_what_may_be_large(make_store: MakeStore) -> None:
    store = make_store(lambda: 1_000_000)
    store.executions.start([NewExecution("a", WORKFLOW, "w", "q", inputs='{"x": 1}')])
    store.executions.start(
        [
            NewExecution(
                f"a.{n}", TASK, "x", "q", inputs="[2]", parent_id="a", child_no=n, root_id="a"
            )
            for n in (1, 2, 10)
        ]
    )
    (whole,), (brief,) = (
        store.reading.find(None, None, None, 5),
        store.reading.find(None, None, None, 5, brief=True),
    )
    assert whole.inputs == '{"x": 1}'
    empty = {"inputs": "null", "result": None, "awaiting": "null", "paused_metadata": None}
    assert empty.keys() == LARGE_COLUMNS.keys()
    assert brief == whole.replace(**empty)
    assert [
        row.replace(**empty) for row in store.reading.children("a", 1)
    ] == store.reading.children("a", 1, 2, brief=True)
    assert [row.id for row in store.reading.children("a", 1, 1, brief=True)] == ["a.2"]
