"""Type checkers see a workflow as an ordinary async function: wrong arguments are errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.length import long

PROJECT = """
import asyncio

import rhythm
from rhythm import Rhythm


@rhythm.task
async def charge(order_id: str, amount: float) -> dict[str, str]:
    return {"id": order_id}


@rhythm.task
def pack(item: str) -> int:
    return len(item)


@rhythm.workflow(queue="orders")
async def order(order_id: str, items: list[str]) -> int:
    payment = await charge(order_id, 5.0)
    total = 0
    for size in await asyncio.gather(*[pack.run(item=item) for item in items]):
        total += size
    for size in await rhythm.all([pack.run(item=item) for item in items], concurrency=3):
        total += size
    ended = await rhythm.all([pack.run(item=item) for item in items], settle=True)
    parcels, receipt = await rhythm.gather(pack.run("a"), charge("7", 1.0))
    total += parcels + len(receipt["id"]) + len([one for one in ended if one["status"] == "failed"])
    answer = await rhythm.signal("shipped", timeout="3d")
    await rhythm.sleep("1h")
    with rhythm.timeout("5m"):
        await charge.options(retries=3)(payment["id"], amount=1.0)
    decision = await rhythm.approval(role="boss", reason=str(answer))
    await rhythm.publish("order.done", {"n": total, "by": decision["by"]})
    return total


def start(app: Rhythm) -> int:
    return app.start(order, "7", items=["a"]).result()


async def start_async() -> int:
    handle = await rhythm.start(order, order_id="7", items=["a"])
    return await handle.result()
"""
WRONG = """

def wrong(app: Rhythm) -> str:
    app.start(order, order_id=7, items=[])
    app.start(order, "7")
    return app.start(order, "7", items=[]).result()
"""


def _checked(text: str, folder: Path) -> list[str]:
    file = folder / "project.py"
    file.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", file.name]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.stdout.splitlines()


@long
def test_project_of_a_user_is_clean_and_wrong_arguments_are_found(tmp_path: Path) -> None:
    assert _checked(PROJECT, tmp_path) == []
    found = _checked(PROJECT + WRONG, tmp_path)
    assert [line.rpartition("[")[2] for line in found] == [
        "arg-type]",
        "call-arg]",
        "return-value]",
    ]
