"""Finish-time fairness: how much later jobs of a quota end than if they ran alone on that quota.

Source: rho of Themis (Mahajan and others, NSDI 2020), for the jobs of a ClusterQueue or ElasticQuota in place
of an app. A run does not show how a quota would do alone, so this is measured on request only, from further
replays (`harness.studies.isolated`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from harness.analysis.metrics.arrivals import counted
from harness.analysis.metrics.exact import exact_sum
from harness.analysis.metrics.levels import Holder, names_of_jobs
from harness.analysis.metrics.waiting import job_times
from harness.plugins.measurement import SHARE, Measurement
from harness.plugins.scopes import ALL, QUOTA
from harness.runs.run import Run

FINISH_TIME = "fairness.finish_time"
VIOLATIONS = "fairness.sharing_violations"
LATER = "fairness.finish_time_above_1"

FINISH_TIMES = (FINISH_TIME, VIOLATIONS, LATER)
"""What is measured on request only."""

TOLERATED = 1.05
"""Sharing is worth it for a quota whose jobs take at most this many times as long as alone."""


class Sharing(NamedTuple):
    """How jobs of a quota fare together with others, against alone.

    Attributes:
        ratios: for each of its jobs that finished in both, together over alone, from submission to the end.
        left_out: how many of those that finished together did not finish alone, or took no time there.
        later: for each of its jobs whether it takes longer together; one that does not end counts with the
            least that it can take.
    """

    ratios: pl.Series
    left_out: int
    later: pl.Series


def sharing(run: Run, alone: Mapping[str, Run]) -> dict[str, Sharing]:
    """For each quota how its jobs fare.

    Args:
        run: all quotas together.
        alone: quota -> the run in which it is alone.
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
    """The mean for each quota, how many are worse off than alone, and how many jobs are.

    Args:
        found: what `sharing` found.
        holders: those of the run; jobs of a queue without a quota are alone on nothing.
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
    """`job_id`, `completion` (microseconds, so far) and whether it has `finished`, of all jobs in order.

    Both are null for those that were refused at their arrival, or whose run time nobody knows.
    """
    times = job_times(run, run.window, "job", "completion", "finished", only=counted(run))
    jobs = run.scan("jobs").select("job_id").with_row_index("job").collect()
    return jobs.join(
        times.with_columns(pl.col("job").cast(pl.UInt32)), on="job", how="left", maintain_order="left"
    ).drop("job")
