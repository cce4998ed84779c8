"""Lists objects whose capacity may differ from the manifests: queues, groups of nodes, or the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.analysis.metrics.levels import holder_of_jobs
from harness.analysis.validation.load import Amounts, Held, Waited
from harness.base.grouping import summed
from harness.runs.run import Run
from harness.trace.schema import entries

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

QUEUE, NODES, WHOLE = "queue", "nodes", "whole"

UNLIMITED = 1 << 62
"""The amount that stands for no limit."""


class Object(NamedTuple):
    """An object with a capacity. Its jobs cannot use any other object instead.

    Attributes:
        kind: `queue` (a queue without a cohort), `nodes` or `whole`.
        name: a ClusterQueue, the labels by which jobs select nodes, or a cohort. It is "" for the cluster.
        limits: the capacity of each resource.
        queues: the queues whose quotas form the object, with their guaranteed amounts.
        nodes: the nodes that form the object, with their amounts. It is empty for quotas.
    """

    kind: str
    name: str
    limits: Mapping[str, int]
    queues: Mapping[str, Mapping[str, int]]
    nodes: Mapping[str, Mapping[str, int]] = MappingProxyType({})


class Objects(NamedTuple):
    """The objects of a cluster, and the objects that each job uses.

    Attributes:
        of_job: for each job, the indices of its objects in `several`.
        queue_of: the ClusterQueue of each job, or "".
    """

    several: Sequence[Object]
    of_job: Mapping[str, tuple[int, ...]]
    queue_of: Mapping[str, str]


def told(kind: str, name: str) -> str:
    """Returns the name of an object for use in sentences, such as `ClusterQueue prod`."""
    if kind == QUEUE:
        return f"ClusterQueue {name}"
    if kind == NODES:
        return f"nodes with {name}" if name else "the nodes"
    return f"cohort {name}" if name else "the cluster"


def objects_of(trace: Trace, cluster: Cluster, run: Run) -> Objects:
    """Returns the cohort trees and the groups of nodes that jobs select, or else the whole cluster."""
    names = run.micros("jobs").select("job_id").collect()["job_id"].to_list()
    queues: Mapping[str, Any] = run.info["cluster"]["queues"]
    cohorts: Mapping[str, Any] = run.info["cluster"]["cohorts"]
    holders = holder_of_jobs(run).cast(pl.String).to_list()
    queue_of = {job: name if name in queues else "" for job, name in zip(names, holders, strict=True)}
    several: list[Object] = []
    place_of: dict[str, int] = {}
    for root, inside in _trees(queues, cohorts).items():
        limits = dict(cohorts.get(root, {}).get("nominal", {})) if root else {}
        for name in inside:
            for resource, amount in queues[name]["nominal"].items():
                limits[resource] = limits.get(resource, 0) + amount
        alone = len(inside) == 1
        place_of |= dict.fromkeys(inside, len(several))
        guaranteed = {name: queues[name]["nominal"] for name in inside}
        several.append(Object(QUEUE if alone else WHOLE, inside[0] if alone else root, limits, guaranteed))
    nodes = {node.name: node.allocatable for node in cluster.nodes.values()}
    if any(not queue for queue in queue_of.values()) or not several:
        place_of[""] = len(several)
        several.append(Object(WHOLE, "", run.capacity, {}, nodes))
    of_job: dict[str, tuple[int, ...]] = {job: (place_of[queue],) for job, queue in queue_of.items()}
    groups = list(_groups_of_nodes(trace, cluster))
    if nodes and not groups and "" not in place_of:
        quotas = [limits_of(each.limits, tuple(run.capacity)) for each in several]
        usable = map(min, run.capacity.values(), map(sum, zip(*quotas, strict=True)))
        limits = dict(zip(run.capacity, usable, strict=True))
        groups = [(Object(NODES, "", limits, {}, nodes), frozenset(names))]
    for group, jobs in groups:
        of_job |= {job: (*of_job[job], len(several)) for job in jobs if job in of_job}
        several.append(group)
    return Objects(several, of_job, queue_of)


def _trees(queues: Mapping[str, Any], cohorts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Maps the top cohort of each tree to its queues. A queue without a cohort is a tree of its own name."""
    trees: dict[str, list[str]] = {}
    for name, queue in queues.items():
        root, seen = queue["cohort"], set()
        while root and (above := cohorts.get(root, {}).get("cohort", "")) and root not in seen:
            seen.add(root)
            root = above
        trees.setdefault(root or f"/{name}", []).append(name)
    return {root.removeprefix("/") if len(inside) == 1 else root: inside for root, inside in trees.items()}


def _groups_of_nodes(trace: Trace, cluster: Cluster) -> Iterator[tuple[Object, frozenset[str]]]:
    """Yields the groups of nodes that jobs select by labels, if every job selects nodes."""
    if not cluster.nodes or "node_selector" not in trace.frame.columns:
        return
    chosen: dict[tuple[tuple[str, str | None], ...], set[str]] = {}
    for job, selector in trace.frame.select("job_id", "node_selector").iter_rows():
        chosen.setdefault(entries(selector), set()).add(job)
    if () in chosen:
        return
    used: set[str] = set()
    for labels, jobs in sorted(chosen.items()):
        inside = [
            node
            for node in cluster.nodes.values()
            if all(node.labels.get(key) == value for key, value in labels)
        ]
        if used & {node.name for node in inside} or len(inside) in (0, len(cluster.nodes)):
            return
        used |= {node.name for node in inside}
        limits = summed(each for node in inside for each in node.allocatable.items())
        name = ", ".join(f"{key}={value}" for key, value in labels)
        yield (
            Object(NODES, name, limits, {}, {node.name: node.allocatable for node in inside}),
            frozenset(jobs),
        )


class Use(NamedTuple):
    """The amounts that each job of a run held and waited for, in the order of the resources.

    Attributes:
        held: the spans in which a job held something.
        waited: the span in which a job waited for its first start.
        unit: an amount of each resource that divides the request of every pod.
    """

    held: Mapping[str, Sequence[Held]]
    waited: Mapping[str, Waited]
    unit: Amounts


def use_of(run: Run, resources: tuple[str, ...]) -> Use:
    """Reads what jobs of a run held and waited for. In a record, only jobs that started count as waiting."""
    amounts = [f"request.{name}" for name in resources]
    frame = run.micros("jobs")
    jobs = frame.select("job_id", "submit_time", "start_time", "state", *amounts).collect()
    names = jobs["job_id"].to_list()
    waited = {
        name: Waited(submit, run.window.end if start is None else start, tuple(asked))
        for name, submit, start, state, *asked in jobs.iter_rows()
        if state != "rejected" and (start is not None or not run.is_record)
    }
    held: dict[str, list[Held]] = {}
    stints = run.micros("stints").select("job", "start", "end", *amounts).collect()
    for job, start, end, *given in stints.iter_rows():
        held.setdefault(names[job], []).append(Held(start, end, tuple(given)))
    return Use(held, waited, _unit(frame, amounts))


def _unit(jobs: pl.LazyFrame, amounts: Sequence[str]) -> Amounts:
    """Returns an amount of each resource that divides every pod's request. 1 if pods of a job may differ."""
    if "pod_sets" in jobs.collect_schema():
        return (1,) * len(amounts)
    each = jobs.select("pods", *amounts).unique().collect()
    return tuple(
        gcd(
            *(
                amount // pods if amount % pods == 0 else 1
                for pods, amount in each.select("pods", name).iter_rows()
            )
        )
        for name in amounts
    )


def limits_of(limits: Mapping[str, int], resources: tuple[str, ...]) -> Amounts:
    """Returns the limit of each resource, in the order of `resources`."""
    return tuple(limits.get(name, UNLIMITED) for name in resources)
