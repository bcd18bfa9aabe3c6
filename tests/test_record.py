"""Record: what dataclasses would promise, kept without them."""

from __future__ import annotations

import pytest

from rhythm.record import Record


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


def test_fields_come_by_position_or_name_and_default_to_the_class() -> None:
    assert (Point(1).x, Point(1).y, Point(y=2, x=1).y) == (1, 0, 2)
    assert Named(1, 2, "p").name == "p"


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 2}), ((), {"y": 1}), ((1,), {"x": 1})])
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point takes x, y"):
        Point(*values, **named)


def test_records_are_values() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert Point(1) != Named(1)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert repr(Point(1)) == "Point(x=1, y=0)"
    with pytest.raises(AttributeError, match="cannot be changed"):
        Point(1).x = 2  # type: ignore[misc]  # it is frozen: that is the point


def test_replace_gives_a_changed_copy() -> None:
    point = Point(1, 2)
    assert (point.replace(y=5), point) == (Point(1, 5), Point(1, 2))


def test_match_takes_fields_by_position() -> None:
    match Named(1, 2, "p"):
        case Named(x, _, name):
            assert (x, name) == (1, "p")
        case _:
            pytest.fail("it did not match")
