"""No call holds a worker or eats its memory: large results, deep and shared values, slow searches."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from rhythm.limits import INT_MAX, INT_MIN
from rhythm.vm.builtins import FUNCTIONS
from rhythm.vm.interpreter import Continue, advance
from rhythm.vm.machine import Machine
from rhythm.vm.prices import made, price_of
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import Fault
from tests.vm.python.against import INPUTS, machine, ours
from tests.vm.test_prices import program

MEGABYTE = 2**20
LONG = "a" * MEGABYTE
TWIN = "".join(["a"] * MEGABYTE)  # equal, and another object
GREAT = 10**9
ROW = list(range(100_000))


def shared(levels: int, leaf: Any = 0) -> Any:
    """A value of few objects that is a tree of 2 ** levels."""
    value = [leaf]
    for _ in range(levels):
        value = [value, value]
    return value


def deep(levels: int, leaf: Any = 0) -> Any:
    value = [leaf]
    for _ in range(levels):
        value = [value]
    return value


LIMIT, OVERFLOW, VALUE = "LimitExceeded", "OverflowError", "ValueError"
BOMBS: list[tuple[str, str, tuple[Any, ...]]] = [
    (LIMIT, "mul", ("ab", GREAT)), (LIMIT, "mul", (GREAT, [0])), (LIMIT, "mul", ([0], INT_MAX)),
    (LIMIT, "add", (LONG, "b")), (LIMIT, "add", (ROW, [1])), (LIMIT, "iadd", (ROW, "x")),
    (LIMIT, "iadd", ([], LONG)), (LIMIT, "append", (ROW, 1)),
    (OVERFLOW, "pow", (2, GREAT)), (OVERFLOW, "pow", (10, 400)), (OVERFLOW, "pow", (INT_MIN, 2)),
    (OVERFLOW, "pow", (10.0, 400)), (OVERFLOW, "lshift", (1, GREAT)), (OVERFLOW, "neg", (INT_MIN,)),
    (OVERFLOW, "abs", (INT_MIN,)), (OVERFLOW, "mul", (1e308, 10)), (OVERFLOW, "sum", ([1e308] * 2,)),
    (OVERFLOW, "int", (1e300,)), (OVERFLOW, "int", ("f" * 4000, 16)), (VALUE, "int", ("9" * 10**6,)),
    (VALUE, "int", ("1" * 10**6, 2)), (VALUE, "float", ("1e999",)), (VALUE, "float", ("nan",)),
    (OVERFLOW, "round", (10**19 - 10**19 + 9 * 10**18, -19)), (OVERFLOW, "round", (1e300,)),
    (OVERFLOW, "math", ("factorial", [GREAT])), (OVERFLOW, "math", ("comb", [10**18, 10**17])),
    (OVERFLOW, "math", ("perm", [10**18, 10**17])), (OVERFLOW, "math", ("perm", [GREAT])),
    (OVERFLOW, "math", ("exp", [1e5])), (OVERFLOW, "math", ("floor", [1e300])),
    (LIMIT, "method", ("x", "ljust", [GREAT])), (LIMIT, "method", ("x", "center", [GREAT, "."])),
    (LIMIT, "method", ("x", "zfill", [GREAT])), (LIMIT, "method", ("\t", "expandtabs", [GREAT])),
    (LIMIT, "method", ("\t" * 9, "expandtabs", [], {"tabsize": GREAT})),
    (LIMIT, "method", (LONG, "replace", ["a", LONG])), (LIMIT, "method", (LONG, "replace", ["", "bb"])),
    (LIMIT, "method", (LONG, "join", [[""] * 99])), (LIMIT, "method", ("", "join", [[LONG] * 9999])),
    (LIMIT, "method", (LONG, "join", [LONG])),
    (LIMIT, "method", ("a " * 400_000, "split", [])), (LIMIT, "method", (LONG, "split", ["a"])),
    (LIMIT, "method", (LONG, "rsplit", ["a"])), (LIMIT, "method", ("\n" * 200_000, "splitlines", [])),
    (LIMIT, "iter", (LONG,)),
    (LIMIT, "method", ("ΐ" * 500_000, "upper", [])),
    (LIMIT, "method", (LONG, "rfind", ["a" * 99_999 + "b" + "a" * 100_000])),
    (LIMIT, "method", (LONG, "rsplit", ["a" * 99_999 + "b" + "a" * 100_000])),
    (LIMIT, "method", (LONG, "rpartition", ["a" * 99_999 + "b" + "a" * 100_000])),
    (LIMIT, "method", (LONG, "strip", ["b" * 100_000 + "a"])),
    (VALUE, "format", (1, ">1000000000")), (VALUE, "format", (1.5, ".1000000f")),
    (VALUE, "format", ("a", "9" * 99_999)), (VALUE, "format", (1, ">١٠٠٠٠٠٠")),
    (VALUE, "percent", ("%1000000d", [1])), (VALUE, "percent", ("%(a(b))1000000d", {"a(b)": 1})),
    (VALUE, "percent", ("%.1000000f", [1.5])), (VALUE, "percent", ("%*d", [GREAT, 1])),
    (LIMIT, "percent", ("%(a)s" * 99, {"a": LONG})), (LIMIT, "percent", ("%s" * 99, [LONG] * 99)),
    (LIMIT, "percent", ("%10000d" * 200, [1] * 200)),
    (LIMIT, "percent", ("%s", [shared(40)])), (LIMIT, "str", (shared(40),)),
    (LIMIT, "repr", (deep(100_000),)), (LIMIT, "format", (shared(40), "", "a")),
    (LIMIT, "dumps", (shared(40),)), (LIMIT, "dumps", (deep(100_000),)),
    (LIMIT, "dumps", (deep(60, [1] * 9_000), False, 100)), (VALUE, "dumps", ([1], False, GREAT)),
    (VALUE, "dumps", ([1], False, "-" * 1000)), (LIMIT, "loads", ("[" * 100 + "]" * 100,)),
    (LIMIT, "loads", ("[" + "1," * 200_000 + "1]",)),
    (LIMIT, "range", (GREAT,)), (OVERFLOW, "range", (INT_MAX, INT_MIN, -1)),
    (OVERFLOW, "enumerate", ([1, 2], INT_MAX)), (LIMIT, "zip", (False, *[ROW] * 50)),
    (LIMIT, "sum", ([ROW[:2000]] * 2000, [])), (LIMIT, "changed", (ROW, "append", [1])),
    (LIMIT, "changed", (ROW, "extend", ["x"])), (LIMIT, "changed", ([], "extend", [LONG])),
    (LIMIT, "sorted", ([LONG, TWIN] * 9_000, False)), (LIMIT, "eq", ([LONG] * 999, [TWIN] * 999)),
    (LIMIT, "dict", ([[LONG, 1], [TWIN, 1]] * 500,)), (LIMIT, "list", (LONG,)),
    (LIMIT, "reversed", (LONG,)), (LIMIT, "unpack", (LONG, 1, 1)),
]  # fmt: skip


# Compared, until they are over the limit of a statement.
SHARED: list[tuple[str, str, tuple[Any, ...]]] = [
    (LIMIT, "eq", (shared(40), shared(40))), (LIMIT, "lt", (shared(40), shared(40))),
    (LIMIT, "contains", ([shared(40)], shared(40))),
    (LIMIT, "sorted", ([shared(40), shared(40)], False)),
    (LIMIT, "min", ([shared(40), shared(40)], [])),
    (LIMIT, "method", ([shared(40)], "index", [shared(40)])),
    (LIMIT, "method", ([shared(40)], "count", [shared(40)])),
    (LIMIT, "changed", ([shared(40)], "remove", [shared(40)])),
    (LIMIT, "changed", ([shared(40), shared(40)], "sort", [])),
]  # fmt: skip


def refusal(name: str, args: tuple[Any, ...]) -> Fault:
    """How the call is refused, when it is paid for or when it is made."""

    def call() -> None:
        m = machine()
        m.charge(price_of(f"py.{name}")(*args))
        FUNCTIONS[f"py.{name}"](m, *args)

    with pytest.raises(Fault) as refused:
        call()
    return refused.value


@pytest.mark.parametrize(
    ("code", "name", "args"), BOMBS, ids=[f"{n}-{i}" for i, (_, n, _) in enumerate(BOMBS)]
)
def test_a_bomb_is_refused_before_it_is_built(code: str, name: str, args: tuple[Any, ...]) -> None:
    tracemalloc.start()
    refused = refusal(name, args)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.code == code, refused
    assert len(refused.message) < 600
    assert most < 32 * MEGABYTE


@pytest.mark.parametrize(("code", "name", "args"), SHARED)
def test_what_shares_its_parts_is_counted_as_the_tree_that_it_is(
    code: str, name: str, args: tuple[Any, ...]
) -> None:
    assert refusal(name, args).code == code


def called(name: str, *args: Any) -> Any:
    """What the builtin gives for values that are too deep for Python to copy or compare."""
    return FUNCTIONS[f"py.{name}"](machine(), *args)


def test_deep_values_are_compared_without_recursion() -> None:
    assert called("eq", deep(3_000), deep(3_000)) is True
    assert called("lt", deep(900), deep(900)) is False
    assert called("lt", deep(900), deep(900, 1)) is True
    assert called("sorted", [deep(100, 1), deep(100)], False) == [deep(100), deep(100, 1)]


def test_a_path_may_be_long() -> None:
    assert called("eq", called("set", deep(2_000), [0] * 2_001, 5), deep(2_000, 5)) is True


def test_what_is_not_on_the_path_is_shared() -> None:
    x = {"a": [1], "b": [2]}
    changed = FUNCTIONS["py.set"](machine(), x, ["a", 0], 5)
    assert changed["b"] is x["b"]
    assert x == {"a": [1], "b": [2]}


def test_results_that_nearly_are_too_large_are_given() -> None:
    assert ours("pow", 2, 62) == ("gives", 2**62)
    assert ours("pow", -2, 63) == ("gives", INT_MIN)
    assert ours("lshift", 1, 62) == ("gives", 2**62)
    assert ours("math", "factorial", [20]) == ("gives", 2432902008176640000)
    assert ours("math", "comb", [62, 31]) == ("gives", 465428353255261088)
    assert ours("round", INT_MAX, -(2**62)) == ("gives", 0)
    assert ours("range", INT_MAX - 1, INT_MAX) == ("gives", [INT_MAX - 1])
    assert ours("mul", "a", MEGABYTE) == ("gives", LONG)


def test_a_key_that_is_not_text_makes_no_entry() -> None:
    m = machine()
    for name, args in (
        ("set", ({}, [1], 2)), ("dict", ([[1, 2]],)), ("changed", ({}, "setdefault", [None])),
        ("changed", ({}, "update", [[[1, 2]]])),
    ):  # fmt: skip
        with pytest.raises(
            Fault, match=r"^the keys of a dict must be text here, not \w+; write str"
        ):
            FUNCTIONS[f"py.{name}"](m, *args)


def test_a_key_that_is_not_text_is_not_found() -> None:
    assert ours("item", {"1": 2}, 1) == ("raises", "KeyError")
    assert ours("contains", {"1": 2}, 1) == ("gives", False)
    assert ours("method", {"1": 2}, "get", [None, 5]) == ("gives", 5)


def test_a_message_is_what_python_says() -> None:
    said: list[tuple[str, tuple[Any, ...], str]] = [
        ("item", ({"a": 1}, "b"), "'b'"),
        ("item", ([1], 5), "list index out of range"),
        ("set", ([1], [5], 0), "list assignment index out of range"),
        ("set", ("ab", [0], "x"), "'str' object does not support item assignment"),
        ("iter", (5,), "'int' object is not iterable"),
        ("unpack", ([1], 2, None), "not enough values to unpack (expected 2, got 1)"),
        ("unpack", ([1, 2, 3], 2, None), "too many values to unpack (expected 2)"),
        ("unpack", ([1], 1, 1), "not enough values to unpack (expected at least 2, got 1)"),
        ("unpack", (5, 1, None), "cannot unpack non-iterable int object"),
        ("method", ([], "foo", []), "'list' object has no attribute 'foo'"),
        ("method", ("", "format", []), "'str' object has no attribute 'format' in a workflow"),
        ("attr", ({"total": 1}, "totl"), "there is no field 'totl'; did you mean `total`?"),
        ("attr", (5, "total"), "'int' object has no attribute 'total'"),
        ("add", (1, "a"), "unsupported operand type(s) for +: 'int' and 'str'"),
        ("pow", (-8, 0.5), "the result is a complex number, and there are none here"),
        ("mul", (2**62, 4), "the result does not fit 64 bits: 18446744073709551616"),
    ]
    for name, args, message in said:
        with pytest.raises(Fault) as raised:
            FUNCTIONS[f"py.{name}"](machine(), *args)
        assert raised.value.message == message


# chance


def test_chance_is_the_same_when_a_turn_is_computed_twice() -> None:
    calls = [("randint", (1, 6)), ("uniform", (0, 1)), ("choice", (ROW,)), ("sample", (ROW, 3)),
        ("shuffled", (ROW[:9],)), ("time", ())]  # fmt: skip

    def drawn(m: Machine) -> list[Any]:
        return [FUNCTIONS[f"py.{name}"](m, *args) for name, args in calls * 2]

    first, again = machine(), machine()
    found = drawn(first)
    assert found == drawn(again)
    assert first.drew
    assert found[: len(calls) - 1] != found[len(calls) : -1]
    assert found[-1] == 1794733200.0


def test_chance_is_fair_and_complete() -> None:
    m = machine()
    draw = FUNCTIONS["py.randint"]
    thrown = [draw(m, 1, 6) for _ in range(6000)]
    assert set(thrown) == {1, 2, 3, 4, 5, 6}
    assert all(800 < thrown.count(face) < 1200 for face in range(1, 7))
    assert draw(m, 5, 5) == 5
    assert type(draw(m, False, True)) is int
    assert INT_MIN <= draw(m, INT_MIN, INT_MAX) <= INT_MAX
    assert sorted(FUNCTIONS["py.shuffled"](m, ROW[:50])) == ROW[:50]
    assert len(set(FUNCTIONS["py.sample"](m, ROW, 40))) == 40
    assert all(2 <= FUNCTIONS["py.uniform"](m, 2, 3) <= 3 for _ in range(50))
    assert FUNCTIONS["py.choice"](m, "aaa") == "a"


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("randint", (6, 1), "ValueError"), ("randint", (1.5, 2), "TypeError"),
        ("uniform", ("a", 1), "TypeError"), ("choice", ([],), "IndexError"),
        ("choice", ({},), "TypeError"), ("sample", ([1], 2), "ValueError"),
        ("sample", ([1], -1), "ValueError"), ("sample", ([1], "a"), "TypeError"),
        ("shuffled", ("abc",), "TypeError"), ("uniform", (-1e308, 1e308), "OverflowError"),
    ],
)  # fmt: skip
def test_chance_refuses_what_python_refuses(name: str, args: tuple[Any, ...], code: str) -> None:
    assert ours(name, *args) == ("raises", code)


# prices, loops

ROUNDS: dict[str, tuple[str, Any, int]] = {
    "equal texts": ("py.eq(inputs[0], inputs[1])", [LONG, TWIN], 30),
    "a long key": ("py.item(inputs[0], inputs[1])", [{LONG: 1}, TWIN], 30),
    "a list that is copied": ("py.append(inputs, 1)", ROW[1:], 20),
    "a list that is copied for a change": ('py.changed(inputs, "pop", [])', ROW, 20),
    "an element that is set": ("py.set(inputs, [0], 1)", ROW, 20),
    "a text that is not found": ("py.contains(inputs, \"b\")", LONG, 5),
    "an element that is not found": ("py.contains(inputs, -1)", ROW, 9),
    "digits that are none": ("py.int(inputs)", " " * MEGABYTE, 2),
    "a sum of what is no number": ("py.sum(inputs)", [*ROW[1:], "x"], 1),
    "sorting what cannot be compared": ("py.sorted(inputs, false)", [*ROW[1:], "x"], 1),
    "dicts that differ": ("py.eq(inputs[0], inputs[1])",
        [{str(n): n for n in ROW}, {str(n): n for n in [*ROW[1:], -1]}], 1),
    "many formats": ('py.format(1.5, ".9999f")', None, 50),
    "a method": ('py.method("abc", "upper", [])', None, 6_000),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDS)
def test_a_turn_holds_no_more_than_it_has_fuel_for(name: str) -> None:
    what, inputs, most = ROUNDS[name]
    text = (
        "let i = 0\nlet x = null\nwhile (true) {\n  i += 1\n"
        f"  try {{ x = {what} }} catch (e) {{ x = null }}\n}}"
    )
    turn = advance(program(text), Snapshot(), INPUTS.replace(inputs=inputs))
    assert isinstance(turn, Continue), turn
    assert 1 <= turn.snapshot.locals["i"] <= most


def test_a_loop_counts_without_a_list() -> None:
    text = "for (i in py.range(0, 9000000000000000000, 3)) { if (i > 20) { return i } }"
    assert advance(program(text), Snapshot(), INPUTS).result == 21  # type: ignore[union-attr]
    for bad, code in (("py.range(0, 1, 0)", VALUE), ('py.range("a")', "TypeError")):
        turn = advance(program(f"for (i in {bad}) {{ return i }}"), Snapshot(), INPUTS)
        assert turn.error["code"] == code  # type: ignore[union-attr]
    far = f"for (i in py.range({INT_MIN}, {INT_MAX})) {{ return i }}"
    assert advance(program(far), Snapshot(), INPUTS).error["code"] == OVERFLOW  # type: ignore[union-attr]


def test_what_is_made_is_paid_for() -> None:
    assert made(FUNCTIONS["py.range"](machine(), 1000)) == 1000


TREE = shared(60)
UNWRITTEN: dict[str, tuple[Any, ...]] = {
    "method": (1, TREE, []), "changed": (1, TREE, []), "attr": ({}, TREE), "math": (TREE, []),
    "isinstance": (1, [TREE]), "format": (1, "d", TREE),
}  # fmt: skip


@pytest.mark.parametrize("name", UNWRITTEN)
def test_a_name_that_is_no_text_is_not_written_out(name: str) -> None:
    assert "<list>" in refusal(name, UNWRITTEN[name]).message


@pytest.mark.parametrize(
    "error", [{"message": TREE}, {"data": {"task": TREE}}, {"data": {"type": TREE}}]
)
def test_an_error_whose_parts_are_no_text_is_measured(error: dict[str, Any]) -> None:
    assert refusal("error", (error, "text")).code == LIMIT


def test_a_key_that_an_empty_dict_does_not_look_at_is_measured() -> None:
    assert refusal("changed", ({}, "pop", [TREE])).code == LIMIT
    assert called("changed", {}, "pop", [TREE, 1]) == [{}, 1]


PAID: dict[str, tuple[str, tuple[Any, ...], int]] = {
    "a format of many numbers": ("format", (1, "0 " * 9_999), 9_999),
    "a template of many brackets": ("percent", ("%(" * 9_999, []), 9_999),
    "texts in place of pairs": ("dict", (["a" * 9_999],), 9_999),
}


@pytest.mark.parametrize("what", PAID)
def test_what_is_read_before_it_is_refused_is_paid_for(what: str) -> None:
    name, args, least = PAID[what]
    m = machine()
    before = m.fuel
    with pytest.raises(Fault):
        FUNCTIONS[f"py.{name}"](m, *args)
    assert before - m.fuel >= least


def test_arguments_of_math_are_a_list() -> None:
    assert refusal("math", ("floor", LONG)).code == "TypeError"
