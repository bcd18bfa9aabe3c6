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
