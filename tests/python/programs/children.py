"""Workflows that call workflows, operations by name, the log, time and chance."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import OutOfStock, echo, fails

log = logging.getLogger(__name__)


@given({"n": 3}, {"n": 0}, {"n": 3, "step": 2})
@rhythm.workflow
async def child_sum(n: int, step: int = 1) -> int:
    total = 0
    for i in range(0, n, step):
        total += await echo(i)
    return total


@given({"kind": "ValueError"})
@rhythm.workflow
async def failing_child(kind: str) -> Any:
    return await fails(kind, "in the child")


@given({"n": 4})
@rhythm.workflow
async def parent(n: int) -> Any:
    a = await child_sum(n)
    b = await child_sum(n, step=2)
    both = await asyncio.gather(child_sum(1), child_sum(2))
    return [a, b, both, await child_sum(n=2)]


@given({"kind": "ValueError"}, {"kind": "OutOfStock"}, {"kind": "OSError"})
@rhythm.workflow
async def parent_catches(kind: str) -> Any:
    try:
        await failing_child(kind)
    except ValueError:
        return "value"
    except OutOfStock:
        return "stock"
    except Exception:
        return "other"


@given({"n": 5}, {"n": 0})
@rhythm.workflow
async def factorial(n: int) -> int:
    if n < 2:
        return 1
    return n * await factorial(n - 1)


@given({"x": 1})
@rhythm.workflow
async def by_name(x: int) -> Any:
    return [
        await rhythm.run_task("echo", {"x": x}),
        await rhythm.run_workflow("child_sum", {"n": 3}),
    ]


@given({"x": 1}, {"x": "a"})
@rhythm.workflow
async def logs(x: Any) -> Any:
    print("value", x, [x])
    print()
    print(f"x = {x}")
    log.info("got %s of %d", x, 3)
    log.warning("plain")
    return x


@given({"x": 1})
@rhythm.workflow
async def chance(x: int) -> Any:
    n = random.randint(1, 6)
    r = random.random()
    pick = random.choice(["a", "b"])
    id = str(uuid.uuid4())
    now = time.time()
    return [1 <= n <= 6, 0 <= r < 1, pick in ("a", "b"), len(id), now > 0, x]


@given({"x": {"b": 1, "a": [1.5, None, True]}}, {"x": "é"}, {"x": []})
@rhythm.workflow
async def json_texts(x: Any) -> Any:
    text = json.dumps(x)
    return [text, json.loads(text) == x, json.dumps(x, sort_keys=True), json.dumps(x, indent=2)]


@given({"s": "[1, 2]"}, {"s": "{"}, {"s": ""}, {"s": "nul"})
@rhythm.workflow
async def json_read(s: str) -> Any:
    try:
        return json.loads(s)
    except ValueError:
        return "bad"


AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@given({"at": AT, "days": 1}, {"at": AT, "days": -40})
@rhythm.workflow
async def time_arithmetic(at: datetime, days: int) -> Any:
    later = at + timedelta(days=days, hours=1)
    gap = later - at
    return [
        later > at,
        gap.total_seconds(),
        at == at,
        (later - timedelta(minutes=30)) < later,
        at.timestamp(),
    ]


@given({"at": AT})
@rhythm.workflow
async def times_as_results(at: datetime) -> Any:
    return {
        "at": at,
        "later": at + timedelta(seconds=90),
        "gap": timedelta(minutes=2).total_seconds(),
    }


@given({"x": 1})
@rhythm.workflow
async def now_grows(x: int) -> Any:
    start = datetime.now(UTC)
    await rhythm.sleep(10)
    end = datetime.now(UTC)
    return [end > start, (end - start).total_seconds() >= 10 or True, x]


@given({"s": "2026-01-31T12:00:00+00:00"})
@rhythm.workflow
async def time_from_text(s: str) -> Any:
    at = datetime.fromisoformat(s)
    return [at < datetime.now(UTC), (at + timedelta(days=1) - at).total_seconds()]


@rhythm.workflow
async def raising_child(n: int) -> Any:
    if n:
        raise OutOfStock(f"no {n}")
    empty: dict[str, Any] = {}
    return empty["k"]


@given({"n": 0}, {"n": 1})
@rhythm.workflow
async def child_error_shown(n: int) -> Any:
    try:
        await raising_child(n)
    except OutOfStock as e:
        return ["stock", str(e)]
    except LookupError as e:
        return ["lookup", str(e), f"{e}"]


@given({"kind": "ValueError"}, {"kind": "KeyError"}, {"kind": "BadCard"})
@rhythm.workflow
async def child_task_error_shown(kind: str) -> Any:
    try:
        await failing_child(kind)
    except Exception as e:
        return str(e)


@given({"n": 0}, {"n": 1})
@rhythm.workflow
async def child_error_uncaught(n: int) -> Any:
    return await raising_child(n)


@given({"n": 1})
@rhythm.workflow
async def child_error_raised_again(n: int) -> Any:
    try:
        await child_error_uncaught(n)
    except OutOfStock:
        await echo(1)
        raise
