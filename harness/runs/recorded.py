"""Finds faults in the recorded times of a trace, in runs that repeat these times.

Faults are contradictions, and usage beyond the cluster's capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.base.units import format_amount, format_duration

if TYPE_CHECKING:
    from harness.runs.run import Run


class Beyond(NamedTuple):
    """The use of a resource beyond the cluster's capacity, by the jobs in a record.

    Attributes:
        most: the largest quantity that jobs held at the same time.
        at: when jobs first held this quantity, in microseconds since the origin.
        time: how long jobs held more than the capacity, in microseconds.
        span: the time from the first submission to the last end, in microseconds.
    """

    resource: str
    capacity: int
    most: int
    at: int
    time: int
    span: int

    @property
    def told(self) -> str:
        """A sentence that says by how much the record exceeds the capacity."""
        name = self.resource
        most, capacity = format_amount(name, self.most), format_amount(name, self.capacity)
        share = self.time / self.span if self.span else 0
        return (
            f"the record uses more {name} than the cluster has: up to {most} of {capacity}, and above "
            f"capacity for {format_duration(self.time)} ({share:.1%} of the time)"
        )


def notes_of(info: Mapping[str, Any]) -> Iterator[str]:
    """Yields sentences about faults in the recorded times that a run repeats.

    Yields nothing for a run of a scheduler, which does not repeat recorded times.
    """
    told = info.get("record", {"notes": (), "beyond": ()})
    yield from told["notes"]
    for each in told["beyond"]:
        yield Beyond(**each).told


def beyond(run: Run) -> Iterator[Beyond]:
    """Yields an entry for each resource whose usage exceeds its capacity."""
    window = run.window
    limited = [name for name in run.resources if name in run.capacity]
    stints = run.micros("stints").select("start", "end", *(f"request.{name}" for name in limited))
    for name in limited:
        amount = pl.col(f"request.{name}")
        moves = pl.concat(
            [
                stints.select(pl.col("start").alias("time"), amount.alias("held")),
                stints.select(pl.col("end").alias("time"), (-amount).alias("held")),
            ]
        )
        levels = (
            moves.group_by("time")
            .agg(pl.col("held").sum())
            .sort("time")
            .with_columns(pl.col("held").cum_sum())
            .with_columns(span=pl.col("time").shift(-1) - pl.col("time"))
            .filter(pl.col("held") > run.capacity[name])
            .collect()
        )
        if not levels.is_empty():
            first = levels[int(levels["held"].arg_max() or 0)]
            yield Beyond(
                name,
                run.capacity[name],
                int(first["held"][0]),
                int(first["time"][0]),
                int(levels["span"].sum()),
                window.end - window.start,
            )
