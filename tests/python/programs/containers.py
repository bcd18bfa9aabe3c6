"""Lists and dicts: elements, slices, methods, copies."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo

LISTS: list[dict[str, Any]] = [
    {"xs": xs} for xs in ([1, 2, 3, 4, 5], [], [1], ["a", "b"], [[1], [2, 3]])
]


@given(*LISTS)
@rhythm.workflow
async def list_slices(xs: list[Any]) -> Any:
    return [
        xs[1:],
        xs[:2],
        xs[-2:],
        xs[::2],
        xs[::-1],
        xs[1:-1],
        xs[10:],
        xs[:-10],
        xs[3:1],
        xs[-1:0:-1],
    ]


@given({"xs": [1], "s": 0})
@rhythm.workflow
async def slice_step_zero(xs: list[Any], s: int) -> Any:
    return xs[::s]


@given(
    {"xs": [1, 2], "i": 0},
    {"xs": [1, 2], "i": -1},
    {"xs": [1, 2], "i": 2},
    {"xs": [1, 2], "i": "a"},
    {"xs": {"a": 1}, "i": "a"},
    {"xs": {"a": 1}, "i": "b"},
    {"xs": None, "i": 0},
)
@rhythm.workflow
async def element(xs: Any, i: Any) -> Any:
    return xs[i]


@given(*LISTS)
@rhythm.workflow
async def list_changes(xs: list[Any]) -> Any:
    out = list(xs)
    out.append("end")
    out.insert(0, "start")
    out.extend([7, 8])
    out += [9]
    popped = out.pop()
    first = out.pop(0)
    out.remove("end")
    out.reverse()
    out[0] = "changed"
    del out[-1]
    return [out, popped, first, len(out)]


@given({"xs": []})
@rhythm.workflow
async def pop_of_nothing(xs: list[Any]) -> Any:
    return xs.pop()


@given({"xs": [1], "x": 2})
@rhythm.workflow
async def remove_what_is_not_there(xs: list[Any], x: Any) -> Any:
    xs.remove(x)
    return xs


@given({"xs": [3, 1, 2]}, {"xs": ["b", "a"]}, {"xs": [1, "a"]}, {"xs": []}, {"xs": [[2], [1, 5]]})
@rhythm.workflow
async def sorts(xs: list[Any]) -> Any:
    ys = xs.copy()
    ys.sort()
    down = sorted(xs, reverse=True)
    return [ys, down, sorted(xs), xs]


@given({"xs": ["bb", "a", "CCC"]})
@rhythm.workflow
async def sorts_by_key(xs: list[str]) -> Any:
    ys = list(xs)
    ys.sort(key=len, reverse=True)
    return [
        sorted(xs, key=len),
        sorted(xs, key=lambda s: s.lower()),
        ys,
        max(xs, key=len),
        min(xs, key=lambda s: -len(s)),
        sorted(xs, key=str.lower),
    ]


@given({"rows": [{"n": 2, "s": "b"}, {"n": 1, "s": "c"}, {"n": 2, "s": "a"}]})
@rhythm.workflow
async def sorts_rows(rows: list[dict[str, Any]]) -> Any:
    by = sorted(rows, key=lambda r: (r["n"], r["s"]))
    stable = sorted(rows, key=lambda r: r["n"])
    return [by, stable, max(rows, key=lambda r: r["s"])["n"]]


@given({"xs": [1, 2, 1]}, {"xs": []})
@rhythm.workflow
async def list_questions(xs: list[Any]) -> Any:
    return [xs.count(1), len(xs), xs.index(1) if xs else None, xs + [0], xs * 2, [0] * 3, [] + xs]


@given({"xs": [1]})
@rhythm.workflow
async def index_missing(xs: list[Any]) -> Any:
    return xs.index(9)


@given({"xs": [1, 2], "ys": [3]})
@rhythm.workflow
async def spreads(xs: list[Any], ys: list[Any]) -> Any:
    return [[*xs, *ys], [0, *xs], [*"ab"], {**{"a": 1}, "b": 2}, [*{"k": 1}], [*range(3)]]


DICTS: list[dict[str, Any]] = [
    {"d": d} for d in ({"a": 1, "b": 2}, {}, {"x": None}, {"n": {"m": [1]}})
]


@given(*DICTS)
@rhythm.workflow
async def dict_questions(d: dict[str, Any]) -> Any:
    return [
        d.get("a"), d.get("z"), d.get("z", 5), "a" in d, len(d), list(d), list(d.keys()),
        list(d.values()), sorted(d), bool(d), list(d.items()) == [], d == {"a": 1, "b": 2},
    ]  # fmt: skip


@given(*DICTS)
@rhythm.workflow
async def dict_changes(d: dict[str, Any]) -> Any:
    e = dict(d)
    e["new"] = 1
    e["a"] = "changed"
    e.update({"u": 1}, v=2)
    e.update([("w", 3)])
    popped = e.pop("a")
    missing = e.pop("missing", "default")
    set_ = e.setdefault("s", [])
    again = e.setdefault("u", 9)
    del e["new"]
    last = e.popitem()[0]
    return [e, popped, missing, set_, again, last]


@given({"d": {"a": 1}})
@rhythm.workflow
async def dict_pop_missing(d: dict[str, Any]) -> Any:
    return d.pop("b")


@given({"d": {"a": 1}, "k": "b"}, {"d": {"a": 1}, "k": "a"})
@rhythm.workflow
async def delete_key(d: dict[str, Any], k: str) -> Any:
    del d[k]
    return d


@given({"a": {"x": 1, "y": 2}, "b": {"y": 3}})
@rhythm.workflow
async def merges(a: dict[str, Any], b: dict[str, Any]) -> Any:
    c = a | b
    c |= {"z": 1}
    return [c, {**a, **b}, {**a, "y": 0}, dict(a, y=9), dict(x=1), dict([("k", 1)]), a]


@given({"k": "key", "v": 1}, {"k": "", "v": None})
@rhythm.workflow
async def computed_keys(k: str, v: Any) -> Any:
    return {k: v, f"{k}2": [v], "fixed": k + "3"}


@given({"words": ["a", "b", "a"]}, {"words": []})
@rhythm.workflow
async def counts(words: list[str]) -> Any:
    out: dict[str, int] = {}
    for word in words:
        out[word] = out.get(word, 0) + 1
    return out


@given({"words": ["apple", "avocado", "bean"]})
@rhythm.workflow
async def groups(words: list[str]) -> Any:
    out: dict[str, list[str]] = {}
    for word in words:
        if word[0] not in out:
            out[word[0]] = []
        out[word[0]].append(word)
    return out


@given({"n": 3})
@rhythm.workflow
async def nested_changes(n: int) -> Any:
    state: dict[str, Any] = {"rows": [[0] * n for _ in range(n)], "log": {"items": []}}
    for i in range(n):
        state["rows"][i][i] = i + 1
        state["log"]["items"].append(i)
    state["rows"][0][1] += 5
    state["log"]["count"] = len(state["log"]["items"])
    state["log"]["items"].pop(0)
    return state


@given({"n": 3})
@rhythm.workflow
async def copies_do_not_share(n: int) -> Any:
    a = [1, 2, 3]
    b = a.copy()
    c = a[:]
    d = list(a)
    b.append(n)
    c[0] = n
    d += [n]
    return [a, b, c, d]


@given({"d": {"a": 1}})
@rhythm.workflow
async def tasks_get_copies(d: dict[str, Any]) -> Any:
    same = await echo(d)
    d["b"] = 2
    return [same, d]


@given({"xs": [1, 2, 3]})
@rhythm.workflow
async def changes_with_awaits(xs: list[int]) -> Any:
    out: list[Any] = []
    totals = {"sum": 0}
    for x in xs:
        out.append(await echo(x))
        totals["sum"] += await echo(x)
        out[-1] = await echo(out[-1] + 1)
    return [out, totals]


@given({"xs": [1, 2]}, {"xs": []})
@rhythm.workflow
async def list_of_everything(xs: list[Any]) -> Any:
    return [
        list(range(3)),
        list(enumerate(xs)) if not xs else 0,
        list("ab"),
        list({"a": 1}),
        list(xs),
    ]


@given({"x": 5}, {"x": None})
@rhythm.workflow
async def not_iterable(x: Any) -> Any:
    return list(x)


@given({"x": 5}, {"x": None}, {"x": True})
@rhythm.workflow
async def no_length(x: Any) -> Any:
    return len(x)


@given({"x": 5}, {"x": "abc"})
@rhythm.workflow
async def sets_element_of_wrong_type(x: Any) -> Any:
    x[0] = 1
    return x


@given({"xs": [1]})
@rhythm.workflow
async def sets_element_out_of_range(xs: list[int]) -> Any:
    xs[3] = 1
    return xs


@given({"m": [[1, 2], [3, 4], [5, 6]]}, {"m": []})
@rhythm.workflow
async def transposes(m: list[list[int]]) -> Any:
    return [[row[i] for row in m] for i in range(len(m[0]) if m else 0)]


@given({"xs": [1, 2, 3, 4, 5, 6, 7], "n": 3})
@rhythm.workflow
async def chunks(xs: list[int], n: int) -> Any:
    return [xs[i : i + n] for i in range(0, len(xs), n)]


@given({"xs": [3, 1, 2]})
@rhythm.workflow
async def clears(xs: list[int]) -> Any:
    xs.clear()
    d = {"a": 1}
    d.clear()
    return [xs, d]
