"""No shape of program takes more than its share: what once grew with the square of the text, or
with worse."""

from __future__ import annotations

from random import Random

import pytest

from rhythm.ir.drawing import as_text
from rhythm.ir.graph import graph
from rhythm.ir.listing import listing
from rhythm.ir.program import Program
from rhythm.lang.flow import compile as compiling
from rhythm.lang.flow.compile import compile_flow
from rhythm.suggest import nearest
from tests.lang.test_fuzz import check, soon
from tests.support.calls import calls
from tests.support.length import sampled, sweep

PART = sampled(16, 1)  # of each
NAMES = ["".join(Random(i).choices("abcdefgh", k=76)) for i in range(580)]
SLOW = {
    "finallys in a loop": "let x = 1\nwhile (x) { try {\n"
    + "try{log(x)}finally{log(1/x)}\n" * (2400 // PART)
    + "} catch (e) { log(e) } }",
    "finallys of awaits in a loop": "while (1) { try {\n"
    + "try{await sleep(1)}finally{await sleep(2)}\n" * (2800 // PART)
    + "} catch (e) {} }",
    "many alike names": "".join(f"let {name} = 1\n" for name in NAMES[:480])
    + "".join(f"log({name})\n" for name in NAMES[480:]),
    "branches": "let x = 1\n"
    + "await all([branch{await all([branch{return x}])}])\n" * (2200 // PART),
    "deep tries": "let x = 1\n"
    + "try{" * 60
    + "log(x)\n" * (12_000 // PART)
    + "}catch(e){log(1)}" * 60,
    "deep in finallys": "let x = 1\n"
    + "try{}finally{" * 60
    + "log(x)\n" * (12_000 // PART)
    + "}" * 60,
}


@pytest.mark.parametrize("name", SLOW)
@sweep
def test_shape_is_compiled_soon(name: str) -> None:
    assert soon(SLOW[name], check)


@pytest.mark.parametrize("name", ["branches", "finallys in a loop", "deep tries"])
@sweep
def test_program_is_drawn_and_listed_with_less_than_it_took_to_compile(name: str) -> None:
    compiled = list[Program]()
    most = calls(lambda: compiled.extend(compile_flow(SLOW[name]).programs))
    assert calls(lambda: listing(compiled[0])) < most
    assert calls(lambda: as_text(graph(compiled[0]))) < 2 * most


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
