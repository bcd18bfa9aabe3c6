"""The examples of web frameworks: a request's order and its workflow are there together, or neither
is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support import forked
from tests.support.compiled import IMPORTED_FROM

ROOT = Path(__file__).parents[2]
FASTAPI = """
import asyncio, httpx, json
from examples.fastapi_shop import api, app, lifespan

async def main():
    transport = httpx.ASGITransport(app=api)
    async with lifespan(api), httpx.AsyncClient(transport=transport, base_url="http://shop") as web:
        placed = await web.post("/orders", json={"item": "book", "amount": 30})
        refused = await web.post("/orders", json={"item": "house", "amount": 5000})
        lost = await web.post("/orders/2/packed", params={"parcel": "p0"})
        packed = await web.post("/orders/1/packed", params={"parcel": "p1"})
        result = await app.aio.result("order-1", "100s")
        shown = (await web.get("/orders/1")).json()
        unknown = await web.get("/orders/2")
        listed = (await web.get("/rhythm/api/v1/executions")).json()
        print(json.dumps({
            "codes": [
                each.status_code for each in (placed, refused, lost, packed, unknown)
            ],
            "placed": placed.json(), "result": result, "shown": shown,
            "executions": [each["id"] for each in listed["items"]],
        }))

asyncio.run(main())
app.close()
"""
DJANGO = """
import json
from examples import django_shop
from django.test import Client

django_shop.make_tables()
web = Client()
placed = web.post("/orders", {"item": "book", "amount": 30})
refused = web.post("/orders", {"item": "house", "amount": 5000})
with django_shop.app.worker():
    result = django_shop.app.result("order-1", "100s")
print(json.dumps({
    "codes": [placed.status_code, refused.status_code], "placed": placed.json(), "result": result,
    "executions": [each.id for each in django_shop.app.list()],
    "orders": [order.item for order in django_shop.Order.objects.all()],
}))
django_shop.app.close()
django_shop.connection.close()
"""


def ran(tmp_path: Path, program: str) -> Any:
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")}
    done = forked.run(
        [str(tmp_path / "program.py")],
        ROOT,
        env=env | {"SHOP_DB": str(tmp_path / "shop.db"), "PYTHONPATH": f"{ROOT}:{IMPORTED_FROM}"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fastapi_starts_and_signals_in_the_transaction_of_the_request(tmp_path: Path) -> None:
    assert ran(tmp_path, FASTAPI) == {
        "codes": [201, 422, 404, 202, 404],
        "placed": {"order": 1},
        "result": "charged 30 for order 1, sent as p1",
        "shown": {"status": "completed", "result": "charged 30 for order 1, sent as p1"},
        "executions": ["order-1"],
    }


def test_django_starts_in_the_transaction_of_the_view(tmp_path: Path) -> None:
    assert ran(tmp_path, DJANGO) == {
        "codes": [201, 422],
        "placed": {"order": 1},
        "result": "charged 30 for order 1",
        "executions": ["order-1"],
        "orders": ["book"],
    }
