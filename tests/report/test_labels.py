"""Names beside points: none lies on another one, on a point or a line, or beyond the plot."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.analysis.report import Key, drawing
from harness.analysis.report.charts.labels import box_of, placed
from harness.analysis.report.choices import Axis, Choice

WIDTH, HEIGHT = 400, 300
POINTS = st.lists(
    st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT), st.text("abc", min_size=1, max_size=20)), max_size=12
)


@examples(60)
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


@examples(60)
@given(POINTS)
def test_no_line_runs_through_a_name(points: list[tuple[float, float, str]]) -> None:
    """Of those that join the points, at none of many places along them."""
    places, names = [(x, y) for x, y, _ in points], [name for _, _, name in points]
    lines = list(pairwise(places))
    found = placed(places, names, lines, width=WIDTH, height=HEIGHT)
    for name, at in zip(names, found, strict=True):
        if at is None:
            continue
        left, top, right, bottom = box_of(name, at.x, at.y)
        for (x, y), (to_x, to_y) in lines:
            for step in range(101):
                across, down = x + (to_x - x) * step / 100, y + (to_y - y) * step / 100
                assert not (left < across < right and top < down < bottom)


def test_names_at_the_ends_of_a_line_stand_beside_it() -> None:
    """Next to their points: a line that falls to the right leaves the room above it."""
    ends = [(60.0, 100.0), (360.0, 250.0)]
    free = placed(ends, ["kueue-classic"] * 2, width=WIDTH, height=HEIGHT)
    found = placed(ends, ["kueue-classic"] * 2, [(ends[0], ends[1])], width=WIDTH, height=HEIGHT)
    assert None not in found
    assert found != free
    for at in found:
        assert at is not None
        assert not at.far


def test_the_line_of_a_frontier_runs_through_no_name(charts: None) -> None:
    """It joins the points that no other point beats. Each of them has its name."""
    from harness.analysis.report.charts.frontier import frontier

    names = ["kueue-classic@base", "kueue-classic@more-nodes"]
    choices = [
        Choice(name, x, y, name, key)
        for key, (name, x, y) in enumerate(zip(names, (385.0, 437.0), (13.4, 5.0), strict=True))
    ]
    keys, axis = [Key(name, "#000000") for name in names], Axis("hours")
    for width in (drawing.WIDE, drawing.NARROW):
        chart = frontier(choices, keys, axis, axis, width).to_dict()
        encoding = chart["layer"][0]["encoding"]
        (left, right), (low, high) = (encoding[of]["scale"]["domain"] for of in ("x", "y"))
        across, down = chart["width"] / (right - left), chart["height"] / (high - low)
        (start, end) = (((each.x - left) * across, (high - each.y) * down) for each in choices)
        told = [row for rows in chart["datasets"].values() for row in rows if "name" in row]
        assert [row["name"] for row in told] == names
        for row in told:
            box = box_of(row["name"], (row["x"] - left) * across, (high - row["y"]) * down)
            assert not box.crossed((start, end))
