"""The Markdown files of the project as data: their blocks, headings, links and inline code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)(```+)([^`\n]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)\]\(([^()\s]+)\)")


class Block(NamedTuple):
    """A fenced block. `language` is the first word after the fence, `name` the rest of the line."""

    page: str
    line: int
    language: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language or 'no language'})"


def pages() -> list[str]:
    """The paths of all Markdown files that people read, from the project's folder."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = text_of(page)
    found = []
    for match in FENCE.finditer(text):
        language, _, name = match[3].strip().partition(" ")
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, language, name.strip(), match[4]))
    return found


@cache
def prose(page: str) -> str:
    """The page without its blocks."""
    return FENCE.sub("", text_of(page))


def anchors(page: str) -> set[str]:
    """The places of the page that a link can name, as GitHub makes them of the headings."""
    found: dict[str, int] = {}
    for title in re.findall(r"^#{1,6} (.*)$", prose(page), re.MULTILINE):
        shown = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
        if found[slug]:
            found[f"{slug}-{found[slug]}"] = 0
    return set(found) | set(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))


def links(page: str) -> list[str]:
    """The links of a page that do not leave the project, also those of pictures."""
    text = re.sub(r"`[^`\n]*`", "`", prose(page))
    found = LINK.findall(text) + re.findall(r'<img [^>]*src="([^"]+)"', text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def inline_code(page: str) -> list[str]:
    """What stands between backticks in the page's prose."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(page))
