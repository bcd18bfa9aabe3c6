"""An environment of each kind, with the workflows of the shop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rhythm.testing import Env
from rhythm.worker.handlers import default_tasks
from tests.testing import shop

KINDS = ("memory", "sqlite", "postgresql")
TASKS = (shop.charge, shop.ship, shop.pack, shop.refund)
WORKFLOWS = (
    shop.order, shop.parcel, shop.subscription, shop.expense, shop.listener, shop.saga,
    shop.quickest, shop.forever,
)  # fmt: skip
MakeEnv = Callable[..., Env]


def shop_tasks() -> dict[str, Any]:
    """As they are when they are asked for: a test may have replaced one in its module."""
    return {task.name: default_tasks[task.name] for task in TASKS}


@pytest.fixture(params=KINDS)
def make_env(request: pytest.FixtureRequest) -> Iterator[MakeEnv]:
    made: list[Env] = []

    def make(**given: Any) -> Env:
        database = (
            request.getfixturevalue("database_url")
            if request.param == "postgresql"
            else request.param
        )
        given = {"tasks": TASKS, "workflows": WORKFLOWS, "workflow_paths": (), **given}
        made.append(Env(database, **given))
        return made[-1]

    yield make
    for env in reversed(made):
        env.close()


@pytest.fixture
def env(make_env: MakeEnv) -> Env:
    """In place of the plugin's own: on every kind of database."""
    return make_env()
