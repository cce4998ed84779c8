"""Axes as they are drawn: which numbers stand beside them, and the room between these and their titles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

from harness.analysis.report import Figure, Key, drawing
from harness.analysis.report.amounts import scale_of

if TYPE_CHECKING:
    from altair.typing import ChartType

_TEXT = re.compile(r'<text text-anchor="(\w+)" transform="translate\((-?[\d.]+),[^>]*>([^<]+)</text>')
_WIDTHS = {".": 3.5, "%": 10.5, "\N{MINUS SIGN}": 9.2}
"""How many pixels characters of numbers take that are no digits, of a letter size of 11."""


def texts(figure: Figure) -> list[tuple[str, float, str]]:
    """How each text of a drawing is aligned, where across, and what it says."""
    return [(anchor, float(x), text) for anchor, x, text in _TEXT.findall(drawing.svg(figure, 350))]


def width(text: str) -> float:
    return sum(_WIDTHS.get(each, 7.0) for each in text)


@pytest.mark.parametrize(
    ("most", "ticks"), [(0, "0 1"), (1, "0 1"), (2, "0 1 2"), (3, "0 1 2 3"), (5, "0 1 2 3 4 5"), (40, "0")]
)
def test_axes_of_counts_have_whole_ticks(most: int, ticks: str, charts: None) -> None:
    """Half a job waits nowhere, however few there are."""
    import altair as alt

    from harness.analysis.report.charts import axes

    y = axes.amount_axis("waiting jobs", top=most * 1.04)
    chart = alt.Chart(pl.DataFrame({"mean": [most]})).mark_point().encode(y)
    figure = Figure("", "", lambda width: axes.panel([chart], title="", width=width, height=80))
    found = [text for anchor, _, text in texts(figure) if anchor == "end"]
    assert all(text.isdigit() for text in found)
    assert " ".join(found).startswith(ticks)


@pytest.mark.parametrize("values", [(0.05, 0.22), (-0.08, 0.31), (0.951, 0.968), (0.93, 1.0), (0.001, 0.014)])
@pytest.mark.parametrize("kind", ["frontier", "multiples"])
def test_numbers_beside_axes_leave_the_room_of_the_title(
    values: tuple[float, float], kind: str, charts: None
) -> None:
    """Where they are parts in per cent, too: upright titles stand left of the longest of them."""
    from harness.analysis.report.charts.factors import Dot, multiples
    from harness.analysis.report.charts.frontier import frontier
    from harness.analysis.report.choices import Axis, Choice

    shown_as, key = scale_of("share", values).shown_as, Key("k", "#000000")
    choices = [Choice(str(at), at, value, "", 0) for at, value in enumerate(values)]
    dots = [Dot(0, str(at), 0, value, None, None, "") for at, value in enumerate(values)]

    def draw(width: int) -> ChartType:
        if kind == "frontier":
            return frontier(choices, [key], Axis("costs"), Axis("share", shown_as), width)
        titles = ("costs", "share")
        return multiples(dots, [""], ["0", "1"], [key], titles=titles, shown_as=shown_as, width=width)

    found = texts(Figure("", "", draw))
    (title,) = (x for _, x, text in found if text == "share")
    numbers = [(x, text) for anchor, x, text in found if anchor == "end" and text.endswith("%")]
    assert numbers
    assert all(x - width(text) > title for x, text in numbers)
