"""What a Python workflow is warned of, and what it is not: the codes, and a body that has them.

The line with `# <-` is the one that the message must point to, and what stands after it is a part
of the message. Without a line, nothing must be reported.
"""

from __future__ import annotations

HEADER = """
import asyncio, enum, json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict
import rhythm

LIMIT = 50.0
NAMES = ["a", "b"]

@dataclass
class Line:
    sku: str
    count: int = 1
    tags: list[str] = field(default_factory=list)

class Order(TypedDict):
    id: str
    total: float
    note: NotRequired[str]

class Point(NamedTuple):
    x: int
    y: int = 0

class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"

UserId = NewType("UserId", str)

@rhythm.task(name="warned_charge")
async def charge(id: str, amount: float) -> int: ...

@rhythm.task(name="warned_load")
async def load(id: str) -> Order: ...

@rhythm.task(name="warned_lines")
async def lines(ids: list[str]) -> list[Line]: ...

@rhythm.task(name="warned_put")
async def put(line: Line, size: Size = Size.SMALL, note: str | None = None) -> Line: ...

@rhythm.task(name="warned_kind")
async def kind(of: Literal["a", "b"], at: Point = Point(1), when: datetime | None = None): ...

@rhythm.task(name="warned_pair")
async def pair() -> tuple[int, str]: ...

@rhythm.task(name="warned_nothing")
async def nothing() -> None: ...

@rhythm.task(name="warned_maybe")
async def maybe(id: str) -> Order | None: ...

@rhythm.task(name="warned_any")
async def anything(x): ...

@rhythm.task(name="warned_open")
async def opened(a: int = None, b: Decimal = Decimal(1), c: Annotated[int, "x"] = 1,
                 d: Sequence[str] = (), e: Mapping[str, int] = {}, f: Any = None,
                 g: UserId = UserId(""), h: timedelta | None = None, **more): ...

@rhythm.workflow(name="warned_child")
async def child(order: Order, count: int = 1) -> list[str]:
    return [order["id"]] * count
"""

WARNED: list[tuple[str, str, str]] = [
    # unreachable code
    ("P101", "return 1\nreturn 2  # <- this is never reached", ""),
    ("P101", 'raise ValueError("x")\nx = 1  # <-', ""),
    ("P101", "while True:\n    await charge('a', 1)\nreturn 1  # <-", ""),
    ("P101", "for x in NAMES:\n    break\n    x = 1  # <-", ""),
    ("P101", "for x in NAMES:\n    continue\n    x = 1  # <-", ""),
    ("P101", "if a:\n    return 1\nelse:\n    raise ValueError()\nx = 2  # <-", "a"),
    ("P101", "try:\n    return 1\nexcept ValueError:\n    return 2\nx = 2  # <-", "a"),
    ("P101", "try:\n    await charge('a', 1)\nfinally:\n    return 2\nx = 2  # <-", "a"),
    ("P101", "with rhythm.timeout(5):\n    return 1\nx = 2  # <-", "a"),
    ("P101", "match a:\n    case 1:\n        return 1\n    case _:\n        return 2\nx = 2  # <-", "a"),
    ("P101", "while 1:\n    while True:\n        break\nx = 1  # <-", ""),
    # arguments
    ("P104", 'await charge("1", "a")  # <- `amount` of task `warned_charge` must be a number, not text', ""),
    ("P104", "await charge(1, 2.0)  # <- `id` of task `warned_charge` must be text, not a number", ""),
    ("P104", 'await charge(amount=None, id="1")  # <- must be a number, not null', ""),
    ("P104", 'await charge("1", True)  # <- must be a number, not true or false', ""),
    ("P104", "await charge(a, 1)  # <- must be text, not a number", "a: int"),
    ("P104", "await charge(LIMIT, 1)  # <- must be text, not a number", ""),
    ("P104", 'x = await charge("1", 1)\nawait charge(x, 1)  # <- must be text, not a number', ""),
    ("P104", "for each in a:\n    await charge(each, 1)  # <- must be text, not a number", "a: list[int]"),
    ("P104", 'o = await load("1")\nawait charge(o["total"], 1)  # <- must be text, not a number', ""),
    ("P104", "await charge(a.count, 1)  # <- must be text, not a number", "a: Line"),
    ("P104", "await asyncio.gather(*[charge(n, 1) for n in a])  # <- not a number", "a: list[int]"),
    ("P104", "await lines([1])  # <- `ids[0]` of task `warned_lines` must be text, not a number", ""),
    ("P104", "await lines(a)  # <- `ids[0]` of task `warned_lines` must be text, not a number", "a: list[int]"),
    ("P104", 'await put({"count": 1})  # <- has no `sku`, which Line needs', ""),
    ("P104", 'await put({"sku": "a", "x": 1})  # <- has `x`, which Line does not take', ""),
    ("P104", 'await put({"sku": 1})  # <- `line.sku` of task `warned_put` must be text, not a number', ""),
    ("P104", 'await put({"sku": "a", "count": 1.5})  # <- must be a whole number, not 1.5', ""),
    ("P104", 'await put({"sku": "a", "tags": [1]})  # <- `line.tags[0]` of', ""),
    ("P104", 'await put({"sku": "a"}, size="m")  # <- must be one of "s", "l", not "m"', ""),
    ("P104", 'await put({"sku": "a"}, note=1)  # <- must be null or text, not a number', ""),
    ("P104", 'await kind("c")  # <- must be one of "a", "b", not "c"', ""),
    ("P104", 'await kind("a", {"y": 1})  # <- has no `x`, which Point needs', ""),
    ("P104", 'await kind("a", when=5)  # <- must be null or text, not a number', ""),
    ("P104", 'await child({"id": "1"})  # <- of workflow `warned_child` has no `total`', ""),
    ("P104", 'await child({"id": "1", "total": "2"})  # <- `order.total` of workflow', ""),
    ("P104", 'await child({"id": "1", "total": 2}, count="3")  # <- must be a number, not text', ""),
    ("P104", 'await put(await load("1"))  # <- has `id`, which Line does not take', ""),
    # results
    ("P106", 'x = await charge("1", 1)\nfor z in x: pass  # <- `x` is the result of task `warned_charge`, an int: it cannot be iterated', ""),
    ("P106", 'x = await charge("1", 1)\ny = x + "a"  # <- Python has no `+` for these', ""),
    ("P106", 'y = await charge("1", 1) + "a"  # <- Python has no `+`', ""),
    ("P106", 'x = await charge("1", 1)\ny = x["k"]  # <- it has no `[…]`', ""),
    ("P106", 'x = await charge("1", 1)\ny = len(x)  # <- `len` does not take it', ""),
    ("P106", 'x = await charge("1", 1)\ny = x.upper()  # <- it has no method `upper`', ""),
    ("P106", 'x = await charge("1", 1)\ny = x < "a"  # <- Python has no `<`', ""),
    ("P106", 'x = await charge("1", 1)\na, b = x  # <- it cannot be iterated', ""),
    ("P106", 'x = await charge("1", 1)\ny = [z for z in x]  # <- it cannot be iterated', ""),
    ("P106", 'x = await charge("1", 1)\ny = 1 in x  # <- Python has no `in`', ""),
    ("P106", 'x = await charge("1", 1)\ny = sorted(x)  # <- it cannot be iterated', ""),
    ("P106", 'x = await charge("1", 1)\nx += "a"  # <- Python has no `+`', ""),
    ("P106", 'x = await load("1")\ny = x["totl"]  # <- `x` is the result of task `warned_load`, an Order, which has no `totl`', ""),
    ("P106", 'x = await load("1")\ny = x["total"]["x"]  # <- it has no `[…]`', ""),
    ("P106", 'x = await load("1")\ny = x["id"] - 1  # <- Python has no `-`', ""),
    ("P106", 'x = await load("1")\nx.append(1)  # <- it has no method `append`', ""),
    ("P106", 'x = await lines(["a"])\ny = x["k"]  # <- its index is a whole number', ""),
    ("P106", 'for x in await lines(["a"]):\n    y = x.count + "a"  # <- Python has no `+`', ""),
    ("P106", 'xs = await lines(["a"])\ny = xs[0].sku * 1.5  # <- Python has no `*`', ""),
    ("P106", "a, b, c = await pair()  # <- a tuple of 2: it cannot be 3 names", ""),
    ("P106", "a, b = await pair()\ny = a + b  # <- Python has no `+`", ""),
    ("P106", 'a, b = await asyncio.gather(charge("1", 1), load("1"))\ny = len(a)  # <- `len`', ""),
    ("P106", "x = await nothing()\ny = x + 1  # <- `x` is the result of task `warned_nothing`, None", ""),
    ("P106", 'x = await child({"id": "1", "total": 1})\ny = x + 1  # <- the result of workflow', ""),
    ("P106", "return a + 1  # <- `a` is a str", "a: str"),
    ("P106", "return -a < 'x' or len(b)  # <- `b` is an int", "a: int, b: int"),
]  # fmt: skip

QUIET: list[tuple[str, str]] = [
    # what fits
    ('await charge("1", 1)\nawait charge("1", 1.5)\nawait charge(a, b)', "a: str, b: int"),
    ('await put({"sku": "a", "count": 2.0, "tags": []}, Size.LARGE, None)', ""),
    ('await put({"sku": "a"}, "l")\nawait put(Line("a"))\nawait put(a, b)', "a: Line, b: Size"),
    ('await kind("a", {"x": 1}, "2026-01-01")\nawait kind("b", [1, 2])\nawait kind(a)', "a: str"),
    ('await kind("a", when=datetime.now(UTC))', ""),
    ("await opened(None, 1, 2, ['a'], {'a': 1}, 5, 'u', 5, z=1)\nawait opened(b='1.5')", ""),
    ("await opened(a=1, d=[], e={}, h='5m')", ""),
    ("await anything(1)\nawait anything('a')\nawait anything(a)", "a"),
    ("await lines([])\nawait lines(a)\nawait lines([x for x in a])", "a: list"),
    ('await put({"sku": a, **b})', "a, b: dict"),
    ('await child({"id": "1", "total": 2, "more": 3})', ""),
    # what is not known, or may be right
    ("x = await anything(1)\nfor y in x: pass\nreturn [x + 1, x['k'], len(x)]", "a"),
    ("return a + 1", "a: int | str"),
    ("return len(a)", "a: list[int] | None = None"),
    ("return a['x']", "a: dict | int"),
    ("return [x for x in a]", "a: Optional[list] = None"),
    ("x = None\nif a:\n    x = [1]\nreturn len(x)", "a"),
    ("x = 0\nfor y in a:\n    x = x + y\nreturn x", "a: list[float]"),
    ("x = 0\nfor y in a:\n    x += y\nreturn x", "a"),
    ("x = '1'\nx = int(x)\nreturn x + 1", ""),
    ("x = [1]\nx.append('a')\nreturn x[1].upper()", ""),
    ("x = {'a': 1}\nx['b'] = 'c'\nreturn x['b'].upper()", ""),
    ("x = {}\nx['sku'] = 'a'\nawait put(x)", ""),
    ("x = {'sku': 'a'}\nx['count'] = 1\nawait put(x)", ""),
    ("x = [1]\nfor y in a:\n    x = x + [y]\nreturn x[0] + 'a'", "a"),
    ("if isinstance(a, str):\n    return a.upper()\nreturn a + 1", "a: int"),
    ("try:\n    return a + 'x'\nexcept TypeError:\n    return 0", "a: int"),
    ("return a", "a: int"),
    ("x = await maybe('1')\nif x is None:\n    return 0\nreturn x['total'] + 1", ""),
    ("x = await load('1')\nreturn x.get('other', 1)", ""),
    ("x = await load('1')\nreturn x['note'] + 'a'", ""),
    ("a, *b = await pair()\nreturn a", ""),
    ("a, b = await pair()\nreturn [a + 1, b + 'a']", ""),
    ("return '%s' % a", "a: int"),
    ("return a * 'x'", "a: int"),
    ("return [True + 1, 'a' * 2, [1] * 2]", ""),
    ("x = 5\nx = await load('1')\nreturn x['id']", ""),
    ("return sorted(a, key=lambda a: a['k'])", "a: list[dict]"),
    ("return [a['x'] for a in b]", "a: int, b: list[dict]"),
    ("x = await rhythm.all([charge('1', 1)], settle=True)\nreturn x[0]['status']", ""),
    ("x = await rhythm.race([charge('1', 1)])\nreturn x['key']", ""),
    ("x = await rhythm.any([charge('1', 1)])\nreturn x['result']", ""),
    ("x = await rhythm.signal('go', timeout=5)\nreturn x['a'] + 1", ""),
    ("due = a + timedelta(days=1)\nreturn due > datetime.now(UTC)", "a: datetime"),
    ("return a == 'x' or a != None", "a: int"),
    ("for i, (k, v) in enumerate(a.items()):\n    await charge(k, v + i)", "a: dict[str, int]"),
    ("for x, y in zip(a, b):\n    await charge(y, x)", "a: list[int], b: list[str]"),
    ("return ', '.join(a).upper().split()[0]", "a: list[str]"),
    ("x: Any = 5\nreturn x['a']", ""),
    ("x: 'int' = a\nreturn x['a']", "a"),
    ("return json.dumps(a) + 'x'", "a: int"),
    # reached
    ("while True:\n    if a:\n        break\nreturn 1", "a"),
    ("while True:\n    for x in a:\n        pass\n    else:\n        break\nreturn 1", "a"),
    ("for x in a:\n    return x\nreturn None", "a"),
    ("try:\n    return await charge('1', 1)\nexcept ValueError:\n    pass\nreturn 1", ""),
    ("match a:\n    case 1:\n        return 1\nreturn 2", "a"),
    ("if a:\n    return 1\nreturn 2", "a"),
    # waits that end
    ("await asyncio.wait_for(rhythm.signal('a'), 5)", ""),
    ("with rhythm.timeout(5):\n    await rhythm.event('a')", ""),
    ("async with asyncio.timeout(5):\n    await rhythm.event('a')", ""),
    ("await rhythm.race([rhythm.signal('a'), rhythm.sleep(5)])", ""),
    ("await rhythm.signal('a', timeout='3d')\nawait rhythm.approval(role='boss')", ""),
]

WAITING = [
    "await rhythm.signal('a')",
    "await rhythm.event('a', where={'x': 1})",
    "await rhythm.signal('a', timeout=None)",
    "x = asyncio.create_task(rhythm.signal('a'))\nawait x",
    "await rhythm.all([rhythm.signal('a'), rhythm.sleep(5)])",
]
