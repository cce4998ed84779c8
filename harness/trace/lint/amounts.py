"""Checks whether quantities per pod are actually totals of a job."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.trace.job_rows import pods_of
from harness.trace.lint.finding import Finding, Material
from harness.trace.schema import REQUEST

_LEAST = 20  # the minimum number of jobs with several pods that makes a proportion meaningful

_SIZES = 3  # the minimum number of different pod counts that makes a proportion meaningful

_SURE = 2.0  # the fitted slope, which is 1 in exact proportion, must exceed 0.5 by this many standard errors


def check_totals(material: Material) -> Iterator[Finding]:
    """Finds quantities that grow in proportion to the number of pods.

    If a job's total is read as a quantity per pod, the total counts once for each pod.
    """
    frame = material.trace.frame
    rows = frame.select(pods_of(frame).alias("pods"), *(f"{REQUEST}{name}" for name in material.resources))
    for resource in material.resources:
        several = rows.filter((pl.col("pods") > 1) & (pl.col(f"{REQUEST}{resource}") > 0))
        pods, amounts = several["pods"], several[f"{REQUEST}{resource}"]
        if len(pods) >= _LEAST and pods.n_unique() >= _SIZES and _grows(pods, amounts):
            yield Finding(
                "total-as-pod",
                f"{resource} of a pod grows in proportion to the number of pods "
                f"({len(pods):,} rows with several pods)",
                "a job's total was read as the request of each pod; divide the total by the number of pods, "
                f"or map the column as total.{resource} (docs/tables.md)",
            )


def _grows(pods: pl.Series, amounts: pl.Series) -> bool:
    """Returns True if jobs with twice as many pods have about twice the quantity per pod.

    The function fits a line to the logarithms, whose slope is 1 if both are in exact proportion.
    """
    x, y = pods.cast(pl.Float64).log(2), amounts.cast(pl.Float64).log(2)
    x, y = x - x.mean(), y - y.mean()
    spread = float((x * x).sum())
    slope = float((x * y).sum()) / spread
    left = y - slope * x
    error = (float((left * left).sum()) / (len(x) - 2) / spread) ** 0.5
    return 0.75 <= slope <= 1.25 and slope - _SURE * error > 0.5
