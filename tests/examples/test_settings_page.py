"""docs/settings.md is true: it has every setting with its default, and its file is understood."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from rhythm.settings import SETTINGS, load_settings

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")


def test_tables_have_every_setting_with_its_default(tmp_path: Path) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    shown = {name: value for name, value, _ in load_settings({}, {}, str(tmp_path)).shown()}
    assert rows.keys() == SETTINGS.keys()
    assert {name: value.strip("`") for name, value in rows.items() if name != "workflow_paths"} == {
        name: value for name, value in shown.items() if name != "workflow_paths"
    }


def test_settings_file_that_is_shown_is_understood(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "rhythm.toml").write_text(text)
    assert load_settings({}, {}, str(tmp_path)).sources == dict.fromkeys(
        tomllib.loads(text), "rhythm.toml"
    )


def test_variable_that_is_shown_is_understood(tmp_path: Path) -> None:
    (variable,) = re.findall(r"`(RHYTHM_\w+=\w+)`", PAGE)
    name, _, value = variable.partition("=")
    assert load_settings({}, {name: value}, str(tmp_path)).sources == {"dead_after": name}
