"""Every operator, function and method gives what CPython gives, or fails with the same exception.

The values are JSON, generated. What differs by design is in `against.refused`: numbers that do not
fit, and keys that are not text.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rhythm.ir.operations import PYTHON
from tests.support.length import sampled
from tests.vm.python.against import (
    DICTS,
    FLOATS,
    INTEGERS,
    LISTS,
    NUMBERS,
    TEXTS,
    VALUES,
    check,
    check_ended,
    ours,
    theirs,
)

EXAMPLES = sampled(25, 1500)
PAIRS = st.one_of(
    st.tuples(NUMBERS, NUMBERS), st.tuples(VALUES, VALUES), st.tuples(TEXTS, TEXTS),
    st.tuples(LISTS, LISTS), st.tuples(DICTS, DICTS), st.tuples(LISTS, st.integers(-2, 5)),
    VALUES.map(lambda x: (x, x)),
)  # fmt: skip
several = settings(max_examples=EXAMPLES, deadline=None)

UNARY: dict[str, Callable[[Any], Any]] = {
    "truth": bool, "neg": operator.neg, "pos": operator.pos,
    "invert": lambda x: ~int(x) if type(x) is bool else ~x,
    "str": str, "repr": repr, "int": int, "list": list, "dict": dict, "len": len, "iter": list,
    "reversed": lambda x: list(reversed(x)), "any": any, "all": all, "abs": abs, "sum": sum,
    "round": round, "enumerate": lambda x: list(enumerate(x)), "dumps": json.dumps,
    "range": lambda n: list(range(n)) if not isinstance(n, int) or n < 1000 else [],
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift, "iadd": operator.iadd,
    "imul": operator.imul, "ior": operator.ior,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "contains": operator.contains, "divmod": divmod,
    "item": operator.getitem, "sum": sum, "round": round,
    "enumerate": lambda x, n: list(enumerate(x, n)),
}  # fmt: skip
BOMBS = {"mul", "imul", "lshift", "pow", "round"}  # CPython would take for ever, or all memory


def is_a_bomb(name: str, a: Any, b: Any) -> bool:
    return name in BOMBS and any(isinstance(x, int) and abs(x) > 200 for x in (a, b))


@pytest.mark.parametrize("name", UNARY)
@given(x=VALUES)
@several
def test_of_one_value(name: str, x: Any) -> None:
    assume(not (name == "range" and isinstance(x, int) and x >= 1000))
    check(name, UNARY[name], x)


@pytest.mark.parametrize("name", BINARY)
@given(pair=PAIRS)
@several
def test_of_two_values(name: str, pair: tuple[Any, Any]) -> None:
    a, b = pair
    assume(not is_a_bomb(name, a, b) and not (name == "mod" and type(a) is str))
    check(name, BINARY[name], a, b)


@given(a=st.integers(-5, 5) | INTEGERS, b=st.integers(-3, 70))
@several
def test_powers_and_shifts_of_integers(a: int, b: int) -> None:
    check("pow", operator.pow, a, b)
    check("lshift", operator.lshift, a, b)
    check("mul", operator.mul, a, b)
    check("round", round, a, -b)


@given(x=st.one_of(TEXTS, st.lists(VALUES, max_size=3)), n=st.integers(-2, 6))
@several
def test_repetition(x: Any, n: int) -> None:
    check("mul", operator.mul, x, n)
    check("mul", operator.mul, n, x)


@given(x=FLOATS, digits=st.one_of(st.integers(-320, 320), st.sampled_from([2**62, -(2**62)])))
@several
def test_rounding_of_floats(x: float, digits: int) -> None:
    check("round", round, x, digits)


@given(text=st.one_of(TEXTS, st.from_regex(r"\s?[+-]?(0[xbo])?[0-9a-f_]{1,6}\s?", fullmatch=True)),
    base=st.one_of(st.integers(-1, 40), VALUES))  # fmt: skip
@several
def test_integers_of_texts(text: str, base: Any) -> None:
    check("int", int, text)
    check("int", int, text, base)


@given(x=st.one_of(VALUES, FLOATS.map(str), st.sampled_from(["1e5", " 1_0.5 ", "1e", "."])))
@several
def test_floats(x: Any) -> None:
    check("float", float, x)


@given(x=st.one_of(LISTS, TEXTS, DICTS), bounds=st.lists(
    st.one_of(st.none(), st.integers(-6, 6), INTEGERS), min_size=3, max_size=3))  # fmt: skip
@several
def test_slices(x: Any, bounds: list[Any]) -> None:
    assume(type(x) is not dict)
    check("slice", lambda x, *bounds: x[slice(*bounds)], x, *bounds)


@given(bounds=st.lists(st.one_of(st.integers(-9, 9), VALUES), min_size=1, max_size=3))
@several
def test_ranges(bounds: list[Any]) -> None:
    assume(all(not isinstance(x, int) or abs(x) < 10**4 for x in bounds))
    check("range", lambda *bounds: list(range(*bounds)), *bounds)


@given(xs=st.lists(st.one_of(LISTS, TEXTS, DICTS, VALUES), max_size=3), strict=st.booleans())
@several
def test_zip(xs: list[Any], strict: bool) -> None:
    check("zip", lambda strict, *xs: list(zip(*xs, strict=strict)), strict, *xs)


ORDERED = st.one_of(
    st.lists(NUMBERS, max_size=6), st.lists(TEXTS, max_size=6),
    st.lists(st.lists(INTEGERS, max_size=3), max_size=5),
    st.lists(st.lists(st.lists(INTEGERS, max_size=2), max_size=2), max_size=5),
    LISTS, DICTS, TEXTS, VALUES,
)  # fmt: skip


@given(x=ORDERED, reverse=st.one_of(st.booleans(), VALUES))
@several
def test_sorting(x: Any, reverse: Any) -> None:
    check("sorted", lambda x, reverse: sorted(x, reverse=reverse), x, reverse)


@given(keys=ORDERED.filter(lambda x: type(x) is list), reverse=st.booleans())
@several
def test_sorting_and_extremes_by_keys(keys: list[Any], reverse: bool) -> None:
    x = list(range(len(keys)))
    check("sorted", lambda x, r, k: sorted(x, key=k.__getitem__, reverse=r), x, reverse, keys)
    check("min", lambda x, _, k: min(x, key=k.__getitem__), x, [], keys)
    check("max", lambda x, _, k: max(x, key=k.__getitem__), x, [], keys)


@given(x=ORDERED, default=st.lists(VALUES, max_size=1))
@several
def test_extremes(x: Any, default: list[Any]) -> None:
    for name, function in (("min", min), ("max", max)):
        check(name, lambda x, d, f=function: f(x, default=d[0]) if d else f(x), x, default)


@given(x=st.one_of(LISTS, TEXTS, DICTS, VALUES))
@several
def test_unpacking(x: Any) -> None:
    def two(x: Any) -> Any:
        a, b = x
        return [a, b]

    def starred(x: Any) -> Any:
        a, *b, c = x
        return [a, b, c]

    check_ended(ours("unpack", x, 2, None), theirs(two, x))
    check_ended(ours("unpack", x, 1, 1), theirs(starred, x))


# elements


@given(x=VALUES, key=st.one_of(st.integers(-5, 5), VALUES), value=VALUES)
@several
def test_setting_and_deleting_an_element(x: Any, key: Any, value: Any) -> None:
    def assigned(x: Any, key: Any, value: Any) -> Any:
        x[key] = value
        return x

    def deleted(x: Any, key: Any) -> Any:
        del x[key]
        return x

    check_ended(ours("set", x, [key], value), theirs(assigned, x, key, value))
    check_ended(ours("without", x, [key]), theirs(deleted, x, key))


@given(x=VALUES, path=st.lists(st.one_of(st.integers(-3, 3), TEXTS), min_size=2, max_size=3),
    value=VALUES)  # fmt: skip
@several
def test_setting_and_deleting_further_down(x: Any, path: list[Any], value: Any) -> None:
    def down(x: Any) -> Any:
        for key in path[:-1]:
            x = x[key]
        return x

    def assigned(x: Any) -> Any:
        down(x)[path[-1]] = value
        return x

    def deleted(x: Any) -> Any:
        del down(x)[path[-1]]
        return x

    check_ended(ours("set", x, path, value), theirs(assigned, x))
    check_ended(ours("without", x, path), theirs(deleted, x))


def test_a_path_leads_as_far_as_it_is_long() -> None:
    x = {"a": [{"b": 1}, 2]}
    assert ours("set", x, ["a", 0, "b"], 5) == ("gives", {"a": [{"b": 5}, 2]})
    assert ours("set", x, ["a", -1], 5) == ("gives", {"a": [{"b": 1}, 5]})
    assert ours("set", x, [], 5) == ("gives", 5)
    assert ours("without", x, ["a", 0, "b"]) == ("gives", {"a": [{}, 2]})
    assert ours("append", [1], 2) == ("gives", [1, 2])
    assert ours("append", "a", 2) == ("raises", "AttributeError")


# text

SPECS = st.one_of(
    st.from_regex(r"(.?[<>=^])?[+\- ]?z?#?0?[0-9]{0,2}[,_]?(\.[0-9]{1,2})?[bcdeEfFgGosxX%]?",
        fullmatch=True),
    st.text(alphabet="<>=^+- #0123.,_dfsxq", max_size=5),
)  # fmt: skip


@given(x=VALUES, spec=SPECS, conversion=st.sampled_from(["", "r", "s", "a"]))
@several
def test_formats(x: Any, spec: str, conversion: str) -> None:
    def formatted(x: Any, spec: str, conversion: str) -> str:
        write = {"": lambda x: x, "r": repr, "s": str, "a": ascii}[conversion]
        return format(write(x), spec)

    there = theirs(formatted, x, spec, conversion)
    assume(not (there[0] == "gives" and spec.endswith("c")))  # may not be storable
    check_ended(ours("format", x, spec, conversion), there, x, spec)


TEMPLATES = st.lists(
    st.one_of(
        st.sampled_from(["a", " ", "%%", "%", "%s", "%r", "%d", "%5.2f", "(", "%(a)s", "%(b)5d"]),
        st.from_regex(r"%[#0\- +]{0,2}[0-9]{0,2}(\.[0-9]{0,2})?[hlL]?[sradiouxXeEfFgGq%]",
            fullmatch=True),
    ), max_size=3).map("".join)  # fmt: skip


@given(template=TEMPLATES, values=st.one_of(st.lists(VALUES, max_size=3), st.fixed_dictionaries(
    {"a": VALUES, "b": NUMBERS})))  # fmt: skip
@several
def test_percent(template: str, values: Any) -> None:
    there = theirs(lambda t, v: t % (tuple(v) if isinstance(v, list) else v), template, values)
    check_ended(ours("percent", template, values), there, template, values)


def test_a_width_that_is_a_star_is_refused() -> None:
    assert ours("percent", "%*d", [5, 1]) == ("raises", "ValueError")
    assert ours("percent", "%c", [0xD800]) == ("raises", "ValueError")
    assert ours("format", 0, "c") == ("raises", "ValueError")
    assert ours("format", 1, "n") == ("raises", "ValueError")
    assert ours("mod", "%s", 1) == ("raises", "TypeError")


# methods

CALLS: dict[str, dict[str, st.SearchStrategy[list[Any]]]] = {
    "str": {
        **dict.fromkeys(
            "upper lower title capitalize swapcase casefold isdigit isalpha isalnum isspace isupper "
            "islower isnumeric isdecimal isidentifier istitle isascii".split(), st.just([])),
        **dict.fromkeys(
            "strip lstrip rstrip".split(), st.lists(st.one_of(TEXTS, st.none()), max_size=1)),
        **dict.fromkeys(
            "split rsplit".split(), st.one_of(st.just([]), st.lists(TEXTS, max_size=1),
                st.tuples(st.one_of(TEXTS, st.none()), st.integers(-2, 4)).map(list))),
        "splitlines": st.lists(st.booleans(), max_size=1),
        "join": st.lists(st.one_of(st.lists(TEXTS, max_size=4), VALUES), min_size=1, max_size=1),
        "replace": st.one_of(st.tuples(TEXTS, TEXTS).map(list),
            st.tuples(TEXTS, TEXTS, st.integers(-2, 4)).map(list)),
        **dict.fromkeys("removeprefix removesuffix partition rpartition".split(),
            st.lists(TEXTS, min_size=1, max_size=1)),
        **dict.fromkeys("find rfind index rindex count".split(),
            st.one_of(st.lists(TEXTS, min_size=1, max_size=1),
                st.tuples(TEXTS, st.integers(-4, 4), st.integers(-4, 9)).map(list))),
        **dict.fromkeys("center ljust rjust".split(),
            st.one_of(st.lists(st.integers(-2, 12), max_size=1),
                st.tuples(st.integers(0, 9), TEXTS).map(list))),
        "zfill": st.lists(st.integers(-2, 12), max_size=1),
        "expandtabs": st.lists(st.integers(-2, 12), max_size=1),
    },
    "list": {
        "index": st.one_of(st.lists(VALUES, max_size=1),
            st.tuples(INTEGERS, st.integers(-4, 4), st.integers(-4, 9)).map(list)),
        "count": st.lists(VALUES, max_size=2),
        "copy": st.just([]),
    },
    "dict": {
        "get": st.lists(VALUES, max_size=3), **dict.fromkeys("keys values items copy".split(),
            st.just([])),
    },
    "int": dict.fromkeys("bit_length bit_count".split(), st.just([])),
    "float": {"is_integer": st.just([])},
}  # fmt: skip
OF = {"str": TEXTS, "list": LISTS, "dict": DICTS, "int": INTEGERS | st.booleans(), "float": FLOATS}
METHODS = [(kind, name) for kind, names in CALLS.items() for name in names]
ARGUMENTS = st.lists(VALUES, max_size=3)
LARGE = {"center", "ljust", "rjust", "zfill", "expandtabs"}


@pytest.mark.parametrize(("kind", "name"), METHODS)
@given(data=st.data())
@several
def test_methods(kind: str, name: str, data: st.DataObject) -> None:
    x = data.draw(OF[kind])
    args = data.draw(st.one_of(CALLS[kind][name], CALLS[kind][name], ARGUMENTS))
    assume(not (name in LARGE and any(isinstance(arg, int) and arg > 999 for arg in args)))
    check_ended(
        ours("method", x, name, args),
        theirs(lambda x, *args: getattr(x, name)(*args), x, *args), x, name, args,
    )  # fmt: skip


@given(x=TEXTS, parts=st.lists(st.one_of(TEXTS, TEXTS, VALUES), max_size=3))
@several
def test_beginnings_and_ends_of_texts(x: str, parts: list[Any]) -> None:
    for name in ("startswith", "endswith"):
        for args in ([parts], parts, [*parts[:1], -1], [*parts[:1], 0, 2]):
            natural = [tuple(a) if type(a) is list else a for a in args]
            if args and type(args[0]) is list:
                check_ended(ours("method", x, name, args), theirs(getattr(x, name), *natural))
            else:
                check_ended(ours("method", x, name, args), theirs(getattr(x, name), *args))


def test_arguments_of_methods_may_have_names() -> None:
    assert ours("method", "a b c", "split", [], {"maxsplit": 1}) == ("gives", ["a", "b c"])
    assert ours("method", "a\nb", "splitlines", [], {"keepends": True}) == ("gives", ["a\n", "b"])
    assert ours("method", "\t", "expandtabs", [], {"tabsize": 2}) == ("gives", "  ")
    assert ours("method", "a", "upper", [], {"x": 2}) == ("raises", "TypeError")
    assert ours("method", {}, "get", [], {"key": 2}) == ("raises", "TypeError")
    assert ours("changed", {}, "update", [], {"a": 2}) == ("gives", [{"a": 2}, None])


@given(x=VALUES, name=st.sampled_from(["append", "foo", "__class__", "format", "upper", "get"]))
@several
def test_a_method_that_is_not_there(x: Any, name: str) -> None:
    assume(not hasattr(x, name) or name in ("append", "format", "__class__"))
    assert ours("method", x, name, []) == ("raises", "AttributeError")
    assert type(x) is list or ours("changed", x, name, []) == ("raises", "AttributeError")


CHANGES: dict[str, dict[str, st.SearchStrategy[list[Any]]]] = {
    "list": {
        "append": st.lists(VALUES, min_size=1, max_size=1),
        "extend": st.lists(st.one_of(LISTS, VALUES), min_size=1, max_size=1),
        "insert": st.tuples(INTEGERS, VALUES).map(list),
        "pop": st.lists(st.integers(-4, 4), max_size=1),
        "remove": st.lists(VALUES, min_size=1, max_size=1),
        **dict.fromkeys("clear sort reverse".split(), st.just([])),
    },
    "dict": {
        "update": st.lists(st.one_of(DICTS, st.lists(st.tuples(TEXTS, VALUES).map(list), max_size=2),
            VALUES), max_size=1),
        "pop": st.lists(st.one_of(TEXTS, VALUES), min_size=1, max_size=2),
        "setdefault": st.lists(st.one_of(TEXTS, VALUES), min_size=1, max_size=2),
        **dict.fromkeys("popitem clear".split(), st.just([])),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in CHANGES.items() for name in names]
)
@given(data=st.data())
@several
def test_methods_that_change(kind: str, name: str, data: st.DataObject) -> None:
    x = data.draw(OF[kind] if name != "sort" else ORDERED.filter(lambda x: type(x) is list))
    args = data.draw(st.one_of(CHANGES[kind][name], CHANGES[kind][name], ARGUMENTS))

    def change(x: Any, *args: Any) -> Any:
        result = getattr(x, name)(*args)
        return [x, result]

    assume(not (name == "setdefault" and args and type(args[0]) is not str))
    check_ended(ours("changed", x, name, args), theirs(change, x, *args), x, name, args)


def test_only_reverse_is_given_to_sort() -> None:
    assert ours("changed", [1, 3, 2], "sort", [], {"reverse": True}) == (
        "gives",
        [[3, 2, 1], None],
    )
    assert ours("changed", [1], "sort", [], {"key": "a"}) == ("raises", "TypeError")
    assert ours("changed", [1], "sort", [], {"key": None}) == ("gives", [[1], None])


# JSON, math, types


@given(x=VALUES, sort_keys=st.booleans(), indent=st.sampled_from([None, 0, 1, 2, -1, "\t", ""]))
@several
def test_json_text(x: Any, sort_keys: bool, indent: Any) -> None:
    check("dumps", lambda x, s, i: json.dumps(x, sort_keys=s, indent=i), x, sort_keys, indent)
    check("loads", json.loads, json.dumps(x, indent=indent))


@given(text=st.one_of(TEXTS, st.text(alphabet='[]{}",:01. ', max_size=6), VALUES))
@several
def test_what_is_not_json_text(text: Any) -> None:
    check("loads", json.loads, text)


FIRST = (
    "floor ceil trunc sqrt log log2 log10 exp fabs degrees radians sin cos tan factorial fsum gcd "
    "hypot comb perm isclose pow"
).split()


@pytest.mark.parametrize("name", FIRST)
@given(args=st.one_of(
    st.lists(NUMBERS, max_size=3), st.lists(st.integers(-2, 30), min_size=1, max_size=2),
    st.lists(st.lists(NUMBERS, max_size=3), min_size=1, max_size=1), ARGUMENTS))  # fmt: skip
@several
def test_math(name: str, args: list[Any]) -> None:
    assume(
        name not in ("factorial", "comb", "perm")
        or all(not isinstance(arg, int) or abs(arg) < 200 for arg in args)
    )
    check("math", lambda _, args: getattr(math, name)(*args), name, args)


def test_math_has_what_is_listed_and_takes_names() -> None:
    assert ours("math", "isclose", [1, 2], {"rel_tol": 1.0}) == ("gives", True)
    assert ours("math", "fork", []) == ("raises", "AttributeError")


KINDS = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict,
    "NoneType": type(None)}  # fmt: skip


@given(x=VALUES, names=st.lists(st.sampled_from(sorted(KINDS)), max_size=3))
@several
def test_types(x: Any, names: list[str]) -> None:
    check("isinstance", lambda x, names: isinstance(x, tuple(KINDS[n] for n in names)), x, names)
    assert ours("isinstance", x, ["set"]) == ("raises", "TypeError")


@pytest.mark.parametrize(
    ("error", "names", "matches"),
    [
        ({"code": "KeyError"}, ["KeyError"], True),
        ({"code": "KeyError"}, ["ValueError", "LookupError"], True),
        ({"code": "KeyError"}, ["ValueError"], False),
        ({"code": "TimeoutError"}, ["OSError"], True),
        ({"code": "JSONDecodeError"}, ["ValueError"], True),
        ({"code": "CardDeclined"}, ["CardDeclined"], True),
        ({"code": "CardDeclined"}, ["ValueError"], False),
        ({"code": "CardDeclined", "bases": ["PaymentError"]}, ["PaymentError"], True),
        ({"code": "CardDeclined"}, ["Exception"], True),
        ({"code": "open"}, ["object"], False),
        ({"code": 1}, ["KeyError"], False),
        ({}, [], False),
    ],
)
def test_errors_are_of_classes(error: Any, names: list[str], matches: bool) -> None:
    assert ours("matches", error, names) == ("gives", matches)


def test_every_builtin_is_compared_or_has_a_test_of_its_own() -> None:
    compared = {
        *UNARY, *BINARY, "slice", "zip", "sorted", "min", "max", "unpack", "set", "without",
        "append", "format", "percent", "method", "changed", "loads", "math", "isinstance",
        "matches", "float",
    }  # fmt: skip
    elsewhere = {
        "error",
        "iadd_unshared",
        "imul_unshared",
        "ior_unshared",
        "attr",
        "time",
        "randint",
        "uniform",
        "choice",
        "sample",
        "shuffled",
    }
    assert {f"py.{name}" for name in compared | elsewhere} == PYTHON.keys()
