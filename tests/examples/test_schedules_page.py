"""docs/schedules.md is true: its program prints what is shown, and its tables name what there
is."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from rhythm.engine.schedules import LATE_US
from rhythm.schedule_times import MOST_CAUGHT_UP, OVERLAPS, US, Timing, slots
from rhythm.store.schedules import KEPT_SLOTS
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")


def test_program_prints_what_is_shown(tmp_path: Path) -> None:
    ((program, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    (flow,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "report.flow").write_text(flow, encoding="utf-8")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")}
    ran = forked.run(["program.py"], tmp_path, env=plain)
    assert (ran.stderr, ran.stdout) == ("", shown)


def test_page_names_every_policy_and_limit() -> None:
    table = PAGE.split("## While the last execution still runs")[1].split("## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)[1:]) == OVERLAPS
    assert f"a number up to {MOST_CAUGHT_UP:,}" in PAGE
    assert (LATE_US, KEPT_SLOTS) == (60 * US, 100)


def test_clocks_change_as_the_table_says() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def shown(cron: str, day: datetime, count: int) -> list[str]:
        found = islice(slots(Timing(cron, "Europe/Berlin"), int(day.timestamp()) * US), count)
        return [f"{datetime.fromtimestamp(at / US, UTC).astimezone(berlin):%H:%M}" for at in found]

    spring, autumn = datetime(2026, 3, 29, tzinfo=berlin), datetime(2026, 10, 25, tzinfo=berlin)
    assert shown("30 2 * * *", spring, 2) == ["03:00", "02:30"]
    assert shown("30 2 * * *", autumn, 1) == ["02:30"]
    assert shown("30 * * * *", autumn, 5) == ["00:30", "01:30", "02:30", "02:30", "03:30"]
