"""Computes distributions of waits until the first progress, and of slowdowns."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import NamedTuple

import polars as pl

from harness.analysis.metrics.arrivals import request_columns
from harness.analysis.metrics.waiting import job_times
from harness.analysis.report.amounts import shown_in
from harness.analysis.report.material import Material
from harness.runs.run import Run


class Waited(NamedTuple):
    """The waits or the slowdowns of some jobs.

    Attributes:
        jobs: the number of jobs, whether or not they started.
        sorted: the waits of the jobs that started, in microseconds, or the slowdowns of the jobs that
            finished. Both are in ascending order.
    """

    jobs: int
    sorted: pl.Series

    def within(self, value: float) -> float:
        """Returns the fraction of all jobs whose wait or slowdown is known and at most this value."""
        return self.sorted.search_sorted(value, side="right") / self.jobs if self.jobs else 0.0

    def quantile(self, percent: int) -> float | None:
        """Returns the value that this percentage of the jobs does not exceed.

        The result is None if fewer jobs started or finished.
        """
        place = -(-self.jobs * percent // 100)
        return float(self.sorted[place - 1]) if 0 < place <= len(self.sorted) else None


class Waits(NamedTuple):
    """The waits or slowdowns of every group of jobs in every run."""

    names: Sequence[str]
    of_runs: Sequence[Sequence[Waited]]

    @property
    def longest(self) -> float:
        """The longest of all waits, or 0 if there are none."""
        return max((each.sorted[-1] for run in self.of_runs for each in run if len(each.sorted)), default=0.0)


def waits(material: Material) -> Waits:
    """Returns the waits of each lane's jobs, where a lane stands for a quota or queue.

    If there are several lanes, the first group contains all jobs.
    """
    names = [lane.name for lane in material.lanes]

    def of_lanes(run: Run) -> list[Waited]:
        times = _first_starts(run)
        places = material.lanes_of_jobs(run).gather(times["job"])
        table = pl.DataFrame({"place": places, "wait": times["first_start"]})
        parts = [_waited(table["wait"])] if len(names) > 1 else []
        return parts + [_waited(table.filter(place=place)["wait"]) for place in range(len(names))]

    return Waits([f"all {material.holder}s", *names] if len(names) > 1 else names, material.of_runs(of_lanes))


def _first_starts(run: Run) -> pl.DataFrame:
    """Returns `job` and `first_start` of all jobs, where null means that a job had not started."""
    times = job_times(run, run.window, "job", "first_start", "started")
    return times.select("job", pl.when("started").then("first_start"))


def _waited(waits: pl.Series) -> Waited:
    return Waited(len(waits), waits.drop_nulls().sort())


def slowdowns(material: Material) -> Waits:
    """Returns the slowdown of each job that finished.

    The slowdown is the total time divided by the run time. It is bounded as in `slowdown.bounded`.
    """

    def of_all(run: Run) -> list[Waited]:
        times = job_times(run, run.window, "slowdown", "finished")
        return [_waited(times.select(pl.when("finished").then("slowdown"))["slowdown"])]

    return Waits(["all jobs"], material.of_runs(of_all))


def waits_by_size(material: Material) -> Waits:
    """Groups the waits of jobs by the requested amount of the resource that charts show.

    The groups contain requests of up to 1, 2, 4, 8 and so on. Groups without jobs in any run are left out.
    The group with the smallest requests comes first. Runs that do not record requests have no groups.
    """
    column, unit = f"request.{material.resource}", shown_in(material.resource)

    def sized(run: Run) -> pl.DataFrame:
        if column not in request_columns(run):
            return pl.DataFrame(schema={"size": pl.Int64, "wait": pl.Int64})
        times = _first_starts(run)
        asked = run.scan("jobs").select(column).collect()[column].gather(times["job"])
        return pl.DataFrame(
            {"size": [_doubling(each / unit.size) for each in asked], "wait": times["first_start"]}
        )

    frames = material.of_runs(sized)
    sizes = sorted(set(pl.concat([each["size"] for each in frames])))
    found = [[_waited(frame.filter(size=size)["wait"]) for size in sizes] for frame in frames]
    return Waits([f"≤ {1 << size - 1:,}" if size else "0" for size in sizes], found)


def _doubling(amount: float) -> int:
    """Returns the group of an amount: 0 for nothing, 1 for up to 1, 2 for up to 2, 3 for up to 4, etc."""
    return 0 if amount <= 0 else 1 + ceil(log2(max(1.0, amount)))
