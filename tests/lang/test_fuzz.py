"""Whatever the text is: diagnostics, never an exception, never a hang; and the same for the
formatter and the renderer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rhythm.errors import FlowError
from rhythm.ir.operations import BUILTINS, EMITS, GROUPS, OPERATIONS
from rhythm.lang.flow.check import ParsedFlow
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.format import format_source
from rhythm.lang.flow.problems import CODES
from rhythm.lang.flow.tokens import PUNCTUATION, RESERVED
from rhythm.lang.source import as_json, render_all
from rhythm.limits import DEFAULT_LIMITS
from tests.support.calls import calls
from tests.support.cases import all_cases
from tests.support.length import sampled, sweep

SIZE = DEFAULT_LIMITS.source_bytes
CASES = [case.text for case in all_cases()]
WORDS = [
    *sorted(RESERVED),
    *PUNCTUATION,
    *sorted({*OPERATIONS, *GROUPS, *EMITS}),
    *list(BUILTINS)[:8],
    "branch",
    "workflow",
    "inputs",
    "ctx",
]
PIECES = [
    *WORDS,
    "x",
    "y",
    "1",
    "2.5",
    '"t"',
    "`a${",
    "}`",
    "`",
    "'",
    "\n",
    "\n",
    " ",
    "//",
    "/*",
    "*/",
    "\\",
    "é",
    "\0",
    "\ud800",
]
fuzz = settings(
    max_examples=200, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def survive(text: str) -> None:
    """Does everything that can be done with a text."""
    check(text)
    assert isinstance(ParsedFlow(text, "a.flow").names, frozenset)
    once = formatted(text)
    assert once is None or formatted(once) == once


def check(text: str) -> None:
    compilation = compile_flow(text)
    assert bool(compilation.programs) is not bool(compilation.errors)
    assert len(compilation.diagnostics) <= 2 * DEFAULT_LIMITS.diagnostics
    for diagnostic in compilation.diagnostics:
        assert diagnostic.code in CODES
        assert 0 <= diagnostic.start <= diagnostic.end <= len(text) + 1
        as_json(compilation.source, diagnostic)
    assert len(render_all(compilation.source, compilation.diagnostics)) < 200_000


def formatted(text: str) -> str | None:
    """The text in its layout; none if it is refused."""
    try:
        return format_source(text)
    except FlowError:
        return None


@fuzz
@given(st.text(st.characters(), max_size=200))
def test_any_text_gives_diagnostics(text: str) -> None:
    survive(text)


@fuzz
@given(st.lists(st.sampled_from(PIECES), max_size=60), st.sampled_from(["", " "]))
def test_any_row_of_tokens_gives_diagnostics(pieces: list[str], between: str) -> None:
    survive(between.join(pieces))


@fuzz
@given(st.sampled_from(CASES), st.randoms(use_true_random=False))
def test_any_change_of_a_program_gives_diagnostics(text: str, random: Random) -> None:
    for _ in range(1 + random.randrange(3)):
        at, length = random.randrange(len(text) + 1), random.choice((0, 0, 1, 5))
        text = text[:at] + random.choice(["", *PIECES]) + text[at + length :]
    survive(text)


def fill(unit: str, before: str = "", after: str = "") -> str:
    """The unit again and again, up to the largest source there may be."""
    room = SIZE - len((before + after).encode())
    return before + unit * (room // len(unit.encode("utf-8", "surrogatepass"))) + after


def rows(line: str, before: str = "", after: str = "") -> str:
    """The line again and again, with `#` as its number."""
    made, size = [before], len(before) + len(after)
    while size + len(line) + 5 < SIZE:
        made.append(line.replace("#", str(len(made))))
        size += len(made[-1])
    return "".join([*made, after])


NASTY = {
    "open (": fill("(", "return "), "open [": fill("[", "return "), "open {": fill("{", "x = "),
    "open ${": fill("`${", "return "),
    "open blocks": fill("if(1){"), "open tries": fill("try{}catch(e){"),
    "open branches": fill("branch{", "x = "),
    "open calls": fill("a("), "closed brackets": "x = " + "(" * 120_000 + "1" + ")" * 120_000,
    "crossed brackets": fill("(]"),
    "closers": fill(")"), "closing braces": fill("}"),
    "nested templates": "return " + "`${" * 30 + "1" + "}`" * 30,
    "open lists on lines": fill("x=[\n"), "! signs": fill("!", "return "),
    "- signs": fill("- ", "return ", "1"),
    "-- signs": fill("-", "return "), "path": fill(".a", "let a = 1\nreturn a"),
    "open path": fill("a.", "return "),
    "indexes": fill("[0]", "let a = 1\nreturn a"), "? :": fill("a?b:", "return "),
    "sum": fill("1+", "return ", "1"),
    "and": fill("x&&", "x = 1\nreturn ", "1"), "comparisons": fill("1<", "return ", "1"),
    "bodies without braces": fill("if(1)"),
    "awaits": fill("await "), "arrows": fill("()=>"),
    "else if": fill(" else if (1) { x = 1 }", "if (1) { x = 1 }"),
    "tries": fill("try{}finally{}\n"), "@": fill("@"),
    "jumps through finally": "while(1){" + "try{" * 30 + fill("break\n")[: SIZE // 2] + "}finally{}" * 30 + "}",
    "awaits in tries": fill("try{await sleep(1)}catch(e){await sleep(2)}finally{await sleep(3)}\n"),
    "loops and tries": fill("for(x in [1]){try{await sleep(1)\nif(x){break}\ncontinue}finally{await sleep(3)}}\n"),
    "open text": fill("a", 'x = "'), "open texts": fill('"a\n'),
    "open template": fill("a", "x = `"), "open comment": fill("a", "/*"),
    "comments": fill("/**/"), "comments on lines": fill("//\n"),
    "backslashes in a template": fill("\\", "x = `"),
    "a long line": fill("x = 1; "), "a long line of problems": fill("x = @ 1; "),
    "a long name": fill("a"), "newlines": "\n" * 100_000,
    "carriage returns": "\r" * 100_000, "lines of both": fill("x = 1\r\n"),
    "semicolons": ";" * 100_000, "spaces": fill(" ", "", "@"),
    "problems": fill("let = \n"), "one unknown name": fill("y\n"), "unknown names": rows("v#\n"),
    "unknown functions": rows("f#()\n"),
    "bidi": fill("\u202e"), "look-alikes": fill("аbс "), "a long look-alike": fill("а"),
    "NUL": fill("\0"),
    "NUL in a text": fill("\0", 'x = "', '"'), "half surrogates": "\ud800" * 80_000,
    "half surrogates in a text": 'x = "' + "\ud800" * 80_000 + '"', "BOM": fill("\ufeff"),
    "combining marks": fill("\u0301", "a"),
    "wide characters": fill("你", "x = '", "' @"), "emoji": fill("😀"),
    "unknown escapes": fill("\\x", 'x = "', '"'),
    "a long number": fill("9", "return "), "a long decimal": fill("9", "return 0."),
    "a long exponent": fill("9", "return 1e"),
    "1.1.1": fill("1."), "variables": rows("a#=1\n"),
    "variables and awaits": rows("a#=1\nawait sleep(1)\n"),
    "variables taken apart": rows("a#,", "let [", "] = []"),
    "many kept at each await": "".join(f"a{i}=1\n" for i in range(490)) + "await sleep(1)\n" * 16_000,
    "many kept by each branch": "workflow w{" + "".join(f"a{i}=1\n" for i in range(490)) + "let _=branch{log(a1)}\n" * 10_000 + "}",
    "branches in branches": "workflow w{a=1\n" + "await branch{" * 60 + "b=a\n" * 20_000 + "}" * 60 + "}",
    "workflows": rows("workflow w#{}\n"), "one workflow again": fill("workflow w{}\n"),
    "headers": fill("workflow "),
    "open headers": fill("workflow("), "comprehensions": fill("[x for x in ", "return "),
    "list": fill("1,", "return [", "]"),
    "object": rows("k#:1,", "return {", "}"), "one key again": fill("k:1,", "return {", "}"),
    "arguments": fill("1,", "return max(", ")"),
    "annotations": fill('@on("a")\n', "", "workflow w {}"),
    "awaits in arguments": rows('k#: await task("b"),', 'await task("a",{', "})"),
    "group": fill('task("a"),', "await all([", "])"),
    "groups in groups": fill("all([", "await "), "functions": fill("function f(){}\n"),
    "methods": fill("x.map()\n", "x=1\n"),
    "more than fits": "x" * SIZE * 4,
}  # fmt: skip
# Calls for each character of a text, and for any text. The worst take a third of it; a pass over
# all that came before, for each token, takes hundreds of times as many
MOST, ALWAYS = 150, 200_000
PART = sampled(64, 1)  # of a text


def soon(text: str, act: Callable[[str], object]) -> bool:
    return calls(lambda: act(text)) < ALWAYS + MOST * len(text)


@pytest.mark.parametrize("name", NASTY)
@sweep
def test_the_largest_and_nastiest_texts_give_diagnostics_soon(name: str) -> None:
    # a token has a character at least: so much is always read to its end
    densest = NASTY[name][: DEFAULT_LIMITS.tokens // PART]
    assert soon(NASTY[name] if len(NASTY[name]) > SIZE else NASTY[name][: SIZE // PART], check)
    assert soon(densest, check)
    assert soon(NASTY[name][: SIZE // 4 // PART], formatted)


@pytest.mark.parametrize("name", ["problems", "unknown functions"])
def test_only_the_first_problems_of_a_hopeless_file_are_shown(name: str) -> None:
    assert (
        len(compile_flow(NASTY[name][: DEFAULT_LIMITS.tokens]).diagnostics)
        == DEFAULT_LIMITS.diagnostics
    )


def test_no_number_of_warnings_stops_a_file() -> None:
    compilation = compile_flow("workflow a {\n" + "return 1\n" * 500 + "}")
    assert len(compilation.diagnostics) == DEFAULT_LIMITS.diagnostics
    assert [program.name for program in compilation.programs] == ["a"]


def test_a_template_that_the_last_character_opens_is_reported() -> None:
    assert [diagnostic.code for diagnostic in compile_flow("x = `").errors] == ["F002"]
