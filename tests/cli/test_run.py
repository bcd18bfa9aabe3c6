"""`rhythm run`: a workflow against real Python tasks, in one process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from rhythm.cli.output.trace import Trace
from tests.cli.conftest import Shell

Result = Callable[..., Any]


def test_result_is_printed_as_json_and_the_trace_goes_to_stderr(shell: Shell) -> None:
    shell.write(
        "hello.flow",
        (
            'let text = await task("greet", { name: inputs.name })\nlog("greeted", { text '
            "})\nreturn { text }"
        ),
    )
    ran = shell.rhythm("run", "hello.flow", "--app", "tasks.py", "-i", "name=Ada")
    assert ran.returncode == 0
    assert ran.stdout.endswith('{\n  "text": "Hello, Ada!"\n}\n')
    assert "▶ hello" in ran.stderr
    assert '✓ greet(name="Ada") = "Hello, Ada!"' in ran.stderr
    assert '· greeted {"text": "Hello, Ada!"}' in ran.stderr
    assert "■ completed hello" in ran.stderr


def test_json_output_is_one_document_whatever_tasks_print(shell: Shell) -> None:
    assert shell.run('return await task("greet", { name: "Ada" })') == {
        "status": "completed",
        "result": "Hello, Ada!",
        "error": None,
    }


def test_inputs_come_as_text_as_json_and_as_one_document(result: Result) -> None:
    flow = "return inputs"
    assert result(flow, "-i", "a=1", "-i", "b:=1", "-i", "c=x=y", "-i", "d:=[null]") == {
        "a": "1",
        "b": 1,
        "c": "x=y",
        "d": [None],
    }
    assert result(flow, "--inputs", '{"a": 1.5}') == {"a": 1.5}
    assert result(flow) == {}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-i", "x"], "write KEY=TEXT, or KEY:=JSON"),
        (["-i", "=1"], "write KEY=TEXT, or KEY:=JSON"),
        (["-i", "x:=nope"], "is not JSON"),
        (["-i", "x:=1e999"], "-i x:=1e999: x is 1e999, which is too large for a number"),
        (["-i", 'x:={"a": [1, {"b": 1, "b": 2}]}'], 'x.a[1] has the key "b" twice'),
        (["--inputs", '{"x": NaN}'], "--inputs: inputs.x is NaN: JSON has no such number"),
        (["--inputs", "{"], "is not JSON"),
        (["--inputs", "{}", "-i", "x=1"], "not with both"),
        (["--signal", "=1"], "write NAME=JSON"),
        (["--signal", "go=x"], "for the text write --signal 'go=\"x\"'"),
        (["-i", "name:=ada"], "for the text write -i name=ada"),
        (["--inputs", "{'a': 1}"], "JSON has double quotes"),
        (["--inputs", "tasks.py"], "to read that file write --inputs @tasks.py"),
        (["--app", "missing.py"], "there is no file missing.py"),
        (["--app", "missing_module"], "there is no file or module missing_module"),
        (["--workflow", "man"], "did you mean `main`?"),
    ],
)
def test_wrong_usage_says_what_to_write_and_exits_2(
    shell: Shell, args: list[str], message: str
) -> None:
    shell.write("main.flow", "return 1")
    ran = shell.rhythm("run", "main.flow", *args)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_file_that_does_not_compile_is_refused_with_its_diagnostics(shell: Shell) -> None:
    shell.write("main.flow", "return missing")
    for output in ("text", "json"):
        ran = shell.rhythm("run", "main.flow", "--output", output)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "error[F020]: unknown variable `missing`" in ran.stderr


def test_app_that_fails_to_load_shows_its_own_traceback(shell: Shell) -> None:
    shell.write("main.flow", "return 1")
    shell.write("broken.py", "import rhythm\n\n1 / 0\n")
    ran = shell.rhythm("run", "main.flow", "--app", "broken.py")
    assert ran.returncode == 2
    assert "broken.py cannot be loaded" in ran.stderr
    assert "line 3" in ran.stderr
    assert "ZeroDivisionError" in ran.stderr
    assert "importlib" not in ran.stderr


def test_two_tasks_of_one_name_are_refused_with_both_places(shell: Shell) -> None:
    shell.write("main.flow", "return 1")
    shell.write(
        "twice.py",
        "import rhythm\n\n@rhythm.task\ndef a(): ...\n\n@rhythm.task(name='a')\ndef b(): ...\n",
    )
    ran = shell.rhythm("run", "main.flow", "--app", "twice.py")
    assert ran.returncode == 2
    assert "two tasks are called 'a'" in ran.stderr
    assert "twice.py:3" in ran.stderr
    assert "twice.py:6" in ran.stderr


def test_failure_has_code_message_data_and_place(shell: Shell) -> None:
    assert shell.run('let x = 1\nthrow { code: "Oops", message: "no", data: x }')["error"] == {
        "code": "Oops",
        "message": "no",
        "data": 1,
        "file": "main.flow",
        "line": 2,
        "column": 1,
    }


def test_failure_in_text_mode_shows_the_line_of_the_workflow(shell: Shell) -> None:
    shell.write("main.flow", "let x = 1\nreturn x / 0")
    ran = shell.rhythm("run", "main.flow")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "failed[DivisionByZero]" in ran.stderr
    assert "main.flow:2" in ran.stderr
    assert "2 │ return x / 0" in ran.stderr


def test_branches_run_at_the_same_time(result: Result) -> None:
    """Each of the three waits for the other two: one after the other they would never finish."""
    assert result('return await all([task("meet", { n }) for n in [1, 2, 3]])') == [1, 2, 3]


def test_task_is_retried_until_it_succeeds(result: Result) -> None:
    assert result('return await task("flaky", { failures: 3 })') == 4


def test_task_fails_when_its_retries_are_spent(shell: Shell) -> None:
    error = shell.run('return await task("flaky", { failures: 9 }, { retries: 1, backoff: 0.01 })')[
        "error"
    ]
    assert (error["code"], error["message"]) == (
        "TaskFailed",
        "task `flaky` failed: ConnectionError: no route",
    )
    assert error["data"] == {"task": "flaky", "type": "ConnectionError"}


def test_task_failed_is_not_retried_and_keeps_its_code_and_data(shell: Shell) -> None:
    error = shell.run('return await task("refuse")')["error"]
    assert (error["code"], error["message"], error["data"]) == (
        "Declined",
        "no money",
        {"calls": 1},
    )


def test_retry_later_waits_without_spending_a_retry(result: Result) -> None:
    assert result('return await task("later")', "--fast-forward") == 3


@pytest.mark.parametrize(
    "task",
    ['task("hang", null, { timeout: 0.05 })', 'task("nap", { seconds: 60 }, { timeout: 0.05 })'],
)
def test_task_over_its_timeout_fails_whether_it_can_be_stopped_or_not(
    result: Result, task: str
) -> None:
    assert result(f"try {{ return await {task} }} catch (e) {{ return e.code }}") == "Timeout"


def test_losers_of_a_race_are_cancelled(shell: Shell) -> None:
    shell.write(
        "main.flow",
        'return await race([task("nap", { seconds: 60 }), task("nap", { seconds: 0.01 })])',
    )
    ran = shell.rhythm("run", "main.flow", "--app", "tasks.py")
    assert '"key": 1' in ran.stdout
    assert "cancelled nap(seconds=60)" in ran.stderr


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ('task("nobody")', "no task of this name is registered"),
        ('task("greet", { nme: 1 })', "missing a required argument: 'name'; it takes name, mark"),
        ('task("greet", { name: 1, colour: 2 })', "unexpected keyword argument 'colour'"),
        ('task("unstorable")', "result is of type object, which has no JSON form"),
        ('task("leave")', "SystemExit: 3"),
    ],
)
def test_task_that_cannot_be_run_or_stored_fails_clearly(
    shell: Shell, task: str, message: str
) -> None:
    error = shell.run(f"return await {task}")["error"]
    assert error["code"] == "TaskFailed"
    assert message in error["message"]


def test_fast_forward_skips_days_and_the_clock_of_the_workflow_follows(result: Result) -> None:
    flow = 'let before = now()\nawait sleep("30d")\nreturn date_diff(now(), before)'
    assert 30 * 86400 <= result(flow, "--fast-forward") < 30 * 86400 + 60


def test_sleep_really_waits_without_fast_forward(result: Result) -> None:
    began = time.monotonic()
    result("await sleep(0.3)")
    assert time.monotonic() - began >= 0.3


def test_fast_forward_does_not_overtake_running_tasks(result: Result) -> None:
    flow = 'let first = await race([task("nap", { seconds: 0.05 }), sleep("1h")])\nreturn first.key'
    assert result(flow, "--fast-forward") == 0


def test_signals_given_on_the_command_line_are_in_the_mailbox(result: Result) -> None:
    flow = 'let a = await signal("go")\nlet b = await signal("go")\nreturn [a, b]'
    assert result(flow, "--signal", 'go={"n": 1}', "--signal", "go=2") == [{"n": 1}, 2]
    assert (
        result('return await signal("go", { timeout: "1d", default: "none" })', "--fast-forward")
        == "none"
    )


@pytest.mark.parametrize(
    ("wait", "message"),
    [
        ('signal("go")', "signal `go` (pass --signal go=JSON)"),
        ('event("paid")', "event `paid`"),
        ('approval({ role: "boss" })', "approval `boss` (pass --approve boss or --reject)"),
        ('all([signal("a"), sleep(1)])', "signal `a`"),
        ('workflow("child")', "`child` waits for event `never`"),
    ],
)
def test_waiting_for_what_cannot_come_is_a_failure_and_not_a_hang(
    shell: Shell, wait: str, message: str
) -> None:
    shell.write("child.flow", 'return await event("never")')
    error = shell.run(f"return await {wait}", "--fast-forward")["error"]
    assert error["code"] == "Stuck"
    assert message in error["message"]
    assert (error["line"], error["column"]) == (1, 14)


APPROVALS = """
let first = await approval({ role: "boss", timeout: "1h" })
let both = await approval({ role: "board", quorum: 2, timeout: "1h" })
let last = await approval({ role: "boss", timeout: "1h" })
return [first.decision, first.comment, both.decision, last.decision]
"""


def test_approvals_are_decided_as_the_command_says(shell: Shell) -> None:
    ran = shell.run(
        APPROVALS, "--fast-forward", "--approve", "boss=a=b", "--approve", "board",
        "--approve", "board", "--reject", "boss",
    )  # fmt: skip
    assert ran["result"] == ["approved", "a=b", "approved", "rejected"]
    ran = shell.run(APPROVALS, "--fast-forward", "--approve", "board", "--reject", "boss=no")
    assert ran["result"] == ["rejected", "no", "expired", "expired"]


def test_decision_for_which_nobody_asks_is_told(shell: Shell) -> None:
    shell.write("main.flow", "return 1")
    ran = shell.rhythm("run", "main.flow", "--approve", "boss", "--quiet")
    assert (ran.returncode, ran.stdout) == (0, "1\n")
    assert ran.stderr == "note: `boss` was never asked to approve\n"
    refused = shell.rhythm("run", "main.flow", "--reject", "=why")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        2,
        "rhythm: --reject =why: write --reject ROLE=COMMENT",
    )


def test_approval_expires_and_events_reach_a_branch(result: Result) -> None:
    flow = """
    let asked = await approval({ role: "boss", timeout: "1h" })
    let waits = branch { return await event("paid", { where: { id: 7 } }) }
    await sleep(1)
    publish("paid", { id: 6 })
    publish("paid", { id: 7 })
    let event = await waits
    return [asked.decision, event.data]
    """
    assert result(f"workflow main(ctx, inputs) {{ {flow} }}", "--fast-forward") == [
        "expired",
        {"id": 7},
    ]


def test_child_workflows_come_from_the_same_file_or_from_beside_it(
    shell: Shell, result: Result
) -> None:
    shell.write("beside.flow", "return inputs.x * 10")
    flow = """
    workflow main(inputs) { return await all([workflow("inner", { x: 1 }), workflow("beside", { x: 2 })]) }
    workflow inner(inputs) { return inputs.x + 100 }
    """
    assert result(flow) == [101, 20]
    assert result(flow, "--workflow", "inner", "-i", "x:=5") == 105
    assert shell.run('await workflow("nowhere")')["error"]["message"].startswith(
        "there is no workflow `nowhere`; it is looked for"
    )
    assert (
        "did you mean `inner`?" in shell.run(flow.replace('"inner"', '"iner"'))["error"]["message"]
    )


def test_failure_of_a_child_says_which_and_why(shell: Shell) -> None:
    shell.write("child.flow", 'throw { code: "Oops", message: "broken" }')
    error = shell.run('await workflow("child")')["error"]
    assert (error["code"], error["message"], error["data"]["error"]["code"]) == (
        "ChildFailed",
        "`child` failed: broken",
        "Oops",
    )


def test_child_over_its_timeout_is_cancelled_and_runs_its_finally(shell: Shell) -> None:
    shell.write("child.flow", 'try { await sleep("1d") } finally { log("tidied") }')
    shell.write(
        "main.flow",
        'try { await workflow("child", {}, { timeout: "1h" }) } catch (e) { return e.code }',
    )
    ran = shell.rhythm("run", "main.flow", "--fast-forward")
    assert ran.stdout == '"Timeout"\n'
    assert "tidied" in ran.stderr


def test_what_a_failed_workflow_started_is_cancelled(shell: Shell) -> None:
    shell.write(
        "main.flow",
        'workflow main() {\nlet _t = task("nap", { seconds: 60 })\nawait sleep(0.05)\nthrow "no" }',
    )
    ran = shell.rhythm("run", "main.flow", "--app", "tasks.py")
    assert ran.returncode == 1
    assert "cancelled nap" in ran.stderr


def test_value_that_grows_without_end_stops_at_its_limit(shell: Shell) -> None:
    assert shell.run('let s = "x"\nwhile (true) { s += s }')["error"]["code"] == "LimitExceeded"


def test_thousand_tasks_at_once_are_all_run(result: Result) -> None:
    assert (
        result(
            'let rs = await all([task("nap", { seconds: 0 }) for i in range(1000)])\nreturn len(rs)'
        )
        == 1000
    )


def test_standard_input_can_be_the_workflow(shell: Shell) -> None:
    ran = shell.rhythm("run", "-", "-q", stdin="return 6 * 7")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "42\n", "")


def test_result_with_characters_of_all_kinds_is_printed_as_json(shell: Shell) -> None:
    document = shell.run(r'return "é\u0001𝄞"')
    assert document["result"] == "é\1𝄞"


def test_interrupt_stops_the_run_with_one_line(shell: Shell) -> None:
    shell.write("main.flow", 'log("here")\nawait sleep("1h")')
    process = subprocess.Popen(
        [sys.executable, "-m", "rhythm", "run", "main.flow"],
        cwd=shell.folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "timer" not in process.stderr.readline():
        pass
    os.kill(process.pid, signal.SIGINT)
    assert process.stderr.read() == "rhythm: stopped\n"
    assert process.wait(timeout=60) == 130
    process.stderr.close()


def test_document_is_valid_json_for_every_failure(shell: Shell) -> None:
    shell.write("main.flow", 'throw { code: "X", message: "a\\nb", data: { deep: [1, null] } }')
    ran = shell.rhythm("run", "main.flow", "--output", "json")
    assert json.loads(ran.stdout)["error"]["data"] == {"deep": [1, None]}
    assert ran.stdout.count("\n") == 1


def test_workflow_over_its_own_timeout_fails_and_what_it_started_is_cancelled(shell: Shell) -> None:
    tidy = 'branch { try { await sleep("2d") } finally { log("tidied") } }'
    shell.write(
        "main.flow",
        f'@timeout("1h")\nworkflow main() {{ let t = {tidy}\nawait sleep("2h")\nawait t }}',
    )
    shell.write(
        "parent.flow", 'try { await workflow("main") } catch (e) { return e.data.error.code }'
    )
    ran = shell.rhythm("run", "parent.flow", "--fast-forward")
    assert ran.stdout == '"Timeout"\n', ran
    assert "tidied" in ran.stderr


def test_inputs_can_come_from_a_file(shell: Shell, result: Result) -> None:
    shell.write("inputs.json", '{"n": 4}')
    assert result("return inputs.n * 2", "--inputs", "@inputs.json") == 8


def test_exception_is_shown_with_the_lines_of_the_users_own_code(shell: Shell) -> None:
    shell.write(
        "own.py",
        "import json\nimport rhythm\n\ndef inner(text):\n    try:\n        return "
        "json.loads(text)\n"
        "    except ValueError as problem:\n        raise RuntimeError('bad text') from problem\n\n"
        "@rhythm.task\ndef parse(text):\n    return inner(text)\n",
    )
    shell.write("main.flow", 'await task("parse", { text: "{" })')
    ran = shell.rhythm("run", "main.flow", "--app", "own.py")
    shown = [line.strip() for line in ran.stderr.splitlines()]
    assert shown[2].endswith('✗ parse(text="{"): RuntimeError: bad text (own.py:8)')
    assert shown[3] == "own.py:6 in inner: return json.loads(text)"
    assert shown[4].startswith("JSONDecodeError: Expecting property name")
    assert shown[5:7] == [
        "own.py:12 in parse: return inner(text)",
        "own.py:8 in inner: raise RuntimeError('bad text') from problem",
    ]


def test_trace_shows_signals_that_are_taken_and_says_which_were_not(shell: Shell) -> None:
    shell.write(
        "main.flow", 'let a = await signal("paid", { timeout: "1d", default: null })\nreturn a'
    )
    ran = shell.rhythm("run", "main.flow", "--signal", 'paid={"n": 1}', "--signal", "piad=2")
    assert '✉ signal paid = {"n": 1}' in ran.stderr
    assert "timer" not in ran.stderr
    assert "note: the signal `piad` was never taken" in ran.stderr


def test_failed_child_is_shown_where_it_failed(shell: Shell) -> None:
    shell.write(
        "main.flow", 'workflow main { await workflow("kid") }\nworkflow kid {\n  throw "broken"\n}'
    )
    ran = shell.rhythm("run", "main.flow")
    assert "■ failed kid: broken" in ran.stderr
    assert "failed[ChildFailed]: `kid` failed: broken" in ran.stderr
    assert "main.flow:3:3" in ran.stderr


def test_text_that_was_meant_as_a_number_is_pointed_out(shell: Shell) -> None:
    shell.write("main.flow", "return inputs.n * 2")
    ran = shell.rhythm("run", "main.flow", "-i", "n=3")
    assert "note: -i n=3 gives a text; -i n:=3 gives the JSON value" in ran.stderr


def test_task_that_is_not_registered_is_in_the_trace_with_the_nearest_name(shell: Shell) -> None:
    shell.write("main.flow", 'await task("gret", { name: "x" })')
    with_app = shell.rhythm("run", "main.flow", "--app", "tasks.py").stderr
    assert '✗ gret(name="x"): no task of this name is registered; did you mean `greet`?' in with_app
    assert "pass the file that defines it with --app" in shell.rhythm("run", "main.flow").stderr


def test_long_list_of_tasks_says_how_many_more_there_are(shell: Shell) -> None:
    shell.write("main.flow", 'await task("else")')
    shell.write(
        "many.py",
        (
            "import rhythm\n\nfor n in range(12):\n    rhythm.task(name=f'task_{n:02}')(lambda: "
            "None)\n"
        ),
    )
    assert "registered are task_00, task_01" in (
        told := shell.rhythm("run", "main.flow", "--app", "many.py").stderr
    )
    assert "task_09 and 2 more" in told


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ('task("cancel_itself")', "task `cancel_itself` failed: CancelledError"),
        ('task("async_leave")', "task `async_leave` failed: SystemExit: 3"),
        (
            'task("leave_on_the_side", null, { timeout: 0.2 })',
            "task `leave_on_the_side` took longer than 200ms",
        ),
    ],
)
def test_async_task_that_cancels_itself_or_exits_fails_and_the_next_one_still_runs(
    result: Result, task: str, message: str
) -> None:
    flow = f"""
    let message = ""
    try {{ await {task} }} catch (e) {{ message = e.message }}
    let next = await task("nap", {{ seconds: 0 }})
    return [message, next]
    """
    assert result(flow) == [message, 0]


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("exception as message", "TaskFailed", "no money"),
        ("code of no text", "TaskFailed", "no (its code is not a text: 404)"),
        ("empty code", "TaskFailed", "no (its code is not a text: '')"),
        (
            "data of no JSON",
            "TaskFailed",
            (
                "no (its data cannot be stored: data.when is of type object, which has no "
                "JSON form: make it a dict, list, text or number)"
            ),
        ),
        ("half a character", "TaskFailed", "a\ufffdb\ufffdc"),
        (
            "half a character elsewhere",
            "TaskFailed",
            "task `fail` failed: ValueError: a\ufffdb\ufffdc",
        ),
        (
            "speechless",
            "TaskFailed",
            "task `fail` failed: Speechless: Speechless, which cannot be shown: SystemExit",
        ),
        ("circle", "TaskFailed", "task `fail` failed: ValueError: one"),
    ],
)
def test_whatever_a_task_raises_the_workflow_sees_a_json_error(
    shell: Shell, how: str, code: str, message: str
) -> None:
    error = shell.run(f'await task("fail", {{ how: "{how}" }})')["error"]
    assert (error["code"], error["message"]) == (code, message)


def test_very_long_message_of_a_task_is_cut(shell: Shell) -> None:
    message = shell.run('await task("fail", { how: "long" })')["error"]["message"]
    assert len(message) < 17_000
    assert message.endswith("x… (10,000,000 characters)")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("list", "has 100,001 entries; the limit for one list or object is 100,000"),
        (
            "text",
            "has 1,048,579 bytes; the limit is 1,048,576: store it elsewhere and pass a reference",
        ),
        (
            "whole",
            "has 1,572,874 bytes; the limit is 1,048,576: store it elsewhere and pass a reference",
        ),
        ("shared", "has more than 1,048,576 parts: store it elsewhere and pass a reference"),
    ],
)
def test_result_over_a_limit_fails_the_task(shell: Shell, what: str, message: str) -> None:
    error = shell.run(f'await task("give", {{ what: "{what}" }})')["error"]
    assert (error["code"], error["data"]["type"]) == ("TaskFailed", "InvalidResult")
    assert error["message"] == f"task `give` failed: InvalidResult: result {message}"


def test_result_within_the_limits_arrives(result: Result) -> None:
    assert result('let given = await task("give", { what: "fits" })\nreturn len(given[0])') == 2**19


def test_event_is_seen_once_by_an_execution_and_not_by_those_that_start_later(
    result: Result,
) -> None:
    flow = """
    workflow main {
      publish("a", 1)
      let child = workflow("child")
      let first = await event("a", { timeout: 9 })
      let again = await event("a", { timeout: 9, default: "none" })
      let seen = await child
      return [first.data, again, seen]
    }
    workflow child { return await event("a", { timeout: 9, default: "none" }) }
    """
    assert result(flow, "--fast-forward") == [1, "none", "none"]


def test_two_waits_at_once_take_two_events(result: Result) -> None:
    flow = """
    workflow main {
      let both = all([event("a", { timeout: 9 }), event("a", { timeout: 9 })])
      await sleep(1)
      publish("a", 1)
      publish("a", 2)
      let got = await both
      return [e.data for e in got]
    }
    """
    assert result(flow, "--fast-forward") == [1, 2]


def test_run_ends_with_its_workflow_and_does_not_wait_for_timeouts_of_waits(result: Result) -> None:
    assert result('workflow main { let _ = event("never", { timeout: "1d" }); return 1 }') == 1


def test_timeout_of_a_child_holds_also_after_its_parent_has_ended(shell: Shell) -> None:
    flow = (
        'workflow main { let _ = workflow("child", {}, { timeout: "1h" }); return 1 '
        '}\nworkflow child { await sleep("9d") }'
    )
    shell.write("main.flow", flow)
    ran = shell.rhythm("run", "main.flow", "--fast-forward")
    # the seconds are those of this machine, which may be busy
    told = r"1:00:\d\d +■ failed child: `child` took longer than it may"
    assert re.search(told, ran.stderr), ran.stderr


@pytest.mark.parametrize(
    ("wait", "message"),
    [
        (
            'all([signal("a"), task("hang")], { concurrency: 1 })',
            "task `hang`, which has not begun",
        ),
        ('all([event("a"), event("a")])', "waits for event `a`, and"),
        ('all([event("a" + str(i)) for i in range(9)])', "event `a4` and 4 more, and"),
    ],
)
def test_everything_that_a_stuck_workflow_waits_for_is_named(
    shell: Shell, wait: str, message: str
) -> None:
    error = shell.run(f"return await {wait}")["error"]
    assert error["code"] == "Stuck"
    assert message in error["message"]


def test_id_that_a_stuck_workflow_waits_for_is_named(shell: Shell) -> None:
    error = shell.run(
        'workflow main { let e = event("a")\nlet s = signal("b")\nawait all([e, s]) }'
    )["error"]
    assert "waits for event `a`, signal `b` (pass --signal b=JSON), and" in error["message"]


def test_result_is_valid_json_where_standard_output_is_not_utf_8(shell: Shell) -> None:
    shell.write("main.flow", 'log("é")\nreturn "é𝄞"')
    ran = shell.rhythm("run", "main.flow", PYTHONIOENCODING="ascii")
    assert (ran.returncode, json.loads(ran.stdout)) == (0, "é𝄞")
    assert "\\xe9" in ran.stderr


def test_trace_shows_events_asked_for_and_published_and_tasks_that_ask_to_be_tried_later(
    shell: Shell,
) -> None:
    flow = (
        'workflow main { let b = branch { return await event("paid") }\nawait '
        'task("later")\npublish("paid", { id: 7 })\nreturn await b }'
    )
    shell.write("main.flow", flow)
    ran = shell.rhythm("run", "main.flow", "--app", "tasks.py", "--fast-forward")
    assert "  … waits for event paid" in ran.stderr
    assert '✉ publishes paid = {"id": 7}' in ran.stderr
    assert re.search(r"↻ later\(\): .*; again in ", ran.stderr), ran.stderr
    assert "■ completed branch of main" in ran.stderr


def test_whatever_a_worker_tells_the_trace_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    trace = Trace(sys.stderr, time.monotonic)
    trace("start", "run.1", "kid")
    trace("claim_lost", "run.1", "the claim has passed to another worker")
    trace("failed", "run.1", "broken")
    shown = [line[11:] for line in capsys.readouterr().err.splitlines()]
    assert shown == [
        "  ▶ kid",
        "  ! claim_lost: the claim has passed to another worker",
        "  ■ failed kid: broken",
    ]
