"""Checks whether the submission times are plausible."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.base.text import agreeing
from harness.base.units import DAY, HOUR, SECOND, format_duration
from harness.trace.level import SUBMIT
from harness.trace.lint.finding import Finding, Material, counted, percent
from harness.trace.window import window_bound

_FEW = 100  # the number of jobs is small if it is less than this share (1 / N) of all jobs

_LONG = 4
"""A time is long if it is more than this share (1 / N) of the span."""

_SILENCE = 20
"""A pause is remarkable if it is longer than this share (1 / N) of the span."""


def check_span(material: Material) -> Iterator[Finding]:
    """Finds a long beginning or end with hardly any jobs, and long periods without jobs."""
    submit = material.jobs[SUBMIT].sort()
    count, first, last = len(submit), int(submit[0]), int(submit[-1])
    span = last - first
    if not span:
        return
    time = (submit - first) / span
    share = pl.int_range(count, eager=True) / count
    start = int((time - share).arg_max() or 0)  # after this point, jobs arrive faster than on average
    end = int((time - share).arg_min() or 0)
    head, tail = int(submit[start]) - first, last - int(submit[end])
    if start * _FEW <= count and head * _LONG > span:
        yield Finding(
            "sparse-start",
            f"the first {counted(start, count)} take up {format_duration(head)} of the trace's "
            f"{format_duration(span)}",
            f"--window {window_bound(material.trace, int(submit[start]))}.. begins where jobs arrive "
            "regularly",
        )
    if (count - 1 - end) * _FEW <= count and tail * _LONG > span:
        after = window_bound(material.trace, int(submit[end]) + SECOND)
        yield Finding(
            "sparse-end",
            f"the last {counted(count - 1 - end, count)} take up {format_duration(tail)} of the trace's "
            f"{format_duration(span)}",
            f"--window ..{after} ends where jobs no longer arrive regularly",
        )
    pauses = submit.diff().fill_null(0)
    longest = int(pauses.max())  # type: ignore[arg-type]
    if longest * _SILENCE > span and longest > HOUR and span > DAY:
        until = window_bound(material.trace, int(submit[int(pauses.arg_max() or 0)]))
        yield Finding(
            "silence",
            f"no job is submitted for {format_duration(longest)}, {percent(longest / span)} of the span, "
            f"until {_told(until)}",
            f"a clock that jumped or a gap in the record counts as idle time; use --window {until}.., or a "
            "window that ends before the gap",
        )


def check_bursts(material: Material) -> Iterator[Finding]:
    """Finds many jobs within one second. Their times were probably invented or rounded."""
    jobs = material.jobs
    seconds = jobs.select(pl.col(SUBMIT) // SECOND).to_series().value_counts(sort=True)
    second, most = seconds.row(0)
    at = _told(window_bound(material.trace, second * SECOND))
    if most >= 10 and (most * _FEW >= jobs.height or most >= 1000):
        yield Finding(
            "burst",
            f"{counted(most, jobs.height)} are submitted within one second, {at}",
            "jobs that existed before the record began arrive in its first second, so start later "
            "with --window, or treat their waits as those of a backlog",
        )


def check_clock(material: Material) -> Iterator[Finding]:
    """Finds times that run backwards, either from row to row or within a job."""
    frame, jobs = material.trace.frame, material.jobs
    back = int((frame["submit_time"].to_physical().diff() < 0).sum())
    if back:
        yield Finding(
            "unsorted",
            f"{agreeing(back, 'row', 'have')} an earlier submit_time than the previous row",
            "jobs arrive in the order of submit_time, and in the order of rows if their times are equal, so "
            "check that this order is meaningful",
        )
    for earlier, later in (("submit_time", "recorded_start"), ("recorded_start", "recorded_end")):
        if earlier in jobs.columns and later in jobs.columns:
            wrong = int((jobs[later] < jobs[earlier]).sum())
            if wrong:
                yield Finding(
                    "clock-backwards",
                    f"{counted(wrong, jobs.height)} have a {later} before their {earlier}",
                    "the times come from clocks of several machines or from a changed clock, so recorded "
                    "waits cannot be trusted",
                )


def _told(bound: str) -> str:
    return f"{bound} after the origin" if bound.endswith("s") else bound
