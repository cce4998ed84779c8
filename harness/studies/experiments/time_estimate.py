"""Estimates how long an experiment takes, by replaying the first jobs of each trace with each plugin."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from harness.studies.experiments.specification import PLUGIN, TRACE
from harness.trace.job_rows import count_jobs

if TYPE_CHECKING:
    from harness.runs.request import Request
    from harness.studies.experiments.evaluation import Item
    from harness.studies.experiments.sweep import Sweep
    from harness.trace.trace import Trace

PILOT_JOBS = 500


def estimated(sweep: Sweep) -> float:
    """Returns the CPU-seconds for the missing items, assuming that all jobs take as long as the first jobs.

    Raises:
        HarnessError: a replay of the first jobs failed.
    """
    missing = sweep.folder.missing(sweep.items)
    count = Counter(map(_kind, missing))
    first = {_kind(item): item for item in reversed(missing)}
    return sum(_seconds(sweep, first[kind]) * times for kind, times in count.items())


def _kind(item: Item) -> tuple[object, object]:
    """Returns the trace and the plugin of an item, which affect its CPU time most."""
    return item.point.get(TRACE), item.point[PLUGIN]


def _seconds(sweep: Sweep, item: Item) -> float:
    bench = sweep.bench
    request = bench.request(item.point)
    trace = bench.trace(item.point)
    jobs = max(1, arriving(trace, request))
    some = trace.frame["job_id"].unique(maintain_order=True).head(PILOT_JOBS)
    pilot = replace(trace, frame=trace.frame.filter(pl.col("job_id").is_in(some.implode())))
    run = replace(request, trace=pilot, keep="nothing").run(plugins=bench.plugins)
    return float(run.info["provenance"]["cpu_seconds"]) * jobs / min(jobs, PILOT_JOBS)


def arriving(trace: Trace, request: Request) -> int:
    """Returns the number of a trace's jobs that arrive before a replay ends."""
    if request.until is None:
        return count_jobs(trace.frame)
    submit = trace.frame["submit_time"].to_physical() - trace.origin
    first = int(submit.min())  # type: ignore[arg-type]
    last = first + int((request.until - first) * request.scale_arrivals)
    return count_jobs(trace.frame.filter(submit <= last))
