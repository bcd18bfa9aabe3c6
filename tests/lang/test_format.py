"""The laws of `rhythm fmt`: it is idempotent, loses no comment, never changes what a program means,
and looks as it should."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rhythm.errors import FlowError
from rhythm.lang.flow.format import format_source
from rhythm.lang.flow.grammar.parser import Parser
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.problems import Problems
from rhythm.lang.source import Source, render_all
from rhythm.limits import DEFAULT_LIMITS
from rhythm.record import Record

PLACES = {"start", "end", "op_start", "name_start", "name_end"}


def parse(text: str) -> tuple[Any, list[str]]:
    """The tree without places, and the comments, each without the space around its lines."""
    problems = Problems(DEFAULT_LIMITS.diagnostics)
    lexer = Lexer(text, problems, DEFAULT_LIMITS)
    tree = Parser(text, lexer.run(), problems, DEFAULT_LIMITS, "workflow").parse_file()
    assert not problems.errors, render_all(Source("workflow", text), problems.found)
    return shape(tree), [
        "\n".join(line.strip() for line in comment.text.split("\n")) for comment in lexer.comments
    ]


def shape(node: Any) -> Any:
    if isinstance(node, Record):
        return (
            type(node).__name__,
            *((name, shape(getattr(node, name))) for name in node._fields if name not in PLACES),
        )
    return tuple(shape(item) for item in node) if isinstance(node, tuple) else (type(node), node)


def formatted(text: str) -> str:
    """What the formatter makes of it, after checking every law that holds for any program."""
    once = format_source(text)
    assert format_source(once) == once
    assert parse(once) == parse(text)
    return once


def expect(text: str, expected: str) -> None:
    assert formatted(dedent(text)) == dedent(expected).lstrip("\n")


LANGUAGE_EXAMPLE = """\
// processOrder.flow
@queue("orders") @timeout("30d") @on("order.created")
workflow processOrder(inputs) {
  let payment = await task("chargeCard", { orderId: inputs.orderId, amount: inputs.total }, { retries: 5, timeout: "30s" })
  if (payment.status == "declined") { return { ok: false, reason: payment.reason } }

  if (inputs.total >= 10000) {
    let answer = await approval({ role: "sales_manager", reason: `Order ${inputs.orderId}`, timeout: "24h", data: payment })
    if (answer.decision != "approved") {
      await task("refund", { orderId: inputs.orderId })
      return { ok: false, reason: answer.decision }
    }
  }

  let [label, mail] = await all([task("printLabel", { orderId: inputs.orderId }), task("sendEmail", { to: inputs.email })])
  let parcels = await all([task("pack", { item }) for item in inputs.items], { concurrency: 10 })

  let first = await race({ shipped: signal("shipped"), late: sleep("3d") })
  if (first.key == "late") { publish("order.late", { orderId: inputs.orderId }) }
  return { ok: true, label, parcels: len(parcels) }
}
"""


def test_example_of_the_language_document_is_already_formatted() -> None:
    assert formatted(LANGUAGE_EXAMPLE) == LANGUAGE_EXAMPLE


def test_example_written_carelessly_comes_out_as_the_document_shows_it() -> None:
    careless = LANGUAGE_EXAMPLE
    for neat, untidy in [
        ("  ", "\t"),
        (" {\n", "\n\t\t{\n\n\n"),
        ("\n}", "\n\n;}"),
        ("{ ", "{"),
        (" }", "  }"),
        (", ", "  ,"),
        (": ", ":"),
        (" = ", "="),
        (" == ", "=="),
        ("(", "( "),
        ("\n", "  \r\n"),
    ]:
        careless = careless.replace(neat, untidy)
    assert formatted("\ufeff\n\n" + careless + "\n\n") == LANGUAGE_EXAMPLE


def test_file_with_syntax_errors_is_refused_with_its_diagnostics() -> None:
    with pytest.raises(FlowError) as raised:
        format_source("let x = \nif (x { }\n", "order")
    assert "order:2:1" in str(raised.value)
    assert raised.value.diagnostics


@pytest.mark.parametrize("text", ["", "\n\n", " \t\r\n", "\ufeff", ";", "\n;;\n"])
def test_file_with_nothing_in_it_becomes_empty(text: str) -> None:
    assert formatted(text) == ""


@pytest.mark.parametrize("text", ["a", "a\n", "a;", "\ufeffa\r\n\r\n", "\n\n\ta  \n\n\n"])
def test_file_has_one_newline_at_its_end_and_none_at_its_start(text: str) -> None:
    assert formatted(text) == "a\n"


def test_each_statement_has_a_line_of_its_own() -> None:
    expect("a; b;; c;\n;d", "a\nb\nc\nd\n")
    expect(
        "workflow a {} workflow b { x } @queue('q') workflow c {}",
        "workflow a {}\nworkflow b { x }\n@queue('q')\nworkflow c {}\n",
    )


def test_semicolon_stays_where_the_next_statement_would_be_read_as_a_subtraction() -> None:
    expect("a; -b; c", "a;\n-b\nc\n")
    expect("a // why\n; - b", "a;  // why\n-b\n")
    expect("let x = branch { ; -a; }; /* c */ -b", "let x = branch { -a };\n/* c */ -b\n")


def test_block_on_one_line_with_one_statement_stays_there() -> None:
    expect("if(a){return x;}", "if (a) { return x }\n")
    expect("if (a) { if (b) { c() } }", "if (a) { if (b) { c() } }\n")
    expect("try{a()}catch(e){b()}finally{c()}", "try { a() } catch (e) { b() } finally { c() }\n")


def test_block_with_two_statements_or_a_comment_or_a_line_break_is_opened_up() -> None:
    expect("if (a) { b; c }", "if (a) {\n  b\n  c\n}\n")
    expect("if (a) { while (b) { c; d } }", "if (a) {\n  while (b) {\n    c\n    d\n  }\n}\n")
    expect("if (a) { b /* c */ }", "if (a) {\n  b  /* c */\n}\n")
    expect("if (a) {\nb }", "if (a) {\n  b\n}\n")
    expect("if (a) { return `x\ny` }", "if (a) {\n  return `x\ny`\n}\n")


def test_empty_block_object_list_and_call_are_closed_at_once() -> None:
    expect("while (a) {\n\n;\n}\nb = {\n}\nc = [ ]\nd(\n)", "while (a) {}\nb = {}\nc = []\nd()\n")


def test_block_begins_on_the_line_of_its_head_and_else_catch_finally_follow_its_end() -> None:
    text = """
        if (a)
        {
        b
        }
        else
        if (c) { d }
        else
        {
        try
        { e }
        catch
        (e)
        { f }
        finally
        {
        g
        }
        }
        """
    expected = """
        if (a) {
          b
        } else if (c) { d } else {
          try { e } catch (e) { f } finally {
            g
          }
        }
        """
    expect(text, expected)


def test_one_blank_line_stays_and_none_at_the_ends_of_a_block_or_bracket() -> None:
    expect("if (a) {\n\n\nb\n\n\n\nc\n\n}\n\n\nd", "if (a) {\n  b\n\n  c\n}\n\nd\n")
    expect("f([\n\n1,\n\n\n2\n\n])", "f([\n  1,\n\n  2\n])\n")
    expect("if (a) { // why\n\nb }", "if (a) {  // why\n  b\n}\n")
    expect("a\n;\nb", "a\nb\n")


def test_line_inside_a_bracket_is_one_level_deeper_than_the_line_that_opened_it() -> None:
    text = """
        let r = await all([
        task("a", {
        x: 1,
        y: [
        2, 3
        ]
        }),
        branch { let z = 1; return z }
        for i in xs
        if i
        ], {
        concurrency: 2,
        })
        """
    expected = """
        let r = await all([
          task("a", {
            x: 1,
            y: [
              2, 3
            ]
          }),
          branch {
            let z = 1
            return z
          }
          for i in xs
          if i
        ], {
          concurrency: 2,
        })
        """
    expect(text.replace("}),\n", "}) +\n"), expected.replace("}),\n", "}) +\n"))


def test_line_that_goes_on_with_a_statement_is_one_level_deeper() -> None:
    text = """
        let a = b
        .c
        ?.d
        + e
        let f =
        g ||
        h
        let i = j
        ? { k: 1 }
        : {
        l: 2
        }
        x
        += 1
        """
    expected = """
        let a = b
          .c
          ?.d
          + e
        let f =
          g ||
          h
        let i = j
          ? { k: 1 }
          : {
            l: 2
          }
        x
          += 1
        """
    expect(text, expected)


def test_item_that_goes_on_inside_a_bracket_is_one_level_deeper() -> None:
    expect(
        "f(\na\n+ b,\n{\nin: 1,\nc:\nd,\n}\n)",
        "f(\n  a\n    + b,\n  {\n    in: 1,\n    c:\n      d,\n  }\n)\n",
    )


def test_block_is_indented_from_the_first_line_of_its_statement() -> None:
    expect("if (a\n&& b) {\nc\n}", "if (a\n    && b) {\n  c\n}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b+c*-d-(-e)", "a = b + c * -d - (-e)"),
        ("a = - - b", "a = - -b"),
        ("a = ! ! b", "a = !!b"),
        ("a=b?c:d", "a = b ? c : d"),
        ("a={b:c,d,e:{},...f}", "a = { b: c, d, e: {}, ...f }"),
        ("a = [ 1,2 , ... b ,]", "a = [1, 2, ...b,]"),
        ("a [ 0 ] . b ?. [ - 1 ] ?. c = f ( g , h ( ) )", "a[0].b?.[-1]?.c = f(g, h())"),
        ("f ( { a:1 } , [ { b } ] )", "f({ a: 1 }, [{ b }])"),
        ("let{a,b:c,d=1}=e", "let { a, b: c, d = 1 } = e"),
        ("let[a,b]=c", "let [a, b] = c"),
        ("for(k,v in o){f(k)}", "for (k, v in o) { f(k) }"),
        ("while(a in[1]){b}", "while (a in [1]) { b }"),
        ("a = [f(x)for x of xs if(x)]", "a = [f(x) for x of xs if (x)]"),
        ("return(a)", "return (a)"),
        ("return[a]", "return [a]"),
        ("await(a)", "await (a)"),
        ("throw{code:'x'}", "throw { code: 'x' }"),
        ("a = {if:1,'b c':2,in:[3]}", "a = { if: 1, 'b c': 2, in: [3] }"),
        ("a = b.in.let[0]", "a = b.in.let[0]"),
        ("a = `x${ b }y${  {c:1}.c }`[ 0 ]", "a = `x${b}y${{ c: 1 }.c}`[0]"),
        ("a = 1.50e+3 - 0", "a = 1.50e+3 - 0"),
        ("a = true[0]", "a = true[0]"),
        ("async function main(ctx,inputs){a}", "async function main(ctx, inputs) { a }"),
        ("@queue ( 'a' )@on('b')\nworkflow{a}", "@queue('a') @on('b')\nworkflow { a }"),
        ("a-=- 1", "a -= -1"),
        ("a = b ?? c||d&&! e", "a = b ?? c || d && !e"),
    ],
)
def test_spacing(text: str, expected: str) -> None:
    assert formatted(text) == expected + "\n"


def test_text_and_template_are_copied_character_by_character() -> None:
    text = (
        "let a = \"  \\u00e9  {a:1}  \" + 'it\\'s'\nlet b = `  one  \n\ttwo ${c}  \r\n\n\n   "
        "}three\\`  `\n"
    )
    assert formatted(text) == text


def test_expression_in_a_template_may_go_over_several_lines_without_touching_the_text() -> None:
    expect(
        "a = `x ${\nf(\nb\n) } y\n  z ${ c\n+ d }`", "a = `x ${f(\n  b\n)} y\n  z ${c\n  + d}`\n"
    )


def test_trailing_comma_is_what_the_author_wrote() -> None:
    expect("f(\na,\n)\nf(\na\n)", "f(\n  a,\n)\nf(\n  a\n)\n")


def test_comment_behind_code_stands_two_spaces_off() -> None:
    expect(
        "a// b  \nf( // c\nd, /* e */\ng /* h */)",
        "a  // b\nf(  // c\n  d,  /* e */\n  g /* h */)\n",
    )


def test_comment_on_its_own_line_is_indented_as_what_it_stands_before() -> None:
    text = """
            // a
        if (b) {
        // c
        d
        . e
        // f
        . g
        // h
        }
        i([
        // j
        1
        // k
        ])
          // l
        """
    expected = """
        // a
        if (b) {
          // c
          d
            .e
            // f
            .g
          // h
        }
        i([
          // j
          1
          // k
        ])
        // l
        """
    expect(text, expected)


def test_comment_between_head_and_block_goes_into_the_block() -> None:
    expect("if (a) // b\n// c\n{ // d\ne }", "if (a) {  // b\n  // c\n  // d\n  e\n}\n")
    expect("if (a) /* b */ { c }", "if (a) /* b */ { c }\n")
    expect("if (a) /* b */\n{}", "if (a) {\n  /* b */\n}\n")


def test_comment_between_a_block_and_else_stays_between_them() -> None:
    expect("if (a) { b }\n  // c\n\n else { d }", "if (a) { b }\n// c\n\nelse { d }\n")
    expect(
        "try { b } // c\ncatch { d } /* e */ finally { f }",
        "try { b }  // c\ncatch { d } /* e */ finally { f }\n",
    )


def test_comment_stays_with_the_statement_on_its_line() -> None:
    expect("a; /* b */ c // d\n/* e */ f", "a\n/* b */ c  // d\n/* e */ f\n")
    expect("a /* b */; c", "a  /* b */\nc\n")
    expect("if (a) { /* b */ c }", "if (a) {\n  /* b */ c\n}\n")


def test_lines_of_a_starred_comment_stand_under_its_first_star() -> None:
    expect(
        "if (a) {\n/**\n* b  \r\n      * c\n*/\nd\n}",
        "if (a) {\n  /**\n   * b\n   * c\n   */\n  d\n}\n",
    )
    expect("if (a) {\n/* b\n      c */\nd\n}", "if (a) {\n  /* b\n      c */\n  d\n}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n(b)", "a\n(b)"),
        ("a\n[b]", "a\n[b]"),
        ("a\n`b`", "a\n`b`"),
        ("a; (b)", "a\n(b)"),
        ("return\na", "return\na"),
        ("return; a", "return\na"),
        ("return /* b\n c */ a", "return\n/* b\n c */ a"),
        ("return /* b */ a", "return /* b */ a"),
        ("a /* b\n */ (c)", "a\n/* b\n */ (c)"),
        ("a\n- b", "a\n  - b"),
        ("let a\n- b", "let a\n-b"),
        ("workflow\nfoo", "workflow\nfoo"),
        ("@queue\n('a')", "@queue\n('a')"),
        ("@queue('a');\n@timeout('1d');\nb", "@queue('a')\n@timeout('1d')\nb"),
        ("a = - // b\nc", "a = -  // b\n  c"),
        ("a = b. // c\nd", "a = b.  // c\n  d"),
    ],
)
def test_line_breaks_that_mean_something_are_kept(text: str, expected: str) -> None:
    assert formatted(text) == expected + "\n"


def test_annotations_belong_to_the_workflow_even_with_semicolons_between() -> None:
    assert parse("@queue('a'); @timeout('1d');\nworkflow b {}") == parse(
        "@queue('a') @timeout('1d')\nworkflow b {}"
    )


# Random programs. A program is a list of words; between two words stands what may: `LINE` and
# `SPACE` below are places where a line break would, or would not, be read as the end of a
# statement.

SPACE, LINE, END = "\0space", "\0line", "\0end"
Words = list[str]


def _words(*parts: str | Words) -> Words:
    """The parts with free places between them, except where a part is a place itself."""
    found: Words = []
    for part in parts:
        items = [part] if isinstance(part, str) else part
        if found and items and not found[-1].startswith("\0") and not items[0].startswith("\0"):
            found.append(LINE)
        found += items
    return found


def _joined(items: list[Words], comma: bool = False) -> Words:
    parts: list[str | Words] = []
    for i, item in enumerate(items):
        parts += [",", item] if i else [item]
    return _words(*parts, ",") if comma and items else _words(*parts)


names = st.sampled_from("a b inputs branch workflow approval".split()).map(lambda name: [name])
atoms = st.one_of(
    names,
    st.sampled_from(["1", "2.50", '"x  y"', "'\\n'", "true", "null"]).map(lambda word: [word]),
)


def _template(expression: Words) -> Words:
    return ["`  t\n \t$ ${", LINE, *expression, LINE, "} u  `"]


def _expressions(
    inner: st.SearchStrategy[Words], blocks: st.SearchStrategy[Words]
) -> st.SearchStrategy[Words]:
    several = st.lists(inner, max_size=3)
    operators = st.sampled_from("+ - * / % == < && || ?? in".split())
    entries = st.one_of(
        st.tuples(st.sampled_from(["k", "in", "if", "'q'"]), inner).map(
            lambda e: _words(e[0], ":", e[1])
        ),
        inner.map(lambda e: _words("...", e)),
        st.just(["short"]),
        st.just(_words("a", ".", "of")),
    )
    return st.one_of(
        st.tuples(operators, inner, inner).map(
            lambda e: _words("(", e[1], ")", e[0], "(", e[2], ")")
        ),
        st.tuples(st.sampled_from("+ - * ??".split()), atoms, atoms).map(
            lambda e: _words(e[1], e[0], e[2])
        ),
        st.tuples(st.sampled_from(["-", "!"]), inner).map(lambda e: _words(e[0], "(", e[1], ")")),
        names.map(lambda e: _words("-", "-", e)),
        st.tuples(inner, inner, inner).map(lambda e: _words("(", e[0], ")", "?", e[1], ":", e[2])),
        st.tuples(several, st.booleans()).map(lambda e: _words("[", _joined(*e), "]")),
        st.tuples(st.lists(entries, max_size=3), st.booleans()).map(
            lambda e: _words("{", _joined(*e), "}")
        ),
        st.tuples(several, st.booleans()).map(
            lambda e: _words("task", SPACE, "(", _joined(*e), ")")
        ),
        st.tuples(names, inner).map(
            lambda e: _words(e[0], SPACE, "[", e[1], "]", ".", "let", "?.", "[", "0", "]")
        ),
        st.tuples(inner, inner).map(
            lambda e: _words("[", e[0], "for", "x", "in", e[1], "if", "x", "]")
        ),
        inner.map(lambda e: _words("await", e)),
        inner.map(lambda e: _words("(", e, ")")),
        inner.map(_template),
        blocks.map(lambda b: _words("branch", b)),
    )


def _body(statements: list[Words]) -> Words:
    parts: list[str | Words] = [part for statement in statements for part in (statement, END)]
    return _words("{", *parts[:-1], "}") if parts else ["{", LINE, "}"]


def _statements(
    expressions: st.SearchStrategy[Words], blocks: st.SearchStrategy[Words]
) -> st.SearchStrategy[Words]:
    return st.one_of(
        expressions.filter(lambda e: e[0] != "{"),
        expressions.map(lambda e: _words("let", "v", "=", e)),
        expressions.map(
            lambda e: _words("const", "{", "p", ":", "q", ",", "r", "=", "1", "}", "=", e)
        ),
        expressions.map(lambda e: _words("a", ".", "b", "+=", e)),
        expressions.map(lambda e: _words("[", "a", ",", "b", "]", "=", e)),
        expressions.map(lambda e: _words("return", SPACE, e)),
        expressions.map(lambda e: _words("throw", SPACE, e)),
        st.sampled_from([["return"], ["break"], ["let", LINE, "v"], ["workflow"]]),
        st.tuples(expressions, blocks).map(lambda e: _words("if", "(", e[0], ")", e[1])),
        st.tuples(expressions, blocks, expressions, blocks, blocks).map(
            lambda e: _words(
                "if", "(", e[0], ")", e[1], "else", "if", "(", e[2], ")", e[3], "else", e[4]
            )
        ),
        st.tuples(expressions, blocks).map(
            lambda e: _words("for", "(", "k", ",", "v", "of", e[0], ")", e[1])
        ),
        st.tuples(expressions, blocks).map(lambda e: _words("while", "(", e[0], ")", e[1])),
        st.tuples(blocks, blocks, blocks).map(
            lambda e: _words("try", e[0], "catch", "(", "e", ")", e[1], "finally", e[2])
        ),
    )


def _deeper(blocks: st.SearchStrategy[Words]) -> st.SearchStrategy[Words]:
    expressions = st.recursive(atoms, lambda inner: _expressions(inner, blocks), max_leaves=5)
    return st.lists(_statements(expressions, blocks), max_size=3).map(_body)


blocks = st.recursive(st.just(["{", LINE, "}"]), _deeper, max_leaves=4)
notes = st.lists(st.just(_words("@", "queue", SPACE, "(", '"q"', ")")), max_size=2)


def _file(bodies: list[tuple[list[Words], Words]]) -> Words:
    parts: list[str | Words] = []
    for i, (above, body) in enumerate(bodies):
        parts += [*above, _words("workflow", SPACE, f"w{i}", "(", "inputs", ")", body)]
    return _words(*parts)


scripts = st.tuples(notes, blocks).map(lambda e: _words(*e[0], END, e[1][1:-1], LINE))
files = st.one_of(scripts, st.lists(st.tuples(notes, blocks), min_size=1, max_size=3).map(_file))

INLINE = ("", " ", "  ", "\t", " /* i */ ", "/**/")
BROKEN = (
    "\n", "\r\n", "\n\n\n", " // l\n", "\n\t// o\n", "\n\n// o\n\n", "/* m\n  n */",
    "\n/* p */ ", "\n/**\n * q\n*/\n", " /* r */ // s\r\n",
)  # fmt: skip
ENDS = (
    ";",
    " ; ",
    "\n",
    "\n\n",
    ";\n",
    "; /* t */ ",
    " /* u */;",
    " // v\n",
    "\n// w\n;",
    ";;\n\n\n",
    " ; // x\n",
    "\n;\n",
)


def _spaced(words: Words, choose: Callable[[tuple[str, ...]], str]) -> str:
    out: list[str] = [choose(INLINE + BROKEN)]
    for i, word in enumerate(words):
        between = {SPACE: INLINE, LINE: INLINE + BROKEN, END: ENDS}.get(word)
        space = choose(between) if between else word
        # `a; -b` needs its `;`, and words and operators must not run into each other or into a
        # comment
        if word == END and i + 1 < len(words) and words[i + 1] == "-":
            space = ";" + space
        tight = (
            i == 0
            or i + 1 == len(words)
            or words[i - 1][-1] in "()[]{},`"
            or (words[i + 1][0] in "()[]{},`" and words[i - 1] != "/")
        )
        out.append(
            space if not between or tight or space[:1].isspace() or word == END else " " + space
        )
    return "".join(out)


@st.composite
def programs(draw: st.DrawFn) -> str:
    words = draw(files)
    choices = draw(st.randoms(use_true_random=False))
    calm = draw(st.sampled_from((0.0, 0.6, 0.95)))
    return _spaced(
        words, lambda options: options[1] if choices.random() < calm else choices.choice(options)
    )


@settings(max_examples=300)
@given(programs())
def test_any_program_keeps_its_meaning_and_comments_and_is_formatted_once_for_all(
    text: str,
) -> None:
    formatted(text)


@settings(max_examples=100)
@given(programs())
def test_any_output_is_free_of_stray_space(text: str) -> None:
    # the only text in these programs that has any
    out = format_source(text).replace("`  t\n \t$ ${", "`${")
    assert out == "" or (
        out.endswith("\n") and not out.endswith("\n\n") and not out.startswith("\n")
    )
    assert not [space for space in ("\n\n\n", "\t", "\r") if space in out]
    assert all(line == line.rstrip() for line in out.split("\n"))
