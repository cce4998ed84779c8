"""Whole replays, as a user runs them: reading, replaying, measuring and writing."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import harness

from .many_jobs import write_jobs

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
        self.trace = write_jobs(Path(self.folder.name) / "many.parquet", JOBS)

    def teardown(self) -> None:
        """Remove it."""
        self.folder.cleanup()

    def track_peak_per_million_jobs(self) -> float:
        """Peak memory beyond what the process had before, scaled to a million jobs."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        harness.replay(self.trace, plugin="none", output=Path(self.folder.name) / "results")
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (after - before) / 1024 * 1_000_000 / JOBS
