"""A parent that starts many children, each with two steps; one that fails does not stop the others.

rhythm run examples/python/fan_out.py -i n:=5
"""

import rhythm


@rhythm.task
async def first_step(a: str) -> str:
    if a == "13":
        raise ValueError("unlucky")
    return a


@rhythm.task
async def second_step(a: str) -> str:
    return a + "2"


@rhythm.workflow(name="child")
async def child(a: str) -> str:
    return await second_step(await first_step(a))


@rhythm.workflow(timeout="5m")
async def fan_out(n: int = 100) -> dict[str, int]:
    ended = await rhythm.all([child(f"{i}") for i in range(n)], settle=True, concurrency=40)
    good = [each["result"] for each in ended if each["status"] == "completed"]
    return {"completed": len(good), "failed": n - len(good)}
