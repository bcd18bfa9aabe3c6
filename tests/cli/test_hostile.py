"""Nothing that somebody has written reaches a terminal as a command to it: not from a database, a
file or an argument, in any output."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rhythm as package
from rhythm.app import Rhythm
from rhythm.cli import output
from rhythm.cli.main import COMMANDS, main
from rhythm.printable import escaped, escaped_json, indented, one_line, visible
from rhythm.store.interfaces.workers import Beat
from rhythm.worker.logs import JsonFormatter, TextFormatter
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.app.test_operating import until

url, make_app = applications.url, applications.make_app
CLI = Path(package.__file__).parent / "cli"
# ESC (a colour, a title), BEL, BS, DEL, CSI and NEL of C1, turned and isolated writing, and a line
# that looks like one of ours
EVIL = "x\x1b[31m\x1b]0;t\x07\x08\x7f\x9b31m\x85\u202e\u2066\u200f\r\nFAKE completed\ty"
QUOTED = '"' + "".join(f"\\u{ord(c):04x}" for c in EVIL) + '"'
FLOWS = f"""
workflow gives(inputs) {{
  log(inputs, {{ text: inputs, level: inputs }})
  progress(0.5, inputs)
  return inputs
}}
workflow fails(inputs) {{
  throw inputs
}}
workflow breaks(inputs) {{
  await task("broken", {{ text: inputs }})
}}
workflow parent(inputs) {{
  await workflow("fails", inputs)
}}
workflow asks(inputs) {{
  let data = {{}}
  data[inputs] = inputs
  return await approval({{ role: "boss", reason: inputs, data: data, escalate: {{ role: "board" }} }})
}}
workflow waits(inputs) {{
  return await signal({QUOTED})
}}
workflow listens(inputs) {{
  return await event({QUOTED}, {{ where: {{ a: {QUOTED} }} }})
}}
workflow works(inputs) {{
  let data = {{}}
  data[inputs] = inputs
  return await task({QUOTED}, data)
}}
workflow all_of(inputs) {{
  return await all([task({QUOTED}), signal({QUOTED})])
}}
"""
WITH_WARNINGS = (
    f"workflow main(inputs) {{\n  // {EVIL.splitlines()[0]}\n  let x = await task({QUOTED})\n "
    f" return 1\n  return {QUOTED}\n}}\n"
)
BROKEN = f"workflow main(inputs) {{\n  let = {QUOTED}  // {EVIL.splitlines()[0]}\n}}\n"
FILES = {
    "good.flow": WITH_WARNINGS,
    "bad.flow": BROKEN,
    "evil\x1b[31m\x9b.flow": BROKEN,
    "app.py": f"raise ValueError({EVIL!r})\n",
}
STARTED = ("gives", "fails", "breaks", "parent", "asks", "waits", "listens", "works", "all_of")
OUTPUTS = ("table", "json", "ndjson")


def of_each(command: str, *more: str) -> list[list[str]]:
    """A command for every execution, in every output."""
    return [[command, id, *more, "--output", kind] for id in STARTED for kind in OUTPUTS]


def in_each(*command: str) -> list[list[str]]:
    return [[*command, "--output", kind] for kind in OUTPUTS]


FILTERS = (EVIL, f"{EVIL}:x", f"status:{EVIL}", f"id:{EVIL}", f"error:{EVIL}", f"age>{EVIL}")
TRIED: dict[str, list[list[str]]] = {
    "new": [["new", "app.py"], ["new", f"app.py/{EVIL}"], ["new", EVIL]],
    "dev": [
        ["dev", "--database", f"sqlite:///:memory:{EVIL}"],
        ["dev", "--app", EVIL, "--host", EVIL],
        ["dev", "--port", EVIL],
    ],
    "run": [
        ["run", "good.flow"],
        ["run", "bad.flow"],
        ["run", EVIL],
        ["run", "good.flow", "-i", f"a={EVIL}"],
        ["run", "good.flow", "--app", "app.py"],
    ],
    "check": [
        ["check", name, "--format", kind] for name in [*FILES][:3] for kind in ("text", "json")
    ]
    + [["check", EVIL]],
    "fmt": [["fmt", "--check", name] for name in [*FILES][:3]]
    + [["fmt", EVIL], ["fmt", "--diff", "good.flow"]],
    "graph": [
        ["graph", name, "--format", kind]
        for name in ("good.flow", "bad.flow")
        for kind in ("text", "mermaid")
    ]
    + [
        ["graph", "--id", "waits"],
        ["graph", "--id", "waits", "--format", "mermaid"],
        ["graph", "--id", EVIL],
        ["graph"],
    ],
    "listing": [
        ["listing", name, "--format", kind]
        for name in ("good.flow", "bad.flow")
        for kind in ("text", "json")
    ],
    "convert": [["convert", "app.py"], ["convert", "good.flow"], ["convert", EVIL]],
    "start": [
        ["start", "gives", "--inputs", json.dumps(EVIL)],
        ["start", EVIL],
        ["start", "bad.flow"],
        ["start", "gives", "--id", EVIL],
    ],
    "list": [
        *in_each("list"),
        *(["list", given, EVIL] for given in ("--workflow", "--cursor")),
        *(["list", text] for text in FILTERS),
        ["list", f'attr.a="{EVIL}"', "--limit", "1"],
    ],
    "count": [["count", text] for text in FILTERS],
    "show": [*of_each("show"), ["show", EVIL]],
    "trace": [*of_each("trace"), ["trace", EVIL]],
    "logs": [*of_each("logs"), ["logs", EVIL], ["logs", "gives", "--level", EVIL]],
    "top": [["top"], ["top", "--once"], ["top", "--output", "json"]],
    "watch": [
        *[["watch", id, "--timeout", "0s"] for id in STARTED],
        ["watch", "fails", "--output", "ndjson"],
        ["watch", EVIL],
    ],
    "why": [*of_each("why"), ["why", EVIL]],
    "result": [["result", id, "--timeout", "0s"] for id in STARTED] + [["result", EVIL]],
    "signal": [
        ["signal", "waits", EVIL],
        ["signal", "waits", "go", EVIL],
        ["signal", EVIL, "go"],
        ["signal", "fails", "go"],
    ],
    "publish": [["publish", EVIL], ["publish", "e", EVIL], ["publish", "e", json.dumps(EVIL)]],
    "pause": [
        ["pause", "waits", "--reason", EVIL, "--metadata", f"a={EVIL}"],
        ["pause", EVIL],
        *of_each("show"),
    ],
    "resume": [
        ["resume", "waits", "--reason", EVIL, "-i", f"a={EVIL}"],
        ["resume", EVIL],
        ["trace", "waits"],
    ],
    "cancel": [
        ["cancel", "waits"],
        ["cancel", EVIL],
        ["cancel", "--all", "--workflow", EVIL],
        ["cancel", "--all", f"{EVIL}:"],
    ],
    "terminate": [["terminate", "listens"], ["terminate", EVIL]],
    "retry": [["retry", "fails"], ["retry", "parent"], ["retry", EVIL]],
    "approvals": [
        *in_each("approvals"),
        *in_each("approvals", "--status", "all"),
        ["approvals", "asks.1"],
        ["approvals", EVIL],
    ],
    "escalate": [
        ["escalate", "asks.1", "--by", "ann", "--comment", EVIL],
        ["escalate", EVIL],
        ["approvals", "asks.1"],
    ],
    "approve": [
        ["approve", "asks.1", "--by", "ann", "--comment", EVIL],
        ["approve", EVIL],
        ["approve", "asks.1", "--by", EVIL],
        ["approvals", "asks.1"],
    ],
    "reject": [
        ["reject", "asks.1", "--by", "bob", "--comment", EVIL],
        ["reject", EVIL],
        ["trace", "asks"],
    ],
    "worker": [
        ["worker", "--app", "app.py"],
        ["worker", "--app", EVIL],
        ["worker", "--queues", EVIL],
        ["worker", "--workflows", "bad.flow"],
    ],
    "server": [["server", "--host", EVIL], ["server", "--port", EVIL]],
    "workers": in_each("workers"),
    "queues": in_each("queues"),
    "queue": [
        ["queue", "pause", "q", "--reason", EVIL],
        ["queue", "pause", EVIL],
        *in_each("queues"),
    ],
    "workflows": [*in_each("workflows"), ["workflows", "gives"], ["workflows", EVIL]],
    "schedules": [
        ["schedules", "pause", "nightly", "--reason", EVIL],
        *in_each("schedules"),
        *in_each("schedules", "show", "nightly"),
        ["schedules", "show", EVIL],
        ["schedules", "create", EVIL, "gives", "--cron", EVIL],
        ["schedules", "create", "x", "gives", "--cron", EVIL],
    ],
    "token": [
        ["token", "create", EVIL, "--role", "viewer"],
        ["token", "create", "x", "--role", EVIL],
        *in_each("token", "list"),
        ["token", "revoke", EVIL],
    ],
    "audit": [
        *in_each("audit", "list"),
        ["audit", "export"],
        ["audit", "verify"],
        ["audit", "verify", "--file", EVIL],
        ["audit", "list", "--actor", EVIL],
    ],
    "migrate": [["migrate"], ["migrate", "--database", f"sqlite:///{EVIL}"]],
    "help": [["help", EVIL], ["help", "token", EVIL], ["help", "start"]],
    "completion": [["completion", EVIL], ["completion", "bash"]],
    "doctor": [["doctor"], ["doctor", "--database", f"sqlite:///{EVIL}"]],
}
DRAWN = [
    *(["show", id] for id in STARTED),
    *([command] for command in ("list", "queues", "workers", "workflows", "schedules", "doctor")),
    ["approvals", "--status", "all"],
    ["approvals", "asks.1"],
    ["schedules", "show", "nightly"],
    ["audit", "list"],
    ["token", "list"],
    ["trace", "parent"],
    ["logs", "breaks"],
    ["logs", "gives"],
]
# What each group does to its database is nothing that hides the rest of the group's texts: those that
# only look come first, and who decides about the same approval is in another group.
LOOKING = (
    "new", "dev", "run", "check", "fmt", "graph", "listing", "convert", "list", "count", "show", "trace", "top", "watch", "why", "result", "approvals",
    "logs", "workers", "queues", "workflows", "audit", "migrate", "doctor", "help", "completion",
)  # fmt: skip
ASKING = ("start", "signal", "publish", "schedules", "token", "queue", "server", "worker")
GROUPS = {
    "looking": LOOKING,
    "asking and approving": (*ASKING, "pause", "resume", "escalate", "approve"),
    "ending": ("reject", "retry", "cancel", "terminate"),
}
Ran = Callable[[list[str]], tuple[str, str]]


@pytest.fixture
def ran(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ran:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RHYTHM_DATABASE_URL", url)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")

    def run(args: list[str]) -> tuple[str, str]:
        capsys.readouterr()
        main(args)
        return capsys.readouterr()

    return run


@pytest.fixture
def haunted(ran: Ran, make_app: MakeApp) -> Rhythm:
    """A database in which everything that somebody can write has something evil in it."""

    def broken(text: str) -> None:
        now = package.current()
        now.log.error(text, extra={text: text})
        now.heartbeat(text)
        raise ValueError(text)

    app = make_app(broken, flows=(FLOWS,), missing_task_grace="1h")
    app.schedule("nightly", "gives", cron="0 3 * * *", inputs=EVIL, by="ann")
    with app.worker():
        for name in STARTED:
            app.start_workflow(name, EVIL, id=name, attributes={"a": EVIL}, by="sue")
        until(
            lambda: (
                all(app.get(id).ended for id in STARTED[:4])
                and app.approvals().items
                and app.get("listens").awaiting
            )
        )
    app.pause("asks", EVIL, by="ann")
    app.pause_schedule("nightly", EVIL, by="ann")
    app.pause_queue("default", EVIL, by="ann")
    app.store.workers.beat(Beat("box-1", EVIL, 71, (EVIL,), 20, 3, False, EVIL), {}, 60.0)
    return app


def harmless(text: str) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in text) and not any(
        line.startswith("FAKE") for line in text.split("\n")
    )


def test_every_module_of_a_command_has_its_line_in_the_list() -> None:
    modules = {path.stem for path in (CLI / "commands").glob("*.py")} - {"__init__"}
    assert modules == COMMANDS.keys(), "add it to SECTIONS in cli/main.py"


def test_every_command_is_tried() -> None:
    assert TRIED.keys() == COMMANDS.keys(), "a command is missing in the table above"
    assert sorted(TRIED) == sorted(name for group in GROUPS.values() for name in group)


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_evil_is_printed(group: str, haunted: Rhythm, ran: Ran) -> None:
    for args in (args for command in GROUPS[group] for args in TRIED[command]):
        out, err = ran(args)
        assert harmless(out), (args, out)
        assert harmless(err), (args, err)
        if "json" in args[-1] and out:
            for document in out.splitlines() if args[-1] == "ndjson" else [out]:
                json.loads(document)


@pytest.mark.parametrize("columns", ["40", "120"])
def test_nothing_evil_is_drawn_on_a_terminal(
    haunted: Rhythm, ran: Ran, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    for args in DRAWN:
        out, err = ran(args)
        assert out or args[0] == "token", args
        assert harmless(out), (args, out)
        assert harmless(err), (args, err)


def test_json_has_the_value_itself(haunted: Rhythm, ran: Ran) -> None:
    shown = json.loads(ran(["show", "gives", "--output", "json"])[0])
    assert (shown["result"], shown["attributes"]) == (EVIL, {"a": EVIL})
    assert json.loads(ran(["result", "gives"])[0]) == EVIL
    exported = [json.loads(line) for line in ran(["audit", "export"])[0].splitlines()]
    assert EVIL in _texts([json.loads(row["detail"]) for row in exported])


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.items() for text in _texts(list(item))]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


# the way out


def test_our_own_sequences_pass_and_nobody_elses(capsys: pytest.CaptureFixture[str]) -> None:
    output.print(
        output.styled("green", "32"),
        "\x1b[31mred",
        f"{output.MARK[:1]}{'0' * 16}\x1b[31m{output.END}",
        sep="|",
    )
    assert (
        capsys.readouterr().out
        == "\x1b[32mgreen\x1b[0m|\ufffd[31mred|\ufffd0000000000000000\ufffd[31m\ufffd\n"
    )


def test_text_is_shown_escaped_and_indented() -> None:
    assert visible("a\x1b\u202eb\nc", "\n") == "a\ufffd\ufffdb\nc"
    assert one_line("a\tb\r\nc\x9b") == "a b  c\ufffd"
    assert indented("a\nb\x1b\nc") == "a\n  b\ufffd\n  c"
    assert escaped("a\x1b\x7f\u202e\n") == "a\\x1b\\x7f\\u202e\\n"


def test_escaped_json_is_the_same_value() -> None:
    value = [EVIL, {"\U000e0001": "\x7f\u2028"}, "plain ü 😀", "\ud800"]
    text = escaped_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "plain ü 😀" in text


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_log_lines_are_harmless(formatter: Any) -> None:
    from logging import WARNING, makeLogRecord

    plain = makeLogRecord({"name": "mine", "levelname": "WARNING", "levelno": WARNING, "msg": EVIL})
    event = makeLogRecord(
        {
            "event": "bug",
            "fields": {"worker": EVIL, "detail": EVIL, "traceback": EVIL},
            "levelname": "ERROR",
        }
    )
    for record in (plain, event):
        assert harmless(formatter.format(record))


def test_no_module_prints_in_another_way() -> None:
    """A new command cannot forget it: `print` is the one of `rhythm.cli.output`, and nobody writes
    to a stream by itself."""
    for path in sorted(CLI.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        ours = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "rhythm.cli.output"
            and any(a.name == "print" for a in node.names)
            for node in tree.body
        )
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        written = {
            name for name in called if name.endswith((".write", ".writelines")) and "std" in name
        }
        if path.parent.name != "output" or path.name != "__init__.py":
            assert ours or "print" not in called, (
                f"{path.name}: from rhythm.cli.output import print"
            )
            assert not written, f"{path.name}: {written}; use rhythm.cli.output"
    for path in sorted(CLI.parent.rglob("*.py")):
        if CLI not in path.parents and path.name != "__main__.py":
            calls = {
                ast.unparse(node.func)
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call)
            }
            assert "print" not in calls, path
