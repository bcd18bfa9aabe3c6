"""Where claims of PostgreSQL begin to look: the laws of the cursor, which is pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.store.postgres.claim_cursor import (
    HIGHEST,
    LOWEST,
    MAX_PRIORITIES,
    MAX_REST_S,
    MIN_REST_S,
    REST_SHARE,
    ClaimCursor,
    ClaimPosition,
    QueuePart,
)

SMALL = st.integers(-2, 2)
PRIORITIES = SMALL | st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST])
POSITIONS = st.builds(
    ClaimPosition, st.just("mail"), PRIORITIES, SMALL, st.sampled_from(["a", "b"])
)


def rank(row: ClaimPosition) -> tuple[int, int, str]:
    """Claims go by priority, then by age, then by id."""
    return (-row.priority, row.order_key, row.id)


def covers(part: QueuePart, row: ClaimPosition) -> bool:
    behind = part.from_id is None or (row.order_key, row.id) >= (part.from_order_key, part.from_id)
    return part.queue == row.queue and part.lowest <= row.priority <= part.highest and behind


def behind_all(known: list[ClaimPosition], row: ClaimPosition) -> bool:
    """Whether no row of its priority that is not before this one was claimed later."""
    last = {at.priority: at for at in known}.get(row.priority)
    return last is None or rank(row) >= rank(last)


@given(st.lists(POSITIONS, max_size=MAX_PRIORITIES), POSITIONS)
def test_a_row_is_looked_at_once_unless_it_is_before_what_was_claimed_last(
    known: list[ClaimPosition], row: ClaimPosition
) -> None:
    cursor = ClaimCursor()
    cursor.note_claimed(known)
    times = sum(covers(part, row) for part in cursor.parts(["mail"]))
    assert times == int(behind_all(known, row))


@given(st.lists(POSITIONS, max_size=MAX_PRIORITIES), st.lists(POSITIONS))
def test_rows_are_found_in_the_order_of_claims(
    known: list[ClaimPosition], rows: list[ClaimPosition]
) -> None:
    cursor = ClaimCursor()
    cursor.note_claimed(known)
    found = [
        row
        for part in cursor.parts(["mail"])
        for row in sorted(rows, key=rank)
        if covers(part, row)
    ]
    assert found == sorted(found, key=rank)


def test_queues_keep_their_order_and_do_not_know_of_each_other() -> None:
    cursor = ClaimCursor()
    cursor.note_claimed([ClaimPosition("mail", 0, 7, "a")])
    parts = cursor.parts(["system", "mail", "video"])
    assert parts == [
        QueuePart("system"),
        QueuePart("mail", HIGHEST, 1),
        QueuePart("mail", 0, 0, 7, "a"),
        QueuePart("mail", -1, LOWEST),
        QueuePart("video"),
    ]


def test_of_many_priorities_the_ones_claimed_last_are_known() -> None:
    cursor = ClaimCursor()
    for priority in (*range(MAX_PRIORITIES), 0, MAX_PRIORITIES):
        cursor.note_claimed([ClaimPosition("mail", priority, 0, "a")])
    known = [part.highest for part in cursor.parts(["mail"]) if part.from_id is not None]
    assert known == [MAX_PRIORITIES, *range(MAX_PRIORITIES - 1, 1, -1), 0]


@pytest.mark.parametrize(
    ("took", "rest"),
    [(0.0, MIN_REST_S), (0.1, 0.1 * REST_SHARE), (9.0, MAX_REST_S)],
    ids=["at once", "a while", "long"],
)
def test_everything_is_looked_at_again_in_time_and_the_later_the_longer_it_takes(
    took: float, rest: float
) -> None:
    cursor = ClaimCursor()
    assert cursor.checks_everything(0.0)
    cursor.note_check_of_everything(5.0, 5.0 + took)
    assert cursor.checks_everything(5.0 + took)  # there is no backlog
    cursor.backlog = True
    assert not cursor.checks_everything(5.0 + took + rest * 0.99)
    assert cursor.checks_everything(5.0 + took + rest)
