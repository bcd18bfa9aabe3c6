"""The life of an execution: the table, the rules that both stores ask, and every transition on
every database."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from rhythm.store.access import Actor
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.executions import Family, NewExecution, Retry
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Done, TaskEnd, TurnCommit
from rhythm.store.lifecycle import (
    BLOCKED,
    CANCELLED,
    CHANGES,
    COMPLETED,
    FAILED,
    LIVE,
    OF_TURN,
    ORDERLY,
    PAUSED,
    PENDING,
    STATUS_NAMES,
    STATUSES,
    SUSPENDED,
    TASK,
    TERMINAL,
    TRANSITIONS,
    WORKFLOW,
    By,
    Outcome,
    StatusTransition,
    TurnEnd,
    Type,
    has_ended,
    is_orderly,
)
from rhythm.store.verdicts import (
    BY_FORCE,
    BY_REQUEST,
    BY_TIMEOUT,
    Again,
    Ending,
    HistoryRow,
    answer,
    answer_to_park,
    attempt_row,
    begins,
    crash_loop_row,
    end_of_attempt,
    end_of_cancelled,
    end_of_timed_out,
    end_of_turn,
    has_turn,
    received,
    refused,
    rescued_task,
    rescued_workflow,
    result_and_error,
    terminated_row,
    turn_row,
    unfinished,
)
from tests.store.test_conformance import (
    TTL,
    Clock,
    begun,
    claims,
    commit,
    end,
    outcome,
    task,
    turn,
    workflow,
)
from tests.support.drawn_lifecycle import DOCUMENT, document
from tests.support.stores import Stores, ready_rows, rows

STORES = Path(__file__).parents[2] / "src" / "rhythm" / "store"
ENDS = tuple(status.number for status in STATUSES if status.terminal)
ERROR = '{"code": "Odd", "message": "odd", "data": null}'


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


# the table


def test_statuses_have_a_number_a_name_and_a_sentence_each() -> None:
    assert (
        len({status.number for status in STATUSES})
        == len({status.name for status in STATUSES})
        == len(STATUSES)
    )
    assert all(status.says for status in STATUSES)
    assert [status.number for status in STATUSES if status.terminal] == [
        n for n in STATUS_NAMES if n >= TERMINAL
    ]
    assert {*LIVE, *ENDS} == set(STATUS_NAMES)
    assert set(ORDERLY) < set(ENDS)


def test_nothing_leads_out_of_an_end_and_everything_leads_to_one() -> None:
    assert len(set(TRANSITIONS)) == len(TRANSITIONS)
    assert not [
        str(step) for step in TRANSITIONS if step.before is not None and has_ended(step.before)
    ]
    for of in get_args(Type):
        used = {step.after for step in TRANSITIONS if step.of == of}
        made = {step.after for step in TRANSITIONS if step.of == of and step.before is None}
        left = {step.before for step in TRANSITIONS if step.of == of and step.after in ENDS}
        assert used - set(ENDS) == left - {None}, "who lives can end"
        assert made >= {PENDING}
    assert {step.after for step in TRANSITIONS} == set(STATUS_NAMES)


def test_every_way_to_a_transition_is_named_in_the_table() -> None:
    assert {change.by for change in CHANGES} == set(get_args(By))


def test_the_document_is_drawn_from_the_table() -> None:
    """`make modules` draws it anew."""
    assert DOCUMENT.read_text(encoding="utf-8") == document()


# the rules, without a database


def planned(how: TurnEnd = "finish", status: int = COMPLETED, value: str = "1") -> TurnCommit:
    return TurnCommit("w", 3, 7, 2, how, "a", "turn", statement=4, status=status, value=value)


@pytest.mark.parametrize("how", ["own", "park", "yield"])
@pytest.mark.parametrize("cancelled", [False, True])
def test_a_turn_that_does_not_finish_ends_nothing(how: TurnEnd, cancelled: bool) -> None:
    assert end_of_turn(planned(how, SUSPENDED), cancelled) is None


@pytest.mark.parametrize("status", ENDS)
def test_a_cancel_that_was_acknowledged_wins_over_the_result(status: int) -> None:
    assert end_of_turn(planned(status=status, value=ERROR), cancelled=False) == Ending(
        status, ERROR
    )
    ended = end_of_turn(planned(status=status, value=ERROR), cancelled=True)
    assert ended == (Ending(CANCELLED, ERROR) if status == CANCELLED else BY_REQUEST), (
        "its own words, if it has been cancelled"
    )


@pytest.mark.parametrize("status", ENDS)
def test_only_what_has_completed_has_a_result_and_all_others_have_an_error(status: int) -> None:
    assert result_and_error(status, "1") == (("1", None) if status == COMPLETED else (None, "1"))
    assert Ending(status, "1").error == (None if status == COMPLETED else "1")


def test_the_history_tells_where_a_turn_led_and_why_it_failed() -> None:
    went_on = planned("park", PAUSED)
    assert turn_row(went_on, PENDING, None) == HistoryRow(
        "w", 4, 7, "a", PENDING, PAUSED, "turn", 4, None
    )
    assert turn_row(planned(), SUSPENDED, Ending(COMPLETED, "1")).error is None
    told = turn_row(planned(), SUSPENDED, BY_REQUEST)
    assert (told.from_status, told.to_status, told.error) == (
        SUSPENDED,
        CANCELLED,
        BY_REQUEST.value,
    )
    assert crash_loop_row("w", 3, 7, "a", PAUSED, Ending(FAILED, "1")) == HistoryRow(
        "w", 4, 7, "a", PAUSED, FAILED, "crash loop"
    )
    assert terminated_row("w", 3, 7, PAUSED) == HistoryRow(
        "w", 4, 7, "", PAUSED, CANCELLED, "terminated", error=BY_FORCE.value
    )


def test_the_answer_to_a_turn() -> None:
    fences = {1: 9}
    told: dict[tuple[TurnEnd, bool], tuple[Outcome, int]] = {
        ("own", False): ("own", 5),
        ("park", True): ("parked", 0),
        ("park", False): ("woken", 5),
        ("yield", True): ("parked", 0),
    }
    for (how, left), (became, wakes) in told.items():
        answered = answer(planned(how, SUSPENDED), left, 5 if not left else 0, fences)
        assert (answered.outcome, answered.wakes, answered.promoted) == (became, wakes, fences)
    assert answer(planned(), True, 0, {}).outcome == "finished"
    assert (refused("w").outcome, refused("w", "why").outcome, refused("w", "why").refusal) == (
        "lost",
        "full",
        "why",
    )
    parking = [
        answer_to_park("w", True, None),
        answer_to_park("w", False, None),
        answer_to_park("w", False, 3),
    ]
    assert [(each.outcome, each.wakes) for each in parking] == [
        ("parked", 0),
        ("lost", 0),
        ("woken", 3),
    ]


def attempted(status: int = FAILED, **changes: Any) -> TaskEnd:
    return TaskEnd("w.1", 7, status, ERROR, worker="a").replace(**changes)


def test_an_attempt_is_tried_again_or_is_the_end() -> None:
    row = attempt_row("w.1", 3, 7, "a", ERROR)
    assert (row.seq, row.from_status, row.to_status, row.cause, row.error) == (
        3,
        PENDING,
        PENDING,
        "attempt failed",
        ERROR,
    )
    assert end_of_attempt(attempted(retry_s=2.0), 3, cancelled=False) == Again(2.0, 3, row)
    assert end_of_attempt(attempted(retry_s=0.0), 3, cancelled=False) == Again(0.0, 3, row), (
        "at once is again, too"
    )
    assert end_of_attempt(attempted(retry_s=2.0, counts=False), 3, cancelled=False) == Again(
        2.0, 2, None
    )
    for status in (COMPLETED, FAILED, CANCELLED):
        assert end_of_attempt(attempted(status), 3, cancelled=False) == Ending(status, ERROR)


def test_a_cancelled_task_is_not_tried_again_and_only_a_result_saves_it() -> None:
    for late in (
        attempted(retry_s=2.0),
        attempted(retry_s=2.0, counts=False),
        attempted(),
        attempted(CANCELLED),
    ):
        assert end_of_attempt(late, 3, cancelled=True) == BY_REQUEST
    assert end_of_attempt(attempted(COMPLETED), 3, cancelled=True) == Ending(COMPLETED, ERROR)


@pytest.mark.parametrize("rescued", [rescued_task, rescued_workflow])
def test_what_is_rescued_is_free_until_it_has_crashed_as_often_as_the_limit_says(
    rescued: Callable[[int, int], Ending | None],
) -> None:
    assert [rescued(crashes, 3) is None for crashes in (1, 2, 3, 4)] == [True, True, False, False]
    ended = rescued(3, 3)
    assert ended is not None
    told = json.loads(ended.value)
    assert (ended.status, told["code"], told["data"]) == (FAILED, "Crashed", {"crashes": 3})


def test_a_workflow_ends_with_a_turn_and_a_task_that_nobody_runs_at_once() -> None:
    assert (end_of_cancelled(WORKFLOW), end_of_timed_out(WORKFLOW)) == (None, None)
    assert (end_of_cancelled(TASK), end_of_timed_out(TASK)) == (BY_REQUEST, BY_TIMEOUT)
    codes = [json.loads(ended.value)["code"] for ended in (BY_REQUEST, BY_TIMEOUT, BY_FORCE)]
    assert codes == ["Cancelled", "Timeout", "Terminated"]


def test_what_becomes_of_a_signal() -> None:
    for status in (None, *STATUS_NAMES):
        assert received(status, True, 99, 10) == "duplicate", "whatever came after it"
    assert received(None, False, 99, 10) == "missing"
    assert {received(status, False, 99, 10) for status in ENDS} == {"late"}
    assert {received(status, False, 10, 10) for status in LIVE} == {"full"}
    assert {received(status, False, 9, 10) for status in LIVE} == {"sent"}


def test_one_retry_at_a_time_and_what_it_stores() -> None:
    assert unfinished([Retry("a", FAILED), Retry("b", SUSPENDED), Retry("c", PENDING)]) == "b"
    assert unfinished([Retry("a", status) for status in ENDS]) is None
    assert [
        begins(PENDING, held=False),
        begins(SUSPENDED, held=True),
        begins(FAILED, held=False),
    ] == [True, False, False]
    assert [
        has_turn(WORKFLOW, SUSPENDED),
        has_turn(WORKFLOW, PENDING),
        has_turn(TASK, COMPLETED),
    ] == [True, False, False]


def test_ends_that_let_go_on_what_was_started() -> None:
    assert [status for status in STATUS_NAMES if is_orderly(status)] == [COMPLETED, BLOCKED]


# every transition, on every database


class World:
    """A parked parent `w`, and its child `w.1`, which is brought to where a transition begins."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.id, self.parent, self.seq = "w.1", "w", 0
        self.claim: Claim | None = None

    def start(self, of: Type, **changes: Any) -> None:
        child = (
            task("w.1") if of == "task" else workflow("w.1", parent_id="w", child_no=1, root_id="w")
        )
        assert (
            outcome(self.store, turn(begun(self.store), starts=(child.replace(**changes),)))
            == "parked"
        )

    def hold(self) -> Claim:
        """The child, claimed."""
        if self.claim is None:
            self.claim = claims(self.store)[self.id]
        return self.claim

    def turn(self, status: int, how: TurnEnd = "own", value: str = "1") -> str:
        answered = outcome(self.store, turn(self.hold(), self.seq, how, status=status, value=value))
        self.seq += answered != "lost"
        return answered

    def bring(self, step: StatusTransition, **changes: Any) -> None:
        """A child in the status before, claimed if it has taken a turn."""
        self.start(step.of, **changes)
        if step.before not in (None, PENDING):
            assert self.turn(step.before or 0) == "own"

    def end(self, status: int = COMPLETED, **changes: Any) -> bool:
        return end(self.store, self.hold(), status, ERROR, **changes)

    def status(self) -> int:
        ((status,),) = rows(self.store, "SELECT status FROM executions WHERE id = ?", [self.id])
        return int(status)

    def told(self) -> list[tuple[str, str, str]]:
        return [
            (row.from_status, row.to_status, row.cause)
            for row in self.store.reading.history(self.id)
        ]

    def is_parent_woken(self) -> bool:
        """It was parked: then a wake makes its row."""
        return self.parent in {id for id, *_ in ready_rows(self.store)}


Driver = Callable[[World, StatusTransition], None]
# what takes a transition, and what the child is made with
DRIVERS: dict[tuple[Type, By], tuple[Driver, dict[str, Any]]] = {}


def takes(of: Type, *ways: By, **changes: Any) -> Callable[[Driver], Driver]:
    def keep(driver: Driver) -> Driver:
        DRIVERS.update({(of, by): (driver, changes) for by in ways})
        return driver

    return keep


@takes("workflow", "start")
@takes("task", "start")
def start(world: World, step: StatusTransition) -> None:
    world.start(step.of)


@takes("workflow", "turn")
def take_a_turn(world: World, step: StatusTransition) -> None:
    assert world.turn(step.after, "park") == "parked"


@takes("workflow", "finish")
def take_the_last_turn(world: World, step: StatusTransition) -> None:
    assert world.turn(step.after, "finish", ERROR) == "finished"


@takes("task", "turn")
def run_by_its_owner(world: World, step: StatusTransition) -> None:
    done = Done(1, "work", "default", "{}", step.after, ERROR, 1, 0)
    assert outcome(world.store, turn(begun(world.store), end="own", done=(done,))) == "own"


@takes("task", "attempt")
def fail_for_now(world: World, step: StatusTransition) -> None:
    assert world.end(FAILED, retry_s=5.0)


@takes("task", "end")
def end_the_task(world: World, step: StatusTransition) -> None:
    assert world.end(step.after)


@takes("workflow", "cancel")
@takes("task", "cancel")
def ask_to_end(world: World, step: StatusTransition) -> None:
    if step.of == "task" and not has_ended(step.after):
        world.hold()
    assert world.store.executions.cancel([world.id]) == {world.id: True}


@takes("workflow", "time out", timeout_s=5.0)
@takes("task", "time out", timeout_s=5.0)
def let_the_time_pass(world: World, step: StatusTransition) -> None:
    if step.of == "task" and not has_ended(step.after):
        world.hold()
    world.clock.forward(6)
    assert world.store.maintenance.fire_timers(9)[0] == 1


@takes("workflow", "rescue")
@takes("task", "rescue")
def lose_the_worker(world: World, step: StatusTransition) -> None:
    world.hold()
    world.clock.forward(TTL + 1)
    assert world.store.maintenance.rescue(9, crash_limit=1 if has_ended(step.after) else 5) == [
        world.id
    ]


@takes("workflow", "terminate")
@takes("task", "terminate")
def end_by_force(world: World, step: StatusTransition) -> None:
    assert world.store.executions.terminate([world.id]) == {world.id: True}


@takes("workflow", "retry")
@takes("task", "retry")
def retry(world: World, step: StatusTransition) -> None:
    """Child `v.1` of a retry that someone else made; a task or workflow that ended is as it was."""
    done = Done(1, "work", "default", "{}", FAILED, ERROR, 1, 0)
    old = begun(world.store)
    assert outcome(world.store, turn(old, end="own", done=(done,))) == "own"
    assert outcome(world.store, turn(old, 1, "finish", status=FAILED, value=ERROR)) == "finished"
    world.id, world.parent = "v.1", "v"

    def plan(family: Family) -> Family:
        root, ran = (row.replace(awaiting="null", owned="[]") for row in family.executions)
        new = root.replace(
            id="v", root_id="v", retry_of="w", status=SUSPENDED, finished_at=None, error=None
        )
        source = ran if step.of == "task" else root
        ended = (
            dict(ends_alike=True) if has_ended(step.after) else dict(finished_at=None, error=None)
        )
        child = source.replace(
            id="v.1", parent_id="v", child_no=1, root_id="v", status=step.after, **ended
        )
        return Family((new, child))

    assert world.store.executions.retry("w", plan) is not None


def test_every_driver_is_of_the_table() -> None:
    assert DRIVERS.keys() == {(step.of, step.by) for step in TRANSITIONS}


@pytest.mark.parametrize("step", TRANSITIONS, ids=str)
def test_every_transition_is_taken(store: Store, clock: Clock, step: StatusTransition) -> None:
    """As the table says: the status, the row in the history, and the wake of the parent if it is an
    end."""
    world = World(store, clock)
    driver, changes = DRIVERS[step.of, step.by]
    if step.before is not None:
        world.bring(step, **changes)
        assert (world.status(), world.is_parent_woken()) == (step.before, False)
    before = world.told() if step.before is not None else []
    driver(world, step)
    assert world.status() == step.after
    cause = "turn" if step.cause == OF_TURN else step.cause
    row = (STATUS_NAMES[step.before or PENDING], STATUS_NAMES[step.after], cause)
    assert world.told() == before + ([row] if cause is not None else [])
    if step.before is not None:
        assert world.is_parent_woken() == has_ended(step.after)


@pytest.mark.parametrize("brings", [COMPLETED, FAILED, CANCELLED])
def test_one_that_was_asked_to_end_is_cancelled_unless_its_task_brings_a_result(
    store: Store, clock: Clock, brings: int
) -> None:
    world = World(store, clock)
    world.start("task")
    world.hold()
    assert store.executions.cancel(["w.1"]) == {"w.1": True}
    assert world.end(brings)
    assert (world.status(), world.is_parent_woken()) == (
        COMPLETED if brings == COMPLETED else CANCELLED,
        True,
    )


def test_an_attempt_that_does_not_count_is_not_told(store: Store, clock: Clock) -> None:
    world = World(store, clock)
    world.start("task")
    assert world.end(FAILED, retry_s=5.0, counts=False)
    assert (world.status(), world.told(), store.reading.get(["w.1"])["w.1"].attempt) == (
        PENDING,
        [],
        0,
    )


@pytest.mark.parametrize("kind", [workflow, task])
@pytest.mark.parametrize("how", ["cancel", "terminate"])
def test_one_that_is_named_twice_is_ended_once_and_recorded_once(
    store: Store, how: str, kind: Callable[[str], NewExecution]
) -> None:
    store.executions.start([kind("x")])
    assert getattr(store.executions, how)(["x", "x"], Actor("ann")) == {"x": True}
    assert rows(store, "SELECT action, object FROM audit") == [(f"execution.{how}", "x")]


# what has ended stays as it is


TO_AN_END = [
    step for step in TRANSITIONS if has_ended(step.after) and step.before in (PENDING, None)
]


def late_turn(world: World) -> None:
    if world.claim and world.claim.kind == WORKFLOW:
        for status in STATUS_NAMES:
            for how in get_args(TurnEnd):
                late = turn(world.claim, world.seq, how, status=status)
                assert outcome(world.store, late) == "lost"


def late_end(world: World) -> None:
    for status in STATUS_NAMES if world.claim else ():
        for retry_s in (None, 1.0):
            assert not world.end(status, retry_s=retry_s)


def time_passes(world: World) -> None:
    world.clock.forward(3 * TTL)
    world.store.maintenance.fire_timers(9)
    world.store.maintenance.rescue(9, crash_limit=1)


def asked_once_more(world: World) -> None:
    assert not any(
        act([world.id]).get(world.id)
        for act in (world.store.executions.cancel, world.store.executions.terminate)
    )


def held_or_let_go(world: World) -> None:
    assert not any(
        act([world.id]).get(world.id)
        for act in (world.store.people.pause, world.store.people.resume)
    )


def services(world: World) -> None:
    world.store.maintenance.end_cancelled_tasks(9)
    world.store.executions.end_terminated(9)
    world.store.recover(9, 1, dead=True)


def signalled(world: World) -> None:
    assert world.store.messages.signal(NewSignal("late", world.id, "go", "1"), 10) == "late"


def started_again(world: World) -> None:
    assert not world.store.executions.start(
        [NewExecution(world.id, WORKFLOW, name_of(world), "default", version="1")]
    )[0].created


def name_of(world: World) -> str:
    return world.store.reading.get([world.id])[world.id].name


LATE = (
    late_turn,
    late_end,
    asked_once_more,
    held_or_let_go,
    signalled,
    started_again,
    services,
    time_passes,
)


@pytest.mark.parametrize("step", TO_AN_END, ids=str)
def test_nothing_leaves_an_end(store: Store, clock: Clock, step: StatusTransition) -> None:
    """Whatever anybody does: it stays as it ended, and its history has nothing to add."""
    world = World(store, clock)
    driver, changes = DRIVERS[step.of, step.by]
    if step.before is not None:
        world.bring(step, **changes)
        if step.by not in ("cancel", "time out"):
            world.hold()
    driver(world, step)
    ended, told = store.reading.get([world.id]), store.reading.history(world.id)
    for act in LATE:
        act(world)
        assert (store.reading.get([world.id]), store.reading.history(world.id), world.status()) == (
            ended,
            told,
            step.after,
        ), act.__name__


# no rule is left in a store


RULES = {
    "PENDING",
    "SUSPENDED",
    "PAUSED",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "BLOCKED",
    "ORDERLY",
    "TERMINAL",
    "STATUSES",
}


def modules() -> list[Path]:
    return sorted(path for kind in ("sqlite", "postgres") for path in (STORES / kind).glob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_rule_is_left_in_a_store(path: Path) -> None:
    """A store names no status and compares none with a number, words no error and makes no row of
    the audit: it asks."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not broken(node), (
            f"{path.parent.name}/{path.name}:{getattr(node, 'lineno', '')}: {ast.unparse(node)}"
        )


STATUS_IN_SQL = re.compile(r"\bstatus\b\s*(=|<>|!=|[<>]=?)\s*[0-9]")


def broken(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name in RULES
        case ast.Compare(
            left=ast.Name(id="status") | ast.Attribute(attr="status"),
            comparators=[ast.Constant(value=int())],
        ):
            return True
        case ast.Dict(keys=keys):
            return any(isinstance(key, ast.Constant) and key.value == "code" for key in keys)
        case ast.Call(func=ast.Name(id="Act" | "act" | "HistoryRow")):
            return True
        case ast.Constant(value=str(text)):
            return '"code"' in text or bool(STATUS_IN_SQL.search(text))
        case ast.Constant(value=bytes(text)):
            return bool(STATUS_IN_SQL.search(text.decode()))
    return False


@pytest.mark.parametrize(
    "text",
    [
        "row.status >= TERMINAL", "lifecycle.FAILED", "from rhythm.store.lifecycle import ORDERLY",
        "row.status == 5", "status != 7", "'a.status = 7'", "b'status >= 5'",
        "{'code': 'Odd'}", """'{"code": "Odd"}'""", "Act('execution.cancel', id)", "HistoryRow(id)",
    ],
)  # fmt: skip
def test_a_rule_in_a_store_would_be_found(text: str) -> None:
    assert any(map(broken, ast.walk(ast.parse(text))))


def test_a_commit_of_several_answers_each_turn_in_its_place(store: Store) -> None:
    held = {id: begun(store, id) for id in ("a", "b", "c", "d")}
    turns = [
        turn(held["a"], end="own"),
        turn(held["b"], 7),
        turn(held["c"], end="finish", status=COMPLETED),
        turn(held["d"], end="yield"),
    ]
    answers = commit(store, *turns)
    assert isinstance(answers, list)
    assert {each.id: each.outcome for each in answers} == {
        "a": "own",
        "b": "lost",
        "c": "finished",
        "d": "parked",
    }
