"""A shop that starts a workflow in the transaction of the request: the order and its workflow are
there together, or neither is.

    pip install 'rhythm[server]' 'sqlalchemy[asyncio]' aiosqlite
    uvicorn examples.fastapi_shop:api
    curl localhost:8000/orders -H 'content-type: application/json' \\
        -d '{"item": "book", "amount": 30}'

The table of the shop and the executions are in one SQLite file. With PostgreSQL, only the two URLs
change: `postgresql://…` for Rhythm, `postgresql+psycopg://…` for SQLAlchemy.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import rhythm

FILE = os.environ.get("SHOP_DB", "shop.db")
LARGEST_AMOUNT = 1000


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    amount: Mapped[int]


class NewOrder(BaseModel):
    item: str
    amount: int


@rhythm.task(retries=3)
async def charge(order: int, amount: int) -> str:
    return f"charged {amount} for order {order}"


@rhythm.workflow
async def fulfil(order: int, amount: int) -> str:
    receipt = await charge(order, amount)
    parcel = await rhythm.signal("packed", timeout="30d", default="lost")
    return f"{receipt}, sent as {parcel}"


engine = create_async_engine(f"sqlite+aiosqlite:///{FILE}")
sessions = async_sessionmaker(engine, expire_on_commit=False)
app = rhythm.Rhythm(f"sqlite:///{FILE}")
server = app.server(tokens=False)  # who may come in is up to this application


async def session() -> AsyncIterator[AsyncSession]:
    """One transaction for each request: committed at its end, rolled back if it fails."""
    async with sessions.begin() as opened:
        yield opened


Transaction = Annotated[AsyncSession, Depends(session, scope="function")]


@asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with server.lifespan(api):
        with app.worker():
            yield
    await engine.dispose()


api = FastAPI(title="Shop", lifespan=lifespan)
api.mount("/rhythm", server)


@api.post("/orders", status_code=201)
async def place_order(new: NewOrder, transaction: Transaction) -> dict[str, Any]:
    order = Order(item=new.item, amount=new.amount)
    transaction.add(order)
    await transaction.flush()  # gives it its id
    await app.aio.start_workflow(
        fulfil,
        {"order": order.id, "amount": order.amount},
        id=f"order-{order.id}",
        connection=transaction,
    )
    if order.amount > LARGEST_AMOUNT:  # neither the order nor its workflow has ever been there
        raise HTTPException(422, f"an order has at most {LARGEST_AMOUNT}")
    return {"order": order.id}


@api.post("/orders/{order}/packed", status_code=202)
async def packed(order: int, parcel: str, transaction: Transaction) -> None:
    if await transaction.get(Order, order) is None:
        raise HTTPException(404, "there is no such order")
    await app.aio.signal(f"order-{order}", "packed", parcel, connection=transaction)


@api.get("/orders/{order}")
async def status(order: int) -> dict[str, Any]:
    try:
        execution = await app.aio.get(f"order-{order}")
    except rhythm.UnknownExecution:
        raise HTTPException(404, "there is no such order") from None
    return {"status": execution.status, "result": execution.result}
