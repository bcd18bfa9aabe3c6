"""The dashboard and the alert rules in `docs/monitoring` ask only for what Rhythm counts, by the
labels that it has; and nothing that is counted is left out of the dashboard."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.http.health import DURATION, REQUESTS, STREAMS
from rhythm.store.lifecycle import STATUSES
from rhythm.worker.metrics import METRICS, Metric
from rhythm.worker.services import Service
from tests.examples.test_all_pages import problem_with

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "monitoring"
KNOWN = METRICS | {metric.name: metric for metric in (REQUESTS, DURATION, STREAMS)}
PARTS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
SERIES = {name + part: metric for name, metric in KNOWN.items() for part in PARTS[metric.kind]}
SCRAPED = {"instance", "job"}  # labels that Prometheus itself adds
yaml: Any = importlib.import_module("yaml")

DASHBOARD = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
EXPRESSIONS = [
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
    *(rule["expr"] for rule in RULES),
]
FUNCTIONS = "absent count histogram_quantile increase max min rate sum by le".split()


def asked(expression: str) -> Iterator[tuple[str, str]]:
    """The series that an expression reads, each with what stands in its braces."""
    return iter(re.findall(r"\b(rhythm_\w+)(?:\{([^}]*)\})?", expression))


def matchers(text: str) -> list[tuple[str, str]]:
    return re.findall(r'(\w+)(?:=~|=|!=|!~)"([^"]*)"', text)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_reads_series_that_there_are_by_their_labels(expression: str) -> None:
    read = [(SERIES[name], braces) for name, braces in asked(expression)]
    assert read
    for metric, braces in read:
        assert {label for label, _ in matchers(braces)} <= set(metric.labels), metric.name
    kinds = {"le"} if "_bucket" in expression else set[str]()
    labels = kinds.union(*(metric.labels for metric, _ in read)) | SCRAPED
    for grouped in re.findall(r"by \(([^)]*)\)", expression):
        assert set(re.findall(r"\w+", grouped)) <= labels
    assert expression.count("(") == expression.count(")")
    # a counter and the parts of a histogram only mean something by their growth
    for name, _ in asked(expression):
        if SERIES[name].kind != "gauge":
            assert re.search(rf"(rate|increase)\({name}", expression), name


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_names_values_that_labels_have(expression: str) -> None:
    known = {
        "status": {status.name for status in STATUSES} | {"5.."},
        "service": {service.name for service in Service.__subclasses__()},
        "state": {"running", "free"},
    }
    for _, braces in asked(expression):
        for label, values in matchers(braces):
            if not values.startswith("$"):
                assert set(values.split("|")) <= known[label]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_has_nothing_else(expression: str) -> None:
    rest = re.sub(r"\{[^}]*\}|\[[^]]*\]|\brhythm_\w+|by \([^)]*\)|[\d.]+", " ", expression)
    assert set(re.findall(r"[a-z_]+", rest)) <= {*FUNCTIONS}


def test_everything_that_is_counted_is_on_the_dashboard() -> None:
    shown = {
        SERIES[name].name
        for panel in PANELS
        for target in panel["targets"]
        for name, _ in asked(target["expr"])
    }
    assert shown == set(KNOWN)


def test_legends_and_variables_name_labels() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            labels = {*SCRAPED}.union(*(SERIES[name].labels for name, _ in asked(target["expr"])))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels, panel[
                "title"
            ]
    names = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(PANELS)))
    assert used == names
    for each in DASHBOARD["templating"]["list"][1:]:
        ((metric, label),) = re.findall(r"^label_values\((\w+), (\w+)\)$", each["query"]["query"])
        assert label in KNOWN[metric].labels


def test_panels_have_a_place_and_a_number_of_their_own() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len({*ids})
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) < 24
    assert all(panel["title"] and panel["description"].endswith(".") for panel in PANELS)


def test_rules_say_what_to_do() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len({*names})
    for rule in RULES:
        assert re.fullmatch(r"Rhythm[A-Z]\w+", rule["alert"])
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
        grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
        text = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= grouped
        for command in re.findall(r"`(rhythm [^`]+)`", text):
            assert problem_with(command) == "", command


def test_page_names_every_rule_and_how_to_load_them() -> None:
    page = (ROOT / "docs" / "workers.md").read_text(encoding="utf-8")
    section = page.partition("## Grafana and Prometheus")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(Rhythm\w+)` \|", section, re.MULTILINE) == [
        rule["alert"] for rule in RULES
    ]
    assert "monitoring/grafana.json" in section
    assert "monitoring/alerts.yml" in section
    assert "rule_files" in section


def test_a_wrong_name_is_found() -> None:
    with pytest.raises(KeyError):
        test_expression_reads_series_that_there_are_by_their_labels("sum(rhythm_nothing)")
    with pytest.raises(AssertionError):
        test_expression_reads_series_that_there_are_by_their_labels(
            'max(rhythm_queue_depth{name="x"})'
        )
    assert isinstance(KNOWN["rhythm_build_info"], Metric)
