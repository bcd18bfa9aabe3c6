"""Finds the name that was probably meant, for "did you mean", and shortens long lists of names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

MAX_COMPARED = 10  # known names that are compared letter by letter with an unknown one


def nearest(word: str, known: Iterable[str], likeness: float = 0.65) -> str | None:
    """Returns the known name that was probably meant, or None if none is similar enough."""
    if len(word) > 80:
        return None
    import difflib

    # Sorted, so that the answer is the same every time: `known` may be a set.
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
    """Returns the first `shown` of these names, sorted, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - shown:,} more" if len(ordered) > shown else ""
    return ", ".join(ordered[:shown]) + more


@lru_cache(1024)
def _pairs(word: str) -> frozenset[str]:
    """Returns the pairs of neighbouring letters in a word: " ab " has " a", "ab" and "b ".

    Similar words have many pairs in common.
    """
    return frozenset(map("".join, pairwise(f" {word} ")))
