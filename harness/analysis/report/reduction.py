"""Shortens long series for drawing to the lowest, mean and highest level of each pixel.

A chart cannot show the changes within a pixel. However, no peak is lost, because the highest level of each
pixel is kept.
"""

from __future__ import annotations

import polars as pl

from harness.plugins.measurement import Window


def per_pixel(changes: pl.DataFrame, window: Window, pixels: int) -> pl.DataFrame:
    """Summarizes step functions over parts of a window, which have equal lengths.

    Args:
        changes: the columns `series`, `time` in microseconds and `level`. The level is an integer that lasts
            until the next row of the series, or until the end of the window. Rows are in order of time. If
            two rows have the same time, the second row is used. Before its first row, a series has the level
            0.
        window: the time to draw.
        pixels: the number of parts, or fewer if the window has fewer microseconds.

    Returns:
        The columns `series`, `pixel` (from 0), `time` (the middle of the pixel), `low`, `mean` (over time)
        and `high`. The rows are sorted by series and pixel, with one row for every pixel of every series.
    """
    span = window.end - window.start
    pixels = min(pixels, span)
    series = changes.select(pl.col("series").unique()).sort("series")
    edges = pl.DataFrame({"pixel": pl.int_range(pixels, dtype=pl.Int64, eager=True)}).with_columns(
        time=pl.Series([window.start + span * place // pixels for place in range(pixels)], dtype=pl.Int64)
    )
    begin = pl.when(pl.col("pixel") == 0).then(0).cast(changes.schema["level"])
    following = pl.col("series").shift(-1) == pl.col("series")
    inside = changes.filter((pl.col("time") >= window.start) & (pl.col("time") < window.end))
    return (
        pl.concat(
            [
                series.join(edges, how="cross").select("series", "time", "pixel", level=begin),
                inside.select("series", "time", pl.lit(None, pl.Int64).alias("pixel"), "level"),
            ]
        )
        .sort("series", "time", maintain_order=True)
        .with_columns(
            pl.col("pixel", "level").forward_fill(),
            span=pl.when(following).then(pl.col("time").shift(-1)).otherwise(window.end) - pl.col("time"),
        )
        .filter(pl.col("span") > 0)
        .group_by("series", "pixel", maintain_order=True)
        .agg(
            low=pl.col("level").min(),
            # Sums of integers are the same on every machine and in any order.
            area=(pl.col("level").cast(pl.Int128) * pl.col("span")).sum(),
            span=pl.col("span").sum(),
            high=pl.col("level").max(),
        )
        .join(edges, on="pixel", how="left", maintain_order="left")
        .select(
            "series",
            "pixel",
            time=pl.col("time") + pl.col("span") // 2,
            low="low",
            mean=pl.col("area").cast(pl.Float64) / pl.col("span"),
            high="high",
        )
    )
