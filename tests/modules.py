"""`python -m tests.modules` writes docs/internals/modules.md: every module with its first line. A
test compares."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "src" / "rhythm", ROOT / "docs" / "internals" / "modules.md"
HEAD = """# Modules

What each module owns, in its own first line. Written by `make modules`.
"""


def first_line(path: Path) -> str:
    """The first paragraph of a module's docstring, as one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).rstrip(".").replace("|", "\\|")


def page() -> str:
    """The whole page."""
    folders: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        folders.setdefault(path.parent.relative_to(SOURCE).as_posix(), []).append(path)
    parts = [HEAD]
    for folder, paths in sorted(folders.items()):
        name = "rhythm" if folder == "." else f"rhythm/{folder}"
        inits = [path for path in paths if path.name == "__init__.py"]
        rows = [
            f"| `{path.stem}` | {first_line(path)} |"
            for path in paths
            if path.name != "__init__.py"
        ]
        parts.append(
            "\n".join(
                [
                    f"## {name}",
                    "",
                    *(first_line(path) for path in inits),
                    "",
                    "| module | |",
                    "| --- | --- |",
                    *rows,
                    "",
                ]
            )
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
