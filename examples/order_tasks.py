"""The tasks of order.flow: plain Python functions. They pretend to be slow and unreliable, as the
real ones are."""

import asyncio
import itertools
import time
from typing import Any

import rhythm

PRICES = {"tea": 12.5, "cup": 8.0, "kettle": 49.0}
payment_numbers = itertools.count(1)
terminal_is_down = itertools.chain([True, True], itertools.repeat(False))


@rhythm.task
async def check_stock(items: list[str]) -> dict[str, int]:
    await asyncio.sleep(0.5)
    return dict.fromkeys(items, 3)


@rhythm.task
def load_customer(id: str) -> dict[str, Any]:
    time.sleep(0.7)
    return {"name": id.title(), "city": "Lisbon", "discount": 0.1}


@rhythm.task
def price_of(item: str) -> float:
    time.sleep(0.3)
    if item not in PRICES:
        raise rhythm.TaskFailed(f"we do not sell {item}", code="UnknownItem", data={"item": item})
    return PRICES[item]


@rhythm.task(backoff="300ms")
def charge(customer: str, amount: float) -> str:
    if next(terminal_is_down):
        raise ConnectionError("the payment service does not answer")
    time.sleep(0.4)
    return f"payment {next(payment_numbers)}: {amount:.2f} from {customer}"


@rhythm.task(timeout="5s")
def ship(items: list[str], to: str) -> str:
    time.sleep(0.4)
    if "kettle" in items:
        raise rhythm.TaskFailed(f"no carrier takes a kettle to {to}")
    return f"parcel of {len(items)} to {to}"


@rhythm.task(retries=10)
def refund(payment: str, because: str) -> None:
    time.sleep(0.2)
