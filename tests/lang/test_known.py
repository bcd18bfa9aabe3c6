"""What exists outside the file: tasks and workflows that are not known, and inputs that do not fit
(F103 to F106)."""

from __future__ import annotations

import pytest

from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.rules.surroundings import Surroundings, TaskShape
from rhythm.lang.languages import parse_text
from rhythm.lang.shapes import Kind, ValueShape, of_words
from rhythm.lang.source import Diagnostic

TEXT, NUMBER, BOOL, NULL = "text", "a number", "true or false", "null"
TASKS = {
    "chargeCard": TaskShape(
        {
            "orderId": of_words([TEXT]),
            "amount": of_words([NUMBER]),
            "note": of_words([TEXT, NULL]),
        },
        frozenset({"orderId", "amount"}),
    ),
    "ping": TaskShape({}, frozenset()),
    "anything": TaskShape({"id": None}, frozenset({"id"}), open=True),
}
KNOWN = Surroundings(TASKS, frozenset({"processOrder", "main"}))


def found(text: str, known: Surroundings = KNOWN) -> list[Diagnostic]:
    compilation = compile_flow(text, "main.flow", known)
    assert not compilation.errors, compilation.errors
    assert compilation.programs, "a warning never stops a registration"
    return [
        diagnostic for diagnostic in compilation.diagnostics if "F103" <= diagnostic.code <= "F106"
    ]


def shown(text: str, known: Surroundings = KNOWN) -> list[tuple[str, str, str, str]]:
    """Code, message, the words it points at, and help."""
    return [
        (d.code, d.message, text[d.start : d.end], "\n".join(d.help)) for d in found(text, known)
    ]


def test_nothing_known_nothing_missing() -> None:
    assert shown('await task("nope", { x: 1 })\nawait workflow("nope")', Surroundings()) == []


def test_known_task_with_fitting_inputs_is_quiet() -> None:
    assert (
        shown(
            'await task("chargeCard", { orderId: "o-1", amount: 9.5 })\nawait '
            'task("ping")\nawait task("ping", {})'
        )
        == []
    )


def test_unknown_task_names_the_nearest() -> None:
    assert shown('await task("chargeCrd")') == [
        (
            "F103",
            "no task `chargeCrd` is registered here",
            '"chargeCrd"',
            'did you mean "chargeCard"?',
        )
    ]


def test_task_that_tells_people_must_be_known_too() -> None:
    assert shown('await approval({ role: "boss", notify: "ping" })') == []
    assert shown('await approval({ role: "boss", notify: "pinh" })') == [
        ("F103", "no task `pinh` is registered here", '"pinh"', 'did you mean "ping"?')
    ]


def test_nearest_task_is_found_across_spellings() -> None:
    assert shown('await task("charge_card", {})')[0][3] == 'did you mean "chargeCard"?'


def test_unknown_task_without_a_near_one_is_to_be_defined() -> None:
    [(code, _, _, help)] = shown('await task("sendFax")')
    assert (code, help) == ("F103", "define it in Python: @rhythm.task, def sendFax(…)")


def test_unknown_task_is_found_wherever_it_is_started() -> None:
    text = (
        'let ids = [task("a1"), task("b1")]\nawait all(ids)\nlet r = await race({ x: '
        'task("c1") })\nawait branch { await task("d1") }'
    )
    assert [words for _, _, words, _ in shown(text)] == ['"a1"', '"b1"', '"c1"', '"d1"']


def test_computed_name_of_a_task_is_not_judged() -> None:
    assert shown('let name = "nope"\nawait task(name)') == []


def test_empty_registry_knows_no_task() -> None:
    assert [code for code, *_ in shown('await task("ping")', Surroundings(tasks={}))] == ["F103"]


def test_unknown_input_names_the_nearest() -> None:
    text = 'await task("chargeCard", { orderId: "o", amount: 1, nte: "x" })'
    assert shown(text) == [
        ("F104", "task `chargeCard` has no input `nte`", 'nte: "x"', "did you mean `note`?")
    ]


def test_unknown_input_without_a_near_one_shows_what_the_task_takes() -> None:
    text = 'await task("chargeCard", { orderId: "o", amount: 1, colour: "red" })'
    assert shown(text)[0][3] == "it takes orderId, amount, note"


def test_input_of_a_task_that_takes_none() -> None:
    assert shown('await task("ping", { x: 1 })') == [
        ("F104", "task `ping` has no input `x`", "x: 1", "it takes no inputs")
    ]


def test_task_that_takes_any_inputs_has_no_unknown_ones() -> None:
    assert shown('await task("anything", { id: 1, whatever: 2 })') == []


def test_missing_inputs_are_named_together_at_the_inputs() -> None:
    text = 'await task("chargeCard", {})'
    assert shown(text) == [
        (
            "F104",
            "task `chargeCard` also needs `amount`, `orderId`",
            "{}",
            "it takes orderId, amount, note",
        )
    ]


def test_missing_inputs_without_any_are_reported_at_the_name() -> None:
    assert shown('await task("anything")') == [
        ("F104", "task `anything` also needs `id`", '"anything"', "it takes id")
    ]


def test_input_with_a_default_may_be_left_out() -> None:
    assert shown('await task("chargeCard", { orderId: "o", amount: 1 })') == []


def test_spread_inputs_may_hold_what_is_missing() -> None:
    assert shown('let o = { amount: 1 }\nawait task("chargeCard", { ...o, orderId: "x" })') == []


def test_computed_inputs_are_not_judged() -> None:
    assert shown('let o = {}\nawait task("chargeCard", o)') == []


def test_written_input_of_the_wrong_type() -> None:
    text = 'await task("chargeCard", { orderId: 7, amount: "9.5", note: true })'
    assert shown(text) == [
        ("F104", "`orderId` of task `chargeCard` must be text, not a number", "7", "pass text"),
        (
            "F104",
            "`amount` of task `chargeCard` must be a number, not text",
            '"9.5"',
            "pass a number",
        ),
        (
            "F104",
            "`note` of task `chargeCard` must be null or text, not true or false",
            "true",
            "pass null or text",
        ),
    ]


def test_null_fits_where_null_is_allowed_and_nowhere_else() -> None:
    text = 'await task("chargeCard", { orderId: null, amount: 1, note: null })'
    assert [(message, words) for _, message, words, _ in shown(text)] == [
        ("`orderId` of task `chargeCard` must be text, not null", "null")
    ]


def test_computed_input_is_not_judged_by_type() -> None:
    assert shown('let n = 5\nawait task("chargeCard", { orderId: n, amount: n })') == []


def test_input_of_no_stated_type_takes_anything() -> None:
    assert shown('await task("anything", { id: true })') == []


def test_unknown_function_that_is_a_task_shows_how_to_call_it() -> None:
    compilation = compile_flow("let r = chargeCard(1)", "main.flow", KNOWN)
    assert [(d.code, d.help) for d in compilation.errors] == [
        ("F023", ('to run your own code, write await task("chargeCard", { … })',))
    ]


def test_unknown_workflow_names_the_nearest() -> None:
    assert shown('await workflow("procesOrder")') == [
        (
            "F105",
            "no workflow `procesOrder` is in these files",
            '"procesOrder"',
            'did you mean "processOrder"?',
        )
    ]


def test_unknown_workflow_without_a_near_one() -> None:
    assert [(code, help) for code, _, _, help in shown('await workflow("refund")')] == [
        ("F105", "check the file that holds it together with this one")
    ]


def test_known_workflow_is_quiet() -> None:
    assert (
        shown(
            'await workflow("processOrder", { anything: 1 })\nlet name = "x"\nawait workflow(name)'
        )
        == []
    )


def test_tasks_and_workflows_are_judged_apart() -> None:
    assert [
        code
        for code, *_ in shown('await task("x1")\nawait workflow("x1")', Surroundings(tasks=TASKS))
    ] == ["F103"]
    assert [
        code
        for code, *_ in shown(
            'await task("x1")\nawait workflow("x1")', Surroundings(workflows=frozenset())
        )
    ] == ["F105"]


def test_each_of_several_files_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which workflows there are in the others is known before any is checked."""
    read: list[str] = []
    run = Lexer.run
    monkeypatch.setattr(Lexer, "run", lambda self: read.append("") or run(self))
    texts = {
        "a.flow": 'workflow a() {\n  return await workflow("b")\n}\n',
        "b.flow": "workflow b() {\n  return 1\n}\n",
    }
    parsed = [parse_text(text, file) for file, text in texts.items()]
    names = frozenset().union(*(file.names for file in parsed))
    checked = [file.check(Surroundings(None, names)) for file in parsed]
    assert ([each.diagnostics for each in checked], len(read)) == ([[], []], 2)


# results

LINE = ValueShape((Kind("an object", name="Line", fields={"sku": of_words([TEXT])}),))
ORDER = ValueShape(
    (
        Kind(
            "an object",
            name="Order",
            fields={
                "id": of_words([TEXT]),
                "lines": ValueShape((Kind("a list", items=LINE),)),
                "more": None,
            },
        ),
    )
)
GIVING = Surroundings(
    {"load": TaskShape({}, frozenset(), result=ORDER), "any": TaskShape({}, frozenset())}
)
MISUSED = [
    ('let o = await task("load")\nreturn o.idd', "idd", "did you mean `id`?"),
    ('let o = await task("load")\nreturn o["idd"]', '"idd"', "did you mean `id`?"),
    ('let o = await task("load")\nreturn o.id.x', "x", "correct it, or the hint of the task"),
    ('let o = await task("load")\nreturn o.lines[0].sk', "sk", "did you mean `sku`?"),
    ('let o = await task("load")\nfor (l in o.lines) { log(l.sk) }', "sk", "did you mean `sku`?"),
    ('let o = await task("load")\nreturn [l.sk for l in o.lines]', "sk", "did you mean `sku`?"),
    ('let o = await task("load", {}, { retries: 1 })\nreturn o.idd', "idd", "did you mean `id`?"),
    ('let o = await task("load")\nreturn o.more ?? o.idd', "idd", "did you mean `id`?"),
]


@pytest.mark.parametrize(("text", "words", "help"), MISUSED)
def test_field_that_the_hint_of_a_task_does_not_have(text: str, words: str, help: str) -> None:
    for written in (text, f"workflow main {{\n{text}\n}}"):
        assert [(code, at, advice) for code, _, at, advice in shown(written, GIVING)] == [
            ("F106", words, help)
        ]


FINE = [
    'let o = await task("load")\nreturn [o.idd ?? 1, o["idd"] ?? 1, o.more ?? o.idd ?? 1]',
    'let o = await task("load")\nreturn [o.id, o.lines[0].sku, o.more.x, o?.idd]',
    'let o = await task("load", {}, { settle: true })\nreturn o.status',
    'let o = await task("load")\no = { idd: 1 }\nreturn o.idd',
    'let o = await task("load")\no.idd = 1\nreturn o.idd',
    'let o = await task("any")\nreturn o.whatever',
    'let o = await workflow("main")\nreturn o.whatever',
    'let [o] = await all([task("load")])\nreturn o.idd',
    'let name = "load"\nlet o = await task(name)\nreturn o.idd',
]


@pytest.mark.parametrize("text", FINE)
def test_field_that_may_be_there_is_not_judged(text: str) -> None:
    assert shown(f"workflow main {{\n{text}\n}}", GIVING) == []


def test_where_there_may_be_other_tasks_none_is_missing() -> None:
    open_ = KNOWN.replace(all_tasks=False)
    assert shown('await task("nope")\nawait approval({ role: "a", notify: "nope" })', open_) == []
    assert [code for code, *_ in shown('await task("ping", { x: 1 })', open_)] == ["F104"]


def test_inputs_inside_lists_and_objects_are_compared() -> None:
    known = Surroundings({"put": TaskShape({"order": ORDER}, frozenset({"order"}))})
    assert [(message, words) for _, message, words, _ in shown(
        'await task("put", { order: { id: 7, lines: [{ sku: "a" }, { sku: 1 }] } })', known
    )] == [("`order.id` of task `put` must be text, not a number",
            '{ id: 7, lines: [{ sku: "a" }, { sku: 1 }] }')]  # fmt: skip
