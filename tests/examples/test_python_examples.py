"""The workflows of examples/python run, and end as people expect."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rhythm.authoring.workflow import default_workflows
from rhythm.errors import ExecutionFailed
from rhythm.worker.handlers import default_tasks
from tests.python.engine import run_in_process

FOLDER = Path(__file__).parents[2] / "examples" / "python"


@pytest.fixture
def workflows() -> Iterator[ModuleType]:
    """The module, imported as `--app` would; its tasks and workflows are gone afterwards."""
    tasks, known = dict(default_tasks._tasks), dict(default_workflows._workflows)
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("workflows")
    sys.path.remove(str(FOLDER))
    for name in ("workflows", "tasks"):
        del sys.modules[name]
    default_tasks._tasks, default_workflows._workflows = tasks, known


@pytest.mark.parametrize(
    ("name", "inputs", "result"),
    [
        (
            "trip",
            {"destination": "rome"},
            {"ok": True, "booked": ["car-rome", "hotel-rome", "flight-rome"]},
        ),
        (
            "trip",
            {"destination": "moon"},
            {
                "ok": False,
                "why": "no flight to the moon",
                "undone": ["cancelled hotel-moon", "cancelled car-moon"],
            },
        ),
        ("agent", {"question": "why?"}, "found in 2 steps"),
        ("poll", {"job": "j"}, {"status": "done", "attempts": 3}),
        ("batch", {"records": 40}, {"records": 40, "total": sum(i * i for i in range(40))}),
        ("expense", {"employee": "ada", "amount": 20.0}, "paid"),
        (
            "subscription",
            {"customer": "ada", "price": 5.0, "periods": 2},
            {"status": "finished", "receipts": ["ada:5.00:0", "ada:5.00:1"]},
        ),
        (
            "subscription",
            {"customer": "broke", "price": 5.0},
            {"status": "suspended", "receipts": []},
        ),
        (
            "onboarding",
            {"email": "a@b"},
            [
                "Welcome, you! -> a@b",
                "First steps -> a@b",
                "Tips -> a@b",
                "How is it going? -> a@b",
            ],
        ),
        ("transfer", {"source": "a", "target": "b", "amount": 5}, "-5 a, +5 b"),
        ("etl", {"pages": 3}, 6),
        (
            "gallery",
            {"images": ["x", "y"]},
            {"made": 2, "first": {"w200": "x@200", "w800": "x@800"}},
        ),
    ],
)
def test_example_ends_as_expected(
    workflows: ModuleType, name: str, inputs: dict[str, Any], result: Any
) -> None:
    assert run_in_process(getattr(workflows, name), inputs) == result


def test_transfer_that_fails_gives_the_money_back(workflows: ModuleType) -> None:
    with pytest.raises(ExecutionFailed, match=r"the account is closed; [+]5 a") as failed:
        run_in_process(workflows.transfer, {"source": "a", "target": "closed", "amount": 5})
    assert failed.value.error["code"] == "Returned"


def test_subscription_ends_when_the_customer_cancels(workflows: ModuleType) -> None:
    inputs = {"customer": "ada", "price": 5.0}
    ended = run_in_process(workflows.subscription, inputs, signals=[("cancel", None)])
    assert ended == {"status": "cancelled", "receipts": ["ada:5.00:0"]}
