"""Reminders after a minute, a day, a week and a month.

rhythm run examples/python/reminders.py -i email=ada@example.com --fast-forward
"""

import rhythm


@rhythm.task(retries=5)
async def remind(to: str, time: str) -> str:
    return f"to {to}: it has been {time}"


@rhythm.workflow
async def reminders(email: str) -> list[str]:
    sent: list[str] = []
    for wait, time in [
        ["1m", "one minute"],
        ["1d", "one day"],
        ["7d", "one week"],
        ["30d", "one month"],
    ]:
        await rhythm.sleep(wait)
        sent.append(await remind(email, time))
    return sent
