"""docs/postgres.md is true: its tables and numbers are those of the code, and what it says to write
is understood."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from rhythm.durations import show_duration
from rhythm.settings import load_settings
from rhythm.store.open import OURS, SCHEMA, open_store
from rhythm.store.postgres import connecting, connection, hints
from rhythm.store.postgres.connecting import Access
from rhythm.store.postgres.store import PostgresStore

PAGE = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text(encoding="utf-8")


def table(section: str) -> dict[str, str]:
    """The first two columns of the first table after a text."""
    return dict(
        re.findall(
            r"^\| `(\w+)` \| (.*?) \|",
            PAGE.partition(section)[2].partition("\n\n##")[0],
            re.MULTILINE,
        )
    )


def opened(url: str, listen_url: str = "") -> PostgresStore:
    store = open_store(url, listen_url=listen_url)
    assert isinstance(store, PostgresStore)
    return store


def test_tables_are_those_of_the_code() -> None:
    ours = table("these of Rhythm:")
    assert (tuple(ours), ours["schema"]) == (OURS, SCHEMA)
    assert (ours["pooled"], ours["notify"]) == tuple(
        "on" if on else "off" for on in (Access().pooled, Access().notify)
    )
    assert table("for every connection") == connecting.DEFAULTS


def test_numbers_are_those_of_the_code(tmp_path: Path) -> None:
    poll = show_duration(load_settings({}, {}, str(tmp_path)).worker_poll_interval_s)
    told, silence, gap = (
        f"{hints.IDLE_S:g} s",
        f"{connecting.ANSWER_S:g} s",
        f"{hints.MIN_INTERVAL_S * 1000:g} ms",
    )
    poll = poll.replace("1s", "1 s")
    for said in (
        f"up to {connection.SESSIONS} sessions",
        f"nothing to tell for {told}",
        f"waited {silence} for an answer",
    ):
        assert said in PAGE
    for said in (f"within {gap} is sent together", f"`worker_poll_interval` ({poll})"):
        assert said in PAGE
    assert connecting.LONG_S == 3600


def test_settings_that_are_shown_are_understood(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "rhythm.toml").write_text(text)
    settings = load_settings({}, {}, str(tmp_path))
    assert settings.sources == dict.fromkeys(tomllib.loads(text), "rhythm.toml")
    store = opened(settings.database_url, settings.listen_url)
    assert store.db.url == "postgresql://app@pgbouncer:6432/shop"
    assert store.db.access == Access(pooled=True, listen_url="postgresql://app@database:5432/shop")


def test_url_of_several_servers_goes_to_the_one_that_can_be_written_to() -> None:
    (url,) = re.findall(r"```text\n(postgresql://app@db1.*?)\n```", PAGE)
    assert connecting._defaults(opened(url).db.url)["target_session_attrs"] == "read-write"
