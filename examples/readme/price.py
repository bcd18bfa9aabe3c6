import time

import rhythm


@rhythm.task
async def look_up(item: str) -> float:
    return 5.0 * len(item)


@rhythm.workflow
async def price(item: str) -> float:
    while look_up(item) > 20:
        time.sleep(60)
    return await look_up(item)
