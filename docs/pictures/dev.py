"""Makes dev.svg: a terminal in which `rhythm dev` is killed in the middle of an order, and goes on.

    python docs/pictures/dev.py [FILE]

What is shown is what the commands print: the program of the README is run, killed and run again in
an empty folder. Only what `rhythm dev` says about itself is left out.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("dev.svg")
COLUMNS = 100
RHYTHM = [sys.executable, "-m", "rhythm"]
START = ["start", "order", "--id", "A1", "-i", "id=A1", "-i", "amount=5"]
SIGNAL = ["signal", "A1", "approve"]
CLOCK = re.compile(r"\d\d:\d\d:\d\d")  # which begins a line about something that happened
PAUSE_S = 4  # of the person at the keyboard, so that the times in the picture differ


def main(picture: Path) -> None:
    (program,) = re.findall(
        r"^```python app.py\n(.*?)^```",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.M | re.S,
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "app.py").write_text(program, encoding="utf-8")
        before = first_run(folder)
        after = second_run(folder)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in (prompt("rhythm dev &"), prompt(" ".join(["rhythm", *START])), *before):
        console.print(line, no_wrap=True, overflow="ellipsis")
    console.print(prompt("kill -9 %1"), prompt(" ".join(["rhythm", *SIGNAL])), sep="\n")
    for line in (prompt("rhythm dev"), *after):
        console.print(line, no_wrap=True, overflow="ellipsis")
    # no fonts of another host: a terminal's own will do
    plain = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="rhythm dev", code_format=plain, unique_id="dev")
    picture.write_text(svg.replace("Fira Code", "monospace") + "\n", encoding="utf-8")


def prompt(command: str) -> Text:
    return Text.assemble(("$ ", "bold green"), (command, "bold"))


def first_run(folder: str) -> list[Text]:
    """What is said until the order waits; then it is killed."""
    with open(f"{folder}/first", "wb") as out:
        dev = run_dev(folder, out)
        wait_for(folder, "first", "Ctrl-C")
        subprocess.run([*RHYTHM, *START], cwd=folder, check=True, capture_output=True)
        said = wait_for(folder, "first", "waits for signal")
        time.sleep(PAUSE_S)
        os.kill(dev.pid, signal.SIGKILL)
        dev.wait()
    return happened(said)


def second_run(folder: str) -> list[Text]:
    """What is said from the start to the end of the order."""
    time.sleep(PAUSE_S)
    subprocess.run([*RHYTHM, *SIGNAL], cwd=folder, check=True, capture_output=True)
    with open(f"{folder}/second", "wb") as out:
        dev = run_dev(folder, out)
        said = wait_for(folder, "second", "completed")
        dev.terminate()
        dev.wait()
    return happened(said)


def run_dev(folder: str, out: object) -> subprocess.Popen[bytes]:
    colours = {**os.environ, "FORCE_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*RHYTHM, "dev"],
        cwd=folder,
        env=colours,
        stdout=out,  # type: ignore[arg-type]  # a file
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def wait_for(folder: str, file: str, text: str) -> str:
    """What is in the file, once the text is in it, on a line that has ended."""
    for _ in range(1_000):
        said = Path(folder, file).read_text(encoding="utf-8")
        if text in said and said.endswith("\n"):
            return said
        time.sleep(0.03)
    raise SystemExit(f"`rhythm dev` did not say {text!r}, but:\n{said}")


def happened(said: str) -> list[Text]:
    """The lines that say what happened to the order, as they were printed."""
    return [Text.from_ansi(line) for line in said.splitlines() if CLOCK.search(line)]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PICTURE)
