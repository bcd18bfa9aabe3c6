"""Many records, in parts, each with a sliding window: as soon as one is done the next one begins.

rhythm run examples/python/batch.py --fast-forward
"""

import asyncio
import random

import rhythm

RECORDS = 90


@rhythm.task
async def record_count() -> int:
    return RECORDS


@rhythm.task
async def load_page(first: int, last: int) -> list[int]:
    return list(range(first, last))


@rhythm.workflow
async def process(record: int) -> None:
    await rhythm.sleep(random.randint(1, 10))
    print(f"processed record {record}")


@rhythm.workflow
async def window(first: int, last: int, page_size: int, size: int) -> int:
    records: list[int] = []
    for offset in range(first, last, page_size):
        records += await load_page(offset, min(offset + page_size, last))
    done = 0
    async for _ in rhythm.completed([process(record) for record in records], concurrency=size):
        done += 1
        rhythm.progress(done / len(records))
    return done


@rhythm.workflow
async def batch(page_size: int = 5, window_size: int = 10, parts: int = 3) -> int:
    count = await record_count()
    if window_size < parts:
        raise ValueError("the window cannot be smaller than the number of parts")
    ends = [count * part // parts for part in range(parts + 1)]
    sizes = [
        window_size * (part + 1) // parts - window_size * part // parts for part in range(parts)
    ]
    done = await asyncio.gather(
        *[window(ends[part], ends[part + 1], page_size, sizes[part]) for part in range(parts)]
    )
    return sum(done)
