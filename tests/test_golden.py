"""Golden runs: whole schedules that were computed elsewhere, and that ours must equal job by job."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import harness
from harness.base.units import SECOND

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(__file__).parents[2] / "shared" / "peers" / "data"
POOL_OF_240 = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: default}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources:
      - {name: cpu, nominalQuota: 240}
      - {name: memory, nominalQuota: 1Pi}
"""
STRICT_FIFO = {"order": "fifo", "blocking": "strict"}


def first_come_first_served(trace: Path, folder: Path) -> harness.Run:
    cluster = folder / "pool.yaml"
    cluster.write_text(POOL_OF_240)
    return harness.replay(
        trace, plugin="none", cluster=cluster, options=STRICT_FIFO, output=folder / "results"
    )


def mean_wait(run: harness.Run) -> float:
    waits = run.jobs.select((pl.col("start_time") - pl.col("submit_time")).dt.total_microseconds())
    return sum(waits.to_series().to_list()) / run.jobs.height / SECOND


def test_strict_fifo_starts_every_job_when_accasim_does(tmp_path: Path) -> None:
    """All 5,000 start times equal AccaSim's, to the second."""
    run = first_come_first_served(GOLDEN / "hpc2n_first5000.swf.gz", tmp_path)
    golden = pl.read_csv(GOLDEN / "hpc2n_first5000_fcfs240_accasim_result.csv.gz")
    jobs = run.micros("jobs").collect()
    ours = jobs.select(
        job_id=pl.col("job_id").cast(pl.Int64), ours=(pl.col("start_time") - pl.col("submit_time"))
    )
    both = golden.join(ours, on="job_id", how="full", coalesce=True)
    wrong = both.filter(((pl.col("start_s") - pl.col("submit_s")) * SECOND).ne_missing(pl.col("ours")))
    assert both.height == 5000
    assert wrong.is_empty()
    assert round(mean_wait(run), 2) == 12_108.89


def test_strict_fifo_of_20000_jobs_waits_as_long_as_accasim(tmp_path: Path) -> None:
    """The mean wait of the first 20,000 jobs is 11,907.20 s."""
    trace = SHARED / "hpc2n_first20000.swf.gz"
    if not trace.is_file():
        pytest.skip("the first 20,000 jobs are not part of the repository")
    assert round(mean_wait(first_come_first_served(trace, tmp_path)), 2) == 11_907.20
