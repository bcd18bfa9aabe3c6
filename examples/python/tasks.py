"""What the workflows of this folder call: stand-ins that answer at once."""

from __future__ import annotations

from dataclasses import dataclass

import rhythm


@dataclass
class Booking:
    what: str
    id: str


class SoldOut(Exception):
    """There is no place left."""


@rhythm.task(retries=2, backoff="10ms", give_up_on=SoldOut)
async def book(what: str, trip: str) -> Booking:
    if what == "flight" and trip == "moon":
        raise SoldOut(f"no {what} to the {trip}")
    return Booking(what, f"{what}-{trip}")


@rhythm.task
async def cancel_booking(id: str) -> str:
    return f"cancelled {id}"


@rhythm.task
async def ask_model(messages: list[dict]) -> dict:
    asked = sum(message["role"] == "tool" for message in messages)
    if asked < 2:
        return {"tool": "search", "argument": f"question {asked + 1}"}
    return {"answer": f"found in {asked} steps"}


@rhythm.task
async def use_tool(name: str, argument: str) -> str:
    return f"{name}: {argument}"


@rhythm.task
async def job_status(job: str, attempt: int) -> str:
    return "done" if attempt >= 3 else "running"


@rhythm.task
async def process_record(record: int) -> int:
    return record * record


@rhythm.task
async def charge_card(customer: str, amount: float, key: str) -> str:
    if customer == "broke":
        raise rhythm.TaskFailed("declined", code="Declined", data={"customer": customer})
    return f"{customer}:{amount:.2f}:{key}"


@rhythm.task
async def send_email(to: str, subject: str) -> str:
    return f"{subject} -> {to}"


@rhythm.task
async def withdraw(account: str, amount: int) -> str:
    return f"-{amount} {account}"


@rhythm.task
async def deposit(account: str, amount: int) -> str:
    if account == "closed":
        raise ValueError("the account is closed")
    return f"+{amount} {account}"


@rhythm.task
async def extract(page: int) -> list[int]:
    return [page * 10 + i for i in range(3)]


@rhythm.task
async def load(rows: list[int]) -> int:
    return len(rows)


@rhythm.task
async def resize(image: str, width: int) -> str:
    return f"{image}@{width}"
