"""Lines of code: the workflows of `examples/python` beside samples that other engines publish.

`python -m bench.samples` counts ours and prints the table of examples/README.md. Theirs were read
and counted once, by the same rule; the numbers, with the repository, path and commit of every file,
are facts recorded here, and none of their code is. A line counts if it is neither blank, nor a
comment, nor (a part of) a docstring.
"""

from __future__ import annotations

import ast
from pathlib import Path

from rhythm.record import Record

EXAMPLES = Path(__file__).parents[1] / "examples" / "python"


class Sample(Record):
    """A published sample: lines of its workflows, and of each of its files."""

    ours: str  # the name of our file
    engine: str
    repository: str
    folder: str  # of the files, which are below it
    workflow: int  # lines of its workflow functions or classes, without imports and data classes
    files: dict[str, tuple[int, str]]  # lines of the file, and the commit that was read
    apart: str = ""  # what differs

    @property
    def whole(self) -> int:
        """Lines of all files."""
        return sum(lines for lines, _ in self.files.values())


SAMPLES = (
    Sample("transfer", "Temporal", "temporalio/money-transfer-project-template-python", "", 39, {
        "workflows.py": (46, "08f3419f7a75"), "activities.py": (46, "4a07313f6f86"),
        "run_worker.py": (18, "59136562e05e"), "run_workflow.py": (27, "25fc19a4c6ef"),
        "shared.py": (8, "e7c6676484d2"),
    }, "theirs calls a bank service, not counted"),
    Sample("trip", "Restate", "restatedev/examples", "python/patterns-use-cases/sagas", 21, {
        "app.py": (44, "149233b85865"), "clients/flight_client.py": (10, "76e09a05c5de"),
        "clients/car_rental_client.py": (10, "1f561299af11"),
        "clients/hotel_client.py": (12, "1f561299af11"),
    }),
    Sample("agent", "Temporal", "temporalio/ai-cookbook",
           "agents/agentic_loop_tool_call_openai_python", 39, {
        "workflows/agent.py": (46, "0880b83ec9c2"), "worker.py": (27, "3cf13bbf7467"),
        "start_workflow.py": (24, "12ed74ad7136"),
        "activities/tool_invoker.py": (27, "0880b83ec9c2"),
        "activities/openai_responses.py": (25, "3cf13bbf7467"),
    }, "theirs asks a real model; its tools and helpers are not counted"),
    Sample("poll", "Temporal", "temporalio/samples-python", "polling/periodic_sequence", 27, {
        "workflows.py": (35, "0763309a16d4"), "run_worker.py": (20, "1904d1a29e5f"),
        "run_periodic.py": (17, "145aaf4f0509"), "activities.py": (13, "4cf1d9a8eb3d"),
    }, "ours also has growing pauses and a limit of a day"),
    Sample("batch", "Temporal", "temporalio/samples-python", "batch_sliding_window", 152, {
        "sliding_window_workflow.py": (103, "01f3ded8ba26"),
        "batch_workflow.py": (74, "7a0e5236596e"),
        "record_processor_workflow.py": (17, "01f3ded8ba26"),
        "record_loader_activity.py": (29, "583d5febd09e"), "worker.py": (29, "01f3ded8ba26"),
        "starter.py": (34, "01f3ded8ba26"),
    }, "theirs loads a page when the window reaches it, ours all pages of a part first"),
    Sample("inbox", "DBOS", "dbos-inc/dbos-demo-apps", "python/agent-inbox", 28, {
        "main.py": (87, "8751c9f9951b"),
    }, "theirs has HTTP routes of its own; ours has `rhythm approvals`"),
    Sample("newsletter", "Temporal", "temporalio/email-subscription-project-python", "", 34, {
        "workflows.py": (41, "21745e003975"), "run_worker.py": (17, "21745e003975"),
        "run_flask.py": (57, "21745e003975"), "activities.py": (8, "8414a09bb70c"),
        "shared_objects.py": (11, "21745e003975"),
    }, "theirs has HTTP routes of its own, and a query; ours sets an attribute"),
    Sample("reminders", "DBOS", "dbos-inc/dbos-demo-apps",
           "python/scheduled-reminders/scheduled_reminders", 10, {
        "main.py": (47, "169ed49d5911"),
    }, "theirs sends real mails, and has HTTP routes of its own"),
    Sample("etl", "Prefect", "PrefectHQ/prefect", "examples", 7, {
        "run_api_sourced_etl.py": (47, "13afb00d8b30"),
    }, "theirs asks a real site, uses pandas, and fetches one page after the other"),
    Sample("fan_out", "Hatchet", "hatchet-dev/hatchet", "examples/python/fanout", 27, {
        "worker.py": (41, "15da262e8cdd"), "trigger.py": (22, "5b830c17d21c"),
    }, "theirs has its tasks in its workflows: they are in the first number"),
    Sample("checkout", "DBOS", "dbos-inc/dbos-demo-apps", "python/widget-store/widget_store", 25, {
        "main.py": (121, "b048903e99ad"),
    }, "theirs has SQL and HTTP routes of its own"),
)  # fmt: skip


def lines_of(text: str, tree: ast.AST) -> int:
    """Counts the lines of code of a piece of a module."""
    lines = text.splitlines()
    skipped = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    body = getattr(tree, "body", [])
    decorators = [each.lineno for each in getattr(tree, "decorator_list", [])]
    first = 1 if isinstance(tree, ast.Module) else min([tree.lineno, *decorators])  # type: ignore[attr-defined]  # a definition has a line
    last = len(lines) if isinstance(tree, ast.Module) else body[-1].end_lineno
    return sum(
        bool(lines[n - 1].strip()) and not lines[n - 1].lstrip().startswith("#")
        for n in range(first, last + 1)
        if n not in skipped
    )


def ours(name: str) -> tuple[int, int]:
    """Lines of the workflows of our file, and of the whole of it."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    workflows = [node for node in tree.body if _is_workflow(node)]
    return sum(lines_of(text, node) for node in workflows), lines_of(text, tree)


def _is_workflow(node: ast.stmt) -> bool:
    return isinstance(node, ast.AsyncFunctionDef) and any(
        "rhythm.workflow" in ast.unparse(each) for each in node.decorator_list
    )


def table() -> str:
    """The table of examples/README.md."""
    rows = [
        "| ours | lines: workflow, all | theirs | lines: workflow, all | what differs |",
        "| --- | --- | --- | --- | --- |",
    ]
    sums = [0, 0, 0, 0]
    for sample in SAMPLES:
        counts = [*ours(sample.ours), sample.workflow, sample.whole]
        sums = [total + count for total, count in zip(sums, counts, strict=True)]
        commit = next(iter(sample.files.values()))[1]
        where = f"{sample.repository}{sample.folder and '/' + sample.folder} at `{commit}`"
        rows.append(
            f"| [{sample.ours}.py](python/{sample.ours}.py) | {counts[0]}, {counts[1]} | "
            f"{sample.engine}: {where} | {counts[2]}, {counts[3]} | {sample.apart} |"
        )
    return "\n".join([*rows, f"| all | {sums[0]}, {sums[1]} | | {sums[2]}, {sums[3]} | |", ""])


if __name__ == "__main__":
    print(table(), end="")
