"""Long series are made short without hiding a peak, and their means are those of the whole."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.report.reduction import per_pixel
from harness.plugins.measurement import Window

STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 9)), max_size=40)


def step_functions(steps: list[tuple[int, int, int]]) -> pl.DataFrame:
    """Rows of series, time and level, in order of time."""
    schema = {"series": pl.Int32, "time": pl.Int64, "level": pl.Int64}
    return pl.DataFrame(steps, schema=schema, orient="row").sort("time", maintain_order=True)


def level_at(changes: pl.DataFrame, series: int, time: int) -> int:
    """The level of a series in the microsecond that begins at a time."""
    before = changes.filter((pl.col("series") == series) & (pl.col("time") <= time))["level"]
    return before[-1] if len(before) else 0


@given(STEPS, st.integers(1, 50), st.integers(1, 30))
def test_every_pixel_has_the_lowest_the_mean_and_the_highest_level_within_it(
    steps: list[tuple[int, int, int]], end: int, pixels: int
) -> None:
    """Compared with every single microsecond of the window."""
    changes, window = step_functions(steps), Window(0, end)
    found = per_pixel(changes, window, pixels)
    count = min(pixels, end)
    series = sorted(set(changes["series"]))
    assert found.select("series", "pixel").rows() == [(s, p) for s in series for p in range(count)]
    for number, pixel, time, low, mean, high in found.iter_rows():
        begin, until = end * pixel // count, end * (pixel + 1) // count
        levels = [level_at(changes, number, each) for each in range(begin, until)]
        assert (low, high) == (min(levels), max(levels))
        assert mean == pytest.approx(sum(levels) / len(levels))
        assert begin <= time < until


@given(STEPS, st.integers(1, 60))
def test_no_peak_is_lost_whatever_the_width(steps: list[tuple[int, int, int]], pixels: int) -> None:
    """The highest level of a series is that of its highest pixel."""
    changes, window = step_functions(steps), Window(0, 61)
    highest = per_pixel(changes, window, pixels).group_by("series").agg(pl.col("high").max())
    for series, high in highest.iter_rows():
        assert high == max(level_at(changes, series, time) for time in range(61))


def test_a_level_that_lasts_no_time_is_not_drawn() -> None:
    """Of two rows of one instant the second counts."""
    changes = step_functions([(0, 5, 9), (0, 5, 2)])
    assert per_pixel(changes, Window(0, 10), 1)["high"].to_list() == [2]


def test_a_window_without_length_has_no_pixels() -> None:
    """A run in which nothing takes time has nothing to draw."""
    assert per_pixel(step_functions([(0, 0, 1)]), Window(0, 0), 10).is_empty()
