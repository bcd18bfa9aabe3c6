"""The benchmark of peers without peers: what runs them, what is stored, and what the page says. How
fast anybody is, is nobody's law."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bench.peers import installing, page
from bench.peers.__main__ import CACHE, SCRIPTS, _environment, main
from bench.peers.chart import drawn
from bench.peers.engines import BY_NAME, ENGINES, chosen
from bench.peers.installing import COMPILED, python_of
from bench.peers.jobs import BY_NAME as JOBS
from bench.peers.results import Cell, Results
from bench.peers.running import Outcome, run
from bench.peers.tables import compiled_table, job_table, ratio_table

from tests.support.compiled import IMPORTED_FROM

ABOUT = {
    "commit": "0123456789",
    "began": "2026-11-18T00:00:00+00:00",
    "machine": {"cores": 2, "system": "Linux", "python": "3.11.7", "postgresql": "15.18"},
    "settings": {"fsync": "on"},
    "rounds": 2,
    "scale": 1,
    "load": {"begin": 0.1, "end": 0.2},
    "versions": {"absurd": ["absurd-sdk==0.5.1"]},
}
ENVIRONMENT = {"PATH": os.environ["PATH"]}


def outcome_of(code: str, limit_s: float = 30) -> Outcome:
    return run([sys.executable, "-c", code], ENVIRONMENT, limit_s)


def sample() -> Results:
    """Two rounds of J1: ours, a limit, a peer, and a peer that fails."""
    figures = {
        "raw-postgres": (40_000.0, 50_000.0),
        "rhythm-postgres": (8_000.0, 10_000.0),
        "absurd": (2_000.0, 1_000.0),
    }
    cells = [
        Cell("j1", name, number, Outcome({"drained_per_s": value}, "its settings"))
        for name, values in figures.items()
        for number, value in enumerate(values, 1)
    ]
    return Results(ABOUT, [*cells, Cell("j1", "dbos", 1, Outcome({}, problem="a | b"))])


def test_every_package_of_a_peer_is_pinned() -> None:
    for engine in ENGINES:
        assert all("==" in package for package in engine.packages)
        assert all("@" in package[1:] for package in engine.npm)
        assert bool(engine.packages) == (engine.kind in ("workflows", "tasks"))


def test_every_engine_has_a_script_and_no_script_is_left_over() -> None:
    scripts = {path.name for path in SCRIPTS.glob("*.py")}
    assert scripts == {"peer.py", *(engine.script for engine in ENGINES)}


def test_a_family_is_chosen_with_the_database_alone() -> None:
    assert {engine.family for engine in chosen(["rhythm"])} == {"raw", "rhythm"}
    assert chosen([]) == list(ENGINES)
    with pytest.raises(ValueError, match="there is no engine temporal"):
        chosen(["temporal"])


def test_engines_without_packages_need_no_installation() -> None:
    ours = [engine for engine in chosen(["rhythm"]) if not engine.compiled]
    assert {python_of(engine, CACHE) for engine in ours} == {sys.executable}


def test_compiled_modules_are_made_once_until_a_source_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], environment: dict[str, str]) -> None:
        assert environment == {"RHYTHM_COMPILED": "1"}
        ran.append(command)
        folder.mkdir()

    folder, digest = tmp_path / COMPILED, "a"
    monkeypatch.setattr(installing, "_run", run)
    monkeypatch.setattr(installing, "_digest", lambda root: digest)
    compiled = [engine for engine in ENGINES if engine.compiled]
    assert {python_of(engine, tmp_path) for engine in compiled} == {sys.executable}
    assert [command[-2:] for command in ran] == [[str(folder), str(page.ROOT)]]
    digest = "b"
    python_of(compiled[0], tmp_path)
    assert len(ran) == 2


def test_a_digest_changes_with_any_source(tmp_path: Path) -> None:
    for name in ("hatch_build.py", "pyproject.toml", "src/rhythm/a.py", "src/rhythm/b.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a", encoding="utf-8")
    before = installing._digest(tmp_path)
    (tmp_path / "src/rhythm/a.pyc").write_text("made by Python", encoding="utf-8")
    assert installing._digest(tmp_path) == before
    (tmp_path / "src/rhythm/b.sql").write_text("b", encoding="utf-8")
    assert installing._digest(tmp_path) != before


def test_only_what_is_compiled_finds_the_compiled_modules() -> None:
    paths = {name: _environment(BY_NAME[name], 1.0).get("PYTHONPATH", "") for name in BY_NAME}
    found = {name for name, path in paths.items() if path.endswith(str(CACHE / COMPILED))}
    assert found == {engine.name for engine in ENGINES if engine.compiled}
    assert paths["rhythm-sqlite"].endswith(str(page.ROOT / "src"))
    assert paths["absurd"] == ""


def test_unknown_job_is_refused_before_anything_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["j9"]) == 2
    assert "there is no job j9; there are j1, j2, j3, j4" in capsys.readouterr().err


def test_figures_and_settings_are_taken_from_lines_of_json_among_others() -> None:
    code = """print('hello'); print('{"settings": "fast"}'); print('{"figures": {"a": 1.5}}')"""
    outcome = outcome_of(code)
    assert (outcome.figures, outcome.settings, outcome.problem) == ({"a": 1.5}, "fast", "")


def test_what_fails_is_reported_with_the_last_line_it_said() -> None:
    assert outcome_of("raise ValueError('no queue')").problem == "ValueError: no queue"
    assert outcome_of("import os; os._exit(3)").problem == "exit code 3"


def test_a_reason_names_no_folder_of_this_machine() -> None:
    code = "import sys; sys.exit('no /some/where/file.sql at http://127.0.0.1:1/bench/x')"
    assert outcome_of(code).problem == "no file.sql at http://127.0.0.1:1/bench/x"


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    code = f"""
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
pathlib.Path({str(left)!r}).write_text(str(child.pid))
child.wait()
"""
    while not left.exists() or not left.read_text():  # a busy machine may be slow to start
        outcome = outcome_of(code, limit_s=1)
    assert outcome.problem == "not done after 1 s"
    with pytest.raises(ProcessLookupError):
        os.kill(int(left.read_text()), 0)


def test_results_are_the_same_after_they_were_stored(tmp_path: Path) -> None:
    results = sample()
    results.save(tmp_path / "folder" / "results.json")
    loaded = Results.load(tmp_path / "folder" / "results.json")
    assert (loaded.about, loaded.cells) == (results.about, results.cells)


def test_the_best_round_counts_and_a_failure_has_its_reason() -> None:
    text = job_table(sample(), JOBS["j1"])
    assert "| **Rhythm** | PostgreSQL | 10,000/s | its settings |" in text
    assert "| DBOS | PostgreSQL | – | **failed: a \\| b** |" in text


def test_ratios_compare_with_the_best_peer_and_with_the_same_database() -> None:
    line = ratio_table(sample()).splitlines()[-1]
    assert "| 10,000/s (Rhythm) | 2,000/s (Absurd) | 5 × |" in line
    assert "| 50,000/s | 20% of it |" in line


def with_compiled() -> Results:
    """The sample, and ours with compiled modules: better than all."""
    cell = Cell("j1", "rhythm-postgres-compiled", 1, Outcome({"drained_per_s": 15_000.0}))
    return Results(ABOUT, [*sample().cells, cell])


def test_compiled_modules_are_compared_with_plain_ones_and_with_nobody_else() -> None:
    results = with_compiled()
    assert ratio_table(results) == ratio_table(sample())
    assert drawn(results) == drawn(sample())
    assert "| **Rhythm, compiled** | PostgreSQL | 15,000/s |" in job_table(results, JOBS["j1"])
    line = compiled_table(results).splitlines()[-1]
    assert line == "| J1 drained | Rhythm, compiled | 15,000/s | 10,000/s | 1.5 × |"
    assert "### What compiled modules add" in page.section(results)
    assert compiled_table(sample()) == ""


def test_everything_compiled_has_a_plain_row_to_compare_with() -> None:
    for engine in ENGINES:
        plain = BY_NAME[engine.name.removesuffix("-compiled")]
        assert plain.replace(name="", title="") == engine.replace(name="", title="", compiled=False)
        assert engine.title == plain.title + (", compiled" if engine.compiled else "")


def test_less_is_better_for_times() -> None:
    [p50, *_] = JOBS["j3"].figures
    assert p50.best([3.0, 2.0]) == 2.0
    assert p50.times_better(ours=2.0, theirs=6.0) == 3.0
    assert p50.show(2.5) == "2.5 ms"


def test_picture_has_a_bar_for_each_engine_that_has_the_figure() -> None:
    root = ET.fromstring(drawn(sample()))
    kinds = [each.get("class") for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds == ["ours", "workflows"]


def test_page_and_picture_are_what_the_stored_figures_make() -> None:
    """`python -m bench.peers.page docs/benchmarks.json` writes them."""
    results = Results.load(page.FIGURES)
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text, results) == text
    assert page.PICTURE.read_text(encoding="utf-8") == drawn(results)
    assert {cell.engine for cell in results.cells} <= BY_NAME.keys()


def test_script_of_ours_does_its_job(tmp_path: Path) -> None:
    """The smallest job there is, on SQLite, by the same command as in the benchmark."""
    root = Path(page.ROOT)
    environment = {
        **ENVIRONMENT,
        "PYTHONPATH": f"{root}{os.pathsep}{IMPORTED_FROM}",
        "BENCH_SCALE": "0.01",
    }
    command = [sys.executable, str(SCRIPTS / "peer_rhythm.py"), "j4"]
    outcome = run([*command, f"sqlite:///{tmp_path}/bench.db", "1"], environment, 60)
    assert (outcome.problem, set(outcome.figures)) == ("", {"children_s", "parallel_steps_s"})
