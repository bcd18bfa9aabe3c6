"""The name that was probably meant, for "did you mean", and lists of names of a bounded length."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

MAX_COMPARED = 10  # names, letter by letter, with one that is unknown


def nearest(word: str, known: Iterable[str], likeness: float = 0.65) -> str | None:
    """The name that was probably meant, if one is near enough."""
    if len(word) > 80:
        return None
    import difflib

    # a set has no order, and the answer must have one
    folded = {name.lower().replace("_", ""): name for name in sorted(known)}
    word = word.lower().replace("_", "")
    likely = sorted(
        folded,
        key=lambda name: len(_pairs(word) & _pairs(name)) / (len(word) + len(name) + 1),
        reverse=True,
    )[:MAX_COMPARED]
    match = difflib.get_close_matches(word, likely, n=1, cutoff=likeness)
    return folded[match[0]] if match else None


def some_of(names: Iterable[str], shown: int = 10) -> str:
    """The first of these names, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - shown:,} more" if len(ordered) > shown else ""
    return ", ".join(ordered[:shown]) + more


@lru_cache(1024)
def _pairs(word: str) -> frozenset[str]:
    """The letters of a word, two by two with its ends: words that share many of them are alike."""
    return frozenset(map("".join, pairwise(f" {word} ")))
