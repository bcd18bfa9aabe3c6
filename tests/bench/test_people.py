"""The small form of the benchmark of people: the same processes and requests, a few of each. How
long it takes is nobody's law."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from bench import jobs, raw
from bench.people import Size, measured, show, world
from bench.places import Place, postgres, sqlite_at

SIZE = Size(paused=12, at_once=5, singles=2, idle_s=0.2)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        with closing(sqlite_at(tmp_path / "bench.db")) as made:
            yield made
        return
    url = request.getfixturevalue("database_url")
    with closing(postgres(url)) as made:
        yield made
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {urlsplit(made.url).path[1:]} WITH (FORCE)".encode())


def test_all_that_people_decide_at_once_is_completed_and_audited(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = place.raw(raw.approvals, SIZE.paused, SIZE.at_once)
    with world(place) as at:
        report = measured(at, SIZE)
        show("here", report, report.idle, *limits)
    assert (report.findings, report.audit.problems) == ([], ())
    assert (
        report.completed == report.executions == 100 + SIZE.paused + 2 * SIZE.singles + SIZE.at_once
    )
    assert report.audit.rows == 11 + 3 * SIZE.paused + SIZE.singles + 2 * (
        SIZE.at_once + SIZE.singles
    )
    assert len(report.pauses) == len(report.decisions) == len(report.answers) == SIZE.paused
    assert len(report.waves) == 3
    assert (len(report.by_hand.pauses), len(report.single_by_hand.resumes)) == (
        SIZE.at_once,
        SIZE.singles,
    )
    assert "approve to completed, 5 at once of 12" in capsys.readouterr().out
    assert [figure.job for figure in jobs.figures[-2:]] == [
        "J5 12 paused",
        "J5 approve to completed, 5 at once of 12",
    ]
