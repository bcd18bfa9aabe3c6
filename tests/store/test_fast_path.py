"""The short ways of a turn whose owner goes on with tasks of its own, and of the end of a task
without a parent: what they write, and that nothing else takes them.

The tests go through the fields of the records themselves, so one that is added is tested without
anybody thinking of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import rhythm.store
from rhythm.store.approvals import NewApproval
from rhythm.store.blobs import INLINE_BYTES
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal, NewWait
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Done, NewTimer, TaskEnd, TurnCommit
from rhythm.store.lifecycle import COMPLETED, FAILED, SUSPENDED, TASK, WORKFLOW, StatusNumber
from rhythm.store.light_turns import (
    FINISH_FIELDS,
    LATER_FIELDS,
    LIGHT_COLUMNS,
    LIGHT_FIELDS,
    is_light,
    is_light_end,
    is_light_finish,
)
from rhythm.store.postgres.light import LightCommit
from rhythm.store.postgres.rows import End
from rhythm.store.postgres.store import PostgresStore
from tests.support.full_way import short_ways
from tests.support.postgres import Schemas
from tests.support.stores import KINDS, MakeStore, rows

pytestmark = short_ways

STORES = Path(rhythm.store.__file__).parent

NOW = 1_800_000_000_000_000
PLAIN = TurnCommit("w", 0, 1, 0, "own", "a", "turn")
DONE = Done(1, "work", "tasks", '{"a": 1}', FAILED, '{"code": "No"}', 3, 250, '{"retries": 2}')
WRITTEN: dict[str, Any] = {
    "worker": "another", "cause": "continue", "statement": 7, "snapshot": b"{}",
    "owned": '[{"n": 2}]', "awaiting": '{"op": "task"}',
    "status": SUSPENDED + 1, "done": (DONE,), "wakes": 5,
}  # fmt: skip
TABLES = ("executions", "workflow_execution_context", "history", "blobs", "ready")
# of the fields of a step: by these a turn is found, or it has them only if it has waited for the
# next one; they are tested elsewhere
GUARDED = {"id", "seq", "fence", "end", "first", "waited_us", *LATER_FIELDS}


def test_plain_turn_is_a_step() -> None:
    assert is_light(PLAIN)
    assert is_light(PLAIN.replace(**WRITTEN))


@pytest.mark.parametrize("field", [name for name in TurnCommit._fields if name not in LIGHT_FIELDS])
def test_turn_with_anything_that_a_step_does_not_write_takes_the_full_way(field: str) -> None:
    assert not is_light(PLAIN.replace(**{field: object()}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", TurnCommit._fields)
def test_every_field_of_a_turn_is_known_to_the_store(kind: str, field: str) -> None:
    """What a store never names it cannot write, or heed."""
    paths = [*(STORES / kind).glob("*.py"), STORES / "families.py"]  # that one both ask
    code = "".join(path.read_text("utf-8") for path in paths)
    assert re.search(rf"\.{field}\b", code) or field in (*LIGHT_COLUMNS, *LATER_FIELDS)


def test_ready_rows_are_locked_before_the_contexts_of_first_turns() -> None:
    """Whoever cancels, or takes claims back, locks them in this order, too."""
    commit = LightCommit.of([PLAIN.replace(seq=1, first=PLAIN), FINISH.replace(id="v")], [])
    assert commit is not None
    names = [name for name, _ in commit.statements]
    assert names == ["light_finishes", "light_turns", "light_turns"]


@pytest.mark.parametrize("end", ["park", "yield", "finish"])
def test_owner_who_does_not_go_on_takes_the_full_way(end: str) -> None:
    assert not is_light(PLAIN.replace(end=end))


def test_large_snapshot_and_unchanged_tasks_take_the_full_way() -> None:
    assert not is_light(PLAIN.replace(snapshot=b"x" * (INLINE_BYTES + 1)))
    assert not is_light(PLAIN.replace(owned=None))


def test_every_field_of_a_step_is_tried() -> None:
    assert WRITTEN.keys() == LIGHT_FIELDS - GUARDED


@pytest.mark.parametrize("field", sorted(WRITTEN))
def test_step_writes_what_the_full_way_writes(
    field: str, schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = after(schemas.empty_store(lambda: NOW), {field: WRITTEN[field]})
    for module in ("turns", "light"):
        monkeypatch.setattr(f"rhythm.store.postgres.{module}.is_light", lambda turn: False)
    assert after(schemas.empty_store(lambda: NOW), {field: WRITTEN[field]}) == short


def after(store: Store, changes: dict[str, Any]) -> list[list[Any]]:
    """The answer and all rows after a turn, without its fence, which is another one every time."""
    answer, _ = store.turns.commit([PLAIN.replace(fence=begun(store), **changes)], [])
    return [
        answer,
        *(
            rows(store, f"SELECT to_jsonb(t) - 'fence' FROM {table} t ORDER BY 1")
            for table in TABLES
        ),
    ]


def begun(store: Store) -> int:
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default", version="1")])
    (claim,) = store.claims.claim("a", ["default"], 1, 30.0)
    return claim.fence


# the last turns of workflows

FINISH = TurnCommit(
    "w", 0, 1, 0, "finish", "a", "completed", 9, owned=None, status=COMPLETED, value='"done"'
)
FINISHES: dict[str, dict[str, Any]] = {
    "plain": {}, "with tasks": {"done": (DONE, DONE.replace(n=7))}, "by another": {"worker": "b"},
    "lost": {"fence": 0}, "stale": {"seq": 7}, "awaiting": {"awaiting": '{"op": "task"}'},
    "by who has seen it": {"wakes": 1},
}  # fmt: skip
# Tables, and the column of each whose values are drawn.
EVERYTHING = dict.fromkeys((*TABLES, "timer_tasks", "event_waits", "approvals"), "fence") | {
    "execution_resume_requests": "id"
}


# Of a turn that is committed with the last one: it has only begun a task.
FIRST = {name: value for name, value in WRITTEN.items() if name not in ("done", "worker")} | {
    "waited_us": 5
}


def test_last_turn_of_a_workflow_that_leaves_nothing_behind_is_light() -> None:
    assert is_light_finish(FINISH)
    for changes in FINISHES.values():
        assert is_light_finish(FINISH.replace(**changes))
    assert not is_light_finish(FINISH.replace(id="w.1"))
    assert not is_light_finish(FINISH.replace(status=FAILED))
    assert not is_light_finish(FINISH.replace(end="park"))
    assert not is_light_finish(FINISH.replace(owned="[]"))


@pytest.mark.parametrize(
    "field", [name for name in TurnCommit._fields if name not in FINISH_FIELDS]
)
def test_last_turn_with_anything_more_takes_the_full_way(field: str) -> None:
    assert not is_light_finish(FINISH.replace(**{field: object()}))


def test_ends_and_finishes_are_not_locked_one_after_the_other() -> None:
    """Both lock ready rows, each in their order: two passes could lock them crosswise."""
    assert LightCommit.of([PLAIN, FINISH], [])
    assert LightCommit.of([PLAIN], [END])
    assert LightCommit.of([FINISH], [END]) is None


# What the workflow awaits when its last turn comes, and what was asked of it meanwhile.
OPENS: dict[str, dict[str, Any]] = {
    "suspended": {},
    "timer": {"timers": (NewTimer(4, 60.0),)},
    "wait": {"waits": (NewWait(5, "paid", "{}"),)},
    "approval": {"approvals": (NewApproval(6, "boss", "", "null"),)},
    "a child runs": {
        "starts": (
            NewExecution(
                "w.2", WORKFLOW, "main", "default", parent_id="w", child_no=2, root_id="w"
            ),
        )
    },
}
ASKS: dict[str, Callable[[PostgresStore], Any]] = {
    "nothing": lambda store: None,
    "signal": lambda store: store.messages.signal(NewSignal("s", "w", "go", "1"), 10),
    "resume": lambda store: (
        store.people.pause(["w"], reason="", actor=None),
        store.people.resume(["w"], actor=None),
    ),
    "cancel": lambda store: store.executions.cancel(["w"]),
    "terminate": lambda store: store.executions.terminate(["w"]),
    "end": lambda store: store.db.transaction(
        lambda: store.rows.finish([End("w", COMPLETED, "1")], NOW)
    ),
}


@pytest.mark.parametrize("before", [*OPENS, *ASKS])
@pytest.mark.parametrize("name", FINISHES)
def test_light_finish_on_postgres_writes_what_the_full_way_writes(
    name: str, before: str, schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = after_finish(schemas.empty_store(lambda: NOW), FINISHES[name], before)
    monkeypatch.setattr("rhythm.store.postgres.light.is_light_finish", lambda turn: False)
    assert after_finish(schemas.empty_store(lambda: NOW), FINISHES[name], before) == short


def after_finish(store: PostgresStore, changes: dict[str, Any], before: str) -> list[list[Any]]:
    """The answers and all rows after the last turn of a workflow, without fences; and beside it one
    that ends, and one that goes on."""
    store.executions.start(
        [NewExecution(id, WORKFLOW, "main", "default", version="1") for id in ("v", "w", "x", "y")]
    )
    fences = {claim.id: claim.fence for claim in store.claims.claim("a", ["default"], 10, 30.0)}
    own = {"fence": fences["w"], "seq": 0}
    if before in OPENS:
        turn = PLAIN.replace(fence=fences["w"], snapshot=b"{}", **OPENS[before])
        assert store.turns.commit([turn], [])[0][0].outcome == "own"
        own["seq"] = 1
    else:
        ASKS[before](store)
    turns = [
        FINISH.replace(**{**own, **changes}),
        FINISH.replace(id="x", fence=fences["x"], value='"x"'),
        FINISH.replace(
            id="v",
            fence=fences["v"],
            seq=1,
            first=PLAIN.replace(id="v", fence=fences["v"], **FIRST),
        ),
        PLAIN.replace(id="y", fence=fences["y"], snapshot=b"{}"),
    ]
    answers, _ = store.turns.commit(turns, [])
    return [
        sorted(answers, key=lambda answer: answer.id),
        *(
            rows(
                store,
                f"SELECT to_jsonb(t) - '{{fence,{serial}}}'::text[] FROM {table} t ORDER BY 1",
            )
            for table, serial in EVERYTHING.items()
        ),
    ]


@pytest.mark.parametrize(
    ("act", "status"),
    [("cancel", "cancelled"), ("terminate", "cancelled"), ("signal", "completed")],
)
def test_what_is_asked_while_a_light_finish_on_postgres_waits_counts(
    act: str, status: str, schemas: Schemas
) -> None:
    """As for the ends of tasks, below."""
    store = schemas.empty_store()
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default", version="1")])
    (claim,) = store.claims.claim("a", ["default"], 1, 30.0)
    with ThreadPoolExecutor(1) as threads, psycopg.connect(schemas.url) as connection:
        ASKS[act](store.within(connection))  # type: ignore[arg-type]  # it has the same roles
        committed = threads.submit(store.turns.commit, [FINISH.replace(fence=claim.fence)], [])
        while not schemas.admin.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            assert not committed.done()
        connection.commit()
        [answer], _ = committed.result()
    assert store.reading.get(["w"])["w"].status == status
    assert answer.outcome == ("lost" if act == "terminate" else "finished")
    assert rows(store, "SELECT id FROM ready") == []


# ends of tasks

END = TaskEnd("t", 1, COMPLETED, '"done"', worker="a", took_us=7)
ENDS: dict[str, TaskEnd] = {
    "completed": END,
    "failed": END.replace(status=FAILED, value='{"code": "No"}'),
    "took long": END.replace(took_us=10**12),
    "by another": END.replace(worker="b"),
    "lost": END.replace(fence=0),
}


def test_end_of_a_task_that_concerns_nobody_else_is_light() -> None:
    assert is_light_end(END)
    assert not is_light_end(END.replace(id="w.1"))
    assert not is_light_end(END.replace(retry_s=1.0))
    assert not is_light_end(END.replace(retry_s=0.0, counts=False))


@pytest.mark.parametrize("before", ["claimed", "tried before", "cancelled", "timed out", "ended"])
@pytest.mark.parametrize("name", ENDS)
def test_light_end_on_postgres_writes_what_the_full_way_writes(
    name: str, before: str, schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = after_end(schemas.empty_store(lambda: NOW), ENDS[name], before)
    monkeypatch.setattr("rhythm.store.postgres.light.is_light_end", lambda end: False)
    assert after_end(schemas.empty_store(lambda: NOW), ENDS[name], before) == short


def after_end(store: PostgresStore, end: TaskEnd, before: str) -> list[list[Any]]:
    """The answer and all rows after the end of a task, without fences; and beside it one that has
    its own end."""
    other = NewExecution("u", TASK, "work", "default")
    timed = NewExecution("t", TASK, "work", "default", timeout_s=1e-6)
    store.executions.start([timed if before == "timed out" else other.replace(id="t"), other])
    claims = {claim.id: claim for claim in store.claims.claim("a", ["default"], 10, 30.0)}
    if before == "tried before":
        again = END.replace(fence=claims["t"].fence, status=FAILED, value="{}", retry_s=0.0)
        store.turns.commit([], [again])
        store.maintenance.fire_timers(10)
        (claims["t"],) = store.claims.claim("a", ["default"], 1, 30.0)
    elif before == "cancelled":
        store.executions.cancel(["t"])
    elif before == "timed out":
        store.db.transaction(lambda: store.db.do("time_out", ids=["t"], now=NOW))
    elif before == "ended":
        ended = [End("t", COMPLETED, "1")]
        store.db.transaction(lambda: store.rows.finish(ended, NOW))
    own = END.replace(id="u", fence=claims["u"].fence, value='"u"')
    _, accepted = store.turns.commit([], [end.replace(fence=claims["t"].fence * end.fence), own])
    return [
        sorted(accepted),
        *(
            rows(store, f"SELECT to_jsonb(t) - 'fence' FROM {table} t ORDER BY 1")
            for table in TABLES
        ),
    ]


@pytest.mark.parametrize("status", [COMPLETED, FAILED])
@pytest.mark.parametrize("act", ["cancel", "terminate"])
def test_what_is_asked_while_a_light_end_on_postgres_waits_counts(
    act: str, status: StatusNumber, schemas: Schemas
) -> None:
    """Its statement sees the database as it was before, but for the rows that it locks."""
    store = schemas.empty_store()
    store.executions.start([NewExecution("t", TASK, "work", "default")])
    (claim,) = store.claims.claim("a", ["default"], 1, 30.0)
    end = END.replace(fence=claim.fence, status=status, value='{"code": "No"}')
    with ThreadPoolExecutor(1) as threads, psycopg.connect(schemas.url) as connection:
        executions = store.within(connection).executions
        assert (executions.cancel if act == "cancel" else executions.terminate)(["t"]) == {
            "t": True
        }
        committed = threads.submit(store.turns.commit, [], [end])
        while not schemas.admin.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            assert not committed.done()
        connection.commit()
        _, accepted = committed.result()
    assert accepted == ({"t"} if act == "cancel" else set())
    found = store.reading.get(["t"])["t"]
    stays = act == "cancel" and status == COMPLETED
    assert found.status == ("completed" if stays else "cancelled")
    assert rows(store, "SELECT id FROM ready") == []


# and nothing of a turn is left out by the full way


class Watched:
    """Makes a record tell which of its fields were read."""

    def __init__(self) -> None:
        self.read: dict[str, set[str]] = {}

    def __call__(self, record: Any) -> Any:
        kind, seen = type(record), self.read.setdefault(type(record).__name__, set())

        class Told(kind):
            def __getattribute__(self, name: str) -> Any:
                seen.update(kind._fields if name == "__dict__" else {name} & kind._known)
                return super().__getattribute__(name)

        before, made = set(seen), Told(**{name: getattr(record, name) for name in kind._fields})
        seen &= before
        return made


def test_every_field_of_a_turn_and_of_its_rows_is_read_by_both_stores(
    make_store: MakeStore,
) -> None:
    store, watched = make_store(lambda: NOW), Watched()
    fence, started = (
        begun(store),
        NewExecution(
            "w.2", WORKFLOW, "main", "default", version="1", parent_id="w", child_no=2, root_id="w"
        ),
    )
    new = (
        watched(started),
        watched(started.replace(id="w.3", child_no=3, type=1, failed='"no"')),
        started.replace(id="w.8", child_no=8),
    )
    turn = PLAIN.replace(
        fence=fence,
        done=(watched(DONE),),
        starts=new,
        promoted=(8,),
        timers=(watched(NewTimer(4, 1.0)),),
        waits=(watched(NewWait(5, "paid", "{}")),),
        approvals=(watched(NewApproval(6, "boss", "", "null")),),
        attributes='{"a": 1}',
        signals=(watched(NewSignal("s", "w", "go", "1", "w")),),
        events=(watched(NewEvent("e", "sent", "1", 0, "w")),),
        settled=(9,),
        cancels=((10, 11),),
        begins=((12, 13),),
        releases=((10, 11),),
        resumed=1,
    )
    store.turns.commit([watched(turn)], [])
    store.turns.commit(
        [
            watched(
                PLAIN.replace(
                    seq=2,
                    fence=fence,
                    end="park",
                    snapshot=b"{}",
                    consumed=("s",),
                    first=watched(PLAIN.replace(seq=1, fence=fence)),
                )
            )
        ],
        [],
    )
    store.turns.commit(
        [
            watched(
                PLAIN.replace(
                    seq=3, fence=fence, end="finish", status=FAILED, value='{"code": "No"}'
                )
            )
        ],
        [],
    )
    records = (TurnCommit, NewExecution, Done, NewTimer, NewWait, NewApproval, NewSignal, NewEvent)
    unread = {kind.__name__: set(kind._fields) - watched.read[kind.__name__] for kind in records}
    known = {("NewEvent", "execution_id"), ("NewSignal", "sender")}  # the turn's own id
    known |= {("TurnCommit", name) for name in LATER_FIELDS}
    assert {(kind, name) for kind, names in unread.items() for name in names} <= known
