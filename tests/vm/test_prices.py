"""What a turn may do before it yields: counted in rounds of a loop, not in seconds.

Each program goes round for ever, and does one thing in each round that takes long: far fewer rounds
fit into a turn than instructions. The bounds are what the work itself takes, at three tenths of a
microsecond for an instruction's worth: some tens of milliseconds for a turn.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from rhythm.ir.operations import BUILTINS
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm import builtins
from rhythm.vm.builtins import FUNCTIONS
from rhythm.vm.commands import StartTask
from rhythm.vm.interpreter import Completed, Continue, Turn, advance
from rhythm.vm.machine import Inputs, Machine, Outcome, Signal
from rhythm.vm.operations import start_group
from rhythm.vm.prices import CALL, price_of, search
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import Fault

INPUTS = Inputs("2026-11-15T09:00:00Z", "seed", None, {"id": "run"})
MEGABYTE = 2**20
LONG = "A" * (MEGABYTE - 2)
# equal, and another object: Python compares them character by character
TWIN = "".join(["A"] * len(LONG))
ROW = list(range(100_000))
OBJECT = {str(n): n for n in range(100_000)}
ROWS_SCHEMA = (
    '{ type: "object", additionalProperties: false, properties: { '
    'rows: { type: "array", items: { type: "object", properties: { a: { type: "integer" } }, '
    'required: ["a"], additionalProperties: false } }, '
    'price: { type: ["string", "number"], format: "decimal" }, '
    'set: { type: "array", uniqueItems: true } } }'
)

# What is done in each round, with these inputs; and how many rounds there may be in a turn.
ROUNDS: dict[str, tuple[str, Any, int]] = {
    "JSON that breaks off": ("parse_json(inputs)", "[" + "1," * (MEGABYTE // 2 - 1), 1),
    "JSON of empty objects that breaks off": ("parse_json(inputs)",
        "[" + "{}," * (MEGABYTE // 3 - 1), 1),
    "JSON of long text that breaks off": ("parse_json(inputs)", f'"{LONG}', 10),
    "a number that is none": ("int(inputs)", " " * MEGABYTE, 1000),
    "a join of what cannot be joined": ("join(inputs)", [*ROW[1:], []], 1),
    "a sum of what is no number": ("sum(inputs)", [*ROW[1:], "x"], 1),
    "the least of what cannot be compared": ("min(inputs)", [*ROW[1:], "x"], 1),
    "sorting what cannot be compared": ("sort(inputs)", [*ROW[1:], "x"], 1),
    "sorting by what is not there": ('sort(inputs, "k")', [*([{"k": 1}] * 99_999), {}], 1),
    "a date in a form that is unknown": ('format_date("2026-01-01", inputs)',
        "%Y" * (MEGABYTE // 2 - 1) + "%q", 1),
    "picking what is no name": ("pick({ a: 1 }, inputs)", [*(["b"] * 99_999), 1], 1),
    "omitting what is no name": ("omit({ a: 1 }, inputs)", [*(["b"] * 99_999), 1], 1),
    "merging with what is no object": ("merge(inputs, inputs, 1)", OBJECT, 2),
    "a path that leads nowhere": ("get({ a: 1 }, inputs)", "a." * (MEGABYTE // 2), 2),
    "the entries of an object": ("entries(inputs)", OBJECT, 1),
    "each value once": ("unique(inputs)", ROW, 1),
    "a part that is nearly everywhere": ("contains(inputs[1], inputs[0])",
        ["a" * 98 + "c", ("a" * 98 + "b") * 290], 100),
    "a part that is nearly everywhere, with in": ("inputs[0] in inputs[1]",
        ["a" * 98 + "c", ("a" * 98 + "b") * 290], 20),
    "a long part of a short text": ("find_index(inputs[1], inputs[0])",
        ["a" * 1248 + "ba", "a" * 2499], 60),
    "a part that is nearly all of a long text": ("inputs[0] in inputs[1]",
        ["a" * 653_400 + "ba", "a" * 655_360], 1),
    "a part that is nearly at the end": ("split(inputs[1], inputs[0])",
        ["a" * 99_998 + "ba", "z" * 100_000 + "a" * 102_000], 1),
    "a long key of an object": ("inputs[1] in inputs[0]", [{LONG: 1}, TWIN], 30),
    "the value of a long key": ("inputs[0][inputs[1]]", [{LONG: 1}, TWIN], 30),
    "a long key of a path": ("get(inputs[0], [inputs[1]])", [{LONG: 1}, TWIN], 30),
    "setting a long key": ("inputs[0]\nx[inputs[1]] = 1", [{LONG: 1}, TWIN], 15),
    "picking long names": ("pick(inputs[0], inputs[1])", [{LONG: 1}, [TWIN] * 50], 1),
    "omitting long names": ("omit(inputs[0], inputs[1])", [{}, [LONG, TWIN] * 25], 1),
    "merging objects with a long key": ("merge(inputs[0], inputs[1])", [{LONG: 1}, {TWIN: 1}], 15),
    "spreading objects with a long key": ("{ ...inputs[0], ...inputs[1] }", [{LONG: 1}, {TWIN: 1}],
        15),
    "long texts once each": ("unique(inputs)", [LONG, TWIN] * 25, 1),
    "sorting by a long key": ("len(sort(inputs[0], inputs[1]))", [[{LONG: 1}] * 50, TWIN], 1),
    "a path through one character": ('get("a", inputs)', "0." * 50_000 + "0", 1),
    "a list beside something started": ('[task("a"), ...inputs]', ROW[1:], 20),
    "an object beside something started": ('{ "0": task("a"), ...inputs }', OBJECT, 3),
    "a property that is nearly there": (f"inputs.{'a' * 37}xx",
        {f"{'a' * 37}{n}": 1 for n in range(10, 40)}, 40),
    "a text in many texts that are nearly the same": ("inputs[0] in inputs[1]",
        [LONG + "x", [LONG + "y"] * 50], 1),
    "the greatest of texts that are nearly the same": ("max(inputs)", [LONG + "x", LONG + "y"] * 50,
        1),
    "sorting texts that are nearly the same": ("sort(inputs)", [LONG + "x", LONG + "y"] * 20, 1),
    "objects that differ in a key": ("inputs[0] == inputs[1]",
        [OBJECT, {**dict(list(OBJECT.items())[1:]), "x": 1}], 1),
    "objects in one": ("{ ...inputs, a: 1 }", OBJECT, 2),
    "an element of an object": ("inputs.other", {"other": OBJECT}, 100_000),
    "an error that is large": ('throw({ code: "A", message: "a", data: inputs })', ROW, 6),
    "dates": ('date_add("2026-01-01", "1h")', None, 2_000),
    "a template of an object": ("`${inputs}`", OBJECT | {"x": 1}, 1),
    "a list in the text of the program": (f"[{'1, ' * 5000}]", None, 50),
    "inputs with many rows": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')",
        {"rows": [{"a": n} for n in range(90_000)]}, 1),
    "inputs whose last row is wrong": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')",
        {"rows": [{"a": n} for n in range(90_000)] + [{"a": "x"}]}, 1),
    "inputs with an unknown key": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')",
        {"rows": [], "x": 1}, 1_000),
    "inputs with many keys": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')", OBJECT, 1),
    "inputs with a long key": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')", {LONG: 1}, 25),
    "inputs with a long decimal": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')",
        {"price": "9" * (MEGABYTE - 1)}, 2),
    "inputs with a set": (f"check_inputs(inputs, {ROWS_SCHEMA}, 'w')", {"set": ROW}, 1),
    "ids of nothing": ("all(inputs)", ["run.1"] * 9_999 + ["x"], 2),
}  # fmt: skip


def program(text: str) -> Program:
    (made,) = compile_flow(text).programs_or_raise()
    return made


def body(what: str) -> str:
    for operation in ("all", "approval"):
        if what.startswith(operation):
            return f"await {what}"
    return what.replace("throw(", "throw (") if what.startswith("throw") else f"x = {what}"


def rounds(what: str, inputs: Any) -> tuple[int, Turn]:
    """How often the loop went round in one turn."""
    text = (
        f"let i = 0\nlet x = null\nwhile (true) {{\n  i += 1\n  try {{ {body(what)} }} catch "
        f"(e) {{ x = null }}\n}}"
    )
    turn = advance(program(text), Snapshot(), INPUTS.replace(inputs=inputs))
    snapshot = turn.snapshot if isinstance(turn, Continue) else Snapshot(locals={"i": 0})
    return int(snapshot.locals["i"]), turn


@pytest.mark.parametrize("name", ROUNDS)
def test_a_turn_holds_no_more_work_than_it_has_fuel_for_whether_it_succeeds_or_fails(
    name: str,
) -> None:
    what, inputs, most = ROUNDS[name]
    went, turn = rounds(what, inputs)
    limited = getattr(turn, "error", {}).get("code") == "LimitExceeded"
    assert limited or (isinstance(turn, Continue) and 1 <= went <= most), (went, turn)


def test_a_call_that_fails_is_paid_for() -> None:
    assert rounds("sum(inputs)", [*range(2000), "x"])[0] <= 25


def test_a_long_statement_is_paid_for() -> None:
    assert rounds(f"[{'1, ' * 500}]", None)[0] <= 400


def test_objects_are_paid_for_before_they_are_compared() -> None:
    assert (
        rounds(
            "inputs[0] == inputs[1]",
            [{str(n): n for n in range(1000)}, {str(n): n for n in range(1, 1001)}],
        )[0]
        <= 50
    )


@pytest.mark.parametrize("name", BUILTINS)
def test_every_builtin_is_paid_for_before_it_is_called(name: str) -> None:
    """Whatever it is given: the price takes what the call itself would refuse."""
    count = BUILTINS[name].least
    for given in (1, None, LONG, ROW, OBJECT):
        for place in range(max(count, 1)):
            assert price_of(name)(*[given if i == place else "a" for i in range(count)]) >= CALL


def test_a_failed_call_costs_what_a_call_that_succeeds_does() -> None:
    machine = Machine(Snapshot(), INPUTS, DEFAULT_LIMITS)
    fuel = machine.fuel
    good, bad = f"[{'1, ' * 9_999}1]", f"[{'1, ' * 9_999}x]"
    assert price_of("parse_json")(good) == price_of("parse_json")(bad)
    assert FUNCTIONS["parse_json"](machine, good) == [1] * 10_000
    assert machine.fuel == fuel


@pytest.mark.parametrize("long", [300, 2_499, 2_500, 29_999, 30_000, 300_000, MEGABYTE])
def test_a_search_costs_what_it_may_compare(long: int) -> None:
    """Python compares the whole part at every place of a short text, and at the last 2,000 of a
    long one if the part is a third of it. A thousand characters are compared in three tenths of a
    microsecond."""
    for short in {2, 20, 99, 100, long // 2, long * 3 // 4, long - 2_400, long - 1_900, long - 100}:
        small, tail = long < 2_500 or (long < 30_000 and short < 100), 3 * short >= long
        places = long - short if small else min(long - short, 2_000) if tail else 0
        assert short < 2 or search("a" * long, "a" * short) >= places * short // 1024, short


def test_a_number_that_breaks_off_is_read_once() -> None:
    """With two ways to divide its digits, four hundred of them took four milliseconds."""
    assert "[0-9]+\\.?[0-9]*" not in builtins._DECIMAL.pattern
    machine = Machine(Snapshot(), INPUTS, DEFAULT_LIMITS)
    assert [
        FUNCTIONS["float"](machine, text) for text in ("1", "1.", " 1.5 ", ".5", "-1.5e-3", "+2E2")
    ] == [1, 1, 1.5, 0.5, -0.0015, 200]


def test_an_ordinary_search_costs_little() -> None:
    assert search("word " * 1_000, ",") < 50
    assert search("word " * 1_000, "needle") < 200
    assert search("word " * 100_000, "a longer needle") < 20_000


def test_reading_json_takes_memory_for_its_values_and_not_for_the_ways_to_them() -> None:
    """With the way to each element written out, a key of 300 KB above a hundred thousand of them
    took 20 GB."""
    text = f'{{"\\u0041{"k" * 10_000}": [{"[], " * 9_999}"\\u0000"]}}'
    tracemalloc.start()
    with pytest.raises(Fault, match=r"NUL at Ak{39}\[9999\]$"):
        FUNCTIONS["parse_json"](Machine(Snapshot(), INPUTS, DEFAULT_LIMITS), text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * MEGABYTE


def test_every_element_of_a_comprehension_costs_what_it_evaluates() -> None:
    small, large = (f"return len([[{'1, ' * n}] for x in range(1000)])" for n in (2, 5000))
    assert isinstance(advance(program(small), Snapshot(), INPUTS), Completed)
    assert (
        getattr(advance(program(large), Snapshot(), INPUTS), "error", {})["code"] == "LimitExceeded"
    )


def test_a_loop_over_completed_costs_little_for_each_of_many() -> None:
    """Ten thousand that have ended took half a minute in one turn."""
    text = (
        'workflow w { let s = 0; for (r in completed([task("v", { n }) for n in '
        "range(10000)])) { s += r.result }; return s }"
    )
    made = program(text)
    turn = advance(made, Snapshot(), INPUTS)
    inputs = INPUTS.replace(
        outcomes={n: Outcome("completed", 1, 1e6 - n) for n in range(2, 10_002)}
    )
    turns = 0
    while not isinstance(turn, Completed):
        turn, turns = advance(made, turn.snapshot, inputs), turns + 1  # type: ignore[attr-defined]  # it has not ended
    assert (turn.result, turns <= 30) == (10_000, True)


def test_waiting_again_and_again_for_what_has_ended_is_not_free() -> None:
    text = """workflow w {
      let i = 0
      let g = all([task("v", { n }) for n in range(100)])
      while (true) { let x = await g; i += 1 }
    }"""
    made = program(text)
    turn = advance(made, Snapshot(), INPUTS)
    turn = advance(
        made,
        turn.snapshot,
        INPUTS.replace(outcomes={n: Outcome("completed", 1, 1.0) for n in range(2, 102)}),
    )  # type: ignore[attr-defined]
    assert isinstance(turn, Continue)
    assert 1 <= turn.snapshot.locals["i"] <= 600


def test_where_of_an_event_is_weighed() -> None:
    text = 'await event("a", { where: inputs, timeout: 1 })'
    turn = advance(
        program(text), Snapshot(), INPUTS.replace(inputs={str(n): LONG for n in range(10)})
    )
    assert getattr(turn, "error", {})["code"] == "LimitExceeded"


WAITS = '[signal("x") for i in range(1000)]'


class CountedId(str):
    """An id that counts how often it is looked up."""

    looks = 0

    def __hash__(self) -> int:
        CountedId.looks += 1
        return super().__hash__()


@pytest.mark.parametrize("loop", ["await all({})", "for (r in completed({})) {{ break }}"])
@pytest.mark.parametrize(("name", "most"), [("x", 20_000), ("y", 0)])
def test_waits_for_signals_look_at_each_signal_a_few_times(loop: str, name: str, most: int) -> None:
    """With every wait looking through the whole mailbox, ten thousand of both took seconds for each
    look."""
    made = program(f"workflow w {{ {loop.format(WAITS)} }}")
    turn = advance(made, Snapshot(), INPUTS)
    CountedId.looks = 0
    mailbox = tuple(Signal(CountedId(n), name, n, 1.0) for n in range(999))
    advance(made, turn.snapshot, INPUTS.replace(signals=mailbox))  # type: ignore[attr-defined]  # it waits
    assert CountedId.looks <= most


def test_a_signal_that_a_race_gave_back_goes_to_another_wait() -> None:
    """Those in `all` do not get all that they need, so the wait after them has the first."""
    text = (
        'workflow w { return await race([all([signal("x"), signal("x"), signal("x")]), '
        'signal("x")]) }'
    )
    made = program(text)
    turn = advance(made, Snapshot(), INPUTS)
    mailbox = tuple(Signal(str(n), "x", n, float(n)) for n in range(2))
    turn = advance(made, turn.snapshot, INPUTS.replace(signals=mailbox))  # type: ignore[attr-defined]  # it waits
    assert getattr(turn, "result", {}).get("result") == 0


class CountedList(list[Any]):
    looks = 0

    def __getitem__(self, i: Any) -> Any:
        self.looks += 1
        return super().__getitem__(i)


def test_a_group_that_is_held_back_looks_only_at_its_own_commands() -> None:
    machine = Machine(Snapshot(next_child=1_000), INPUTS, DEFAULT_LIMITS)
    machine.commands = commands = CountedList(StartTask(n, "a", None, {}) for n in range(1_000))
    items = [{"op": "task", "n": n, "name": "a"} for n in (997, 998, 999)]
    start_group(machine, "all", 996, items, None, {"concurrency": 1})
    assert ([command.n for command in commands if command.held], commands.looks <= 10) == (
        [998, 999],
        True,
    )


def test_groups_of_nothing_can_be_held_back() -> None:
    turn = advance(
        program("workflow w { await all([all([]), all([])], { concurrency: 1 }) }"),
        Snapshot(),
        INPUTS,
    )
    assert isinstance(turn, Completed)
