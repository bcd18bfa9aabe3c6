"""Models: dataclasses, named tuples, typed dicts, pydantic classes and enumerations."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple, TypedDict

import pydantic

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo


class Status(Enum):
    NEW = "new"
    PAID = "paid"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Item:
    sku: str
    price: float
    count: int = 1


@dataclass
class Order:
    id: str
    items: list[Item]
    status: Status = Status.NEW
    note: str | None = None
    tags: dict[str, str] = field(default_factory=dict)


class Point(NamedTuple):
    x: int
    y: int = 0


class Address(TypedDict):
    street: str
    zip: str


class Person(pydantic.BaseModel):
    name: str
    age: int = 0
    address: dict[str, str] | None = None


@rhythm.task
async def load_order(id: str) -> Order:
    return Order(id, [Item("tea", 1.5, 2), Item("cup", 4.0)], Status.PAID)


@rhythm.task
async def find_order(id: str) -> Order | None:
    return None if id == "none" else Order(id, [])


@rhythm.task
async def price_of(item: Item) -> float:
    return item.price * item.count


@rhythm.task
async def move(p: Point, dx: int) -> Point:
    return Point(p.x + dx, p.y)


@rhythm.task
async def older(person: Person) -> Person:
    return Person(name=person.name, age=person.age + 1, address=person.address)


@rhythm.task
async def status_of(id: str) -> Status:
    return Status.PAID if id else Status.NEW


ORDER = Order("7", [Item("tea", 1.5, 2), Item("cup", 4.0)], note="hi")


@given({"order": ORDER}, {"order": Order("8", [])})
@rhythm.workflow
async def order_total(order: Order) -> Any:
    total = 0.0
    for item in order.items:
        total += item.price * item.count
    return {
        "id": order.id,
        "total": total,
        "skus": [item.sku for item in order.items],
        "note": order.note or "none",
    }


@given({"id": "9"})
@rhythm.workflow
async def model_of_task(id: str) -> Any:
    order = await load_order(id)
    first = order.items[0]
    prices = await asyncio.gather(*[price_of(item) for item in order.items])
    return [
        order.id,
        first.sku,
        prices,
        await price_of(first),
        order.status == Status.PAID,
        (await load_order("x")).id,
    ]


@given({"id": "none"}, {"id": "1"})
@rhythm.workflow
async def optional_model(id: str) -> Any:
    order = await find_order(id)
    if order is None:
        return "missing"
    return [order.id, len(order.items), order.note is None]


@given({"n": 2})
@rhythm.workflow
async def made_models(n: int) -> Any:
    item = Item("cup", 2.5, count=n)
    other = Item(sku="pot", price=1.0)
    order = Order("1", [item, other], note="new")
    item2 = Item("x", await price_of(item))
    return [order, item2, other.count, order.items[0].count, order.tags]


@given({"n": 2})
@rhythm.workflow
async def changed_models(n: int) -> Any:
    item = Item("cup", 2.5)
    item.count = n
    item.count += 1
    item.price *= 2
    order = Order("1", [])
    order.items.append(Item("a", 1.0))
    order.items[0].count = 5
    order.tags["k"] = "v"
    order.status = Status.PAID
    return [item, order]


@given({"p": Point(1, 2)}, {"p": Point(3)})
@rhythm.workflow
async def named_tuples(p: Point) -> Any:
    q = await move(p, 5)
    r = Point(p.x, y=9)
    return [q.x, q.y, r.x + r.y, p.x]


@given({"a": {"street": "Main", "zip": "1"}})
@rhythm.workflow
async def typed_dicts(a: Address) -> Any:
    a["zip"] = a["zip"] + "0"
    return [a["street"], a, "zip" in a, a.get("street")]


@given(
    {"p": Person(name="ada", age=36)},
    {"p": Person(name="bob", address={"street": "s", "zip": "z"})},
)
@rhythm.workflow
async def pydantic_models(p: Person) -> Any:
    q = await older(p)
    street = p.address["street"] if p.address else None
    return [p.name, q.age, street, q]


@given({"id": ""}, {"id": "1"})
@rhythm.workflow
async def enumerations(id: str) -> Any:
    status = await status_of(id)
    if status == Status.PAID:
        return ["paid", status.value, status is not None]
    return [Status.NEW.value, status == Status.NEW, status in (Status.NEW, Status.PAID)]


@given({"level": Level.LOW}, {"level": Level.HIGH})
@rhythm.workflow
async def int_enumerations(level: Level) -> Any:
    return [level == Level.HIGH, level.value, level == 1, level > Level.LOW, level + 1]


@given({"status": Status.PAID}, {"status": Status.NEW})
@rhythm.workflow
async def match_enumerations(status: Status) -> Any:
    match status:
        case Status.PAID:
            return "paid"
        case Status.NEW:
            return "new"


@given({"order": ORDER})
@rhythm.workflow
async def models_in_containers(order: Order) -> Any:
    by_sku = {item.sku: item for item in order.items}
    cheap = min(order.items, key=lambda item: item.price)
    names = sorted(item.sku for item in order.items)
    best = sorted(order.items, key=lambda item: (-item.price, item.sku))[0]
    return [
        by_sku["tea"].price,
        cheap.sku,
        names,
        best.sku,
        sum(i.count for i in order.items),
        await echo(len(by_sku)),
    ]


@given({"order": ORDER})
@rhythm.workflow
async def models_compare(order: Order) -> Any:
    return [
        order.items[0] == Item("tea", 1.5, 2),
        order.items[1] == order.items[0],
        Item("a", 1) == Item("a", 1.0),
    ]


@given({"orders": [ORDER, Order("8", [Item("z", 1.0)])]})
@rhythm.workflow
async def nested_models(orders: list[Order]) -> Any:
    return [item.sku for order in orders for item in order.items] + [o.id for o in orders if o.note]


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


@given({"status": Status.NEW}, {"status": Status.PAID})
@rhythm.workflow
async def members_are_told_apart(status: Status) -> Any:
    if status is Status.NEW:
        return [status.name, status is not Status.PAID]
    return [status.value, status in (Status.PAID,), [each.name for each in Status], len(Status)]


@given({"text": "paid"}, {"text": "lost"})
@rhythm.workflow
async def member_of_a_value(text: str) -> Any:
    try:
        status = Status(text)
    except ValueError:
        return "unknown"
    return [status.name, status]


@given({"mood": Mood.BAD, "level": Level.HIGH})
@rhythm.workflow
async def members_that_are_their_values(mood: Mood, level: Level) -> Any:
    return [f"{mood} {level:02d}", str(level), mood.upper(), mood == "bad", level + 1, level.name]


@given({"points": [Point(1, 2), Point(3)]})
@rhythm.workflow
async def named_tuples_are_taken_apart(points: list[Point]) -> Any:
    x, y = points[0]
    out = []
    for a, b in points:
        out.append(a - b)
    return [x, y, out, [b for _, b in points], points[1][0], points[-1][-1]]


@given({"item": Item("a", 2.5)})
@rhythm.workflow
async def dataclass_is_replaced(item: Item) -> Any:
    more = dataclasses.replace(item, count=item.count + await echo(1))
    return [item, more, more.count, dataclasses.replace(more)]
