import rhythm


@rhythm.task(retries=3, timeout="30s")
def charge(order: str, amount: float) -> dict:
    return {"receipt": f"{order}/1", "amount": amount}


@rhythm.task
async def ship(order: str) -> str:
    return f"{order} is on its way"
