"""Holds `docs/language.md` to the truth: its examples run, its tables match the code's, its grammar
reads the programs.

The grammar is turned into a lark grammar symbol by symbol: LALR(1), so it is proved to be
unambiguous on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from lark import Lark, Token, UnexpectedInput

from rhythm.ir.operations import ALIASES, BUILTINS, EMITS, GROUPS, OPERATIONS
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.problems import CODES
from rhythm.lang.flow.rules.annotations import ANNOTATIONS
from rhythm.lang.flow.rules.surroundings import Surroundings, TaskShape
from rhythm.lang.flow.tokens import RESERVED
from rhythm.lang.shapes import Kind, ValueShape, of_words
from rhythm.lang.source import render_all
from rhythm.limits import DEFAULT_LIMITS, Limits
from tests.lang import test_programs
from tests.support import world
from tests.support.cases import Case, all_cases, read_cases

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")

# What the examples' own tasks do, beside those of the test world.
EXAMPLE_TASKS = {
    "chargeCard": lambda inputs: {"id": "p-1", **inputs},
    "refund": lambda inputs: None,
    "pack": lambda inputs: f"parcel of {inputs['item']}",
    "sendEmail": lambda inputs: None,
}
PAYMENT = ValueShape((Kind("an object", name="Payment", fields={"id": None, "amount": None}),))
EXAMPLE_WORLD = Surroundings(
    {"chargeCard": TaskShape({"card": of_words(["text"])}, frozenset({"card"}), result=PAYMENT)},
    frozenset({"child"}),
)
NEEDS_A_REGISTRY = re.compile("//~ F10[3456]")


@dataclass
class Block:
    """A fenced block of the document, with the heading above it."""

    language: str
    heading: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.line} {self.heading}"

    # What `read_cases` wants of a file.

    @property
    def name(self) -> str:
        return "language.flow"

    def read_text(self, encoding: str) -> str:
        return f"=== {self.heading}\n{self.text}"

    def case(self) -> Case:
        return read_cases(self)[0]  # type: ignore[arg-type]  # it reads the text and the name, and we have both


def _blocks() -> list[Block]:
    found, heading = [], ""
    for match in re.finditer(
        r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
    ):
        heading = match[1] or heading
        if match[2]:
            found.append(Block(match[2], heading, TEXT.count("\n", 0, match.start()) + 1, match[3]))
    return found


def _section(heading: str) -> str:
    """The text from a heading to the next one of its level or above."""
    level = len(re.search(rf"^(#+) {re.escape(heading)}$", TEXT, re.MULTILINE)[1])  # type: ignore[index]  # a missing heading fails
    start = re.search(rf"^#+ {re.escape(heading)}$", TEXT, re.MULTILINE).end()  # type: ignore[union-attr]
    end = re.search(rf"^#{{1,{level}}} ", TEXT[start:], re.MULTILINE)
    return TEXT[start : start + end.start()] if end else TEXT[start:]


def _rows(text: str) -> list[tuple[tuple[str, ...], list[str]]]:
    """Each row of each table, with the table's header."""
    found, header = [], ()
    for line in text.splitlines():
        if not line.startswith("|"):
            header = ()
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = tuple(cells)
        elif not set(cells[0]) <= set("-"):
            found.append((header, cells))
    return found


def _code(cell: str) -> str:
    """What stands between a cell's backticks."""
    if cell.startswith("`` "):
        return cell.removeprefix("`` ").removesuffix(" ``")
    return cell.strip("`")


def _table(header: str, section: str | None = None) -> list[list[str]]:
    return [
        cells for head, cells in _rows(_section(section) if section else TEXT) if head[0] == header
    ]


BLOCKS = _blocks()
EXAMPLES = [block for block in BLOCKS if block.language == "flow"]
EVALUATED = [
    (_code(cells[head.index("example")]), _code(cells[head.index("gives")]))
    for head, cells in _rows(TEXT)
    if "gives" in head
]


# examples


@pytest.fixture(autouse=True)
def _example_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, handler in EXAMPLE_TASKS.items():
        monkeypatch.setitem(world.TASKS, name, handler)


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_example_does_what_it_says(block: Block) -> None:
    if NEEDS_A_REGISTRY.search(block.text):
        return _check_against_registry(block)
    if not re.search(r"//(=>|!|~) ", block.text):
        compilation = compile_flow(block.text)
        assert not compilation.errors, compilation.errors
        return None
    return test_programs.test_program(block.case())


def _check_against_registry(block: Block) -> None:
    wanted = [
        (m[1], int(m[2]), m[3].strip())
        for m in re.finditer(r"//~ (F\d+) @(\d+) ?([^\n]*?)(?=//~|$)", block.text, re.MULTILINE)
    ]
    compilation = compile_flow(block.text, known=EXAMPLE_WORLD)
    found = [
        (d.code, compilation.source.position(d.start)[1], " ".join((d.message, *d.help)))
        for d in compilation.diagnostics
    ]
    assert [f[:2] for f in found] == [w[:2] for w in wanted], found
    assert all(w[2] in f[2] for f, w in zip(found, wanted, strict=True)), found


def test_message_is_shown_as_the_compiler_renders_it() -> None:
    shown = [
        (before.text, block.text) for before, block in pairwise(BLOCKS) if block.language == "text"
    ]
    assert shown
    for text, message in shown:
        compilation = compile_flow(re.sub("  //~ .*", "", text), "language.flow")
        assert f"{render_all(compilation.source, compilation.diagnostics)}\n" == message


@pytest.mark.parametrize(("example", "gives"), EVALUATED)
def test_value_in_a_table_is_what_the_expression_gives(example: str, gives: str) -> None:
    compilation = compile_flow(f"return {example}", "language.flow")
    assert not compilation.errors, compilation.errors
    ended = world.World(list(compilation.programs)).run("language")
    wanted = json.loads(gives)
    assert (ended.status, ended.value) == ("completed", wanted)
    assert test_programs.same_types(ended.value, wanted)


# tables


def test_every_builtin_is_in_the_table_with_its_usage() -> None:
    usages = {_code(cells[0]).replace("` or `", " or ") for cells in _table("call", "Builtins")}
    assert usages == {signature.usage for signature in BUILTINS.values()}


def test_the_example_of_a_builtin_calls_it() -> None:
    for cells in _table("call", "Builtins"):
        name = _code(cells[0]).partition("(")[0]
        assert f"{name}(" in cells[2], cells


def test_every_operation_is_in_the_table_with_its_usage_and_other_spellings() -> None:
    rows = {_code(cells[0]): cells[1] for cells in _table("write", "Operations") if len(cells) == 3}
    assert rows.keys() == {
        signature.usage for signature in [*OPERATIONS.values(), *GROUPS.values()]
    } | {"branch { … }"}
    for name, signature in {**OPERATIONS, **GROUPS}.items():
        assert set(re.findall("`(.*?)`", rows[signature.usage])) == {
            alias for alias, of in ALIASES.items() if of == name
        }


def test_every_command_is_in_the_table_with_its_usage() -> None:
    assert {_code(cells[0]) for cells in _table("write", "Commands")} == {
        signature.usage for signature in EMITS.values()
    }


@pytest.mark.parametrize("name", ["task", "workflow", "signal", "event", "approval"])
def test_every_option_of_an_operation_is_in_its_table(name: str) -> None:
    assert {_code(cells[0]) for cells in _table(f"option of `{name}`")} == OPERATIONS[name].options


def test_every_option_of_a_group_is_in_the_table() -> None:
    rows = _table("option of a group")
    for name, signature in GROUPS.items():
        assert {_code(cells[0]) for cells in rows if f"`{name}`" in cells[1]} == signature.options


def test_every_annotation_is_in_the_table() -> None:
    assert [_code(cells[0]) for cells in _table("annotation")] == list(ANNOTATIONS.values())


def test_every_reserved_word_is_listed() -> None:
    listed = re.search(r"Reserved words: `(.*?)`", TEXT, re.DOTALL)
    assert listed
    assert set(listed[1].split()) == RESERVED


def test_every_diagnostic_has_a_heading_with_its_meaning_and_an_example_that_raises_it() -> None:
    headings = dict(re.findall(r"^#### (F\d+): (.*)$", TEXT, re.MULTILINE))
    assert headings == {
        code: re.sub("^(warning|note): ", "", meaning) for code, meaning in CODES.items()
    }
    shown = {
        block.heading.partition(":")[0]: block.text
        for block in EXAMPLES
        if re.match(r"F\d+:", block.heading)
    }
    assert all(f"//~ {code} @" in shown[code] for code in headings), shown.keys()


def test_every_code_of_a_failure_is_in_the_table() -> None:
    folders = [
        ROOT / "src" / "rhythm" / name
        for name in ("vm", "engine", "worker", "store", "store/sqlite", "store/postgres")
    ]
    sources = "".join(
        path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.py")
    )
    used = set(
        re.findall(
            r'(?:(?:Fault|__init__|error)\(\s*|"code":\s|"code",\s'
            r'|(?:_failure|in_place_of|refused)\(\s*\w+,\s*)"([A-Z]\w+)"',
            sources,
        )
    )
    assert {_code(cells[0]) for cells in _table("code", "Errors")} == used


def test_every_limit_is_in_the_table_with_its_default() -> None:
    shown = {_code(cells[0]): _size(cells[1]) for cells in _table("name", "Limits")}
    assert shown == {name: getattr(DEFAULT_LIMITS, name) for name in Limits.__annotations__}


def _size(cell: str) -> int:
    number, _, unit = cell.replace(",", "").partition(" ")
    return int(number) * {"": 1, "KiB": 1024, "MiB": 1024**2}[unit]


def test_links_inside_the_document_lead_to_headings() -> None:
    anchors = {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall("^#+ (.*)$", TEXT, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#(.*?)\)", TEXT)) <= anchors


# grammar

_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_RULE = re.compile(r"^(\w+)\s*= (.*?)(?=^\w+\s*= |\Z)", re.MULTILINE | re.DOTALL)
_SYMBOL = re.compile(r"\"[^\"]*\"|/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+/|[{}]|[^\"/{}]+")


def _to_lark(ebnf: str) -> str:
    """The document's notation in lark's: `{ }` becomes `( )*`, the `=` of a rule `:`, and the order
    of terminals their priority."""
    rules = _RULE.findall(_COMMENT.sub("", ebnf))
    terminals = [name for name, _ in rules if name.isupper()]
    lines = []
    for name, body in rules:
        rank = f".{len(terminals) - terminals.index(name)}" if name.isupper() else ""
        lines.append(
            f"{_lark_name(name)}{rank}: "
            + "".join(_lark_symbol(symbol) for symbol in _SYMBOL.findall(body)).strip()
        )
    return "\n".join([*lines, "%ignore SPACE", "%ignore COMMENT"])


def _lark_name(name: str) -> str:
    return name if name.isupper() else f"r_{name}"  # lark has a meaning for some short names


def _lark_symbol(symbol: str) -> str:
    if symbol in ("{", "}"):
        return {"{": "(", "}": ")*"}[symbol]
    if symbol.startswith('"'):
        return f"/{symbol[1:-1]}\\b/" if symbol[1:-1].isalpha() else symbol
    if symbol.startswith("/"):
        return symbol
    return re.sub(r"[a-z_]+", lambda name: _lark_name(name[0]), symbol)


class _LinesInBrackets:
    """Leaves out the `LINE`s that are only space. `{` opens a block after `)`, a name or one of
    four words, else an object."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        open_, last = ["block"], None
        for token in stream:
            if token.type == "LINE" and open_[-1] != "block":
                continue
            if token in ("(", "[", "${"):
                open_.append(token)
            elif token == "{":
                block = last is not None and (
                    last.type in ("NAME", "WORKFLOW", "BRANCH")
                    or last in (")", *"else try catch finally".split())
                )
                open_.append("block" if block else token)
            elif token in (")", "]", "}"):
                open_.pop()
            last = token
            yield token


@cache
def _grammar() -> Lark:
    (ebnf,) = [block.text for block in BLOCKS if block.language == "ebnf"]
    return Lark(
        _to_lark(ebnf),
        start="r_file",
        parser="lalr",
        lexer="contextual",
        postlex=_LinesInBrackets(),
        maybe_placeholders=False,
    )


def _refusal(text: str) -> str:
    """Why the grammar refuses the text; empty if it does not."""
    try:
        _grammar().parse(text)
    except UnexpectedInput as problem:
        return f"{problem.get_context(text)}{problem}"
    return ""


@cache
def _programs() -> list[tuple[str, str, frozenset[str]]]:
    """Title, text and codes of the errors, of all programs of the suite and of the document."""
    texts = [(str(case), case.text) for case in all_cases() if len(case.text) < 10_000]
    texts += [(str(block), block.text) for block in EXAMPLES] + [
        (example, f"return {example}") for example, _ in EVALUATED
    ]
    return [
        (title, text, frozenset(error.code for error in compile_flow(text).errors))
        for title, text in texts
    ]


def test_grammar_accepts_every_program_that_compiles() -> None:
    compiling = {title: text for title, text, codes in _programs() if not codes}
    assert len(compiling) > 200
    refused = {title: why for title, text in compiling.items() if (why := _refusal(text))}
    assert not refused, "\n".join(f"{title}\n{why}" for title, why in refused.items())


def test_grammar_refuses_what_the_compiler_calls_a_mistake_of_syntax() -> None:
    mistaken = {
        title: text
        for title, text, codes in _programs()
        if codes & {"F001", "F002", "F008", "F009", "F034"}
    }
    assert len(mistaken) > 20
    assert not [title for title, text in mistaken.items() if not _refusal(text)]


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_grammar_keeps_reserved_words_from_variables_and_lets_them_be_keys(word: str) -> None:
    assert _refusal(f"let {word} = 1")
    assert not _refusal(f"return [x.{word}, {{ {word}: 1 }}]")


@pytest.mark.parametrize("name", [*OPERATIONS, *GROUPS, *ALIASES])
def test_grammar_reads_every_spelling_of_an_operation(name: str) -> None:
    assert not _refusal(f"let x = await {name}(y)")


BROKEN = [
    "let x = ",
    "let x = 1 let y = 2",
    "let if = 1",
    "const x",
    "if (x) return 1",
    "if x { return 1 }",
    "for (i = 0; i < 3; i += 1) { log(i) }",
    "try { log(1) }",
    "return a === b",
    "return 1 < 2 < 3",
    "return f(await x)",
    "return 1 + await x",
    "return x => x",
    "return xs.map(x)",
    "return [x for x in xs for y in ys]",
    "return { a: 1 b: 2 }",
    "return `a ${b`",
    'return "a',
    "return 01",
    "workflow w(orderId) { return 1 }",
    "workflow w { return 1 } return 2",
    "function f() { return 1 }",
    "else { return 1 }",
    "x++",
    "foo(1",
    "return a inb",
]


@pytest.mark.parametrize("text", BROKEN)
def test_grammar_and_compiler_both_refuse_a_broken_program(text: str) -> None:
    assert _refusal(text)
    assert compile_flow(text).errors
