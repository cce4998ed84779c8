"""Finds the faults of a trace, and jobs that could never start, for `harness trace check`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import FAULTS_SHOWN, TraceError

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.runs.impossible import Verdict
    from harness.trace.trace import Trace


@dataclass(frozen=True)
class Checked:
    """The findings about a trace.

    Attributes:
        faults: the faults to repair, with their locations.
        hint: what to do about the faults, if known.
        jobs, queues: the numbers of jobs and queues, or 0 if the trace can't be read.
        left_out: the number of rows that were left out for each reason.
        impossible: the verdicts of plugins that found jobs that can never start.
    """

    faults: tuple[str, ...]
    hint: str | None = None
    remarks: tuple[str, ...] = ()
    jobs: int = 0
    queues: int = 0
    left_out: tuple[tuple[str, int], ...] = ()
    impossible: tuple[Verdict, ...] = ()

    def document(self, file: Path, cluster: Path | None) -> dict[str, Any]:
        """Returns the findings as JSON values."""
        return {
            "schema": "1",
            "path": str(file),
            "cluster": None if cluster is None else str(cluster),
            "faults": list(self.faults),
            "jobs": self.jobs,
            "queues": self.queues,
            "left_out": dict(self.left_out),
            "impossible": [
                {"plugins": list(each.plugins), "where": kind.where, "why": kind.why, "jobs": list(kind.jobs)}
                for each in self.impossible
                for kind in each.found
            ],
        }


def checked(read: Callable[[Cluster | None], Trace], cluster: Cluster | None, plugins: Plugins) -> Checked:
    """Read a trace and check it.

    `read` checks the trace against the schema and the cluster. Without a cluster for the replay, `cluster` is
    None. A job is a fault if it can't start with any plugin that suits the cluster.
    """
    from harness.runs.impossible import verdicts
    from harness.trace.homes import map_hint
    from harness.trace.job_rows import count_jobs, job_rows
    from harness.trace.misnamed import sentences
    from harness.trace.recorded import faults_of_runs

    unfit: tuple[str, ...] = ()
    hint = None
    rest: Trace | None
    try:
        trace = rest = read(cluster)
    except TraceError as error:
        unfit = tuple(f"{error.source}: {fault}" for fault in error.faults)
        if cluster is None:
            return Checked(unfit, _hint_of(error))
        hint = map_hint(error.faults)
        try:
            trace = read(None)
        except TraceError as unread:
            return Checked(unfit, hint or _hint_of(unread))
        rest = _that_fit(trace, cluster)
    jobs, queues = count_jobs(trace.frame), trace.frame["queue"].n_unique()
    remarks = [f"left out: {count:,} {reason}" for reason, count in trace.left_out.items()]
    remarks += sentences(trace.frame.schema)
    said = verdicts(rest, cluster, plugins) if cluster is not None and rest is not None else []
    told = [line for each in said for line in each.told(jobs)]
    always = frozenset[str].intersection(*(each.jobs for each in said)) if said else frozenset()
    faults = [f"{trace.path}: {line}" for line in told] if always else []
    of_runs = [f"{trace.path}: {fault}" for fault in faults_of_runs(trace, job_rows(trace.frame))]
    return Checked(
        (*unfit, *of_runs, *faults),
        hint,
        (*remarks, *([] if faults else told)),
        jobs,
        queues,
        tuple(trace.left_out.items()),
        tuple(each for each in said if each.found),
    )


def _hint_of(error: TraceError) -> str | None:
    """Returns the hint of an error, unless it recommends this command because there are many faults."""
    return error.hint if len(error.faults) <= FAULTS_SHOWN else None


def _that_fit(trace: Trace, cluster: Cluster) -> Trace | None:
    """Returns the jobs that fit the whole cluster and whose queues and priority classes exist, if any."""
    import polars as pl

    from harness.trace.homes import homed
    from harness.trace.validate import cluster_faults, strangers

    at_home = homed(trace, cluster)
    frame = trace.frame.filter(~pl.col("job_id").is_in(strangers(at_home, cluster)))
    rest = replace(trace, frame=frame)
    return rest if frame.height and not cluster_faults(homed(rest, cluster), cluster) else None
