"""docs/workers.md is true: its program runs a worker, and its commands exist. (Its tables of log
events and metrics are tested in tests/worker.)"""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.markdown import blocks
from tests.examples.shell import commands_of
from tests.examples.test_all_pages import problem_with
from tests.support import forked

PAGE = "docs/workers.md"


def test_program_of_the_page_starts_a_worker(tmp_path: Path) -> None:
    """On SQLite: the page's PostgreSQL is not here."""
    (program,) = [block.text for block in blocks(PAGE) if block.language == "python"]
    here, changed = re.subn(r"postgresql://localhost/shop", "sqlite:///shop.db", program)
    assert changed == 1
    there, changed = re.subn(
        r"^    \.\.\.$", "    while not app.workers():\n        pass", here, flags=re.M
    )
    assert changed == 1
    (tmp_path / "program.py").write_text(there, encoding="utf-8")
    ran = forked.run(["program.py"], tmp_path)
    assert (ran.stdout, ran.stderr) == ("", "")


def test_commands_of_the_page_exist() -> None:
    (session,) = [block.text for block in blocks(PAGE) if block.language == "console"]
    commands = commands_of(session)
    assert len(commands) == 2
    assert [problem_with(command) for command in commands] == ["", ""]
