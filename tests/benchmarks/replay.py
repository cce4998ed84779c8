"""Whole replays, as a user runs them: reading, replaying, measuring and writing."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import harness
from harness.api import cluster_for, read_trace
from harness.plugins import load
from harness.runs.identity import Looked, looked_at_once

from .many_jobs import write_jobs

PHILLY = Path(__file__).parents[2] / "traces" / "philly.parquet"
JOBS = 200_000
LONGER = 4  # times
QUEUES = 20
REPEATS = 10


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


class OneMore:
    """One more replay of a single job where trace, cluster and plugins are there: an item of a sweep."""

    unit = "CPU-ms"

    def setup(self) -> None:
        """What items of a sweep share."""
        self.plugins = load()
        self.trace = read_trace(PHILLY, self.plugins)
        self.cluster = cluster_for(PHILLY.with_suffix(".cluster.yaml"), self.trace)

    def track_beside_events(self) -> float:
        """Identity, measuring and storing; the best of a few."""
        kept: Looked = {}
        spent = []
        for _ in range(REPEATS):
            began = time.process_time()
            with looked_at_once(kept):
                harness.replay(
                    self.trace,
                    plugin="none",
                    cluster=self.cluster,
                    until="1h",
                    keep="nothing",
                    plugins=self.plugins,
                )
            spent.append(time.process_time() - began)
        return 1000 * min(spent)


class Memory:
    """Memory of whole replays of serial jobs on a pool that keeps up with them."""

    unit = "MB"
    timeout = 600

    def setup(self) -> None:
        """A trace, and one that is longer."""
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        self.short = write_jobs(folder / "short.parquet", JOBS, queues=QUEUES)
        self.long = write_jobs(folder / "long.parquet", LONGER * JOBS, queues=QUEUES)

    def teardown(self) -> None:
        """Remove it."""
        self.folder.cleanup()

    def track_peak(self) -> float:
        """Of the whole process, for the short trace."""
        return self._peak(self.short)

    def track_peak_per_million_jobs(self) -> float:
        """By how much the peak is higher for each further million jobs; what is alive does not grow."""
        short = self._peak(self.short)
        return (self._peak(self.long) - short) * 1_000_000 / ((LONGER - 1) * JOBS)

    def _peak(self, trace: Path) -> float:
        harness.replay(trace, plugin="none", output=Path(self.folder.name) / "results")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
