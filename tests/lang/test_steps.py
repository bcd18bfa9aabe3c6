"""What is said about JSON steps that are wrong: code, place, pointer, and what to write instead."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.ir.verify import verify
from rhythm.lang.flow.rules.surroundings import Surroundings, TaskShape
from rhythm.lang.languages import compile_text, parse_text
from rhythm.lang.source import Diagnostic, render
from rhythm.lang.steps.check import check_steps
from rhythm.lang.steps.compile import compile_steps
from rhythm.lang.steps.problems import CODES
from rhythm.limits import DEFAULT_LIMITS
from tests.support.steps import (
    FILE,
    allow,
    approval,
    block,
    choice,
    document,
    end,
    parallel,
    task,
    wait,
)

COMPARED = {"field": "x", "operator": "eq", "value": 1}


def found(text: str, known: Surroundings | None = None) -> list[Diagnostic]:
    return compile_steps(text, FILE, known).diagnostics


def told(text: str, known: Surroundings | None = None) -> list[tuple[str, str, str]]:
    """Code, pointer and message of each diagnostic."""
    return [(each.code, each.label, each.message) for each in found(text, known)]


# text, code, what is under the caret, part of the message or help
TEXTS: list[tuple[str, str, str, str]] = [
    ("", "S001", "", "the file is empty"),
    ("  \n", "S001", "", "the file is empty"),
    ("nope", "S001", "nope", 'write "nope"'),
    ('{"a": True}', "S001", "True", "write true"),
    ("{'a': 1}", "S001", "'", "JSON has only double quotes"),
    ("{a: 1}", "S001", "a", 'write "a"'),
    ('{"a" 1}', "S001", "1", 'a key is followed by ":"'),
    ('{"a": 1 "b": 2}', "S001", '"', '"," or "}" was expected here'),
    ('{"a": 1,}', "S001", ",", "a comma after the last element"),
    ('{"a": [1, 2,]}', "S001", ",", "a comma after the last element"),
    ('{"a": 1', "S001", "{", "a bracket that is never closed"),
    ("{} {}", "S001", "{", "the end of the file was expected here"),
    ('{"a": // no\n1}', "S001", "//", "JSON has no comments"),
    ('{"a": "b\nc"}', "S001", '"b', "text that does not end on its line"),
    ('{"a": "\\x"}', "S001", '"\\x"}', "an escape that JSON does not know"),
    ('{"a": "\\ud800"}', "S001", '"\\ud800"', "half of a surrogate pair"),
    ('{"a": 01}', "S001", "0", "a number was expected here"),
    ('{"a": .5}', "S001", ".", "a value was expected here"),
    ('{"a": -}', "S001", "-", "a number was expected here"),
    ('{"a": 1e999}', "S002", "1e999", "a number that does not fit"),
    ('{"a": 9223372036854775808}', "S002", "9223372036854775808", "a number that does not fit"),
    ('{"a": ' + "9" * 5000 + "}", "S002", "9" * 5000, "a number that does not fit"),
    ("[" * 100, "S002", "[", "nested more than 64 deep"),
    ('{"a": 1, "a": 2}', "S003", '"a"', 'the key "a" stands twice'),
    ("[]", "S006", "[]", "a workflow is an object"),
    ('{"workflow_id": "a", "steps": []}', "S006", "[]", "it is a list of steps"),
    ('{"workflow_id": "a", "steps": [1]}', "S006", "1", "a step is an object"),
    ("{" + " " * 262_144 + "}", "S002", "", "the file has 262,146 bytes"),
    ("[" + "1," * 50_000 + "1]", "S002", "1", "more than 50,000 values"),
]


@pytest.mark.parametrize(
    ("text", "code", "under", "says"),
    TEXTS,
    ids=[f"{i}-{text[:12]!r}" for i, (text, *_) in enumerate(TEXTS)],
)
def test_text_that_is_no_workflow(text: str, code: str, under: str, says: str) -> None:
    [first, *_] = found(text)
    assert (first.code, text[first.start : first.end]) == (code, under)
    assert says in "\n".join((first.message, *first.help))


WRONG: list[tuple[str, str, str, str]] = [  # document, code, pointer, part of the message or help
    (document(allow(), version=1), "S006", "/version", "text of at most 200 characters"),
    (document(allow(), workflow_id="a/b"), "S006", "/workflow_id", "letters, digits, -, _ and ."),
    (document(allow(), workflow_id="x" * 201), "S002", "/workflow_id", "find a shorter name"),
    (document(allow(), on=[]), "S006", "/on", "a name, or a list of names"),
    (document(allow(), timeout="soon"), "S006", "/timeout", '"soon" is not a duration'),
    (document(allow(), timeout="${x}"), "S006", "/timeout", "is not a duration"),
    (document(allow(), schedule=7), "S006", "/schedule", "a schedule needs `cron`"),
    (document(allow(), schedule=["0 9 * * *", "0 25 * * *"]), "S006", "/schedule/1", "25"),
    (document(allow(), schedule={"cron": "0 9 * * *", "zone": "UTC"}), "S006", "/schedule",
        "tz, overlap, catch_up, inputs"),
    (document(allow(), titel="x"), "S004", "/titel", "possible are workflow_id, version, name"),
    (document(allow(), que="x"), "S004", "/que", 'did you mean "queue"?'),
    ('{"steps": [{"id": "a", "type": "end"}]}', "S005", "", 'a workflow needs "workflow_id"'),
    ('{"workflow_id": "a"}', "S005", "", 'a workflow needs "steps"'),
    (document({"id": "a"}), "S005", "/steps/0", 'a step needs "type"'),
    (document({"type": "end"}), "S005", "/steps/0", 'an end step needs "id"'),
    (document({"id": "a b", "type": "end"}), "S006", "/steps/0/id", "letters, digits, - and _"),
    (document({"id": "a", "type": "actoin"}), "S007", "/steps/0/type", 'did you mean "action"?'),
    (document({"id": "a", "type": 7}), "S007", "/steps/0/type", "possible are condition, action"),
    (document(task("a"), end("a")), "S008", "/steps/1/id", 'two steps have the id "a"'),
    (document(parallel("p", [[task("p")]])), "S008", "/steps/0/branches/0/0/id",
        'two steps have the id "p"'),
    (document(task("a", next="alow"), allow("allow")), "S009", "/steps/0/next",
        'did you mean "allow"?'),
    (document(choice("a", COMPARED, "x"), allow("yes")), "S009", "/steps/0/on_true",
        "possible are a, yes"),
    (document(approval(on_false="x")), "S009", "/steps/0/on_false", 'there is no step "x"'),
    (document(wait("a", event="e", timeout=1, on_timeout="x")), "S009", "/steps/0/on_timeout",
        'there is no step "x"'),
    (document(task("a", on_failure="x")), "S009", "/steps/0/on_failure", 'there is no step "x"'),
    (document(parallel("p", [[task("a", next="b")]]), task("b")), "S009",
        "/steps/0/branches/0/0/next", "is in another list"),
    (document(parallel("p", [[task("a")]], next="a")), "S009", "/steps/0/next",
        "is in another list"),
    (document(choice("a", COMPARED, "b", "b"), choice("b", COMPARED, "a", "a")), "S010",
        "/steps/0/id", "go round for ever: a → b → a"),
    (document(choice("a", COMPARED, "a", "b"), end("b")), "S010", "/steps/0/id",
        "go round for ever: a → a"),
    (document({"id": "a", "type": "condition", "on_true": "b"}, end("b")), "S005", "/steps/0",
        'a condition step needs "condition"'),
    (document(choice("a", COMPARED)), "S005", "/steps/0", 'needs "on_true" or "on_false"'),
    (document(choice("a", 7, "b"), end("b")), "S006", "/steps/0/condition",
        "a condition is an object"),
    (document(choice("a", {"field": "x"}, "b"), end("b")), "S005", "/steps/0/condition",
        'a condition needs "operator"'),
    (document(choice("a", {"operator": "eq", "value": 1}, "b"), end("b")), "S005",
        "/steps/0/condition", 'a condition needs "field"'),
    (document(choice("a", {**COMPARED, "op": 1}, "b"), end("b")), "S004", "/steps/0/condition/op",
        "possible are field, operator"),
    (document(choice("a", {**COMPARED, "operator": ">="}, "b"), end("b")), "S007",
        "/steps/0/condition/operator", 'did you mean "gte"?'),
    (document(choice("a", {**COMPARED, "operator": "gtt"}, "b"), end("b")), "S007",
        "/steps/0/condition/operator", 'did you mean "gt"?'),
    (document(choice("a", {"field": "x", "operator": "eq"}, "b"), end("b")), "S005",
        "/steps/0/condition", '"eq" needs a "value"'),
    (document(choice("a", {**COMPARED, "operator": "in"}, "b"), end("b")), "S006",
        "/steps/0/condition/value", '"value" of "in" is a list'),
    (
        document(choice("a", {"field": "x", "operator": "exists", "value": 1}, "b"), end("b")),
        "S006", "/steps/0/condition/value", "is true or false",
    ),
    (
        document(choice("a", {"field": "x", "operator": "exists", "default": 1}, "b"), end("b")),
        "S012", "/steps/0/condition/default", 'takes no "default"',
    ),
    (document(choice("a", {"and": [], "or": []}, "b"), end("b")), "S012", "/steps/0/condition/and",
        "stands alone"),
    (document(choice("a", {"and": []}, "b"), end("b")), "S006", "/steps/0/condition/and",
        "takes a list of conditions"),
    (document(choice("a", {"or": [{"not": {"field": "x"}}]}, "b"), end("b")), "S005",
        "/steps/0/condition/or/0/not", 'needs "operator"'),
    (document(choice("a", {**COMPARED, "field": "x..y"}, "b"), end("b")), "S011",
        "/steps/0/condition/field", "no path into the context"),
    (document(choice("a", {**COMPARED, "field": []}, "b"), end("b")), "S011",
        "/steps/0/condition/field", "no path into the context"),
    (document(choice("a", {**COMPARED, "field": "ctx.i"}, "b"), end("b")), "S011",
        "/steps/0/condition/field", "`ctx` has no such part"),
    (document(choice("a", {**COMPARED, "field": "x." * 16 + "y"}, "b"), end("b")), "S011",
        "/steps/0/condition/field", "no path"),
    (document(end("a", {"b": ["${x"]})), "S011", "/steps/0/result/b/0", "never closed"),
    (document(end("a", "${}")), "S011", "/steps/0/result", "no path into the context"),
    (document(task("a", inputs={"x": "${a b.}"})), "S011", "/steps/0/inputs/x",
        "no path into the context"),
    (document(approval(on={"data": "${"})), "S011", "/steps/0/requires/data", "never closed"),
    (document(block("a", execute=[{"type": "notify", "to": "${"}])), "S011",
        "/steps/0/execute/0/to", "never closed"),
    (document({"id": "a", "type": "action", "action": "deny"}), "S007", "/steps/0/action",
        'did you mean "block"?'),
    (document(allow("a", requires={"type": "approval", "role": "x"})), "S012", "/steps/0/requires",
        'write "block"'),
    (document(block("a", on_true="a")), "S012", "/steps/0/on_true",
        'without "requires" nothing leads to "on_true"'),
    (document(block("a", requires={"type": "aproval", "role": "x"})), "S007",
        "/steps/0/requires/type", "only an approval"),
    (document(block("a", requires={"type": "approval"})), "S005", "/steps/0/requires",
        '`requires` needs "role"'),
    (document(approval(on={"quorum": 0})), "S006", "/steps/0/requires/quorum",
        "a whole number from 1 to 1,000,000"),
    (document(approval(on={"escalate": 7})), "S006", "/steps/0/requires/escalate",
        "whom to ask next is a role"),
    (document(approval(on={"escalate": ["a", {"rol": "b"}]})), "S004",
        "/steps/0/requires/escalate/1/rol", 'did you mean "role"?'),
    (document(block("a", execute=[{"to": "x"}])), "S005", "/steps/0/execute/0",
        'what is executed needs "type"'),
    (document(block("a", execute=[{"type": "mail"}])), "S007", "/steps/0/execute/0/type",
        "possible are notify, task, publish"),
    (document(block("a", execute=[{"type": []}])), "S007", "/steps/0/execute/0/type",
        "possible are notify, task, publish"),
    (document(block("a", execute=[{"type": "publish"}])), "S005", "/steps/0/execute/0",
        'an event to publish needs "event"'),
    (document(block("a", execute="x")), "S006", "/steps/0/execute", "a list of objects"),
    (document(wait("a")), "S005", "/steps/0", "says what it waits for"),
    (document(wait("a", event="e", signal="s", timeout=1)), "S012", "/steps/0/signal",
        "waits for one thing"),
    (document(wait("a", signal="e", where={}, timeout=1)), "S012", "/steps/0/where",
        '"where" is for events'),
    (document(wait("a", timeout="1h", **{"for": 1})), "S012", "/steps/0/timeout",
        "is for events and signals"),
    (document(wait("a", event="e", on_timeout="a")), "S012", "/steps/0/on_timeout",
        'needs a "timeout"'),
    (document(wait("a", **{"for": "x"})), "S006", "/steps/0/for", '"x" is not a duration'),
    (document(task("a", retries=-1)), "S006", "/steps/0/retries", "a whole number from 0 to 1,000,000"),
    (document(task("a", backoff={"intial": 1})), "S004", "/steps/0/backoff/intial",
        'did you mean "initial"?'),
    (document(parallel("a", [])), "S006", "/steps/0/branches", "lists of steps"),
    (document(parallel("a", {"x": []})), "S006", "/steps/0/branches/x",
        "a branch is a list of steps"),
    (document(parallel("a", {"x/y": [{"id": "b"}]})), "S005", "/steps/0/branches/x~1y/0",
        'a step needs "type"'),
    (document({"id": "a", "type": "end", "status": "done"}), "S007", "/steps/0/status",
        "completed, failed, blocked"),
    (document({"id": "a", "type": "end", "status": "failed", "result": 1}), "S012",
        "/steps/0/result", "only what completes has a result"),
    (document({"id": "a", "type": "end", "reason": "x"}), "S012", "/steps/0/reason",
        "needs no reason"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "pointer", "says"),
    WRONG,
    ids=[f"{i}-{case[1]}-{case[2]}" for i, case in enumerate(WRONG)],
)
def test_what_is_wrong_is_said_at_its_place(text: str, code: str, pointer: str, says: str) -> None:
    compilation = compile_steps(text, FILE)
    [error, *more] = compilation.errors
    assert (error.code, error.label, [each.code for each in more]) == (code, pointer, [])
    assert says in "\n".join((error.message, *error.help))
    assert compilation.programs == ()
    assert compilation.workflows == ()


WARNED: list[tuple[str, str, str, str]] = [
    (document(end("a"), end("b")), "S101", "/steps/1/id", 'nothing leads to the step "b"'),
    (
        document(parallel("p", [[end("a"), end("b")]])),
        "S101",
        "/steps/0/branches/0/1/id",
        'nothing leads to the step "b"',
    ),
    (
        document(task("a"), choice("b", COMPARED, "a")),
        "S102",
        "/steps/0/id",
        "without a wait: a → b → a",
    ),
    (document(wait("a", event="e")), "S201", "/steps/0/event", "this may wait for ever"),
    (document(wait("a", signal="e")), "S201", "/steps/0/signal", "this may wait for ever"),
]


@pytest.mark.parametrize(("text", "code", "pointer", "says"), WARNED)
def test_what_may_be_wrong_stops_nothing(text: str, code: str, pointer: str, says: str) -> None:
    compilation = compile_steps(text, FILE)
    [warning] = compilation.diagnostics
    assert (warning.code, warning.label) == (code, pointer)
    assert says in warning.message
    assert len(compilation.programs) == 1


def test_going_round_with_a_wait_is_fine() -> None:
    assert told(document(task("a"), wait("w", **{"for": "1m"}), choice("b", COMPARED, "a"))) == []
    assert told(document(approval(on_false="ask"))) == []


KNOWN = Surroundings(
    {
        "pay": TaskShape({"amount": None, "note": None}, frozenset({"amount"})),
        "any": TaskShape({}, frozenset(), True),
    }
)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (task("a", "pay", inputs={"amount": 1}), []),
        (task("a", "pay", inputs="${x}"), []),
        (task("a", "any", inputs={"x": 1}), []),
        (task("a", "pya"), [("S103", "/steps/0/task", "no task `pya` is registered here")]),
        (task("a", "pay"), [("S104", "/steps/0/task", "task `pay` also needs `amount`")]),
        (
            task("a", "pay", inputs={"amount": 1, "nte": 2}),
            [("S104", "/steps/0/inputs/nte", "task `pay` has no input `nte`")],
        ),
        (
            block("a", execute=[{"type": "notify"}]),
            [("S103", "/steps/0/execute/0/type", "no task `notify` is registered here")],
        ),
        (
            block("a", execute=[{"type": "task", "task": "x"}]),
            [("S103", "/steps/0/execute/0/task", "no task `x` is registered here")],
        ),
        (
            parallel("p", [[task("a", "x")]]),
            [("S103", "/steps/0/branches/0/0/task", "no task `x` is registered here")],
        ),
    ],
)
def test_tasks_are_looked_up_where_they_are_known(
    step: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    assert told(document(step), KNOWN) == expected


def test_every_problem_is_reported_at_once() -> None:
    text = document(
        choice("a", {"field": "", "operator": "is", "value": 1}, "x"),
        task("b", inputs="${", retry=1),
        {"id": "c", "type": "x"},
    )
    assert sorted(each.code for each in compile_steps(text, FILE).errors) == [
        "S004",
        "S007",
        "S007",
        "S009",
        "S011",
        "S011",
    ]


def test_a_problem_is_shown_with_its_line_caret_and_pointer() -> None:
    text = (
        '{\n  "workflow_id": "a",\n  "steps": [\n    { "id": "b", "type": "end", "rslt": 1 '
        "}\n  ]\n}"
    )
    [problem] = found(text)
    compilation = compile_steps(text, FILE)
    assert render(compilation.source, problem).splitlines() == [
        'error[S004]: an end step has no "rslt"',
        "  ┌─ main.steps.json:4:33",
        '4 │     { "id": "b", "type": "end", "rslt": 1 }',
        "  │                                 ^^^^^^ /steps/0/rslt",
        '  = help: did you mean "result"?',
    ]


def test_every_code_is_in_a_test() -> None:
    tested = {case[1] for case in (*TEXTS, *WRONG, *WARNED)} | {"S103", "S104"}
    assert tested == CODES.keys()


# files


def test_the_name_of_a_file_says_what_it_is() -> None:
    steps, flow = document(allow()), "return 1"
    assert compile_text(steps, "a.steps.json").programs[0].language == "steps"
    assert compile_text(steps, "a.json").programs[0].language == "steps"
    assert compile_text(steps, "-").programs[0].language == "steps"
    assert compile_text(flow, "-").programs[0].language == "flow"
    assert compile_text(flow, "a.flow").programs[0].language == "flow"
    assert (
        parse_text(steps, "a.json").names,
        parse_text(flow, "a.flow").names,
        parse_text("{", "a.json").names,
    ) == (
        {"main"},
        {"a"},
        frozenset(),
    )
    assert parse_text("{", "a.json").check().errors
    assert len(parse_text(steps, "a.json").check().workflows) == 1


def test_the_whole_text_is_the_version() -> None:
    one, two = (
        compile_steps(document(allow()), "a.json"),
        compile_steps(document(allow(), version="2"), "b.json"),
    )
    assert one.programs[0].version != two.programs[0].version
    assert compile_steps(document(allow()), "c.json").programs[0].version == one.programs[0].version


def test_what_the_document_says_of_the_workflow_are_options_of_its_program() -> None:
    [program] = compile_steps(
        document(allow(), version="1.0", name="Title", on="e", queue="q", timeout="1h")
    ).programs
    assert program.options == {
        "version": "1.0",
        "title": "Title",
        "on": ["e"],
        "queue": "q",
        "timeout": 3600.0,
    }
    daily, hourly = {"cron": "0 9 * * *", "tz": "Europe/Berlin"}, {"cron": "0 * * * *"}
    [program] = compile_steps(document(allow(), schedule=[daily, "0 * * * *"])).programs
    assert program.options == {"schedule": [daily, hourly]}
    [program] = compile_steps(document(allow(), on=["e", "f"])).programs
    assert program.options == {"on": ["e", "f"]}


# whatever the text is

SAMPLE = json.loads(
    document(
        choice(
            "if",
            {
                "or": [
                    COMPARED,
                    {"not": {"and": [COMPARED, {"field": "a.0", "operator": "exists"}]}},
                ]
            },
            "ask",
            "t",
        ),
        approval(
            "ask",
            on={"quorum": 2, "data": ["${x}"]},
            on_false="stop",
            execute=[{"type": "notify", "to": "${x} ${y}"}],
        ),
        task("t", inputs={"a": "${ctx.id}"}, retries=1, on_failure="stop"),
        parallel("p", {"a": [task("x"), end("y")], "b": [wait("z", event="e", timeout=1)]}),
        wait("w", signal="s", timeout="1h", on_timeout="if"),
        end("end", {"a": 1}),
        block("stop", reason="x"),
    )
)
WORDS = st.sampled_from(
    [
        "id",
        "type",
        "condition",
        "wait",
        "a",
        "if",
        "ask",
        "${x}",
        "${",
        "field",
        "and",
        "1h",
        "",
        "x.y",
        "eq",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | WORDS
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, below in inner for place in places(below, (*path, key)))]


PLACES = places(SAMPLE)


@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=3))
def test_any_document_compiles_or_is_refused(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    changed = copy.deepcopy(SAMPLE)
    for path, value in changes:
        target = changed
        try:
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = value
        except (LookupError, TypeError):
            continue
    compilation = compile_steps(json.dumps(changed), FILE)
    assert compilation.errors or compilation.programs


@given(
    st.text(alphabet="{}[]:,\"\\ \n0123456789.eE+-truefalsn'/*é", max_size=40)
    | st.text(max_size=40)
)
def test_any_text_is_checked_as_json_is(text: str) -> None:
    [first, *_] = [*check_steps(text, FILE).errors, None]
    try:
        json.loads(text, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError, RecursionError):
        assert first is not None
    else:
        assert first is None or first.code != "S001" or text.startswith("\ufeff") or "\\u" in text


def test_the_deepest_conditions_and_values_can_be_run() -> None:
    condition: Any = {
        "field": ".".join(["x"] * 16),
        "operator": "eq",
        "value": "${" + ".".join(["y"] * 16) + "}",
    }
    for _ in range(10):
        condition = (
            {"and": [condition] * 2} if len(json.dumps(condition)) < 50_000 else {"not": condition}
        )
    value: Any = "${x}"
    for _ in range(DEFAULT_LIMITS.nesting - 5):
        value = [value]
    compilation = compile_steps(document(choice("a", condition, "b"), end("b", value)))
    assert [each.message for each in compilation.errors] == []
    verify(compilation.programs[0])
    deeper = compile_steps(document(choice("a", {"not": condition}, "b"), end("b")))
    assert {each.code for each in deeper.errors} == {"S002"}


def test_wait_is_not_for_ever_if_the_workflow_has_a_timeout() -> None:
    wait = {"id": "a", "type": "wait", "signal": "go"}
    for limit, codes in (({}, ["S201"]), ({"timeout": "3d"}, [])):
        text = json.dumps({"workflow_id": "w", **limit, "steps": [wait]})
        assert [found.code for found in check_steps(text).diagnostics] == codes
