"""Texts, workflows and requests that are small and ask for much: memory, room, time of a worker,
executions without end.

While they are at work somebody else's workflow must be served, a cancel must end each of them, and
what they leave must be small.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from typing import Any

from rhythm.app import Rhythm
from rhythm.errors import RhythmError
from tests.attack.places import KINDS
from tests.chaos.report import Figure, at_most, none, spread
from tests.support.stores import rows

PATIENCE_S = 120.0  # for what must happen, on a busy machine
LOOPS = {
    "parse_json": 'let t = "1,"\n for (i in range(18)) { t = t + t }\n t = "[" + t',
    "int": 'let t = "  "\n for (i in range(18)) { t = t + t }',
    "join": "let t = [[i] for i in range(50000)]",
    "sum": 'let t = ["x" for i in range(50000)]',
    "sort": "let t = [i * 7919 % 50000 for i in range(50000)]",
    "publish": "let t = 1",
}
CALLS = {
    "parse_json": "n = parse_json(t)", "int": "n = int(t)", "join": 'n = join(t, ",")',
    "sum": "n = sum(t)", "sort": "n = sort(t)",
    "publish": 'publish("x", t)',
}  # fmt: skip
FLOWS = "\n".join(
    (
        f"workflow loop_{name}() {{\n {begin}\n let n = 0\n while (true) {{\n try {{ "
        f"{CALLS[name]} }} catch (e) {{ n = 1 }}\n }}\n}}"
    )
    for name, begin in LOOPS.items()
)
FORK = (
    'workflow fork() { return await all([workflow("fork"), workflow("fork"), '
    'workflow("fork"), workflow("fork")]) }'
)
PING = "workflow ping() { return 1 }"
TEXTS: dict[str, Callable[[Rhythm], Any]] = {
    "a file of 4,000 workflows": lambda app: app.register(
        "\n".join(f"workflow w{i} {{}}" for i in range(4000))
    ),
    "a file of a megabyte": lambda app: app.register(
        "workflow w() { return 1 }\n" + "// x\n" * 250_000
    ),
    "a cron of 850 KB": lambda app: app.schedule("s", "ping", cron="0-59," * 170_000 + "1 * * * *"),
    "a date beyond all dates": lambda app: app.schedule(
        "s", "ping", at="9999-12-31T23:59:59-23:59"
    ),
    "a reason of a megabyte": lambda app: app.pause_queue("q", "x" * 1_000_000),
    "attributes of a megabyte": lambda app: app.start_workflow(
        "ping", attributes={"a": "x" * 1_000_000}
    ),
    "ten thousand attributes": lambda app: app.start_workflow(
        "ping", attributes={f"a{i}": i for i in range(10_000)}
    ),
    "a key of a megabyte": lambda app: app.start_workflow("ping", idempotency_key="x" * 1_000_000),
    "inputs a thousand deep": lambda app: app.start_workflow("ping", _deep(1000)),
    "inputs of two megabytes": lambda app: app.start_workflow("ping", "x" * 2_000_000),
}


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def taken(url: str) -> list[str]:
    """The texts that were not refused with an error that says why."""
    with Rhythm(url, (), tasks=(), environment={}) as app:
        app.register(PING)
        found = []
        for name, give in TEXTS.items():
            try:
                give(app)
                found.append(f"{name} was taken")
            except (RhythmError, ValueError) as refused:
                if len(str(refused)) > 5000:
                    found.append(f"{name}: the error is as long as the text")
        assert app.schedules() == [], "what is refused is not stored"
        return found


def looped(
    url: str, names: Iterable[str] = LOOPS, pings: int = 10
) -> tuple[list[float], list[str], int]:
    """How long somebody else's workflow took while loops run, the loops that no cancel reached, and
    what the audit kept of them."""
    with Rhythm(url, (), tasks=(), environment={}, worker_poll_interval="20ms") as app:
        app.register(PING, FLOWS)
        with app.worker():
            loops = [app.start_workflow(f"loop_{name}", by="eve") for name in names]
            waits = [_ping(app) for _ in range(pings)]
            for loop in loops:
                app.cancel(loop)
            left = _until(lambda: [loop.id for loop in loops if app.get(loop).finished_at is None])
            (kept,) = rows(app.store, "SELECT count(*) FROM audit")[0]
        return waits, left, kept


def forked(url: str) -> tuple[list[float], int, int]:
    """How long somebody else's workflow took in a queue of its own, how many there were at the end,
    and how many came after it."""
    with Rhythm(url, (), tasks=(), environment={}, worker_poll_interval="20ms") as app:
        app.register(PING, FORK)
        count = "SELECT count(*) FROM executions"
        with app.worker(queues=("other", "default")):
            bomb = app.start_workflow("fork")
            _until(
                lambda: rows(app.store, count)[0][0] < 2000 and app.get(bomb).finished_at is None
            )
            waits = [_ping(app, "other") for _ in range(3)]
            app.terminate(bomb)
            alive = "SELECT 1 FROM executions WHERE finished_at IS NULL LIMIT 1"
            _until(lambda: rows(app.store, alive))
            ended = rows(app.store, count)[0][0]
            _ping(app, "other")
            return waits, ended, rows(app.store, count)[0][0] - ended - 1


def _ping(app: Rhythm, queue: str = "default") -> float:
    began = time.monotonic()
    app.start_workflow("ping", queue=queue).result(timeout=PATIENCE_S)
    return time.monotonic() - began


def _until(left: Callable[[], Any]) -> Any:
    """Waits until nothing is left; what is, when patience ends."""
    last = time.monotonic() + PATIENCE_S
    while (still := left()) and time.monotonic() < last:
        time.sleep(0.02)
    return still


def scenario(seed: int, scale: float) -> list[Figure]:
    figures = list[Figure]()
    for kind, place in KINDS.items():
        with place() as fresh:
            texts, (waits, left, kept), (others, ended, grown) = (
                taken(fresh()),
                looped(fresh()),
                forked(fresh()),
            )
        figures += [
            none(f"texts that were taken, {kind}", texts),
            *spread(f"another's workflow beside loops, {kind}", waits),
            none(f"loops that no cancel reached, {kind}", left),
            at_most(f"rows of the audit that they left, {kind}", kept, 2000),
            *spread(f"another's workflow beside a fork bomb, {kind}", others),
            at_most(f"executions of a fork bomb, {kind}", ended, 200_000),
            none(f"executions after it was terminated, {kind}", grown),
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*figures, at_most("memory of all this, MiB", peak, 1000.0)]
