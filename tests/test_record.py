"""Record: what dataclasses would promise, kept without them."""

from __future__ import annotations

import pytest

from rhythm.record import OFTEN, Record


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


def test_fields_come_by_position_or_name_and_default_to_the_class() -> None:
    assert (Point(1).x, Point(1).y, Point(y=2, x=1).y) == (1, 0, 2)
    assert Named(1, 2, "p").name == "p"


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"z": 2}), ((), {"y": 1}), ((1,), {"x": 1})],
)
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point takes x, y"):
        Point(*values, **named)


class Often(Record):
    x: int
    y: int = 0


class Later(Often):
    name: str = ""


def test_a_class_that_is_made_often_takes_the_same_as_before() -> None:
    for n in range(OFTEN + 1):
        assert Often(n) == Often(x=n, y=0)
    assert Often.__init__ is not Record.__init__, "it has a constructor of its own by now"
    assert (Often(1).y, Often(y=2, x=1), repr(Often(1, 2))) == (0, Often(1, 2), "Often(x=1, y=2)")
    assert Often(1, 2).replace(y=3) == Often(1, 3)
    for values, named in (
        ((), {}),
        ((1, 2, 3), {}),
        ((1,), {"z": 2}),
        ((), {"y": 1}),
        ((1,), {"x": 1}),
    ):
        with pytest.raises(TypeError):
            Often(*values, **named)
    with pytest.raises(AttributeError):
        Often(1).x = 2  # type: ignore[misc]  # it is frozen: that is the point
    assert Later(1, 2, "p").name == "p", "whoever derives from it has fields of its own"

    class Made(Often):
        z: int = 5

    assert Made(1, 2, 3).z == 3


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
