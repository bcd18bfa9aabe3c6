"""`monkeypatch` of a task in a module: it works, or it fails loudly."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import rhythm
from rhythm.testing import Env
from rhythm.testing.patches import PatchRefused
from tests.testing import shop


@pytest.fixture
def env() -> Any:
    with Env(workflow_paths=(), workflows=[shop.order, shop.parcel]) as made:
        yield made


def test_a_function_in_the_place_of_a_task_is_called(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "pack", lambda item: f"fake {item}")
    assert env.run(shop.parcel, ["tea"]) == ["fake tea"]
    monkeypatch.undo()
    assert env.run(shop.parcel, ["tea"]) == ["box of tea"]


def test_tasks_that_were_given_are_patched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with Env(workflow_paths=(), tasks=[shop.pack], workflows=[shop.parcel]) as env:
        monkeypatch.setattr(shop, "pack", lambda item: f"fake {item}")
        assert env.run(shop.parcel, ["tea"]) == ["fake tea"]


LATE = """
import functools
import rhythm

def decorated(task):
    return functools.wraps(task.function)(lambda *args: "called by hand")

@rhythm.task(name="kit_late")
async def late() -> str:
    return "real"

@decorated
@rhythm.task(name="kit_late_decorated")
async def late_decorated() -> str:
    return "real"
"""
TWO = """workflow kit_late_flow() {
  return await all([task("kit_late"), task("kit_late_decorated")])
}"""


def test_a_module_that_is_imported_in_the_test_can_be_patched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kit_late_module.py").write_text(LATE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("kit_late_module")
    with Env(workflow_paths=[TWO]) as env:
        assert env.run("kit_late_flow") == ["real", "real"]
        monkeypatch.setattr(module, "late", lambda: "fake")
        assert env.run("kit_late_flow") == ["fake", "real"]


def test_mocks_work_too(env: Env) -> None:
    with mock.patch.object(shop, "charge", mock.AsyncMock(return_value="mocked")) as charge:
        assert env.start(shop.order, "A1").state["receipt"] == "mocked"
    charge.assert_awaited_once_with(order="A1", amount=10.0)


def test_plain_applications_see_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.testing.shop.pack", lambda item: f"fake {item}")
    with rhythm.Rhythm(
        "sqlite:///:memory:",
        (),
        workflows=[shop.parcel],
        environment={},
        queues=["default", "kit-warehouse"],
    ) as app:
        assert app.run("kit_parcel", {"items": ["tea"]}) == ["fake tea"]


def test_what_cannot_be_called_is_refused_loudly(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop, "pack", "a box")
    with pytest.raises(PatchRefused, match=r"env\.task\('kit_pack'\)\.returns"):
        env.start(shop.parcel, ["tea"])


def test_a_double_wins_over_a_patch(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop, "pack", lambda item: "patched")
    env.task("kit_pack").returns("doubled")
    assert env.run(shop.parcel, ["tea"]) == ["doubled"]


def test_what_stands_in_place_of_the_function_of_a_task_is_called(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop.pack, "function", lambda item: f"patched {item}")
    assert env.run(shop.parcel, ["tea"]) == ["patched tea"]
    monkeypatch.undo()
    assert env.run(shop.parcel, ["tea"]) == ["box of tea"]
