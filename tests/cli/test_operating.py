"""`rhythm terminate`, `why`, a second `cancel`, and --all, on both databases."""

from __future__ import annotations

import json

import pytest

from rhythm.app import Rhythm
from rhythm.errors import ExecutionFailed
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
HOLD = 'workflow hold(inputs) {\n  let answer = await signal("go")\n  return answer\n}'
FAIL = 'workflow fail() {\n  throw "no"\n}'


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    app = make_app(flows=(HOLD, FAIL))
    for id in ("a", "b", "c"):
        app.start_workflow("hold", id=id, attributes={"customer": id})
    return app


def status(app: Rhythm, *ids: str) -> list[str]:
    return [app.get(id).status for id in ids]


def test_terminate_ends_each_and_tells_of_those_that_it_could_not(
    rhythm: Command, app: Rhythm
) -> None:
    ran = rhythm("terminate a b nobody a --by Ada")
    assert (ran.code, ran.out.splitlines()) == (
        1,
        [f"terminated {id}, with everything that it had started" for id in ("a", "b")],
    )
    assert ran.err.startswith("rhythm: there is no execution 'nobody'")
    again = rhythm("terminate a")
    assert (again.code, again.out, again.err) == (
        1,
        "",
        "rhythm: a has ended already: it was cancelled\n",
    )
    assert status(app, "a", "b", "c") == ["cancelled", "cancelled", "pending"]


def test_a_second_cancel_says_that_it_ended_it(rhythm: Command, app: Rhythm) -> None:
    assert rhythm("cancel a").out.startswith("asked a to end")
    assert (
        rhythm("cancel a").out
        == "terminated a: it was asked to end before, and had not finished that\n"
    )
    assert (rhythm("cancel a").code, status(app, "a")) == (1, ["cancelled"])


def test_one_command_for_many(rhythm: Command, app: Rhythm) -> None:
    assert rhythm("pause --all --workflow hold --dry-run").out == "3 executions would be paused\n"
    assert status(app, "a") == ["pending"]
    assert (
        rhythm("pause --all --workflow hold --limit 2 --reason why --by Ada").out
        == "2 executions were paused\n"
    )
    assert (app.get("a").paused_reason, app.get("a").paused_by, status(app, "c")) == (
        "why",
        "Ada",
        ["pending"],
    )
    assert rhythm("resume --all --attribute customer=b").out == "one execution was resumed\n"
    assert rhythm("resume --all").out == "one execution was resumed\n"
    assert rhythm("cancel --all --workflow none").out == "0 executions were asked to end\n"
    assert (
        rhythm("cancel --all --created-before 2020-01-01T00:00:00Z --dry-run").out
        == "0 executions would be asked to end\n"
    )
    assert (
        rhythm("cancel --all --status pending --queue default").out
        == "3 executions were asked to end\n"
    )
    assert (
        rhythm("terminate --all --created-after 2020-01-01T00:00:00Z").out
        == "3 executions were terminated\n"
    )
    retried = rhythm("retry --all --workflow hold")
    assert (retried.code, retried.out) == (0, "3 executions were retried\n")


def test_filter_chooses_among_all(rhythm: Command, app: Rhythm) -> None:
    dry = rhythm("cancel --all workflow:hold id:a,b --dry-run")
    assert (dry.code, dry.out) == (0, "2 executions would be asked to end\n")
    assert rhythm("pause --all id:a").out == "one execution was paused\n"
    assert rhythm("terminate --all -- -status:paused id:b").out == "one execution was terminated\n"
    assert rhythm("retry --all status:cancelled --workflow hold").out.startswith("one execution")
    assert app.count("status:paused") == 1


def test_those_that_cannot_be_retried_are_named(rhythm: Command, app: Rhythm) -> None:
    with app.worker(), pytest.raises(ExecutionFailed):
        app.start_workflow("fail", id="f").result("120s")
    for command in ("retry --all --workflow fail --dry-run", "retry --all --workflow fail"):
        ran = rhythm(command)
        assert (ran.code, ran.out) == (1, "one execution could not be retried\n")
        assert ran.err.startswith("rhythm: f: ")
    app.terminate("a")
    ran = rhythm("retry --all --dry-run")
    assert (ran.code, ran.out) == (1, "1 of 2 executions would be retried\n")
    ran = rhythm("retry --all --from-start --dry-run")
    assert (ran.code, ran.out) == (0, "2 executions would be retried\n")
    ran = rhythm("retry --all --from-start --workflow fail")
    assert (ran.code, ran.out) == (0, "one execution was retried\n")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cancel a --all", "give ids or --all, not both"),
        ("cancel workflow:hold,a age>1h", "a filter chooses among all executions: give --all, too"),
        ("pause workflow:hold", "a filter chooses among all executions: give --all, too"),
        ("cancel --all stauts:pending", "did you mean `status`, as in status:failed?"),
        (
            "cancel --all status:completed",
            "status is one of pending, running, suspended, paused to",
        ),
        ("cancel --all status:paused --status paused", "`status` is given twice"),
        ("cancel --workflow hold", "--workflow chooses among all executions: give --all, too"),
        ("pause --dry-run", "--dry-run chooses among all executions: give --all, too"),
        ("terminate", "ID is missing: name an execution, or give --all"),
        ("pause", "ID is missing: name an execution, or give --all"),
        ("retry --all --wait", "--wait is for one execution: leave out --all"),
        ("pause --all --timeout 1h", "--timeout is for one execution: leave out --all"),
        ("resume --all -i a=1", "data is for one execution: leave out -i or --all"),
        ("cancel --all --limit many", "--limit is a whole number, not many"),
        (
            "cancel --all --status completed",
            "status is one of pending, running, suspended, paused to cancel",
        ),
        ("cancel --all --created-before yesterday", "created_before is a time with its zone"),
        ("cancel --all --attribute a", "--attribute a: write KEY=TEXT, or KEY:=JSON"),
    ],
)
def test_what_is_not_clear_is_refused_and_changes_nothing(
    rhythm: Command, app: Rhythm, command: str, message: str
) -> None:
    ran = rhythm(command)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert status(app, "a", "b", "c") == ["pending"] * 3


def test_why_answers_in_words_and_for_programs(rhythm: Command, app: Rhythm) -> None:
    app.pause("a", "a break", "Ada")
    lines = rhythm("why a").out.splitlines()
    assert lines[0] == "hold a is paused"
    assert lines[1].startswith("- it was paused by Ada: a break, since ")
    assert lines[2].startswith("- it is ready, and no worker serves the queue `default`, since ")
    assert lines[3:] == ["", "  rhythm resume a", "  rhythm dev", "  rhythm worker --app FILE"]
    found = json.loads(rhythm("why b --output json").out)
    assert (found["id"], found["reasons"][0]["commands"], found["reasons"][0]["since"][-1]) == (
        "b",
        ["rhythm dev", "rhythm worker --app FILE"],
        "Z",
    )
    assert rhythm("why nobody").code == 1
    app.start_workflow("hold", id="later", delay="1h")
    assert rhythm("why later").out.splitlines()[1].startswith("- it is to begin later, since ")
    assert ", at 20" in rhythm("why later").out
