"""What the parts of a statement cost, in instructions, as far as it is known beforehand.

A builtin is paid for before it is called: a call that fails has done work, too, and a loop that
catches the failure must not get that work for nothing. An instruction takes about a tenth of a
microsecond. The prices are set so that no part takes much more than three tenths of a microsecond
for each instruction that it costs, whatever its arguments are. The result of a call is paid for
once it exists (`made`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.record import Record

CALL = 8  # the base price of a builtin
LONG = 256  # characters that are compared or copied in the time of one instruction
# Python may compare every character of a part that nearly matches at this many places of a text,
# however long the two are.
PLACES = 2_500
# Up to these lengths of a text and of a part, it may do so at all places.
SHORT = 30_000, 100
# expressions per instruction that cost nothing extra: an ordinary statement has no more
FREE_NODES = 16


def entries(value: Any) -> int:
    """Returns how many entries a list or an object has; 0 for other values."""
    return len(value) if type(value) is list or type(value) is dict else 0


def characters(value: Any) -> int:
    """Returns how many characters a text has; 0 for other values."""
    return len(value) if type(value) is str else 0


def copied(value: Any) -> int:
    """Returns the price of going through a value once without doing anything with its parts."""
    return entries(value) // 16 + characters(value) // LONG


def looked_up(value: Any) -> int:
    """Returns the price of looking up a text, the texts of a list, or the keys of an object.

    Each text is compared with the one that is found, unless it is the same object.
    """
    if type(value) is list or type(value) is dict:
        return sum(map(characters, value)) // LONG
    return characters(value) // LONG


def key_looked_up(key: Any) -> int:
    """Returns the price of looking up one key. What is no text is refused without being read."""
    return characters(key) // LONG


def made(value: Any) -> int:
    """Returns the price of having made a value."""
    return entries(value) + characters(value) // 16


def search(text: Any, part: Any) -> int:
    """Returns the price of looking for a part in a text.

    In a long text Python does it in linear time. In a short one it may compare the whole part at
    every place. In a long text it may also do so at the last 2,000 places, if the part is a third
    of the text or more. The price begins a little earlier, at a quarter, and counts up to PLACES
    places.
    """
    long, short = characters(text), characters(part)
    places = max(long - short, 0) if short > 1 else 0
    if long < PLACES or (long < SHORT[0] and short < SHORT[1]):
        return long // 128 + _compared(places, short)
    return long // 32 + (_compared(min(places, PLACES), short) if 4 * short >= long else 0)


def search_back(text: Any, part: Any) -> int:
    """Returns the price of looking for a part from the end of a text.

    Python may compare the whole part at every place, however long the text is.
    """
    long, short = characters(text), characters(part)
    return long // 32 + (_compared(max(long - short, 0), short) if short > 1 else 0)


def _compared(places: int, short: int) -> int:
    """Returns the price of comparing a part at each of these places.

    To get to the next place takes as long as comparing a few characters.
    """
    return places * (short + 8) // 512


def walked(nodes: int, size: int) -> int:
    """Returns the price of making text of a value with so many parts and bytes."""
    return 4 * nodes + size // 16


def _plain(*args: Any) -> int:
    """The price of a builtin that does little more than to go through its arguments once."""
    return CALL + sum(map(copied, args))


def _each(price: int, call: int = CALL) -> Callable[..., int]:
    """Returns a price function: `call`, and `price` for every entry in the arguments."""
    return lambda *args: call + price * sum(map(entries, args)) + sum(map(copied, args))


def _call(price: int) -> Callable[..., int]:
    """Returns a price function: the same price for every call, and reading its arguments."""
    return lambda *args: price + sum(map(copied, args))


def _fixed(price: int) -> Callable[..., int]:
    """Returns a price function: the same price for every call; the call counts the rest itself."""
    return lambda *args: price


def _contains(container: Any, x: Any) -> int:
    return CALL + 2 * entries(container) * (type(container) is list) + search(container, x)


def _get(container: Any, key: Any, default: Any = None) -> int:
    """Returns the price of `get`: a step for each part of the path, which may be a number."""
    return (
        20
        + 3 * (key.count(".") if type(key) is str else entries(key))
        + characters(key) // 16
        + looked_up(key)
    )


def _parse_json(text: Any) -> int:
    values = sum(map(text.count, ",[{")) if type(text) is str else 0
    return 50 + 3 * values + characters(text) // 32


def _format_date(time: Any, form: Any) -> int:
    return 70 + (3 * form.count("%") if type(form) is str else 0) + characters(form) // 64


# Every builtin has its price here, so that nobody adds one without a thought of what it may take.
_PLAIN = (
    "len range keys values round floor ceil abs reverse slice concat upper lower trim starts_with "
    "ends_with int float bool now base64 "
    "py.bitand py.bitor py.bitxor py.lshift py.rshift py.neg py.pos py.invert py.int py.float "
    "py.list py.range py.zip py.min py.max py.abs py.round py.divmod"
).split()
_PRICES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(_PLAIN, _plain),
    "entries": _each(4), "min": _each(1), "max": _each(1), "sum": _each(2), "flatten": _each(1),
    "sort": lambda x, key=None: CALL + entries(x) * (3 + looked_up(key)),
    "unique": lambda x: 30 + 4 * entries(x) + looked_up(x),
    "merge": lambda *objects: CALL + sum(map(entries, objects)) // 2 + sum(map(looked_up, objects)),
    "join": lambda x, mark="": CALL + 4 * entries(x) + copied(mark),
    "pick": lambda x, names: CALL + 2 * entries(names) + looked_up(names),
    "omit": lambda x, names: CALL + 2 * entries(x) + 2 * entries(names) + looked_up(names),
    "contains": _contains, "find_index": _contains,
    "split": lambda x, mark=None: CALL + search(x, mark) + characters(x) // 32,
    "replace": lambda x, old, new: CALL + 2 * search(x, old) + copied(new),
    "get": _get, "parse_json": _parse_json, "json": _call(40), "str": _call(10), "hash": _call(30),
    "uuid": _call(20), "random": _call(20),
    "check_inputs": _fixed(40),
    "date_add": _call(60), "date_diff": _call(20), "format_date": _format_date,
    **{f"py.{name}": _fixed(price) for name, price in {
        "truth": 8, "add": 8, "sub": 8, "mul": 8, "div": 8, "floordiv": 8, "mod": 8, "pow": 10,
        "iadd": 8, "iadd_unshared": 8, "imul": 8, "imul_unshared": 8, "ior": 8, "ior_unshared": 8,
        "append": 8, "eq": 8, "ne": 8, "lt": 8, "le": 8,
        "gt": 8, "ge": 8, "contains": 8,
        "item": 8, "slice": 8, "attr": 8, "set": 12, "without": 12, "len": 8, "iter": 8,
        "unpack": 12, "method": 16, "changed": 20, "isinstance": 10, "matches": 40,
        "error": 16, "format": 16,
        "percent": 24, "str": 10, "repr": 10, "dumps": 40, "dict": 10, "math": 12, "time": 20,
        "randint": 20, "uniform": 20, "choice": 20, "sample": 20, "shuffled": 20, "sorted": 12,
    }.items()},
    "py.sum": _each(2), "py.any": _each(1), "py.all": _each(1), "py.reversed": _each(1),
    "py.enumerate": _each(2), "py.loads": _parse_json,
}  # fmt: skip


def price_of(builtin: str) -> Callable[..., int]:
    """Returns the function that computes a call's price from its arguments, before the call."""
    return _PRICES[builtin]


def nodes_of(node: Any) -> int:
    """Returns how many expressions are evaluated with this expression or instruction.

    The expressions that a comprehension evaluates for each element are paid for there. A long
    constant text counts as several, because it may be compared.
    """
    count, below = 0, [node]
    while below:
        item = below.pop()
        if isinstance(item, tuple | list):
            below += item
        elif isinstance(item, ir.Const):
            count += 1 + characters(item.value) // 1024
        elif isinstance(item, ir.Comprehension):
            count += 1
            below.append(item.source)
        elif isinstance(item, Record):
            count += 1
            below += item.astuple()
    return count


def statement_work(instruction: ir.Instruction) -> int:
    """Returns what an instruction costs besides the one that it counts as."""
    nodes = nodes_of(instruction)
    return nodes // 2 if nodes > FREE_NODES else 0


def element_work(node: ir.Comprehension) -> int:
    """Returns what each element of a comprehension costs."""
    return 1 + (nodes_of(node.element) + nodes_of(node.condition)) // 2
