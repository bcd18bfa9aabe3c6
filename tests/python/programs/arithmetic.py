"""Numbers: operators, conversions, rounding, and what fails."""

from __future__ import annotations

import math
from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo

PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (7.5, 2), (-7.5, 2), (0, 3), (True, 2), (2**60, 3)]
CALLS: list[dict[str, Any]] = [{"a": a, "b": b} for a, b in PAIRS]


@given(*CALLS, {"a": "x", "b": 1}, {"a": None, "b": 2})
@rhythm.workflow
async def sums(a: Any, b: Any) -> Any:
    return [a + b, a - b, a * b]


@given(*CALLS, {"a": 1, "b": 0}, {"a": 1.5, "b": 0})
@rhythm.workflow
async def divisions(a: Any, b: Any) -> Any:
    return [a / b, a // b, a % b, divmod(a, b)[0], divmod(a, b)[1]]


@given({"a": 1, "b": 0})
@rhythm.workflow
async def divide_by_zero(a: int, b: int) -> float:
    return a / b


@given({"a": 1, "b": 0}, {"a": 1.0, "b": 0})
@rhythm.workflow
async def modulo_zero(a: Any, b: Any) -> Any:
    return a % b


@given(
    *[{"a": a, "b": b} for a, b in [(2, 10), (2, -1), (0, 0), (-2, 3), (2.0, 3), (4, 0.5)]],
    {"a": 0, "b": -1},
)
@rhythm.workflow
async def powers(a: Any, b: Any) -> Any:
    return [a**b, pow(a, b), -(a**2) if a else 0]


@given({"n": 5}, {"n": -5}, {"n": 0}, {"n": True})
@rhythm.workflow
async def signs(n: int | bool) -> Any:
    return [-n, +n, ~int(n), abs(n), not n, --n]


@given({"a": 12, "b": 10}, {"a": -12, "b": 3}, {"a": True, "b": False}, {"a": 1.5, "b": 1})
@rhythm.workflow
async def bits(a: Any, b: Any) -> Any:
    return [a & b, a | b, a ^ b, a << 2, a >> 1]


@given({"a": 1, "n": -1})
@rhythm.workflow
async def negative_shift(a: int, n: int) -> int:
    return a << n


@given(*[{"x": x} for x in (0.5, 1.5, 2.5, -1.5, 2.675, 3, 1e17, 2.0)])
@rhythm.workflow
async def rounding(x: Any) -> Any:
    return [round(x), round(x, 1), round(x, 2), int(x), x // 1]


@given({"x": 12345}, {"x": -15})
@rhythm.workflow
async def rounding_to_tens(x: int) -> Any:
    return [round(x, -1), round(x, -2), round(x, 0)]


@given(*[{"x": x} for x in ("12", " 12 ", "-7", "1_000", "x", "", "1.5", 3.9, -3.9, True)])
@rhythm.workflow
async def to_int(x: Any) -> Any:
    return int(x)


@given(*[{"x": x} for x in ("1.5", "1e3", " 2 ", "abc", 3, True, "")])
@rhythm.workflow
async def to_float(x: Any) -> Any:
    return float(x)


@given({"x": "ff", "base": 16}, {"x": "101", "base": 2}, {"x": "9", "base": 8})
@rhythm.workflow
async def int_with_base(x: str, base: int) -> int:
    return int(x, base) + int(x, base=base)


@given()
@rhythm.workflow
async def empty_conversions() -> Any:
    return [int(), float(), str(), bool(), list(), dict()]


@given({"n": 3}, {"n": 0})
@rhythm.workflow
async def augmented(n: int) -> Any:
    x: Any = 10
    x += n
    x -= 1
    x *= 2
    x //= 3
    x **= 2
    x %= 17
    x <<= 2
    x |= 1
    x &= 31
    x ^= 5
    x >>= 1
    x /= 4
    return x


@given(*[{"x": x} for x in (2.25, 9, 0, 1e10)], {"x": -1})
@rhythm.workflow
async def roots(x: float) -> Any:
    return [math.sqrt(x), math.floor(x), math.ceil(x), math.trunc(x), math.fabs(x), math.pi]


@given({"a": 12, "b": 18}, {"a": 0, "b": 5})
@rhythm.workflow
async def whole_math(a: int, b: int) -> Any:
    return [math.gcd(a, b), math.factorial(5), math.comb(b, 2), math.perm(5, 2), math.hypot(3, 4)]


@given({"x": 1.0}, {"x": 0.1}, {"x": 100})
@rhythm.workflow
async def mathematics(x: float) -> Any:
    return [
        round(math.exp(x % 3), 6), round(math.log(x), 6), math.log2(8), math.log10(1000),
        round(math.sin(x), 9), round(math.cos(x), 9), math.degrees(0), math.isclose(x, x + 1e-12),
        math.log(8, 2), math.e, math.tau > 6,
    ]  # fmt: skip


@given({"x": 0}, {"x": -1})
@rhythm.workflow
async def log_of_nothing(x: float) -> float:
    return math.log(x)


@given({"xs": [3, 1, 2]}, {"xs": [1.5, 2]}, {"xs": []}, {"xs": [True, 1]})
@rhythm.workflow
async def summed(xs: list[Any]) -> Any:
    return [sum(xs), sum(xs, 10), sum(x * x for x in xs), sum([x for x in xs if x > 1])]


@given({"xs": [3, 1, 2]}, {"xs": []}, {"xs": ["b", "a"]}, {"xs": [1, "a"]})
@rhythm.workflow
async def extremes(xs: list[Any]) -> Any:
    if not xs:
        return [min(xs, default=None), max(xs, default=-1)]
    return [min(xs), max(xs), min(xs[0], xs[-1]), max(xs[0], xs[-1], xs[0])]


@given({"xs": []})
@rhythm.workflow
async def min_of_nothing(xs: list[int]) -> int:
    return min(xs)


@given({"x": 0.1, "y": 0.2}, {"x": 1e308, "y": 1.0}, {"x": 5e-324, "y": 2.0})
@rhythm.workflow
async def floats(x: float, y: float) -> Any:
    return [x + y, x * y, x - y, str(x), f"{x + y}", repr(x), x == y]


@given({"n": 10}, {"n": 1}, {"n": 27})
@rhythm.workflow
async def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@given({"n": 10})
@rhythm.workflow
async def fibonacci(n: int) -> list[int]:
    a, b, out = 0, 1, []
    for _ in range(n):
        out.append(a)
        a, b = b, a + b
    return out


@given({"a": 3, "b": 4})
@rhythm.workflow
async def precedence(a: int, b: int) -> Any:
    return [a + b * 2 - a**2 % 5, -a**2, not a == b, a - b - 1, 2**3**2, (a + b) * 2, a if a > b else b + 1]  # fmt: skip


@given({"x": 2**63 - 1}, {"x": -(2**63)})
@rhythm.workflow
async def largest_numbers(x: int) -> Any:
    return [x, x // 2, -9223372036854775808, 9223372036854775807, x == 2**62]


@given({"x": 255}, {"x": 0}, {"x": -3})
@rhythm.workflow
async def number_methods(x: int) -> Any:
    return [x.bit_length(), x.bit_count(), (x + 0.5).is_integer(), float(x).is_integer()]


@given({"x": 3}, {"x": 3.0})
@rhythm.workflow
async def ints_stay_ints(x: Any) -> Any:
    y = await echo(x)
    return [y, y * 1, y / 1, y // 1, x + 0.0, str(y), isinstance(y, int), isinstance(y, float)]
