"""Utilization: what was allocated, and what became of it.

    allocated = useful + lost + idle_held + unfinished

holds exactly, in integer resource-microseconds, because the left side is integrated over the timeline and the
right side is added up from stints.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from harness.metrics.measurement import Measurement, Window
from harness.run import Run


class ResourceTime(NamedTuple):
    """What became of a resource over a window, in resource-microseconds.

    Attributes:
        allocated: held by pods, whatever for.
        useful: progress that finished jobs kept.
        lost: progress that an eviction threw away.
        idle_held: held without progress: gangs that wait, termination grace, restoring.
        unfinished: progress of jobs that have not finished.
        demanded: what was asked for, at most the capacity: what could have been used; None without capacity.
    """

    allocated: int
    useful: int
    lost: int
    idle_held: int
    unfinished: int
    demanded: int | None


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The utilization metrics of every resource that jobs ask for."""
    span = window.end - window.start
    for resource in run.resources:
        parts = resource_time(run, window, resource)
        whole = run.capacity.get(resource, 0) * span

        def row(
            name: str, part: int, of: int | None, better: str = "", *, what: str = resource
        ) -> Measurement:
            return Measurement(
                f"utilization.{name}", part / of if of else None, "ratio", better, resource=what
            )

        yield row("allocated", parts.allocated, whole, "higher")
        yield row("useful", parts.useful, whole, "higher")
        yield row("lost", parts.lost, whole, "lower")
        yield row("idle_held", parts.idle_held, whole, "lower")
        yield row("unfinished", parts.unfinished, whole)
        yield row("of_demand", parts.allocated, parts.demanded, "higher")


@lru_cache(maxsize=32)
def resource_time(run: Run, window: Window, resource: str) -> ResourceTime:
    """What became of one resource over a window; stints that reach beyond it are cut."""
    allocated, demanded = _from_timeline(run, window, resource)
    return ResourceTime(allocated, *_from_stints(run, window, resource), demanded)


def _from_timeline(run: Run, window: Window, resource: str) -> tuple[int, int | None]:
    points = (
        run.micros("timeline")
        .filter((pl.col("resource") == resource) & (pl.col("time") <= window.end))
        .select("time", "queue", "allocated", "pending")
        .collect()
    )
    levels = ("allocated", "pending")
    if points["queue"].n_unique() > 1:
        # From levels of each queue to levels of all of them, by way of the changes.
        points = (
            points.with_columns(
                pl.col(name) - pl.col(name).shift(1, fill_value=0).over("queue") for name in levels
            )
            .group_by("time")
            .agg(pl.col(levels).sum())
            .sort("time")
            .with_columns(pl.col(levels).cum_sum())
        )
    capacity = run.capacity.get(resource)
    demand = pl.col("allocated") + pl.col("pending")
    sums = points.with_columns(span=pl.col("time").shift(-1, fill_value=window.end) - pl.col("time")).select(
        allocated=_integral(pl.col("allocated")),
        demanded=_integral(pl.min_horizontal(demand, pl.lit(capacity)) if capacity is not None else demand),
    )
    allocated, demanded = sums.row(0)
    return int(allocated), int(demanded) if capacity is not None else None


def _from_stints(run: Run, window: Window, resource: str) -> tuple[int, int, int, int]:
    finished = run.micros("jobs").select("finish_time").collect()["finish_time"]
    stints = (
        run.micros("stints")
        .filter(pl.col("start") < window.end)
        .select(
            "job",
            amount=pl.col(f"request.{resource}"),
            span=pl.min_horizontal("end", pl.lit(window.end)) - pl.col("start"),
            # An eviction after the window has not thrown anything away yet.
            lost=pl.when(pl.col("end") <= window.end).then("lost").otherwise(0),
            progress=pl.col("state") == "progress",
        )
        .collect()
    )
    done = finished.gather(stints["job"]) <= window.end
    kept = (pl.col("span") - pl.col("lost")) * pl.col("progress")
    sums = stints.with_columns(done=done.fill_null(value=False)).select(
        useful=_product(kept * pl.col("done")),
        lost=_product(pl.col("lost")),
        idle_held=_product(pl.col("span") * ~pl.col("progress")),
        unfinished=_product(kept * ~pl.col("done")),
    )
    useful, lost, idle_held, unfinished = (int(value) for value in sums.row(0))
    return useful, lost, idle_held, unfinished


def _integral(level: pl.Expr) -> pl.Expr:
    return (level.cast(pl.Int128) * pl.col("span")).sum()


def _product(span: pl.Expr) -> pl.Expr:
    return (pl.col("amount").cast(pl.Int128) * span).sum()
