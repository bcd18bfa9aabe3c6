"""The tasks of invoice.flow. They give the same answers every time, so that its steps can be
followed."""

import rhythm


@rhythm.task
def rate_of(person: str) -> int:
    return {"Ada": 90, "Grace": 110}[person]


@rhythm.task
def send_invoice(to: str, total: float) -> str:
    return f"{to}-17"


@rhythm.task
def remind(number: str, reminders: int) -> bool:
    """Reminds the customer; true when the invoice is paid."""
    return reminders >= 2
