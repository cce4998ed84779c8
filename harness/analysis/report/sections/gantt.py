"""The section that shows individual jobs, for small runs or for a given span of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.report import charts
from harness.analysis.report.amounts import shown_in
from harness.analysis.report.blocks import Block, Figure, Text
from harness.analysis.report.material import Material, moved
from harness.base.units import format_duration
from harness.plugins.measurement import Window
from harness.runs.folder import reading
from harness.runs.run import Run

MOST_JOBS = 60
_TICK = "A tick marks the submission of a job."
_PALE = (
    "In pale spans, a job waits for pods of its gang, restores its state, or terminates, without progress."
)
_CROSS = "A cross marks an eviction that threw progress away."


def blocks(material: Material) -> Iterator[Block]:
    """Yields a chart with a bar for every span in which a job held resources.

    If no span of time is given, there is a chart only for small runs. If there are too many jobs in a given
    span, the chart shows the jobs that held the most, and a sentence gives the total number of jobs.
    """
    part = material.part
    if part is None:
        if any(run.jobs.height > MOST_JOBS or run.stints.height > 20 * MOST_JOBS for run in material.runs):
            return
        rows = [pl.int_range(run.jobs.height, eager=True) for run in material.runs]
        yield _figure(material, rows, material.window, "When jobs held resources", _words(material))
        return
    clock = Clock(material.runs[0])
    held = []
    for run, shift in zip(material.runs, material.shifts, strict=True):
        with reading(run.path):
            held.append(_held(run, moved(part, -shift), material.resource))
    common = pl.concat(
        each.gather(rows).to_frame("held").with_row_index("place")
        for each, rows in zip(held, material.comparison.pairs.rows, strict=True)
    )
    there = common.filter(pl.col("held").is_not_null())
    sums = there.group_by("place").agg(pl.col("held").sum())
    chosen = sums.sort("held", "place", descending=[True, False]).head(MOST_JOBS)["place"].sort()
    title = f"When jobs held resources, from {clock.text(part.start)} to {clock.text(part.end)}"
    if chosen.is_empty():
        yield Text(f"{title}: there were no jobs.")
        return
    of = f"the {len(chosen)} of {sums.height:,} jobs that held the most {shown_in(material.resource).hours}"
    which = f"Shown are {of}." if len(chosen) < sums.height else f"All {sums.height:,} jobs are shown."
    shown = [rows.gather(chosen).sort() for rows in material.comparison.pairs.rows]
    words = f"{which} {_words_of_part(material, shown, part, clock)}"
    yield _figure(material, shown, part, title, words, [which])


def _figure(
    material: Material,
    rows: Sequence[pl.Series],
    part: Window,
    title: str,
    words: str,
    notes: Sequence[str] = (),
) -> Figure:
    return Figure(
        title=title,
        words=words,
        draw=lambda width: charts.gantt.gantt(material, rows, part, width),
        keys=material.lane_keys,
        note=" ".join([*notes, *_marks(material, rows, part)]),
    )


def _marks(material: Material, rows: Sequence[pl.Series], part: Window) -> list[str]:
    drawn = set[str]()
    for run, shift, chosen in zip(material.runs, material.shifts, rows, strict=True):
        mine, of = pl.col("job").is_in(chosen.cast(pl.Int32).implode()), moved(part, -shift)
        with reading(run.path):
            spans = run.micros("stints").filter(mine, pl.col("start") < of.end, pl.col("end") > of.start)
            pale, cross = (
                spans.select(
                    (pl.col("state") != "progress").any(),
                    ((pl.col("lost") > 0) & (pl.col("end") <= of.end)).any().alias("cross"),
                )
                .collect()
                .row(0)
            )
            arrived = run.micros("jobs").select("submit_time").collect()["submit_time"].gather(chosen)
        tick = arrived.is_between(of.start, of.end).any()
        drawn |= {mark for mark, there in ((_TICK, tick), (_PALE, pale), (_CROSS, cross)) if there}
    return [mark for mark in (_TICK, _PALE, _CROSS) if mark in drawn]


def _held(run: Run, part: Window, resource: str) -> pl.Series:
    """Returns how much each job held within a span of time, or null if the job was not there."""
    span = pl.col("end").clip(None, part.end) - pl.col("start").clip(part.start)
    stints = (
        run.micros("stints")
        .filter((pl.col("start") < part.end) & (pl.col("end") > part.start))
        .group_by("job")
        .agg(held=(span.cast(pl.Int128) * pl.col(f"request.{resource}")).sum())
        .collect()
    )
    jobs = run.micros("jobs").select("submit_time", "finish_time").collect().with_row_index("job")
    gone = (pl.col("submit_time") >= part.end) | (pl.col("finish_time") <= part.start).fill_null(value=False)
    held = jobs.with_columns(pl.col("job").cast(pl.Int32)).join(
        stints, on="job", how="left", maintain_order="left"
    )
    return held.select(pl.when(~gone).then(pl.col("held").fill_null(0)))["held"]


def _words(material: Material) -> str:
    sentences = []
    for name, run in zip(material.names, material.runs, strict=True):
        finished = run.jobs["finish_time"].count()
        evicted = int(run.jobs["preemptions"].sum())
        span = format_duration(run.window.end - run.window.start)
        sentences.append(
            f"{name}: {finished:,} of {run.jobs.height:,} jobs finished within {span}, "
            f"with {evicted:,} evictions."
        )
    return " ".join(sentences)


def _words_of_part(material: Material, rows: Sequence[pl.Series], part: Window, clock: Clock) -> str:
    sentences = []
    for name, run, shift, chosen in zip(material.names, material.runs, material.shifts, rows, strict=True):
        with reading(run.path):
            started = run.micros("jobs").select(pl.col("start_time") + shift).collect()["start_time"]
            spans = run.micros("stints").select("job", pl.col("start", "end") + shift, "lost").collect()
        mine = pl.col("job").is_in(chosen.cast(pl.Int32).implode())
        there = spans.filter(mine, pl.col("start") < part.end, pl.col("end") > part.start)
        starts = started.gather(chosen).sort().drop_nulls()
        starts = starts.filter(starts.is_between(*part))
        when = list(dict.fromkeys(clock.text(starts[at]) for at in (0, -1)[: len(starts)]))
        evictions = there.filter(pl.col("lost") > 0, pl.col("end") <= part.end).height
        sentences.append(
            f"{name}: {there['job'].n_unique():,} held resources; {len(starts):,} started"
            + (f", {'from' if len(when) > 1 else 'at'} {' to '.join(when)}" if when else "")
            + f"; evictions that threw progress away: {evictions:,}."
        )
    return " ".join(sentences)
