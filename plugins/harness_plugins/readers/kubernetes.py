"""Reads what a live cluster answers to `kubectl get ...`, in YAML or JSON: Kueue's Workloads, Jobs, and Pods.

A cluster knows only what it has not yet deleted, and how long a job runs only once it has ended: what still
runs or waits is left out, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.errors import Fault, TraceError
from harness.models.manifests import read_documents, unpacked
from harness.policy import PodSet
from harness.readers.names import label_maps
from harness.readers.schema import LIMIT, REQUEST
from harness.readers.source import stop_at_many, text_of, trace_error
from harness_plugins.readers.kubernetes_objects import QUEUE_LABEL, READERS, SPANS, Recorded
from harness_plugins.readers.pod_runs import BEST_FIRST, Listed, PodRuns

METADATA = {"harness.source": "objects of a Kubernetes cluster, printed by kubectl get"}
_NO_JOB = ("DaemonSet", "Node")
"""Owners of pods that a scheduler does not place as work."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One object of the answer."""

    kind: tuple[str, str]
    where: str
    manifest: Mapping[str, Any]

    @property
    def uid(self) -> str:
        metadata = self.manifest.get("metadata")
        return str(metadata.get("uid") or "") if isinstance(metadata, Mapping) else ""

    @property
    def owners(self) -> Iterator[tuple[str, str]]:
        """Kind and uid of what it was made for."""
        metadata = self.manifest.get("metadata")
        owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
        for owner in owners if isinstance(owners, list) else []:
            if isinstance(owner, Mapping):
                yield str(owner.get("kind") or ""), str(owner.get("uid") or "")


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a list of objects; a Workload stands for the Job it was made for, and a Job for its Pods.

    Raises:
        TraceError: no answer of a cluster, or objects that are malformed, all of them named.
    """
    items = _items(path)
    stands_for = {uid for item in items if item.kind[1] == "Workload" for _, uid in item.owners if uid}
    jobs_listed = {item.uid for item in items if item.kind[1] == "Job"} - {""}
    left_out: Counter[str] = Counter()
    faults: list[Fault] = []
    found: list[tuple[_Item, Recorded]] = []
    listed: list[Listed] = []
    for item in items:
        reason = _no_job(item, stands_for, jobs_listed)
        if item.kind in SPANS:
            listed.append(_listed(item, faults))
        if reason:
            left_out[reason] += 1
        else:
            found.append((item, READERS[item.kind](item.manifest, item.where, faults)))
        stop_at_many(path, faults)
    if faults:
        raise TraceError(str(path), list(dict.fromkeys(faults)))
    runs = PodRuns(listed)
    jobs: list[Recorded] = []
    begins: Counter[str] = Counter()
    for item, told in found:
        owners = [uid for _, uid in item.owners] if item.kind[1] == "Workload" else [item.uid]
        job, how = runs.began(told, owners)
        reason = _without_times(job)
        if reason:
            left_out[reason] += 1
        else:
            jobs.append(job)
            begins[how] += 1
    if not jobs:
        counts = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise TraceError(str(path), [Fault("", f"holds no job that has ended ({counts or 'no objects'})")])
    return Reading(_frame(jobs, options), len(items), dict(left_out), _notes(jobs, begins, options), METADATA)


def _listed(item: _Item, faults: list[Fault]) -> Listed:
    """What a Job or Pod says of when pods ran, whatever it belongs to."""
    status = item.manifest.get("status")
    failed = isinstance(status, Mapping) and status.get("phase") == "Failed"
    owners = [uid for _, uid in item.owners if uid]
    span = SPANS[item.kind](item.manifest, item.where, faults)
    return Listed(item.uid, owners, item.kind[1] == "Pod", failed, *span)


def _items(path: Path) -> list[_Item]:
    """The objects of a file: YAML or JSON, one or several documents, each an object or a list of them."""
    text = text_of(path)
    faults: list[Fault] = []
    items: list[_Item] = []
    documents, _ = read_documents(text, faults)
    for document in documents:
        for found in unpacked(document, faults):
            stop_at_many(path, faults)
            manifest = found.content
            api, kind = manifest.get("apiVersion"), manifest.get("kind")
            if isinstance(api, str) and isinstance(kind, str):
                where = f"{found.where} ({kind})"
                items.append(_Item((api.rpartition("/")[0], kind), where, manifest))
            else:
                faults.append(
                    Fault(found.where, "is no object of Kubernetes: it has no apiVersion or no kind")
                )
    if faults:
        raise trace_error(path, faults, "")
    return items


def _no_job(item: _Item, stands_for: set[str], jobs_listed: set[str]) -> str:
    """Why an object is no job of its own; empty if it is one."""
    if item.kind not in READERS:
        return f"of kind {item.kind[1]}, which is no Workload, Job or Pod"
    if item.uid in stands_for:
        return "that have a Workload in the list"
    for kind, uid in item.owners if item.kind[1] != "Workload" else ():
        if uid in jobs_listed or uid in stands_for:
            return "that belong to a Job or Workload in the list"
        if kind in _NO_JOB:
            return f"of a {kind}, which every node has"
    return ""


def _without_times(job: Recorded) -> str:
    if not job.pod_sets:
        return "that ask for no pods"
    if job.submit is None:
        return "without creationTimestamp"
    if job.start is None:
        return "that never started, as far as the cluster knows"
    if job.end is None:
        return "that have not ended: how long they run is not known"
    if job.end < job.start:
        return "that ended before they started"
    return ""


def _frame(jobs: Sequence[Recorded], options: Mapping[str, Any]) -> pl.DataFrame:
    """One row a pod set."""
    rows = [(job, pod_set) for job in jobs for pod_set in job.pod_sets]
    pods = [pod_set for _, pod_set in rows]
    zoned = pl.Datetime("us", "UTC")

    def of_job(name: str, dtype: Any, *, column: str = "") -> pl.Series:
        values = [getattr(job, name) for job, _ in rows]
        return pl.Series(column or name, [None if value == "" else value for value in values], dtype=dtype)

    columns = [
        pl.Series("job_id", [job.name for job, _ in rows]),
        of_job("submit", pl.Int64, column="submit_time").cast(zoned),
        pl.Series("duration", [_run(job, options) for job, _ in rows], dtype=pl.Duration("us")),
        of_job("queue", pl.String),
        *_amounts(REQUEST, [pod_set.requests for pod_set in pods]),
        *_amounts(LIMIT, [pod_set.limits for pod_set in pods]),
        pl.Series("pods", [pod_set.count for pod_set in pods], dtype=pl.Int32),
        pl.Series("min_pods", [pod_set.min_count for pod_set in pods], dtype=pl.Int32),
        of_job("gang", pl.Boolean),
        of_job("priority", pl.Int32)
        if options["priority"] == "number"
        else of_job("priority_class", pl.String),
        of_job("preemption_policy", pl.String),
        of_job("namespace", pl.String),
        pl.Series("pod_set", [pod_set.name for pod_set in pods]),
        of_job("grace_period", pl.Duration("us")),
        label_maps("labels", [pod_set.labels for pod_set in pods]),
        label_maps("node_selector", [pod_set.node_selector for pod_set in pods]),
        *(_texts(name, pods) for name in ("tolerations", "affinity", "pod_template")),
        of_job("uid", pl.String),
        of_job("start", pl.Int64, column="recorded_start").cast(zoned),
        of_job("end", pl.Int64, column="recorded_end").cast(zoned),
        of_job("evictions", pl.Int64),
    ]
    return pl.DataFrame([column for column in columns if column.null_count() < len(rows)])


def _run(job: Recorded, options: Mapping[str, Any]) -> int:
    assert job.start is not None
    assert job.end is not None
    run = job.end - job.start if job.run is None else job.run
    return run + (job.past if options["attempts"] == "total" else 0)


def _texts(name: str, pods: Iterable[PodSet]) -> pl.Series:
    return pl.Series(name, [getattr(pod_set, name) for pod_set in pods], dtype=pl.String)


def _amounts(prefix: str, tables: Sequence[Mapping[str, int]]) -> list[pl.Series]:
    resources = sorted({resource for table in tables for resource in table})
    return [
        pl.Series(f"{prefix}{resource}", [table.get(resource) for table in tables], dtype=pl.Int128)
        for resource in resources
    ]


def _notes(
    jobs: Sequence[Recorded], begins: Mapping[str, int], options: Mapping[str, Any]
) -> tuple[str, ...]:
    which = "the number that the cluster resolved" if options["priority"] == "number" else "the class's name"
    evicted = sum(bool(job.evictions or job.past) for job in jobs)
    how = "; ".join(f"{word} ({begins[word]:,} jobs)" for word in BEST_FIRST if begins.get(word))
    before = "and as long as it ran before that" if options["attempts"] == "total" else "and not before that"
    return (
        "what the cluster had deleted already is not in the list, and nobody knows how much that is",
        f"a job runs from when its pods last ran to its end, {before} ({evicted:,} jobs had been evicted)",
        f"its pods are taken to run since {how}",
        f"the queue is the LocalQueue (the label {QUEUE_LABEL}), else the namespace",
        f"priority is {which}",
        "times are whole seconds, as Kubernetes keeps them",
    )
