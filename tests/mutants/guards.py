"""The guards of the protocol as they stand in the code, how each is taken away, and the tests that must notice.

To add one: a `Guard` below, with the text to replace in a named statement or function (it must be there exactly once).
"""

from __future__ import annotations

from typing import NamedTuple

from tests.mutants.mutate import Change, Mutant

CONFORMANCE = "tests/store/test_conformance.py::test_"
SERVER = "tests/store/test_postgres.py::test_"
LOCKING = "tests/store/test_sqlite_locking.py::test_"
LAWS = "tests/engine/test_laws.py::test_"
LIVING = "tests/engine/test_living.py::test_"
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
        return [Mutant(self.name, database, self.tests, changes) for database, changes in places.items() if changes]


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


def terminate(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_terminate.py::test_{name}" for name in names)


def peers(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_workers.py::test_{name}" for name in names)


def server(*names: str) -> tuple[str, ...]:
    return tuple(SERVER + name for name in names)


def lite(statement: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/sqlite/queries.sql", statement, old, new),)


def lite_code(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/sqlite/store.py", function, old, new),)


def pg(statement: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/postgres/queries.sql", statement, old, new),)


def pg_code(function: str, old: str, new: str, file: str = "store") -> tuple[Change, ...]:
    return (Change(f"store/postgres/{file}.py", function, old, new),)


def people(kind: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/approvals.py", function, old, new),)


def judged(old: str, new: str) -> tuple[Change, ...]:
    return (Change("store/approvals.py", "judge", old, new),)


def approvals(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/store/test_approvals.py::test_{name}" for name in names)


def worker(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("worker/worker.py", function, old, new),)


def heart(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("worker/heartbeat.py", function, old, new),)


def turns(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("engine/turns.py", function, old, new),)


def vm(file: str, function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"vm/{file}.py", function, old, new),)


def prices(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/vm/test_prices.py::test_{name}" for name in names)


def awaits(function: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change("vm/awaits.py", function, old, new),)


def looks(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/engine/test_looks.py::test_{name}" for name in names)


def unchecked(kind: str, check: str) -> tuple[Change, ...]:
    """A CHECK of the ready table that would refuse the mutant before its rule is broken."""
    return (Change(f"store/{kind}/migrations/0001_initial.sql", "", check, ""),)


def access(kind: str, statement: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/access.sql", statement, old, new),)


def migrated(kind: str, old: str, new: str) -> tuple[Change, ...]:
    return (Change(f"store/{kind}/migrations/0005_access.sql", "", old, new),)


# An end on SQLite that wakes nobody, and on PostgreSQL the like of what nobody holds.
UNTOLD = (
    "(lambda id, status, value, now, fence, worker, attempt=0: self._one('finish', dict(id=id, status=status, result=None,"
    " error=value, now=now, fence=fence, worker=worker, attempt=attempt, took_us=0)))("
)
UNHELD_UNTOLD = pg_code(
    "end_unclaimed", "return self.finish([End(id, status, value) for (id,) in self.db.all(\"not_ready\", ids=ids)], now)",
    "ends = [fields(End(id, status, value)) for (id,) in self.db.all('not_ready', ids=ids)]\n"
    "        return {row[0] for row in self.db.batch('finish', ends, now=now)}", "rows",
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
        "beat: tells what it did not prolong", server("a_beat_waits_for_no_lock_and_prolongs_the_other_claims"),
        postgres=pg_code("beat", "id not in kept and ", "False and "),
    ),
    Guard(
        "beat: what was not prolonged is prolonged by the next", (HEART + "what_somebody_had_locked_is_prolonged_by_the_next_beat",),
        engine=heart("run_once", "prolong and not mine.locked", "prolong"),
    ),
    Guard(
        "beat: what was not prolonged keeps its deadline", living("claim_that_a_beat_could_not_prolong_keeps_its_deadline"),
        engine=heart("prolongs", " and id not in self.mine.locked", ""),
    ),
    Guard(
        "release: only under my fence", rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("release", " AND fence = :fence", ""), pg("release", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "drop: only under my fence", rule("dropping_needs_the_fence"),
        lite("delete_held", " AND fence = ?", " AND ? > 0"), pg("drop", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "complete a task: only under my fence", rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("attempt_of", " AND r.fence = ?", " AND ? > 0"), pg_code("_holds", " and row.fence == item.fence", "", "flush"),
    ),
    Guard(
        "park: only under my fence", rule("a_wake_after_the_park_makes_the_row_again"),
        lite("delete_parked", " AND fence = ? AND", " AND ? > 0 AND"), pg("park", " AND r.fence = x.fence", ""),
    ),
    Guard(
        "turn: no fence in the context is newer than mine", rule("a_turn_under_an_older_fence_than_the_contexts_is_lost"),
        lite("advance_context", " AND fence <= :fence", ""), pg("advance_contexts", " AND c.fence <= x.fence", ""),
    ),
    Guard(
        "step: no fence in the context is newer than mine", rule("after_a_rescue_the_old_owner_is_refused_and_the_new_one_is_not"),
        postgres=pg("step", " AND c.fence <= x.fence", ""),
    ),
    Guard(
        "turn: only under the claim that is in force", rule("a_turn_of_one_who_gave_its_claim_back_is_lost"),
        lite_code("_commit_turn", "held is None or held[0] != turn.fence or ", ""),
        pg_code("_holds", " and row.fence == item.fence", "", "flush"),
    ),
    Guard(
        "turn: its own seq", rule("a_turn_with_another_seq_is_lost_and_writes_nothing"),
        lite("advance_context", " AND seq = :seq", " AND :seq >= 0"), pg("advance_contexts", " AND c.seq = x.seq", ""),
    ),
    Guard(
        "step: its own seq", rule("a_turn_with_another_seq_is_lost_and_writes_nothing"),
        postgres=pg("step", " AND c.seq = x.seq", ""),
    ),
    Guard(
        "a fence is never given out twice", rule("a_wake_after_the_park_makes_the_row_again"),
        lite("fences_up", "SET n = n + ?", "SET n = ?"),
        pg("claim", "fence = nextval('fences')",
           "fence = 1 + (SELECT c.fence FROM workflow_execution_context c WHERE c.execution_id = id)"),
    ),
    Guard(
        "a task that is tried later keeps no fence", rule("a_task_is_tried_again_when_it_is_due_and_its_old_fence_is_refused"),
        lite("delay_task", "fence = NULL, ", "") + unchecked("sqlite", CLAIMED_CHECK),
        pg("delay_tasks", "fence = NULL, ", "") + unchecked("postgres", CLAIMED_CHECK),
    ),
    Guard(
        "what was released keeps no fence", rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("release", " fence = NULL,", "") + unchecked("sqlite", CLAIMED_CHECK),
        pg("release", " fence = NULL,", "") + unchecked("postgres", CLAIMED_CHECK),
    ),
    Guard(
        "a rescued task keeps no fence", rule("a_rescued_task_does_not_take_the_end_of_its_old_attempt"),
        lite("rescue_task", ", fence = NULL", "") + unchecked("sqlite", CLAIMED_CHECK),
        pg("rescue_tasks", ", fence = NULL", "") + unchecked("postgres", CLAIMED_CHECK),
    ),
    Guard(
        "two claimers never take the same row", server("many_claimers_never_get_the_same_row"),
        postgres=pg("claim", " FOR UPDATE SKIP LOCKED", ""),
    ),
    Guard(
        "BEGIN IMMEDIATE: who reads to write is the only writer",
        (f"{LOCKING}a_transaction_on_sqlite_is_the_only_writer_before_it_reads",),
        (Change("store/sqlite/session.py", "_transaction", "BEGIN IMMEDIATE", "BEGIN"),),
    ),
)  # fmt: skip

WAKES = (
    Guard(
        "park: nothing has happened since I looked",
        rule("a_wake_before_the_park_refuses_it", "a_turn_that_would_park_is_committed_but_woken"),
        lite("delete_parked", " AND wakes = ?", " AND ? >= 0"),
        pg("park", " AND locked.wakes = locked.seen", "") + pg("delete_parked", " AND r.wakes = x.wakes", ""),
    ),
    Guard(
        "a wake of a claimed row is counted", rule("a_wake_before_the_park_refuses_it"),
        lite("wake", "DO UPDATE SET wakes = wakes + 1 WHERE state <> 0", "DO NOTHING"),
        pg("wake", "DO UPDATE SET wakes = ready.wakes + 1 WHERE ready.state <> 0", "DO NOTHING"),
    ),
    Guard(
        "a wake does not free what is delayed", rule("a_delayed_start_is_free_when_it_is_due_and_not_before"),
        lite("wake", "wakes = wakes + 1 WHERE", "wakes = wakes + 1, due_at = NULL, state = CASE state WHEN 2 THEN 0 ELSE state END WHERE"),
        pg("wake", "wakes = ready.wakes + 1 WHERE",
           "wakes = ready.wakes + 1, due_at = NULL, state = CASE ready.state WHEN 2 THEN 0 ELSE ready.state END WHERE"),
    ),
    Guard(
        "a task that ends wakes its parent", rule("the_end_of_a_task_wakes_its_parent"),
        lite_code("_finish", "self._wake(row[0], now)", "pass"),
        pg_code("finish", "self.wake((parent for _, parent in ended), now)", "pass", "rows"),
    ),
    Guard(
        "a workflow that ends wakes its parent", rule("a_finished_child_workflow_wakes_its_parent"),
        lite_code("_finish", "self._wake(row[0], now)", "pass"),
        pg_code("finish", "self.wake((parent for _, parent in ended), now)", "pass", "rows"),
    ),
    Guard(
        "a task out of attempts wakes its parent", rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite_code("_rescue_task", "self._finish(", UNTOLD),
        pg_code("_rescue_tasks", "self.rows.finish(ends, now)", "self.db.batch('finish', [fields(end) for end in ends], now=now)"),
    ),
    Guard(
        "a workflow in a crash loop wakes its parent", rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        lite_code("_rescue_workflow", "self._end_workflow(", UNTOLD),
        pg_code("_stop_loops", "self.rows.end_workflows([End(id", "self.db.batch('finish', [fields(End(id")
        + pg_code("_stop_loops", "lost[id].claimed_by) for id in ids], now)", "lost[id].claimed_by)) for id in ids], now=now)"),
    ),
    Guard(
        "a task that nobody did in time wakes its parent", rule("a_task_that_nobody_runs_in_time_fails"),
        lite_code("_time_out", "self._finish(", UNTOLD),
        UNHELD_UNTOLD,
    ),
    Guard(
        "a cancelled task that nobody runs wakes its parent", rule("a_cancelled_task_that_nobody_runs_ends_at_once"),
        lite_code("_cancel", "self._finish(", UNTOLD),
        UNHELD_UNTOLD,
    ),
    Guard(
        "a swept task wakes its parent", rule("the_sweep_ends_tasks_that_a_turn_asked_to_end"),
        lite_code("sweep", "self._finish(", UNTOLD),
        UNHELD_UNTOLD,
    ),
    Guard(
        "a timer wakes", rule("a_timer_never_fires_early_and_only_once"),
        lite_code("fire_timers", '"fire_timer", now, id, n)\n                self._wake(id, now)', '"fire_timer", now, id, n)'),
        pg_code("_fire", "self.rows.wake([*waiting, ", "self.rows.wake(["),
    ),
    Guard(
        "a workflow whose time is over is woken", rule("a_workflow_whose_time_is_over_is_woken_and_told"),
        lite_code("_time_out", "self._wake(id, now)", "pass"),
        pg_code("_fire", "*(id for id, type, _ in late if type == WORKFLOW)], now)", "], now)"),
    ),
    Guard(
        "a signal wakes", rule("a_wake_after_the_park_makes_the_row_again", "a_wake_before_the_park_refuses_it"),
        lite_code("_deliver", "self._wake(signal.execution_id, now)", "pass"),
        pg_code("signal", "self.rows.call([id])", "self.db.now()"),
    ),
    Guard(
        "a signal of a turn wakes", rule("a_turn_sends_signals_to_those_who_are_there"),
        postgres=pg_code("_deliver", "self.rows.call([signal.execution_id for signal in signals])", "pass", "flush"),
    ),
    Guard(
        "a cancel wakes", rule("a_cancelled_workflow_is_woken_also_before_its_delayed_start"),
        lite_code("_cancel", "self._wake(id, now)", "pass"), pg_code("_cancel", "self.rows.wake(workflows, now)", "pass"),
    ),
    Guard(
        "a cancel frees what is delayed", rule("a_cancelled_workflow_is_woken_also_before_its_delayed_start"),
        lite_code("_cancel", 'self._all("free_delayed", id)', "pass"),
        pg_code("_cancel", "self.rows.free_delayed(workflows)", "pass"),
    ),
    Guard(
        "a child workflow that is asked to end is woken", rule("a_child_workflow_that_a_turn_asks_to_end_is_woken"),
        lite_code("_flag", "self._wake(child, now)", "pass"), pg_code("flag", "self.wake(workflows, now)", "pass", "rows"),
    ),
    Guard(
        "a pause wakes", rule("pausing_wakes_and_is_told_to_whoever_loads"),
        people("sqlite", "_look_up", "self._wake(id, now)", "pass"), people("postgres", "pause", "self.rows.call(list(ids))", "pass"),
    ),
    Guard(
        "what is held back is not woken", rule("a_child_that_is_held_back_finds_its_signals_when_it_is_released"),
        lite_code("_deliver", "if not row[5]:", "if True:"),
        pg_code("call", "self.wake((id for id, held, _ in known if not held), now)", "self.wake((row[0] for row in known), now)", "rows"),
    ),
    Guard(
        "all ready rows of a flush are locked before any is written", server("a_flush_that_waits_for_one_row_has_locked_no_later_one"),
        postgres=pg_code("__init__", ", *self._related()]", "]", "flush"),
    ),
    Guard(
        "ready rows are locked in one order", server("a_flush_that_waits_for_one_row_has_locked_no_later_one"),
        postgres=pg("lock", " ORDER BY id FOR UPDATE", " FOR UPDATE"),
    ),
    Guard(
        "ready rows are locked before they are looked at", server("a_task_that_ended_while_its_time_ran_out_stays_as_it_ended"),
        postgres=pg("lock", " FOR UPDATE", ""),
    ),
    Guard(
        "what has lost its claim writes nothing in a flush", rule("a_turn_with_another_seq_is_lost_and_writes_nothing"),
        postgres=pg_code("_advance", "for turn in held if turn.id in accepted]", "for turn in held]", "flush"),
    ),
    Guard(
        "one turn of a workflow in a commit", rule("a_commit_takes_one_turn_of_each_workflow"),
        lite_code("commit", "len({turn.id for turn in turns}) < len(turns)", "False"),
        pg_code("commit", "len({turn.id for turn in turns}) < len(turns)", "False"),
    ),
)  # fmt: skip

EVENTS = (
    Guard(
        "an event wakes those who wait", event("an_event_wakes_one_who_sleeps_and_ends_its_wait"),
        lite_code("_end_waits", "self._wake(wait.execution_id, now)", "pass"),
        pg_code("_end", "self.rows.wake((match.wait.execution_id for match in found), now)", "pass", "exchange"),
    ),
    Guard(
        "who begins to wait looks for what is there",
        event("an_event_that_came_before_the_wait_ends_it_and_the_turn_does_not_park"),
        lite_code("_look", "while open_ and", "while False and"), pg_code("look", "while after and", "while False and", "exchange"),
    ),
    Guard(
        "publishers and waiters lock the type first",
        server("a_wait_that_is_registered_while_an_event_is_published_finds_it",
               "an_event_that_is_published_while_a_wait_is_registered_ends_it"),
        postgres=pg_code("__init__", 'dict(self.db.batch("lock_types", locks))', '{lock["type"]: 10 for lock in locks}', "exchange"),
    ),
    Guard(
        "a wait ends once", server("an_event_goes_to_the_next_wait_when_the_first_is_cancelled_meanwhile"),
        postgres=pg_code("_end", "raise AgainError", "pass", "exchange"),
    ),
    Guard(
        "the same event twice is one", event("the_same_event_twice_is_one"),
        lite("insert_event", "ON CONFLICT (id) DO NOTHING", ""), pg("insert_events", "ON CONFLICT (id) DO NOTHING ", ""),
    ),
    Guard(
        "what an event starts is started with it", trigger("a_publisher_that_dies_has_published_wholly_or_not_at_all"),
        lite_code("_publish", "self._trigger(event, new, now)", "pass"), pg_code("publish", "self._trigger(new, now)", "pass", "exchange"),
    ),
    Guard(
        "an event that was forgotten starts nothing again", trigger("an_event_that_was_forgotten_does_not_start_a_workflow_again"),
        engine=(Change("store/triggers.py", "triggered", 'key=f"event:{event.id}"', "key=None"),),
    ),
    Guard(
        "what an event starts lives from after it", trigger("a_started_workflow_waits_for_another_event_than_its_own"),
        engine=(Change("store/triggers.py", "triggered", "event.published_at - now + 1", "event.published_at - now"),),
    ),
    Guard(
        "a workflow is started by what it names now", trigger("what_starts_a_workflow_is_what_was_registered_last"),
        lite_code("_set_triggers", 'self._all("forget_triggers", given)', "pass"),
        pg_code("_set_triggers", 'self.db.do("forget_triggers", names=[d.name for d in last], type=types, workflow=workflows)', "pass"),
    ),
    Guard(
        "an event that somebody has taken is not forgotten", event("an_event_that_somebody_has_taken_is_kept_until_its_end"),
        (Change("store/sqlite/events.sql", "old_events",
                " AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id AND w.settled = 0)", ""),),
        (Change("store/postgres/events.sql", "old_events", "w.event_id = e.id AND NOT w.settled", "false"),
         Change("store/postgres/events.sql", "delete_events", "w.event_id = e.id AND NOT w.settled", "false")),
    ),
    Guard(
        "whoever forgets events locks their types", server("an_event_that_is_taken_while_it_is_to_be_forgotten_stays"),
        postgres=pg_code("_prune_events", 'self.db.do("hold_types", types=types)', "pass"),
    ),
    Guard(
        "whoever terminates takes the turn and raises the fence", terminate("an_owner_that_goes_on_without_looking_at_its_row_is_stopped"),
        postgres=(
            Change("store/postgres/operating.py", "_end_at_once", 'self.db.do("skip_turn", ids=list(workflows))', "pass"),
            *pg("raise_context_fences", "fence = nextval('fences')", "fence = fence"),
        ),
    ),
    Guard(
        "what is terminated has no row left", terminate("an_execution_and_everything_below_it_ends_at_once"),
        (Change("store/sqlite/operating.sql", "delete_ended_ready", "DELETE FROM ready WHERE ", "DELETE FROM ready WHERE 0 AND "),),
        (Change("store/postgres/operating.sql", "delete_ended_ready", "r.id = ANY(%(ids)s::text[])", "false"),),
    ),
    Guard(
        "a claim on what is terminated is gone", terminate("a_turn_that_was_computed_before_is_lost"),
        lite_code("_terminate", 'for id in workflows:\n            self._all("delete_ready", id)', "pass"),
    ),
    Guard(
        "children that are made meanwhile are terminated, too", server("a_child_that_a_turn_makes_while_its_parent_is_terminated_ends_too"),
        postgres=(Change("store/postgres/operating.sql", "mark_terminated", "ORDER BY x.id", "WHERE false"),),
    ),
    Guard(
        "a family that is being ended does not grow", family("a_family_that_is_being_ended_does_not_grow"),
        lite_code("_commit_turn", "if terminated:", "if False:"),
        pg_code("_holds", " and not self.known[item.id].terminated", "", "flush"),
    ),
    Guard(
        "terminate leaves a mark for what it does not end itself", family("whoever_comes_ends_what_is_left"),
        (Change("store/sqlite/operating.sql", "mark_terminated", "VALUES (:id, :now)", "SELECT :id, :now WHERE 0"),),
        (Change("store/postgres/operating.sql", "mark_terminated", "ORDER BY x.id", "WHERE false"),),
    ),
    Guard(
        "services end what is left below what was terminated", family("whoever_comes_ends_what_is_left"),
        engine=(Change("store/base.py", "recover", "if look.terminated else ()", "if False else ()"),),
    ),
    Guard(
        "the mark stays while anything below it lives", family("whoever_comes_ends_what_is_left"),
        lite_code("end_terminated", "if not tasks and not workflows:", "if True:"),
        (Change("store/postgres/operating.py", "end_terminated", "if not tasks and not workflows:", "if True:"),),
    ),
    Guard(
        "a full family starts nothing more", family("a_family_that_is_full_starts_nothing_more"),
        lite_code("_full", "if started is not None and started > limits.family:", "if False:"),
        pg_code("_count", "> limits.family}", "> 2**60}", "flush"),
    ),
    Guard(
        "of a family those who live are counted", family("a_family_whose_children_have_ended_goes_on_for_ever"),
        lite_code("_full", "alive is None or alive[0] > limits.family", "True"),
        pg_code("_is_full", "not alive or bool(alive[0][0] > limit)", "True", "flush"),
    ),
    Guard(
        "one execution has only so many children", family("one_execution_has_only_so_many_children_that_live"),
        engine=(Change("store/families.py", "may_have_many", "return bool(turn.starts) and ", "return False and "),),
    ),
    Guard(
        "generations are bounded", ("tests/vm/test_generations.py::test_workflows_and_branches_end_at_the_limit",),
        engine=vm("operations", "check_generations", 'if m.id.count(".") >= m.limits.generations:', "if False:"),
    ),
    Guard(
        "a lease is held by one", rule("a_lease_is_held_by_one_until_it_expires"),
        lite("lease", " OR expires_at <= now_us()", " OR true"), pg("lease", " OR leases.expires_at <= now_us()", " OR true"),
    ),
)  # fmt: skip

RESCUE = (
    Guard(
        "taking a claim away raises the context's fence", rule("after_a_rescue_the_old_owner_is_refused_and_the_new_one_is_not"),
        lite("raise_context_fence", "SET fence = ?", "SET fence = min(fence, ?)"),
        pg("raise_context_fences", "SET fence = nextval('fences')", "SET fence = least(fence, nextval('fences'))"),
    ),
    Guard(
        "rescue never takes what has not expired", rule("only_expired_claims_and_those_of_dead_workers_are_rescued"),
        lite("expired", "claim_expires_at < now_us()", "claim_expires_at - 100000000 < now_us()"),
        pg("expired", "r.claim_expires_at < now_us()", "r.claim_expires_at - 100000000 < now_us()")
        + pg_code("_expired", "row.claim_expires_at < now", "row.claim_expires_at - 100000000 < now"),
    ),
    Guard(
        "rescue repeats its condition under the lock: expiry",
        server("a_rescuer_with_an_old_list_leaves_what_was_extended_or_claimed_anew_alone"),
        postgres=pg_code("_expired", "row.claim_expires_at < now", "True"),
    ),
    Guard(
        "rescue repeats its condition under the lock: fence",
        server("a_rescuer_with_an_old_list_leaves_what_was_extended_or_claimed_anew_alone"),
        postgres=pg_code("_rescue", " if row.fence == found[id].fence", ""),
    ),
    Guard(
        "rescue repeats its condition under the lock: beats", server("a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile"),
        postgres=pg("dead_workers", " AND beat_at + dead_after_us < %(now)s", " AND %(now)s > 0"),
    ),
    Guard(
        "rescue reads the beats after the lock", server("a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile"),
        postgres=pg_code("_rescue", "self._dead(held, now) if dead else set()", "{row.claimed_by for row in held}"),
    ),
    Guard(
        "rescue waits for nobody", server("a_rescuer_leaves_what_others_have_locked_for_the_next_time"),
        postgres=pg("lock_free", " SKIP LOCKED", ""),
    ),
    Guard(
        "rescue locks what it takes", server("a_rescuer_leaves_what_others_have_locked_for_the_next_time"),
        postgres=pg("lock_free", " FOR UPDATE SKIP LOCKED", ""),
    ),
    Guard(
        "rescue locks the parents of what fails first", server("a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile"),
        postgres=pg_code("_rescue", "self.rows.lock(parents)", "pass"),
    ),
    Guard(
        "services do not wait long for a lock", server("a_service_does_not_wait_long_and_keeps_its_session"),
        postgres=pg_code("hasten", "self.set(\"lock_timeout\", IMPATIENT, local=True)", "pass", "connection"),
    ),
    Guard(
        "a worker without a beat is not robbed", peers("a_worker_without_a_row_is_judged_by_its_claims_alone"),
        lite("expired", "r.claimed_by IN (SELECT", ":dead AND r.claimed_by NOT IN (SELECT"),
        pg("expired", "OR r.claimed_by = ANY(", "OR %(dead)s::bool AND r.claimed_by <> ALL(")
        + pg_code("_rescue", "self._dead(held, now) if dead else set()", "{row.claimed_by for row in held}"),
    ),
    Guard(
        "a worker is dead by its own time", peers("a_worker_is_dead_when_it_says_so_whoever_asks"),
        lite("expired", "h.beat_at + h.dead_after_us <", "h.beat_at + 3000000 <"),
        pg("expired", "h.beat_at + h.dead_after_us <", "h.beat_at + 3000000 <")
        + pg("dead_workers", "beat_at + dead_after_us <", "beat_at + 3000000 <"),
    ),
    Guard(
        "a look misses no dead worker", peers("recovering_rescues_and_ends_cancelled_tasks"),
        lite("look", "OR r.claimed_by IN", "OR false AND r.claimed_by IN"), pg("look", "OR r.claimed_by =", "OR false AND r.claimed_by ="),
    ),
    Guard(
        "a worker with claims is not forgotten", peers("workers_of_long_ago_are_forgotten_unless_they_have_claims"),
        lite("forget_workers", "r.claimed_by = h.worker_id AND r.state = 1", "false"),
        pg("forget_workers", "r.claimed_by = h.worker_id AND r.state = 1", "false"),
    ),
    Guard(
        "nothing of a paused queue is claimed", peers("nothing_of_a_paused_queue_is_claimed_until_it_is_resumed"),
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
        engine=(Change("store/base.py", "refuse_system", "paused and queue == SYSTEM_QUEUE", "False"),),
    ),
    Guard(
        "declarations are locked in one order", server("workers_that_declare_at_once_lock_in_the_order_of_names"),
        postgres=pg("declare", "ORDER BY x.name", "ORDER BY x.name DESC"),
    ),
    Guard(
        "the claims of dead workers are taken", rule("only_expired_claims_and_those_of_dead_workers_are_rescued"),
        lite("expired", "OR r.claimed_by IN", "OR false AND r.claimed_by IN"),
        pg("expired", "OR r.claimed_by =", "OR false AND r.claimed_by ="),
    ),
    Guard(
        "attempts are counted in the claim", rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite("claim_row", "attempt = attempt + 1", "attempt = attempt"), pg("claim", "attempt = attempt + 1", "attempt = attempt"),
    ),
    Guard(
        "a release gives the attempt back", rule("a_released_claim_is_free_and_its_fence_is_worth_nothing"),
        lite("release", ", attempt = attempt - (kind = 1)", ""), pg("release", ", attempt = attempt - (kind = 1)::int", ""),
    ),
    Guard(
        "an attempt that does not count is given back", rule("an_attempt_that_does_not_count_is_given_back"),
        lite("delay_task", "attempt = attempt - :back", "attempt = attempt - 0 * :back"),
        pg_code("_retry", "attempts = {end.id: self.locked[end.id].attempt - (not end.counts) for",
                "attempts = {end.id: self.locked[end.id].attempt for", "flush"),
    ),
    Guard(
        "a task that kills its workers is not tried again", rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite_code("_rescue_task", "if crashes >= crash_limit:", "if False:"),
        pg_code("_rescue_tasks", "row.crashes + 1 >= crash_limit", "False"),
    ),
    Guard(
        "what failed by itself is not taken for a crash", rule("a_task_that_failed_by_itself_is_not_told_to_have_killed_its_workers"),
        lite_code("_rescue_task", "if crashes >= crash_limit:", "if attempt >= crash_limit:"),
        pg_code("_rescue_tasks", "row.crashes + 1 >= crash_limit", "row.attempt >= crash_limit"),
    ),
    Guard(
        "the crashes of a task are counted", rule("a_task_may_kill_as_many_workers_as_the_limit_says"),
        lite("rescue_task", "crashes = crashes + 1", "crashes = crashes"), pg("rescue_tasks", "crashes = crashes + 1", "crashes = crashes"),
    ),
    Guard(
        "crashes are counted", rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        lite("rescue_workflow", "THEN crashes + 1", "THEN crashes"), pg("rescue_workflows", "THEN crashes + 1", "THEN crashes"),
    ),
    Guard(
        "crashes are counted for each turn alone", rule("crashes_of_different_turns_are_not_added_up"),
        lite("rescue_workflow", "ELSE 1 END", "ELSE crashes + 1 END"), pg("rescue_workflows", "ELSE 1 END", "ELSE crashes + 1 END"),
    ),
    Guard(
        "a crash loop is stopped", rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        lite_code("_rescue_workflow", "if crashes >= crash_limit:", "if False:"),
        pg_code("_rescue_workflows", "if times >= crash_limit", "if False"),
    ),
    Guard(
        "a crash loop ends with a turn of its own", rule("a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent"),
        lite_code("_rescue_workflow", "SET seq = seq + 1 WHERE", "SET seq = seq WHERE"),
        pg("skip_turn", "SET seq = seq + 1", "SET seq = seq"),
    ),
)  # fmt: skip

ENDS = (
    Guard(
        "a start that is there changes nothing", rule("a_start_with_the_same_id_changes_nothing"),
        lite("insert_execution", "ON CONFLICT DO NOTHING ", ""), pg("insert_executions", "ON CONFLICT DO NOTHING ", ""),
    ),
    Guard(
        "what has ended does not end again", rule("a_task_that_has_ended_stays_as_it_ended"),
        lite("finish", " AND status < 5", ""), pg("finish", " AND e.status < 5", ""),
    ),
    Guard(
        "the attempts of what has ended stay", rule("a_task_that_has_ended_stays_as_it_ended"),
        lite("note_attempt", " AND status < 5", ""), pg("note_attempts", " AND e.status < 5", ""),
    ),
    Guard(
        "a workflow that has ended takes no turn", rule("a_workflow_that_has_ended_takes_no_turn"),
        lite_code("_commit_turn", " or row[0] >= TERMINAL", ""),
        pg_code("_advance", " and self.known[turn.id].status < TERMINAL", "", "flush"),
    ),
    Guard(
        "what a blocked workflow started goes on", rule("a_blocked_workflow_keeps_its_reason_and_its_children_go_on"),
        lite_code("_end_workflow", "status in ORDERLY", "status == COMPLETED"),
        pg_code("end_workflows", "end.status not in ORDERLY", "end.status != 5", "rows"),
    ),
    Guard(
        "what a blocked workflow started here is not stopped",
        ("tests/worker/test_steps.py::test_what_a_blocked_execution_started_runs_to_its_end",),
        engine=worker("_cancel_here", "turn.status not in ORDERLY", "turn.status != COMPLETED"),
    ),
    Guard(
        "a blocked child decides an `all`", rule("a_blocked_child_decides_all_of_many"),
        lite("failed_child", "(6, 7, 8)", "(6, 7)"), pg("undecided", "(6, 7, 8)", "(6, 7)"),
    ),
    Guard(
        "what a resume gives is stored, if nothing else happens",
        ("tests/vm/test_resume_data.py::test_a_turn_that_only_takes_resume_data_is_a_change_to_be_stored",),
        engine=(Change("vm/interpreter.py", "_suspended", "still and machine.inputs.resume_data is None", "still"),),
    ),
    Guard(
        "a cancel comes too late for what has ended", rule("an_acknowledged_cancel_wins_over_the_result"),
        lite_code("_cancel", "if status >= TERMINAL:", "if False:"), pg("flag_cancel", " AND status < 5", ""),
    ),
    Guard(
        "a pause comes too late for what has ended", rule("pausing_wakes_and_is_told_to_whoever_loads"),
        *(((Change(f"store/{kind}/approvals.sql", "pause", " AND status < 5", ""),)) for kind in ("sqlite", "postgres")),
    ),
    Guard(
        "a signal comes too late for what has ended", rule("what_becomes_of_a_signal"),
        lite_code("signal", "if row[0] >= TERMINAL:", "if False:"),
        pg_code("signal", "status is None or status >= TERMINAL", "status is None"),
    ),
    Guard(
        "a signal of a turn comes too late for what has ended", rule("a_signal_of_a_turn_to_one_that_has_ended_is_dropped"),
        lite_code("_deliver", "or row[0] >= TERMINAL ", ""), pg("insert_signals", " AND e.status < 5", ""),
    ),
    Guard(
        "an acknowledged cancel wins over the result", rule("an_acknowledged_cancel_wins_over_the_result"),
        lite_code("_commit_turn", "CANCELLED if cancelled else turn.status", "turn.status"),
        pg_code("_to", "CANCELLED if turn.end == \"finish\" and self.known[turn.id].cancelled else turn.status", "turn.status", "flush"),
    ),
    Guard(
        "a cancelled task is not tried again", rule("a_cancelled_task_that_runs_may_still_complete_but_is_not_tried_again"),
        lite_code("_end_task", "is not None and not cancelled", "is not None"),
        pg_code("_end_tasks", "is not None and not self.known[end.id].cancelled]", "is not None]", "flush")
        + pg_code("_end_tasks", "is None or self.known[end.id].cancelled]", "is None]", "flush"),
    ),
    Guard(
        "a signal is consumed once", rule("a_signal_can_be_consumed_only_once"),
        lite("consume_signal", " AND consumed_seq IS NULL", ""), pg("consume_signals", " AND coalesce(s.consumed_seq, 0) = 0", ""),
    ),
    Guard(
        "a signal that was consumed is not read again", rule("signals_are_read_in_the_order_of_sending_until_they_are_consumed"),
        lite("mail", "WHERE s.consumed_seq IS NULL", ""), pg("mail", " AND consumed_seq IS NULL", ""),
    ),
    Guard(
        "signals are numbered by one sender at a time", server("signals_sent_at_once_are_numbered_without_gaps"),
        postgres=pg_code("signal", "self.rows.call([id])", "self.db.now()"),
    ),
    Guard(
        "a timer never fires early", rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_timers", "fire_at <= ?", "fire_at <= ? + 1000000"),
        pg("due_timers", "fire_at <= %(now)s", "fire_at <= %(now)s + 1000000"),
    ),
    Guard(
        "a timer fires once", rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_timers", "fired_at IS NULL AND ", ""),
        pg("due_timers", "fired_at IS NULL AND ", "") + pg("fire_timers", " AND t.fired_at IS NULL", ""),
    ),
    Guard(
        "a timer that another has fired is not fired again", server("a_timer_that_another_has_fired_is_not_fired_again"),
        postgres=pg("fire_timers", " AND t.fired_at IS NULL", ""),
    ),
    Guard(
        "what is delayed is not freed early", rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_ready", "due_at <= ?", "due_at <= ? + 1000000"),
        pg("due_ready", "due_at <= %(now)s", "due_at <= %(now)s + 1000000")
        + pg("free_due", "due_at <= %(now)s", "due_at <= %(now)s + 1000000"),
    ),
    Guard(
        "what was delayed anew meanwhile is not freed", server("a_task_that_was_delayed_anew_meanwhile_is_not_freed"),
        postgres=pg("free_due", " AND due_at <= %(now)s", " AND %(now)s > 0"),
    ),
    Guard(
        "a time limit does not strike early", rule("what_is_due_later_stays_when_something_is_due_now"),
        lite("due_timeouts", "timeout_at <= ?", "timeout_at <= ? + 9000000"),
        pg("due_timeouts", "timeout_at <= %(now)s", "timeout_at <= %(now)s + 9000000"),
    ),
    Guard(
        "only what ended long ago is pruned", rule("pruning_takes_what_ended_long_ago_with_everything_below_it"),
        lite("old_roots", "finished_at < now_us() - ?", "? > 0"),
        pg("old_roots", "e.finished_at < now_us() - %(age_us)s", "%(age_us)s > 0"),
    ),
    Guard(
        "nothing is pruned while something below it goes on", rule("pruning_waits_for_what_goes_on_below"),
        lite("old_roots", "c.finished_at IS NULL", "false"), pg("old_roots", "c.status < 5", "false"),
    ),
    Guard(
        "nothing is pruned while something made from it goes on",
        rule("pruning_waits_for_an_execution_that_was_made_from_another"),
        lite("old_roots", "n.finished_at IS NULL", "false"), pg("old_roots", "n.status < 5", "false"),
    ),
)  # fmt: skip

WORKER = (
    Guard(
        "an owned body does not begin beyond the deadline", law("body_does_not_begin_when_its_claim_may_have_passed_to_another"),
        engine=worker("_begin_owned", "if not self._may_begin(held.deadline):", "if False:"),
    ),
    Guard(
        "a queued body does not begin beyond the deadline", law("body_does_not_begin_when_its_claim_may_have_passed_to_another"),
        engine=worker("_begin_queued", "if not self._may_begin(deadline):", "if False:"),
    ),
    Guard(
        "no body begins on a worker that may be dead to the others",
        living("body_does_not_begin_when_its_worker_may_be_dead_to_the_others"),
        engine=worker("_may_begin", "min(deadline, self.alive_until)", "deadline"),
    ),
    Guard(
        "a body that was held up asks again", living("whoever_runs_a_body_can_ask_whether_it_may_still_begin"),
        engine=worker("_begin", "lambda: self._may_begin(deadline)", "lambda: True"),
    ),
    Guard(
        "a worker is trusted from before its beat was sent", living("body_does_not_begin_when_its_worker_may_be_dead_to_the_others"),
        engine=worker("_took_beat", "self.alive_until = answer.sent_at", "self.alive_until = self.now()"),
    ),
    Guard(
        "a worker that may be dead stops what it runs",
        living("worker_without_heartbeats_stops_what_it_runs_before_it_is_dead_to_the_others"),
        engine=worker("_lapsed", "for id in [*self.held, *self.claims]:", "for id in ():"),
    ),
    Guard(
        "a worker that may be dead claims nothing", living("worker_without_heartbeats_claims_nothing"),
        engine=worker("_claim", ' or not self._may_begin(float("inf"))', ""),
    ),
    Guard(
        "a lapse is told before a later beat", (HEART + "worker_hears_that_it_lapsed_before_it_hears_of_a_later_beat",),
        engine=heart("lapse", "self._answers.put(None)", "pass"),
    ),
    Guard(
        "claims are prolonged in time", (HEART + "claims_are_prolonged_when_a_third_of_their_time_has_passed",),
        engine=heart("run_once", "claims if prolong else {}", "{}"),
    ),
    Guard(
        "nobody is taken for dead after an outage of all",
        (HEART + "nobody_is_settled_while_a_beat_is_overdue",),
        engine=heart("run_once", " or sent_at - self._sent_at > GAP * self.settings.between_s", ""),
    ),
    Guard(
        "a claim that nobody knows of is given back", living("claim_that_its_worker_knows_nothing_of_is_given_back"),
        engine=worker("_give_back_unknown", "if again:", "if False:"),
    ),
    Guard(
        "owned tasks of a paused queue are not run", living("chain_of_owned_tasks_stops_when_their_queue_is_paused"),
        engine=worker("_runs", " and queue not in self.paused", ""),
    ),
    Guard(
        "suspects begin after the turns that came with them",
        living("turn_is_committed_before_a_task_begins_that_was_there_when_workers_died"),
        engine=worker("_claim", "if tasks[id].crashes:", "if False:"),
    ),
    Guard(
        "suspects have their last chance one by one",
        living("those_that_were_there_when_workers_died_have_their_last_chance_one_by_one"),
        engine=worker("_one_suspect", "if id not in later}", "}"),
    ),
    Guard(
        "the last chance is told from crashes, not from attempts",
        living("those_that_were_there_when_workers_died_have_their_last_chance_one_by_one"),
        engine=worker("_one_suspect", "claims[id].crashes >= max(1, self.settings.crash_limit - 1)",
                      "claims[id].attempt >= max(tasks[id].max_attempts, self.settings.crash_limit)"),
    ),
    Guard(
        "the deadline counts from before the claim was sent", law("body_does_not_begin_when_its_claim_may_have_passed_to_another"),
        engine=worker("_claim", "            self._lose_older(claim.id)\n",
                      "            self._lose_older(claim.id)\n            deadline = self._deadline()\n")
        + worker("_claim", "loaded = {task.id: task for task in self.store.load_tasks(list(tasks))}",
                 "loaded = {task.id: task for task in self.store.load_tasks(list(tasks))}; deadline = self._deadline()"),
    ),
    Guard(
        "the inputs of a body are committed before it begins", law("inputs_of_a_body_are_committed_before_it_begins"),
        engine=worker("_turn", "        return commit\n",
                      "        held.owned = dict(step.owned)\n        self._begin_owned(held)\n        return commit\n"),
    ),
    Guard(
        "a claim without an answer is given back", law("claim_without_an_answer_is_given_back_at_once"),
        engine=worker("_reconcile", "if known.get(id) != fence and id not in ending", "if False"),
    ),
    Guard(
        "what is held here is compared with the database after no answer", law("claim_without_an_answer_is_given_back_at_once"),
        engine=worker("step", "if self.unsure or", "if"),
    ),
    Guard(
        "what is held here is compared with the database after anybody's connection was lost",
        law("claim_that_was_lost_unnoticed_is_dropped_after_anybodys_connection_was_lost"),
        engine=worker("step", "or self.store.era != self._era", ""),
    ),
    Guard(
        "what is sent again is still mine", law("turn_is_not_sent_again_with_a_fence_that_another_has_by_now"),
        engine=worker("_sent", "turns = [turn for turn in turns if mine.get(turn.id) == turn.fence]", "pass"),
    ),
    Guard(
        "what was lost without notice is dropped", law("claim_that_was_lost_unnoticed_is_dropped_after_a_call_without_an_answer"),
        engine=worker("_reconcile", "if mine.get(id) != fence:", "if False:"),
    ),
    Guard(
        "what is claimed again was lost before: bodies", law("claiming_again_what_was_lost_stops_the_old_body"),
        engine=worker("_claim", "            self._lose_older(claim.id)\n", ""),
    ),
    Guard(
        "who loads finds a newer fence and lets go", law("owner_that_finds_a_newer_fence_lets_go"),
        engine=worker("_took_row", "if row.fence > held.fence:", "if False:"),
    ),
    Guard(
        "the row of a workflow that has ended is dropped", law("row_of_a_workflow_that_has_ended_is_dropped"),
        engine=worker("_took_row", "or row.status >= TERMINAL", ""),
    ),
    Guard(
        "a task that has ended is not run", law("task_that_has_ended_is_not_run_again"),
        engine=worker("_begin_queued", "if task.ended:", "if False:"),
    ),
    Guard(
        "what is no longer mine is stopped at the next beat", law("claim_that_was_lost_is_dropped_at_the_next_beat"),
        engine=worker("_took_beat", "if known.get(id) == fence and answer.fence(id) != fence:", "if False:"),
    ),
    Guard(
        "a cancel stops a body at the next beat", law("cancelled_task_that_runs_is_stopped_at_the_next_beat"),
        engine=worker("_look", "self._cancel_queued(id)", "pass"),
    ),
    Guard(
        "a cancel reaches the owner at the next beat", law("cancel_stops_the_body_of_an_owned_task_at_the_next_beat"),
        engine=worker("_took_beat", "answer.wakes(held.id) > held.wakes", "False"),
    ),
    Guard(
        "an end that is not committed yet is not given back", law("end_of_a_task_is_kept_while_a_claim_has_no_answer"),
        engine=worker("_reconcile", " and id not in ending", ""),
    ),
    Guard(
        "a worker that stops gives back what it holds", law("worker_that_stops_gives_everything_back"),
        engine=worker("give_back", "if claims:", "if False:"),
    ),
    Guard(
        "a cancelled task is not run", law("cancelled_task_that_is_queued_is_not_run"),
        engine=worker("_begin_queued", "if task.cancel_requested:", "if False:"),
    ),
    Guard(
        "after a crash an owned task goes through the queue", law("task_that_kills_its_worker_is_quarantined_and_the_others_go_on"),
        engine=worker("_take_over", "held.crashes == 0 and ", ""),
    ),
    Guard(
        "a paused workflow takes no turn", law("paused_workflow_takes_no_turn_and_goes_on_when_resumed"),
        engine=worker("_decide", "if loaded.paused and not loaded.ending:", "if False:"),
    ),
    Guard(
        "a wake during a step is looked at", law("pause_stops_a_chain_of_owned_tasks_after_the_one_that_runs"),
        engine=worker("_after", "or answer.wakes != held.wakes ", ""),
    ),
    Guard(
        "look again: the turn was cut short", law("long_computation_is_cut_into_turns_and_ends"),
        engine=turns("plan", "again = isinstance(turn, Continue) or ", "again = "),
    ),
    Guard(
        "look again: the turn itself ended what it awaits", law("child_workflow_that_does_not_exist_is_a_failure_that_can_be_caught"),
        engine=turns("plan", "bool(rows.refused) or ", ""),
    ),
    Guard(
        "look again: what is awaited was begun before", law("what_was_started_before_and_has_ended_is_found_when_it_is_awaited"),
        engine=turns("plan", " or any(n < before.next_child for n in _awaited(turn.snapshot))", ""),
    ),
    Guard(
        "look again: the mailbox was not read", law("signal_that_came_during_a_task_is_found"),
        engine=turns("plan", "not mail_read and ", "False and "),
    ),
    Guard(
        "a wait that is begun looks into no mailbox that was not read",
        looks("a_signal_is_there_for_the_first_look_after_it_was_acknowledged"),
        engine=awaits("knows", "if m.inputs.signals is None and has_signals(plan):", "if False:"),
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
        engine=vm("values", "_deep_equal", "charge(1 + 2 * len(a) + sum(map(len, a)) // LONG)", "pass"),
    ),
    Guard(
        "waiting for what has ended is not free", prices("waiting_again_and_again_for_what_has_ended_is_not_free"),
        engine=awaits("_outcomes", "m.charge(2 * size_of(plan))", "pass"),
    ),
    Guard(
        "a turn whose time is over yields", law("a_turn_that_lasts_yields_before_its_fuel_is_spent"),
        engine=vm("interpreter", "_spent_turn", " or self.over()", ""),
    ),
    Guard(
        "ends that the store did not tell are not known",
        looks("a_cancel_leaves_no_doubt_about_what_had_ended_of_all_that_was_awaited"),
        engine=turns("inputs_of", "() if undecided else ", ""),
    ),
    Guard(
        "only what nothing else can settle is run by the owner", law("task_that_may_lose_a_race_goes_through_the_queue"),
        engine=turns("own", 'plan["op"] == "task" or (plan["op"] == "all" and', 'plan["op"] == "task" or ('),
    ),
)  # fmt: skip

# What the simulation must see by itself. On SQLite the claim in force and the context's fence guard each other.
SIMULATED = (
    Guard(
        "simulation: the turns of an older owner count", (SIMULATION,),
        engine=lite_code("_commit_turn", "held is None or held[0] != turn.fence or ", "")
        + lite("advance_context", " AND fence <= :fence", ""),
    ),
    Guard(
        "simulation: a poisonous turn is tried for ever", (SIMULATION,),
        engine=lite_code("_rescue_workflow", "if crashes >= crash_limit:", "if False:"),
    ),
    Guard(
        "simulation: a poisonous task is tried for ever", (SIMULATION,),
        engine=lite_code("_rescue_task", "if crashes >= crash_limit:", "if False:"),
    ),
)  # fmt: skip

ACCESS = (
    Guard(
        "one at a time adds to the audit", ("tests/store/test_audit.py::test_many_writers_at_once_make_one_chain",),
        postgres=access("postgres", "lock_audit_head", " FOR UPDATE", ""),
    ),
    Guard(
        "rows of the audit are only ever added", ("tests/store/test_audit.py::test_rows_cannot_be_changed_or_deleted",),
        sqlite=migrated("sqlite", "BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT,", "BEFORE UPDATE ON audit BEGIN SELECT iif(1,"),
        postgres=migrated("postgres", "BEFORE UPDATE OR DELETE OR TRUNCATE ON audit ", "BEFORE UPDATE OR DELETE ON audit "),
    ),
    Guard(
        "a token keeps its roles until the decision is committed",
        ("tests/store/test_tokens.py::test_who_decides_keeps_the_roles_until_the_commit_and_a_revocation_waits_for_it",),
        postgres=access("postgres", "share_token", " FOR SHARE", ""),
    ),
    Guard(
        "a token that is revoked has no roles", ("tests/store/test_tokens.py::test_a_token_is_revoked_once",),
        engine=(Change("store/access.py", "entitlement", 'self.status == "active" and ', ""),),
    ),
)  # fmt: skip

PEOPLE = (
    Guard(
        "a decision wakes", approvals("a_decision_wakes_one_who_sleeps_and_says_what_let_it_go_on"),
        people("sqlite", "_end_approval", "self._wake(approval.execution_id, now)", "pass"),
        people("postgres", "decide", "self.rows.call([execution_id])", "pass"),
    ),
    Guard(
        "an approval that expires wakes", approvals("an_approval_expires_at_its_time_and_not_before"),
        people("sqlite", "_end_approval", "self._wake(approval.execution_id, now)", "pass"),
        pg_code("_fire", "*(row[0] for row in (*timers, *waits)), *asked]", "*(row[0] for row in (*timers, *waits))]"),
    ),
    Guard(
        "a decision takes the role", approvals("what_is_refused_leaves_no_trace"),
        engine=judged("if held is not None and approval.role not in held:", "if False:"),
    ),
    Guard(
        "four eyes", approvals("the_starter_of_the_whole_family_is_meant", "what_is_refused_leaves_no_trace"),
        engine=judged("if approval.four_eyes and who", "if False and who"),
    ),
    Guard(
        "what was shown is decided", approvals("what_is_refused_leaves_no_trace"),
        engine=judged("if wanted.shown is not None and wanted.shown != approval.shown:", "if False:"),
    ),
    Guard(
        "a quorum takes different people", approvals("quorum_takes_different_people"),
        engine=judged("if voted and wanted.decision != ESCALATE:", "if False:"),
    ),
    Guard(
        "nobody decides after the deadline", approvals("an_approval_expires_at_its_time_and_not_before"),
        engine=judged("if approval.deadline_at is not None and approval.deadline_at <= now:", "if False:"),
    ),
    Guard(
        "nobody decides what is decided", approvals("a_decision_whose_answer_was_lost_may_be_sent_again"),
        engine=judged('        return Verdict("approval_expired" if approval.decision == EXPIRED else "already_decided")', "        pass"),
    ),
    Guard(
        "the votes of a role that was left count no more", ("tests/app/test_approvals.py::"
        "test_an_escalation_asks_the_next_role_and_forgets_what_the_first_has_said",),
        engine=judged("if each.role == approval.role and each.decision == APPROVE), name)", "if each.decision == APPROVE), name)"),
    ),
    Guard(
        "what is refused is undone", approvals("what_is_refused_leaves_no_trace"),
        postgres=people("postgres", "decide", "raise UndoneError(verdict)", "return verdict"),
    ),
    Guard(
        "what has ended asks nobody any more", approvals("an_execution_that_ends_asks_nobody_any_more"),
        lite_code("_end_workflow", 'self._all("cancel_approvals", now, id, 0, LAST)', "pass"),
        pg("delete_waits", "AND status IS NULL)", "AND false)"),
    ),
    Guard(
        "what let it go on is done with its turn", approvals("what_let_it_go_on_is_done_with_the_turn_that_knew_it"),
        lite_code("_commit_turn", "self._executed(turn.id, upto, error, now)", "pass"),
        pg_code("run", "self._executed(won)", "pass", "flush"),
    ),
    Guard(
        "only what the turn knew is done with it", approvals("what_let_it_go_on_is_done_with_the_turn_that_knew_it"),
        (Change("store/sqlite/approvals.sql", "executed_resumes", " AND id <= :upto", " AND :upto > 0"),),
        (Change("store/postgres/approvals.sql", "executed_resumes", " AND q.id <= x.upto", ""),),
    ),
    Guard(
        "what the last turn did not know is done with it", rule("a_resume_of_which_the_last_turn_did_not_know_is_done_with_it"),
        engine=(Change("store/base.py", "resumed_upto", "EVERY_RESUME if", "self.resumed if"),),
    ),
    Guard(
        "only what is held is resumed", approvals("with_hold_it_is_decided_and_takes_no_turn_until_it_is_resumed"),
        (Change("store/sqlite/approvals.sql", "unpause", " AND paused_at IS NOT NULL", ""),),
        (Change("store/postgres/approvals.sql", "unpause", " AND paused_at IS NOT NULL", ""),),
    ),
)  # fmt: skip

SLOTS = (
    Guard(
        "a slot that has its row starts nothing more",
        ("tests/store/test_schedules.py::test_a_slot_that_has_its_row_is_never_started_again",),
        (Change("store/sqlite/schedules.py", "_fire_slots", " or not self._known_slot(new.fire)", " or True"),),
        (Change("store/postgres/schedules.py", "_unknown_slots", "each.fire.manual or (", "True or ("),),
    ),
    Guard(
        "a schedule is locked while it is fired", ("tests/store/test_schedules.py::test_many_at_once_fire_a_slot_once",),
        postgres=(Change("store/postgres/schedules.sql", "lock_free_schedules", " FOR UPDATE SKIP LOCKED", ""),),
    ),
    Guard(
        "a person waits for a schedule that is being fired",
        ("tests/store/test_schedules.py::test_on_postgres_a_schedule_that_another_process_has_is_left_to_it_and_a_person_waits",),
        postgres=(Change("store/postgres/schedules.py", "fire_schedules", 'if actor is None else "lock_schedules"', 'if True else ""'),),
    ),
    Guard(
        "a slot and its execution are one transaction", ("tests/store/test_schedules.py::test_of_a_plan_that_fails_nothing_is_done",),
        (Change("store/sqlite/schedules.py", "fire_schedules", "with self._transaction():", "if True:"),),
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
        "what was missed is not all run", ("tests/engine/test_schedules.py::test_what_was_missed_is_made_up_for_as_far_as_it_is_wanted",),
        engine=(Change("engine/schedules.py", "_passed", "latest[max(len(latest) - count, 0) :]", "latest"),),
    ),
)  # fmt: skip

GUARDS = (*FENCES, *WAKES, *EVENTS, *RESCUE, *ENDS, *WORKER, *ACCESS, *PEOPLE, *SLOTS, *SIMULATED)
MUTANTS = [mutant for guard in GUARDS for mutant in guard.mutants()]
