"""`make demo`: a workflow, what happens while it runs, and why it survives a crash.

Part three is the point. Each step of a workflow runs in a process of its own, which exits before the next begins; all that
passes from one to the next is a small JSON file. That file is what the durable engine keeps in its database.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ORDER = HERE / "order.flow"
STEP = HERE / "one_step.py"
ITEMS = ["tea", "cup", "tea"]


def main() -> int:
    title("1. A workflow is a small program", "examples/order.flow; its tasks are plain Python in examples/order_tasks.py")
    print(ORDER.read_text(encoding="utf-8"))

    title("2. Running it", "branches in parallel, a payment service that fails twice, two days of waiting skipped")
    code = subprocess.run(
        [
            *(sys.executable, "-m", "rhythm", "run", str(ORDER), "--app", str(HERE / "order_tasks.py"), "--fast-forward"),
            *("-i", "customer=ada", "-i", f"items:={json.dumps(ITEMS)}", "--signal", 'delivered={"signed_by": "Ada"}'),
        ],
        check=False,
    ).returncode
    if code:
        return code

    title("3. Stopping it anywhere", "examples/invoice.flow, each step in a process that exits after it; this is all that is kept:")
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.json"
        while True:
            subprocess.run([sys.executable, str(STEP), str(state)], check=True)
            if not state.exists():
                break
    print("\nNothing was replayed: every step began where the snapshot said. What next?\n")
    print("  .venv/bin/rhythm graph examples/order.flow    the same workflow, drawn")
    print("  examples/README.md                            more workflows to run, a failing one too")
    print("  docs/language.md                              the language")
    return 0


def title(heading: str, note: str) -> None:
    bold, dim, plain = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "")
    print(f"\n{bold}{heading}{plain}\n{dim}{note}{plain}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
