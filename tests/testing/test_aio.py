"""Tests that are coroutines, and code under test that uses the default application."""

from __future__ import annotations

import asyncio

import rhythm
from rhythm.app import default
from rhythm.testing import Env
from tests.testing import shop


def test_the_same_methods_as_coroutines(env: Env) -> None:
    async def main() -> dict[str, str]:
        run = await env.aio.start(shop.order, "A1")
        await env.aio.signal(run, "approve", {"ok": True})
        await env.aio.advance("1h")
        assert await env.aio.run(shop.parcel, ["tea"]) == ["box of tea"]
        return await env.aio.result(run)

    assert asyncio.run(main())["status"] == "A1 is on its way"


def test_plain_methods_work_in_a_coroutine_too(env: Env) -> None:
    async def main() -> list[str]:
        return env.run(shop.parcel, ["tea"])

    assert asyncio.run(main()) == ["box of tea"]


def test_the_module_s_functions_use_the_environment_while_it_is_open(env: Env) -> None:
    async def code_under_test() -> int:
        handle = await rhythm.start(shop.subscription, "acme", months=3)
        return await handle.result()

    assert asyncio.run(code_under_test()) == 3
    assert default.made() is env.app


def test_code_under_test_that_calls_init_does_not_close_the_environment(env: Env) -> None:
    rhythm.init("sqlite:///:memory:", (), tasks=[], workflows=[]).close()
    assert env.run(shop.parcel, ["tea"]) == ["box of tea"]


def test_closing_two_in_any_order_leaves_no_closed_application() -> None:
    before = default.made()
    first, second = (Env(workflow_paths=(), tasks=[], workflows=[]) for _ in range(2))
    first.close()
    assert default.made() is second.app
    second.close()
    assert default.made() is before


def test_the_default_application_comes_back_afterwards() -> None:
    before = default.made()
    with Env(workflow_paths=(), tasks=[], workflows=[]):
        assert default.made() is not before
    assert default.made() is before


def test_the_default_application_comes_back_in_whatever_order_they_are_closed() -> None:
    before = default.made()
    first, second = Env(), Env()
    first.close()
    assert default.made() is second.app
    second.close()
    assert default.made() is before
