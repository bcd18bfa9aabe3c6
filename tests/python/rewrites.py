"""What is refused, and what to write instead: for every code, code that has it and code that works.

`python -m tests.python.rewrites` writes them into docs/python-workflows.md, with the messages that
people see; a test compares the page, and compiles both sides.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from rhythm.lang.python.problems import CODES
from rhythm.lang.report import Compilation
from rhythm.lang.source import Diagnostic
from tests.python.mistakes import MISTAKES, said_to
from tests.python.modules import compiled

PAGE = Path(__file__).parents[2] / "docs" / "python-workflows.md"
BEGIN = "<!-- written by tests/python/rewrites.py -->\n<!-- fmt: off -->\n"
END = "<!-- fmt: on -->\n"
# What the examples have around them. A line of a body may use any of these names.
AROUND = """\
import asyncio, json, logging, os, time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
import rhythm

RATES = {"eur": 1.0}
CLIENT = object()

@dataclass
class Order:
    id: str
    total: float = 0.0
    def vat(self): return self.total * 0.19

@dataclass(frozen=True)
class Fixed:
    id: str

@rhythm.task(name="rewrite_charge")
async def charge(order: str, amount: float = 1.0) -> Order: ...

@rhythm.task(name="rewrite_pack")
def pack(item: str) -> dict[str, Any]: ...

@rhythm.task(name="rewrite_fetch")
async def fetch(url: str) -> str: ...

def net(amount):
    return amount / 1.19

def long_helper(amount):
    rounded = round(amount)
    return rounded + 1

async def stream(): ...

"""
SIGNATURE = "async def workflow(items: list, data: dict, text: str, amount: float):"
# By code: what is refused, and what does the same. A text with `def workflow` is a whole function.
REWRITES: dict[str, list[tuple[str, str]]] = {
    "P001": [("def workflow(text: str):\n    return text",
              "async def workflow(text: str):\n    return text")],
    "P002": [("async def workflow(*items):\n    return items",
              "async def workflow(items: list[str]):\n    return items"),
             ("async def workflow(path=Path('.')):\n    return path",
              "async def workflow(path='.'):\n    return path")],
    "P010": [("def gross(x):\n    return x * 1.19\nreturn gross(amount)",
              "return net(amount)  # a function of the module, with one return")],
    "P011": [("gross = lambda x: x * 1.19\nreturn [gross(x) for x in items]",
              "return [x * 1.19 for x in items]")],
    "P012": [("names = (x.upper() for x in items)\nreturn list(names)",
              "names = [x.upper() for x in items]\nreturn names")],
    "P013": [("import math\nreturn math.floor(amount)",
              "return int(amount)  # or: import math, at the top of the file")],
    "P014": [("global RATES\nRATES = data", "rates = data\nreturn rates")],
    "P015": [("with open(text) as file:\n    return file.read()",
              "return await fetch(text)  # a task opens, reads and closes")],
    "P016": [("async for part in stream():\n    await charge(part)",
              "async for done in rhythm.completed([charge(x) for x in items]):\n"
              "    print(done[\"status\"])")],
    "P017": [("del amount", "amount = None")],
    "P020": [("return totl", "total = amount\nreturn total")],
    "P021": [("if amount > 5:\n    size = \"large\"\nreturn size",
              "size = \"small\"\nif amount > 5:\n    size = \"large\"\nreturn size")],
    "P022": [("return long_helper(amount)",
              "return net(amount)  # one return: it becomes a part of the workflow"),
             ("return text(amount)", "return text")],
    "P023": [("time.sleep(60)", "await asyncio.sleep(60)"),
             ("return os.listdir(text)", "return await fetch(text)  # a task")],
    "P024": [("return CLIENT", "return RATES  # constants that are JSON can be read")],
    "P025": [("RATES[\"usd\"] = amount\nreturn RATES",
              "rates = dict(RATES)\nrates[\"usd\"] = amount\nreturn rates")],
    "P030": [("charge(text)", "await charge(text)"),
             ("return pack(text)", "return await pack.run(text)"),
             ("rhythm.sleep(\"1h\")", "await rhythm.sleep(\"1h\")")],
    "P031": [("await stream()", "await fetch(text)"),
             ("await asyncio.wait([charge(x) for x in items])",
              "await asyncio.gather(*[charge(x) for x in items])")],
    "P032": [("await asyncio.gather(*[charge(await fetch(x)) for x in items])",
              "found = [await fetch(x) for x in items]\n"
              "await asyncio.gather(*[charge(x) for x in found])")],
    "P033": [("await charge(text, amuont=5.0)", "await charge(text, amount=5.0)")],
    "P034": [("await charge.options(retry=3)(text)", "await charge.options(retries=3)(text)"),
             ("await asyncio.gather(charge(text), return_exceptions=True)",
              "ended = await rhythm.all([charge(text)], settle=True)\n"
              "return ended[0][\"status\"]")],
    "P040": [("rest = items\nrest.append(amount)\nreturn [items, rest]",
              "rest = [*items, amount]\nreturn [items, rest]")],
    "P041": [("for x in items:\n    items.remove(x)",
              "items = [x for x in items if x != amount]\nreturn items")],
    "P042": [("fixed = Fixed(text)\nfixed.id = \"new\"\nreturn fixed",
              "fixed = Fixed(\"new\")\nreturn fixed")],
    "P050": [("return b\"bytes\"", "return \"text\"")],
    "P051": [("return {x.lower() for x in items}",
              "return list({x.lower(): True for x in items})")],
    "P052": [("pair = (text, amount)\nreturn str(pair)", "pair = [text, amount]\nreturn str(pair)")],
    "P053": [("return {7: text}", "return {\"7\": text}")],
    "P054": [("return items @ items", "return sum(a * b for a, b in zip(items, items))")],
    "P055": [("return items is data", "return items == data")],
    "P056": [("items[1:2] = [amount]", "items = [*items[:1], amount, *items[2:]]\nreturn items")],
    "P057": [("keys = data.keys()\nreturn str(keys)", "keys = list(data.keys())\nreturn str(keys)")],
    "P058": [("async def workflow(price: Decimal):\n    return price * 2",
              "async def workflow(price: float):\n    return price * 2")],
    "P060": [("async def workflow(order):\n    return order.total",
              "async def workflow(order: Order):\n    return order.total"),
             ("first = items[0]\nreturn first.name", "first = items[0]\nreturn first[\"name\"]")],
    "P061": [("order = await charge(text)\nreturn order.vat()",
              "order = await charge(text)\nreturn order.total * 0.19")],
    "P062": [("return \"{} pieces\".format(amount)", "return f\"{amount} pieces\"")],
    "P063": [("return list(map(len, items))", "return [len(x) for x in items]")],
    "P070": [("problem = ValueError(text)\nraise problem", "raise ValueError(text)")],
    "P071": [("try:\n    await charge(text)\nexcept asyncio.CancelledError:\n    await fetch(text)",
              "try:\n    await charge(text)\nfinally:\n    await fetch(text)")],
    "P072": [("raise", "raise ValueError(text)")],
    "P080": [("match data:\n    case Order(id=name):\n        return name",
              "match data:\n    case {\"id\": name}:\n        return name\nreturn None")],
    "P090": [("return datetime.now(UTC).year",
              "return datetime.now(UTC).timestamp()  # the year: in a task")],
    "P101": [("return amount\nprint(text)", "print(text)\nreturn amount")],
    "P104": [("await charge(text, \"ten\")", "await charge(text, 10.0)")],
    "P106": [("return [cent for cent in amount]", "return [item for item in items]")],
    "P201": [("return await rhythm.signal(\"go\")",
              "return await rhythm.signal(\"go\", timeout=\"3d\")")],
}  # fmt: skip
# Codes of which no example can be shown, and why.
WITHOUT = {
    "P003": "a text of thousands of lines",
    "P103": "only known with `rhythm check --app`",
    "P105": "only known with `rhythm check --app`",
}


def compiled_body(body: str, folder: Path) -> Compilation:
    """The compilation of an example: a whole function, or the body of one."""
    whole = "def workflow(" in body
    text = body if whole else f"{SIGNATURE}\n{textwrap.indent(body, '    ')}"
    return compiled(f"{AROUND}\n{text}\n", folder)


def problem_in(body: str, folder: Path) -> Diagnostic:
    """The only problem of an example that is refused."""
    [wrong] = compiled_body(body, folder).diagnostics
    return wrong


def section(folder: Path) -> str:
    """The part of the page that is written here."""
    parts = [BEGIN]
    for code, rewrites in REWRITES.items():
        parts.append(f"### {code}: {CODES[code].removeprefix('note: ')}\n")
        for wrong, right in rewrites:
            parts.append(_block(wrong, right, problem_in(wrong, folder)))
    return "\n".join([*parts, "## Twenty mistakes\n", *_mistakes(), END])


def _block(wrong: str, right: str, problem: Diagnostic) -> str:
    said = [f"# {problem.code}: {problem.message}"]
    advice = " ".join(problem.help)
    said += textwrap.wrap(f"help: {advice}", 106, initial_indent="# ",
                          subsequent_indent="#       ") if advice else []  # fmt: skip
    return "\n".join(["```py", wrong, *said, "", "# instead:", right, "```\n"])


def _mistakes() -> list[str]:
    intro = (
        "What people write first, and what they are told, word for word.\n"
        "`python -m tests.python.mistakes` prints it anew.\n"
    )
    said = [f"**{name}**\n\n```text\n{said_to(name)}\n```\n" for name in MISTAKES]
    return [intro, *said]


def written(folder: Path) -> str:
    """The page as it should be."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return before + section(folder) + rest.partition(END)[2]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        PAGE.write_text(written(Path(made)), encoding="utf-8")
