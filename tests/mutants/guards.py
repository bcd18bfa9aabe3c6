"""The guards of the protocol as they stand in the code, how each is taken away, and the tests that
must notice.

To add one: a `Guard` below, with the text to replace in a named statement or function (it must be
there exactly once).
"""

from __future__ import annotations

from typing import NamedTuple

from tests.mutants.mutate import Change, Mutant

CONFORMANCE = "tests/store/test_conformance.py::test_"
SERVER = "tests/store/test_postgres.py::test_"
LOCKING = "tests/store/test_sqlite_locking.py::test_"
LAWS = "tests/engine/test_laws.py::test_"
AHEAD = "tests/engine/test_ahead.py::test_"
FAST = "tests/store/test_fast_path.py::test_"
LIVING = "tests/engine/test_living.py::test_"
RETRIES = "tests/store/test_retries.py::test_"
FAMILIES = "tests/app/test_large_families.py::test_"
HEART = "tests/worker/test_heartbeat.py::test_"
SIMULATION = "tests/engine/test_simulation.py::test_everything_ends_as_it_must_whatever_goes_wrong"


class Guard(NamedTuple):
    """What is taken away, by database or in the code that both have in common, and who notices."""

    name: str
    tests: tuple[str, ...]
    sqlite: tuple[Change, ...] = ()
    postgres: tuple[Change, ...] = ()
    engine: tuple[Change, ...] = ()

    def mutants(self) -> list[Mutant]:
        places = {"sqlite": self.sqlite, "postgres": self.postgres, "any": self.engine}
        return [
            Mutant(self.name, database, self.tests, changes)
            for database, changes in places.items()
            if changes
        ]


def living(*names: str) -> tuple[str, ...]:
    return tuple(LIVING + name for name in names)


def law(*names: str) -> tuple[str, ...]:
    return tuple(LAWS + name for name in names)


def rule(*names: str) -> tuple[str, ...]:
    return tuple(CONFORMANCE + name for name in names)


def event(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_events.py::test_{name}" for name in names)


def trigger(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_triggers.py::test_{name}" for name in names)


def family(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_families.py::test_{name}" for name in names)


def lifecycle(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_lifecycle.py::test_{name}" for name in names)


def terminate(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_terminate.py::test_{name}" for name in names)


def peers(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_workers.py::test_{name}" for name in names)


def server(*names: str) -> tuple[str, ...]:
    return tuple(SERVER + name for name in names)


def backlog(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_postgres_claims.py::test_{name}" for name in names)


def limited(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/vm/test_limits_finally.py::test_{name}" for name in names)


def saga(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/engine/test_limits_finally.py::test_{name}" for name in names)


def lite(statement: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/sqlite/queries.sql", statement, old, new),)


def lite_code(file: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/sqlite/{file}.py", function, old, new),)


def pg(statement: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/postgres/queries.sql", statement, old, new),)


def pg_code(file: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/postgres/{file}.py", function, old, new),)


def step(old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/light_turns.py", "is_light", old, new),)


def verdict(function: str, old: str, new: str) -> tuple[Change, ...]:
    """A rule that both stores ask for: it is taken away for each of them."""
    return (Change("store/verdicts.py", function, old, new),)


def people(kind: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/people.py", function, old, new),)


def judged(old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/approvals.py", "_judged", old, new),)


def approvals(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_approvals.py::test_{name}" for name in names)


def hands(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_provenance.py::test_{name}" for name in names)


def worker(module: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"worker/{module}.py", function, old, new),)


def heart(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("worker/heartbeat.py", function, old, new),)


def planning(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("engine/planning.py", function, old, new),)


def inputs(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("engine/inputs.py", function, old, new),)


def reading(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("engine/reading.py", function, old, new),)


def vm(file: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"vm/{file}.py", function, old, new),)


def prices(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/vm/test_prices.py::test_{name}" for name in names)


def awaits(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("vm/awaits.py", function, old, new),)


def partly(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/engine/test_reading.py::test_{name}" for name in names)


def looks(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/engine/test_looks.py::test_{name}" for name in names)


def unchecked(kind: str, check: str) -> tuple[Change, ...]:
    """A CHECK of the ready table that would refuse the mutant before its rule is broken."""
    return (Change(f"store/{kind}/migrations/0001_initial.sql", "", check, ""),)


def access(kind: str, statement: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/access.sql", statement, old, new),)


def chain(kind: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/migrations/0008_audit.sql", "", old, new),)


def acting(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_acting.py::test_{name}" for name in names)


def audit(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_audit.py::test_{name}" for name in names)


def migrated(kind: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/migrations/0005_access.sql", "", old, new),)


# An end on SQLite that wakes nobody, and on PostgreSQL the like of what nobody holds.
UNTOLD = (
    "(lambda id, ended, now, fence=None, worker=None, attempt=0: self.db.many('finish', "
    "('id', 'status', 'result', 'error', 'now', 'fence', 'worker', 'attempt', 'took_us'), "
    "[(id, ended.status, None, ended.value, now, fence, worker, attempt, 0)]))("
)
UNHELD_UNTOLD = pg_code(
    "rows", "end_unclaimed",
    ("return self.finish([end_of(id, ended) for (id,) in self.db.all(\"not_ready\", "
            "ids=ids)], now)"),
    "ends = [fields(end_of(id, ended)) for (id,) in self.db.all('not_ready', ids=ids)]\n"
    "        return {row[0] for row in self.db.batch('finish', ends, now=now)}",
)  # fmt: skip
CLAIMED_CHECK = "  CHECK ((state = 1) = (fence IS NOT NULL)),\n"

FENCES = (
    Guard(
        "extend: only under my fence", rule("extending_tells_the_wakes_of_what_is_still_held"),
        lite("extend", " AND fence = ?", " AND ? > 0"), pg("extend", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "beat: prolongs only under my fence",
        peers("a_beat_with_another_fence_prolongs_nothing_and_tells_the_fence_that_is_right"),
        lite("extend", " AND fence = ?", " AND ? > 0"), pg("keep", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "beat: waits for no lock", server("a_beat_waits_for_no_lock_and_prolongs_the_other_claims"),
        postgres=pg("keep", " SKIP LOCKED", ""),
    ),
    Guard(
        "beat: tells what it did not prolong",
        server("a_beat_waits_for_no_lock_and_prolongs_the_other_claims"),
        postgres=pg_code("workers", "beat", "id not in kept and ", "False and "),
    ),
    Guard(
        "beat: what was not prolonged is prolonged by the next",
        (HEART + "what_somebody_had_locked_is_prolonged_by_the_next_beat",),
        engine=heart("run_once", "prolong and not own.not_extended", "prolong"),
    ),
    Guard(
        "beat: what was not prolonged keeps its deadline",
        living("claim_that_a_beat_could_not_prolong_keeps_its_deadline"),
        engine=heart("prolongs", " and id not in self.own.not_extended", ""),
    ),
    Guard(
        "release: only under my fence",
        rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("release", " AND fence = :fence", ""), pg("release", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "drop: only under my fence", rule("dropping_needs_the_fence"),
        lite("delete_claimed", " AND fence = ?", " AND ? > 0"),
        pg("drop", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "complete a task: only under my fence",
        rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("attempts_of", "r.fence = w.value AND ", ""),
        pg_code("flush", "_owns", " and row.fence == item.fence", ""),
    ),
    Guard(
        "park: only under my fence", rule("a_wake_after_the_park_makes_the_row_again"),
        lite("delete_parked", " AND fence = ? AND", " AND ? > 0 AND"),
        pg("park", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "turn: no fence in the context is newer than mine",
        rule("a_turn_under_an_older_fence_than_the_contexts_is_lost"),
        lite("advance_context", " AND c.fence <= x.fence", ""),
        pg("lock_contexts", " AND c.fence <= x.fence", ""),
    ),
    Guard(
        "step: no fence in the context is newer than mine",
        rule("after_a_rescue_the_old_owner_is_refused_and_the_new_one_is_not"),
        postgres=pg("light_turns", " AND c.fence <= x.fence", ""),
    ),
    Guard(
        "turn: only under the claim that is in force",
        rule("a_turn_of_one_who_gave_its_claim_back_is_lost"),
        lite_code("flush", "_owns", " and member.fence == turn.fence", ""),
        pg_code("flush", "_owns", " and row.fence == item.fence", ""),
    ),
    Guard(
        "turn: its own seq", rule("a_turn_with_another_seq_is_lost_and_writes_nothing"),
        lite("advance_context", " AND c.seq = x.seq", " AND x.seq >= 0"),
        pg("lock_contexts", "c.seq = x.seq AND ", ""),
    ),
    Guard(
        "step: its own seq", rule("a_turn_with_another_seq_is_lost_and_writes_nothing"),
        postgres=pg("light_turns", " AND c.seq = x.seq", ""),
    ),
    Guard(
        "step: nothing that its statement does not write",
        ("tests/store/test_fast_path.py::test_turn_with_anything_that_a_step_does_not_write_takes_the_full_way",),
        engine=step(" and _others_of(turn) == _UNUSED", ""),
    ),
    Guard(
        "step: its tasks are not left as they were",
        ("tests/store/test_fast_path.py::test_large_snapshot_and_unchanged_tasks_take_the_full_way",
            ),
        engine=step("turn.owned is not None and ", ""),
    ),
    Guard(
        "a fence is never given out twice", rule("a_wake_after_the_park_makes_the_row_again"),
        lite("fences_up", "SET n = n + ?", "SET n = ?"),
        pg("claim", "fence = nextval('fences')",
           ("fence = 1 + (SELECT c.fence FROM workflow_execution_context c WHERE "
                   "c.execution_id = id)")),
    ),
    Guard(
        "a task that is tried later keeps no fence",
        rule("a_task_is_tried_again_when_it_is_due_and_its_old_fence_is_refused"),
        lite("delay_task", "fence = NULL, ", "") + unchecked("sqlite", CLAIMED_CHECK),
        pg("delay_tasks", "fence = NULL, ", "") + unchecked("postgres", CLAIMED_CHECK),
    ),
    Guard(
        "what was released keeps no fence",
        rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("release", " fence = NULL,", "") + unchecked("sqlite", CLAIMED_CHECK),
        pg("release", " fence = NULL,", "") + unchecked("postgres", CLAIMED_CHECK),
    ),
    Guard(
        "a rescued task keeps no fence",
        rule("a_rescued_task_does_not_take_the_end_of_its_old_attempt"),
        lite("rescue_task", ", fence = NULL", "") + unchecked("sqlite", CLAIMED_CHECK),
        pg("rescue_tasks", ", fence = NULL", "") + unchecked("postgres", CLAIMED_CHECK),
    ),
    Guard(
        "two claimers never take the same row", server("many_claimers_never_get_the_same_row"),
        postgres=pg("claim", "id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS whole", "id LIMIT %(limit)s) AS whole")
        + pg("claim", "id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS behind", "id LIMIT %(limit)s) AS behind"),
    ),
    Guard(
        "a backlog hides nothing for long: everything is checked now and then",
        backlog("under_a_backlog_what_is_free_again_is_claimed_when_everything_is_checked"),
        postgres=pg_code("claim_cursor", "checks_everything", " or now >= self._check_at", ""),
    ),
    Guard(
        "what was claimed is known to its worker, even if the check that follows fails",
        backlog("what_was_claimed_is_returned_if_the_check_of_everything_fails"),
        postgres=pg_code("claims", "claim", "if not claimed:", "if True:"),
    ),
    Guard(
        "a backlog hides nothing at its end: everything is checked",
        backlog("at_the_end_of_a_backlog_what_is_free_again_is_claimed"),
        postgres=pg_code("claims", "claim", "if len(claimed) < limit:", "if not claimed:"),
    ),
    Guard(
        "BEGIN IMMEDIATE: who reads to write is the only writer",
        (f"{LOCKING}a_transaction_on_sqlite_is_the_only_writer_before_it_reads",),
        (Change("store/sqlite/session.py", "transaction", "BEGIN IMMEDIATE", "BEGIN"),),
    ),
)  # fmt: skip

WAKES = (
    Guard(
        "park: nothing has happened since I looked",
        rule("a_wake_before_the_park_refuses_it", "a_turn_that_would_park_is_committed_but_woken"),
        lite("delete_parked", " AND wakes = ?", " AND ? >= 0"),
        pg("park", " AND locked.wakes = locked.seen", "") + pg("delete_parked",
            " AND r.wakes = x.wakes", ""),
    ),
    Guard(
        "a wake of a claimed row is counted", rule("a_wake_before_the_park_refuses_it"),
        lite("wake", "DO UPDATE SET wakes = wakes + 1 WHERE state <> 0", "DO NOTHING"),
        pg("wake_live", "DO UPDATE SET wakes = ready.wakes + 1 WHERE ready.state <> 0", "DO NOTHING"),
    ),
    Guard(
        "a wake of a claimed row by what has ended is counted",
        rule("a_wake_by_what_has_ended_before_the_park_refuses_it"),
        lite("wake", "DO UPDATE SET wakes = wakes + 1 WHERE state <> 0", "DO NOTHING"),
        pg("wake", "DO UPDATE SET wakes = ready.wakes + 1 WHERE ready.state <> 0", "DO NOTHING"),
    ),
    Guard(
        "what a claim brings is read after its locks",
        server("what_a_claim_brings_is_newer_than_the_wakes_that_it_has_counted"),
        postgres=pg_code("connection", "_in_transaction", "for each in (BEGIN, ",
            'for each in (BoundStatement(b"BEGIN ISOLATION LEVEL REPEATABLE READ"), '),
    ),
    Guard(
        "a mailbox is empty only if nothing in it is left to consume",
        rule("a_workflow_has_mail_until_it_has_consumed_all_of_it"),
        lite("load", " AND s.consumed_seq IS NULL", ""),
        pg("load", " AND s.consumed_seq IS NULL", ""),
    ),
    Guard(
        "a wake does not free what is delayed",
        rule("a_delayed_start_is_free_when_it_is_due_and_not_before"),
        lite("wake", "wakes = wakes + 1 WHERE",
            ("wakes = wakes + 1, due_at = NULL, state = CASE state WHEN 2 THEN 0 ELSE state "
                "END WHERE")),
        pg("wake_live", "wakes = ready.wakes + 1 WHERE",
           ("wakes = ready.wakes + 1, due_at = NULL, state = CASE ready.state WHEN 2 THEN "
                   "0 ELSE ready.state END WHERE")),
    ),
    Guard(
        "a task that ends wakes its parent", rule("the_end_of_a_task_wakes_its_parent"),
        lite_code("rows", "finish_all",
            "self.wake_all((id for id in parents - ids if id is not None), now)", "pass"),
        pg_code("rows", "_announce", "self.wake((parent for _, parent in ended), now)", "pass"),
    ),
    Guard(
        "a workflow that ends wakes its parent", rule("a_finished_child_workflow_wakes_its_parent"),
        lite_code("rows", "finish_all",
            "self.wake_all((id for id in parents - ids if id is not None), now)", "pass"),
        pg_code("rows", "_announce", "self.wake((parent for _, parent in ended), now)", "pass"),
    ),
    Guard(
        "a task out of attempts wakes its parent",
        rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite_code("maintenance", "_rescue_task", "self.rows.finish(", UNTOLD),
        pg_code("maintenance", "_rescue_tasks", "self.rows.finish(ends, now)",
            "self.db.batch('finish', [__import__('rhythm.store.rows').store.rows.fields(end) for end in ends], now=now)"),
    ),
    Guard(
        "a workflow in a crash loop wakes its parent",
        rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        lite_code("maintenance", "_rescue_workflow", "self.rows.end_workflow(", UNTOLD),
        pg_code("maintenance", "_stop_loops", "self.rows.end_workflows(ends, now)",
            "self.db.batch('finish', [__import__('rhythm.store.rows').store.rows.fields(end) for end in ends], now=now)"),
    ),
    Guard(
        "a task that nobody did in time wakes its parent",
        rule("a_task_that_nobody_runs_in_time_fails"),
        lite_code("maintenance", "_time_out", "self.rows.finish(", UNTOLD),
        UNHELD_UNTOLD,
    ),
    Guard(
        "a cancelled task that nobody runs wakes its parent",
        rule("a_cancelled_task_that_nobody_runs_ends_at_once"),
        lite_code("rows", "cancel", "self.finish(", UNTOLD),
        UNHELD_UNTOLD,
    ),
    Guard(
        "a swept task wakes its parent", rule("the_sweep_ends_tasks_that_a_turn_asked_to_end"),
        lite_code("maintenance", "end_cancelled_tasks", "self.rows.finish(", UNTOLD),
        UNHELD_UNTOLD,
    ),
    Guard(
        "a timer wakes", rule("a_timer_never_fires_early_and_only_once"),
        lite_code("maintenance", "fire_timers",
            '"fire_timer", now, id, n)\n                self.rows.wake(id, now)',
            '"fire_timer", now, id, n)'),
        pg_code("maintenance", "_fire", "[*waiting, *(id for id, type", "[*(id for id, type"),
    ),
    Guard(
        "a workflow whose time is over is woken",
        rule("a_workflow_whose_time_is_over_is_woken_and_told"),
        lite_code("maintenance", "_time_out", "self.rows.wake(id, now)", "pass"),
        pg_code("maintenance", "_fire",
            ", *(id for id, type, _ in late if end_of_timed_out(type) is None)]", "]"),
    ),
    Guard(
        "a signal wakes",
        rule("a_wake_after_the_park_makes_the_row_again", "a_wake_before_the_park_refuses_it"),
        lite_code("exchange", "deliver", "self.rows.wake(signal.execution_id, now)", "pass"),
        pg_code("messages", "signal", "self.rows.wake_live([id])", "self.db.now()"),
    ),
    Guard(
        "a signal of a turn wakes", rule("a_turn_sends_signals_to_those_who_are_there"),
        postgres=pg_code("flush", "_deliver",
            "self.rows.wake_live([signal.execution_id for signal in signals])", "pass"),
    ),
    Guard(
        "a cancel wakes", rule("a_cancelled_workflow_is_woken_also_before_its_delayed_start"),
        lite_code("rows", "cancel", "self.wake(id, now)", "pass"),
        pg_code("rows", "cancel", "self.wake(workflows, now)", "pass"),
    ),
    Guard(
        "a cancel frees what is delayed",
        rule("a_cancelled_workflow_is_woken_also_before_its_delayed_start"),
        lite_code("rows", "cancel", 'self.db.all("free_delayed", id)', "pass"),
        pg_code("rows", "cancel", "self.free_delayed(workflows)", "pass"),
    ),
    Guard(
        "a child workflow that is asked to end is woken",
        rule("a_child_workflow_that_a_turn_asks_to_end_is_woken"),
        lite_code("rows", "flag", "self.wake(child, now)", "pass"),
        pg_code("rows", "flag", "self.wake(workflows, now)", "pass"),
    ),
    Guard(
        "a pause wakes", rule("pausing_wakes_and_is_told_to_whoever_loads"),
        people("sqlite", "_wake_changed", "self.rows.wake(id, now)", "pass"),
        people("postgres", "pause", "self.rows.wake_live(list(ids))", "pass"),
    ),
    Guard(
        "what is held back is not woken",
        rule("a_child_that_is_held_back_finds_its_signals_when_it_is_released"),
        lite_code("exchange", "deliver", "if not known.held:", "if True:"),
        pg("wake_live", "WHERE NOT held ", ""),
    ),
    Guard(
        "all ready rows of a flush are locked before any is written",
        server("a_flush_that_waits_for_one_row_has_locked_no_later_one"),
        postgres=pg_code("flush", "_lock", "ending=[*finishing, *(end.id for end in self.ends)]",
            "ending=[]"),
    ),
    Guard(
        "ready rows are locked in one order",
        server("a_flush_that_waits_for_one_row_has_locked_no_later_one"),
        postgres=pg("lock_with_related", "ORDER BY id FOR UPDATE", "FOR UPDATE"),
    ),
    Guard(
        "ready rows are locked before they are looked at",
        server("a_task_that_ended_while_its_time_ran_out_stays_as_it_ended"),
        postgres=pg("lock", " FOR UPDATE", ""),
    ),
    Guard(
        "what has lost its claim writes nothing in a flush",
        rule("a_turn_with_another_seq_is_lost_and_writes_nothing"),
        postgres=pg_code("flush", "_advance", "and turn.id in self.current", ""),
    ),
    Guard(
        "the context of a turn stays as its guards have found it",
        server("a_flush_waits_for_an_earlier_sending_of_the_same_turn"),
        postgres=pg("lock_contexts", " FOR NO KEY UPDATE OF c", ""),
    ),
    Guard(
        "a task that ends while the turn before is committed does not begin again",
        ("tests/engine/test_laws.py::test_task_that_ends_while_the_end_of_another_is_committed_does_not_begin_again",),
        engine=(Change("worker/dispatch.py", "begin_owned", " or n in ended", ""),),
    ),
    Guard(
        "a workflow whose commit is under way is not lost by a heartbeat",
        ("tests/worker/test_liveness.py::test_a_workflow_whose_commit_is_under_way_is_not_lost_by_a_heartbeat",),
        engine=worker("liveness", "_take", " and not self._commits(id)", ""),
    ),
    Guard(
        "a claim that a heartbeat did not find is not relied on for longer",
        ("tests/worker/test_liveness.py::test_a_claim_that_a_heartbeat_did_not_find_is_not_relied_on_for_longer",),
        engine=worker("liveness", "_take", "if answer.fence(id) != workflow.fence:", "if False:"),
    ),
    Guard(
        "tasks of turns that are being committed have their slots",
        ("tests/worker/test_slots.py::test_tasks_of_turns_that_are_being_committed_have_their_slots_already",),
        engine=(Change("worker/slots.py", "capacity", "self.free - reserved if own", "self.free if own"),),
    ),
    Guard(
        "one turn of a workflow in a commit", rule("a_commit_takes_one_turn_of_each_workflow"),
        lite_code("turns", "commit", "len({turn.id for turn in turns}) < len(turns)", "False"),
        pg_code("turns", "commit", "len({turn.id for turn in turns}) < len(turns)", "False"),
    ),
)  # fmt: skip

EVENTS = (
    Guard(
        "an event wakes those who wait", event("an_event_wakes_one_who_sleeps_and_ends_its_wait"),
        lite_code("exchange", "_end_waits", "self.rows.wake(wait.execution_id, now)", "pass"),
        pg_code("exchange", "_end",
            "self.rows.wake((match.wait.execution_id for match in found), now)", "pass"),
    ),
    Guard(
        "who begins to wait looks for what is there",
        event("an_event_that_came_before_the_wait_ends_it_and_the_turn_does_not_park"),
        lite_code("exchange", "match_earlier_events", "while open_ and", "while False and"),
        pg_code("exchange", "match_earlier_events", "while after and", "while False and"),
    ),
    Guard(
        "publishers and waiters lock the type first",
        server("a_wait_that_is_registered_while_an_event_is_published_finds_it",
               "an_event_that_is_published_while_a_wait_is_registered_ends_it"),
        postgres=pg_code("exchange", "__init__", 'dict(self.db.batch("lock_types", locks))',
            '{lock["type"]: 10 for lock in locks}'),
    ),
    Guard(
        "a wait ends once",
        server("an_event_goes_to_the_next_wait_when_the_first_is_cancelled_meanwhile"),
        postgres=pg_code("exchange", "_end", "raise AgainError", "pass"),
    ),
    Guard(
        "the same event twice is one", event("the_same_event_twice_is_one"),
        lite("insert_event", "ON CONFLICT (id) DO NOTHING", ""),
        pg("insert_events", "ON CONFLICT (id) DO NOTHING ", ""),
    ),
    Guard(
        "what an event starts is started with it",
        trigger("a_publisher_that_dies_has_published_wholly_or_not_at_all"),
        lite_code("exchange", "publish", "self._trigger(new, sender.name if sender else None, now)",
            "pass"),
        pg_code("exchange", "publish", "self._trigger(new, publishers, now)", "pass"),
    ),
    Guard(
        "an event that was forgotten starts nothing again",
        trigger("an_event_that_was_forgotten_does_not_start_a_workflow_again"),
        engine=(Change("store/triggers.py", "_execution", 'key=f"event:{event.id}"', "key=None"),),
    ),
    Guard(
        "what an event starts lives from after it",
        trigger("a_started_workflow_waits_for_another_event_than_its_own"),
        engine=(Change("store/triggers.py", "_execution", "event.published_at - now + 1",
            "event.published_at - now"),),
    ),
    Guard(
        "a workflow is started by what it names now",
        trigger("what_starts_a_workflow_is_what_was_registered_last"),
        lite_code("definitions", "_set_triggers",
            ('self.db.all("forget_triggers", {"names": json.dumps(list(last)), "triggers": '
                'triggers})'),
            "pass"),
        pg_code("definitions", "_set_triggers",
            ('self.db.do("forget_triggers", names=[d.name for d in last], type=types, '
                    'workflow=workflows)'),
            "pass"),
    ),
    Guard(
        "an event that somebody has taken is not forgotten",
        event("an_event_that_somebody_has_taken_is_kept_until_its_end"),
        (Change("store/sqlite/events.sql", "old_events",
                (" AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id AND "
                        "w.settled = 0)"), ""),),
        (Change("store/postgres/events.sql", "old_events", "w.event_id = e.id AND NOT w.settled",
            "false"),
         Change("store/postgres/events.sql", "delete_events", "w.event_id = e.id AND NOT w.settled",
             "false")),
    ),
    Guard(
        "whoever forgets events locks their types",
        server("an_event_that_is_taken_while_it_is_to_be_forgotten_stays"),
        postgres=pg_code("maintenance", "_prune_events", 'self.db.do("hold_types", types=types)',
            "pass"),
    ),
    Guard(
        "whoever terminates takes the turn and raises the fence",
        terminate("an_owner_that_goes_on_without_looking_at_its_row_is_stopped"),
        postgres=(
            Change("store/postgres/executions.py", "_end_at_once",
                'self.db.do("skip_turn", ids=list(workflows))', "pass"),
            *pg("raise_context_fences", "fence = nextval('fences')", "fence = fence"),
        ),
    ),
    Guard(
        "what is terminated has no row left",
        terminate("an_execution_and_everything_below_it_ends_at_once"),
        (Change("store/sqlite/operating.sql", "delete_ended_ready", "DELETE FROM ready WHERE ",
            "DELETE FROM ready WHERE 0 AND "),),
        (Change("store/postgres/operating.sql", "delete_ended_ready", "r.id = ANY(%(ids)s::text[])",
            "false"),),
    ),
    Guard(
        "a claim on what is terminated is gone",
        terminate("a_turn_that_was_computed_before_is_lost"),
        lite_code("executions", "_terminate",
            'for id in workflows:\n            self.db.all("delete_ready", id)', "pass"),
    ),
    Guard(
        "children that are made meanwhile are terminated, too",
        server("a_child_that_a_turn_makes_while_its_parent_is_terminated_ends_too"),
        postgres=(Change("store/postgres/operating.sql", "mark_terminated", "ORDER BY x.id",
            "WHERE false"),),
    ),
    Guard(
        "a family that is being ended does not grow",
        family("a_family_that_is_being_ended_does_not_grow"),
        lite_code("flush", "_refusals", "if member.terminated:", "if False:"),
        pg_code("flush", "_owns", " and not self.known[item.id].terminated", ""),
    ),
    Guard(
        "below a mark nothing is written that others see",
        family("an_owner_in_a_family_that_is_being_ended_only_takes_steps"),
        lite_code("flush", "commit_turns", "turn for turn in owned if not is_light(turn)",
            'turn for turn in owned if turn.end != "own" or turn.starts'),
        pg_code("flush", "_owns", " and not self.known[item.id].terminated", ""),
    ),
    Guard(
        "terminate leaves a mark for what it does not end itself",
        family("whoever_comes_ends_what_is_left"),
        (Change("store/sqlite/operating.sql", "mark_terminated", "VALUES (:id, :now)",
            "SELECT :id, :now WHERE 0"),),
        (Change("store/postgres/operating.sql", "mark_terminated", "ORDER BY x.id", "WHERE false"),
            ),
    ),
    Guard(
        "services end what is left below what was terminated",
        family("whoever_comes_ends_what_is_left"),
        engine=(Change("store/interfaces/store.py", "recover", "if due.terminated else ()",
            "if False else ()"),),
    ),
    Guard(
        "the mark stays while anything below it lives", family("whoever_comes_ends_what_is_left"),
        lite_code("executions", "end_terminated", "if not tasks and not workflows:", "if True:"),
        (Change("store/postgres/executions.py", "end_terminated", "if not tasks and not workflows:",
            "if True:"),),
    ),
    Guard(
        "a full family starts nothing more", family("a_family_that_is_full_starts_nothing_more"),
        lite_code("flush", "_full", "if started is not None and started > limits.family:",
            "if False:"),
        pg_code("flush", "_count", "> limits[turn.id].family", "> 2**60"),
    ),
    Guard(
        "of a family those who live are counted",
        family("a_family_whose_children_have_ended_goes_on_for_ever"),
        lite_code("flush", "_full", "alive is None or alive[0] > limits.family", "True"),
        pg_code("flush", "_is_full", "not alive or bool(alive[0][0] > limit)", "True"),
    ),
    Guard(
        "one execution has only so many children",
        family("one_execution_has_only_so_many_children_that_live"),
        engine=(Change("store/families.py", "may_have_many", "return bool(turn.starts) and ",
            "return False and "),),
    ),
    Guard(
        "generations are bounded",
        ("tests/vm/test_generations.py::test_workflows_and_branches_end_at_the_limit",),
        engine=vm("operations", "check_generations", 'if m.id.count(".") >= m.limits.generations:',
            "if False:"),
    ),
    Guard(
        "a lease is held by one", rule("a_lease_is_held_by_one_until_it_expires"),
        lite("lease", " OR expires_at <= now_us()", " OR true"),
        pg("lease", " OR leases.expires_at <= now_us()", " OR true"),
    ),
)  # fmt: skip

RESCUE = (
    Guard(
        "taking a claim away raises the context's fence",
        rule("after_a_rescue_the_old_owner_is_refused_and_the_new_one_is_not"),
        lite("raise_context_fence", "SET fence = ?", "SET fence = min(fence, ?)"),
        pg("raise_context_fences", "SET fence = nextval('fences')",
            "SET fence = least(fence, nextval('fences'))"),
    ),
    Guard(
        "rescue never takes what has not expired",
        rule("only_expired_claims_and_those_of_dead_workers_are_rescued"),
        lite("expired", "claim_expires_at < now_us()", "claim_expires_at - 100000000 < now_us()"),
        pg("expired", "r.claim_expires_at < now_us()", "r.claim_expires_at - 100000000 < now_us()")
        + pg_code("maintenance", "_expired", "row.claim_expires_at < now",
            "row.claim_expires_at - 100000000 < now"),
    ),
    Guard(
        "rescue repeats its condition under the lock: expiry",
        server("a_rescuer_with_an_old_list_leaves_what_was_extended_or_claimed_anew_alone"),
        postgres=pg_code("maintenance", "_expired", "row.claim_expires_at < now", "True"),
    ),
    Guard(
        "rescue repeats its condition under the lock: fence",
        server("a_rescuer_with_an_old_list_leaves_what_was_extended_or_claimed_anew_alone"),
        postgres=pg_code("maintenance", "_rescue", " if row.fence == found[id].fence", ""),
    ),
    Guard(
        "rescue repeats its condition under the lock: beats",
        server("a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile"),
        postgres=pg("dead_workers", " AND beat_at + dead_after_us < %(now)s", " AND %(now)s > 0"),
    ),
    Guard(
        "rescue reads the beats after the lock",
        server("a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile"),
        postgres=pg_code("maintenance", "_rescue", "self._dead(claimed, now) if dead else set()",
            "{row.claimed_by for row in claimed}"),
    ),
    Guard(
        "rescue waits for nobody",
        server("a_rescuer_leaves_what_others_have_locked_for_the_next_time"),
        postgres=pg("lock_free", " SKIP LOCKED", ""),
    ),
    Guard(
        "rescue locks what it takes",
        server("a_rescuer_leaves_what_others_have_locked_for_the_next_time"),
        postgres=pg("lock_free", " FOR UPDATE SKIP LOCKED", ""),
    ),
    Guard(
        "rescue locks the parents of what fails first",
        server("a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile"),
        postgres=pg_code("maintenance", "_rescue", "self.rows.lock(parents)", "pass"),
    ),
    Guard(
        "services do not wait long for a lock",
        server("a_service_does_not_wait_long_and_keeps_its_session"),
        postgres=pg_code("connection", "hasten",
            "self.set(\"lock_timeout\", IMPATIENT, local=True)", "pass"),
    ),
    Guard(
        "a worker without a beat is not robbed",
        peers("a_worker_without_a_row_is_judged_by_its_claims_alone"),
        lite("expired", "r.claimed_by IN (SELECT", ":dead AND r.claimed_by NOT IN (SELECT"),
        pg("expired", "OR r.claimed_by = ANY(", "OR %(dead)s::bool AND r.claimed_by <> ALL(")
        + pg_code("maintenance", "_rescue", "self._dead(claimed, now) if dead else set()",
            "{row.claimed_by for row in claimed}"),
    ),
    Guard(
        "a worker is dead by its own time", peers("a_worker_is_dead_when_it_says_so_whoever_asks"),
        lite("expired", "h.beat_at + h.dead_after_us <", "h.beat_at + 3000000 <"),
        pg("expired", "h.beat_at + h.dead_after_us <", "h.beat_at + 3000000 <")
        + pg("dead_workers", "beat_at + dead_after_us <", "beat_at + 3000000 <"),
    ),
    Guard(
        "a look misses no dead worker", peers("recovering_rescues_and_ends_cancelled_tasks"),
        lite("maintenance_due", "OR r.claimed_by IN", "OR false AND r.claimed_by IN"),
        pg("maintenance_due", "OR r.claimed_by =", "OR false AND r.claimed_by ="),
    ),
    Guard(
        "a worker with claims is not forgotten",
        peers("workers_of_long_ago_are_forgotten_unless_they_have_claims"),
        lite("forget_workers", "r.claimed_by = h.worker_id AND r.state = 1", "false"),
        pg("forget_workers", "r.claimed_by = h.worker_id AND r.state = 1", "false"),
    ),
    Guard(
        "nothing of a paused queue is claimed",
        peers("nothing_of_a_paused_queue_is_claimed_until_it_is_resumed"),
        lite("open_queues", "WHERE NOT EXISTS (SELECT 1 FROM queues p WHERE p.name = q.value)", ""),
        pg("claim", "WHERE NOT EXISTS (SELECT 1 FROM queues p WHERE p.name = x.queue)", ""),
    ),
    Guard(
        "what has begun is not held by a pause: release",
        peers("a_workflow_whose_claim_is_given_back_is_held_by_a_pause_only_if_it_has_not_begun"),
        lite("release", "THEN 'system' ELSE queue END", "THEN queue ELSE queue END"),
        pg("release", "THEN 'system' ELSE queue END", "THEN queue ELSE queue END"),
    ),
    Guard(
        "what has begun is not held by a pause: rescue",
        peers("a_workflow_whose_claim_is_given_back_is_held_by_a_pause_only_if_it_has_not_begun"),
        lite("rescue_workflow", "THEN 'system' ELSE queue END", "THEN queue ELSE queue END"),
        pg("rescue_workflows", "THEN 'system' ELSE r.queue END", "THEN r.queue ELSE r.queue END"),
    ),
    Guard(
        "the resumes cannot be paused", peers("the_queue_of_resumes_cannot_be_paused"),
        engine=(Change("store/interfaces/workers.py", "refuse_system",
            "paused and queue == SYSTEM_QUEUE", "False"),),
    ),
    Guard(
        "declarations are locked in one order",
        server("workers_that_declare_at_once_lock_in_the_order_of_names"),
        postgres=pg("declare", "ORDER BY x.name", "ORDER BY x.name DESC"),
    ),
    Guard(
        "the claims of dead workers are taken",
        rule("only_expired_claims_and_those_of_dead_workers_are_rescued"),
        lite("expired", "OR r.claimed_by IN", "OR false AND r.claimed_by IN"),
        pg("expired", "OR r.claimed_by =", "OR false AND r.claimed_by ="),
    ),
    Guard(
        "attempts are counted in the claim",
        rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite("claim_rows", "attempt = r.attempt + 1", "attempt = r.attempt"),
        pg("claim", "attempt = attempt + 1", "attempt = attempt"),
    ),
    Guard(
        "a release gives the attempt back",
        rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("release", ", attempt = attempt - (kind = 1)", ""),
        pg("release", ", attempt = attempt - (kind = 1)::int", ""),
    ),
    Guard(
        "an attempt that does not count is given back",
        rule("an_attempt_that_does_not_count_is_given_back"),
        lite("delay_task", "attempt = attempt - :back", "attempt = attempt - 0 * :back"),
        verdict("end_of_attempt", "attempt - (not end.counts)", "attempt"),
    ),
    Guard(
        "a task that kills its workers is not tried again",
        rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        *[verdict("rescued_task", "if is_given_up(crashes, crash_limit)", "if False")] * 2,
    ),
    Guard(
        "what failed by itself is not taken for a crash",
        rule("a_task_that_failed_by_itself_is_not_told_to_have_killed_its_workers"),
        lite_code("maintenance", "_rescue_task", "rescued_task(crashes, crash_limit)",
            "rescued_task(attempt, crash_limit)"),
        pg_code("maintenance", "_rescue_tasks", "rescued_task(row.crashes + 1, crash_limit)",
            "rescued_task(row.attempt, crash_limit)"),
    ),
    Guard(
        "the crashes of a task are counted",
        rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite("rescue_task", "crashes = crashes + 1", "crashes = crashes"),
        pg("rescue_tasks", "crashes = crashes + 1", "crashes = crashes"),
    ),
    Guard(
        "crashes are counted",
        rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        lite("rescue_workflow", "THEN crashes + 1", "THEN crashes"),
        pg("rescue_workflows", "THEN crashes + 1", "THEN crashes"),
    ),
    Guard(
        "crashes are counted for each turn alone",
        rule("crashes_of_different_turns_are_not_added_up"),
        lite("rescue_workflow", "ELSE 1 END", "ELSE crashes + 1 END"),
        pg("rescue_workflows", "ELSE 1 END", "ELSE crashes + 1 END"),
    ),
    Guard(
        "a crash loop is stopped",
        rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        *[verdict("rescued_workflow", "if is_given_up(crashes, crash_limit)", "if False")] * 2,
    ),
    Guard(
        "a crash loop ends with a turn of its own",
        rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        (Change("store/sqlite/operating.sql", "skip_turn", "SET seq = seq + 1", "SET seq = seq"),),
        pg("skip_turn", "SET seq = seq + 1", "SET seq = seq"),
    ),
)  # fmt: skip

ENDS = (
    Guard(
        "a new database file is private",
        ("tests/store/test_private_files.py::test_a_new_database_and_its_companions_are_private",),
        engine=(Change("store/sqlite/session.py", "_opened", "if create:", "if False:"),),
    ),
    Guard(
        "a terminal is told nothing by what others wrote",
        ("tests/cli/test_hostile.py::test_nothing_evil_is_printed",),
        engine=(Change("cli/output/__init__.py", "shown", "out = [visible(first, KEPT_CONTROLS)]", "out = [first]"),),
    ),
    Guard(
        "JSON keeps its value", ("tests/cli/test_hostile.py::test_json_has_the_value_itself",),
        engine=(Change("cli/output/documents.py", "print_json", "text = escaped_json(text)", "pass"),),
    ),
    Guard(
        "a line of a message is not a line of ours",
        ("tests/cli/test_hostile.py::test_nothing_evil_is_printed",),
        engine=(Change("printable.py", "indented", "{margin}{visible(line)}", "{visible(line)}"),),
    ),
    Guard(
        "a claim alone changes nothing that people read",
        tuple(f"tests/app/test_looking.py::test_{name}" for name in (
            "nothing_that_people_read_changes_while_a_worker_merely_looks",
            "a_child_that_is_looked_at_is_seen_as_it_was",
        )),
        lite("execution",
            " AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null')", ""),
        pg("execution",
            " AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null')", ""),
    ),
    Guard(
        "a claim alone sends nothing to those who follow",
        ("tests/app/test_looking.py::test_nothing_that_people_read_changes_while_a_worker_merely_looks",),
        lite("stamps",
            " AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null')", ""),
        pg("stamps", " AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null')",
            ""),
    ),
    Guard(
        "a look is no attempt",
        ("tests/app/test_looking.py::test_the_attempt_of_a_workflow_is_not_how_often_it_was_looked_at",),
        lite("execution", "CASE WHEN e.type = 1 THEN coalesce(r.attempt, 0) ELSE 0 END",
            "coalesce(r.attempt, 0)"),
        pg("execution", "CASE WHEN e.type = 1 THEN r.attempt END", "r.attempt"),
    ),
    Guard(
        "`why` tells a look from a turn",
        ("tests/app/test_looking.py::test_nothing_that_people_read_changes_while_a_worker_merely_looks",),
        engine=(Change("app/explain.py", "due", "return is_due(", "return bool(loaded) or is_due("),
            ),
    ),
    Guard(
        "a start that is there changes nothing", rule("a_start_with_the_same_id_changes_nothing"),
        lite("insert_execution", "ON CONFLICT DO NOTHING", ""),
        pg("start_executions", "ON CONFLICT DO NOTHING RETURNING", "RETURNING"),
    ),
    Guard(
        "nothing starts on a version that is not the current one",
        rule("starts_on_a_version_that_is_not_the_current_one_start_nothing"),
        lite_code("executions", "start_alike",
            "if if_current and self.db.one", "if False and self.db.one"),
        pg("start_alike", "WHERE NOT %(if_current)s::bool", "WHERE true"),
    ),
    Guard(
        "light finish: only under my fence", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", "r.fence = x.fence AND r.wakes", "r.wakes"),
    ),
    Guard(
        "light finish: a resume that came meanwhile is seen", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", " AND r.wakes = x.wakes", ""),
    ),
    Guard(
        "light finish: the same turn does not count twice", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", " AND c.seq = x.seq", ""),
    ),
    Guard(
        "light finish: what has ended does not end again", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", " AND e.status < 5", ""),
    ),
    Guard(
        "light finish: a cancel that came first wins", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", " AND e.cancel_requested_at IS NULL", ""),
    ),
    Guard(
        "light finish: no timer is left behind", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", "AND NOT EXISTS (SELECT 1 FROM timer_tasks t WHERE t.execution_id = x.id OFFSET 0)", ""),
    ),
    Guard(
        "light finish: no wait for an event is left behind", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", "AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.execution_id = x.id OFFSET 0)", ""),
    ),
    Guard(
        "light finish: no open approval is left behind", (FAST + "light_finish_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_finishes", "AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.execution_id = x.id AND a.status IS NULL OFFSET 0)", ""),
    ),
    Guard(
        "light finish: nobody awaits it", (FAST + "last_turn_of_a_workflow_that_leaves_nothing_behind_is_light",),
        engine=(Change("store/light_turns.py", "is_light_finish", " and is_root(turn.id)", ""),),
    ),
    Guard(
        "light finish: it has completed", (FAST + "last_turn_of_a_workflow_that_leaves_nothing_behind_is_light",),
        engine=(Change("store/light_turns.py", "is_light_finish", " and turn.status == COMPLETED", ""),),
    ),
    Guard(
        "light finish: its locks and those of ends are taken in one pass",
        (FAST + "ends_and_finishes_are_not_locked_one_after_the_other",),
        engine=(Change("store/postgres/light.py", "of", " and not (commit.finishes and ends)", ""),),
    ),
    Guard(
        "light end: only under my fence", (FAST + "light_end_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_ends", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "light end: what has ended does not end again", (FAST + "light_end_on_postgres_writes_what_the_full_way_writes",),
        postgres=pg("light_ends", " AND e.status < 5", ""),
    ),
    Guard(
        "light end: a cancel that came first counts", (FAST + "what_is_asked_while_a_light_end_on_postgres_waits_counts",),
        postgres=pg("light_ends", "status = CASE WHEN x.stands OR e.cancel_requested_at IS NULL",
            "status = CASE WHEN x.stands OR x.id <> ''"),
    ),
    Guard(
        "light end: it is not tried again, and nobody waits for it",
        (FAST + "end_of_a_task_that_concerns_nobody_else_is_light",),
        engine=(Change("store/light_turns.py", "is_light_end", "end.retry_s is None and ", ""),),
    ),
    Guard(
        "light end: it has no parent to wake",
        (FAST + "end_of_a_task_that_concerns_nobody_else_is_light",),
        engine=(Change("store/light_turns.py", "is_light_end", " and is_root(end.id)", ""),),
    ),
    Guard(
        "ahead: a turn that drew is committed before its task begins",
        (AHEAD + "a_turn_that_has_drawn_is_committed_before_its_task_begins",),
        engine=(Change("engine/planning.py", "_is_repeatable", " and not turn.drew", ""),),
    ),
    Guard(
        "ahead: only a first turn", (AHEAD + "only_the_first_task_begins_before_anything_is_committed",),
        engine=(Change("engine/planning.py", "_is_repeatable", "loaded.seq == 0 and ", ""),),
    ),
    Guard(
        "ahead: what is asked beside the task is committed first",
        (AHEAD + "a_turn_that_is_not_alone_or_may_not_repeat_itself_is_committed_first",),
        engine=(Change("engine/planning.py", "_with_owned", " and is_light(commit)", ""),),
    ),
    Guard(
        "ahead: a cancel that comes later leads nowhere else",
        (AHEAD + "what_is_undone_after_a_death_and_a_timeout_is_undone",),
        engine=(Change("ir/first_turn.py", "first_turn_is_repeatable", "not cleans_up and ", ""),),
    ),
    Guard(
        "ahead: data that are given later lead nowhere else",
        (AHEAD + "a_turn_that_is_not_alone_or_may_not_repeat_itself_is_committed_first",),
        engine=(Change("ir/first_turn.py", "first_turn_is_repeatable", '"ctx" in', '"" in'),),
    ),
    Guard(
        "ahead: after a death, the task goes through the queue",
        (AHEAD + "a_task_that_kills_its_workers_kills_no_more_than_any_other",),
        engine=(Change("engine/planning.py", "_going_on", "if at.crashes and planned.can_wait:", "if at.crashes > 99:"),),
    ),
    Guard(
        "ahead: what cannot have begun is not blamed for a death",
        (AHEAD + "a_death_is_counted_only_for_a_task_that_may_have_begun",),
        engine=(Change("engine/planning.py", "_going_on", "at.crashes and planned.can_wait", "at.crashes"),),
    ),
    Guard(
        "ahead: a task that has begun takes one slot", (AHEAD + "a_task_that_has_begun_takes_one_slot",),
        engine=(Change("worker/turns.py", "_go_ahead", "planned.replace(slots=0)", "planned"),),
    ),
    Guard(
        "ahead: what was committed before a bug is not sent again",
        (AHEAD + "what_was_committed_before_a_bug_is_not_sent_again",),
        engine=(Change("worker/liveness.py", "reconcile", "if workflow.planned is not None:", "if workflow.planned is False:"),),
    ),
    Guard(
        "ahead: ready rows are locked before contexts",
        (FAST + "ready_rows_are_locked_before_the_contexts_of_first_turns",),
        engine=(Change("store/postgres/light.py", "statements", "if self.firsts:", "if not self.firsts:"),),
    ),
    Guard(
        "ahead: a death before the commit counts",
        (AHEAD + "a_task_that_kills_its_workers_kills_no_more_than_any_other",),
        engine=(Change("engine/planning.py", "_queued", "command, self.deaths.get(n, 0)", "command"),),
    ),
    Guard(
        "ahead: whatever is committed next takes the first turn along",
        (AHEAD + "the_result_is_that_of_turns_that_are_committed_one_by_one",),
        sqlite=lite_code("flush", "commit_turns", "if turn.first is not None]", "if turn.first is not None and not turn]"),
        postgres=pg_code("flush", "__init__", "if firsts := first_turns(turns):", "if not (firsts := first_turns(turns)):"),
    ),
    Guard(
        "ahead: the first turn of a light step is committed before it",
        (AHEAD + "the_result_is_that_of_turns_that_are_committed_one_by_one",),
        postgres=pg_code("light", "statements", "if self.firsts:", "if not self.firsts:"),
    ),
    Guard(
        "ahead: the database is not read before the commit",
        (AHEAD + "what_is_heard_meanwhile_is_read_after_the_commit",),
        engine=(Change("worker/loading.py", "load_stale", "each.is_as_stored", "each.planned is None"),),
    ),
    Guard(
        "ahead: what became of the commit is unknown, so the database counts",
        (AHEAD + "the_first_turn_is_not_lost_when_nobody_knows_of_the_commit",),
        engine=(Change("worker/ownership.py", "load_anew", "workflow.ahead is not None", "workflow.ahead is False"),),
    ),
    Guard(
        "what has ended does not end again", rule("a_task_that_has_ended_stays_as_it_ended"),
        lite("finish", " AND e.status < 5", ""),
        (*pg("finish", " AND e.status < 5", ""),
         *pg_code("flush", "_end_tasks", "if not has_ended(self.known[end.id].status)", "if end.id")),
    ),
    Guard(
        "the attempts of what has ended stay", rule("a_task_that_has_ended_stays_as_it_ended"),
        lite("note_attempt", " AND status < 5", ""), pg("note_attempts", " AND e.status < 5", ""),
    ),
    Guard(
        "a workflow that has ended takes no turn", rule("a_workflow_that_has_ended_takes_no_turn"),
        lite_code("flush", "_owns", " and not has_ended(member.status)", ""),
        pg_code("flush", "_advance", " and not has_ended(self.known[turn.id].status)", ""),
    ),
    Guard(
        "what a blocked workflow started goes on",
        rule("a_blocked_workflow_keeps_its_reason_and_its_children_go_on"),
        *[(Change("store/lifecycle.py", "is_orderly", "status in ORDERLY", "status == COMPLETED"),
            )] * 2,
    ),
    Guard(
        "what a blocked workflow started here is not stopped",
        ("tests/worker/test_steps.py::test_what_a_blocked_execution_started_runs_to_its_end",),
        engine=worker("turns", "_cancel_here", "turn.status not in ORDERLY",
            "turn.status != COMPLETED"),
    ),
    Guard(
        "a blocked child decides an `all`", rule("a_blocked_child_decides_all_of_many"),
        lite("failed_child", "(6, 7, 8)", "(6, 7)"), pg("undecided", "(6, 7, 8)", "(6, 7)"),
    ),
    Guard(
        "what a resume gives is stored, if nothing else happens",
        ("tests/vm/test_resume_data.py::test_a_turn_that_only_takes_resume_data_is_a_change_to_be_stored",),
        engine=(Change("vm/interpreter.py", "_suspended",
            "unchanged and machine.inputs.resume_data is None", "unchanged"),),
    ),
    Guard(
        "a cancel comes too late for what has ended",
        rule("an_acknowledged_cancel_wins_over_the_result"),
        lite_code("rows", "cancel", " or has_ended(known.status)", ""),
        pg("flag_cancel", " AND status < 5", ""),
    ),
    Guard(
        "a pause comes too late for what has ended",
        rule("pausing_wakes_and_is_told_to_whoever_loads"),
        *(((Change(f"store/{kind}/approvals.sql", "pause", " AND status < 5", ""),
            )) for kind in ("sqlite", "postgres")),
    ),
    Guard(
        "a signal comes too late for what has ended", rule("what_becomes_of_a_signal"),
        *[verdict("received", "if has_ended(status):", "if False:")] * 2,
    ),
    Guard(
        "a signal of a turn comes too late for what has ended",
        rule("a_signal_of_a_turn_to_one_that_has_ended_is_dropped"),
        lite_code("exchange", "deliver", "or has_ended(known.status)", ""),
        pg("insert_signals", " AND e.status < 5", ""),
    ),
    Guard(
        "an acknowledged cancel wins over the result",
        rule("an_acknowledged_cancel_wins_over_the_result"),
        *[verdict("end_of_turn", "if cancelled and turn.status != CANCELLED:", "if False:")] * 2,
    ),
    Guard(
        "a cancelled task is not tried again",
        rule("a_cancelled_task_that_runs_may_still_complete_but_is_not_tried_again"),
        *[verdict("end_of_attempt", "is not None and not cancelled", "is not None")] * 2,
    ),
    Guard(
        "a cancelled task without a result is cancelled",
        lifecycle("one_that_was_asked_to_end_is_cancelled_unless_its_task_brings_a_result"),
        *[verdict("end_of_attempt", "if cancelled and end.status != COMPLETED:", "if False:")] * 2,
    ),
    Guard(
        "a task that is to be tried again is", lifecycle("every_transition_is_taken"),
        *[verdict("end_of_attempt", "end.retry_s is not None and not cancelled", "False")] * 2,
    ),
    Guard(
        "a signal is consumed once", rule("a_signal_can_be_consumed_only_once"),
        lite("consume_signal", " AND consumed_seq IS NULL", ""),
        pg("consume_signals", " AND coalesce(s.consumed_seq, 0) = 0", ""),
    ),
    Guard(
        "a signal that was consumed is not read again",
        rule("signals_are_read_in_the_order_of_sending_until_they_are_consumed"),
        lite("mail", "WHERE s.consumed_seq IS NULL", ""),
        pg("mail", " AND consumed_seq IS NULL", ""),
    ),
    Guard(
        "signals are numbered by one sender at a time",
        server("signals_sent_at_once_are_numbered_without_gaps"),
        postgres=pg_code("messages", "signal", "self.rows.wake_live([id])", "self.db.now()"),
    ),
    Guard(
        "a timer never fires early", rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_timers", "fire_at <= ?", "fire_at <= ? + 1000000"),
        pg("due_timers", "fire_at <= %(now)s", "fire_at <= %(now)s + 1000000"),
    ),
    Guard(
        "a timer fires once", rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_timers", "fired_at IS NULL AND ", ""),
        pg("due_timers", "fired_at IS NULL AND ", "") + pg("fire_timers", " AND t.fired_at IS NULL",
            ""),
    ),
    Guard(
        "a timer that another has fired is not fired again",
        server("a_timer_that_another_has_fired_is_not_fired_again"),
        postgres=pg("fire_timers", " AND t.fired_at IS NULL", ""),
    ),
    Guard(
        "what is delayed is not freed early",
        rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_ready", "due_at <= ?", "due_at <= ? + 1000000"),
        pg("due_ready", "due_at <= %(now)s", "due_at <= %(now)s + 1000000")
        + pg("free_due", "due_at <= %(now)s", "due_at <= %(now)s + 1000000"),
    ),
    Guard(
        "what was delayed anew meanwhile is not freed",
        server("a_task_that_was_delayed_anew_meanwhile_is_not_freed"),
        postgres=pg("free_due", " AND due_at <= %(now)s", " AND %(now)s > 0"),
    ),
    Guard(
        "a time limit does not strike early",
        rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_timeouts", "timeout_at <= ?", "timeout_at <= ? + 9000000"),
        pg("due_timeouts", "timeout_at <= %(now)s", "timeout_at <= %(now)s + 9000000"),
    ),
    Guard(
        "only what ended long ago is pruned",
        rule("pruning_takes_what_ended_long_ago_with_everything_below_it"),
        lite("old_roots", "finished_at < now_us() - ?", "? > 0"),
        pg("old_roots", "e.finished_at < now_us() - %(age_us)s", "%(age_us)s > 0"),
    ),
    Guard(
        "nothing is pruned while something below it goes on",
        rule("pruning_waits_for_what_goes_on_below"),
        lite("old_roots", "c.finished_at IS NULL", "false"),
        pg("old_roots", "c.status < 5", "false"),
    ),
    Guard(
        "nothing is pruned while something made from it goes on",
        rule("pruning_waits_for_an_execution_that_was_made_from_another"),
        lite("old_roots", "n.finished_at IS NULL", "false"),
        pg("old_roots", "n.status < 5", "false"),
    ),
)  # fmt: skip

WORKER = (
    Guard(
        "an owned body does not begin beyond the deadline",
        law("body_does_not_begin_when_its_claim_may_have_passed_to_another"),
        engine=worker("dispatch", "begin_owned",
            "if not self.ownership.may_begin(workflow.deadline):", "if False:"),
    ),
    Guard(
        "a queued body does not begin beyond the deadline",
        law("body_does_not_begin_when_its_claim_may_have_passed_to_another"),
        engine=worker("dispatch", "begin_claimed",
            "if not self.ownership.may_begin(claimed.deadline):", "if False:"),
    ),
    Guard(
        "no body begins on a worker that may be dead to the others",
        living("body_does_not_begin_when_its_worker_may_be_dead_to_the_others"),
        engine=worker("ownership", "may_begin", "min(deadline, self.alive_until)", "deadline"),
    ),
    Guard(
        "a body that was held up asks again",
        living("whoever_runs_a_body_can_ask_whether_it_may_still_begin"),
        engine=worker("dispatch", "_attempt", "lambda: self.ownership.may_begin(deadline)",
            "lambda: True"),
    ),
    Guard(
        "a worker is trusted from before its beat was sent",
        living("body_does_not_begin_when_its_worker_may_be_dead_to_the_others"),
        engine=worker("liveness", "_take", "ownership.alive_until = answer.sent_at",
            "ownership.alive_until = self.heart.now()"),
    ),
    Guard(
        "a worker that may be dead stops what it runs",
        living("worker_without_heartbeats_stops_what_it_runs_before_it_is_dead_to_the_others"),
        engine=worker("ownership", "lapse", "for id in [*self.workflows, *self.tasks]:",
            "for id in ():"),
    ),
    Guard(
        "a worker that may be dead claims nothing",
        living("worker_without_heartbeats_claims_nothing"),
        engine=worker("claiming", "claim", " or not self.ownership.may_begin()", ""),
    ),
    Guard(
        "a lapse is told before a later beat",
        (HEART + "worker_hears_that_it_lapsed_before_it_hears_of_a_later_beat",),
        engine=heart("lapse", "self._answers.put(None)", "pass"),
    ),
    Guard(
        "claims are prolonged in time",
        (HEART + "claims_are_prolonged_when_a_third_of_their_time_has_passed",),
        engine=heart("run_once", "claims if prolong else {}", "{}"),
    ),
    Guard(
        "nobody is taken for dead after an outage of all",
        (HEART + "nobody_is_settled_while_a_beat_is_overdue",),
        engine=heart("run_once", " or sent_at - self._sent_at > GAP * self.settings.between_s", ""),
    ),
    Guard(
        "a claim that nobody knows of is given back",
        living("claim_that_its_worker_knows_nothing_of_is_given_back"),
        engine=worker("liveness", "_give_back_unknown", "if again:", "if False:"),
    ),
    Guard(
        "owned tasks of a paused queue are not run",
        living("chain_of_owned_tasks_stops_when_their_queue_is_paused"),
        engine=worker("slots", "capacity", " - self.paused", ""),
    ),
    Guard(
        "suspects begin after the turns that came with them",
        living("turn_is_committed_before_a_task_begins_that_was_there_when_workers_died"),
        engine=worker("claiming", "_take_tasks", "if claims[id].crashes:", "if False:"),
    ),
    Guard(
        "suspects have their last chance one by one",
        living("those_that_were_there_when_workers_died_have_their_last_chance_one_by_one"),
        engine=worker("claiming", "_take_tasks", "if id in later:", "if False:"),
    ),
    Guard(
        "the last chance is told from crashes, not from attempts",
        living("those_that_were_there_when_workers_died_have_their_last_chance_one_by_one"),
        engine=worker("quarantine", "put_back", "if claim.crashes >= dangerous]",
            "if claim.attempt > self.settings.crash_limit]"),
    ),
    Guard(
        "the deadline counts from before the claim was sent",
        law("body_does_not_begin_when_its_claim_may_have_passed_to_another"),
        engine=worker("claiming", "claim", "            self.ownership.lose_older(claim.id)\n",
                      ("            self.ownership.lose_older(claim.id)\n            "
                              "deadline = self.ownership.deadline(self.now())\n"))
        + worker("claiming", "_take_tasks", "        if later:\n",
                 "        deadline = self.ownership.deadline(self.now())\n        if later:\n"),
    ),
    Guard(
        "the inputs of a body are committed before it begins",
        law("inputs_of_a_body_are_committed_before_it_begins"),
        engine=worker("turns", "_can_wait", "return planned.can_wait and all(",
                      "return bool(planned.owned) or all("),
    ),
    Guard(
        "a claim without an answer is given back",
        law("claim_without_an_answer_is_given_back_at_once"),
        engine=worker("liveness", "reconcile", "if known.get(id) != fence}", "if False}"),
    ),
    Guard(
        "what is held here is compared with the database after no answer",
        law("claim_without_an_answer_is_given_back_at_once"),
        engine=worker("liveness", "doubts", "self.ownership.unsure or ", ""),
    ),
    Guard(
        "what is held here is compared with the database after anybody's connection was lost",
        law("claim_that_was_lost_unnoticed_is_dropped_after_anybodys_connection_was_lost"),
        engine=worker("liveness", "doubts", "or self.store.era != self._era", ""),
    ),
    Guard(
        "what is sent again is still mine",
        law("turn_is_not_sent_again_with_a_fence_that_another_has_by_now"),
        engine=worker("committer", "_send",
            "turns = [turn for turn in turns if found.claimed.get(turn.id) == turn.fence]", "pass"),
    ),
    Guard(
        "what was lost without notice is dropped",
        law("claim_that_was_lost_unnoticed_is_dropped_after_a_call_without_an_answer"),
        engine=worker("liveness", "reconcile", "if claimed.get(id) != fence:", "if False:"),
    ),
    Guard(
        "what is claimed again was lost before: bodies",
        law("claiming_again_what_was_lost_stops_the_old_body"),
        engine=worker("claiming", "claim", "            self.ownership.lose_older(claim.id)\n", ""),
    ),
    Guard(
        "who loads finds a newer fence and lets go", law("owner_that_finds_a_newer_fence_lets_go"),
        engine=worker("loading", "_take_row", "if row.fence > workflow.fence:", "if False:"),
    ),
    Guard(
        "the row of a workflow that has ended is dropped",
        law("row_of_a_workflow_that_has_ended_is_dropped"),
        engine=worker("loading", "_take_row", "or row.status >= TERMINAL", ""),
    ),
    Guard(
        "a task that has ended is not run", law("task_that_has_ended_is_not_run_again"),
        engine=worker("dispatch", "begin_claimed", "if task.ended:", "if False:"),
    ),
    Guard(
        "what is no longer mine is stopped at the next beat",
        law("claim_that_was_lost_is_dropped_at_the_next_beat"),
        engine=worker("liveness", "_take",
            "if fences.get(id) == fence and answer.fence(id) != fence and", "if False and"),
    ),
    Guard(
        "a cancel stops a body at the next beat",
        law("cancelled_task_that_runs_is_stopped_at_the_next_beat"),
        engine=worker("loop", "_check_on_running", "ownership.cancel_task(id)", "pass"),
    ),
    Guard(
        "a cancel reaches the owner at the next beat",
        law("cancel_stops_the_body_of_an_owned_task_at_the_next_beat"),
        engine=worker("liveness", "_take", "answer.wakes(id) > workflow.wakes", "False"),
    ),
    Guard(
        "an end that is not committed yet is not given back",
        law("end_of_a_task_is_kept_while_a_claim_has_no_answer"),
        engine=worker("liveness", "reconcile", " if id not in ending", ""),
    ),
    Guard(
        "a worker that stops gives back what it holds",
        law("worker_that_stops_gives_everything_back"),
        engine=worker("loop", "give_back", "if claims:", "if False:"),
    ),
    Guard(
        "a cancelled task is not run", law("cancelled_task_that_is_queued_is_not_run"),
        engine=worker("dispatch", "begin_claimed", "if task.cancel_requested:", "if False:"),
    ),
    Guard(
        "after a crash an owned task goes through the queue",
        law("task_that_kills_its_worker_is_quarantined_and_the_others_go_on"),
        engine=worker("turns", "_take_over", "workflow.crashes == 0 and ", ""),
    ),
    Guard(
        "a paused workflow takes no turn",
        law("paused_workflow_takes_no_turn_and_goes_on_when_resumed"),
        engine=worker("turns", "_decide", "if loaded.paused and not loaded.ending:", "if False:"),
    ),
    Guard(
        "a wake during a step is looked at",
        law("pause_stops_a_chain_of_owned_tasks_after_the_one_that_runs"),
        engine=worker("turns", "_go_on", " or answer.wakes != workflow.wakes", ""),
    ),
    Guard(
        "look again: the turn was cut short", law("long_computation_is_cut_into_turns_and_ends"),
        engine=planning("turn", "again = isinstance(turn, Continue) or ", "again = "),
    ),
    Guard(
        "look again: the turn itself ended what it awaits",
        law("child_workflow_that_does_not_exist_is_a_failure_that_can_be_caught"),
        engine=planning("may_have_ended", "if self.refused:", "if False:"),
    ),
    Guard(
        "look again: what is awaited was begun before",
        law("what_was_started_before_and_has_ended_is_found_when_it_is_awaited"),
        engine=planning("may_have_ended", "return older or ", "return "),
    ),
    Guard(
        "look again: the mailbox was not read",
        partly("a_signal_is_found_whose_wake_was_seen_while_others_were_known"),
        engine=planning("may_have_ended", "read is not None and ", "False and "),
    ),
    Guard(
        "a wait that is begun looks into no mailbox that was not read",
        looks("a_signal_is_there_for_the_first_look_after_it_was_acknowledged"),
        engine=awaits("knows", "if has_signals(plan) and not _knows_mail(m, plan):", "if False:"),
    ),
    Guard(
        "a wait that is begun knows the ends of what was begun before it",
        looks("of_two_that_ended_long_ago_the_first_wins_although_the_other_was_just_awaited"),
        engine=awaits("knows", "if m.inputs.asked is None or ", "if True or "),
    ),
    Guard(
        "a builtin is paid for before it is called",
        prices("a_call_that_fails_is_paid_for"),
        engine=vm("expressions", "_call", "machine.charge(price(*values))", "pass"),
    ),
    Guard(
        "a search is paid for by all that it may compare",
        prices("a_search_costs_what_it_may_compare"),
        engine=vm("prices", "search", " if 4 * short >= long else 0", " if places < 2_000 else 0"),
    ),
    Guard(
        "a long key is paid for where it is looked up",
        prices("a_turn_holds_no_more_work_than_it_has_fuel_for_whether_it_succeeds_or_fails"),
        engine=vm("prices", "looked_up", "return characters(value) // LONG", "return 0"),
    ),
    Guard(
        "signals that are gone are not looked at again",
        prices("waits_for_signals_look_at_each_signal_a_few_times"),
        engine=vm("awaits", "_resolve_signal", 'reserved.upto[plan["name"]] = i + 1', "pass"),
    ),
    Guard(
        "a signal that is free again can be taken",
        prices("a_signal_that_a_race_gave_back_goes_to_another_wait"),
        engine=vm("awaits", "intersection_update", "self.upto.clear()", "pass"),
    ),
    Guard(
        "the way to a value is not written out before it is needed",
        prices("reading_json_takes_memory_for_its_values_and_not_for_the_ways_to_them"),
        engine=vm("values", "unstorable", "below.append((inner, (path, step)))",
            'below.append((inner, (path, f"{path}{step}")))'),
    ),
    Guard(
        "a statement is paid for by its length",
        prices("a_long_statement_is_paid_for"),
        engine=vm("statements", "_compiled", "if not work:", "if True:"),
    ),
    Guard(
        "an element of a comprehension is paid for by its length",
        prices("every_element_of_a_comprehension_costs_what_it_evaluates"),
        engine=vm("expressions", "binder", "charge(work)", "charge(1)"),
    ),
    Guard(
        "objects are paid for before they are compared",
        prices("objects_are_paid_for_before_they_are_compared"),
        engine=vm("values", "deep_equal", "charge(1 + 2 * len(a) + sum(map(len, a)) // LONG)",
            "pass"),
    ),
    Guard(
        "waiting for what has ended is not free",
        prices("waiting_again_and_again_for_what_has_ended_is_not_free"),
        engine=awaits("_outcomes", "m.charge(2 * size_of(plan))", "pass"),
    ),
    Guard(
        "a turn whose time is over yields",
        law("a_turn_that_lasts_yields_before_its_fuel_is_spent"),
        engine=vm("interpreter", "_spent_turn", " or self.over()", ""),
    ),
    Guard(
        "ends that the store did not tell are not known",
        partly("ends_that_were_not_read_of_a_group_are_read_when_they_are_awaited"),
        engine=reading("inputs_read", "asked={*read.apart, ",
            "asked={*read.apart, *(n for group in read.groups for n in range_of(group)), "),
    ),
    Guard(
        "tasks without rows decide the group that awaits them",
        partly("tasks_that_end_together_with_a_wake_decide_their_group"),
        engine=worker("turns", "_inputs", 'changes["undecided"] = ()', "pass"),
    ),
    Guard(
        "what ended while it was held back does not run",
        partly("what_ended_while_it_was_held_back_holds_nobody_up"),
        lite("nth_unfinished", " AND finished_at IS NULL", ""),
        pg("nth_unfinished", " AND c.finished_at IS NULL", ""),
        awaits("_may_begin", "free -= not gone >> started[upto] & 1", "free -= 1"),
    ),
    Guard(
        "a loop of which not all ends were read looks again",
        partly("a_loop_takes_each_item_once_in_the_order_of_ends"),
        engine=reading("inputs_read", "len(items) == NEXT_ITEMS", "False"),
    ),
    Guard(
        "a loop knows only what was read for it as the first to end",
        partly("an_end_that_was_known_before_is_not_taken_for_the_first"),
        engine=awaits("_knows_next", " and number_at(state, i) in m.inputs.firsts", ""),
    ),
    Guard(
        "a workflow is not kept waiting by the ends of its tasks",
        partly("a_workflow_goes_on_while_its_tasks_end_in_every_round"),
        engine=worker("loading", "_without_deferred", "each.deferred < most", "most"),
    ),
    Guard(
        "a worker does not rest while a workflow is to be loaded",
        partly("a_worker_does_not_rest_before_it_has_looked_at_whom_it_was_woken_for"),
        engine=worker("loop", "rest_s", "each.stale and each.is_as_stored", "False"),
    ),
    Guard(
        "a handler has its inputs for itself",
        ("tests/app/test_values.py::test_what_a_handler_does_to_its_inputs_is_its_own",),
        engine=worker("dispatch", "begin_owned", "unshared(command.inputs)", "command.inputs"),
    ),
    Guard(
        "a process that a handler forks does not decide",
        ("tests/worker/test_quick.py::test_a_process_that_a_handler_forks_never_decides",),
        engine=worker("executor", "_end_if_forked", "os.getpid() != process", "False"),
    ),
    Guard(
        "a loop reads the first to end",
        partly("a_loop_takes_each_item_once_in_the_order_of_ends"),
        lite("next_ended", "ORDER BY ended_at, n", "ORDER BY n"),
        pg("next_ended", "ORDER BY ended_at, n", "ORDER BY n"),
    ),
    Guard(
        "a signal that was consumed is not known any more",
        partly("a_loop_takes_each_signal_once_in_the_order_of_sending"),
        engine=worker("turns", "_take_place", "if turn.consumed:", "if False:"),
    ),
    Guard(
        "a name of which not all signals were read is looked at again",
        partly("a_loop_takes_each_signal_once_in_the_order_of_sending"),
        engine=reading("_names_read", " and found[each.name] < each.limit", ""),
    ),
    Guard(
        "events that came later are looked at",
        event("an_event_that_comes_later_with_an_earlier_time_is_found"),
        engine=(Change("store/events.py", "search_after", "min((published_at, n), (taken_at, 0))",
            "(published_at, n)"),),
    ),
    Guard(
        "events that came after the clock was set back are looked at",
        partly("events_are_found_after_the_clock_was_set_back"),
        lite_code("exchange", "publish",
            "if last is not None and published_at < last - MAX_DISORDER_US:", "if False:"),
        pg("insert_events", "CASE WHEN x.published_at < l.published_at - %(disorder)s",
            "CASE WHEN false"),
    ),
    Guard(
        "only what nothing else can settle is run by the owner",
        law("task_that_may_lose_a_race_goes_through_the_queue"),
        engine=(Change("ir/awaiting.py", "needs_all", 'plan["op"] == "all" and ', ""),),
    ),
)  # fmt: skip

# What the simulation must see by itself. On SQLite the claim in force and the context's fence guard
# each other.
OVER_LIMIT = (
    Guard(
        "over a limit only finally blocks run",
        limited("what_leaves_a_finally_block_over_a_limit_leads_outwards"),
        engine=vm("interpreter", "_run_cleanup",
            "if not cleanup_of(self.program).holds(self.pc):", "if False:"),
    ),
    Guard(
        "a limit that has passed a finally block stays one",
        limited("a_limit_that_has_passed_a_finally_block_is_not_caught_either"),
        engine=vm("statements", "_end_finally", 'if "limit" in pending:', "if False:"),
    ),
    Guard(
        "the await over the limit does not begin",
        limited("the_await_over_the_limit_does_not_begin_and_finally_sees_the_last_result"),
        engine=vm("interpreter", "_give_up",
            "del machine.commands[machine.mark : machine.begun]", "pass"),
    ),
    Guard(
        "what no finally block reads is not kept",
        limited("the_await_over_the_limit_does_not_begin_and_finally_sees_the_last_result"),
        engine=vm("interpreter", "_needed", "if name in needed", "if True"),
    ),
    Guard(
        "what a finally block leads to may be read",
        limited("each_finally_runs_once_wherever_the_state_is_over_the_limit"),
        engine=(Change("ir/cleanup.py", "_ways", "return self.ways_out.get(state, [])",
            "return []"),),
    ),
    Guard(
        "what the handlers around a finally block read is kept",
        limited("each_finally_runs_once_wherever_the_state_is_over_the_limit"),
        engine=(Change("ir/cleanup.py", "_needs", 'inside or handler.kind == "finally"', "False"),),
    ),
    Guard(
        "a finally block that meets the limit is completed",
        limited("each_finally_runs_once_wherever_the_state_is_over_the_limit"),
        engine=vm("interpreter", "_over_limit",
            "machine.limit is None and cleanup_of(self.program).holds(self.pc)", "False"),
    ),
    Guard(
        "cleaning up has a limit, too",
        limited("a_finally_that_grows_the_state_again_ends_at_once"),
        engine=(Change("vm/state_size.py", "check_state", "limit = limits.state_bytes(over)",
            "limit = 10**12 if over else limits.state_bytes(over)"),),
    ),
    Guard(
        "a refused turn is taken again, and runs finally",
        saga("a_saga_over_a_limit_refunds_all_that_it_has_charged"),
        engine=(Change("worker/turns.py", "refuse",
            "if ended is None or turn.cleanup or workflow.refused:", "if True:"),),
    ),
    Guard(
        "what ended before a refused turn is stored",
        saga("a_saga_over_a_limit_refunds_all_that_it_has_charged"),
        engine=(Change("engine/planning.py", "refused", '"done": ended.done', '"done": ()'),),
    ),
    Guard(
        "finally blocks have room to start something",
        saga("a_finally_may_start_something_where_nothing_else_may"),
        engine=(Change("store/families.py", "room", "if not turn.cleanup:", "if True:"),),
    ),
    Guard(
        "the room for finally blocks has an end",
        saga("a_finally_that_starts_too_much_itself_ends_at_once"),
        engine=(Change("store/families.py", "room", "more = limits.fan_out", "more = 2**40"),),
    ),
    Guard(
        "what has cleaned up is not retried from there",
        saga("what_is_over_a_limit_and_cleaned_up_is_retried_only_from_the_start"),
        engine=(Change("engine/retry_plan.py", "_snapshot",
            "(snapshot.cancelled or snapshot.limit)", "snapshot.cancelled"),),
    ),
)  # fmt: skip

SIMULATED = (
    Guard(
        "simulation: the turns of an older owner count", (SIMULATION,),
        engine=lite_code("flush", "_owns", " and member.fence == turn.fence", "")
        + lite("advance_context", " AND c.fence <= x.fence", ""),
    ),
    Guard(
        "simulation: a poisonous turn is tried for ever", (SIMULATION,),
        engine=verdict("rescued_workflow", "if is_given_up(crashes, crash_limit)", "if False"),
    ),
    Guard(
        "simulation: a poisonous task is tried for ever", (SIMULATION,),
        engine=verdict("rescued_task", "if is_given_up(crashes, crash_limit)", "if False"),
    ),
)  # fmt: skip

ACCESS = (
    Guard(
        "one at a time adds to the audit",
        ("tests/store/test_audit.py::test_many_writers_at_once_make_one_chain",),
        postgres=chain("postgres", "WHERE one = 1 FOR UPDATE", "WHERE one = 1"),
    ),
    Guard(
        "rows of the audit are only ever added",
        ("tests/store/test_audit.py::test_rows_cannot_be_changed_or_deleted",),
        sqlite=migrated("sqlite", "BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT,",
            "BEFORE UPDATE ON audit BEGIN SELECT iif(1,"),
        postgres=migrated("postgres", "BEFORE UPDATE OR DELETE OR TRUNCATE ON audit ",
            "BEFORE UPDATE OR DELETE ON audit "),
    ),
    Guard(
        "a row of the audit has the next number",
        audit("a_row_that_does_not_follow_the_head_is_refused_and_later_acts_are_not"),
        sqlite=chain("sqlite", " AND n = old.n + 1", ""),
    ),
    Guard(
        "a row of the audit has the hash of the one before",
        audit("a_row_that_does_not_follow_the_head_is_refused_and_later_acts_are_not"),
        sqlite=chain("sqlite", " AND prev = old.hash", ""),
        postgres=chain("postgres", " OR given.prev <> new.prev OR given.hash <> new.hash THEN",
            " THEN"),
    ),
    Guard(
        "a row of the audit that says another number is refused",
        audit("what_is_given_of_a_row_must_be_right"),
        engine=chain("postgres", "IF given.n <> new.n OR given.prev", "IF given.prev"),
    ),
    Guard(
        "a row of the audit that says another hash is refused",
        audit("what_is_given_of_a_row_must_be_right"),
        engine=chain("postgres", " OR given.hash <> new.hash THEN", " THEN"),
    ),
    Guard(
        "a row of the audit moves the head",
        audit("whoever_adds_a_row_that_follows_the_head_moves_it"),
        sqlite=chain("sqlite", "BEGIN UPDATE audit_head SET n = new.n, hash = new.hash; END",
            "BEGIN SELECT 1; END"),
        postgres=chain("postgres",
            "UPDATE audit_head SET n = new.n, hash = new.hash WHERE one = 1;", ""),
    ),
    Guard(
        "the head of the audit moves with its rows only",
        audit("the_head_moves_with_its_rows_only"),
        sqlite=chain("sqlite", "WHEN NOT EXISTS (SELECT", "WHEN 0 AND NOT EXISTS (SELECT"),
        postgres=chain("postgres", "IF pg_trigger_depth() < 2 OR NOT", "IF NOT"),
    ),
    Guard(
        "the head of the audit moves with the privileges of its owner only",
        audit("no_trick_moves_the_head_without_a_row_or_adds_a_row_without_the_head"),
        engine=chain("postgres",
            (" OR NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = "
                "tg_relid), 'USAGE')"), ""),
    ),
    Guard(
        "what adds to the audit is for its table alone",
        audit("no_trick_moves_the_head_without_a_row_or_adds_a_row_without_the_head"),
        engine=chain("postgres", "IF tg_relid <> 'audit'::regclass THEN", "IF false THEN"),
    ),
    Guard(
        "what adds to the audit takes no temporary table for its own",
        audit("no_trick_moves_the_head_without_a_row_or_adds_a_row_without_the_head"),
        engine=chain("postgres", "SET search_path = %I, pg_temp'", "SET search_path = %I'"),
    ),
    Guard(
        "a row that is in the way does not let the head move alone",
        audit("a_row_that_was_put_after_the_head_before_blocks_the_chain_and_is_told"),
        postgres=chain("postgres", "IF EXISTS (SELECT 1 FROM audit WHERE n = new.n) THEN",
            "IF false THEN"),
    ),
    Guard(
        "the audit is read from its lowest row on",
        audit("rows_that_were_put_before_the_first_are_found_whichever_head_was_kept"),
        engine=(Change("store/doctor.py", "verified", "LOWEST if after is None",
            "1 if after is None"),),
    ),
    Guard(
        "a token keeps its roles until the decision is committed",
        ("tests/store/test_tokens.py::test_who_decides_keeps_the_roles_until_the_commit_and_a_revocation_waits_for_it",),
        postgres=access("postgres", "share_tokens", " FOR SHARE", ""),
    ),
    Guard(
        "an act with a token is allowed when it is done",
        acting("nothing_is_done_with_a_token_that_is_not_valid_any_more"),
        sqlite=(Change("store/sqlite/auditing.py", "record", "self.authorise(actor, now)", "pass"),
            ),
        postgres=(Change("store/postgres/auditing.py", "record", "self.authorise(actor)", "pass"),),
    ),
    Guard(
        "a start with a token is allowed when it is done",
        acting("nothing_is_done_with_a_token_that_is_not_valid_any_more"),
        sqlite=lite_code("executions", "start", "if any(found.created for found in started):",
            "if False:"),
        postgres=pg_code("rows", "_authorise",
            "if actor is not None and actor.token is not None:", "if False:"),
    ),
    Guard(
        "starts that are alike with a token are allowed when they are done",
        acting("nothing_is_done_with_a_token_that_is_not_valid_any_more"),
        sqlite=lite_code("executions", "start_alike", "self.auditor.authorise(actor, now)", "pass"),
        postgres=pg_code("rows", "start_alike", "_authorise(actor, token)", "pass"),
    ),
    Guard(
        "a registration with a token is allowed when it is done",
        acting("nothing_is_done_with_a_token_that_is_not_valid_any_more"),
        sqlite=lite_code("definitions", "register",
            "self.auditor.authorise(actor, self.db.clock())", "pass"),
        postgres=pg_code("definitions", "register", "self.auditor.authorise(actor)", "pass"),
    ),
    Guard(
        "a token that is not valid any more allows nothing",
        acting("nothing_is_done_with_a_token_that_is_not_valid_any_more"),
        engine=(Change("store/access.py", "authorise",
            'if token is None or token.status != "active":', "if token is None:"),),
    ),
    Guard(
        "a token that has lost a role does nothing",
        acting("nothing_is_done_with_a_token_that_has_lost_a_role"),
        engine=(Change("store/access.py", "authorise", "- {*token.roles}",
            "- {*(actor.token_roles or ())}"),),
    ),
    Guard(
        "a token keeps its roles until what it starts is committed",
        acting("a_revocation_waits_for_what_is_done_with_the_token"),
        postgres=pg("start_executions", " FOR SHARE", ""),
    ),
    Guard(
        "a token keeps its roles until what it starts alike is committed",
        acting("a_revocation_waits_for_what_is_done_with_the_token"),
        postgres=pg("start_alike", " FOR SHARE", ""),
    ),
    Guard(
        "a token that is revoked has no roles",
        ("tests/store/test_tokens.py::test_a_token_is_revoked_once",),
        engine=(Change("store/access.py", "entitlement", 'self.status == "active" and ', ""),),
    ),
)  # fmt: skip

PEOPLE = (
    Guard(
        "a decision wakes", approvals("a_decision_wakes_one_who_sleeps_and_says_what_let_it_go_on"),
        people("sqlite", "_end_approval", "self.rows.wake(approval.execution_id, now)", "pass"),
        people("postgres", "_decide", "self.rows.wake_live([*executions.values()])", "pass"),
    ),
    Guard(
        "an approval that expires wakes",
        approvals("an_approval_expires_at_its_time_and_not_before"),
        people("sqlite", "_end_approval", "self.rows.wake(approval.execution_id, now)", "pass"),
        pg_code("maintenance", "_fire", "*(id for id, _ in (*timers, *waits)), *asked]",
            "*(id for id, _ in (*timers, *waits))]"),
    ),
    Guard(
        "a decision takes the role", approvals("what_is_refused_leaves_no_trace"),
        engine=judged("if roles is not None and approval.role not in roles:", "if False:"),
    ),
    Guard(
        "four eyes",
        approvals("the_starter_of_the_whole_family_is_meant", "what_is_refused_leaves_no_trace"),
        engine=judged("if approval.four_eyes and is_contributor(", "if False and is_contributor("),
    ),
    Guard(
        "what was shown is decided", approvals("what_is_refused_leaves_no_trace"),
        engine=judged("if wanted.content_hash not in (None, approval.content_hash):",
            "if False:"),
    ),
    Guard(
        "a quorum takes different people", approvals("quorum_takes_different_people"),
        engine=judged("if wanted.decision != ESCALATE and any(each in votes for each in own):",
            "if False:"),
    ),
    Guard(
        "nobody decides after the deadline",
        approvals("an_approval_expires_at_its_time_and_not_before"),
        engine=judged("if approval.is_due(now):",
            "if False:"),
    ),
    Guard(
        "nobody decides what is decided",
        approvals("a_decision_whose_answer_was_lost_may_be_sent_again"),
        engine=judged(('        return Verdict("approval_expired" if approval.decision == EXPIRED else '
                '"already_decided")'), "        pass"),
    ),
    Guard(
        "the votes of a role that was left count no more", ("tests/app/test_approvals.py::"
        "test_an_escalation_asks_the_next_role_and_forgets_what_the_first_has_said",),
        engine=judged("if each.stage == approval.escalated and each.decision", "if each.decision"),
    ),
    Guard(
        "what is refused is undone", approvals("what_is_refused_leaves_no_trace"),
        postgres=people("postgres", "_decide", "raise UndoneError(judged)", "return judged"),
    ),
    Guard(
        "decisions about one family are not made together",
        approvals("decisions_about_one_family_are_not_made_together"),
        engine=(Change("store/approvals.py", "must_be_apart", "== len(ids)", "<= len(ids)"),),
    ),
    Guard(
        "what may have been decided is not decided again",
        ("tests/http/test_deciding.py::test_what_may_have_been_decided_is_not_decided_again",),
        engine=(Change("http/deciding.py", "_together", "except StoreError:", "except ZeroDivisionError:"),),
    ),
    Guard(
        "who is refused keeps nobody else from deciding",
        approvals("decisions_are_made_together_and_each_as_if_it_were_alone"),
        postgres=people("postgres", "decide_all", "refused or judged", "judged"),
    ),
    Guard(
        "what has ended asks nobody any more",
        approvals("an_execution_that_ends_asks_nobody_any_more"),
        lite_code("rows", "end_workflows",
            ('self.db.many("cancel_approvals", (), [(now, end.id, 0, LAST_CHILD) for end in '
                'ends])'),
            "pass"),
        pg("delete_waits", "AND status IS NULL)", "AND false)"),
    ),
    Guard(
        "what let it go on is done with its turn",
        approvals("what_let_it_go_on_is_done_with_the_turn_that_knew_it"),
        lite_code("flush", "commit_turns", "self._executed(others, ended, known, now)", "pass"),
        pg_code("flush", "run", "self._executed(won)", "pass"),
    ),
    Guard(
        "only what the turn knew is done with it",
        approvals("what_let_it_go_on_is_done_with_the_turn_that_knew_it"),
        (Change("store/sqlite/approvals.sql", "executed_resumes", " AND id <= :upto",
            " AND :upto > 0"),),
        (Change("store/postgres/approvals.sql", "executed_resumes", " AND q.id <= x.upto", ""),),
    ),
    Guard(
        "what the last turn did not know is done with it",
        rule("a_resume_of_which_the_last_turn_did_not_know_is_done_with_it"),
        engine=(Change("store/interfaces/turns.py", "resumed_upto", "EVERY_RESUME if",
            "self.resumed if"),),
    ),
    Guard(
        "only what is held is resumed",
        approvals("with_hold_it_is_decided_and_takes_no_turn_until_it_is_resumed"),
        (Change("store/sqlite/approvals.sql", "unpause", " AND paused_at IS NOT NULL", ""),),
        (Change("store/postgres/approvals.sql", "unpause", " AND paused_at IS NOT NULL", ""),),
    ),
)  # fmt: skip

LITE_SCHEDULES, PG_SCHEDULES = "store/sqlite/schedules.py", "store/postgres/schedules.py"
SCHEDULES = "tests/store/test_schedules.py::test_"
TEXT = "tests/app/test_text_limits.py::test_"
SOURCE = "tests/app/test_sources.py::test_"

HANDS = (
    Guard(
        "a comment goes on as its writer's data",
        hands("a_comment_is_the_data_of_whoever_decides_in_what_is_sent_on_and_not_before"),
        engine=(Change("store/approvals.py", "contributors_of",
            "(commenter(made.actor),) if made.comment else ()", "()"),),
    ),
    Guard(
        "a resume without data contributes nothing",
        hands("a_resume_contributes_only_with_data"),
        engine=(Change("store/approvals.py", "gives_data", ' not in ("null", "{}")', ' != "null"'),),
    ),
    Guard(
        "whoever commented may decide again",
        hands("a_comment_is_the_data_of_whoever_decides_in_what_is_sent_on_and_not_before"),
        engine=(Change("store/provenance.py", "is_contributor",
            " if not each.startswith(COMMENTED)", ""),),
    ),
    Guard(
        "a vote counts no more when its voter has given data",
        hands("a_vote_does_not_count_after_its_voter_has_given_data"),
        engine=judged("    if approval.four_eyes:  # whoever", "    if False:  # whoever"),
    ),
    Guard(
        "who is known already is not one too many",
        hands("who_is_known_already_is_not_one_too_many"),
        (Change("store/sqlite/events.sql", "insert_contributor", "c.person = :person", "1 = 0"),),
        (Change("store/postgres/events.sql", "insert_contributors", "c.person = x.person", "1 = 0"),
            ),
    ),
    Guard(
        "a loop does not fill the audit",
        hands("a_loop_that_publishes_and_sends_leaves_a_few_rows_in_the_audit"),
        engine=(Change("store/acts.py", "sending_acts", '("event.publish", event.type)',
            '("event.publish", event.type, event.id)'),),
    ),
    Guard(
        "a full mailbox takes nothing of a turn",
        hands("a_full_mailbox_takes_nothing_of_a_turn_either"),
        lite_code("exchange", "send", "room[to] > 0 and ", ""),
        pg("insert_signals", "box.waiting + x.nth <= ", "0 <= "),
    ),
    Guard(
        "a signal makes its sender a contributor",
        hands("a_signal_makes_its_sender_a_contributor_of_the_whole_family"),
        lite_code("exchange", "deliver", "sender.provenance.contributors if sender else ()", "()"),
        pg_code("messages", "signal",
            "self.rows.contribute([(id, provenance_of(actor).contributors)], now)", "pass"),
    ),
    Guard(
        "an event brings its publisher along",
        hands("an_event_brings_its_publisher_to_who_takes_it_now_and_later"),
        lite_code("exchange", "_end_waits", "load_provenance(match.event.provenance).contributors",
            "()"),
        pg_code("exchange", "_end", "self.contributions += [", "["),
    ),
    Guard(
        "an event keeps whose data it carries",
        hands("an_event_brings_its_publisher_to_who_takes_it_now_and_later"),
        lite_code("exchange", "publish", "dump_provenance(sender.provenance) if sender else None",
            "None"),
        pg_code("exchange", "_numbered", "provenances.get(event.id)", "None"),
    ),
    Guard(
        "a turn passes on who had a hand in its family",
        hands("a_turn_passes_on_everyone_who_had_a_hand_in_its_family"),
        lite_code("exchange", "sender", "sending_turn(family)",
            "sending_turn(family.replace(people=()))"),
        pg_code("rows", "senders", "sending_turn(family)",
            "sending_turn(family.replace(people=()))"),
    ),
    Guard(
        "what an event starts begins with its contributors",
        hands("a_turn_passes_on_everyone_who_had_a_hand_in_its_family"),
        engine=(Change("store/triggers.py", "_execution", "contributors=provenance.contributors",
            "contributors=()"),),
    ),
    Guard(
        "a new execution begins with its contributors",
        hands("a_new_execution_begins_with_its_contributors_whoever_starts_it"),
        (Change("store/sqlite/rows.py", "start_all", "self.contribute(new.id, new.contributors, now)",
            "pass"),),
        pg_code("rows", "_started", "for each in new if each.contributors", "for each in ()"),
    ),
    Guard(
        "who finds an execution there has given it nothing",
        hands("a_new_execution_begins_with_its_contributors_whoever_starts_it"),
        postgres=pg_code("rows", "start", "[new for new in executions if new.id in created]",
            "executions"),
    ),
    Guard(
        "a retry keeps the contributors",
        hands("a_retry_has_the_contributors_of_the_one_before_and_whoever_asked_for_it"),
        lite_code("executions", "retry",
            'self.db.all("copy_contributors", {"id": started.id, "retry_of": id, "now": now})',
            "pass"),
        pg_code("executions", "retry",
            'self.db.do("copy_contributors", id=started.id, retry_of=id, now=now)', "pass"),
    ),
    Guard(
        "a retry acts with the permissions of whoever asks for it too",
        hands("a_retry_has_the_contributors_of_the_one_before_and_whoever_asked_for_it"),
        engine=(Change("store/interfaces/executions.py", "asked_by", "if not provenance.authority:",
            "if True:"),),
    ),
    Guard(
        "data of a resume makes a contributor", hands("a_resume_contributes_only_with_data"),
        engine=(Change("store/approvals.py", "contributors_of_resume",
            "tuple(provenance_of(actor).contributors) if gives_data(data) else ()", "()"),),
    ),
    Guard(
        "too many contributors stand for everybody", hands("beyond_the_limit_one_stands_for_all"),
        engine=judged("if approval.four_eyes and EVERYBODY in contributors:", "if False:"),
    ),
    Guard(
        "a signal that its starter might not send reaches nobody",
        hands("a_signal_that_its_starter_might_not_send_reaches_nobody"),
        lite_code("exchange", "deliver",
            " or (sender and not self._may_signal(sender, signal.execution_id))", ""),
        pg_code("flush", "_allowed", "for signal in signals if may(signal)]",
            "for signal in signals]"),
    ),
    Guard(
        "a vote of a revoked token counts no more",
        hands("a_vote_of_a_token_that_was_revoked_since_counts_no_more"),
        engine=judged("if each.token is None or each.token not in void", "if True"),
    ),
    Guard(
        "a workflow publishes with the permissions of whoever started it",
        ("tests/http/test_four_eyes.py::test_a_workflow_reaches_others_only_with_the_permission_of_whoever_started_it",),
        engine=inputs("forbidden", "if not may)", "if False)"),
    ),
    Guard(
        "whoever made a schedule has a hand in what it starts",
        ("tests/http/test_four_eyes.py::test_not_who_made_the_schedule_that_started_it",),
        engine=(Change("engine/schedules.py", "execution",
            "load_provenance(schedule.provenance).joined(provenance_of(by))",
                       "provenance_of(by)"),),
    ),
    Guard(
        "data does not come under a decision",
        ("tests/app/test_approvals.py::test_what_is_decided_about_gets_no_other_data_meanwhile",),
        engine=(Change("store/approvals.py", "refuse_data", "and open_:", "and False:"),),
    ),
)  # fmt: skip

SLOTS = (
    Guard(
        "a slot that has its row starts nothing more",
        ("tests/store/test_schedules.py::test_a_slot_that_has_its_row_is_never_started_again",),
        (Change("store/sqlite/schedules.py", "_fire_slots", " or not self._known_slot(new.fire)",
            " or True"),),
        (Change("store/postgres/schedules.py", "_unknown_slots", "each.fire.manual or (",
            "True or ("),),
    ),
    Guard(
        "a schedule is locked while it is fired",
        ("tests/store/test_schedules.py::test_many_at_once_fire_a_slot_once",),
        postgres=(Change("store/postgres/schedules.sql", "lock_free_schedules",
            " FOR UPDATE SKIP LOCKED", ""),),
    ),
    Guard(
        "a person waits for a schedule that is being fired",
        ("tests/store/test_schedules.py::test_on_postgres_a_schedule_that_another_process_has_is_left_to_it_and_a_person_waits",),
        postgres=(Change("store/postgres/schedules.py", "fire",
            'if actor is None else "lock_revisions"', 'if True else ""'),),
    ),
    Guard(
        "a plan holds for the schedule as it was read",
        (f"{SCHEDULES}a_plan_for_a_schedule_that_has_changed_since_is_dropped",),
        (Change("store/sqlite/schedules.sql", "move_schedule",
            " AND (:revision IS NULL OR revision = :revision)", ""),),
        (Change("store/postgres/schedules.py", "fire",
            " and each.revision in (None, revisions[each.name])", ""),),
    ),
    Guard(
        "a changed schedule is a new revision",
        (f"{SCHEDULES}a_plan_for_a_schedule_that_has_changed_since_is_dropped",),
        (Change("store/sqlite/schedules.sql", "put_schedule", ", revision = excluded.revision", ""),
            ),
        (Change("store/postgres/schedules.sql", "put_schedules", ", revision = excluded.revision",
            ""),),
    ),
    Guard(
        "a schedule that is made anew has another revision",
        (f"{SCHEDULES}a_plan_for_a_schedule_that_has_changed_since_is_dropped",),
        (Change("store/sqlite/schedules.py", "_revision", 'int(self.db.one("next_fence")[0])', "1"),
            ),
        (Change("store/postgres/schedules.sql", "put_schedules", "nextval('fences')", "1"),),
    ),
    Guard(
        "a slot, or a run by somebody, is a new revision",
        (f"{SCHEDULES}a_plan_for_a_schedule_that_has_changed_since_is_dropped",),
        (Change("store/sqlite/schedules.sql", "move_schedule", "revision = :new, ", ""),),
        (Change("store/postgres/schedules.sql", "move_schedules", "revision = nextval('fences'), ",
            ""),),
    ),
    Guard(
        "what runs is read after the schedule",
        (f"{SCHEDULES}what_runs_is_read_after_the_schedule",),
        (
            Change("store/sqlite/schedules.py", "load_due",
                'found = self.db.read(SQL["schedules"], given)', "pass"),
            Change(LITE_SCHEDULES, "load_due", "(Schedule, found,",
                '(Schedule, self.db.read(SQL["schedules"], given),'),
        ),
        (
            Change(PG_SCHEDULES, "load_due",
                'found = _read(self.db.all("schedules", names=list(names)))', "pass"),
            Change(PG_SCHEDULES, "load_due", "now in found",
                'now in _read(self.db.all("schedules", names=list(names)))'),
        ),
    ),
    Guard(
        "of very many slots some are run at once",
        ("tests/engine/test_schedules.py::test_of_very_many_slots_some_are_run_and_the_rest_is_due_at_the_next_look",),
        engine=(Change("engine/schedules.py", "fire", "enumerate(slots[:MOST_SLOTS])",
            "enumerate(slots)"),),
    ),
    Guard(
        "what a schedule says wrongly keeps no other from its slots",
        ("tests/app/test_schedules.py::test_a_row_that_no_calendar_shows_hides_no_other_and_stops_no_other",),
        engine=(Change("engine/schedules.py", "plan", "except Exception as problem",
            "except ValueError as problem"),),
    ),
    Guard(
        "a time that no calendar shows is refused",
        ("tests/test_schedule_times.py::test_what_can_never_be_due_is_refused_with_advice",),
        engine=(Change("schedule_times.py", "check_timing", "not FIRST_US <= timing.at <= LAST_US", "False"),
            ),
    ),
    Guard(
        "there is no slot that no calendar shows",
        ("tests/test_schedule_times.py::test_there_is_no_slot_that_no_calendar_shows",),
        engine=(Change("schedule_times.py", "next_slot", " and slot <= LAST_US", ""),),
    ),
    Guard(
        "a slot and its execution are one transaction",
        ("tests/store/test_schedules.py::test_of_a_plan_that_fails_nothing_is_done",),
        (Change("store/sqlite/schedules.py", "fire", "with self.db.transaction():", "if True:"),),
    ),
    Guard(
        "a run that is asked for again is recorded once",
        ("tests/store/test_schedules.py::test_a_run_that_is_asked_for_again_with_its_key_is_one_row_of_the_past_and_of_the_audit",),
        engine=(Change("store/schedules.py", "started", "REPEATED if repeated else ", ""),),
    ),
    Guard(
        "a queued slot waits until nothing runs", ("tests/engine/test_schedules.py::"
        "test_a_queued_slot_runs_when_nothing_runs_any_more_and_before_the_next",),
        engine=(Change("engine/schedules.py", "go_on", "if not self.running:", "if True:"),),
    ),
    Guard(
        "what was missed is not all run",
        ("tests/engine/test_schedules.py::test_what_was_missed_is_made_up_for_as_far_as_it_is_wanted",),
        engine=(Change("engine/schedules.py", "_passed", "latest[max(len(latest) - count, 0) :]",
            "latest"),),
    ),
)  # fmt: skip


def scoped(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/http/test_scopes.py::test_{name}" for name in names)


SEARCHES = ("tests/store/test_search.py::test_search_finds_what_reading_everything_finds",)


def some_names(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_scopes.py::test_{name}" for name in names)


def pure_right(name: str) -> tuple[str, ...]:
    return (f"tests/test_permissions.py::test_{name}",)


SCOPES = (
    Guard(
        "a name fits to its end", pure_right("patterns"),
        engine=(Change("permissions.py", "matches", " or not name.endswith(last)", ""),),
    ),
    Guard(
        "what has no name takes a role without a pattern",
        pure_right("a_role_with_a_pattern_allows_the_same_for_the_names_that_fit"),
        engine=(Change("permissions.py", "within", "(name is not None and any(",
            "(name is None or any("),),
    ),
    Guard(
        "auditors and administrators are of everything",
        pure_right("an_auditor_or_administrator_of_some_names_is_nobody"),
        engine=(Change("permissions.py", "scope", " or (colon and role in WHOLE)", ""),),
    ),
    Guard(
        "a role without its pattern is none",
        pure_right("a_role_without_its_pattern_is_not_that_role_for_everything"),
        engine=(Change("permissions.py", "scope", "if not colon:", "if not pattern:"),),
    ),
    Guard(
        "an execution goes by its root", scoped("who_sees_an_order_sees_all_that_was_done_for_it"),
        engine=(Change("http/objects.py", "_execution",
            "return name if within(scope, name) else unknown_execution(id)", "return name"),),
    ),
    Guard(
        "an approval goes by its root",
        scoped("a_decision_takes_the_role_the_business_role_and_the_workflow"),
        engine=(Change("http/objects.py", "_approval",
            "return name if within(scope, name) else no_approval(id)", "return name"),),
    ),
    Guard(
        "a workflow that is not theirs is not shown",
        scoped("what_is_not_theirs_is_answered_exactly_like_what_does_not_exist"),
        engine=(Change("http/objects.py", "_workflow", "if not within(scope, name):", "if False:"),
            ),
    ),
    Guard(
        "a schedule that is not theirs is not shown",
        scoped("a_schedule_is_changed_only_from_what_is_theirs_to_what_is_theirs"),
        engine=(Change("app/schedules.py", "get", "if not within(scope, schedule.workflow):",
            "if False:"),),
    ),
    Guard(
        "a schedule is looked at in its transaction",
        scoped("a_schedule_that_starts_something_else_by_then_is_not_theirs"),
        engine=(Change("app/schedules.py", "_is_theirs",
            "if _may(actor, schedule) else no_schedule(schedule.name)", ""),),
    ),
    Guard(
        "a schedule of others is not replaced",
        scoped("a_schedule_is_changed_only_from_what_is_theirs_to_what_is_theirs"),
        engine=(Change("app/schedules.py", "put",
            "if before is not None and not _may(actor, before):", "if False:"),),
    ),
    Guard(
        "a schedule is not moved to others",
        scoped("a_schedule_is_changed_only_from_what_is_theirs_to_what_is_theirs"),
        engine=(Change("http/schedules.py", "change", '_must_know(ask, wanted["workflow"])',
            "pass"),),
    ),
    Guard(
        "what a schedule started for others is not told",
        scoped("what_a_schedule_started_before_it_was_theirs_is_not_told"),
        engine=(Change("app/schedules.py", "_fires_within", "fire.execution_id is None or within(",
            "True or within("),),
    ),
    Guard(
        "a queue that is not theirs is not touched", scoped("queues_go_by_their_own_names"),
        engine=(Change("http/objects.py", "_queue", "return name if within(scope, name) else None",
            "return name"),),
    ),
    Guard(
        "what is of nobody takes a role without a pattern",
        scoped("what_is_about_nothing_in_particular_takes_a_role_without_a_pattern"),
        engine=(Change("http/objects.py", "found", "if about == EVERYTHING:",
            "if about == EVERYTHING and False:"),
                Change("http/objects.py", "found", "about in (LIST, BODY):",
                    "about in (LIST, BODY, EVERYTHING):")),
    ),
    Guard(
        "only what is theirs is started",
        scoped("an_execution_is_started_and_replaced_only_of_what_is_theirs"),
        engine=(Change("http/executions.py", "start",
            'if not ask.may("execution:start", body.workflow):', "if False:"),),
    ),
    Guard(
        "only what they may cancel is replaced",
        scoped("an_execution_is_started_and_replaced_only_of_what_is_theirs"),
        engine=(Change("http/executions.py", "start",
            'if not ask.may("execution:cancel", body.workflow):', "if False:"),),
    ),
    Guard(
        "only what is theirs is registered", scoped("all_workflows_of_a_text_must_be_theirs"),
        engine=(Change("app/workflows.py", "_refuse_others", "if not within(scope, name)",
            "if False"),),
    ),
    Guard(
        "a message names no workflow of others",
        scoped("what_is_wrong_with_a_text_tells_nothing_of_workflows_that_its_author_may_not_see"),
        engine=(Change("app/workflows.py", "register", "if within(known, name)", "if True"),),
    ),
    Guard(
        "a suggestion names no workflow of others",
        scoped("an_execution_is_started_and_replaced_only_of_what_is_theirs"),
        engine=(Change("http/objects.py", "discreet", "if scope is None:", "if True:"),),
    ),
    Guard(
        "the text of others is not shown",
        scoped("of_a_file_with_workflows_of_others_only_the_own_text_is_shown"),
        engine=(Change("app/workflows.py", "_text", "if scope is None:", "if True:"),),
    ),
    Guard(
        "others in a queue are not counted",
        scoped("how_many_others_wait_in_a_queue_is_told_to_those_who_may_see_it"),
        engine=(Change("app/explain.py", "queued", "visible = within(self.scope, name)",
            "visible = True"),),
    ),
    Guard(
        "many are those that are theirs", scoped("many_are_only_those_that_are_theirs"),
        engine=(Change("app/search.py", "selection_of", "names = context.names_in(scope)",
            "names = None"),),
    ),
    Guard(
        "a list is of what is theirs", scoped("queues_go_by_their_own_names"),
        engine=(Change("http/guard.py", "seen", "if within(scope, name(item))", "if True"),),
    ),
    Guard(
        "a stream ends with the permission for it",
        scoped("a_stream_ends_when_its_execution_is_theirs_no_more"),
        engine=(Change("http/guard.py", "sees_with", "allows(roles, READ, self.about)",
            "bool(roles)"),),
    ),
    Guard(
        "no answer without asking",
        scoped("an_answer_that_was_made_without_asking_whom_it_is_for_is_not_sent"),
        engine=(Change("http/api.py", "get_route_handler",
            "and route.permission not in asker.asked:", "and False:"),),
    ),
    Guard(
        "a decision goes by the roles of its transaction",
        some_names("a_decision_goes_by_the_roles_of_the_token_and_the_root"),
        engine=(Change("store/access.py", "entitlement",
            'allows(self.roles, "approval:decide", root)', "True"),),
    ),
    Guard(
        "a decision goes by the root",
        some_names("a_decision_goes_by_the_roles_of_the_token_and_the_root"),
        (Change("store/sqlite/queries.sql", "root_names", "r.id = e.root_id", "r.id = e.id"),),
        (Change("store/postgres/queries.sql", "root_names", "ANY(ARRAY[e.root_id])", "e.id"),),
    ),
    Guard(
        "a workflow signals only whom its starter might",
        some_names("a_workflow_reaches_whom_those_who_asked_for_it_might"),
        lite_code("exchange", "_may_signal", 'allows("execution:signal", root)',
            'allows_some("execution:signal")'),
        pg_code("flush", "_allowed", 'allows("execution:signal", roots.get(signal.execution_id))',
            'allows_some("execution:signal")'),
    ),
    Guard(
        "a workflow publishes only if its starter might",
        some_names("what_a_workflow_may_not_do_at_all"),
        engine=inputs("forbidden", '"publish": asked.allows(', '"publish": asked.allows_some('),
    ),
    Guard(
        "approvals are listed by the root",
        some_names("approvals_go_by_the_root_of_the_execution_that_asks"),
        people("sqlite", "approvals", "(OF_ROOTS, None if names is None else json.dumps(names))",
            "(OF_ROOTS, None)"),
        people("postgres", "approvals", "(OF_ROOTS, names)", "(OF_ROOTS, None)"),
    ),
    Guard(
        "executions are listed by their names",
        some_names("executions_of_some_names_come_newest_first_in_whole_pages"),
        engine=(Change("store/search.py", "_by_names", "self.dialect.same_name", "\"e.name <> ''\""),),
    ),
    Guard(
        "whatever a search goes along, it finds only their names", SEARCHES,
        engine=(Change("store/search.py", "_restrictions", "not driver.of_names", "False"),),
    ),
    Guard(
        "a search checks every term by which it does not go", SEARCHES,
        engine=(Change("store/search.py", "_others", "if term is not driver.term:", "if False:"),),
    ),
    Guard(
        "a page of a search begins after the one before", SEARCHES,
        engine=(Change("store/search.py", "ids_of_page", "after is not None", "False"),),
    ),
)  # fmt: skip


BOUNDS = (
    Guard(
        "an event finds whoever only reading tells",
        ("tests/store/test_events.py::test_an_event_reads_only_waits_that_may_want_it",),
        engine=(Change("store/events.py", "keys_of", "{ANY, *(", "{*("),),
    ),
    Guard(
        "an event reads only who may want it",
        ("tests/store/test_events.py::test_an_event_reads_only_waits_that_may_want_it",),
        lite("open_waits", " AND w.key = x.value", ""), pg("open_waits", " AND w.key = x.key", ""),
    ),
    Guard(
        "a text to which nobody refers is not kept",
        ("tests/store/test_sources.py::test_a_text_whose_versions_are_all_there_is_not_kept",),
        lite("keep_sources",
            "WHERE EXISTS (SELECT 1 FROM workflow_definitions d WHERE d.source_hash = x.key)",
            "WHERE true"),
        pg("keep_sources",
            "WHERE EXISTS (SELECT 1 FROM workflow_definitions d WHERE d.source_hash = x.hash)",
            "WHERE true"),
    ),
    Guard(
        "a file holds so many workflows", (f"{SOURCE}a_file_holds_so_many_workflows_and_no_more",),
        engine=(
            Change("lang/flow/check.py", "_holds_too_much", "tree.workflows, limits.workflows)",
                "(), 0)"),
        ),
    ),
    Guard(
        "a file has so many schedules", (f"{SOURCE}a_file_has_so_many_schedules_and_no_more",),
        engine=(
            Change("lang/flow/check.py", "_holds_too_much", "schedules, limits.schedules)",
                "(), 0)"),
        ),
    ),
    Guard(
        "a workflow has so many annotations",
        (f"{SOURCE}a_workflow_has_so_many_annotations_and_no_more",),
        engine=(
            Change("lang/flow/check.py", "_holds_too_much",
                "len(workflow.annotations) > limits.annotations", "False"),
        ),
    ),
    Guard(
        "the programs of a file have so many bytes",
        (f"{SOURCE}a_program_that_is_far_larger_than_its_text_is_refused_before_it_is_made",),
        engine=(Change("ir/codec.py", "dump_within", "size > limit", "False"),),
    ),
    Guard(
        "a program keeps the lines of its own workflow",
        (f"{SOURCE}a_file_of_many_workflows_stores_little_more_than_its_text",),
        engine=(Change("lang/source.py", "lines_of",
            "return first, self.lines[first - 1 : bisect_right(self.lines, end)]",
                       "return 1, self.lines"),),
    ),
    Guard(
        "a process keeps so many programs",
        (f"{SOURCE}a_process_keeps_the_programs_that_it_used_last_within_bounds",),
        engine=(Change("engine/programs.py", "_keep", "len(self._kept) > self._most or ", ""),),
    ),
    Guard(
        "a process keeps programs of so many bytes",
        (f"{SOURCE}a_process_keeps_the_programs_that_it_used_last_within_bounds",),
        engine=(Change("engine/programs.py", "_keep",
            "self._bytes > self._most_bytes and len(self._kept) > 1", "False"),),
    ),
    Guard(
        "a cron expression is short",
        ("tests/test_schedule_times.py::test_what_can_never_be_due_is_refused_with_advice",),
        engine=(Change("schedule_times.py", "_next_cron", "len(cron) > TEXTS.cron", "False"),),
    ),
    Guard(
        "a name is short", (f"{TEXT}every_text_that_is_too_long_is_refused_in_few_words",),
        engine=(Change("app/checks.py", "valid_name", "or len(value) > TEXTS.name", ""),),
    ),
    Guard(
        "a reason is short", (f"{TEXT}every_text_that_is_too_long_is_refused_in_few_words",),
        engine=(Change("app/checks.py", "valid_text", "len(value) > limit", "False"),),
    ),
    Guard(
        "the attributes of a start are few and short",
        (f"{TEXT}the_attributes_of_an_execution_are_limited_together",),
        engine=(Change("app/checks.py", "valid_attributes",
            "len(text.encode()) > TEXTS.attributes_bytes", "False"),),
    ),
    Guard(
        "the attributes that a workflow sets are few and short",
        (f"{TEXT}what_a_workflow_gives_is_limited_too",),
        engine=(Change("vm/operations.py", "_set_attribute",
            "len(m.attributes) > TEXTS.attributes or ", ""),),
    ),
)  # fmt: skip

SHARED = "tests/http/test_sharing.py::test_"
CONNECTED = "tests/http/test_connections.py::test_"
SERVED = (
    Guard(
        "an Idempotency-Key is a person's own",
        ("tests/http/test_executions.py::test_a_key_is_a_persons_own",),
        engine=(Change("app/actors.py", "own_key_of", "person(actor.name)", '""'),),
    ),
    Guard(
        "nobody chooses what a person's key becomes",
        ("tests/http/test_executions.py::test_a_key_over_http_meets_none_from_python_and_nobody_can_choose_what_it_becomes",),
        engine=(Change("app/checks.py", "own_key", "if is_personal(valid_name(value, what)):",
            "if False:"),),
    ),
    Guard(
        "a host is a host and nothing around it",
        ("tests/http/test_guard.py::test_a_host_is_a_name_and_a_port_and_nothing_around",),
        engine=(Change("http/guard.py", "host_of", "HOST.fullmatch(", "HOST.match("),),
    ),
    Guard(
        "a server without tokens answers to no page of another site",
        ("tests/http/test_guard.py::test_pages_of_other_sites_do_not_even_look_at_a_server_without_tokens",),
        engine=(Change("http/guard.py", "_refuse_other_names", "not in OWN_PAGES", "in ()"),),
    ),
    Guard(
        "CloudEvents have no key twice",
        ("tests/engine/test_cloudevents.py::test_what_is_no_event_is_refused_with_the_reason",),
        engine=(Change("engine/cloudevents.py", "_json", "return parse(text, what, limits)",
            "return __import__('json').loads(text)"),),
    ),
    Guard(
        "a token asks so often, and no more",
        (f"{SHARED}a_token_that_asks_too_often_is_refused_before_the_database_is_asked",),
        engine=(Change("http/sharing.py", "request",
            "self._requests.take(who, min(much, self._requests.burst))", "0"),),
    ),
    Guard(
        "who fails too often is not looked up",
        (f"{SHARED}an_address_that_fails_too_often_is_not_looked_up_again",),
        engine=(Change("http/sharing.py", "may_fail", ") < 1:", ") < -1:"),),
    ),
    Guard(
        "a token is counted by its secret",
        (f"{SHARED}a_token_that_was_valid_is_known_by_its_secret_and_not_by_its_id",),
        engine=(Change("http/guard.py", "_by_token",
            'sha256(secret.encode("utf-8", "surrogatepass")).digest()', "secret[:16].encode()"),),
    ),
    Guard(
        "a token has so many requests under way",
        (f"{SHARED}of_one_token_only_so_many_are_under_way",),
        engine=(Change("http/server.py", "_answer",
            "places.enter_context(self.shares.at_once(asker.who))", "pass"),),
    ),
    Guard(
        "a token has its share of the threads",
        (f"{SHARED}one_token_uses_its_share_of_the_threads_and_the_rest_is_for_others",),
        engine=(Change("http/sharing.py", "place", "Semaphore(self.most)", "Semaphore(99)"),),
    ),
    Guard(
        "what takes long is done one at a time",
        (f"{SHARED}what_takes_long_is_done_one_at_a_time_and_others_are_answered_meanwhile",),
        engine=(Change("http/sharing.py", "thread", ", self._turns.place(turn):", ":"),),
    ),
    Guard(
        "a token stands in the queue once",
        (f"{SHARED}who_wants_many_turns_stands_in_the_queue_once",),
        engine=(Change("http/sharing.py", "thread", "self._turns.place(own), ", ""),),
    ),
    Guard(
        "nobody has a turn and waits for a thread",
        (f"{SHARED}nobody_has_a_turn_and_waits_for_their_own_threads",),
        engine=(
            Change(
                "http/sharing.py", "thread", "self._threads.place(who), self._turns.place(turn):",
                "self._turns.place(turn), self._threads.place(who):",
            ),
        ),
    ),
    Guard(
        "who waits for a turn has threads for the rest",
        (f"{SHARED}who_waits_for_a_turn_has_threads_for_the_rest",),
        engine=(
            Change(
                "http/sharing.py", "thread", "self._turns.place(own), self._threads.place(who), ",
                "self._threads.place(who), self._turns.place(own), ",
            ),
        ),
    ),
    Guard(
        "a large start waits for no compiler", (f"{SHARED}a_large_start_waits_for_no_compiler",),
        engine=(
            Change(
                "http/api.py", "get_route_handler", "shares.thread(asker.who, turn)",
                'shares.thread(asker.who, "any" if turn else "")',
            ),
        ),
    ),
    Guard(
        "who comes in has threads of their own",
        (f"{SHARED}who_comes_in_and_health_are_answered_while_all_threads_are_busy",),
        engine=(Change("http/guard.py", "_ask", ", limiter=self._threads", ""),),
    ),
    Guard(
        "who comes in has a connection of their own",
        (f"{SHARED}who_comes_in_waits_for_nobody_who_looks",),
        postgres=(Change("store/postgres/access.py", "tokens_of", "self.door.autocommit(lambda: self.door",
            "self.db.autocommit(lambda: self.db"),),
    ),
    Guard(
        "streams have so many places",
        (f"{SHARED}no_more_streams_than_there_are_places_however_many_come_at_once",),
        engine=(Change("http/sharing.py", "stream", "if self.streams >= self.most_streams:",
            "if False:"),),
    ),
    Guard(
        "a token has so many streams",
        (f"{SHARED}no_more_streams_than_there_are_places_however_many_come_at_once",),
        engine=(Change("http/sharing.py", "stream", "most = self.settings.server_streams_per_token",
            "most = 99"),),
    ),
    Guard(
        "a place is given back",
        (f"{SHARED}a_client_that_takes_nothing_loses_its_place_in_any_server",),
        engine=(Change("http/sharing.py", "_place", "_give_back(taken, who)", "pass"),),
    ),
    Guard(
        "who is refused leaves a line",
        ("tests/http/test_refusals.py::test_who_may_not_is_told_by_name_and_token",),
        engine=(Change("http/server.py", "refused", "if status in STATUSES:", "if False:"),),
    ),
    Guard(
        "who is refused again and again leaves one line a minute",
        ("tests/http/test_refusals.py::test_one_address_is_told_once_a_minute_for_each_reason_with_how_often",),
        engine=(Change("http/refusals.py", "_is_new", "return False", "return True"),),
    ),
    Guard(
        "who takes nothing is cut off",
        (f"{CONNECTED}who_takes_nothing_is_cut_off_however_it_closes",),
        engine=(Change("http/connections.py", "too_slow", "< SLOWEST", "< 0"),),
    ),
    Guard(
        "who is cut off is not waited for",
        (f"{CONNECTED}who_takes_nothing_is_cut_off_however_it_closes",),
        engine=(Change("http/connections.py", "_end", "connection.transport.abort()",
            "connection.transport.close()"),),
    ),
    Guard(
        "connections have so many places",
        (f"{CONNECTED}those_who_keep_the_server_waiting_for_longest_make_room",),
        engine=(Change("http/connections.py", "_has_room", "or len(self._seen) >= self.most", ""),),
    ),
    Guard(
        "an address has so many connections",
        (f"{CONNECTED}one_address_has_its_share_and_makes_room_for_itself_alone",),
        engine=(Change("http/connections.py", "_has_room", "self._of[address] >= self.most_of_one",
            "False"),),
    ),
    Guard(
        "a page ends when it is large",
        ("tests/http/test_pages.py::test_every_list_ends_its_page_when_it_is_large",),
        engine=(Change("http/pages.py", "listed", "if size >= most:", "if False:"),),
    ),
    Guard(
        "what is not on a page is not read",
        ("tests/http/test_pages.py::test_what_is_not_on_a_page_is_not_read",),
        (Change("store/reading.py", "up_to", "if taken and size >= most_bytes:", "if False:"),),
        (Change("store/postgres/connection.py", "some", "bytes_before < %(most_bytes)s",
            "bytes_before < %(most_bytes)s + 1000000000"),),
    ),
    Guard(
        "a retry reads no more than it may",
        (f"{RETRIES}retry_that_would_read_too_much_is_refused_before_it_is_read",),
        engine=(Change("store/interfaces/executions.py", "refuse_large",
            "rows > reach.rows or size > reach.bytes", "False"),),
    ),
    Guard(
        "a retry unpacks no more than it may",
        ("tests/engine/test_retry_plan.py::test_snapshots_that_are_small_only_while_they_are_packed_count_as_they_are",),
        engine=(Change("engine/retry_plan.py", "go_on", "self.unpacked += len(encoded)", "pass"),),
    ),
    Guard(
        "a retry reads no errors that are large",
        (f"{RETRIES}what_is_large_is_not_read_for_a_retry_and_is_in_it",),
        (Change("store/sqlite/queries.sql", "family", " AND length(e.error) <= :short", ""),),
        (Change("store/postgres/queries.sql", "family", " AND octet_length(e.error) <= %(short)s",
            ""),),
    ),
    Guard(
        "who asks why reads no results of what was awaited",
        (f"{FAMILIES}why_reads_no_results_of_what_was_awaited_and_has_come",),
        engine=(
            Change("app/explain.py", "due", ", brief=True", ""),
            Change("app/explain.py", "awaited", ", brief=True", ""),
        ),
    ),
    Guard(
        "who asks why asks so many", (f"{FAMILIES}why_asks_a_bounded_number_of_a_tree",),
        engine=(Change("app/explain.py", "leaf", " and self.asked < MAX_ASKED_EXECUTIONS", ""),),
    ),
    Guard(
        "nobody is named of a queue out of scope",
        ("tests/app/test_operating.py::test_why_names_nobody_of_a_queue_out_of_scope",),
        engine=(Change("app/explain.py", "queued", "visible = within(self.scope, name)",
            "visible = True"),),
    ),
)  # fmt: skip

SAID = (
    Guard(
        "only what a turn has said that was committed is kept",
        ("tests/engine/test_lines.py::test_a_turn_that_was_lost_says_nothing",),
        engine=(
            Change("worker/turns.py", "follow", 'answer.outcome != "lost" or answer.written',
                "True"),
        ),
    ),
    Guard(
        "a line that was written before is left out",
        ("tests/store/test_logs.py::test_the_same_lines_written_twice_are_there_once",),
        engine=(Change("store/log_lines.py", "admit", "if identity(line) in known:", "if False:"),),
    ),
)  # fmt: skip

GUARDS = (
    *FENCES, *WAKES, *EVENTS, *RESCUE, *ENDS, *WORKER, *ACCESS, *PEOPLE, *HANDS, *SLOTS, *SCOPES,
    *BOUNDS, *SERVED, *OVER_LIMIT, *SIMULATED, *SAID,
)  # fmt: skip
MUTANTS = [mutant for guard in GUARDS for mutant in guard.mutants()]
