"""What a Python workflow must not contain: the code of each refusal, and a body that has it.

The line with `# <-` is the one that the message must point to. `%` in a body is the header.
"""

from __future__ import annotations

HEADER = """
import asyncio, enum, json, logging, math, os, random, subprocess, time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
import rhythm

NUMBERS = [1, 2, 3]
OBJECT = object()

@dataclass
class Order:
    id: str
    total: float = 0.0
    def vat(self): return self.total * 0.19

@dataclass(frozen=True)
class Fixed:
    id: str

class Colour(enum.Enum):
    RED = 1

class Zero(enum.Enum):
    NONE = 0

class Point(NamedTuple):
    x: int
    y: int = 0

class Coded(Exception):
    def __init__(self, code): super().__init__(f"code {code}")

class Shown(Exception):
    def __str__(self): return "shown"

@rhythm.task(name="refusal_charge")
async def charge(amount: int, note: str = "") -> Order: ...

@rhythm.task(name="refusal_pack")
def pack(item: str) -> dict: ...

async def plain(x): ...

def helper(x):
    y = x + 1
    return y
"""

REFUSED: list[tuple[str, str, str]] = [
    # functions, classes, generators
    ("P010", "def inner(): pass  # <-", "x"),
    ("P010", "async def inner(): pass  # <-", "x"),
    ("P010", "class Inner: pass  # <-", "x"),
    ("P011", "f = lambda x: x  # <-", "x"),
    ("P012", "xs = (x for x in [1])  # <-", "x"),
    ("P013", "import os  # <-", "x"),
    ("P013", "from os import path  # <-", "x"),
    ("P014", "global a  # <-", "x"),
    ("P015", 'with open("x") as f:  # <-\n    pass', "x"),
    ("P015", "async with plain(1) as c:  # <-\n    pass", "x"),
    ("P016", "async for x in plain(1):  # <-\n    pass", "x"),
    ("P017", "del a  # <-", "a"),
    # names and calls
    ("P020", "return missing  # <-", "x"),
    ("P020", "return missing(1)  # <-", "x"),
    ("P020", 'await rhythm.slep("1h")  # <-', "x"),
    ("P020", "charge.delay(1)  # <-", "x"),
    ("P024", "return OBJECT.get(1)  # <-", "x"),
    ("P034", 'await rhythm.signal("go", "3d")  # <-', "x"),
    ("P034", "return (await charge.options(retrys=3)(1)).id  # <-", "x"),
    ("P031", "return (await plain(1)).id  # <-", "x"),
    ("P021", "if a:\n    b = 1\nreturn b  # <-", "a"),
    ("P021", "for x in a:\n    last = x\nreturn last  # <-", "a"),
    ("P022", "return helper(a)  # <-", "a"),
    ("P022", "return a(1)  # <-", "a"),
    ("P023", 'return subprocess.run(["ls"])  # <-', "x"),
    ("P023", "time.sleep(1)  # <-", "x"),
    ("P023", "return os.getcwd()  # <-", "x"),
    ("P024", "return OBJECT  # <-", "x"),
    ("P025", "NUMBERS.append(1)  # <-", "x"),
    ("P025", "NUMBERS[0] = 1  # <-", "x"),
    # awaits
    ("P030", "charge(1)  # <-", "x"),
    ("P030", "x = charge(1)  # <-", "x"),
    ("P030", "x = charge  # <-", "x"),
    ("P030", 'rhythm.sleep("1h")  # <-', "x"),
    ("P030", 'x = rhythm.publish("a", 1)  # <-', "x"),
    ("P031", "await plain(1)  # <-", "x"),
    ("P031", "await (1 + 2)  # <-", "x"),
    ("P031", "await len([1])  # <-", "x"),
    ("P032", "await asyncio.gather(*[charge(await charge(1)) for x in a])  # <-", "a"),
    ("P032", "await rhythm.all([await charge(1)])  # <-", "x"),
    ("P033", "await charge()  # <-", "x"),
    ("P033", "await charge(1, 2, 3)  # <-", "x"),
    ("P033", "await charge(amuont=1)  # <-", "x"),
    ("P033", "await charge(*a)  # <-", "a"),
    ("P033", 'await rhythm.approval(reason="x")  # <-', "x"),
    ("P033", "return len(1, 2)  # <-", "x"),
    ("P033", "return Order()  # <-", "x"),
    ("P034", "await charge.options(retrys=3)(1)  # <-", "x"),
    ("P034", 'await charge.options(key="k")(1)  # <-', "x"),
    ("P034", "await charge.options(retries=-1)(1)  # <-", "x"),
    ("P034", "await charge.options(priority=40_000)(1)  # <-", "x"),
    ("P034", 'await charge.options(timeout="soon")(1)  # <-', "x"),
    ("P034", 'await charge.options(queue="")(1)  # <-', "x"),
    ("P034", 'await rhythm.sleep("2 hours")  # <-', "x"),
    ("P034", 'await rhythm.sleep_until("tomorrow")  # <-', "x"),
    ("P034", "await rhythm.race([])  # <-", "x"),
    ("P034", "await rhythm.all([charge(1)], need=1, settle=True)  # <-", "x"),
    ("P034", 'await rhythm.approval(role="a", quorum=0)  # <-', "x"),
    ("P034", "rhythm.progress(2)  # <-", "x"),
    ("P034", 'await rhythm.signal("", timeout=5)  # <-', "x"),
    ("P034", "await rhythm.all([charge(1)], limit=3)  # <-", "x"),
    ("P034", "await asyncio.gather(charge(1), return_exceptions=True)  # <-", "x"),
    ("P034", "await rhythm.all({x: charge(1) for x in a})  # <-", "a"),
    # changes
    ("P040", "b = a\nb.append(1)  # <-\nreturn [a, b]", "a"),
    ("P041", "for x in a:\n    a.append(x)  # <-", "a"),
    ("P042", "[1, 2].append(3)  # <-", "x"),
    ("P042", 'f = await charge(1)\ng = Fixed("x")\ng.id = "y"  # <-', "x"),
    # literals and values
    ("P050", 'return b"x"  # <-', "x"),
    ("P050", "return 1j  # <-", "x"),
    ("P050", "return 99999999999999999999  # <-", "x"),
    ("P050", "return ...  # <-", "x"),
    ("P050", 'return "a\\0b"  # <-', "x"),
    ("P050", 'return "\\ud800"  # <-', "x"),
    ("P051", "return {1, 2}  # <-", "x"),
    ("P051", "return {x for x in a}  # <-", "a"),
    ("P052", "t = (1, 2)  # <-\nreturn t", "x"),
    ("P052", "return a == (1, 2)  # <-", "a"),
    ("P053", "return {1: 2}  # <-", "x"),
    ("P053", "return a[1, 2]  # <-", "a"),
    ("P053", 'return {"k": 1, "k": 2}  # <-', "x"),
    ("P054", "return a @ a  # <-", "a"),
    ("P055", "return a is a  # <-", "a"),
    ("P056", "a[1:2] = [3]  # <-", "a"),
    ("P057", "return str({}.keys())  # <-", ""),
    ("P070", "try:\n    await charge(a)\nexcept ValueError as e:\n    return repr(e)  # <-", "a"),
    ("P057", "pairs = zip([1], [2])  # <-", ""),
    ("P058", 'return a == "r"  # <-', "a: Colour"),
    ("P058", "return 1 if a else 2  # <-", "a: Zero"),
    ("P058", "return a * 2  # <-", "a: Decimal"),
    ("P058", "return sum(a)  # <-", "a: list[Decimal]"),
    ("P058", "return [x for x in a]  # <-", "a: Point"),
    ("P058", "return a[len([1])]  # <-", "a: Point"),
    ("P052", "return isinstance(a, list)  # <-", "a: tuple[int, int]"),
    ("P052", "return a == [1, 2]  # <-", "a: tuple[int, int]"),
    # attributes and methods
    ("P060", "return a.total  # <-", "a"),
    ("P061", "o = await charge(1)\nreturn o.totl  # <-", "x"),
    ("P061", "o = await charge(1)\nreturn o.vat()  # <-", "x"),
    ("P061", "b = {}\nreturn b.total  # <-", "x"),
    ("P061", 'o = await charge(1)\nreturn f"{o}"  # <-', "x"),
    ("P062", 'return "a".format(1)  # <-', "x"),
    ("P062", 'return "a".encode()  # <-', "x"),
    ("P062", "return a.appendx(1)  # <-", "a"),
    ("P023", 'return open("x")  # <-', "x"),
    ("P063", "return list(map(len, a))  # <-", "a"),
    ("P063", "return set(a)  # <-", "a"),
    ("P063", "return isinstance(a, Order)  # <-", "a"),
    ("P063", 'return eval("1")  # <-', "x"),
    # exceptions
    ("P070", "raise 1  # <-", "x"),
    ("P070", 'e = ValueError("x")  # <-', "x"),
    ("P070", "try:\n    pass\nexcept OBJECT:  # <-\n    pass", "x"),
    ("P070", "raise ValueError(1, 2)  # <-", "x"),
    ("P071", "try:\n    await charge(1)\nexcept asyncio.CancelledError:  # <-\n    pass", "x"),
    ("P072", "raise  # <-", "x"),
    ("P070", "raise Coded(1)  # <-", "x"),
    ("P070", 'raise Shown("x")  # <-', "x"),
    ("P070", "raise StopIteration  # <-", "x"),
    ("P070", "try:  # <-\n    await charge(a)\nexcept* ValueError:\n    pass", "a"),
    ("P070", "try:\n    await charge(1)\nexcept ValueError as a:  # <-\n    pass\nreturn a", "a"),
    ("P015", "async with asyncio.TaskGroup() as g:\n    return 1  # <-", "x"),
    ("P025", "b = NUMBERS\nb.append(1)  # <-\nreturn b", "x"),
    ("P025", "a.append(1)  # <-\nreturn a", "a=[]"),
    ("P040", "b = [1]\nc = asyncio.create_task(charge(b))\nb.append(1)  # <-\nawait c", "x"),
    ("P040", "b = []\ntry:\n    return b\nfinally:\n    b.append(1)  # <-", "x"),
    ("P061", "try:\n    await charge(1)\nexcept ValueError as e:\n    return e.sku  # <-", "x"),
    # match, times
    ("P080", "match a:\n    case Order(id=1):  # <-\n        return 1", "a"),
    ("P080", "match a:\n    case [x, 1] | [x, 2]:  # <-\n        return x", "a"),
    ("P090", "return datetime.now(UTC).year  # <-", "x"),
    ("P090", "return datetime.now(UTC).strftime('%Y')  # <-", "x"),
    ("P090", "return timedelta(milliseconds=1)  # <-", "x"),
    ("P090", "return datetime(2025, 1, a, tzinfo=UTC)  # <-", "a"),
    ("P090", "return a.year  # <-", "a: date"),
    ("P090", "return datetime.now(a)  # <-", "a"),
    ("P058", "return [x for x in a]  # <-", "a: Order"),
    ("P058", "return list(a)  # <-", "a: Colour"),
    ("P061", 'return a["id"]  # <-', "a: Order"),
    ("P031", "await a.append(1)  # <-", "a"),
    ("P031", "await a  # <-", "a: str"),
    ("P061", "a.clear()  # <-", "a: Order"),
    ("P061", "a.append(1)  # <-", "a: int"),
    ("P061", "return a[0]  # <-", "a: datetime"),
    ("P061", "return a.upper()  # <-", "a: Colour"),
    ("P058", 'return a + "x"  # <-', "a: Colour"),
    ("P058", 'return a + "x"  # <-', "a: date"),
    ("P052", 'return "x".startswith(["a"])  # <-', "x"),
    ("P033", 'logging.info("%s", 1, 2)  # <-', "x"),
    ("P033", 'print("x", file=OBJECT)  # <-', "x"),
    ("P040", 'a["me"] = a  # <-\nreturn a', "a: dict"),
    ("P090", "return date(2025, 1, 1)  # <-", "x"),
    ("P061", "return a.quantize(2)  # <-", "a: Decimal"),
    ("P061", "return a.label  # <-", "a: Colour"),
]
