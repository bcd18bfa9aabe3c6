"""Parts of docs/benchmarks.md that come from stored figures. The prose is written by hand; what
stands between two marks comes from a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "pictures"
END = "<!-- until here -->\n"
QUIET_LOAD = 1.0  # what ran a minute before still counts in it


def begin(script: str) -> str:
    """The mark at which the part of a script begins."""
    return f"<!-- written by {script} -->\n"


def written(page: str, mark: str, section: str) -> str:
    """The page with this section in place of the one that begins with the mark."""
    before, _, rest = page.partition(mark)
    _, _, after = rest.partition(END)
    return f"{before}{mark}\n{section}\n{END}{after}"


def where(about: dict[str, Any]) -> str:
    """When, on what and with which settings the figures were made, and what is wrong with that."""
    machine, settings = about["machine"], about["settings"]
    shown = ", ".join(f"`{name}={value}`" for name, value in settings.items())
    load = f"load {about['load']['begin']} at the beginning, {about['load']['end']} at the end"
    return (
        f"{about['began'][:10]}, Rhythm at `{about['commit']}`: {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}; {load}; "
        f"{_rounds(about['rounds'])}{_scaled(about['scale'])}.\n"
        f"PostgreSQL {machine['postgresql']} on the same cores: {shown}."
        f"{_busy(about['load']['begin'])}"
    )


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"the best of {count} rounds"


def _scaled(scale: float) -> str:
    return "" if scale == 1 else f"; **all sizes times {scale:g}: this was a trial**"


def _busy(load: float) -> str:
    """A warning, if others used the machine before anything was measured."""
    if load <= QUIET_LOAD:
        return ""
    return (
        "\n\n**Others used the machine at the same time: these figures are to be measured anew.**"
    )
