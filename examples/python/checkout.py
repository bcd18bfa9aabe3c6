"""A shop: reserves, waits for the payment, dispatches in ten steps, or puts everything back.

rhythm run examples/python/checkout.py --signal 'payment="paid"' --fast-forward
"""

import logging

import rhythm

log = logging.getLogger(__name__)
stock = {"widget": 2}
orders: dict[int, str] = {}


@rhythm.task
def create_order() -> int:
    order_id = len(orders) + 1
    orders[order_id] = "pending"
    return order_id


@rhythm.task
def update_order(order_id: int, status: str) -> None:
    orders[order_id] = status


@rhythm.task
def reserve(change: int) -> bool:
    enough = stock["widget"] >= change
    stock["widget"] -= change if enough else 0
    return enough


@rhythm.workflow
async def dispatch(order_id: int) -> None:
    for step in range(10):
        await rhythm.sleep("1s")
        await update_order.run(order_id, f"progress {step + 1} of 10")
    await update_order.run(order_id, "dispatched")


@rhythm.workflow
async def checkout() -> str:
    order_id = await create_order.run()
    if not await reserve.run(1):
        log.error("no stock for order %s", order_id)
        await update_order.run(order_id, "cancelled")
        return "cancelled"
    rhythm.set_attribute("order", order_id)
    try:
        payment = await rhythm.signal("payment", timeout="1m")
    except rhythm.Timeout:
        payment = "late"
    if payment != "paid":
        log.warning("payment of order %s: %s", order_id, payment)
        await reserve.run(-1)
        await update_order.run(order_id, "cancelled")
        return "cancelled"
    await update_order.run(order_id, "paid")
    await dispatch(order_id)
    return "dispatched"
