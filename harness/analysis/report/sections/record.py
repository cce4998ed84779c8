"""The section that compares simulations with a record of what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from harness.analysis.report import charts
from harness.analysis.report.blocks import Block, Figure, Key, Points, Table
from harness.analysis.report.material import Material
from harness.analysis.validation.errors import Errors, errors_of, is_short
from harness.analysis.validation.pairs import pairs_of
from harness.analysis.validation.text import share_text, time_text
from harness.base.errors import RunError
from harness.runs.recorded import notes_of

if TYPE_CHECKING:
    from altair.typing import ChartType

_BINS = 60
_MOST = 1500
"""The maximum number of points in a scatter plot."""


def blocks(material: Material) -> Iterator[Block]:
    """Yields a table of the errors of first starts, and charts of waits and of errors over time.

    If no run is a record, there are no blocks.
    """
    found = [place for place, run in enumerate(material.runs) if run.is_record]
    others = [place for place, run in enumerate(material.runs) if not run.is_record]
    if not found:
        return
    record = material.runs[found[0]]
    if notes := list(notes_of(record.info)):
        yield Points(
            notes, title=f"{material.names[found[0]]} is a record of what happened, not a simulation"
        )
    try:
        pairs = [pairs_of(record, material.runs[place], material.resource) for place in others]
    except RunError:
        return  # the traces differ, or nothing started, so there is nothing to judge
    if not pairs:
        return
    keys = [replace(material.run_keys[place], line=False) for place in others]
    errors = [errors_of(each, short=is_short(record.window)) for each in pairs]
    yield Table(
        caption="Errors of first starts; a positive error means that a job starts later than recorded",
        head=["first starts", *(key.name for key in keys)],
        rows=list(_rows(errors)),
    )
    yield Figure(
        title="Simulated waits against recorded waits",
        words=" ".join(_words(key.name, each) for key, each in zip(keys, errors, strict=True)),
        draw=lambda width: _scatter(keys, pairs, width),
        keys=keys,
        note=f"Each point is a job. At most {_MOST:,} jobs are shown, evenly spread in order of arrival. On "
        "the line, both waits are equal; above the line, the job waits longer in the simulation.",
    )
    medians = [_medians(material, each) for each in pairs]
    yield Figure(
        title="Error of first starts over time",
        words=f"Medians of the errors in {_BINS} equal parts of the time. "
        + " ".join(_range(key.name, each["error"]) for key, each in zip(keys, medians, strict=True)),
        draw=lambda width: charts.record.over_time(material, keys, medians, width),
        keys=[replace(key, line=True) for key in keys],
        note=f"Each point is the median error of jobs submitted in one of {_BINS} equal parts of the time. "
        "Above zero, the simulation starts these jobs later than recorded.",
    )


def _rows(errors: Sequence[Errors]) -> Iterator[list[str]]:
    yield ["jobs", *(f"{each.jobs:,}" for each in errors)]
    yield ["median error", *(_signed(each.quantiles[2]) for each in errors)]
    yield ["median size of the error", *(time_text(each.absolute) for each in errors)]
    yield ["90th percentile of the size", *(time_text(each.absolute_p90) for each in errors)]
    for name, of in (
        ("within a minute", "within_minute"),
        ("within 10 minutes", "within_ten_minutes"),
        ("within 10 % of the recorded wait", "within_tenth"),
    ):
        yield [name, *(share_text(getattr(each, of)) for each in errors)]
    yield [
        "rank correlation of waits",
        *("–" if each.rank is None else f"{each.rank:.3f}" for each in errors),
    ]
    yield ["total of the waits", *(time_text(each.simulated_wait) for each in errors)]
    yield ["total of the recorded waits", *(time_text(each.recorded_wait) for each in errors)]


def _words(name: str, errors: Errors) -> str:
    whose, of_all = f"{errors.jobs:,} jobs", ""
    if errors.unstarted:
        whose, of_all = (
            f"the {errors.jobs - errors.unstarted:,} of {whose} that start in the simulation",
            "of all ",
        )
    share = errors.within_ten_minutes
    near = "" if share is None else f", {share_text(share)} {of_all}within 10 minutes"
    return f"{name}: half of {whose} start within {time_text(errors.absolute)} of their recorded start{near}."


def _signed(time: float | None) -> str:
    return f"-{time_text(-time)}" if time is not None and time < 0 else time_text(time)


def _scatter(keys: Sequence[Key], pairs: Sequence[pl.DataFrame], width: int) -> ChartType:
    thinned = [
        each.filter(pl.col("simulated_wait").is_not_null()).gather_every(max(1, -(-each.height // _MOST)))
        for each in pairs
    ]
    return charts.record.scatter(keys, thinned, width)


def _medians(material: Material, pairs: pl.DataFrame) -> pl.DataFrame:
    start = material.window.start
    step = (material.window.end - start) // _BINS + 1
    return (
        pairs.filter(pl.col("error").is_not_null())
        .group_by(((pl.col("submit") - start) // step).alias("bin"))
        .agg(pl.col("error").median())
        .sort("bin")
        .select((pl.col("bin") * step + start + step // 2).alias("time"), "error")
    )


def _range(name: str, medians: pl.Series) -> str:
    if medians.is_empty():
        return f"{name}: no job starts."
    ends = dict.fromkeys(_side(float(medians.sort()[at])) for at in (0, -1))
    return f"{name}: {'between ' if len(ends) > 1 else ''}{' and '.join(ends)}."


def _side(error: float) -> str:
    time = time_text(abs(error))
    return time if time == time_text(0) else f"{time} {'earlier' if error < 0 else 'later'}"
