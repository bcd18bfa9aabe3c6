"""Starting the command line: what it costs the processor, beside what it may cost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import row, show_s

MOST_S = 0.12  # of processor time, for each of them


def startup() -> None:
    """`rhythm --help` and `rhythm check` on a small file, as the installed script runs them."""
    with tempfile.TemporaryDirectory() as folder:
        flow = Path(folder) / "a.flow"
        flow.write_text(
            'workflow a(inputs) {\n  let x = await task("t", { n: inputs.n })\n  return x\n}\n',
            encoding="utf-8",
        )
        kept = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        } | {"PYTHONPYCACHEPREFIX": folder}
        commands = {"--help": script("--help"), "check": script("check", str(flow))}
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(21):
            for name, code in commands.items():
                best[name] = min(best[name], processor_s(code, kept))
    for name, took_s in best.items():
        kept_rule = "" if took_s <= MOST_S else "  TOO MUCH"
        row(
            f"rhythm {name}, processor time",
            show_s(took_s),
            f"at most {show_s(MOST_S)}{kept_rule}",
            f"{took_s / MOST_S:.2f} ×",
        )


def script(*args: str) -> str:
    return f"import sys; from rhythm.cli.main import main; sys.exit(main({list(args)!r}))"


def processor_s(code: str, environment: dict[str, str]) -> float:
    """The processor time that Python takes for this code, from its start to its end."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=environment
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, code
    return used.ru_utime + used.ru_stime
