"""Shows the jobs of a run at any moment, in the form that an API server would have shown.

The decisions of a run contain the flavors of admissions and the nodes of pods. A run does not record how long
admission checks take, so jobs are shown as admitted as soon as their quota is reserved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from harness.base.errors import OptionError
from harness.base.grouping import grouped
from harness.base.tables.schemas import RAN_BEFORE
from harness.base.units import SECOND
from harness.runs.folder import reading
from harness.studies.forecasting.job_at_moment import Standing, Told, counts_are_known
from harness.studies.forecasting.record import There
from harness.trace.homes import homed
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.policy import Job
    from harness.runs.run import Run
    from harness.trace.trace import Trace

_SILENT = ("refuse",)
_OVER = ("finished", "rejected")
_PROGRESS = ("progress", "restoring")


@dataclass(frozen=True)
class RecordOfRun:
    """The record of a run; see `harness.studies.forecasting.record.Record`.

    Attributes:
        cluster: the cluster that has the queues of the jobs.
        jobs: the jobs of the run, by row number.
        spans: when each job was present, with the columns `row`, `submit` and `over`, in order of `submit`.
        told: the decisions, earliest first, with the column `row` and the attributes of `Told`.
        progress: the times at which each job began to progress, in ascending order, by row number; empty if
            pods are ready immediately.
        until: see `Record`.
        queued: whether Kueue admits jobs.
    """

    cluster: Cluster
    jobs: Mapping[int, Job]
    spans: pl.DataFrame
    told: pl.DataFrame
    progress: Mapping[int, Sequence[int]]
    until: int | None
    queued: bool

    def there(self, moment: int) -> Iterator[There]:
        """Yields the jobs that were present at a moment."""
        alive = self.spans.filter((pl.col("submit") <= moment) & (pl.col("over") > moment))["row"]
        rows: dict[int, list[Told]] = {row: [] for row in alive}
        for row, *told in self.told.filter(pl.col("row").is_in(alive.implode())).iter_rows():
            rows[row].append(Told(*told))
        for row, several in rows.items():
            yield self._there(row, several, moment)

    def _there(self, row: int, several: Sequence[Told], moment: int) -> There:
        job, on_nodes = self.jobs[row], bool(self.cluster.nodes)
        progress = self.progress.get(row, ()) if self.progress else None
        standing = Standing(job, queued=self.queued, on_nodes=on_nodes, progress=progress)
        at = bisect_right(several, moment, key=lambda told: told.time)
        for told in several[:at]:
            standing.take(told)
        queue = self.cluster.cluster_queue_of(job.namespace, job.queue)
        shown = standing.shown(moment, "" if queue is None else queue.name)
        waits = standing.waits
        if self.queued:
            return There(shown, waits, {shown.key: _next_start(standing, several[at:])})
        starts = {
            f"{job.namespace}/{pod.name}": _next_binding(pod.number, several[at:]) for pod in shown.pods
        }
        return There(shown, waits, starts)


def _next_start(standing: Standing, later: Sequence[Told]) -> int | None:
    before = standing.started
    for told in later:
        standing.take(told)
        if standing.started and not before:
            return told.time
        before = standing.started
    return None


def _next_binding(pod: int, later: Sequence[Told]) -> int | None:
    return next((told.time for told in later if told.action == "bind" and told.pod == pod), None)


def record_of_run(run: Run, trace: Trace, cluster: Cluster, *, queued: bool) -> RecordOfRun:
    """Returns the record of a run's jobs.

    `run` has all of its tables. `queued` says whether the run's policy admits jobs by queues, as Kueue does.

    Raises:
        OptionError: the run used another cluster, or API objects can't represent its jobs.
        RunError: a table is damaged, or was not kept.
    """
    with reading(run.path):
        found = run.micros("jobs").with_row_index("row").collect()
        decisions = run.micros("decisions").filter(~pl.col("action").is_in(_SILENT)).collect()
        stints = run.micros("stints").select("job", "start", "state").collect()
    _check_cluster(run, decisions, cluster)
    if RAN_BEFORE in found.columns:
        raise OptionError(
            f"run {run.info['run']} began with jobs that are in the manifests but not in its trace",
            hint="replay it with --at-start empty",
        )
    trace = homed(trace, cluster)
    grace: int = run.info["settings"]["grace_period_us"]
    columns = JobColumns(trace, cluster, grace_period=grace)
    by_name = {job.id: job for chunk in Jobs(columns).chunks() for job, *_ in chunk}
    jobs = {row: by_name[name] for row, name in found.select("row", "job_id").iter_rows()}
    _check_jobs(run, decisions, cluster, jobs, queued=queued)
    return RecordOfRun(
        cluster,
        jobs,
        _spans(found, decisions, trace.origin),
        _told(decisions, trace.origin),
        _progress(stints, trace.origin),
        _until(run, found, trace.origin),
        queued,
    )


def _spans(jobs: pl.DataFrame, decisions: pl.DataFrame, origin: int) -> pl.DataFrame:
    """Returns the spans in which jobs were present. A job that is not over has no end."""
    last = decisions.filter(pl.col("action").is_in(("finish", "reject"))).group_by("job").agg(
        pl.col("time").max().alias("over")
    )  # fmt: skip
    joined = jobs.select(pl.col("row").cast(pl.Int32), "submit_time", "state").join(
        last, left_on="row", right_on="job", how="left", maintain_order="left"
    )
    over = pl.when(pl.col("state").is_in(_OVER)).then(pl.col("over") + origin)
    return joined.select("row", submit=pl.col("submit_time") + origin, over=over.fill_null(2**62)).sort(
        "submit", maintain_order=True
    )


def _told(decisions: pl.DataFrame, origin: int) -> pl.DataFrame:
    evicted = pl.when(pl.col("action") == "evict").then(pl.col("detail"))
    late = {
        name: evicted.str.json_path_match(f"$.{key}").cast(pl.Int64, strict=False)
        for name, key in (("time_outs", "count"), ("requeue_at", "requeueAt"))
    }
    return decisions.select(
        pl.col("job").alias("row"),
        pl.col("time") + origin,
        "action",
        "pod_number",
        pl.col("successor").fill_null(0),
        "pods",
        pl.col("holding").fill_null(0),
        "reason",
        "node",
        "flavors",
        late["time_outs"],
        late["requeue_at"].alias("requeue_at") * SECOND + origin,
    ).filter(pl.col("row").is_not_null())


def _progress(stints: pl.DataFrame, origin: int) -> dict[int, list[int]]:
    if stints.filter(pl.col("state") == "starting").is_empty():
        return {}
    begun = stints.filter(pl.col("state").is_in(_PROGRESS)).sort("job", "start", maintain_order=True)
    return grouped((job, start) for job, start in begun.select("job", pl.col("start") + origin).iter_rows())


def _until(run: Run, jobs: pl.DataFrame, origin: int) -> int | None:
    waits = jobs.filter(pl.col("start_time").is_null() & (pl.col("state") == "pending"))
    return None if waits.is_empty() else run.window.end + origin


def _check_cluster(run: Run, decisions: pl.DataFrame, cluster: Cluster) -> None:
    nodes = set(decisions["node"].drop_nulls().unique())
    unknown = sorted(nodes - cluster.nodes.keys())
    if unknown:
        what = f"bound pods to nodes that the cluster does not have, such as {unknown[0]}"
    elif cluster.nodes and not run.info["cluster"]["nodes"]:
        what = "was on a cluster without nodes, but this cluster has nodes"
    else:
        return
    raise OptionError(
        f"run {run.info['run']} {what}", hint="give the cluster that was replayed: --cluster FILE"
    )


def _check_jobs(
    run: Run, decisions: pl.DataFrame, cluster: Cluster, jobs: Mapping[int, Job], *, queued: bool
) -> None:
    """Raises an error unless Workloads and Pods can represent everything that decisions depend on."""
    why = ""
    if queued:
        admitted = decisions.filter(pl.col("action") == "admit").select("job", "pods").unique()
        several = (
            job.id for row, pods in admitted.iter_rows() if not counts_are_known(job := jobs[row], pods)
        )
        if first := min(several, default=""):
            why = f"it does not say how many pods each pod set of job {first} had when the job was admitted"
        elif any(each.topology for each in cluster.flavors.values()):
            why = "it does not contain the topology domains of admitted workloads"
    elif gang := min((job.id for job in jobs.values() if job.gang and job.pods > 1), default=""):
        why = f"job {gang} is a gang, but Pods cannot show that they form a gang"
    elif cluster.elastic_quotas and any(job.queue != job.namespace for job in jobs.values()):
        why = "some jobs use an elastic quota whose name is not their namespace, which Pods cannot show"
    if why:
        raise OptionError(
            f"run {run.info['run']} cannot be turned into objects of an API server: {why}",
            hint="a backtest needs a run of a Kueue plugin without topologies, or a run of single pods",
        )
