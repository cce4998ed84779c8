"""Finds jobs whose run times are an hour off because local times were read without summer time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from harness.base.units import DAY, HOUR, MINUTE, SECOND
from harness.trace.level import SUBMIT
from harness.trace.lint.durations import REQUESTED
from harness.trace.lint.finding import Finding, Material, counted

_SEVERAL = 3
"""The minimum number of jobs for a finding. Fewer jobs may differ by chance."""

_EXACTLY = 2 * SECOND  # the maximum difference between two clocks of one machine

_CHANGES = (3, 4, 9, 10, 11)  # the months in which clocks change, always on a Sunday morning

_SUNDAY, _MORNING = 6, 12
_DO = (
    "the times are in a zone with summer time; specify the zone with the key 'zone' of a mapping, or with "
    "--set timezone=ZONE for the reader 'slurm'"
)


def check(material: Material) -> Iterator[Finding]:
    """Finds durations that differ by an hour from recorded times, or from limits across a clock change."""
    jobs = material.jobs
    if {"recorded_start", "recorded_end"} <= set(jobs.columns):
        apart = jobs["recorded_end"].to_physical() - jobs["recorded_start"].to_physical() - jobs["duration"]
        jumps = int(((apart.abs() - HOUR).abs() <= _EXACTLY).sum())
        if jumps >= _SEVERAL and jumps * 2 < int((apart.abs() <= _EXACTLY).sum()):
            yield Finding(
                "zone",
                f"the recorded times of {counted(jumps, jobs.height)} differ by an hour from the duration",
                _DO,
            )
            return
    if material.trace.kind == "timestamp" and REQUESTED in jobs.columns:
        count = _across_changes(jobs, material.trace.origin)
        if count:
            yield Finding(
                "zone",
                f"{counted(count, jobs.height)} ran an hour more or less than their limit because clocks "
                "changed",
                _DO,
            )


def _across_changes(jobs: pl.DataFrame, origin: int) -> int:
    """Returns how many jobs differ from their limit by an hour.

    Only months in which all such jobs run across a clock change are used.
    """
    start = jobs[SUBMIT] + origin
    if "recorded_start" in jobs.columns:
        start = jobs["recorded_start"].to_physical().fill_null(start)
    over = (jobs["duration"] - jobs[REQUESTED].to_physical()).abs() - HOUR
    odd = pl.DataFrame({"start": start, "end": start + jobs["duration"], "odd": over.abs() <= MINUTE})
    months = (
        odd.filter("odd")
        .with_columns(month=pl.from_epoch("start", time_unit="us").dt.truncate("1mo"))
        .group_by("month")
        .agg(pl.len(), pl.col("start").max(), pl.col("end").min())
    )
    return sum(
        jobs
        for _, jobs, begin, end in months.iter_rows()
        if jobs >= _SEVERAL and begin <= end and _has_change(begin, end)
    )


def _has_change(begin: int, end: int) -> bool:
    for at in range(begin, min(end, begin + 8 * DAY) + 1, HOUR):
        moment = datetime.fromtimestamp(at // SECOND, UTC)
        if moment.weekday() == _SUNDAY and moment.hour < _MORNING and moment.month in _CHANGES:
            return True
    return False
