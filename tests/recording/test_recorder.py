"""What `decisions.parquet` says in numbers is what it says in names."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from older_runs import as_schema_2

import harness
from harness import Run
from harness.analysis.metrics.preemptions import preempted_pods
from harness.cluster.load import cluster_from

NUMBERS = ["pod_number", "successor", "by_job"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Pods of a job of three and of one with a confusing name are preempted, some of them twice."""
    pl.DataFrame(
        {
            "job_id": ["b-r1", "a", "high", "higher", "last"],
            "queue": ["q"] * 5,
            "submit_time": [0, 0, 10, 200, 400],
            "duration": [500, 500, 60, 60, 60],
            "priority": pl.Series([0, 0, 10, 20, 20], dtype=pl.Int32),
            "pods": pl.Series([1, 3, 1, 1, 1], dtype=pl.Int32),
            "gang": [False] * 5,
            "request.cpu": pl.Series([1000, 1000, 3000, 3000, 1000]),
        }
    ).with_columns(
        pl.duration(seconds=name).alias(name) for name in ("submit_time", "duration")
    ).write_parquet(tmp_path / "t.parquet")
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    return harness.replay(
        tmp_path / "t.parquet",
        plugin="default-preemption",
        cluster=cluster_from([node], "test"),
        output=tmp_path / "results",
    )


def test_pods_and_preemptors_are_numbers_beside_their_names(run: Run) -> None:
    """A pod is named after its job, its number where there are several, and how often it was recreated."""
    pods = dict(run.jobs.select("job_id", "pods").iter_rows())
    seen = set()
    for row in run.decisions.iter_rows(named=True):
        if row["pod"] is None:
            assert (row["pod_number"], row["successor"]) == (None, None)
        else:
            name = row["job_id"] if pods[row["job_id"]] == 1 else f"{row['job_id']}-{row['pod_number']}"
            assert row["pod"] == (f"{name}-r{row['successor']}" if row["successor"] else name)
            seen.add((row["action"], row["successor"]))
        assert row["by"] == (None if row["by_job"] is None else run.jobs["job_id"][row["by_job"]])
    assert {("preempt", 0), ("preempt", 1), ("bind", 2), ("finish", 2)} <= seen


def test_a_run_of_schema_2_has_them_too(run: Run) -> None:
    """They are read out of the names."""
    numbers, pods = run.decisions.select(NUMBERS), preempted_pods(run, run.window)
    as_schema_2(run.path)
    old = Run.open(run.path)
    assert old.decisions.select(NUMBERS).equals(numbers)
    assert preempted_pods(old, old.window).equals(pods)
    assert not pods.is_empty()
