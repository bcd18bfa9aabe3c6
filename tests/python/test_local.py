"""A body that runs in CPython, for debugging: what it waits for, and what it sends."""

from __future__ import annotations

import asyncio

import pytest

import rhythm


@rhythm.workflow(name="local_waiting")
async def waiting() -> str:
    await rhythm.publish("asked", {"n": 1})
    try:
        return str(await rhythm.signal("approve", timeout="2d"))
    except rhythm.Timeout as e:
        return f"late: {e}"


def test_wait_of_a_local_run_that_was_given_nothing_is_late() -> None:
    assert asyncio.run(waiting.local()).startswith("late: no signal `approve` came")


def test_outside_of_a_workflow_the_same_functions_need_an_application() -> None:
    with pytest.raises(rhythm.NotInitialised, match=r"call rhythm.init"):
        asyncio.run(rhythm.signal("7", "approve", True))


@rhythm.workflow(name="local_limited")
async def limited(limit: str) -> str:
    try:
        with rhythm.timeout(limit):
            await rhythm.sleep("1h")
    except rhythm.Timeout:
        return "late"
    return "in time"


@rhythm.workflow(name="local_limited_twice")
async def limited_twice() -> str:
    async with rhythm.timeout("1h"):
        return await limited("1ms")


def test_limit_of_a_local_run_ends_what_is_inside() -> None:
    assert asyncio.run(limited.local("1ms")) == "late"
    assert asyncio.run(limited_twice.local()) == "late"


def test_local_run_that_is_cancelled_inside_a_limit_is_not_late() -> None:
    async def cancelled() -> str:
        running = asyncio.ensure_future(limited.local("1h"))
        await asyncio.sleep(0)
        running.cancel()
        return await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
