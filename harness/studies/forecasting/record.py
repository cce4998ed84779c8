"""Shows the jobs of a trace at any moment, in the form that an API server would have shown.

A trace records when jobs ran, but not their nodes and flavors. This module therefore supports only clusters
without nodes whose ClusterQueues have a single flavor each. A run records nodes and flavors; see
`record_of_run.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import polars as pl

from harness.base.errors import OptionError
from harness.policy import ENDLESS, Job
from harness.studies.forecasting.api_objects import Quota, Shown
from harness.trace.homes import homed
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs
from harness.trace.recorded import STATE, check_recorded

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.policy.job import RecordedRun
    from harness.runs.estimates.coming_jobs import Past
    from harness.runs.estimates.history import History
    from harness.trace.trace import Trace


class There(NamedTuple):
    """A job that was present at a moment.

    Attributes:
        waits: whether the job waited, or any of its Pods if they are separate jobs.
        starts: the next start of the job's Workload, or of each Pod, by namespace and name, in microseconds
            on the history's clock; None if no start is known.
    """

    shown: Shown
    waits: bool
    starts: Mapping[str, int | None]

    @property
    def job(self) -> Job:
        """The job."""
        return self.shown.job


class Record(Protocol):
    """The actual history of jobs. All times are in microseconds on the history's clock."""

    @property
    def until(self) -> int | None:
        """The end of the record if some jobs had not started by then, or else None."""

    def there(self, moment: int) -> Iterator[There]:
        """Yields the jobs that were present at a moment."""


@dataclass(frozen=True)
class RecordOfTrace:
    """The record of a trace; see `Record`.

    Attributes:
        cluster: the cluster that has the queues of the jobs.
        jobs: the jobs, in order of submission.
    """

    cluster: Cluster
    jobs: Sequence[Past]
    runs: Sequence[tuple[RecordedRun, ...]]

    @cached_property
    def until(self) -> int | None:
        """The end of the record if some jobs had not started by then, or else None."""
        if all(self.runs):
            return None
        times = (time for runs in self.runs for run in runs for time in (run.start, run.end))
        return max(self.jobs[-1].submit, *(time for time in times if time < ENDLESS))

    def there(self, moment: int) -> Iterator[There]:
        """Yields the jobs that were present at a moment."""
        for number in range(bisect_right(self.jobs, moment, key=lambda job: job.submit)):
            runs = self.runs[number]
            at = bisect_right(runs, moment, key=lambda run: run.start)
            after = runs[at].start if at < len(runs) else None
            last = runs[at - 1] if at else None
            if last is not None and last.end > moment:
                yield self._there(self.jobs[number], last.start, after)
            elif at < len(runs) or not runs:
                yield self._there(self.jobs[number], None, after)

    def _there(self, past: Past, since: int | None, after: int | None) -> There:
        job = past.arrival[0]
        quota = None
        if since is not None:
            queue = self.cluster.cluster_queue_of(job.namespace, job.queue)
            assert queue is not None
            flavors = {
                resource: group.flavors[0].flavor
                for group in queue.resource_groups
                for resource in group.covered_resources
            }
            given = {
                each.name: {name: flavors[name] for name in each.requests if name in flavors}
                for each in job.pod_sets
            }
            counts = [each.count for each in job.pod_sets]
            quota = Quota(queue.name, given, counts, since, since)
        shown = Shown(
            job=job, created=past.submit, queued=True, quota=quota, ready=since, waited_for=True, began=since
        )
        return There(shown, quota is None, {shown.key: after})


def record_of_trace(trace: Trace, cluster: Cluster, history: History) -> RecordOfTrace:
    """Returns the record of a trace's jobs for a history.

    Jobs without a recorded start are left out, unless the trace comes from a replay and the job still waited
    when the replay ended.

    Raises:
        TraceError: the trace has no record.
        OptionError: the cluster has nodes or several flavors, and the record does not say which of them were
            used.
    """
    check_recorded(trace)
    several = [
        queue.name
        for queue in cluster.cluster_queues.values()
        if any(len(group.flavors) > 1 for group in queue.resource_groups)
    ]
    if several or not cluster.cluster_queues or cluster.nodes:
        what = f"ClusterQueue {several[0]} has several flavors" if several else "it has nodes"
        what = what if cluster.cluster_queues else "it has no ClusterQueue"
        raise OptionError(
            f"the record of a trace cannot be turned into Workloads of this cluster: {what}",
            hint="a trace names neither flavors nor nodes, but a run does: replay the trace on this "
            "cluster, and give the run as --history",
        )
    trace = homed(trace, cluster)
    ran = {
        job.id: tuple(
            run._replace(start=run.start + trace.origin, end=run.end + trace.origin) for run in job.recorded
        )
        for chunk in Jobs(JobColumns(trace, cluster, record=True)).chunks()
        for job, *_ in chunk
    }
    waited: set[str] = set()
    if STATE in trace.frame.columns:
        waited.update(trace.frame.filter(pl.col(STATE) == "pending")["job_id"])
    jobs = [past for past in history.jobs if ran[past.arrival[0].id] or past.arrival[0].id in waited]
    return RecordOfTrace(cluster, jobs, [ran[past.arrival[0].id] for past in jobs])
