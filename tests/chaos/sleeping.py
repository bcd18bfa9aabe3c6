"""A thousand workflows asleep cost next to nothing; then a thousand timers are due at once, and a
thousand signals come at once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from rhythm.store.interfaces.messages import NewSignal
from tests.chaos.report import Figure, at_least, at_most, spread
from tests.chaos.server import Server, own_server, until
from tests.chaos.world import SHORT, World, world

POLL_S = 1.0
ORDINARY = {  # as in production: what an idle worker costs is a question of its defaults
    "RHYTHM_WORKER_POLL_INTERVAL": str(POLL_S),
    "RHYTHM_HEARTBEAT_INTERVAL": "5",
    "RHYTHM_DEAD_AFTER": "30",
    "RHYTHM_CLAIM_TTL": "30",
}
ASLEEP = "workflow asleep() {\n  await sleep(3600)\n}\n"
TIMED = "workflow timed(inputs) {\n  await sleep_until(inputs.at)\n}\n"
WAITING = 'workflow waiting() {\n  await signal("go")\n}\n'
ASKED = re.compile(r"(\d+)LOG:  (?:statement|execute [^:]*): (\w+)")


def scenario(seed: int, scale: float) -> list[Figure]:
    count, watch_s = max(50, round(1000 * scale)), max(3.0, 40.0 * scale)
    with (
        own_server("-c log_min_messages=log -c log_line_prefix=%p") as server,
        world(server.url, seed, 1, ORDINARY) as w,
    ):
        w.workers.start()
        asleep = w.load.start("asleep", ASLEEP, [None] * count)
        parked(w, count)
        asked = watched(server, partial(time.sleep, watch_s))
        late_s = due_at_once(w, count, server)
        latency_s = signals_at_once(w, count)
        w.load.store.executions.cancel(asleep)
        for id in asleep:
            del w.load.started[id]
        return [
            *w.verdict(),
            at_least("asleep for an hour", len(asleep), count),
            at_most(
                "transactions of an idle worker in a poll interval",
                asked / watch_s * POLL_S,
                2.0 if scale > SHORT else 3.0,
            ),
            *spread("timers due at once: late", late_s, most_p99=10.0),
            at_least("… of these fired", len(late_s), count),
            *spread("signals at once: latency", latency_s, most_p99=10.0),
            at_least("… of these arrived", len(latency_s), count),
        ]


def parked(w: World, count: int) -> bool:
    return until(
        lambda: (
            w.load.query(
                "SELECT count(*) FROM executions WHERE status = 1 AND finished_at IS NULL"
            )[0][0]
            >= count
        ),
        60.0,
    )


def watched(server: Server, meanwhile: Callable[[], None]) -> int:
    """The transactions that the server was asked for meanwhile, by its own account; a statement
    outside of a transaction is one."""
    server.rows("SELECT 1 FROM pg_sleep(1.5)")  # whoever was busy has found its rest
    server.set("log_statement", "all")
    before = server.log.stat().st_size
    meanwhile()
    with server.log.open("rb") as log:
        log.seek(before)
        asked = ASKED.findall(log.read().decode(errors="replace"))
    server.set("log_statement", "none")
    count, inside = 0, set[str]()
    for process, word in asked:
        count += process not in inside
        if word == "BEGIN":
            inside.add(process)
        elif word in ("COMMIT", "ROLLBACK"):
            inside.discard(process)
    return count


def due_at_once(w: World, count: int, server: Server) -> list[float]:
    now_us = server.rows("SELECT rhythm.now_us()")[0][0]
    due_us = (now_us // 1000 + 2000 + 4 * count) * 1000
    at = datetime.fromtimestamp(due_us / 1e6, UTC).isoformat(timespec="milliseconds")
    w.load.start("timed", TIMED, [{"at": at}] * count)
    return [(ended_us - due_us) / 1e6 for (ended_us,) in ended(w, "timed", count)]


def signals_at_once(w: World, count: int) -> list[float]:
    ids = w.load.start("waiting", WAITING, [None] * count)
    parked(w, 2 * count)
    for id in ids:
        w.load.store.messages.signal(NewSignal(f"{id}#go", id, "go", "null"), 1000)
    ended(w, "waiting", count)
    received = (
        "SELECT e.finished_at - s.received_at FROM executions e JOIN workflow_signals s ON "
        "s.execution_id = e.id"
    )
    return [
        us / 1e6
        for (us,) in w.load.query(
            f"{received} WHERE e.name = 'waiting' AND e.finished_at IS NOT NULL"
        )
    ]


def ended(w: World, name: str, count: int) -> list[tuple[int]]:
    rows = f"SELECT finished_at FROM executions WHERE name = '{name}' AND finished_at IS NOT NULL"
    until(lambda: len(w.load.query(rows)) >= count, 60.0)
    return w.load.query(rows)
