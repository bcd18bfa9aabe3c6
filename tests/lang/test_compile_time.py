"""No shape of program takes more than its share: what once grew with the square of the text, or
with worse."""

from __future__ import annotations

from random import Random

import pytest

from rhythm.ir.drawing import as_text
from rhythm.ir.graph import graph
from rhythm.ir.listing import listing
from rhythm.lang.flow import compile as compiling
from rhythm.lang.flow.compile import compile_flow
from rhythm.suggest import nearest
from tests.lang.test_fuzz import check, patience, seconds

__all__ = ["patience"]  # the fixture

NAMES = ["".join(Random(i).choices("abcdefgh", k=76)) for i in range(580)]
SLOW = {
    "finallys in a loop": "let x = 1\nwhile (x) { try {\n"
    + "try{log(x)}finally{log(1/x)}\n" * 2400
    + "} catch (e) { log(e) } }",
    "finallys of awaits in a loop": "while (1) { try {\n"
    + "try{await sleep(1)}finally{await sleep(2)}\n" * 2800
    + "} catch (e) {} }",
    "many alike names": "".join(f"let {name} = 1\n" for name in NAMES[:480])
    + "".join(f"log({name})\n" for name in NAMES[480:]),
    "branches": "let x = 1\n" + "await all([branch{await all([branch{return x}])}])\n" * 2200,
    "deep tries": "let x = 1\n" + "try{" * 60 + "log(x)\n" * 12_000 + "}catch(e){log(1)}" * 60,
    "deep in finallys": "let x = 1\n" + "try{}finally{" * 60 + "log(x)\n" * 12_000 + "}" * 60,
}


@pytest.mark.parametrize("name", SLOW)
def test_shape_is_compiled_soon(name: str, patience: float) -> None:
    assert seconds(lambda: check(SLOW[name])) < patience


@pytest.mark.parametrize("name", ["branches", "finallys in a loop", "deep tries"])
def test_program_is_drawn_and_listed_in_less_time_than_it_took_to_compile(name: str) -> None:
    compiled = seconds(lambda: compile_flow(SLOW[name]))
    [program] = compile_flow(SLOW[name]).programs
    assert seconds(lambda: listing(program)) < compiled
    assert seconds(lambda: as_text(graph(program))) < 2 * compiled


@pytest.mark.parametrize(
    ("word", "meant"),
    [("nmae", "name"), ("totl", "total"), ("acb", "abc"), ("order_id", "orderId"), ("zzz", None)],
)
def test_nearest_name_is_found_among_many(word: str, meant: str | None) -> None:
    assert (
        nearest(word, [*NAMES, "name", "total", "abc", "orderId", *(f"n{i}" for i in range(300))])
        == meant
    )


def test_program_that_lowering_finds_too_deep_is_a_diagnostic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_deep(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(compiling, "lower", too_deep)
    compilation = compile_flow("return 1")
    assert ([d.code for d in compilation.errors], compilation.programs) == (["F006"], ())
