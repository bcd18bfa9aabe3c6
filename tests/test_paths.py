"""Paths: what a message shows of the way to what is wrong."""

from __future__ import annotations

from rhythm.paths import KEY, MAX_PATH_CHARACTERS, Path, show_path


def test_a_path_is_shown_as_one_would_write_it() -> None:
    assert (
        show_path((((((None, "order"), "items"), 3), "unit price"), "x"))
        == '.order.items[3]["unit price"].x'
    )
    assert show_path(None) == ""


def test_a_long_key_is_cut() -> None:
    assert show_path((None, "k" * 500_000)) == f".{'k' * KEY}"


def test_of_a_long_path_the_end_is_shown() -> None:
    path: Path = None
    for n in range(1_000):
        path = (path, f"{n}" * KEY)
    shown = show_path((path, "price"))
    assert (shown[:2], shown[-6:]) == ("…[", ".price")
    assert MAX_PATH_CHARACTERS <= len(shown) <= 2 * MAX_PATH_CHARACTERS
