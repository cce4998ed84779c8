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
    """Integrate over change points, piece by piece: levels of queues become levels of all of them."""
    capacity = run.capacity.get(resource)
    levels = ("allocated", "pending")
    demand = pl.col("allocated") + pl.col("pending")
    wanted = pl.min_horizontal(demand, pl.lit(capacity)) if capacity is not None else demand
    of_queues = pl.DataFrame(schema={"time": pl.Int64, "queue": pl.String, **dict.fromkeys(levels, pl.Int64)})
    total = pl.DataFrame({"time": window.start, **dict.fromkeys(levels, 0)})
    allocated = demanded = 0
    for batch in run.batches("timeline", ("time", "queue", "resource", *levels)):
        points = batch.filter((pl.col("resource") == resource) & (pl.col("time") <= window.end))
        points = pl.concat([of_queues, points.select(of_queues.columns)])
        changes = points.with_columns(
            pl.col(name) - pl.col(name).shift(1, fill_value=0).over("queue") for name in levels
        ).slice(of_queues.height)
        of_queues = points.group_by("queue", maintain_order=True).last().select(of_queues.columns)
        total = pl.concat(
            [total, changes.group_by("time").agg(pl.col(levels).sum()).sort("time")]
        ).with_columns(pl.col(levels).cum_sum())
        span = pl.col("time").shift(-1).fill_null(pl.col("time")) - pl.col("time")
        sums = total.select(
            _product(pl.col("allocated"), span), _product(wanted, span).alias("demanded")
        ).row(0)
        allocated, demanded = allocated + int(sums[0]), demanded + int(sums[1])
        total = total.tail(1)
    rest = window.end - pl.col("time")
    sums = total.select(_product(pl.col("allocated"), rest), _product(wanted, rest).alias("demanded")).row(0)
    allocated, demanded = allocated + int(sums[0]), demanded + int(sums[1])
    return allocated, demanded if capacity is not None else None


def _from_stints(run: Run, window: Window, resource: str) -> tuple[int, int, int, int]:
    """Add up stints piece by piece: useful, lost, idle_held and unfinished."""
    finished = run.micros("jobs").select("finish_time").collect()["finish_time"]
    sums = [0, 0, 0, 0]
    amount = pl.col(f"request.{resource}")
    # An eviction after the window has not thrown anything away yet.
    lost = pl.when(pl.col("end") <= window.end).then("lost").otherwise(0)
    span = pl.min_horizontal("end", pl.lit(window.end)) - pl.col("start")
    progress = pl.col("state") == "progress"
    kept = (span - lost) * progress
    for batch in run.batches("stints", ("job", "start", "end", "state", "lost", f"request.{resource}")):
        stints = batch.filter(pl.col("start") < window.end)
        done = (finished.gather(stints["job"]) <= window.end).fill_null(value=False)
        row = stints.with_columns(done=done).select(
            useful=_product(amount, kept * pl.col("done")),
            lost=_product(amount, lost),
            idle_held=_product(amount, span * ~progress),
            unfinished=_product(amount, kept * ~pl.col("done")),
        )
        sums = [total + int(value) for total, value in zip(sums, row.row(0), strict=True)]
    useful, thrown_away, idle_held, unfinished = sums
    return useful, thrown_away, idle_held, unfinished


def _product(amount: pl.Expr, span: pl.Expr) -> pl.Expr:
    """Resource-time: amounts of a resource times spans of microseconds do not fit 64 bits."""
    return (amount.cast(pl.Int128) * span).sum()
