"""The tables: a job for each, and how Rhythm compares with the best of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from bench.figures import Figure, table
from bench.peers.engines import BY_NAME as ENGINES
from bench.peers.engines import Engine, Kind
from bench.peers.jobs import Job
from bench.peers.results import Results
from bench.servers import Store
from rhythm.record import Record


class Best(Record):
    """The best of several engines in one figure."""

    engine: Engine
    value: float


def job_table(results: Results, job: Job) -> str:
    """A row for each engine: its figures, and the settings or the reason why there are none."""
    figures = [
        figure
        for figure in job.figures
        if any(results.best(job, each, figure) is not None for each in results.engines(job))
    ]
    heads = ["", "in", *[figure.title for figure in figures], "settings"]
    return table(heads, (_row(results, job, each, figures) for each in results.engines(job)))


def _row(results: Results, job: Job, engine: Engine, figures: Sequence[Figure]) -> list[str]:
    title = f"**{engine.title}**" if engine.kind == "ours" else engine.title
    shown = [_shown(figure, results.best(job, engine, figure)) for figure in figures]
    problem = results.problem(job, engine)
    told = [results.settings(job, engine), f"**failed: {_cell(problem)}**" if problem else ""]
    return [title, engine.store, *shown, "; ".join(filter(None, told))]


def _shown(figure: Figure, value: float | None) -> str:
    return "–" if value is None else figure.show(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def ratio_table(results: Results) -> str:
    """For each figure and database our best row, and how many times better it is than the best of
    the others."""
    others = ["the best workflow engine", "", "the best task queue", "", "its database alone", ""]
    lines = [
        [f"{job.name.upper()} {figure.title}", *line]
        for job in results.jobs()
        for figure in job.figures
        for store in get_args(Store)
        if (line := _ratio_line(results, job, figure, store))
    ]
    return table(["", "Rhythm", *others], lines)


def _ratio_line(results: Results, job: Job, figure: Figure, store: Store) -> list[str]:
    """Empty if there is nothing of ours."""
    ours = best(results, job, figure, "ours", store)
    if ours is None:
        return []
    alone = best(results, job, figure, "limit", store)
    return [
        _named(figure, ours),
        *_against(figure, ours, best(results, job, figure, "workflows")),
        *_against(figure, ours, best(results, job, figure, "tasks")),
        *_of_limit(figure, ours, alone),
    ]


def _against(figure: Figure, ours: Best, theirs: Best | None) -> tuple[str, str]:
    if theirs is None:
        return "", ""
    return _named(figure, theirs), f"{figure.times_better(ours.value, theirs.value):.2g} ×"


def _of_limit(figure: Figure, ours: Best, alone: Best | None) -> tuple[str, str]:
    if alone is None:
        return "", ""
    return figure.show(alone.value), f"{figure.times_better(ours.value, alone.value):.0%} of it"


def _named(figure: Figure, best: Best) -> str:
    return f"{figure.show(best.value)} ({best.engine.title})"


def compiled_table(results: Results) -> str:
    """For each figure of ours the value with compiled modules, and how many times better it is than
    without; empty if none was measured."""
    lines = [
        [f"{job.name.upper()} {figure.title}", engine.title, *line]
        for job in results.jobs()
        for figure in job.figures
        for engine in results.engines(job)
        if engine.compiled and (line := _compiled_line(results, job, figure, engine))
    ]
    return table(["", "", "compiled", "plain", ""], lines) if lines else ""


def _compiled_line(results: Results, job: Job, figure: Figure, engine: Engine) -> list[str]:
    plain = ENGINES[engine.name.removesuffix("-compiled")]
    value, before = results.best(job, engine, figure), results.best(job, plain, figure)
    if value is None or before is None:
        return []
    times = f"{figure.times_better(value, before):.2g} ×"
    return [figure.show(value), figure.show(before), times]


def best(
    results: Results, job: Job, figure: Figure, kind: Kind, store: Store | None = None
) -> Best | None:
    """The best engine of a kind, and of a store if one is given, in one figure. Nothing that is
    compiled counts: what is compared is what everybody gets."""
    found = [
        Best(engine, value)
        for engine in results.engines(job)
        if engine.kind == kind
        and not engine.compiled
        and store in (None, engine.store)
        and (value := results.best(job, engine, figure)) is not None
    ]
    if not found:
        return None
    wanted = figure.best([each.value for each in found])
    return next(each for each in found if each.value == wanted)
