import rhythm


@rhythm.task(retries=3, timeout="30s")
async def charge(order: str, amount: float) -> str:
    return f"receipt {order}/1 over {amount}"


@rhythm.task
async def ship(order: str) -> str:
    return f"{order} is on its way"


@rhythm.workflow
async def order(id: str, amount: float) -> dict[str, str]:
    receipt = await charge(id, amount)
    try:
        answer = await rhythm.signal("approve", timeout="2d")
    except rhythm.Timeout:
        return {"status": "nobody answered"}
    if not answer["ok"]:
        return {"status": "refused"}
    await rhythm.sleep("1h")
    return {"status": await ship(id), "receipt": receipt}
