"""Computes the errors of simulated starts: overall, and by queue, size, priority and hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from harness.base.units import MINUTE, SECOND, format_duration
from harness.plugins.measurement import Window

GROUPS = ("queue", "size", "priority", "hour")
"""The columns that divide jobs into groups."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_SHORT = 100 * MINUTE
"""In a shorter record, ten minutes are more than a tenth of the record, so all starts seem close."""


def is_short(window: Window) -> bool:
    """Returns True if a record is so short that an error of ten minutes would be large.

    For such a record, the share of starts within ten minutes is not reported.
    """
    return window.end - window.start < _SHORT


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of some jobs, in microseconds. An error is positive if the simulation starts a job later.

    Attributes:
        jobs: how many jobs started in the record.
        unstarted: how many of these jobs never start in the simulation. They count in the denominators of
            shares, but have no error.
        quantiles: the quantiles of the error, see `QUANTILES`.
        absolute: the median of the absolute error.
        absolute_p90: the 90th percentile of the absolute error.
        within_minute, within_ten_minutes: the share of all jobs with at most this error. The second is None
            if the record is short.
        within_tenth: the share of all jobs whose error is at most a tenth of the recorded wait, or at most a
            second.
        rank: Spearman's correlation of waits, or None if all waits of either run are equal.
        recorded_wait, simulated_wait: the sums of waits.
        recorded_evictions, simulated_evictions: the sums of evictions.
    """

    jobs: int
    unstarted: int
    quantiles: tuple[float | None, ...]
    absolute: float | None
    absolute_p90: float | None
    within_minute: float | None
    within_ten_minutes: float | None
    within_tenth: float | None
    rank: float | None
    recorded_wait: int
    simulated_wait: int
    recorded_evictions: int
    simulated_evictions: int

    @property
    def told(self) -> str:
        """Returns the errors of starts in words, or "" if no job starts in the simulation."""
        if self.absolute is None:
            return ""
        middle, share = format_duration(round(self.absolute)), self.within_ten_minutes
        near = f"start within {middle} of their recorded start"
        if not self.unstarted:
            return f"half of all jobs {near}{'' if share is None else f', {share:.0%} within 10 minutes'}"
        return (
            f"{self.unstarted:,} of {self.jobs:,} jobs never start in the simulation; half of the others "
            f"{near}{'' if share is None else f', {share:.0%} of all within 10 minutes'}"
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the errors as plain values, with `quantiles` by name."""
        names = [f"p{round(100 * each):02}" for each in QUANTILES]
        return {**asdict(self), "quantiles": dict(zip(names, self.quantiles, strict=True))}


def errors_of(pairs: pl.DataFrame, *, short: bool = False) -> Errors:
    """Returns the errors of the jobs in `pairs`, which are rows of the table that `pairs_of` returns.

    For `short`, see `is_short`.
    """
    both = pairs.filter(pl.col("error").is_not_null())
    size = pl.col("error").abs()
    tenth = pl.max_horizontal(pl.col("wait") / 10, pl.lit(SECOND))
    found = both.select(
        *(pl.col("error").quantile(each, "linear").alias(f"q{each}") for each in QUANTILES),
        size.median().alias("absolute"),
        size.quantile(0.9, "linear").alias("p90"),
        pl.corr("wait", "simulated_wait", method="spearman").alias("rank"),
        pl.col("wait").sum(),
        pl.col("simulated_wait").sum(),
        pl.col("recorded_evictions").sum(),
        pl.col("simulated_evictions").sum(),
    ).row(0, named=True)
    # A job that never starts is within no limit; leaving it out would make the other jobs look nearer.
    shares = pairs.select(
        (size <= most).fill_null(value=False).mean().alias(name)
        for name, most in (("minute", MINUTE), ("ten", 10 * MINUTE), ("tenth", tenth))
    ).row(0, named=True)
    rank = found["rank"]
    return Errors(
        pairs.height,
        pairs.height - both.height,
        tuple(found[f"q{each}"] for each in QUANTILES),
        found["absolute"],
        found["p90"],
        shares["minute"],
        None if short else shares["ten"],
        shares["tenth"],
        None if rank is None or rank != rank else float(rank),
        int(found["wait"]),
        int(found["simulated_wait"]),
        int(found["recorded_evictions"]),
        int(found["simulated_evictions"]),
    )


def by_group(pairs: pl.DataFrame, group: str, *, short: bool = False) -> Iterator[tuple[str, Errors]]:
    """Divides jobs into groups by the values of a column, and returns the errors of each group.

    The largest groups come first. However, groups by hour, priority or size are sorted by this value.
    """
    parts = [(str(key[0]), part) for key, part in pairs.sort(group).group_by(group, maintain_order=True)]
    if group == "size":
        parts.sort(key=lambda part: int(part[0].split("-")[0].split()[0].replace("below", "0")))
    elif group == "queue":
        parts.sort(key=lambda part: (-part[1].height, part[0]))
    for name, part in parts:
        yield name, errors_of(part, short=short)
