"""The task of order_approval.steps.json: how people are told, in your own way."""

import rhythm


@rhythm.task
def notify(recipients: list[str], message: str) -> None:
    print(f"to {', '.join(recipients)}: {message}")
