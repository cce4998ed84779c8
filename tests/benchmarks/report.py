"""Reports of long runs: what reading, drawing and writing them costs."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import harness

from .many_jobs import write_jobs

JOBS = 200_000
QUEUES = 20


class FourRuns:
    """A report of four runs of one trace."""

    timeout = 600

    def setup_cache(self) -> list[str]:
        """The runs' folders."""
        folder = Path(tempfile.mkdtemp())
        trace = write_jobs(folder / "many.parquet", JOBS, queues=QUEUES)
        return [
            str(harness.replay(trace, label=f"{order}-{blocking}", output=folder / "results",
                               options={"order": order, "blocking": blocking}).path)
            for order in ("priority", "fifo")
            for blocking in ("skip", "strict")
        ]  # fmt: skip

    def track_cpu_seconds(self, runs: list[str]) -> float:
        """From the folders to the page."""
        began = time.process_time()
        harness.make_report(runs).html()
        return time.process_time() - began

    track_cpu_seconds.unit = "CPU-s"  # type: ignore[attr-defined]

    def track_megabytes(self, runs: list[str]) -> float:
        """The page's size."""
        return len(harness.make_report(runs).html().encode()) / 1e6

    track_megabytes.unit = "MB"  # type: ignore[attr-defined]

    def track_peak_memory(self, runs: list[str]) -> float:
        """Of the whole process."""
        harness.make_report(runs).html()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    track_peak_memory.unit = "MB"  # type: ignore[attr-defined]
