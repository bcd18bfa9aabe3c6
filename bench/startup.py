"""Starting the command line, next to starting Python."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import row, show_s


def starting() -> None:
    """`rhythm --help` and `rhythm check`, as the installed script runs them."""
    with tempfile.TemporaryDirectory() as folder:
        flow = Path(folder) / "a.flow"
        flow.write_text(
            'workflow a(inputs) {\n  let x = await task("t", { n: inputs.n })\n  return x\n}\n',
            encoding="utf-8",
        )
        kept = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        } | {"PYTHONPYCACHEPREFIX": folder}
        python, help, check = "pass", script("--help"), script("check", str(flow))
        best = dict.fromkeys((python, help, check), float("inf"))
        for _ in range(21):
            for code in best:
                best[code] = min(best[code], seconds(code, kept))
    for name, code in (("rhythm --help", help), ("rhythm check", check)):
        row(
            name,
            show_s(best[code]),
            f"python -c pass: {show_s(best[python])}",
            f"{best[code] / best[python]:.2f} ×",
        )


def script(*args: str) -> str:
    return f"import sys; from rhythm.cli.main import main; sys.exit(main({list(args)!r}))"


def seconds(code: str, environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    return time.perf_counter() - began
