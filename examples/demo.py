"""`make demo`: a workflow, what happens while it runs, and why it survives a crash.

Part three is the point. Each step of a workflow runs in a process of its own, which exits before
the next begins; all that passes from one to the next is a small JSON file. That file is what the
durable engine keeps in its database.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ORDER = "examples/order.flow"
INVOICE = "examples/invoice.flow"
RUN = f"run {ORDER} --app examples/order_tasks.py --fast-forward".split()
GIVEN = [
    "-i",
    "customer=ada",
    "-i",
    'items:=["tea", "cup", "tea"]',
    "--signal",
    'delivered={"signed_by": "Ada"}',
]
STOPPING = f"""\
{INVOICE}, each step in a process of its own, which exits after it. What is kept is all
that the next one gets: the line to go on at, variables, how far a loop is, and the result
that waits."""
NEXT = """
Nothing was replayed: every process began where the one before had stopped. What next?

  source .venv/bin/activate             puts rhythm on the path; then
  rhythm graph examples/order.flow      the same workflow, drawn
  examples/README.md                    more workflows to run, a failing one too
  docs/language.md, docs/tasks.md       writing your own: the workflow, and its tasks in Python"""


def main() -> int:
    title(
        "1. A workflow is a small program",
        f"{ORDER}; its tasks are plain Python in examples/order_tasks.py",
    )
    print((ROOT / ORDER).read_text(encoding="utf-8"))

    title(
        "2. Running it",
        "branches in parallel, a payment service that fails twice, two days of waiting skipped",
    )
    print(f"$ rhythm {shlex.join(RUN)} \\\n    {shlex.join(GIVEN)}\n", flush=True)
    if code := subprocess.run(
        [sys.executable, "-m", "rhythm", *RUN, *GIVEN], cwd=ROOT, check=False
    ).returncode:
        return code

    title("3. Stopping it anywhere", STOPPING)
    for number, line in enumerate((ROOT / INVOICE).read_text(encoding="utf-8").splitlines(), 1):
        print(f"{number:>4}  {line}".rstrip())
    print(flush=True)
    step_by_step()
    print(NEXT)
    return 0


def step_by_step() -> None:
    """Starts one process after the other, until the last has removed the state."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.json"
        step = [sys.executable, "examples/one_step.py", str(state)]
        subprocess.run(step, cwd=ROOT, check=True)
        while state.exists():
            subprocess.run(step, cwd=ROOT, check=True)


def title(heading: str, note: str) -> None:
    bold, dim, plain = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "")
    print(f"\n{bold}{heading}{plain}\n{dim}{note}{plain}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
