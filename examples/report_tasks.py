"""The tasks of report.flow."""

import asyncio

import rhythm


@rhythm.task(retries=1, backoff="50ms", timeout="3s")
async def fetch(source: str) -> str:
    await asyncio.sleep(2.0 if "slow" in source else 0.2)
    if "broken" in source:
        raise OSError(f"{source} is not there")
    return f"news of {source}"


@rhythm.task
def mail(to: str, text: str) -> None:
    if to == "nobody":
        raise rhythm.TaskFailed("there is no such address", code="UnknownAddress")
