"""Asks another system until it is done, with growing pauses, for a day at most.

rhythm run examples/python/poll.py -i job=J7 --fast-forward
"""

import rhythm


@rhythm.task(timeout="4s")
async def job_status(job: str, attempt: int) -> str:
    return "done" if attempt >= 3 else "running"


@rhythm.workflow
async def poll(job: str) -> dict[str, int | str]:
    wait_s, attempt = 5, 1
    with rhythm.timeout("1d"):
        while (status := await job_status(job, attempt)) != "done":
            await rhythm.sleep(wait_s)
            wait_s = min(wait_s * 2, 600)
            attempt += 1
    return {"status": status, "attempts": attempt}
