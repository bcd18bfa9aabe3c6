"""docs/events.md is true: its program prints what is shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rhythm.settings import load_settings
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")


def test_program_prints_what_is_shown(tmp_path: Path) -> None:
    ((program, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    (flow,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "shop.flow").write_text(flow, encoding="utf-8")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")}
    ran = forked.run(["program.py"], tmp_path, env=plain)
    assert (ran.stderr, ran.stdout) == ("", shown)


def test_page_says_how_long_events_are_kept(tmp_path: Path) -> None:
    assert load_settings({}, {}, str(tmp_path)).event_retention_s == 7 * 86_400
    assert "`event_retention`, 7 days unless" in PAGE
