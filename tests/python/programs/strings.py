"""Texts: methods, formats, slices."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo, upper

TEXTS = ["", "abc", " a b ", "Hello, World", "déjà vu", "a,b,,c", "😀x", "line\nbreak\r\nend", "12"]
EACH = [{"s": s} for s in TEXTS]


@given(*EACH)
@rhythm.workflow
async def cases(s: str) -> Any:
    return [s.upper(), s.lower(), s.title(), s.capitalize(), s.swapcase(), s.casefold(), len(s)]


@given(*EACH)
@rhythm.workflow
async def strips(s: str) -> Any:
    return [
        s.strip(),
        s.lstrip(),
        s.rstrip(),
        s.strip("a "),
        s.removeprefix("a"),
        s.removesuffix("c"),
    ]


@given(*EACH)
@rhythm.workflow
async def splits(s: str) -> Any:
    return [
        s.split(),
        s.split(","),
        s.split(",", 1),
        s.rsplit(",", 1),
        s.splitlines(),
        s.split(maxsplit=1),
    ]


@given(*EACH)
@rhythm.workflow
async def partitions(s: str) -> Any:
    head, sep, tail = s.partition(",")
    return [head, sep, tail, s.rpartition(",")[0]]


@given(*EACH)
@rhythm.workflow
async def searches(s: str) -> Any:
    return [
        s.find("b"), s.rfind("b"), s.count("l"), s.startswith("a"), s.endswith("c"), "lo" in s,
        s.startswith(("a", "H")), s.find("b", 2), s.startswith("b", 1),
    ]  # fmt: skip


@given({"s": "abc", "t": "b"}, {"s": "abc", "t": "z"})
@rhythm.workflow
async def index_of_text(s: str, t: str) -> Any:
    return s.index(t)


@given(*EACH)
@rhythm.workflow
async def questions(s: str) -> Any:
    return [
        s.isdigit(), s.isalpha(), s.isalnum(), s.isspace(), s.isupper(), s.islower(), s.isnumeric(),
        s.isdecimal(), s.isidentifier(), s.istitle(), s.isascii(),
    ]  # fmt: skip


@given(*EACH)
@rhythm.workflow
async def pads(s: str) -> Any:
    return [
        s.center(9),
        s.ljust(9, "."),
        s.rjust(9, "-"),
        s.zfill(6),
        s.replace("a", "bb"),
        s.expandtabs(2),
    ]


@given(*EACH)
@rhythm.workflow
async def text_slices(s: str) -> Any:
    return [s[1:], s[:-1], s[::2], s[::-1], s[1:3], s[-2:], s[5:2], s[:0]]


@given({"s": "abc", "i": 0}, {"s": "abc", "i": -1}, {"s": "abc", "i": 3}, {"s": "", "i": 0})
@rhythm.workflow
async def character(s: str, i: int) -> str:
    return s[i]


@given({"xs": ["a", "b"]}, {"xs": []}, {"xs": ["a", 1]}, {"xs": "xyz"}, {"xs": {"k": 1}})
@rhythm.workflow
async def joins(xs: Any) -> Any:
    return ", ".join(xs)


@given({"xs": [1, 2]}, {"xs": []})
@rhythm.workflow
async def joins_generated(xs: list[int]) -> Any:
    return "-".join(str(x) for x in xs) + "|" + "".join([f"<{x}>" for x in xs])


@given({"s": "ab", "n": 3}, {"s": "ab", "n": 0}, {"s": "ab", "n": -1})
@rhythm.workflow
async def repeats(s: str, n: int) -> Any:
    return [s * n, n * s, s + s, "=" * 3]


@given({"s": "a", "x": 1}, {"s": "a", "x": None}, {"s": "a", "x": [1]})
@rhythm.workflow
async def text_plus_other(s: str, x: Any) -> Any:
    return s + x


VALUES: list[Any] = [
    1,
    1.0,
    0.1,
    -0.5,
    1e16,
    1e-7,
    True,
    None,
    "x",
    "it's",
    'say "x"',
    [1, "a", None],
    {"a": [True]},
    "a\n\\",
    "é",
]


@given(*[{"x": x} for x in VALUES])
@rhythm.workflow
async def as_text(x: Any) -> Any:
    return [str(x), repr(x), f"{x}", f"{x!r}", f"{x!s}", f"{x!a}", "%s" % [x], "%r and %s" % (x, x)]


@given(
    {"x": 3.14159, "n": 42, "s": "hi"},
    {"x": -0.5, "n": -7, "s": ""},
    {"x": 1e10, "n": 0, "s": "longer text"},
)
@rhythm.workflow
async def formats(x: float, n: int, s: str) -> Any:
    return [
        f"{x:.2f}", f"{x:8.1f}|", f"{x:e}", f"{n:05d}", f"{n:+}", f"{n:,}", f"{n:x}", f"{n:b}",
        f"{s:>8}|", f"{s:<8}|", f"{s:^8}|", f"{s:*^9}", f"{n:>6}", f"{x:%}", f"{s!r:>10}", f"{n:_}",
    ]  # fmt: skip


@given({"x": 2.5, "w": 8, "p": 1}, {"x": 1.0, "w": 3, "p": 0})
@rhythm.workflow
async def nested_formats(x: float, w: int, p: int) -> Any:
    return f"[{x:{w}.{p}f}] {{literal}} {x * 2} {'quoted'} {w if w > 5 else p}"


@given({"x": "a"})
@rhythm.workflow
async def wrong_format(x: Any) -> Any:
    return f"{x:d}"


@given({"d": {"a": 1}, "xs": [1, 2]})
@rhythm.workflow
async def expressions_in_fstrings(d: dict[str, Any], xs: list[int]) -> Any:
    return f"{d['a']} {xs[0] + xs[1]} {len(xs)} {[x * 2 for x in xs]} {d} {xs[-1]:>3} {'a' in d}"


@given({"x": 3})
@rhythm.workflow
async def debug_fstring(x: int) -> Any:
    return f"{x=} {x + 1=} {x = }"


@given({"a": 1, "b": "x"}, {"a": 2.5, "b": None})
@rhythm.workflow
async def percent_formats(a: Any, b: Any) -> Any:
    return ["%d" % a, "%s-%s" % (a, b), "%.2f%%" % a, "%5s|" % b, "%05.1f" % a, "%(k)s" % {"k": b}]


@given({"a": "x"})
@rhythm.workflow
async def percent_wrong(a: Any) -> Any:
    return "%d" % a


@given({"name": "ada"})
@rhythm.workflow
async def awaits_in_fstrings(name: str) -> str:
    return f"<{await upper(name)}:{name}:{await upper(name + '!'):>6}>"


@given({"s": "abc"})
@rhythm.workflow
async def walks_text(s: str) -> Any:
    out = []
    for i, c in enumerate(s):
        out.append(f"{i}{c}")
    return [out, list(s), sorted(s, reverse=True), [*s], list(reversed(s)), max(s), min(s)]


@given({"s": "a-b-c"})
@rhythm.workflow
async def methods_of_methods(s: str) -> Any:
    return s.replace("-", " ").title().split()[-1].lower().center(5, "*")


@given({"s": "1,2,3"}, {"s": "1,x"})
@rhythm.workflow
async def parses_numbers(s: str) -> Any:
    return [int(part) for part in s.split(",")]


@given({"s": "ab"}, {"s": 5})
@rhythm.workflow
async def method_of_wrong_type(s: Any) -> Any:
    return s.upper()


@given({"s": "x"})
@rhythm.workflow
async def implicit_concatenation(s: str) -> Any:
    text = f"one two three {s}"
    text += "!"
    return (
        await echo(text)
        + """
tail"""
    )
