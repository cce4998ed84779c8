"""Places names next to points so that no name covers another name, a point or a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from harness.base.text import columns

SIZE = 11
"""The font size of names, in pixels."""
_LETTER = 6.3
_LINE = 13
_POINT = 7
"""The distance in pixels from the centre of a point to its edge."""
_RINGS = (10, 20, 32, 46, 62, 80)
_AROUND = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))

Point: TypeAlias = tuple[float, float]
Line: TypeAlias = tuple[Point, Point]
"""The two ends of a line, in pixels from the upper left corner."""


class Box(NamedTuple):
    """A rectangle on a chart, in pixels from the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Returns True if the two areas overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def crossed(self, line: Line) -> bool:
        """Returns True if a line crosses the rectangle."""
        (x, y), (to_x, to_y) = line
        since, until = 0.0, 1.0  # the section of the line that may be inside
        for at, to, least, most in ((x, to_x, self.left, self.right), (y, to_y, self.top, self.bottom)):
            if at == to:
                if not least < at < most:
                    return False
                continue
            ends = sorted(((least - at) / (to - at), (most - at) / (to - at)))
            since, until = max(since, ends[0]), min(until, ends[1])
        return since < until


class Label(NamedTuple):
    """The centre of a name, and whether the name is so far from its point that a line must connect them."""

    x: float
    y: float
    far: bool


def box_of(text: str, x: float, y: float) -> Box:
    """Returns the rectangle that a name covers if its centre is at this point."""
    half = columns(text) * _LETTER / 2
    return Box(x - half, y - _LINE / 2, x + half, y + _LINE / 2)


def placed(
    points: Sequence[Point], names: Sequence[str], lines: Sequence[Line] = (), *, width: int, height: int
) -> list[Label | None]:
    """Returns a place for each name, or None for a name that does not fit.

    Points are in pixels from the upper left corner. `names` contains the names of the first points, in order
    of importance. The other points have no names. Names must not cover the `lines`.
    """
    taken = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    found: list[Label | None] = []
    for (x, y), name in zip(points, names, strict=False):
        label = next(
            (
                each
                for each in _places(name, x, y)
                if _within(box := box_of(name, each.x, each.y), width, height)
                and not any(map(box.meets, taken))
                and not any(map(box.crossed, lines))
            ),
            None,
        )
        if label is not None:
            taken.append(box_of(name, label.x, label.y))
        found.append(label)
    return found


def _places(name: str, x: float, y: float) -> Iterator[Label]:
    half = columns(name) * _LETTER / 2
    for ring in _RINGS:
        for right, down in _AROUND:
            yield Label(x + right * (half + ring), y + down * ring * 1.4, far=ring > _RINGS[0])


def _within(box: Box, width: int, height: int) -> bool:
    return box.left >= 0 and box.top >= 0 and box.right <= width and box.bottom <= height
