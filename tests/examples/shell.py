"""Lines that people type, as they stand in blocks for a terminal."""

from __future__ import annotations

import re


def commands_of(text: str) -> list[str]:
    """The commands of Rhythm in a session or in lines for the shell, without what follows them."""
    joined = text.replace("\\\n", " ")
    typed = r"\$ " if re.search(r"^\$ ", joined, re.MULTILINE) else ""
    found = re.findall(rf"^{typed}(?:\w+=\S+ )*(rhythm [^\n]*)$", joined, re.MULTILINE)
    return [re.split(r" +#|;| &| \| ", command)[0].strip() for command in found]
