"""A snapshot that does not fit its row is carried by everything that carries snapshots."""

from __future__ import annotations

import random

import pytest

import rhythm
from tests.app.conftest import MakeApp

FLOW = """
workflow main() {
  let much = await task("much")
  await task("fragile")
  return len(much)
}"""


def test_retry_goes_on_from_a_large_snapshot(make_app: MakeApp) -> None:
    calls: list[str] = []

    def much() -> str:
        calls.append("much")
        return random.Random(1).randbytes(400_000).hex()  # zlib leaves about half of it

    def fragile() -> None:
        calls.append("fragile")
        if len(calls) < 3:
            raise rhythm.TaskFailed("out of order")

    app = make_app(much, fragile)
    app.register(FLOW)
    with app.worker():
        first = app.start_workflow("main")
        with pytest.raises(rhythm.ExecutionFailed):
            first.result("120s")
        assert app.retry(first.id).result("120s") == 800_000
    assert calls == ["much", "fragile", "fragile"]
    assert not app.store.operating.check(60.0)
