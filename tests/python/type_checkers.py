"""What mypy and pyright say of a user's project, and of the examples.

`make pyright` runs `python -m tests.python.type_checkers`, which needs pyright.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "src", ROOT / "examples", ROOT / "examples/python"]
EXAMPLES = sorted(ROOT.glob("examples/**/*.py"))
PROJECT = """
import asyncio

import rhythm
from rhythm import Rhythm


@rhythm.task
async def charge(order_id: str, amount: float) -> dict[str, str]:
    return {"id": order_id}


@rhythm.task
def pack(item: str) -> int:
    return len(item)


@rhythm.task
async def sized(item: str) -> int:
    return len(item)


@rhythm.workflow(queue="orders")
async def order(order_id: str, items: list[str]) -> int:
    payment = await charge(order_id, 5.0)
    total = 0
    for size in await asyncio.gather(*[pack.run(item=item) for item in items]):
        total += size
    for size in await rhythm.all([pack.run(item=item) for item in items], concurrency=3):
        total += size
    ended = await rhythm.all([pack.run(item=item) for item in items], settle=True)
    parcels, receipt = await rhythm.gather(sized("a"), charge("7", 1.0))
    total += parcels + len(receipt["id"]) + len([one for one in ended if one["status"] == "failed"])
    answer = await rhythm.signal("shipped", timeout="3d")
    await rhythm.sleep("1h")
    with rhythm.timeout("5m"):
        await charge.options(retries=3)(payment["id"], amount=1.0)
    decision = await rhythm.approval(role="boss", reason=str(answer))
    await rhythm.publish("order.done", {"n": total, "by": decision["by"]})
    return total


def start(app: Rhythm) -> int:
    return app.start(order, "7", items=["a"]).result()


async def start_async() -> int:
    handle = await rhythm.start(order, order_id="7", items=["a"])
    return await handle.result()
"""
WRONG = """

def wrong(app: Rhythm) -> str:
    app.start(order, order_id=7, items=[])
    app.start(order, "7")
    return app.start(order, "7", items=[]).result()
"""
# The lines of `wrong` that are wrong, counted from its first.
WRONG_LINES = [1, 2, 3]


def lines_found(found: list[int], text: str) -> list[int]:
    """Lines of a file, counted from the function `wrong` in it."""
    first = text[: text.index("def wrong")].count("\n") + 1
    return [line - first for line in found]


def mypy(files: list[Path], folder: Path) -> list[str]:
    """What `mypy --strict` says of these files, a line each."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="]
    ended = subprocess.run(
        [*command, "--explicit-package-bases", *map(str, files)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, FOLDERS))},
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def pyright(files: list[Path], folder: Path) -> list[tuple[str, int, str]]:
    """What pyright says of these files: file, line and message of each error."""
    config = {"extraPaths": [*map(str, FOLDERS)], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    # a virtual environment of its own may have another Rhythm: ours comes first
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(folder)]
    for file in files:
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = json.loads(ended.stdout)["generalDiagnostics"]
    return [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"])
        for one in found
        if one["severity"] == "error"
    ]


def main() -> int:
    """Runs pyright over the examples and the project; returns the exit code."""
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as other:
        project = Path(other) / "project.py"
        project.write_text(PROJECT)
        clean = pyright([*EXAMPLES, project], Path(made))
        for file, line, message in clean:
            print(f"{file}:{line}: {message}")
        text = PROJECT + WRONG
        project.write_text(text)
        found = lines_found([line for _, line, _ in pyright([project], Path(other))], text)
    print(f"{len(EXAMPLES)} examples and a project: {len(clean)} errors; "
          f"wrong arguments: {len(found)} of {len(WRONG_LINES)} found")  # fmt: skip
    return int(bool(clean) or found != WRONG_LINES)


if __name__ == "__main__":
    sys.exit(main())
