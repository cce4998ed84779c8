"""Finish-time fairness: how much later a quota's jobs finish than if no other quota had jobs.

The metric is the rho of Themis (Mahajan and others, NSDI 2020), applied to the jobs of a ClusterQueue or
ElasticQuota instead of an app. A run does not show when jobs would finish if no other quota had jobs. The
metric therefore requires additional replays, and harness computes it only on request
(`harness.studies.isolated`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from harness.analysis.metrics.arrivals import counted
from harness.analysis.metrics.exact import exact_sum
from harness.analysis.metrics.levels import Holder, names_of_jobs
from harness.analysis.metrics.shown import Shown
from harness.analysis.metrics.waiting import job_times
from harness.plugins.measurement import SHARE, Measurement
from harness.plugins.scopes import ALL, QUOTA
from harness.runs.run import Run

FINISH_TIME = "fairness.finish_time"
VIOLATIONS = "fairness.sharing_violations"
LATER = "fairness.finish_time_above_1"

FINISH_TIMES = (FINISH_TIME, VIOLATIONS, LATER)

SHOWN = (
    Shown(
        "fairness.sharing_violations",
        "how much sharing costs a quota, and what other quotas gain",
        brief=True,
    ),
)

TOLERATED = 1.05
"""Sharing is harmless for a quota up to this mean ratio of completion times, shared to alone."""


class Sharing(NamedTuple):
    """The times of a quota's jobs in the shared run, compared with a run that contains only these jobs.

    The shared run contains the jobs of all quotas.

    Attributes:
        ratios: the time in the shared run divided by the time alone, for each job that finished in both runs.
            A job's time runs from its submission to its end.
        left_out: the number of jobs that finished in the shared run, but did not finish or took no time in
            the separate run.
        later: for each job, whether it takes longer in the shared run. If a job does not end, its completion
            time is replaced by the shortest time that is still possible.
    """

    ratios: pl.Series
    left_out: int
    later: pl.Series


def sharing(run: Run, alone: Mapping[str, Run]) -> dict[str, Sharing]:
    """Compares how long each quota's jobs take in a run of all jobs and in a run that has only these jobs.

    `run` has the jobs of all quotas. `alone` maps each quota to the run with only its jobs.
    """
    together = _completions(run).with_columns(names_of_jobs(run)[QUOTA])
    found = {}
    for quota, other in alone.items():
        both = together.filter(pl.col(QUOTA).cast(pl.String) == quota).join(
            _completions(other).select("job_id", alone="completion", finished_alone="finished"),
            on="job_id",
            how="left",
        )
        known = pl.col("alone") > 0
        ended = both.filter("finished")
        fared = ended.filter(known & pl.col("finished_alone"))
        there = both.filter(known & pl.col("completion").is_not_null())
        ratios = fared["completion"] / fared["alone"]
        found[quota] = Sharing(ratios, ended.height - fared.height, there["completion"] > there["alone"])
    return found


def measurements(found: Mapping[str, Sharing], holders: Sequence[Holder]) -> Iterator[Measurement]:
    """Yields the mean ratio of each quota, and the shares of quotas and jobs that take longer than alone.

    A queue without a quota has no value, because there is no separate run for its jobs.
    """
    means = {
        quota: exact_sum(each.ratios.to_numpy()) / len(each.ratios)
        for quota, each in found.items()
        if len(each.ratios)
    }
    worse = sum(mean > TOLERATED for mean in means.values()) / len(means) if means else None
    yield Measurement(VIOLATIONS, worse, SHARE, "lower")
    for holder in holders:
        mean = means.get(holder.name)
        yield Measurement(FINISH_TIME, mean, "factor", "lower", holder.scope, at_least=None)
    jobs = sum(len(each.later) for each in found.values())
    later = sum(int(each.later.sum()) for each in found.values())
    yield _later(later / jobs if jobs else None, ALL)
    for holder in holders:
        several = found[holder.name].later if holder.name in found else None
        share = int(several.sum()) / len(several) if several is not None and len(several) else None
        yield _later(share, holder.scope)


def _later(share: float | None, scope: str) -> Measurement:
    return Measurement(LATER, share, SHARE, "lower", scope, at_least=None)


def _completions(run: Run) -> pl.DataFrame:
    """Returns the `job_id`, the `completion` time so far in microseconds and a `finished` flag of all jobs.

    The time and the flag are null if the job was rejected on arrival or its run time is unknown.
    """
    times = job_times(run, run.window, "job", "completion", "finished", only=counted(run))
    jobs = run.scan("jobs").select("job_id").with_row_index("job").collect()
    return jobs.join(
        times.with_columns(pl.col("job").cast(pl.UInt32)), on="job", how="left", maintain_order="left"
    ).drop("job")
