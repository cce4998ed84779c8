"""What `harness trace check` finds: faults of a trace, and jobs that could never start on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import TraceError

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.runs.impossible import Verdict
    from harness.trace.trace import Trace


@dataclass(frozen=True)
class Checked:
    """What was found.

    Attributes:
        faults: what has to be repaired, each with its place.
        hint: what to do about them, where that is known.
        remarks: what else should be known.
        jobs, queues: how many there are; 0 where the trace cannot be read.
        left_out: reason -> how many rows.
        impossible: what plugins say of jobs that can never start; only those that name some.
    """

    faults: tuple[str, ...]
    hint: str | None = None
    remarks: tuple[str, ...] = ()
    jobs: int = 0
    queues: int = 0
    left_out: tuple[tuple[str, int], ...] = ()
    impossible: tuple[Verdict, ...] = ()

    def document(self, file: Path, cluster: Path | None) -> dict[str, Any]:
        """The same as JSON values."""
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


def checked(read: Callable[[], Trace], cluster: Cluster | None, plugins: Plugins) -> Checked:
    """Read a trace and look at it.

    Args:
        read: reads it, and checks it against the schema.
        cluster: what it is to be replayed on, or None.
        plugins: who says which jobs can never start there; those with which none can, for every plugin that
            the cluster is made for, are faults.
    """
    from harness.runs.impossible import verdicts
    from harness.trace.homes import map_hint
    from harness.trace.job_rows import count_jobs

    try:
        trace = read()
    except TraceError as error:
        hint = map_hint(error.faults) if cluster is not None else None
        return Checked(tuple(f"{error.source}: {fault}" for fault in error.faults), hint)
    jobs, queues = count_jobs(trace.frame), trace.frame["queue"].n_unique()
    remarks = [f"left out: {count:,} {reason}" for reason, count in trace.left_out.items()]
    said = verdicts(trace, cluster, plugins) if cluster is not None else []
    told = [line for each in said for line in each.told(jobs)]
    always = frozenset[str].intersection(*(each.jobs for each in said)) if said else frozenset()
    faults = [f"{trace.path}: {line}" for line in told] if always else []
    return Checked(
        tuple(faults),
        None,
        (*remarks, *([] if faults else told)),
        jobs,
        queues,
        tuple(trace.left_out.items()),
        tuple(each for each in said if each.found),
    )
