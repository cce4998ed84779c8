"""Reproduces AccaSim's first-come-first-served schedule of HPC2N's first jobs on 240 processors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from harness.base.units import SECOND
from harness.plugins import load
from harness.runs.request import Request
from harness.studies.reproduced.case import Row
from harness.testing.scripts import pool
from harness.trace.bundled import bundled_path
from harness.trace.trace import open_trace

STARTS = Path(__file__).parent / "hpc2n_first5000_fcfs240_accasim_result.csv.gz"
"""The result file of AccaSim 1.1.3 (FIFO, first fit), with columns `job_id, submit_s, start_s, end_s`."""

_PROCESSORS = 240
_MEAN_WAIT = {5_000: "12,108.89", 20_000: "11,907.20"}
"""Maps a number of jobs to AccaSim's mean wait in seconds."""


def rows(_files: Mapping[str, Path] | None = None) -> list[Row]:
    """Returns rows for the starts of 5,000 jobs, and for the mean waits of 5,000 and of 20,000 jobs."""
    found = {count: first_come_first_served(count) for count in _MEAN_WAIT}
    theirs = pl.read_csv(STARTS)
    both = theirs.join(found[5_000], on="job_id", how="full")
    equal = both.filter(pl.col("start_s") - pl.col("submit_s") == pl.col("wait") / SECOND).height
    return [
        Row("starts of the first 5,000 jobs", f"{theirs.height:,}", f"{equal:,}"),
        *(
            Row(f"mean wait of the first {count:,} jobs, s", wait, f"{_mean(found[count]):,.2f}")
            for count, wait in _MEAN_WAIT.items()
        ),
    ]


def first_come_first_served(count: int) -> pl.DataFrame:
    """Returns the `job_id` and the `wait` in microseconds of the log's first jobs in a strict queue."""
    plugins = load(block=["metrics"])
    with TemporaryDirectory(prefix="harness-") as folder:
        first = Path(folder, "first.parquet")
        pl.read_parquet(bundled_path("hpc2n")).head(count).with_columns(
            queue=pl.lit("default").cast(pl.Categorical)
        ).write_parquet(first)
        run = Request(
            open_trace(first, plugins),
            plugin="none",
            cluster=pool(cpu=_PROCESSORS * 1000),
            options={"order": "fifo", "blocking": "strict"},
            output=Path(folder, "results"),
        ).run(plugins=plugins)
        return (
            run.micros("jobs")
            .select(pl.col("job_id").cast(pl.Int64), wait=pl.col("start_time") - pl.col("submit_time"))
            .collect()
        )


def _mean(jobs: pl.DataFrame) -> float:
    return int(jobs["wait"].sum()) / jobs.height / SECOND
