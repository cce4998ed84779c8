"""Metrics over a finished run: what measuring costs, by the number of queues."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import polars as pl

import harness
from harness.plugins import load

JOBS = 200_000


class Metrics:
    """CPU-seconds that all built-in metrics of a run take, and comparing it with another."""

    params = (20, 300)
    param_names = ("queues",)
    unit = "s"
    timeout = 600

    def setup_cache(self) -> dict[int, list[str]]:
        """Replay once for each number of queues, in order of arrival and not."""
        folder = Path(tempfile.mkdtemp())
        return {queues: self._replayed(folder, queues) for queues in self.params}

    def track_metrics(self, runs: dict[int, list[str]], queues: int) -> float:
        """Every family of metrics over one run."""
        run = harness.Run.open(runs[queues][0])
        began = time.process_time()
        for metric in load().metrics:
            list(metric.compute(run, run.window))
        return time.process_time() - began

    def track_comparison(self, runs: dict[int, list[str]], queues: int) -> float:
        """The default table of two runs, with its intervals."""
        opened = [harness.Run.open(path) for path in runs[queues]]
        began = time.process_time()
        harness.compare(opened).table()
        return time.process_time() - began

    def _replayed(self, folder: Path, queues: int) -> list[str]:
        draw = random.Random(queues)
        now, rows = 0.0, []
        for number in range(JOBS):
            now += draw.expovariate(1)
            cores = 1000 << draw.randrange(7)
            duration = int(draw.expovariate(1 / 50) * 1_000_000)
            rows.append((f"j{number}", int(now * 1_000_000), duration, f"q{draw.randrange(queues)}", cores))
        names = ["job_id", "submit_time", "duration", "queue", "request.cpu"]
        times = pl.col("submit_time", "duration").cast(pl.Duration("us"))
        path = folder / f"{queues}.parquet"
        pl.DataFrame(rows, schema=names, orient="row").with_columns(times).write_parquet(path)
        return [
            str(harness.replay(path, label=order, options={"order": order}, output=folder).path)
            for order in ("fifo", "priority")
        ]
