"""Whole replays, as a user runs them: reading, replaying, measuring and writing."""

from __future__ import annotations

import random
import resource
import tempfile
import time
from pathlib import Path

import polars as pl

import harness
from harness.units import SECOND

PHILLY = Path(__file__).parents[2] / "traces" / "philly.parquet"
JOBS = 200_000


class Philly:
    """The bundled trace, with its cluster."""

    unit = "jobs/CPU-s"
    timeout = 600

    def setup(self) -> None:
        """Where runs go."""
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        """Remove them."""
        self.folder.cleanup()

    def track_none(self) -> float:
        """Jobs replayed in a CPU-second with the plugin `none`."""
        began = time.process_time()
        run = harness.replay(PHILLY, plugin="none", output=self.folder.name)
        return float(run.jobs.height / (time.process_time() - began))


class Memory:
    """Memory that grows with the length of a trace, not with what is alive."""

    unit = "MB"
    timeout = 600

    def setup(self) -> None:
        """A trace of serial jobs on a pool that keeps up with them."""
        self.folder = tempfile.TemporaryDirectory()
        draw = random.Random(2)
        submit, now = [], 0.0
        for _ in range(JOBS):
            now += draw.expovariate(1.0)
            submit.append(int(now * SECOND))
        frame = pl.DataFrame(
            {
                "job_id": [f"job-{number}" for number in range(JOBS)],
                "submit_time": pl.Series(submit).cast(pl.Duration("us")),
                "duration": pl.Series([int(draw.expovariate(0.01) * SECOND) for _ in range(JOBS)]).cast(
                    pl.Duration("us")
                ),
                "queue": "default",
                "request.cpu": [draw.choice((1000, 2000, 4000)) for _ in range(JOBS)],
            }
        )
        self.trace = Path(self.folder.name) / "many.parquet"
        frame.write_parquet(self.trace)

    def teardown(self) -> None:
        """Remove it."""
        self.folder.cleanup()

    def track_peak_per_million_jobs(self) -> float:
        """Peak memory beyond what the process had before, scaled to a million jobs."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        harness.replay(self.trace, plugin="none", output=Path(self.folder.name) / "results")
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (after - before) / 1024 * 1_000_000 / JOBS
