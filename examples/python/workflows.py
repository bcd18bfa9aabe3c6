"""Ten workflows as people write them for other engines, here in plain Python.

rhythm run examples/python/workflows.py --workflow trip -i destination=rome
"""

from __future__ import annotations

import asyncio
from typing import Any

from tasks import (
    SoldOut,
    ask_model,
    book,
    cancel_booking,
    charge_card,
    deposit,
    extract,
    job_status,
    load,
    process_record,
    resize,
    send_email,
    use_tool,
    withdraw,
)

import rhythm

MAX_STEPS = 10
WIDTHS = [200, 800]


@rhythm.workflow
async def trip(destination: str) -> dict[str, Any]:
    """A saga: what was booked is cancelled if a later booking fails."""
    booked: list[str] = []
    try:
        for what in ["car", "hotel", "flight"]:
            booking = await book(what, destination)
            booked.append(booking.id)
    except SoldOut as e:
        undone = [await cancel_booking(id) for id in reversed(booked)]
        return {"ok": False, "why": str(e), "undone": undone}
    return {"ok": True, "booked": booked}


@rhythm.workflow
async def agent(question: str) -> str:
    """An agent: the model asks for tools until it has an answer."""
    messages = [{"role": "user", "text": question}]
    for _ in range(MAX_STEPS):
        reply = await ask_model(messages)
        if "answer" in reply:
            return reply["answer"]
        result = await use_tool(reply["tool"], reply["argument"])
        messages.append({"role": "tool", "text": result})
    raise RuntimeError(f"no answer after {MAX_STEPS} steps")


@rhythm.workflow
async def poll(job: str) -> dict[str, Any]:
    """Asks another system until it is done, with growing pauses, for a day at most."""
    wait_s = 5
    attempt = 1
    with rhythm.timeout("1d"):
        while (status := await job_status(job, attempt)) != "done":
            await rhythm.sleep(wait_s)
            wait_s = min(wait_s * 2, 600)
            attempt += 1
    return {"status": status, "attempts": attempt}


@rhythm.workflow
async def batch(records: int) -> dict[str, int]:
    """A sliding window: a thousand records, ten at a time."""
    total = 0
    async for done in rhythm.completed(
        [process_record(record) for record in range(records)], concurrency=10
    ):
        if done["status"] == "completed":
            total += done["result"]
    return {"records": records, "total": total}


@rhythm.workflow
async def expense(employee: str, amount: float) -> str:
    """A person decides what is not small."""
    if amount < 100:
        return "paid"
    answer = await rhythm.approval(role="manager", reason=f"{employee}: {amount:.2f}", timeout="3d")
    if answer["decision"] != "approved":
        await send_email(employee, f"expense {answer['decision']}")
        return "refused"
    return await charge_card(employee, amount, "expense")


@rhythm.workflow
async def subscription(customer: str, price: float, periods: int = 12) -> dict[str, Any]:
    """Charges every month until the customer cancels."""
    receipts = []
    for period in range(periods):
        try:
            receipts.append(await charge_card(customer, price, f"{period}"))
        except rhythm.TaskFailed as e:
            await send_email(customer, f"payment failed: {e.code}")
            return {"status": "suspended", "receipts": receipts}
        try:
            await rhythm.signal("cancel", timeout="30d")
            return {"status": "cancelled", "receipts": receipts}
        except rhythm.Timeout:
            continue
    return {"status": "finished", "receipts": receipts}


@rhythm.workflow
async def onboarding(email: str, name: str = "you") -> list[str]:
    """Mails over two weeks."""
    sent = [await send_email(email, f"Welcome, {name}!")]
    for days, subject in [[1, "First steps"], [3, "Tips"], [14, "How is it going?"]]:
        await rhythm.sleep(f"{days}d")
        sent.append(await send_email(email, subject))
    return sent


@rhythm.workflow
async def transfer(source: str, target: str, amount: int) -> str:
    """Money moves, or comes back."""
    taken = await withdraw(source, amount)
    try:
        given = await deposit(target, amount)
    except ValueError as e:
        back = await deposit(source, amount)
        raise rhythm.TaskFailed(f"{e}; {back}", code="Returned") from e
    return f"{taken}, {given}"


@rhythm.workflow
async def etl(pages: int) -> int:
    """Extracts pages in parallel, transforms here, loads once."""
    found = await asyncio.gather(*[extract(page) for page in range(pages)])
    rows = [row for page in found for row in page if row % 2 == 0]
    return await load(rows)


@rhythm.workflow
async def thumbnails(image: str) -> dict[str, str]:
    """One width after the other would do; this makes all at once."""
    made = await rhythm.all([resize(image, width) for width in WIDTHS])
    return dict(zip([f"w{width}" for width in WIDTHS], made, strict=True))


@rhythm.workflow
async def gallery(images: list[str]) -> dict[str, Any]:
    """Children, one for each image; one that fails does not stop the others."""
    ended = await rhythm.all([thumbnails(image) for image in images], settle=True)
    good = [each["result"] for each in ended if each["status"] == "completed"]
    return {"made": len(good), "first": good[0] if good else None}
