"""Names beside points: none lies on another one, on a point, or beyond the plot."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.charts.labels import box_of, placed

WIDTH, HEIGHT = 400, 300
POINTS = st.lists(
    st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT), st.text("abc", min_size=1, max_size=20)), max_size=12
)


@settings(max_examples=60)
@given(POINTS)
def test_names_overlap_neither_each_other_nor_points(points: list[tuple[float, float, str]]) -> None:
    """Whatever lies where: a name that has no room is left out."""
    places, names = [(x, y) for x, y, _ in points], [name for _, _, name in points]
    found = placed(places, names, width=WIDTH, height=HEIGHT)
    boxes = [box_of(name, at.x, at.y) for name, at in zip(names, found, strict=True) if at is not None]
    for number, box in enumerate(boxes):
        assert box.left >= 0
        assert box.right <= WIDTH
        assert box.top >= 0
        assert box.bottom <= HEIGHT
        assert not any(box.meets(other) for other in boxes[number + 1 :])
        assert not any(box.left < x < box.right and box.top < y < box.bottom for x, y in places)


def test_names_of_points_in_one_place_all_have_room() -> None:
    """The first one beside its point, the further ones with a line that leads there."""
    found = placed([(200, 150)] * 5, ["kueue-classic"] * 5, width=WIDTH, height=HEIGHT)
    assert None not in found
    assert found[0] is not None
    assert not found[0].far
