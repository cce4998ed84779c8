"""How long jobs of each lane waited for their first progress, ready to be drawn as a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from harness.metrics.levels import holder_of_jobs
from harness.metrics.waiting import job_times
from harness.report.material import Material
from harness.runs.run import Run


class Waited(NamedTuple):
    """The waits of some jobs.

    Attributes:
        jobs: how many there are, started or not.
        sorted: the waits of those that started, microseconds, ascending.
    """

    jobs: int
    sorted: pl.Series

    def started_within(self, wait: int) -> float:
        """The part of the jobs that had waited at most so long when they started."""
        return self.sorted.search_sorted(wait, side="right") / self.jobs if self.jobs else 0.0

    @property
    def median(self) -> float | None:
        """How long half of all jobs waited at most; None where fewer started."""
        place = (self.jobs + 1) // 2
        return float(self.sorted[place - 1]) if 0 < place <= len(self.sorted) else None


class Waits(NamedTuple):
    """The waits of every lane in every run.

    Attributes:
        lanes: their names; the first is all of them together, where there are several.
        of_runs: for each run the waits of each of these.
    """

    lanes: Sequence[str]
    of_runs: Sequence[Sequence[Waited]]


def waits(material: Material) -> Waits:
    """How long jobs waited, over each run's own window."""
    names = [lane.name for lane in material.lanes]

    def of_lanes(run: Run) -> list[Waited]:
        times = job_times(run, run.window, "job", "first_start")
        of_jobs = holder_of_jobs(run).gather(times["job"])
        places = of_jobs.replace_strict(
            list(material.places), list(material.places.values()), return_dtype=pl.Int32
        )
        table = pl.DataFrame({"place": places, "wait": times["first_start"]})
        parts = [_waited(table["wait"])] if len(names) > 1 else []
        return parts + [_waited(table.filter(place=place)["wait"]) for place in range(len(names))]

    return Waits([f"all {material.holder}s", *names] if len(names) > 1 else names, material.of_runs(of_lanes))


def _waited(waits: pl.Series) -> Waited:
    return Waited(len(waits), waits.drop_nulls().sort())
