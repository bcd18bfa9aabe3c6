from tasks import charge, ship

import rhythm


@rhythm.workflow
async def order(id: str, amount: float) -> dict:
    payment = await charge.run(id, amount)
    try:
        answer = await rhythm.signal("approve", timeout="2d")
    except rhythm.Timeout:
        return {"status": "refused"}
    if not answer["ok"]:
        return {"status": "refused"}
    parcel, _ = await rhythm.gather(ship(id), rhythm.sleep("1h"))
    return {"status": "shipped", "parcel": parcel, "receipt": payment["receipt"]}
