"""Whatever is done to the rows of a chain, other than adding to its end with its head, is found."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from rhythm.store.access import GENESIS, Act, Actor, AuditRow, Head, broken, chained

TEXTS = st.text(max_size=5)
ACTS = st.builds(Act, TEXTS, TEXTS, TEXTS)
CHANGES = st.sampled_from([name for name in AuditRow._fields if name != "n"])


@st.composite
def chains(draw: st.DrawFn) -> list[AuditRow]:
    """Rows of several transactions."""
    rows, head = list[AuditRow](), Head(0, GENESIS)
    for acts in draw(st.lists(st.lists(ACTS, min_size=1, max_size=3), min_size=1, max_size=4)):
        actor = Actor(draw(TEXTS), token=draw(st.none() | TEXTS), source=draw(TEXTS))
        done = [(actor, act) for act in acts]
        rows += chained(head, done, draw(st.integers(0, 2**62)))
        head = Head(rows[-1].n, rows[-1].hash)
    return rows


def head_of(rows: list[AuditRow]) -> Head:
    return Head(rows[-1].n, rows[-1].hash) if rows else Head(0, GENESIS)


def forged(rows: list[AuditRow]) -> list[AuditRow]:
    """The same acts with numbers and hashes that fit, as one would write them who knows how."""
    made, head = list[AuditRow](), Head(0, GENESIS)
    for row in rows:
        row = row.replace(n=head.n + 1, prev=head.hash)
        made.append(row.replace(hash=row.computed))
        head = head_of(made)
    return made


@given(chains())
def test_what_was_written_is_unbroken_whichever_of_its_heads_was_kept(rows: list[AuditRow]) -> None:
    for n in range(len(rows) + 1):
        assert list(broken(rows, head_of(rows), head_of(rows[:n]))) == []


@given(chains(), st.data())
def test_a_row_with_another_value_is_found(rows: list[AuditRow], data: st.DataObject) -> None:
    i, name = data.draw(st.integers(0, len(rows) - 1)), data.draw(CHANGES)
    value = data.draw(st.integers(0, 2**62) if name == "at" else TEXTS)
    assume(getattr(rows[i], name) != value)
    changed = [*rows[:i], rows[i].replace(**{name: value}), *rows[i + 1 :]]
    assert list(broken(changed, head_of(rows)))


@given(chains(), st.data())
def test_rows_in_another_order_missing_or_twice_are_found(
    rows: list[AuditRow], data: st.DataObject
) -> None:
    other = data.draw(st.lists(st.sampled_from(rows), max_size=len(rows) + 2))
    assume(other != rows)
    assert list(broken(other, head_of(rows)))


@given(chains(), st.data())
def test_a_chain_that_is_forged_with_its_head_is_found_by_a_head_that_was_kept(
    rows: list[AuditRow], data: st.DataObject
) -> None:
    known = data.draw(st.integers(1, len(rows)))
    other = forged(data.draw(st.lists(st.sampled_from(rows), max_size=len(rows) + 2)))
    assume(other[:known] != rows[:known])
    assert list(broken(other, head_of(other))) == []
    assert list(broken(other, head_of(other), head_of(rows[:known])))
