"""The input of a checker, which consists of the rows of a run's tables and of the jobs in the trace."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl
import polars.selectors as cs

from harness.base.errors import InputError
from harness.base.grouping import grouped, summed
from harness.base.json_text import parse_json
from harness.base.tables.schemas import TIMELINE_QUEUE
from harness.cluster.changes.edits import at_arrival, by_arrival, ever
from harness.cluster.changes.over_time import unrolled
from harness.cluster.kinds.pod_groups import Membership, membership_of
from harness.cluster.kinds.selectors import Toleration
from harness.cluster.model import Cluster, Node
from harness.engine.events import NEVER
from harness.engine.losses import Losses, parse_losses
from harness.models.kube.drains import EVICTED_BY_API
from harness.models.kube.taint_evictions import DELETED_BY_TAINT
from harness.policy import ENDLESS, LOST_WITH_NODE
from harness.runs.run import Run
from harness.trace.schema import DEFAULT_POD_SET, REQUEST, STARTUP, entries
from harness.trace.trace import Trace

Row = Mapping[str, Any]


_OF_NODES = (LOST_WITH_NODE, DELETED_BY_TAINT, EVICTED_BY_API, "TerminatedByKueue")
"""The reasons for evictions that affect only the pods on a changed node."""

_BEFORE_CHANGES = frozenset(("finish", "gone", "requeue", "start"))
"""Completions, departures, returns and timed starts precede changes of the cluster at the same time."""


def by_node(row: Row) -> bool:
    """Returns True if pods are evicted because their node changed, which all preemption policies allow."""
    return row["action"] == "evict" and row["reason"] in _OF_NODES


class Broken(NamedTuple):
    """A violation of a rule.

    Attributes:
        rule: the name of the rule, such as `capacity.node`.
        where: the decision, the job or the row of a table.
    """

    rule: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.what}"


@dataclass(frozen=True)
class Part:
    """A pod set. `first` is the number of its first pod, and `requests` are the requests of one pod."""

    name: str
    first: int
    count: int
    least: int
    requests: Mapping[str, int]
    selector: Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Asked:
    """A job according to the trace, with times in microseconds.

    Attributes:
        number: the job's row in `jobs.parquet`.
        queue, namespace: the queue and the namespace in the trace.
        tenant: the name of the job's queue in the timeline.
        quota: the ClusterQueue or ElasticQuota of the queue, or None.
        submit: the time of arrival, which is from `jobs.parquet` if arrivals were scaled.
        interval: the job's own checkpoint interval, or None.
        startup: how long its pods take to become ready; `ENDLESS` for never.
    """

    number: int
    name: str
    queue: str
    namespace: str
    tenant: str
    quota: str | None
    submit: int
    duration: int
    priority: int
    preempts: bool
    gang: bool
    grace: int
    interval: int | None
    startup: int
    pods: int
    parts: tuple[Part, ...]

    def part_of(self, pod: int) -> Part:
        """Returns the pod set of a pod."""
        return next(part for part in self.parts if part.first <= pod < part.first + part.count)

    def amounts(self, pods: Iterable[int]) -> dict[str, int]:
        """Returns the total request of these pods for each resource."""
        return summed(amount for pod in pods for amount in self.part_of(pod).requests.items())


class Facts:
    """A run with its trace and its cluster.

    Attributes:
        cluster: the cluster at the beginning, and later at the time of the current decision.
        ever: the cluster with all objects that exist at any time.
        jobs: maps names to jobs, for the jobs that arrived, in the order of `jobs.parquet`.
        missing: names in `jobs.parquet` that are not in the trace.
        table: the rows of `jobs.parquet`, with times in microseconds since the origin.
        decisions: the rows of `decisions.parquet`, with times in microseconds since the origin.
        removed: maps a time to the nodes that are removed at this time.

    Raises:
        InputError: the run was not made from this cluster and trace, or it began with work that already ran.
    """

    def __init__(self, run: Run, cluster: Cluster, trace: Trace) -> None:
        info = run.info
        begins = (trace.origin, 0) if trace.kind == "timestamp" else (None, trace.origin)
        cluster = unrolled(cluster, *begins)
        if info["cluster"]["sha256"] != cluster.digest or info["trace"]["sha256"] != trace.sha256:
            raise InputError(f"{run!r} was not made from this cluster and trace")
        if "events" not in info["cluster"]:  # or the changes were ignored
            cluster = replace(cluster, changes=())
        if cluster.pods or cluster.workloads:
            raise InputError(
                "harness cannot check runs that begin with Pods or Workloads from the manifests",
                hint="leave these manifests out",
            )
        self.run, self.cluster, self.ever = run, cluster, ever(cluster)
        self._ahead = list(cluster.changes)
        self._classes = by_arrival(cluster)
        self.losses: Losses = parse_losses(info["settings"]["on_preemption"])
        self.on_nodes = bool(cluster.nodes) or cluster.nodes_change
        self._nodes: list[tuple[int, Mapping[str, Node]]] = [(NEVER, cluster.nodes)]
        self.removed: dict[int, set[str]] = {}
        for at, edits in cluster.changes:
            for edit in edits:
                if edit.kind == "Node":
                    cluster = edit.on(cluster)
                    if edit.after is None:
                        self.removed.setdefault(at, set()).add(edit.name)
            self._nodes.append((at, cluster.nodes))
        self.start, self.end = info["window"]
        self.table = run.micros("jobs").collect().to_dicts()
        self.decisions = run.micros("decisions").collect().to_dicts()
        said = _rows_by_job(trace)
        self.missing = [row["job_id"] for row in self.table if row["job_id"] not in said]
        self.jobs = {
            row["job_id"]: self._asked(number, row, said[row["job_id"]])
            for number, row in enumerate(self.table)
            if row["job_id"] in said
        }
        self._of_groups: dict[Membership, int] = {}  # group -> the priority of its most important job
        for job in self.jobs.values():
            for group in self._groups(job):
                self._of_groups[group] = max(job.priority, self._of_groups.get(group, job.priority))

    def changes_by(self, time: int, action: str = "") -> Iterator[int]:
        """Applies the changes of the cluster that precede a decision, and yields the time of each change.

        Completions, departures, returns and timed starts precede changes at the same time.

        `action` is the action of the decision, or "" for the end of the run.
        """
        while self._ahead and self._ahead[0].at + (action in _BEFORE_CHANGES) <= time:
            at, edits = self._ahead.pop(0)
            for edit in edits:
                self.cluster = edit.on(self.cluster)
            if edits:
                yield at

    def is_instant_of_change(self, time: int) -> bool:
        """Returns True if the cluster changes at this time."""
        return any(at == time for at, _ in self.ever.changes)

    def nodes_at(self, time: int) -> Mapping[str, Node]:
        """Returns the nodes after all changes at a given time."""
        return self._nodes[bisect_right(self._nodes, time, key=lambda each: each[0]) - 1][1]

    def importance(self, job: Asked) -> int:
        """Returns the highest priority of any job in the pod groups of a job's pods."""
        return max([job.priority, *(self._of_groups[group] for group in self._groups(job))])

    def mates(self, job: Asked) -> Iterator[Asked]:
        """Yields the jobs that share a pod group with a job, including the job itself."""
        groups = set(self._groups(job))
        return (each for each in self.jobs.values() if each is job or groups & set(self._groups(each)))

    def _groups(self, job: Asked) -> list[Membership]:
        groups = self.cluster.pod_groups
        found = (membership_of(job.namespace, part.labels, groups) for part in job.parts)
        return [group for group in found if group is not None]

    def _asked(self, number: int, row: Row, rows: list[Row]) -> Asked:
        first, quota_of = rows[0], self.run.info["cluster"]["quota_of"]
        parts: list[Part] = []
        for each in rows:
            before = parts[-1].first + parts[-1].count if parts else 0
            parts.append(_part(each, before))
        pods = parts[-1].first + parts[-1].count
        door = row["queue"] if row["queue"] in quota_of else f"{row['namespace']}/{row['queue']}"
        tenant = row.get(TIMELINE_QUEUE, door)
        scaled = self.run.info["settings"]["scale_arrivals"] != "1"
        submit = row["submit_time"] if scaled else first["submit_time"]
        gang, grace = first.get("gang"), first.get("grace_period")
        return Asked(
            number,
            row["job_id"],
            row["queue"],
            row["namespace"],
            tenant,
            quota_of.get(tenant),
            submit,
            first["duration"],
            row["priority"],
            self._preempts(first, submit),
            pods > 1 if gang is None else gang,
            self.run.info["settings"]["grace_period_us"] if grace is None else grace,
            first.get("checkpoint_interval"),
            self._startup(first),
            pods,
            tuple(parts),
        )

    def _startup(self, row: Row) -> int:
        if STARTUP not in row:
            return int(self.run.info["settings"].get("startup_us", 0))
        return ENDLESS if row[STARTUP] is None else int(row[STARTUP])

    def _preempts(self, row: Row, submit: int) -> bool:
        said = row.get("preemption_policy")
        if said is not None:
            return bool(said != "Never")
        classes = at_arrival(self._classes, submit)
        return (classes.priority_of(row.get("priority_class") or "") or classes.default_class).preempts


def _rows_by_job(trace: Trace) -> dict[str, list[Row]]:
    """Returns the rows of each job, with durations in microseconds."""
    frame = trace.frame.with_columns(
        (cs.duration() - cs.by_name("submit_time")).cast(pl.Int64),
        pl.col("submit_time").cast(pl.Int64) - trace.origin,
    )
    return grouped((row["job_id"], row) for row in frame.iter_rows(named=True))


def _part(row: Row, first: int) -> Part:
    count = row.get("pods") or 1
    tolerations = parse_json(row.get("tolerations") or "[]")
    requests = {name.removeprefix(REQUEST): row[name] or 0 for name in row if name.startswith(REQUEST)}
    return Part(
        row.get("pod_set") or DEFAULT_POD_SET,
        first,
        count,
        row.get("min_pods") or count,
        requests,
        {key: value or "" for key, value in entries(row.get("node_selector"))},
        tuple(Toleration(**each) for each in tolerations),
        {key: value or "" for key, value in entries(row.get("labels"))},
    )
