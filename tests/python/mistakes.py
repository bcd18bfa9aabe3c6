"""Twenty mistakes of people who write their first workflow, and what Rhythm says to them.

`python -m tests.python.mistakes` prints all of them as a user sees them.
"""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path

from rhythm.lang.source import render_all
from tests.python.modules import compiled

HEADER = """\
import asyncio, random, time
import urllib.request as requests
from datetime import datetime, timedelta
import rhythm

PRICES = {"tea": 3}

class Cart:
    def __init__(self): self.items = []

@rhythm.task(name="mistaken_charge")
async def charge(order: str, amount: float) -> dict: ...

@rhythm.task(name="mistaken_price")
def price(item: str) -> float: ...

async def session(): ...

async def pay_twice(order):
    await charge(order, 1.0)
    return await charge(order, 2.0)

"""

MISTAKES: dict[str, str] = {
    "a function inside": """
        async def workflow(order: str):
            async def twice(amount):
                await charge(order, amount)
                await charge(order, amount)
            await twice(5.0)
    """,
    "a request in the workflow": """
        async def workflow(url: str):
            return requests.urlopen(url).read()
    """,
    "a list that two names share": """
        async def workflow(items: list[str]):
            rest = items
            rest.remove("tea")
            return {"all": items, "rest": rest}
    """,
    "time.sleep": """
        async def workflow(order: str):
            time.sleep(60)
            await charge(order, 5.0)
    """,
    "a forgotten await": """
        async def workflow(order: str):
            receipt = charge(order, 5.0)
            return receipt
    """,
    "a generator": """
        async def workflow(items: list[str]):
            names = (item.upper() for item in items)
            return list(names)
    """,
    "a lambda in a variable": """
        async def workflow(items: list[float]):
            tax = lambda amount: amount * 1.19
            return [tax(item) for item in items]
    """,
    "a file": """
        async def workflow(path: str):
            with open(path) as file:
                return file.read()
    """,
    "global": """
        async def workflow(order: str):
            global PRICES
            PRICES = {"tea": 4}
    """,
    "an object of a class": """
        async def workflow(order: str):
            cart = Cart()
            cart.items.append(order)
            return cart.items
    """,
    "a set": """
        async def workflow(items: list[str]):
            return len({item.lower() for item in items})
    """,
    "a plain task, called as in Python": """
        async def workflow(item: str):
            return price(item) * 2
    """,
    "a change of a constant": """
        async def workflow(item: str):
            PRICES[item] = 4
            return PRICES
    """,
    "a key that is not text": """
        async def workflow(order: int):
            return {7: "paid"}
    """,
    "the parts of a date": """
        async def workflow(order: str):
            return datetime.now().year
    """,
    "asyncio.wait": """
        async def workflow(order: str):
            done, pending = await asyncio.wait([charge(order, 1.0), charge(order, 2.0)])
            return len(done)
    """,
    "a session": """
        async def workflow(url: str):
            async with session() as http:
                return await http.get(url)
    """,
    "catching cancellation": """
        async def workflow(order: str):
            try:
                await rhythm.sleep("1h")
            except asyncio.CancelledError:
                await charge(order, 0.0)
    """,
    "a helper that awaits": """
        async def workflow(order: str):
            return await pay_twice(order)
    """,
    "*args": """
        async def workflow(order: str, *amounts: float):
            for amount in amounts:
                await charge(order, amount)
    """,
}


def said_to(name: str) -> str:
    """What somebody sees who makes this mistake."""
    with tempfile.TemporaryDirectory() as folder:
        text = HEADER + "\n" + textwrap.dedent(MISTAKES[name]).strip() + "\n"
        compilation = compiled(text, Path(folder))
        shown = render_all(compilation.source, compilation.errors)
        return shown.replace(f"{folder}/module.py", "shop.py").rstrip()


if __name__ == "__main__":
    for number, name in enumerate(MISTAKES, 1):
        print(f"{number}. {name}\n\n{textwrap.indent(said_to(name), '    ')}\n")
