"""The benchmark of growth in its smallest form: each row, what is stored, and what the page says.
How fast anything is, is nobody's law."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from bench.growth import measuring, page
from bench.growth.__main__ import main, run
from bench.growth.filling import EXECUTIONS, Filler
from bench.growth.ground import Ground
from bench.growth.measuring import P50, STEPS_DONE, TASKS, Stuck, drained, stepped
from bench.growth.results import Case, Results, Sample
from bench.growth.rows import ALL, BY_NAME
from bench.growth.tables import shown, table_of
from bench.servers import Server, Store

from rhythm.engine.doctor import examine
from tests.support.postgres import private_server

ABOUT = {
    "commit": "0123456789",
    "began": "2026-11-18T00:00:00+00:00",
    "machine": {"cores": 2, "system": "Linux", "python": "3.11.7", "postgresql": "15.18"},
    "settings": {"fsync": "on"},
    "rounds": 2,
    "scale": 1,
    "load": {"begin": 0.1, "end": 0.2},
}
CASES = {
    "finished": 3,
    "pending": 3,
    "workers": 2,
    "transaction": 13,
    "payloads": 2,
    "asleep": 2,
    "leaves": 2,
    "memory": 10,
}


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with private_server() as url:
        yield Ground(Server(url, "", {}), scale=0.002, rounds=1)


def sample() -> Results:
    """A baseline, what is compared with it, and a case that failed."""
    figures = {TASKS.key: 10_000.0, STEPS_DONE.key: 5000.0, P50.key: 8.0}
    cases = [
        Case("empty", figures, baseline=True),
        Case("1,000 finished", {TASKS.key: 9000.0, STEPS_DONE.key: 5500.0}),
    ]
    samples = [Sample("finished", "SQLite", case, 1.0) for case in cases]
    failed = Sample("finished", "PostgreSQL", Case("the rest", {}), 2.0, "Stuck: a | b")
    return Results(ABOUT, [*samples, failed])


@pytest.mark.parametrize(
    ("name", "store"),
    [(row.name, row.stores[0]) for row in ALL] + [("leaves", "PostgreSQL")],
)
def test_each_row_measures_its_cases(
    ground: Ground, tmp_path: Path, name: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    row = BY_NAME[name].replace(stores=(store,))
    results = Results({**ABOUT, "load": {}})
    run(row, ground, results, tmp_path / "results.json")
    assert [each.problem for each in results.samples] == [""] * CASES[name]
    wanted = {figure.key for figure in row.figures}
    if store == "SQLite":
        wanted -= {"wal_bytes", "commits"}
    if Path("/proc/self/smaps_rollup").exists():
        assert all(wanted <= each.case.figures.keys() for each in results.samples)
    assert sum(each.case.baseline for each in results.samples) == (name != "leaves")
    loaded = Results.load(tmp_path / "results.json")
    assert (loaded.about, loaded.samples) == (results.about, results.samples)
    assert table_of(results, row) in capsys.readouterr().out


@pytest.mark.parametrize("store", ["SQLite", "PostgreSQL"])
def test_copies_of_finished_executions_are_like_real_ones(ground: Ground, store: Store) -> None:
    with ground.place(store) as place, place.workers(1, "one"):
        filler = Filler(place)
        with closing(place.connect()) as db:

            def counted() -> list[int]:
                texts = (
                    "SELECT count(*) FROM executions",
                    "SELECT count(*) FROM executions WHERE parent_id IS NOT NULL",
                    "SELECT count(*) FROM workflow_execution_context",
                    "SELECT count(*) FROM history",
                )
                return [db.execute(text).fetchall()[0][0] for text in texts]

            before = counted()
            assert [filler.fill(100), filler.fill(10)] == [3 * EXECUTIONS, EXECUTIONS]
            added = [after - old for after, old in zip(counted(), before, strict=True)]
        findings = examine(place.app.store, grace_s=60)
    assert added == [160, 80, 4 * 11, 4 * (11 + 10 * 2)]
    assert findings == []


def test_executions_that_fail_are_no_figures(ground: Ground) -> None:
    with (
        ground.place("SQLite") as place,
        place.workers(1, "one"),
        pytest.raises(Stuck, match="failed"),
    ):
        drained(place, 20, value="no number")


def test_job_that_does_not_end_is_given_up(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "LIMIT_S", 0.0)
    with ground.place("SQLite") as place, pytest.raises(Stuck, match="0 of 20 have ended"):
        stepped(place, 20)


def test_a_row_that_fails_is_stored_with_its_reason(
    ground: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(ground: Ground, store: Store) -> Iterator[Case]:
        yield Case("first", {TASKS.key: 1.0})
        raise psycopg.OperationalError("no server")

    results = Results({**ABOUT, "load": {}})
    row = BY_NAME["pending"].replace(work=fails, stores=("PostgreSQL",))
    run(row, ground, results, tmp_path / "results.json")
    problems = [each.problem for each in results.samples]
    assert problems == ["", "OperationalError: no server"]
    assert "failed: OperationalError: no server" in capsys.readouterr().out


def test_unknown_row_is_refused_before_anything_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["finished", "size"]) == 2
    said = capsys.readouterr().err
    assert f"there is no row size; there are {', '.join(BY_NAME)}" in said


def test_figures_are_shown_beside_their_baseline() -> None:
    results, row = sample(), BY_NAME["finished"]
    assert [shown(results, row, each) for each in results.samples] == [
        ["10,000/s", "5,000/s", "8 ms"],
        ["9,000/s (0.90 ×)", "5,500/s (1.10 ×)", "–"],
        ["**failed: Stuck: a \\| b**", "", ""],
    ]


def test_picture_has_a_bar_for_each_case_that_has_the_figure() -> None:
    root = ET.fromstring(page.drawn(sample()))
    kinds = [each.get("class") for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds == ["workflows", "ours"] * 2


def test_section_says_that_it_is_a_trial() -> None:
    trial = Results({**ABOUT, "scale": 0.01}, sample().samples)
    assert "**all sizes times 0.01: this was a trial**" in page.section(trial)
    assert "a trial" not in page.section(sample())


def test_page_and_picture_are_what_the_stored_figures_make() -> None:
    """`python -m bench.growth.page docs/growth.json` writes them."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.BEGIN in text
    if not page.FIGURES.exists():
        assert "growth.svg" not in text
        return
    results = Results.load(page.FIGURES)
    assert page.written(text, results) == text
    assert page.PICTURE.read_text(encoding="utf-8") == page.drawn(results)
    assert {each.row for each in results.samples} <= BY_NAME.keys()
