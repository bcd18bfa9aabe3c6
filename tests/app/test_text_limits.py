"""Every text that somebody gives has a limit: the methods of `Rhythm`, one by one, and the commands
of workflows.

The table has a call for each public method. A method or a text that is not in it fails the first
test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rhythm import Actor, Rhythm, RhythmError
from rhythm.app import Start
from rhythm.app.checks import LARGEST_PAGE
from rhythm.limits import TEXTS
from tests.app.conftest import MakeApp

LONG = "x" * (TEXTS.known_id + 1)  # longer than any text may be
FLOWS = """
workflow wait(inputs) { return await signal("go") }
workflow ask(inputs) { await approval({ role: "finance" }) }
"""
# what each takes besides the text that is tried; `E` is an execution, `A` an approval
CALLS: dict[str, dict[str, Any]] = {
    "register": {},
    "workflows": {},
    "workflow": {"name": "wait"},
    "program": {"name": "wait"},
    "start_workflow": {"name": "wait"},
    "start_many": {"name": "wait", "requests": [None]},
    "queue_task": {"name": "t"},
    "queue_many": {"name": "t", "requests": [None]},
    "get": {"id": "E"},
    "list": {},
    "count": {},
    "children": {"id": "E"},
    "result": {"id": "E"},
    "trace": {"id": "E"},
    "trace_page": {"id": "E"},
    "logs": {"id": "E"},
    "signal": {"id": "E", "name": "s"},
    "publish": {"type": "e"},
    "cancel": {"id": "E"},
    "retry": {"id": "E"},
    "pause_queue": {"name": "q"},
    "resume_queue": {"name": "q"},
    "run": {"name": "wait"},
    "worker": {},
    "approvals": {},
    "approval": {"id": "A"},
    "approve": {"id": "A", "by": "bob"},
    "reject": {"id": "A", "by": "bob"},
    "escalate": {"id": "A", "by": "bob"},
    "pause": {"id": "E"},
    "resume": {"id": "E"},
    "status": {"id": "E"},
    "resume_options": {"id": "E"},
    "resume_requests": {"id": "E"},
    "resume_page": {"id": "E"},
    "create_token": {"name": "ada"},
    "revoke_token": {"id": "0" * 12},
    "change_token": {"id": "0" * 12},
    "authenticate": {},
    "audit": {},
    "verify_audit": {},
    "terminate": {"id": "E"},
    "bulk": {"action": "pause", "workflow": "wait"},
    "why": {"id": "E"},
    "schedule": {"name": "s", "workflow": "wait", "cron": "0 0 1 1 *"},
    "schedules": {},
    "get_schedule": {"name": "s"},
    "next_times": {"name": "s"},
    "pause_schedule": {"name": "s"},
    "resume_schedule": {"name": "s"},
    "run_schedule": {"name": "s"},
    "delete_schedule": {"name": "s"},
}
WITHOUT_TEXTS = {"close", "start", "tokens", "workers", "queues", "overview", "server"}
# the gate of payloads has its own limits
PAYLOADS = {"inputs", "payload", "data", "requests", "connection", "settings"}
# types of parameters
TEXTUAL = (
    "str",
    "Id",
    "By",
    "Actor",
    "OnConflict",
    "Overlap",
    "Then",
    "Action",
    "Every",
    "Mapping",
)
ASKED = {"program", "authenticate"}  # they find nothing
ONE_OF = {"every": {"cron": None}, "at": {"cron": None}}  # what goes with the text that is tried


def texts(method: str) -> list[str]:
    """The parameters that take texts."""
    parameters = inspect.signature(getattr(Rhythm, method)).parameters.values()
    return [
        p.name
        for p in parameters
        if p.name not in PAYLOADS and any(word in str(p.annotation) for word in TEXTUAL)
    ]


TRIED = [(method, text) for method in CALLS for text in texts(method)]


def test_every_public_method_is_in_the_table() -> None:
    public = {
        name
        for name, _ in inspect.getmembers(Rhythm, inspect.isfunction)
        if not name.startswith("_")
    }
    assert public == CALLS.keys() | WITHOUT_TEXTS
    assert [name for name in WITHOUT_TEXTS if texts(name)] == []
    assert ("schedule", "cron") in TRIED
    assert len(TRIED) > 100


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    app = make_app(flows=(FLOWS,))
    app.schedule("s", "wait", cron="0 0 1 1 *")
    app.start_workflow("wait", id="E")
    return app


def value_of(text: str) -> Any:
    return {LONG: 1} if text == "attributes" else LONG


def test_every_text_that_is_too_long_is_refused_in_few_words(app: Rhythm) -> None:
    """By the application itself: nothing so long is asked of a database, and nothing is stored."""
    wrong: list[str] = []
    for method, text in TRIED:
        given = {**CALLS[method], **ONE_OF.get(text, {}), text: value_of(text)}
        args = (
            [f"workflow w {{ return '{LONG}' }}" * 20]
            if method == "register" and text == "sources"
            else []
        )
        given.pop("sources", None)
        try:
            answer = getattr(app, method)(*args, **given)
        except (ValueError, RhythmError, OSError) as problem:
            if len(str(problem)) > 2000 and method != "register":
                wrong.append(f"{method}({text}=…) repeats what it was given")
        else:
            if not (method in ASKED and answer is None):
                wrong.append(f"{method}({text}=…) is taken")
    assert wrong == []
    assert app.audit(action="execution.start", limit=1000).items == ()


@pytest.mark.parametrize(
    "field", [name for name in Start._fields if name not in ("inputs", "priority")]
)
def test_so_are_those_of_one_of_many_starts(app: Rhythm, field: str) -> None:
    with pytest.raises((ValueError, RhythmError), match=r"id|text|duration|attribute"):
        app.start_many("wait", [Start(**{field: value_of(field)})])


CRON = f"{'0,' * 95}0 0 1 1 *"  # of 199 characters
AT_LIMIT: dict[str, tuple[int, Callable[[Rhythm, int], object], str]] = {
    "name": (TEXTS.name, lambda app, n: app.queue_task("t" * n),
        "a task's name is a text of 1 to 200 printable characters"),
    "reason": (TEXTS.reason, lambda app, n: app.pause_queue("q", "r" * n),
        "reason has at most 1,000 characters, not 1,001"),
    "cron": (TEXTS.cron, lambda app, n: app.schedule("t", "wait", cron=CRON.rjust(n)),
        "cron has at most 200 characters, not 201"),
    "attributes": (
        TEXTS.attributes, lambda app,
        n: app.start_workflow("wait", attributes={f"a{i}": 1 for i in range(n)}),
        "an execution has at most 50 attributes, not 51",
    ),
    "attribute": (
        TEXTS.attribute_bytes - 2, lambda app,
        n: app.start_workflow("wait", attributes={"a": "x" * n}),
        "an attribute has at most 4,096 bytes; 'a' has 4,097",
    ),
    "roles": (
        TEXTS.roles, lambda app,
        n: app.create_token("ada", business_roles=[f"r{i}" for i in range(n)]),
        "there are at most 100 roles of a kind, not 101",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("limit", "call", "message"), AT_LIMIT.values(), ids=AT_LIMIT)
def test_a_text_of_exactly_its_limit_is_taken(
    app: Rhythm, limit: int, call: Callable[[Rhythm, int], object], message: str
) -> None:
    call(app, limit)
    with pytest.raises(ValueError, match=message):
        call(app, limit + 1)


def test_the_attributes_of_an_execution_are_limited_together(app: Rhythm) -> None:
    with pytest.raises(
        ValueError, match="the attributes of an execution have at most 16,384 bytes together"
    ):
        app.start_workflow("wait", attributes={f"a{i}": "x" * 4000 for i in range(5)})
    with pytest.raises(ValueError, match="at most 50 attributes"):
        app.bulk("pause", attributes={f"a{i}": 1 for i in range(51)})


@pytest.mark.parametrize(
    "actor",
    [
        Actor("x" * 201),
        Actor("a", ("x" * 201,)),
        Actor("a", tuple("ab" * 51)),
        Actor("a", token="x" * 201),
        Actor("a", source="x" * 201),
    ],
)
def test_so_is_whoever_acts(app: Rhythm, actor: Actor) -> None:
    with pytest.raises(ValueError, match=r"200|100"):
        app.cancel("E", by=actor)


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ('set_attribute("a", inputs.long)', "LimitExceeded", "the attribute `a` is over 4 KiB"),
        (
            "for (i in range(51)) { set_attribute(`a${i}`, 1) }",
            "LimitExceeded",
            "an execution has at most 50 attributes",
        ),
        (
            "for (i in range(5)) { set_attribute(`a${i}`, inputs.short) }",
            "LimitExceeded",
            "of 16,384 bytes together",
        ),
        (
            "set_attribute(inputs.long, 1)",
            "InvalidArgument",
            "a name of `set_attribute` has at most 200 characters",
        ),
        (
            'await approval({ role: "r", reason: inputs.long })',
            "InvalidArgument",
            "the reason of an approval has at most 4,000 characters",
        ),
        (
            'await approval({ role: "r", escalate: ["s" for i in range(21)] })',
            "InvalidArgument",
            "`escalate` has at most 20 stages",
        ),
        (
            'await event("e", { where: { a: inputs.long } })',
            "LimitExceeded",
            "`where` of an event is over 4 KiB",
        ),
    ],
)
def test_what_a_workflow_gives_is_limited_too(
    make_app: MakeApp, statement: str, code: str, message: str
) -> None:
    app = make_app(flows=(f"workflow w(inputs) {{ {statement} }}",))
    with pytest.raises(RhythmError, match=message) as failed:
        app.run("w", {"long": "x" * 5000, "short": "x" * 4000})
    assert code in str(failed.value)


def test_what_a_workflow_says_of_itself_within_the_limits_is_shown(make_app: MakeApp) -> None:
    each = "for (i in range(50)) {{ set_attribute(`a${{i}}`, {}) }}"
    app = make_app(
        flows=(f"workflow w {{ {each.format(1)}\n{each.format(2)}\nawait sleep(0.01) }}",)
    )
    app.run("w", id="w")
    assert app.get("w").attributes == {f"a{i}": 2 for i in range(50)}


def test_a_list_cuts_what_is_large_and_says_so_and_one_execution_is_whole(
    make_app: MakeApp,
) -> None:
    app = make_app(flows=("workflow w(inputs) { throw inputs }",))
    with pytest.raises(RhythmError):
        app.run("w", {"code": "Big", "message": "m" * 3000, "data": "d" * 100_000}, id="w")
    (shown,) = app.list(brief=True)
    assert shown.error == {"code": "Big", "message": "m" * 1000 + "…", "data": None, "cut": True}
    whole = app.get("w").error
    assert whole is not None
    assert (len(whole["message"]), len(whole["data"])) == (3000, 100_000)
    assert app.list(limit=LARGEST_PAGE).items[0].error == whole
    assert datetime.now(UTC) > shown.created_at
