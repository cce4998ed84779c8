"""Functions that make single changes to a cluster or a job, and patches for these changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from harness.base.errors import InputError
from harness.base.units import format_amount
from harness.cluster.changes.difference_patch import difference_patch
from harness.cluster.model import UNLIMITED, Cluster, ClusterQueue, ResourceFlavor, ResourceQuota, frozen

if TYPE_CHECKING:
    from harness.cluster.kinds.pods import Pod
    from harness.cluster.kinds.workloads import Workload
    from harness.policy import PodSet

Amounts = Mapping[str, int]
_T = TypeVar("_T", "Workload", "Pod")


def workload_of(cluster: Cluster, name: str) -> Workload | None:
    """Returns the Workload of a job, or None if the job consists of Pods."""
    return next((each for each in cluster.workloads if each.key == name), None)


# --- the job ----------------------------------------------------------------------------------------------


def with_pod_sets(cluster: Cluster, names: Collection[str], change: Callable[[PodSet], PodSet]) -> Cluster:
    """Returns a cluster in which pod sets of some Workloads are changed."""

    def changed(each: Workload) -> Workload:
        return replace(each, pod_sets=tuple(map(change, each.pod_sets)))

    return replace(cluster, workloads=_with(cluster.workloads, names, changed))


def without_quota(cluster: Cluster, names: Collection[str]) -> Cluster:
    """Returns a cluster in which some Workloads hold no quota."""
    return replace(
        cluster, workloads=_with(cluster.workloads, names, lambda each: replace(each, admission=None))
    )


def with_count(pod_set: PodSet, count: int) -> PodSet:
    """Returns a pod set with this number of pods."""
    return replace(pod_set, count=count, min_count=min(count, pod_set.min_count))


def for_flavor(pod_set: PodSet, flavor: ResourceFlavor, among: frozenset[str]) -> PodSet:
    """Returns a pod set whose pods select the nodes of a flavor, and tolerate their taints.

    The pods select none of the labels in `among`, except those of `flavor`.
    """
    selector = {key: value for key, value in pod_set.node_selector.items() if key not in among}
    selector |= {key: value for key, value in flavor.node_labels.items() if key in pod_set.node_selector}
    tolerations = json.loads(pod_set.tolerations) if pod_set.tolerations else []
    for taint in flavor.taints:
        wanted = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if not any(_tolerates(each, wanted) for each in tolerations):
            tolerations.append(wanted)
    text = json.dumps(tolerations, sort_keys=True) if tolerations else None
    return replace(pod_set, node_selector=frozen(selector), tolerations=text)


def _tolerates(toleration: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(toleration.get(name) == value for name, value in wanted.items())


def with_priority(cluster: Cluster, names: Collection[str], value: int, class_name: str) -> Cluster:
    """Returns a cluster in which a job has another priority."""

    def changed(each: _T) -> _T:
        return replace(each, priority=value, priority_class=class_name)

    workloads, pods = _with(cluster.workloads, names, changed), _with(cluster.pods, names, changed)
    return replace(cluster, workloads=workloads, pods=pods)


def _with(several: Iterable[_T], names: Collection[str], change: Callable[[_T], _T]) -> tuple[_T, ...]:
    """Returns objects after a change to those with the given keys."""
    last = {name.rpartition("/")[2] for name in names}  # compared first, because a key is put together
    return tuple([change(each) if each.name in last and each.key in names else each for each in several])


# --- the queue --------------------------------------------------------------------------------------------


def with_queue(cluster: Cluster, queue: ClusterQueue) -> Cluster:
    """Returns a cluster in which a ClusterQueue replaces the one with the same name."""
    queues = {**cluster.cluster_queues, queue.name: queue}
    return replace(cluster, cluster_queues=frozen(queues))


def with_quotas(
    queue: ClusterQueue, flavor: str, change: Callable[[str, ResourceQuota], ResourceQuota]
) -> ClusterQueue:
    """Returns a ClusterQueue in which the quotas of one flavor are changed."""

    def changed(of: str, resource: str, quota: ResourceQuota) -> ResourceQuota:
        return change(resource, quota) if of == flavor else quota

    groups = tuple(group.with_quotas(changed) for group in queue.resource_groups)
    return replace(queue, resource_groups=groups)


def more(amounts: Amounts, field: str = "nominal") -> Callable[[str, ResourceQuota], ResourceQuota]:
    """Returns a function that raises nominal quotas, or existing limits if `field` is `borrowing_limit`."""

    def raised(name: str, quota: ResourceQuota) -> ResourceQuota:
        now = getattr(quota, field)
        changed = {} if now is None else {field: min(UNLIMITED, now + amounts.get(name, 0))}
        return replace(quota, **changed)

    return raised


def quota_patch(before: ClusterQueue, after: ClusterQueue) -> Mapping[str, Any]:
    """Returns the differences between the quotas of two ClusterQueues, as a document for `--patch`."""
    groups = []
    for old, new in zip(before.resource_groups, after.resource_groups, strict=True):
        flavors = []
        for was, now in zip(old.flavors, new.flavors, strict=True):
            resources = [
                {"name": name, **_differing(name, was.resources[name], quota)}
                for name, quota in now.resources.items()
                if quota != was.resources[name]
            ]
            if resources:
                flavors.append({"name": now.flavor, "resources": resources})
        if flavors:
            groups.append({"coveredResources": list(new.covered_resources), "flavors": flavors})
    return queue_patch(after.name, {"resourceGroups": groups})


def _differing(resource: str, before: ResourceQuota, after: ResourceQuota) -> dict[str, Any]:
    fields = {
        "nominalQuota": (before.nominal, after.nominal),
        "borrowingLimit": (before.borrowing_limit, after.borrowing_limit),
    }
    return {
        name: None if now is None else format_amount(resource, now)
        for name, (was, now) in fields.items()
        if was != now
    }


def queue_patch(name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a document for `--patch` that sets fields of a ClusterQueue."""
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": dict(spec)}


def with_elastic(cluster: Cluster, name: str, field: str, resource: str, amount: int) -> Cluster:
    """Returns a cluster in which an elastic quota has a larger `min` or `max` of one resource."""
    quota = cluster.elastic_quotas[name]
    table = getattr(quota, field)
    raised = frozen({**table, resource: min(UNLIMITED, table[resource] + amount)})
    changed = replace(quota, min=raised) if field == "min" else replace(quota, max=raised)
    return replace(cluster, elastic_quotas=frozen({**cluster.elastic_quotas, name: changed}))


OF_THE_CLUSTER = (with_queue, with_elastic)
"""The functions that change only the cluster, and no job."""


def elastic_patch(
    cluster: Cluster, name: str, field: str, resource: str, amount: int
) -> tuple[Mapping[str, Any], ...] | None:
    """Returns a patch that increases `min` or `max` of an elastic quota, or None if this is forbidden.

    For example, a quota must not guarantee more than its parent quota. If quotas change over time, the patch
    has no documents.
    """
    if cluster.timed:
        return ()
    now = getattr(cluster.elastic_quotas[name], field)[resource]
    path = f"ElasticQuota/{name}.{field}[{resource}]"
    try:
        raised = cluster.with_values({path: format_amount(resource, now + amount)})
    except InputError:
        return None
    return tuple(difference_patch(cluster, raised))
