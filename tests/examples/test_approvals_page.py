"""docs/approvals.md is true: its session prints what is shown, and its tables name what there
is."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import rhythm
from rhythm.app import Rhythm
from rhythm.app.approvals import REFUSALS
from rhythm.ir.operations import OPERATIONS
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "approvals.md").read_text(encoding="utf-8")


def test_session_prints_what_is_shown(tmp_path: Path) -> None:
    (flow,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "expense.flow").write_text(flow, encoding="utf-8")
    (session,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")
    } | {"COLUMNS": "100"}
    with (
        Rhythm(
            f"sqlite:///{tmp_path / 'rhythm.db'}", (), environment={}, worker_poll_interval="20ms"
        ) as app,
        app.worker(),
    ):
        for command, shown in re.findall(
            r"^\$ (rhythm .*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE
        ):
            if command.startswith("rhythm approvals"):
                _wait_until_asked(app)
            ran = forked.run(["-m", *shlex.split(command)], tmp_path, env=plain)
            said = ran.stdout or ran.stderr
            assert re.sub(r"\b\d+s  ", "now ", said) == shown, command


def test_call_from_python_decides(tmp_path: Path) -> None:
    (call,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    (flow,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    with (
        Rhythm(f"sqlite:///{tmp_path / 'a.db'}", (), environment={}) as app,
        app.worker(),
    ):
        app.register(flow)
        handle = app.start_workflow("expense", {"who": "Sue", "amount": 900}, id="E7", by="sue")
        _wait_until_asked(app)
        names = {"app": app, "rhythm": rhythm, "approval": app.approval("E7.1")}
        exec(call, names)  # what the page tells its readers to write
        assert handle.result() == {"paid": 900, "by": ["ann"]}


def _wait_until_asked(app: Rhythm) -> None:
    import threading

    for _ in range(12_000):
        if app.approvals().items:
            return
        threading.Event().wait(0.01)
    raise AssertionError("nothing is asked")


def test_tables_name_every_option_and_every_refusal() -> None:
    options = re.findall(
        r"^\| `(\w+)` \|", PAGE.partition("| option |")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert set(options) == set(OPERATIONS["approval"].options)
    refusals = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \| 40", PAGE, re.MULTILINE)))
    assert set(refusals) == {*REFUSALS, "unknown_approval"}
