"""Chooses the windows and jobs over which compared runs with equal arrivals are measured again.

There are two cases:

- If no run was cut short, sums over time end with the run that ends first. After the last arrival, the
  cluster of a slower run becomes emptier, which says nothing about its earlier performance. Results of jobs
  end with the run that ends last, so jobs that their own run left unfinished keep waiting until then.
- If any run was cut short, everything is measured up to the earliest cut.

If any run rejected a job on arrival, the job counts in none of the runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

import polars as pl

from harness.analysis.metrics import (
    device_fragmentation,
    disruption,
    fairness,
    fragmentation,
    idle,
    job_counts,
    quota,
    reclaim,
    starvation,
    topology,
    users,
    utilization,
    waiting,
)
from harness.base.arrays import NEVER, numbers
from harness.plugins.measurement import Measurement
from harness.runs.refused import rejected_at_arrival
from harness.runs.run import Run

_DIGITS = 16


class Shared(NamedTuple):
    """The window and the jobs over which a compared run is measured.

    Attributes:
        integrals: when sums over time end.
        jobs: when the results of jobs end.
        refused: the rows of jobs that are left out because another run rejected them on arrival.
    """

    integrals: int
    jobs: int
    refused: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """A text that identifies this window and these jobs."""
        rows = " ".join(map(str, self.refused))
        return f"{self.integrals} {self.jobs} {sha256(rows.encode()).hexdigest()[:_DIGITS] if rows else ''}"

    @property
    def cut(self) -> bool:
        """True if sums over time and the results of jobs end at the same time, as for runs cut short."""
        return self.integrals == self.jobs

    def is_own(self, run: Run) -> bool:
        """Returns True if the run's own metrics already cover this window and these jobs."""
        return self == (run.window.end, run.window.end, ())


def shared_by(runs: Sequence[Run], refused: Sequence[Sequence[int]] | None = None) -> list[Shared]:
    """Returns the window and the jobs over which to measure each of several runs with equal arrivals.

    `refused` contains, for each run, the rows of the jobs that any run rejected on arrival. By default, the
    function finds these jobs. For this, a job must have the same row in `jobs.parquet` of all runs.
    """
    cuts = [run.cut_at for run in runs if run.cut_at is not None]
    ends = [min(cuts)] if cuts else [run.window.end for run in runs]
    own = [set(rejected_at_arrival(run).to_list()) for run in runs]
    every = [set[int]().union(*own)] * len(runs) if refused is None else list(map(set, refused))
    return [
        Shared(min(ends), max(ends), tuple(sorted(some - mine)))
        for some, mine in zip(every, own, strict=True)
    ]


def measure_shared(run: Run, shared: Shared) -> Iterator[Measurement]:
    """Yields the metrics of a run that change because of the shared window or the left-out jobs."""
    own = run.window
    integrals, jobs = (own._replace(end=end) for end in (shared.integrals, shared.jobs))
    until, only = min(own.end, shared.jobs), _only(run, shared)
    if integrals != own or only is not None:
        yield from utilization.measure(run, integrals, until=until, only=only)
        yield from users.measure(run, integrals, until=until, only=only)
    if integrals != own:
        yield from fairness.measure_shares(run, integrals)
        yield from quota.measure(run, integrals)
        yield from fragmentation.measure(run, integrals)
        yield from device_fragmentation.measure(run, integrals)
        yield from reclaim.measure_owed(run, integrals)
        if idle.has_causes(run):
            yield from idle.measure(run, integrals)
    goes_on = jobs != own and (jobs.end < own.end or _leaves_unfinished(run))
    if goes_on or only is not None:
        yield from waiting.measure(run, jobs, only)
        yield from starvation.measure(run, jobs, only)
        yield from fairness.measure_slowdowns(run, jobs, only)
    if goes_on:
        yield from reclaim.measure_latency(run, jobs)
    if shared.cut and jobs != own:
        yield from job_counts.measure(run, jobs)
        yield from disruption.measure(run, jobs)
        yield from topology.measure(run, jobs)
    elif goes_on:
        yield from disruption.measure_restarts(run, jobs)


def _only(run: Run, shared: Shared) -> pl.Series | None:
    """Returns whether each job counts, or None if only the run's own rejected jobs are left out."""
    if not shared.refused:
        return None
    rows = run.columns("jobs", "submit_time").height
    return pl.repeat(True, rows, eager=True).scatter(list(shared.refused), False)


def _leaves_unfinished(run: Run) -> bool:
    (finish,) = numbers(run.columns("jobs", "finish_time"), "finish_time")
    return bool((finish == NEVER).any())
