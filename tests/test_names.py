"""One word for each thing (docs/concepts.md): names that had several meanings do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rhythm

SOURCE = Path(rhythm.__file__).parent
PROJECT = Path(__file__).parents[1]
# A name that says nothing of what it does, or that once meant many things, and the words for it.
BANNED = {
    "told": "notified, logged, reported, shown",
    "tell": "notify, log_event, report, write_history",
    "look": "poll, check, match",
    "looks": "style, polls",
    "see_off": "release_claims",
    "sweep": "end_cancelled_tasks",
    "mine": "own, claimed",
    "still": "still_authorized",
    "chance": "rng",
    "concerned": "contributors",
    "circumstances": "decision_context",
    "rights": "permissions",
}
# Also as a part of a longer name.
ANYWHERE = {"told", "tell", "look", "looks", "concerned", "rights"}
# Words that neither code nor docs use for a thing that has another name.
BANNED_IN_PROSE = {"rights": "permissions; those of a user of PostgreSQL are privileges"}
# Constants without a noun: how much of what?
NO_NOUNS = {
    "AGAIN", "ASKED", "AWAY", "CUT", "DEEPEST", "FIRST", "GAP_S", "KEPT", "LARGEST", "LAST",
    "LATER_S", "LONGEST", "LOOK_S", "MOST", "PASS", "SHOWN", "SILENT_S", "TOLD", "WIDEST",
}  # fmt: skip


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a module defines, and where."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def parts(name: str) -> set[str]:
    """The words that a name is made of."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def found_in(path: Path, words: set[str]) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        f"{line}: {name}"
        for name, line in names(tree)
        if name.lstrip("_") in words or parts(name) & words & ANYWHERE
    ]


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in modules()}), ids=lambda path: path.name
)
def test_no_word_that_has_a_better_one(folder: Path) -> None:
    for path in sorted(folder.glob("*.py")):
        assert found_in(path, set(BANNED)) == [], f"{path}: see BANNED for the words to use"
        assert found_in(path, NO_NOUNS) == [], f"{path}: a constant is a noun"


def test_a_module_is_not_called_by_such_a_word() -> None:
    assert [path for path in modules() if path.stem in {*BANNED, "part", "body", "utils"}] == []


def prose() -> list[Path]:
    """Every text that people read. A migration is never changed, so its words stay."""
    texts = [
        *SOURCE.rglob("*.sql"),
        *modules(),
        *PROJECT.glob("docs/**/*.md"),
        *PROJECT.glob("*.md"),
    ]
    return sorted(path for path in texts if path.parent.name != "migrations")


@pytest.mark.parametrize("word", BANNED_IN_PROSE)
def test_prose_has_one_word_for_each_thing(word: str) -> None:
    found = [
        f"{path}:{number}"
        for path in prose()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rf"\b{word}\b", line, re.IGNORECASE)
    ]
    assert found == [], f"write {BANNED_IN_PROSE[word]}"


def test_these_words_are_found_where_they_are(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("def tell(look_at):\n  self._told = 1\n  SHOWN: int = 2\n  return look.x\n")
    found = found_in(module, {*BANNED, *NO_NOUNS})
    assert sorted(found) == ["1: look_at", "1: tell", "2: _told", "3: SHOWN"]
