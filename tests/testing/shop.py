"""A shop: the tasks and workflows that the tests of the kit run."""

from __future__ import annotations

import asyncio

import rhythm


class Declined(Exception):
    pass


@rhythm.task(name="kit_charge", retries=3, backoff="10s", timeout="1m")
async def charge(order: str, amount: float) -> str:
    return f"receipt of {order}"


@rhythm.task(name="kit_ship")
async def ship(order: str) -> str:
    return f"{order} is on its way"


@rhythm.task(name="kit_pack", queue="kit-warehouse")
def pack(item: str) -> str:
    return f"box of {item}"


@rhythm.task(name="kit_refund")
async def refund(order: str) -> str:
    return f"refunded {order}"


@rhythm.workflow(name="kit_order")
async def order(id: str, amount: float = 10.0) -> dict[str, str]:
    receipt = await charge(id, amount)
    try:
        answer = await rhythm.signal("approve", timeout="2d")
    except rhythm.Timeout:
        return {"status": "nobody answered"}
    if not answer["ok"]:
        return {"status": await refund(id)}
    await rhythm.sleep("1h")
    return {"status": await ship(id), "receipt": receipt}


@rhythm.workflow(name="kit_parcel")
async def parcel(items: list[str]) -> list[str]:
    return await asyncio.gather(*[pack.run(item) for item in items])


@rhythm.workflow(name="kit_subscription")
async def subscription(customer: str, months: int = 12) -> int:
    paid = 0
    for _ in range(months):
        await charge(customer, 9.0)
        paid += 1
        await rhythm.sleep("30d")
    return paid


@rhythm.workflow(name="kit_expense")
async def expense(amount: float) -> str:
    answer = await rhythm.approval(role="finance", reason=f"{amount} is asked for", timeout="1d")
    return str(answer["decision"])


@rhythm.workflow(name="kit_listener")
async def listener() -> int:
    event = await rhythm.event("kit.paid", timeout="1d")
    return int(event["data"]["amount"])


@rhythm.workflow(name="kit_saga")
async def saga(id: str) -> str:
    receipt = await charge(id, 5.0)
    try:
        return f"{receipt}, {await ship(id)}"
    except Declined:
        return await refund(id)


@rhythm.workflow(name="kit_race")
async def quickest(id: str) -> str:
    return str(await rhythm.race({"ship": ship(id), "late": rhythm.sleep("10m")}))


@rhythm.workflow(name="kit_forever")
async def forever() -> None:
    while True:
        await rhythm.sleep("1h")


@rhythm.workflow(name="kit_nightly", schedule="0 3 * * *")
async def nightly() -> str:
    return await ship("the report")
