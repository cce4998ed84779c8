"""A long trace of serial jobs that arrive about once a second, for benchmarks."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl

from harness.base.units import SECOND


def write_jobs(path: Path, jobs: int, *, queues: int = 1) -> Path:
    """Write a trace of so many jobs, which its queues share at random."""
    draw = random.Random(2)
    submit, now = [], 0.0
    for _ in range(jobs):
        now += draw.expovariate(1.0)
        submit.append(int(now * SECOND))
    duration = [int(draw.expovariate(0.01) * SECOND) for _ in range(jobs)]
    cpu = [draw.choice((1000, 2000, 4000)) for _ in range(jobs)]
    frame = pl.DataFrame(
        {
            "job_id": [f"job-{number}" for number in range(jobs)],
            "submit_time": pl.Series(submit).cast(pl.Duration("us")),
            "duration": pl.Series(duration).cast(pl.Duration("us")),
            "queue": [f"queue-{draw.randrange(queues):03}" for _ in range(jobs)],
            "request.cpu": cpu,
        }
    )
    frame.write_parquet(path)
    return path
