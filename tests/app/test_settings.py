"""Where settings come from, which one wins, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rhythm.errors import InvalidSetting
from rhythm.settings import SETTINGS, Given, load_settings


def test_argument_wins_over_variable_and_that_over_file_and_that_over_default(
    tmp_path: Path,
) -> None:
    (tmp_path / "rhythm.toml").write_text('concurrency = 3\ncrash_limit = 4\nclaim_ttl = "1m"\n')
    environment = {
        "RHYTHM_CONCURRENCY": "5",
        "RHYTHM_CRASH_LIMIT": "6",
        "PATH": "x",
        "RHYTHM_TEST_EVERY": "1",
    }
    settings = load_settings({"concurrency": 7, "queues": None}, environment, str(tmp_path))
    assert (settings.concurrency, settings.crash_limit, settings.claim_ttl_s, settings.queues) == (
        7,
        6,
        60.0,
        ("default",),
    )
    shown = {name: (value, source) for name, value, source in settings.shown()}
    assert shown["concurrency"] == ("7", "argument")
    assert shown["crash_limit"] == ("6", "RHYTHM_CRASH_LIMIT")
    assert shown["claim_ttl"] == ("1m", "rhythm.toml")
    assert shown["queues"] == ("default", "default")


def test_pyproject_is_read_where_there_is_no_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.rhythm]\nqueues = ["a", "b"]\n'
    )
    settings = load_settings({}, {}, str(tmp_path))
    assert (settings.queues, settings.sources["queues"]) == (("a", "b"), "pyproject.toml")
    (tmp_path / "rhythm.toml").write_text("")
    with pytest.raises(
        InvalidSetting, match=r"in rhythm.toml and in \[tool.rhythm\] of pyproject.toml: keep one"
    ):
        load_settings({}, {}, str(tmp_path))


def test_workflows_are_looked_for_in_the_folder_workflows_if_it_exists(tmp_path: Path) -> None:
    assert load_settings({}, {}, str(tmp_path)).workflow_paths == ()
    (tmp_path / "workflows").mkdir()
    assert load_settings({}, {}, str(tmp_path)).workflow_paths == ("./workflows",)
    assert load_settings({"workflow_paths": [tmp_path]}, {}, str(tmp_path)).workflow_paths == (
        str(tmp_path),
    )
    assert load_settings({}, {"RHYTHM_WORKFLOW_PATHS": "a,b"}, str(tmp_path)).workflow_paths == (
        "a",
        "b",
    )


@pytest.mark.parametrize(
    "variable",
    [
        "WORKFLOW_RESUME_WORKER_INTERVAL",
        "RHYTHM_WORKFLOW_RESUME_WORKER_INTERVAL",
        "RHYTHM_RESUME_WORKER_INTERVAL",
    ],
)
def test_interval_of_the_first_sketches_is_known_with_and_without_prefix(
    tmp_path: Path, variable: str
) -> None:
    settings = load_settings({}, {variable: "90"}, str(tmp_path))
    assert (settings.resume_worker_interval_s, settings.sources["resume_worker_interval"]) == (
        90.0,
        variable,
    )


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        (
            {"concurency": 1},
            {},
            r"there is no setting `concurency` \(argument\); did you mean `concurrency`\?",
        ),
        ({"zzz": 1}, {}, "the settings are database_url, listen_url, workflow_paths"),
        (
            {},
            {"RHYTHM_DATABSE_URL": "x"},
            r"the variable RHYTHM_DATABSE_URL is no setting; did you mean RHYTHM_DATABASE_URL\?",
        ),
        (
            {"concurrency": 0},
            {},
            r"concurrency \(argument\): write a whole number from 1 on, not 0",
        ),
        (
            {},
            {"RHYTHM_CONCURRENCY": "many"},
            r"concurrency \(RHYTHM_CONCURRENCY\): write a whole number from 1 on, not 'many'",
        ),
        ({"claim_ttl": "soon"}, {}, '"soon" is not a duration; write seconds'),
        ({"claim_ttl": 0}, {}, "it must be longer than 0"),
        ({"auto_migrate": "perhaps"}, {}, "write true or false, not 'perhaps'"),
        ({"queues": []}, {}, "name at least one queue"),
        ({"queues": 3}, {}, "write a list of texts, not 3"),
        ({"database_url": ""}, {}, "write a text that is not empty, not ''"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    tmp_path: Path, given: dict[str, Any], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        load_settings(given, environment, str(tmp_path))


@pytest.mark.parametrize("table", ["", "[rhythm]\n", "[tool.rhythm]\n"])
def test_file_of_ones_own_may_have_its_settings_in_a_table(tmp_path: Path, table: str) -> None:
    (tmp_path / "rhythm.toml").write_text(f'{table}queues = ["a"]\n')
    read = load_settings({}, {}, str(tmp_path))
    assert (read.queues, read.sources["queues"]) == (("a",), "rhythm.toml")
    (tmp_path / "rhythm.toml").write_text(f'{table}que = "a"\n')
    with pytest.raises(InvalidSetting, match=r"no setting `que` \(rhythm.toml\); did you mean"):
        load_settings({}, {}, str(tmp_path))


@pytest.mark.parametrize("table", ["[rhythm]", "[tool.rhythm]"])
def test_settings_stand_in_one_place_of_a_file(tmp_path: Path, table: str) -> None:
    (tmp_path / "rhythm.toml").write_text(f'concurrency = 1\n{table}\nqueues = ["a"]\n')
    with pytest.raises(InvalidSetting, match=r"at its top level or in \[.*rhythm\]: keep one"):
        load_settings({}, {}, str(tmp_path))


def test_file_with_an_unknown_key_or_broken_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rhythm.toml").write_text('que = "a"\n')
    with pytest.raises(InvalidSetting, match=r"no setting `que` \(rhythm.toml\)"):
        load_settings({}, {}, str(tmp_path))
    (tmp_path / "rhythm.toml").write_text("queues = [\n")
    with pytest.raises(InvalidSetting, match=r"cannot read .*rhythm.toml"):
        load_settings({}, {}, str(tmp_path))


def test_password_is_not_shown(tmp_path: Path) -> None:
    shown = load_settings(
        {"database_url": "postgresql://me:secret@host/db"}, {}, str(tmp_path)
    ).shown()
    assert shown[0] == ("database_url", "postgresql://me:***@host/db", "argument")


def test_every_setting_can_be_given_as_an_argument() -> None:
    assert {"database_url", "workflow_paths", *Given.__annotations__} == set(SETTINGS)


def test_settings_are_a_value(tmp_path: Path) -> None:
    settings = load_settings({}, {}, str(tmp_path))
    with pytest.raises(AttributeError):
        settings.concurrency = 3  # type: ignore[misc]  # that it fails is the test
