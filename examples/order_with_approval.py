"""An order: takes the money, asks a person if it is a large one, ships it, or gives the money back.

Shows: an approval with a role and a deadline, escalation, a compensation, retries.
Run:   rhythm start examples/order_with_approval.py --id A1 -i order_id=A1 -i amount=900 --by sue
       rhythm worker --app examples/order_with_approval.py; then: rhythm approve A1 --by ann
Test:  pytest examples/test_order_with_approval.py
"""

import rhythm

LARGE = 500.0


@rhythm.task(retries=5, timeout="10s")
async def charge(order_id: str, amount: float) -> str:
    """Stands in for a payment service, which would get the idempotency key."""
    return f"payment {rhythm.current().idempotency_key} of {order_id}"


@rhythm.task(retries=100)
async def refund(payment: str) -> None:
    print(f"refunded {payment}")


@rhythm.task(retries=5, timeout="1m")
async def ship(order_id: str) -> str:
    return f"parcel of {order_id}"


@rhythm.workflow
async def order_with_approval(order_id: str, amount: float) -> dict[str, str]:
    payment = await charge(order_id, amount)
    if amount >= LARGE:
        answer = await rhythm.approval(
            role="sales",
            reason=f"Order {order_id} is over {LARGE:.0f}",
            data={"order_id": order_id, "amount": amount},
            timeout="2d",
            escalate={"role": "director", "after": "1d"},
        )
        if answer["decision"] != "approved":
            await refund(payment)
            return {"status": answer["decision"]}
    try:
        return {"status": "shipped", "parcel": await ship(order_id)}
    except rhythm.TaskFailed:
        await refund(payment)
        raise
