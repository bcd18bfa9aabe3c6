"""A year of billing: charges every month; the price may change meanwhile, or the customer leaves.

Shows: a loop that lasts a year, signals while it waits, a deadline around them, an error handled.
Run:   rhythm run examples/billing.py -i customer=ada -i price=5 --fast-forward
Test:  pytest examples/test_billing.py      (twelve months in a fraction of a second)
"""

from typing import Any

import rhythm


@rhythm.task(retries=3)
async def charge_card(customer: str, amount: float, period: int) -> str:
    if customer == "broke":
        raise rhythm.TaskFailed("declined", code="Declined", data={"customer": customer})
    return f"{customer}:{amount:.2f}:{period}"


@rhythm.workflow
async def billing(customer: str, price: float, periods: int = 12) -> dict[str, Any]:
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
