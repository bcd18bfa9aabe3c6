"""Charges every month. While it waits, the price may change, or the customer cancels.

rhythm run examples/python/subscription.py -i customer=ada -i price:=5 --fast-forward
"""

from typing import Any

import rhythm


@rhythm.task(retries=3)
async def charge_card(customer: str, amount: float, period: int) -> str:
    if customer == "broke":
        raise rhythm.TaskFailed("declined", code="Declined", data={"customer": customer})
    return f"{customer}:{amount:.2f}:{period}"


@rhythm.workflow
async def subscription(customer: str, price: float, periods: int = 12) -> dict[str, Any]:
    receipts: list[str] = []
    for period in range(periods):
        try:
            receipts.append(await charge_card(customer, price, period))
            with rhythm.timeout("30d"):
                while True:
                    change = await rhythm.signal("change")
                    if change.get("cancel"):
                        return {"status": "cancelled", "receipts": receipts}
                    price = change["price"]
        except rhythm.Timeout:
            continue
        except rhythm.TaskFailed as e:
            return {"status": f"suspended: {e.code}", "receipts": receipts}
    return {"status": "finished", "receipts": receipts}
