"""The tables: a row of the benchmark each, and in every line how it compares with the baseline."""

from __future__ import annotations

from bench.figures import Figure, table
from bench.growth.measuring import Figures
from bench.growth.results import Results, Sample
from bench.growth.rows import Row


def table_of(results: Results, row: Row) -> str:
    """In Markdown."""
    heads = ["in", "", *[figure.title for figure in row.figures]]
    lines = [
        [sample.store, sample.case.title, *shown(results, row, sample)]
        for sample in results.of(row.name)
    ]
    return table(heads, lines)


def shown(results: Results, row: Row, sample: Sample) -> list[str]:
    """The figures of a sample, with their ratios; a reason if there are none."""
    if sample.problem:
        reason = sample.problem.replace("|", "\\|").replace("\n", " ")
        return [f"**failed: {reason}**", *[""] * (len(row.figures) - 1)]
    baseline = results.baseline(sample)
    return [_cell(figure, sample.case.figures, baseline) for figure in row.figures]


def _cell(figure: Figure, figures: Figures, baseline: Figures) -> str:
    value, other = figures.get(figure.key), baseline.get(figure.key)
    if value is None:
        return "–"
    return figure.show(value) + (f" ({value / other:.2f} ×)" if other else "")
