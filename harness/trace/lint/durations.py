"""Checks whether durations are the real run times of jobs, and not a limit or only the observed part."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.units import DAY, MINUTE, SECOND, format_duration
from harness.trace.level import SUBMIT
from harness.trace.lint.finding import Finding, Material, counted
from harness.trace.schema import REQUEST

REQUESTED = "requested_time"
"""The column in which readers store the run time that a user requested."""

_LEAST = 10
_FEW = 1000
_MONTH = 30 * DAY
_STILL_RUNNING = ("running", "pending", "unknown")


def check_work(material: Material) -> Iterator[Finding]:
    """Finds jobs that request nothing or take no time, because their waits would dominate the statistics."""
    jobs = material.jobs
    asks = [pl.col(f"{REQUEST}{resource}").fill_null(0) > 0 for resource in material.resources]
    for lacks, what in (
        (pl.col("duration") == 0, "take no time"),
        (~pl.any_horizontal(asks), "request nothing"),
    ):
        count = jobs.filter(lacks).height
        if 2 * count >= jobs.height:
            yield Finding(
                "no-work",
                f"{counted(count, jobs.height)} {what}",
                "these jobs keep no other job waiting; check whether a column was lost in the conversion",
            )


def check_censored(material: Material) -> Iterator[Finding]:
    """Finds jobs whose recorded end is the end of the record."""
    jobs = material.jobs
    for name in ("status", "state", "pod_phase"):
        if name in jobs.columns and jobs[name].dtype == pl.String:
            open_ended = jobs.filter(pl.col(name).str.to_lowercase().is_in(_STILL_RUNNING))
            if open_ended.height:
                yield Finding(
                    "censored",
                    f"{counted(open_ended.height, jobs.height)} were still running when they were last seen "
                    f"({name})",
                    "their durations are lower bounds, so use them to compare schedulers, but not to "
                    "forecast load",
                )
    end = (jobs[SUBMIT] + jobs["duration"]).alias("end")
    if "recorded_end" in jobs.columns:
        end = jobs["recorded_end"].to_physical() // SECOND
    last = int((end == end.max()).sum()) if end.count() else 0
    if last >= _LEAST and last * _FEW >= jobs.height:
        yield Finding(
            "cut-at-the-end",
            f"{counted(last, jobs.height)} end at the very last moment of the trace",
            "the record ended before these jobs did, so their durations are lower bounds; --window ..TIME "
            "leaves these jobs out",
        )


def check_limits(material: Material) -> Iterator[Finding]:
    """Finds jobs that ran as long as allowed or longer, and durations that many jobs have in common."""
    jobs = material.jobs
    if REQUESTED in jobs.columns:
        over = jobs["duration"] - jobs[REQUESTED].to_physical()
        longer = int((over > 0).sum())
        if longer:
            yield Finding(
                "over-request",
                f"{counted(longer, jobs.height)} run longer than requested",
                "a scheduler that plans with requested times would be wrong about these jobs; if the trace "
                "comes from SWF, --set cut_at_request=true ends them at the requested time",
            )
        limited = int((over.abs() <= MINUTE).sum())
        if limited * 100 >= jobs.height:
            yield Finding(
                "cut-at-request",
                f"{counted(limited, jobs.height)} run as long as requested, to within a minute",
                "most of them were killed at their limit and would have run longer",
            )
    yield from _at_limit(jobs)


def _at_limit(jobs: pl.DataFrame) -> Iterator[Finding]:
    """Finds a duration that many of the longest jobs have in common."""
    long = jobs.filter(pl.col("duration") >= pl.col("duration").quantile(0.95, "nearest"))["duration"]
    duration, same = long.value_counts(sort=True).sort(["count", "duration"], descending=True).row(0)
    if duration and same >= _LEAST and same * 10 >= len(long) and jobs["duration"].n_unique() > 1:
        yield Finding(
            "cut-at-limit",
            f"{counted(same, jobs.height)} run for exactly {format_duration(duration)}, and are among the "
            "longest jobs",
            "this duration is a limit, or a default for unknown durations; check where it comes from",
        )


def check_long_limits(material: Material) -> Iterator[Finding]:
    """Finds limits of months, which no site allows for most of its jobs.

    Such limits usually mean that minutes were read as hours, or points in time as durations.
    """
    if REQUESTED not in material.jobs.columns:
        return
    limits = material.jobs[REQUESTED].drop_nulls().to_physical()
    typical = int(limits.quantile(0.5, "nearest") or 0) if len(limits) else 0
    if typical > _MONTH:
        yield Finding(
            "limit-long",
            f"half of the {len(limits):,} jobs with a limit may run for {format_duration(typical)} or more",
            "is the unit right, is the limit a point in time, or does some number mean 'no limit'? In a "
            "mapping, below() and unless() remove such numbers",
        )


def check_span(material: Material) -> Iterator[Finding]:
    """Finds jobs that ran longer than the whole trace, for example because an unknown start was read as 0."""
    jobs = material.jobs
    first, last = int(jobs[SUBMIT].min() or 0), int(jobs[SUBMIT].max() or 0)  # type: ignore[arg-type]
    if "recorded_end" in jobs.columns and jobs["recorded_end"].count():
        end = int(jobs["recorded_end"].to_physical().max() or 0)  # type: ignore[arg-type]
        last = max(last, end - material.trace.origin)
    span = last - first
    longer = int((jobs["duration"] > span).sum())
    most = int(jobs["duration"].max() or 0)  # type: ignore[arg-type]
    if longer and span >= DAY:
        yield Finding(
            "longer-than-trace",
            f"{counted(longer, jobs.height)} run longer than the {format_duration(span)} of the trace, "
            f"up to {format_duration(most)}",
            "is the unit right, or does a start of 0 mean an unknown start?",
        )
