"""Which language a file is in, by its name: `.flow`, or JSON steps.

Only the front end that is needed is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rhythm.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from rhythm.lang.flow.check import ParsedFlow
    from rhythm.lang.flow.rules.surroundings import Surroundings
    from rhythm.lang.report import Compilation
    from rhythm.lang.steps.check import ParsedSteps

FOUND_IN_FOLDERS = (".flow", ".steps.json")  # other JSON files in a folder are not ours
TAKEN_BY_NAME = (".flow", ".json")


def is_steps(file: str, text: str) -> bool:
    """Whether a file is JSON steps.

    A text without a file name (`-`) is recognised by its first character: no `.flow` begins with a
    brace.
    """
    return file.endswith(".json") or (file == "-" and text.lstrip().startswith("{"))


def compile_text(
    text: str, file: str, known: Surroundings | None = None, limits: Limits = DEFAULT_LIMITS
) -> Compilation:
    """Compiles a file. Never raises, whatever the text is: problems are returned as diagnostics."""
    return parse_text(text, file, limits).compile(known)


def parse_text(text: str, file: str, limits: Limits = DEFAULT_LIMITS) -> ParsedFlow | ParsedSteps:
    """Reads a file. Then its `names` are known, and `check` says what is wrong with it."""
    if is_steps(file, text):
        from rhythm.lang.steps.check import ParsedSteps

        return ParsedSteps(text, file, limits)
    from rhythm.lang.flow.check import ParsedFlow

    return ParsedFlow(text, file, limits)


def part_of(text: str, file: str, name: str, seen: Callable[[str], bool]) -> str:
    """Returns the file for a reader who may see all of its workflows, else only the text of one.

    `seen` says which workflows the reader may see. The text is empty if there is no workflow
    `name`.
    """
    if is_steps(file, text):  # a file of JSON steps has one workflow
        return text
    from rhythm.lang.flow.check import workflow_texts

    found = workflow_texts(text, file)
    return text if found and all(map(seen, found)) else found.get(name, "")
