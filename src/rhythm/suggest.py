"""Finds the name that was probably meant, for "did you mean", and shortens long lists of names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

MAX_COMPARED = 10  # known names that are compared letter by letter with an unknown one
MAX_TRIED = 3  # of these, the most similar ones that may be what was meant
# Words that are less similar than this must also begin alike, or have something else in common.
ALIKE, ALMOST_ALIKE = 0.75, 0.8
LONG_BEGINNING = 4  # letters


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
    close = difflib.get_close_matches(word, likely, n=MAX_TRIED, cutoff=likeness)
    return next((folded[name] for name in close if _may_mean(word, name)), None)


def refuse_unknown(what: str, unknown: Iterable[str], known: Iterable[str]) -> None:
    """Raises `TypeError` if there are unknown options; it says which one may have been meant."""
    for name in unknown:
        near = nearest(name, known)
        help = f"did you mean `{near}`?" if near else f"it takes {', '.join(known)}"
        raise TypeError(f"{what} has no option `{name}`; {help}")


def _may_mean(word: str, name: str) -> bool:
    """Whether somebody may write the word for this name: `lst` for list, but not `prune` for run.

    Short words have many letters in common by chance.
    """
    import difflib

    likeness = difflib.SequenceMatcher(None, name, word).ratio()
    if likeness < ALMOST_ALIKE and word[:1] != name[:1]:
        return False
    short, long = sorted((word, name), key=len)
    return (
        likeness >= ALIKE
        or word[:LONG_BEGINNING] == name[:LONG_BEGINNING]
        or sorted(word) == sorted(name)  # in another order
        or _is_short_for(short, long)
    )


def _is_short_for(short: str, long: str) -> bool:
    """Whether all letters of the short word stand in the long one, in this order."""
    letters = iter(long)
    return all(letter in letters for letter in short)


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
