"""What the doctor finds: nothing in a busy, healthy database, and in each damaged one the
damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
import pytest

from rhythm.engine import doctor
from rhythm.engine.doctor import advice, examine
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.access import Act, Actor, Grant
from rhythm.store.doctor import MAX_FINDINGS, RULES, Evidence, Finding
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.operating import Health, Silent
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.workers import Queue
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.schedules import Schedule
from rhythm.store.sqlfile import statements
from tests.engine.driver import EPOCH_US, Clock, World
from tests.store.test_audit import of_before, within
from tests.support.postgres import TABLES
from tests.support.stores import MakeStore, Stores, rows, sqlite_in_memory

FLOW = """
workflow main {
  let first = await task("value", { x: 1 })
  let go = await signal("go")
  let parts = await all([workflow("kid"), sleep("1d"), task("value", { x: 2, took: 500 }),
    task("flaky", { x: 3, fails: 5 }, { backoff: "1h" }), task("value", { x: 4 })], { concurrency: 4 })
  return parts
}
workflow kid { await signal("never", { timeout: "2d" }) }
workflow short {
  await sleep(1)
  let x = await task("flaky", { x: 9, fails: 2 })
  return x
}
workflow broken { await all([task("fail"), workflow("kid")]) }
workflow owner { await task("value", { x: 5, took: 0.9 }) }
"""


ROOT = Actor("root", source="cli")


class Patient(NamedTuple):
    inner: Store
    clock: Clock


# the rows of a busy database on a server, where making them takes long
SAVED: list[tuple[str, list[Any]]] = []


def busy(make_store: MakeStore) -> Patient:
    if make_store is sqlite_in_memory:
        return made_busy(make_store)
    if not SAVED:
        made = made_busy(make_store)
        SAVED.extend(
            (table, rows(made.inner, f"SELECT * FROM {table}")) for table in TABLES.split(", ")
        )
    clock = Clock()
    clock.seconds = 25.0
    store = make_store(clock.us)
    for table, saved in SAVED:
        for row in saved:
            rows(store, f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return Patient(store, clock)


def made_busy(make_store: MakeStore) -> Patient:
    """A bit of everything.

    `old` has completed, with the retried task old.2; `bad` has failed, its child bad.3 was
    cancelled. `run` sleeps until all of these have ended: run.4, a workflow that waits for a signal
    or timer 1; timer 5; run.6, a task under way; run.7, which is tried again later; run.8, held
    back. In its mailbox are s0, taken, s1 and s2. `owner` is held by a worker that runs its task 1,
    which has no row. `fresh` has not begun. The schedule `daily` has started `old`.
    """
    world = World(FLOW, make_store=make_store)
    for name, id in (("short", "old"), ("broken", "bad")):
        world.start(name, id=id)
        world.run(id)
    world.start("main")
    world.round()  # its mailbox is empty when it is read for the first time
    for i, name in enumerate(("go", "later", "later")):
        world.signal(0, name, i)
    until = world.clock.seconds + 20
    while world.clock.seconds < until:
        world.round()
    world.start("owner", id="owner")
    while "owner.1" not in world.worker.attempts.running:
        world.round()
    world.start("main", id="fresh")
    daily = Schedule("daily", "short", cron="0 9 * * *", next_at=EPOCH_US + 10**9)
    world.inner.schedules.change("daily", lambda before, now: daily)
    rows(world.inner, fired(SLOT, "'old'"))
    assert world.clock.seconds == 25.0
    return Patient(world.inner, world.clock)


def snapshot(store: Store, id: str, **changes: Any) -> None:
    """Changes fields of a snapshot."""
    ((text,),) = rows(
        store, "SELECT snapshot FROM workflow_execution_context WHERE execution_id = ?", [id]
    )
    data = orjson.dumps({**orjson.loads(text), **changes})
    rows(
        store,
        "UPDATE workflow_execution_context SET snapshot = ? WHERE execution_id = ?",
        [data, id],
    )


REFER = "UPDATE workflow_execution_context SET snapshot = ? WHERE execution_id = ?"


def task(id: str, held: str = "1 = 0") -> str:
    parent, _, n = id.rpartition(".")
    return f"""INSERT INTO executions (id, type, name, version, queue, priority, status, parent_id, child_no, root_id, attempt,
      max_attempts, held, options, attributes, inputs, created_at)
      VALUES ('{id}', 1, 't', '', 'default', 0, 0, '{parent}', {n}, '{parent}', 0, 1, {held}, '{{}}', '{{}}', 'null', {EPOCH_US})"""


def ready(id: str, kind: int = 1) -> str:
    return (
        f"INSERT INTO ready (id, kind, queue, priority, order_key, state) VALUES ('{id}', "
        f"{kind}, 'default', 0, {EPOCH_US}, 0)"
    )


def context(id: str) -> str:
    return f"""INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, owned, awaiting, updated_at)
      VALUES ('{id}', 0, 0, 1, 0, '[]', 'null', {EPOCH_US})"""


def turn(id: str, seq: int, status: int) -> str:
    return (
        f"INSERT INTO history VALUES ('{id}', {seq}, 999999, 'w', {status}, {status}, 'turn', "
        f"0, {EPOCH_US + 10**9}, NULL)"
    )


def timer(
    id: str, n: int, fire_at: str = "1", fired_at: str = "NULL", cancelled_at: str = "NULL"
) -> str:
    values = f"'{id}', {n}, NULL, NULL, {fire_at}, {fired_at}, {cancelled_at}"
    return (
        f"INSERT INTO timer_tasks (execution_id, n, delay_us, until_at, fire_at, fired_at, "
        f"cancelled_at) VALUES ({values})"
    )


def signal(id: str, to: str, n: int, name: str) -> str:
    return (
        f"INSERT INTO workflow_signals VALUES ('{id}', '{to}', {n}, '{name}', 'null', "
        f"{EPOCH_US}, NULL)"
    )


def heartbeat(worker: str, at: int) -> str:
    return (
        f"INSERT INTO worker_heartbeats VALUES ('{worker}', '', 1, '', '[]', 1, 1, (1 = 0), "
        f"'', 1, {at}, 30000000)"
    )


def approval(id: str, n: int) -> str:
    columns = (
        "id, execution_id, n, role, reason, data, quorum, four_eyes, stages, notify, "
        "on_deadline, held, created_at, status, ended_at"
    )
    values = (
        f"'{id}.{n}', '{id}', {n}, 'boss', '', 'null', 1, (1 = 0), '[]', 'null', 'expire', (1 "
        f"= 0), 1, 7, 1"
    )
    return f"INSERT INTO approvals ({columns}) VALUES ({values})"


def decides(changes: str) -> str:
    return f"UPDATE approvals SET {changes} WHERE id = 'run.9'"


def contributed(id: str, at: int = 0) -> str:
    return f"INSERT INTO execution_contributors VALUES ('{id}', 'ann', {at})"


BY_VOTE = """status = 5, decision = 'approved', decided_by = '["A\u034fNN"]'"""
BY_ANN = """INSERT INTO events VALUES ('e', 'paid', 1, 'null', 1, '[["ann"], []]')"""


def decided(actor: str, at: int = 1) -> str:
    return (
        f"INSERT INTO approval_decisions VALUES ('run.9', 0, '{actor}', 'boss', 'approve', "
        f"'so', 'hash', NULL, NULL, {at}, 0)"
    )


ENDED = "status = 5, decision = 'approved', ended_at = 9"
TOLD_SO = '{"role": "boss", "comment": "so", "shown": "hash", "ended": ""}'


def audited(actor: str, at: int, detail: str = TOLD_SO, **who: Any) -> Callable[[Store], None]:
    """A row of the audit that is one of its chain, as whoever may insert can write it."""

    def write(store: Any) -> None:
        within(
            store,
            lambda: store.auditor.add(
                Actor(actor, **{"source": "cli", **who}),
                [Act("approval.approve", "run.9", detail)],
                at,
            ),
        )

    return write


def audit(*texts: str) -> Callable[[Store], None]:
    """Changes the audit as somebody can who may take its guards away."""

    def change(store: Store) -> None:
        with of_before(store):
            for text in texts:
                rows(store, text)

    return change


BESIDE = (
    "INSERT INTO audit SELECT 0, at, actor, token, source, action, object, detail, prev, hash "
    "FROM audit"
)


def granted(store: Store) -> None:
    store.access.create_token(
        Grant("t1", "ann", "h1", ("viewer",), ("finance", "büro"), 60.0), ROOT
    )


def changed(store: Store) -> None:
    granted(store)
    store.access.change_token("t1", ("admin",), None, ROOT)


def revoked(store: Store) -> None:
    changed(store)
    store.access.revoke_token("t1", ROOT)


def tokens(changes: str) -> str:
    return f"UPDATE api_tokens SET {changes}"


FORGED_TOKEN = (
    "INSERT INTO api_tokens VALUES ('t1', 'eve', 'h', '[\"admin\"]', '[]', '[]', 1, 'eve', "
    "NULL, NULL, NULL, NULL)"
)


def executions(id: str, changes: str) -> str:
    return f"UPDATE executions SET {changes} WHERE id = '{id}'"


def contexts(id: str, changes: str) -> str:
    return f"UPDATE workflow_execution_context SET {changes} WHERE execution_id = '{id}'"


def turns(id: str, seq: int, changes: str) -> str:
    return f"UPDATE history SET {changes} WHERE execution_id = '{id}' AND seq = {seq}"


def ended(id: str, status: int, column: str) -> tuple[str, ...]:
    """A task ends, and nobody is woken."""
    value, at = '{"code": "x", "message": "m", "data": null}', EPOCH_US + 10**8
    changes = f"status = {status}, {column} = '{value}', attempt = 1, fence = 1, finished_at = {at}"
    return f"DELETE FROM ready WHERE id = '{id}'", executions(id, changes)


SLOT = EPOCH_US - 10**9


def fired(slot: int, execution: str, outcome: str = "started", schedule: str = "daily") -> str:
    columns = "schedule, slot_at, manual, outcome, execution_id, detail, at, open"
    return (
        f"INSERT INTO schedule_fires ({columns}) VALUES ('{schedule}', {slot}, (1 = 0), "
        f"'{outcome}', {execution}, '', 0, (1 = 0))"
    )


FAR = 10**15
PAST = EPOCH_US - 10**10
LONG_PAST = PAST - 30_000_000
OWNED = '[1, "value", null, {}]'


# rule, the execution that is named, how it is damaged, and which other rules may see it too
def taken(event: str) -> str:
    return (
        "INSERT INTO event_waits (execution_id, n, type, wanted, since, held, status, "
        f"event_id, ended_at) VALUES ('run', 99, 'paid', '{{}}', 0, (1 = 0), 5, '{event}', 1)"
    )


DEEP = "deep" + ".1" * (DEFAULT_LIMITS.generations + 1)
DAMAGES: list[tuple[str, str, tuple[str, ...] | Callable[[Store], None], set[str]]] = [
    ("ended_once", "old", (turn("old", 5, 5), contexts("old", "seq = 5, fence = 999999")),
        {"fences_drawn"}),
    ("ended_once", "bad", (turn("bad", 3, 6), contexts("bad", "seq = 3, fence = 999999")),
        {"fences_drawn"}),
    ("ended_clean", "old", (executions("old", "result = NULL"),), set()),
    ("ended_clean", "bad", (executions("bad", "result = '1'"),), set()),
    ("ended_clean", "bad.2", (executions("bad.2", "error = NULL"),), set()),
    ("ended_clean", "run.7", (executions("run.7", "error = '{}'"),), set()),
    ("ended_clean", "old.2", (executions("old.2", "held = (1 = 1)"),), set()),
    ("ended_timers", "old", (timer("old", 9, str(FAR * 9)),), set()),
    ("ended_ready", "old.2", (ready("old.2").replace("state)", "state, attempt)").replace(", 0)",
        ", 0, 3)"),), set()),
    ("ended_ready", "old", (ready("old", 0),), set()),
    ("children_asked_to_end", "bad.9", (task("bad.9"), ready("bad.9")), set()),
    ("children_asked_to_end", "old.9", (task("old.9", "1 = 1"),), set()),
    ("cancelled_tasks_end", "run.7", (executions("run.7", "cancel_requested_at = created_at"),),
        set()),
    ("cancelled_tasks_end", "run.8", (executions("run.8", "cancel_requested_at = created_at"),),
        set()),
    ("terminated_end", "run",
        (f"INSERT INTO terminations (id, requested_at) VALUES ('run', {PAST})",), set()),
    ("history_whole", "run", ("DELETE FROM history WHERE execution_id = 'run' AND seq = 2",),
        set()),
    ("history_whole", "run", ("DELETE FROM history WHERE execution_id = 'run' AND seq = 1",),
        set()),
    ("history_whole", "run.4", (contexts("run.4", "seq = 2"),), set()),
    ("history_chained", "run", (turns("run", 3, "from_status = 0"),), set()),
    ("history_chained", "run", (turns("run", 1, "from_status = 1"),), set()),
    ("history_agrees", "owner", (executions("owner", "status = 0"),), set()),
    ("history_agrees", "fresh", (executions("fresh", "status = 1"),), set()),
    ("attempts_counted", "old.2", (executions("old.2", "attempt = 1"),), set()),
    ("attempts_counted", "old.2", (executions("old.2", "attempt = 2"),), set()),
    ("attempts_counted", "old.2", (executions("old.2", "fence = NULL"),), set()),
    ("attempts_counted", "run.1", (executions("run.1", "attempt = 0"),), set()),
    ("attempts_counted", "old.2", (turns("old.2", 2, "to_status = 5"),), set()),
    ("times_sound", "old.2", (executions("old.2", "finished_at = created_at - 5000000"),), set()),
    ("times_sound", "fresh", (executions("fresh", "created_at = created_at + 5000000"),), set()),
    ("times_sound", "run", (turns("run", 3, "at = at - 5000000"),), set()),
    ("fences_grow", "run", (turns("run", 2, "fence = 1"),), set()),
    ("fences_grow", "run", (turns("run", 2, "worker = 'other'"),), set()),
    ("fences_grow", "run", (contexts("run", "fence = fence - 1"),), set()),
    ("fences_drawn", "run.6", (f"UPDATE ready SET fence = {FAR} WHERE id = 'run.6'",), set()),
    ("fences_drawn", "run", (contexts("run", f"fence = {FAR}"),), set()),
    ("fences_drawn", "old", (executions("old", f"fence = {FAR}"),), set()),
    ("fences_drawn", "owner",
        (("UPDATE ready SET fence = (SELECT fence FROM ready WHERE id = 'owner') WHERE id = "
            "'run.6'"),), set()),
    ("claim_newest", "owner", ("UPDATE ready SET fence = 1 WHERE id = 'owner'",), set()),
    ("claims_taken_back", "run.6",
        (f"UPDATE ready SET claim_expires_at = {PAST} WHERE id = 'run.6'",), set()),
    ("silent_hold_nothing", "run.6", ("UPDATE ready SET claimed_by = 'mute' WHERE id = 'run.6'",
        heartbeat("mute", PAST)), set()),
    ("pending_queued", "run.7", ("DELETE FROM ready WHERE id = 'run.7'",), set()),
    ("pending_queued", "fresh", ("DELETE FROM ready WHERE id = 'fresh'",), set()),
    ("ready_agrees", "run.7", ("UPDATE ready SET kind = 0 WHERE id = 'run.7'",), set()),
    ("ready_agrees", "run.7", (executions("run.7", "held = (1 = 1)"),), set()),
    ("ready_agrees", "run.7", (executions("run.7", "attempt = 5"),), set()),
    ("ready_agrees", "run.7", ("UPDATE ready SET attempt = -1 WHERE id = 'run.7'",), set()),
    ("ready_agrees", "owner", ("UPDATE ready SET claim_expires_at = NULL WHERE id = 'owner'",),
        set()),
    ("ready_agrees", "fresh", ("UPDATE ready SET crash_seq = 5 WHERE id = 'fresh'",), set()),
    ("overdue", "run.4", (f"UPDATE timer_tasks SET fire_at = {PAST} WHERE execution_id = 'run.4'",),
        set()),
    ("overdue", "run", ("INSERT INTO event_waits (execution_id, n, type, wanted, since, held, "
        f"deadline_at) VALUES ('run', 8, 'paid', '{{}}', 1, (1 = 0), {PAST})",), set()),
    ("overdue", "run.7", (f"UPDATE ready SET due_at = {PAST} WHERE id = 'run.7'",), set()),
    ("overdue", "run", (executions("run", f"timeout_at = {PAST}"),), set()),
    ("slots_once", "daily", (fired(SLOT - 5, "'old'"),), set()),
    ("slots_once", "daily", (fired(EPOCH_US + FAR, "NULL", "skipped"),), set()),
    ("slots_once", "daily", (fired(SLOT - 5, "NULL"),), set()),
    ("slots_once", "daily", (fired(SLOT - 5, "'bad'", "skipped"),), set()),
    ("slots_once", "gone", (fired(SLOT, "NULL", "missed", "gone"),), set()),
    ("schedules_fire", "daily", (f"UPDATE schedules SET next_at = {PAST + 1}",
        f"UPDATE schedule_fires SET slot_at = {PAST}"), set()),
    ("no_lost_wake", "run", ended("run.6", 6, "error"), set()),  # one of `all` has failed
    # one has ended: the one that is held back may begin
    ("no_lost_wake", "run", ended("run.6", 5, "result"), set()),
    ("no_lost_wake", "run.4",
        ("UPDATE timer_tasks SET fired_at = fire_at WHERE execution_id = 'run.4'",), set()),
    ("no_lost_wake", "run.4", (signal("s9", "run.4", 1, "never"),), set()),
    ("no_lost_wake", "run.4", (executions("run.4", "cancel_requested_at = created_at"),), set()),
    ("no_lost_wake", "run.4", (executions("run.4", "timed_out_at = created_at"),), set()),
    ("no_orphan_wait", "run", ("DELETE FROM executions WHERE id = 'run.8'",), set()),
    ("no_orphan_wait", "run", ("DELETE FROM timer_tasks WHERE execution_id = 'run'",), set()),
    ("no_orphan_wait", "run.4", ("DELETE FROM timer_tasks WHERE execution_id = 'run.4'",), set()),
    ("no_orphan_wait", "owner", (contexts("owner", "owned = '[]'"),), set()),
    ("owned_once", "run.4", (contexts("run.4", f"owned = '[{OWNED}]'"),), set()),
    ("owned_once", "owner", (contexts("owner", f"owned = '[{OWNED}, {OWNED.replace('1', '7')}]'"),),
        set()),
    ("owned_once", "owner", (task("owner.1"), ready("owner.1")), set()),
    ("belongs", "ghost", (context("ghost"),), set()),
    ("belongs", "ghost", (turn("ghost", 1, 1),), set()),
    ("belongs", "ghost", (timer("ghost", 1, str(FAR * 9)),), set()),
    ("belongs", "ghost", (signal("s9", "ghost", 1, "x"),), set()),
    ("belongs", "ghost", (ready("ghost", 0),), set()),
    ("context_kept", "run.4",
        ("DELETE FROM workflow_execution_context WHERE execution_id = 'run.4'",), set()),
    ("context_kept", "run.6", (context("run.6"),), set()),
    ("blobs_kept", "run", ("INSERT INTO blobs VALUES ('run', 'x')",), set()),
    ("blobs_kept", "ghost", ("INSERT INTO blobs VALUES ('ghost', 'x')",), set()),
    ("blobs_kept", "run", lambda store: rows(store, REFER, [b"@", "run"]), {"snapshot_readable"}),
    ("definition_kept", "run.4", ("DELETE FROM workflow_definitions WHERE name = 'kid'",), set()),
    ("sources_kept", "kid",
        ("UPDATE workflow_definitions SET source_hash = 'gone' WHERE name = 'kid'",), set()),
    ("sources_kept", "lone", ("INSERT INTO workflow_sources VALUES ('lone', '')",), set()),
    ("child_ids", "run.99", (executions("run.1", "id = 'run.99'"),), set()),
    ("child_ids", "ghost.1", (executions("run.1", "id = 'ghost.1', parent_id = 'ghost'"),), set()),
    ("child_ids", "old.2.1", (executions("run.1",
        "id = 'old.2.1', parent_id = 'old.2', root_id = 'old'"),), set()),
    ("child_ids", "run.1", (executions("run.1", "root_id = 'old'"),), set()),
    ("child_ids", "fresh", (executions("fresh", "root_id = 'old'"),), set()),
    ("within_generations", DEEP, (executions("old", f"id = '{DEEP}', root_id = '{DEEP}'"),),
        {"belongs", "context_kept", "child_ids"}),
    ("numbers_once", "bad", (executions("bad.3", "child_no = 2"),), {"child_ids"}),
    ("numbers_once", "run", (timer("run", 7, str(FAR * 9)),), set()),
    ("status_known", "run.7", (executions("run.7", "status = 1"),), set()),
    ("status_known", "fresh", (executions("fresh", "type = 4"),), {"ready_agrees", "context_kept"}),
    ("timers_sound", "run", (timer("run", 77, "2", "1"),), set()),
    ("timers_sound", "run", (timer("run", 77, "NULL", "1"),), set()),
    ("timers_sound", "run", (timer("run", 77, "1", "2", "2"),), set()),
    ("signals_numbered", "run", ("DELETE FROM workflow_signals WHERE id = 's0'",), set()),
    ("signals_numbered", "run", ("DELETE FROM workflow_signals WHERE id = 's1'",), set()),
    ("signals_in_order", "run", ("UPDATE workflow_signals SET consumed_seq = 3 WHERE id = 's2'",),
        set()),
    ("signals_in_order", "run",
        ("UPDATE workflow_signals SET consumed_seq = 5 - n WHERE name = 'later'",), set()),
    ("signals_taken", "run", ("UPDATE workflow_signals SET consumed_seq = 9 WHERE id = 's0'",),
        set()),
    ("events_kept", "run", (taken("gone"),), set()),
    ("events_kept", "run", ("INSERT INTO events VALUES ('e', 'sent', 1, 'null', 1, NULL)",
        taken("e")), set()),
    ("triggers_current", "main",
        ("INSERT INTO event_triggers VALUES ('paid', 'main', 'other', 'default', NULL)",), set()),
    ("triggers_current", "ghost",
        ("INSERT INTO event_triggers VALUES ('paid', 'ghost', '1', 'default', NULL)",), set()),
    ("audit_chained", "row 1", (audited("x", 1), audit("UPDATE audit SET actor = 'y'")), set()),
    ("audit_chained", "row 0", (audited("x", 1), audit(BESIDE)), set()),
    ("audit_chained", "row 2", (audited("x", 1), audit("UPDATE audit_head SET n = 2")), set()),
    ("approvals_entitled", "run.9", (approval("run", 9),
        decides("status = 5, decision = 'approved'")), set()),
    ("approvals_entitled", "run.9", (approval("run", 9),
        decides("status = 5, decision = 'rejected'")), set()),
    ("approvals_entitled", "run.9", (approval("run", 9), decides("four_eyes = (1 = 1)"),
        contributed("run"), decided("Ann")),
     {"decisions_audited"}),
    ("approvals_entitled", "run.9", (approval("run", 9),
        decides(f"four_eyes = (1 = 1), ended_at = 3, {BY_VOTE}"), decided("A\u034fNN"),
     contributed("run", 2)), {"decisions_audited"}),
    ("approvals_entitled", "run.9", (approval("run", 9),
        decides("status = 5, decision = 'approved', escalated = 1"), decided("ann")),
     {"decisions_audited"}),
    ("belongs", "ghost", (contributed("ghost"),), set()),
    ("contributors_kept", "run", (executions("run", "started_by = 'ann'"),), set()),
    ("contributors_kept", "run", (BY_ANN, taken("e")), set()),
    ("contributors_kept", "run", (contributed("old"), executions("run", "retry_of = 'old'")),
        set()),
    ("contributors_kept", "run.4", (executions("run.4", """authority = '[["author"]]'"""),), set()),
    ("approvals_entitled", "run.9", (approval("run", 9), decided("ann", 2)), {"decisions_audited"}),
    ("approvals_entitled", "run.9", (approval("run", 9), decides("status = 5")), set()),
    ("approvals_awaited", "old", (approval("old", 9),
        "UPDATE approvals SET status = NULL, ended_at = NULL WHERE id = 'old.9'"), set()),
    ("overdue", "run", (approval("run", 9),
        decides(f"status = NULL, ended_at = NULL, deadline_at = {PAST}")), set()),
    ("overdue", "run", (executions("run", f"paused_at = 1, paused_until = {PAST}"),), set()),
    ("decisions_audited", "run.9", (decided("ann"),), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("bob", 1)), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 2)), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1, token="t9")), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1, TOLD_SO.replace("boss",
        "clerk"))), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1, TOLD_SO.replace("hash",
        "other"))), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1, TOLD_SO.replace("so", "no"))),
        set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1, "nonsense")), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1, "[" * 100_000)), set()),
    ("decisions_audited", "run.9", (decided("ann"), audited("ann", 1),
        audit("UPDATE audit SET n = 0")), {"audit_chained"}),
    ("decisions_audited", "run.9", (approval("run", 9), audited("ann", 1)), set()),
    ("decisions_audited", "run.9", (approval("run", 9), audited("ann", 1, source="service")),
        set()),
    ("decisions_audited", "run.9",
     (approval("run", 9), decides(ENDED), decided("ann"), audited("ann", 1, token="t9")), set()),
    ("tokens_audited", "t1", (FORGED_TOKEN,), set()),
    ("tokens_audited", "t1", (granted, tokens("roles = '[\"admin\"]'")), set()),
    ("tokens_audited", "t1", (granted, tokens("roles = 'nonsense'")), set()),
    ("tokens_audited", "t1", (granted, tokens("business_roles = '[\"board\"]'")), set()),
    ("tokens_audited", "t1", (granted, tokens("name = 'bob'")), set()),
    ("tokens_audited", "t1", (granted, tokens("hash = 'h2'")), set()),
    ("tokens_audited", "t1", (granted, tokens("expires_at = NULL")), set()),
    ("tokens_audited", "t1", (granted, tokens("revoked_at = 1")), set()),
    ("tokens_audited", "t1", (granted, "DELETE FROM api_tokens"), set()),
    ("tokens_audited", "t1", (changed, tokens("roles = '[\"viewer\"]'")), set()),
    ("tokens_audited", "t1", (revoked, tokens("revoked_at = NULL")), set()),
    ("tokens_audited", "t1", (revoked, tokens("revoked_at = 1")), set()),
    ("snapshot_readable", "run.4", lambda store: snapshot(store, "run.4", v=99), set()),
    ("snapshot_readable", "run.4", lambda store: snapshot(store, "run.4", locals=[]), set()),
    ("snapshot_readable", "run.4", lambda store: snapshot(store, "run.4", awaiting={"op": "task"}),
        set()),
    ("snapshot_readable", "run.4", (contexts("run.4", "owned = 'nonsense'"),), set()),
    ("context_agrees", "run.4", (contexts("run.4", "awaiting = 'null'"),), set()),
    ("context_agrees", "run.4", (contexts("run.4", "statement = 5"),), set()),
    ("within_limits", "run.4", lambda store: snapshot(store, "run.4",
        locals={"x": "x" * 5_000_000}), set()),
    ("waits_for_something", "run.4",
     lambda store: (snapshot(store, "run.4", awaiting=None),
         rows(store, contexts("run.4", "awaiting = 'null'")))[0], set()),
]  # fmt: skip


def damage(
    store: Store, how: tuple[str | Callable[[Store], None], ...] | Callable[[Store], None]
) -> None:
    for each in (how,) if callable(how) else how:
        if callable(each):
            each(store)
        else:
            rows(store, each)


@pytest.mark.parametrize("how", [granted, changed, revoked])
def test_tokens_that_were_made_changed_and_revoked_as_one_does_are_healthy(
    make_store: MakeStore, how: Callable[[Store], None]
) -> None:
    store = busy(make_store).inner
    how(store)
    store.access.touch_tokens(["t1"])
    assert examine(store, 0.0) == []


def test_a_decision_with_its_row_is_healthy(make_store: MakeStore) -> None:
    store = busy(make_store).inner
    damage(store, (approval("run", 9), decides(ENDED), decided("ann"), audited("ann", 1)))
    assert examine(store, 0.0) == []


def test_busy_database_is_healthy_at_any_moment(make_store: MakeStore) -> None:
    world = busy(make_store)
    assert examine(world.inner, 0.0) == []
    assert world.inner.operating.health().executions == 13


@pytest.mark.parametrize(
    ("rule", "subject", "how", "others"),
    DAMAGES,
    ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(DAMAGES)],
)
def test_damage_is_found_by_its_rule(
    make_store: MakeStore,
    rule: str,
    subject: str,
    how: tuple[Any, ...] | Callable[[Store], None],
    others: set[str],
) -> None:
    world = busy(make_store)
    damage(world.inner, how)
    found = examine(world.inner, 0.0)
    assert (rule, subject) in {(finding.rule, finding.subject) for finding in found}, found
    assert {finding.rule for finding in found} <= {rule} | others, found


WAITS = """
workflow late { let e = event("paid", { timeout: "1h" }); let x = await all([e, signal("go")]) }
workflow tidies { try { await event("paid") } finally { await sleep("1d") } }
"""


def test_one_who_waits_for_an_event_or_tidies_up_after_its_time_is_healthy(
    make_store: MakeStore,
) -> None:
    world = World(
        WAITS.replace("workflow tidies", '@timeout("1h") workflow tidies'), make_store=make_store
    )
    for name in ("late", "tidies"):
        world.start(name, id=name)
    while world.clock.seconds < 1800:
        world.round()
    assert examine(world.inner, 0.0) == []
    while world.clock.seconds < 4000:
        world.round()
    assert world.inner.reading.get(["tidies"])["tidies"].status == "suspended"
    assert examine(world.inner, 0.0) == []


def test_one_whose_event_has_come_and_who_sleeps_is_found(make_store: MakeStore) -> None:
    world = World(WAITS, make_store=make_store)
    world.start("tidies", id="tidies")
    while not world.inner.messages.waits("tidies"):
        world.round()
    rows(world.inner, f"UPDATE event_waits SET status = 5, ended_at = {EPOCH_US}")
    assert [(finding.rule, finding.subject) for finding in examine(world.inner, 0.0)] == [
        ("no_lost_wake", "tidies")
    ]


def test_two_executions_of_one_key_are_found_where_the_index_is_gone(make_store: MakeStore) -> None:
    world = busy(make_store)
    rows(world.inner, "DROP INDEX executions_key")
    try:
        rows(
            world.inner, "UPDATE executions SET key = 'k', name = 'main' WHERE id IN ('old', 'bad')"
        )
        assert [(finding.rule, finding.subject) for finding in examine(world.inner, 0.0)] == [
            ("one_per_key", "bad")
        ]
    finally:
        rows(world.inner, "UPDATE executions SET key = NULL")
        rows(
            world.inner,
            "CREATE UNIQUE INDEX executions_key ON executions (name, key) WHERE key IS NOT NULL",
        )


def test_two_rows_of_one_slot_are_found_where_the_index_is_gone(make_store: MakeStore) -> None:
    world = busy(make_store)
    rows(world.inner, "DROP INDEX fires_slot")
    try:
        rows(world.inner, fired(SLOT, "'bad'"))
        assert [(finding.rule, finding.subject) for finding in examine(world.inner, 0.0)] == [
            ("slots_once", "daily")
        ]
    finally:
        rows(world.inner, "DELETE FROM schedule_fires WHERE execution_id = 'bad'")
        rows(
            world.inner,
            (
                "CREATE UNIQUE INDEX fires_slot ON schedule_fires (schedule, slot_at) WHERE "
                "(manual IN (1 = 0))"
            ),
        )


def test_every_rule_has_a_damage_and_is_asked_of_both_databases() -> None:
    judged = {
        "audit_chained",
        "tokens_audited",
        "no_lost_wake",
        "no_orphan_wait",
        "waits_for_something",
        "owned_once",
        "snapshot_readable",
        "context_agrees",
        "within_limits",
    }
    sqlite, postgres = (
        statements(f"rhythm.store.{name}", "doctor.sql").keys() for name in ("sqlite", "postgres")
    )
    assert sqlite & RULES.keys() == postgres & RULES.keys() == RULES.keys() - judged
    assert {rule for rule, *_ in DAMAGES} | {"one_per_key"} == RULES.keys()


LATE = [(rule, subject, how) for rule, subject, how, _ in DAMAGES
        if rule in ("claims_taken_back", "silent_hold_nothing", "overdue", "cancelled_tasks_end",
            "terminated_end", "schedules_fire")
        or (rule, how) in (
            ("ended_ready", (ready("old", 0),)), ("belongs", (ready("ghost", 0),)))]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "subject", "how"), LATE, ids=[f"{rule}-{subject}" for rule, subject, _ in LATE]
)
def test_what_takes_a_moment_may_be_late_by_the_grace(
    make_store: MakeStore, rule: str, subject: str, how: tuple[str, ...]
) -> None:
    world = busy(make_store)
    damage(world.inner, how)
    assert examine(world.inner, 100_000.0) == []
    assert [(finding.rule, finding.subject) for finding in examine(world.inner, 1.0)] == [
        (rule, subject)
    ]


def test_paused_workflow_may_sleep_through_anything(make_store: MakeStore) -> None:
    world = busy(make_store)
    damage(world.inner, (*ended("run.6", 6, "error"), executions("run", "paused_at = created_at")))
    assert examine(world.inner, 0.0) == []


def test_of_many_findings_the_first_are_told_and_all_are_counted(make_store: MakeStore) -> None:
    world = busy(make_store)
    for n in range(100, 103 + MAX_FINDINGS):
        rows(world.inner, task(f"run.{n}"))
    owned = ", ".join(OWNED.replace("1", str(n)) for n in range(100, 103 + MAX_FINDINGS))
    rows(world.inner, contexts("run", f"owned = '[{owned}]'"))
    found = examine(world.inner, 0.0)
    told = [finding for finding in found if finding.rule == "pending_queued"]
    assert (len(told), {finding.of for finding in told}) == (MAX_FINDINGS, {MAX_FINDINGS + 3})
    judged = [finding for finding in found if finding.rule == "owned_once"]
    assert (len(judged), {finding.of for finding in judged}) == (MAX_FINDINGS, {MAX_FINDINGS + 4})


@pytest.mark.parametrize("rule", ["no_lost_wake", "no_orphan_wait", "owned_once"])
def test_waits_are_judged_in_portions_of_any_size(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    monkeypatch.setattr(doctor, "PAGE_SIZE", 1)
    monkeypatch.setattr(doctor, "NUMBERS", 2)
    test_damage_is_found_by_its_rule(make_store, *next(case for case in DAMAGES if case[0] == rule))


def test_all_rules_see_one_moment_and_nobody_waits_for_them(stores: Stores) -> None:
    store = stores.empty_store(lambda: EPOCH_US)
    other = stores.store(lambda: EPOCH_US)

    def judge(evidence: Evidence) -> Iterator[Finding]:
        other.executions.start([NewExecution("late", WORKFLOW, "main", "default", version="1")])
        assert [live for page in evidence.live(10) for live in page] == []
        return iter(())

    assert store.operating.check(0.0, judge) == []
    assert [finding.rule for finding in examine(store, 0.0)] == ["definition_kept"]


def test_message_names_a_status(make_store: MakeStore) -> None:
    world = busy(make_store)
    rows(world.inner, turns("run", 3, "from_status = 0"))
    assert [finding.message for finding in examine(world.inner, 0.0)] == [
        "turn 3 began as pending, and not as suspended"
    ]


# wakes that are left out

ONE, OTHER = 'task("value", { x: 1 })', 'task("value", { x: 2, took: 500 })'
AWAITS = {
    "task": f"await {ONE}",
    "all": f"await all([{ONE}, {ONE}])",
    "all that fails": f'await all([task("fail"), {OTHER}])',
    "all, settled": f'await all([{ONE}, task("fail")], {{ settle: true }})',
    "all, enough": f"await all([{ONE}, {OTHER}], {{ need: 1 }})",
    "all, one at a time": f"await all([{ONE}, {ONE}], {{ concurrency: 1 }})",
    "any": f"await any([{ONE}, {OTHER}])",
    "race": f'await race({{ quick: {ONE}, slow: sleep("1d") }})',
    "groups": f"await all([all([{ONE}, {ONE}]), any([{ONE}, {OTHER}])])",
    "completed": f"for (r in completed([{ONE}, {OTHER}])) {{ }}",
    "sleep": "await sleep(1)",
    "signal": 'await signal("go")',
    "signal in time": 'await signal("late", { timeout: 5 })',
    "event in time": 'await event("late", { timeout: 5 })',
    "workflow": 'await workflow("kid")',
    "branch": "await all([branch { return 1 }, branch { return 2 }])",
    "started before": f"let id = {ONE}\nawait id",
    "group behind": f'let id = all([{ONE}, {ONE}], {{ concurrency: 1 }})\nawait sleep("1d")',
}


@pytest.mark.parametrize("awaited", AWAITS)
def test_wake_that_is_left_out_is_found_whatever_is_awaited(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, awaited: str
) -> None:
    world = World(
        f"workflow main {{ {AWAITS[awaited]} }}\nworkflow kid {{ return 1 }}",
        make_store=make_store,
        owner_run=False,
    )
    world.start()
    world.signal(1.0, "go", 1)
    if isinstance(world.inner, PostgresStore):
        db = world.inner.db
        monkeypatch.setattr(world.inner.rows, "wake", lambda ids, now: None)
        monkeypatch.setattr(world.inner.rows, "wake_live", lambda ids: db.now())
    else:
        monkeypatch.setattr(world.inner.rows, "wake_all", lambda ids, now: None)
    while world.clock.seconds < 30 and not examine(world.inner, 0.0):
        world.round()
    assert [(finding.rule, finding.subject) for finding in examine(world.inner, 0.0)] == [
        ("no_lost_wake", "run")
    ]


# health

MINUTE_US = 60_000_000


def healthy(**changes: Any) -> Health:
    return Health(
        EPOCH_US,
        5,
        (Queue("default", 3, EPOCH_US - 1, 2, 0),),
        0.5,
        (("ready", 10, 9),),
        0.0,
        server=True,
    ).replace(**changes)


def told(**changes: Any) -> str:
    (advised,) = advice(healthy(**changes), EPOCH_US)
    return advised


def test_nothing_is_advised_where_all_is_well() -> None:
    assert advice(healthy(), EPOCH_US) == []
    assert advice(Health(EPOCH_US, 0, ()), EPOCH_US - 10 * MINUTE_US) == [], (
        "the clock of a file is that of this machine"
    )


def test_queue_that_nobody_serves_is_told_from_one_whose_workers_are_busy() -> None:
    oldest = EPOCH_US - 5 * MINUTE_US
    assert told(queues=(Queue("mail", 3, oldest, 0, 0),)) == (
        "queue mail: 3 ready, the oldest for 5 min; no worker claims any: is one running "
        "that serves it?"
    )
    assert "start more of them" in told(queues=(Queue("mail", 3, oldest, 7, 0),))
    assert "2 claims have expired" in told(queues=(Queue("mail", 0, None, 2, 2),))
    assert (
        "no worker claims any"
        in advice(healthy(queues=(Queue("mail", 3, oldest, 2, 2),)), EPOCH_US)[0]
    )


def test_queue_whose_workers_claim_nothing_is_told() -> None:
    assert "workers serve it, and claim none" in told(
        queues=(Queue("mail", 3, EPOCH_US - 5 * MINUTE_US, 0, 0, workers=2),)
    )


def test_paused_queue_is_told_only_where_something_waits_in_it() -> None:
    paused = Queue(
        "mail",
        2,
        EPOCH_US - 5 * MINUTE_US,
        0,
        0,
        1,
        EPOCH_US - 3 * MINUTE_US,
        "ops",
        "the mail server is down",
    )
    assert told(queues=(paused,)) == (
        "queue mail: 3 wait; it was paused by ops 3 min ago (the mail server is down), "
        "and nobody takes any until it is resumed"
    )
    assert "3 wait; it was paused 3 min ago, and nobody" in told(
        queues=(paused.replace(paused_by="", paused_reason=""),)
    )
    assert (
        advice(healthy(queues=(paused.replace(ready=0, oldest_at=None, delayed=0),)), EPOCH_US)
        == []
    )


def test_worker_that_has_claims_and_is_silent_is_told() -> None:
    assert told(silent=(Silent("a", 2, EPOCH_US - 5 * MINUTE_US),)) == (
        "worker a has 2 claims, and was last heard of 5 min ago; a running worker takes them back"
    )
    assert "no heartbeat: they are taken back when they expire" in told(
        silent=(Silent("a", 2, None),)
    )


def test_database_in_bad_health_is_told() -> None:
    assert "a transaction has been open for 3 h" in told(transaction_s=10_000.0)
    assert "table ready has 20,000 dead rows and 5 live ones" in told(
        dead_rows=(("ready", 5, 20_000), ("executions", 30_000, 20_000))
    )
    assert "50% full" in told(notifications=0.5)
    assert told(now=EPOCH_US + 90_000_000, queues=()).startswith(
        "the clock of the database is 90 s ahead of that of this machine"
    )
    assert told(now=EPOCH_US - 90_000_000, queues=()).startswith(
        "the clock of the database is 90 s behind that of this machine"
    )


def test_health_counts_what_is_ready_claimed_and_expired(make_store: MakeStore) -> None:
    world = busy(make_store)
    world.clock.seconds += 1000
    (queue,) = world.inner.operating.health().queues
    assert (queue.name, queue.ready, queue.claimed, queue.expired) == ("default", 1, 2, 2)
    assert queue.oldest_at == world.clock.us() - 1_000_000_000
