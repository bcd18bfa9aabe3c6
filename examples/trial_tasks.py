"""The task of trial.flow."""

import rhythm


@rhythm.task
def send_mail(to: str, subject: str) -> None:
    """Pretends to send a mail."""
