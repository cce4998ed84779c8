"""Lists the Workloads, Pods and PodDisruptionBudgets of a cluster, for `harness cluster check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.base.grouping import summed

if TYPE_CHECKING:
    from harness.cluster.kinds.disruption import Share
    from harness.cluster.kinds.pods import Pod
    from harness.cluster.kinds.workloads import Workload
    from harness.cluster.model import Cluster

_HOLDS, _WAITS, _RUNS = "holds quota", "waits", "runs"
_WORKLOADS = (_HOLDS, _WAITS, "deactivated", "finished")
_PODS = (_RUNS, _WAITS, "terminating", "on an unknown node")


def work_of(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    """Returns every Workload, Pod and PodDisruptionBudget, as JSON values."""
    return {
        "workloads": [
            {
                "namespace": each.namespace,
                "name": each.name,
                "queue": each.queue,
                "cluster_queue": _cluster_queue(cluster, each),
                "state": _state(each),
                "priority": each.priority,
                "pods": sum(pod_set.count for pod_set in each.pod_sets),
                "requests": _total((pod_set.requests, pod_set.count) for pod_set in each.pod_sets),
            }
            for each in cluster.workloads
        ],
        "pods": [
            {
                "namespace": each.namespace,
                "name": each.name,
                "node": each.node,
                "state": _pod_state(cluster, each),
                "priority": each.priority,
                "requests": _total([(each.spec.requests, 1)]),
            }
            for each in cluster.pods
        ],
        "disruption_budgets": [
            {
                "namespace": each.namespace,
                "name": each.name,
                "min_available": _share(each.min_available),
                "max_unavailable": _share(each.max_unavailable),
                "pods": sum(each.matches(pod.namespace, pod.labels) for pod in cluster.pods),
            }
            for each in cluster.disruption_budgets
        ],
    }


def work_tables(content: Mapping[str, Any]) -> list[tuple[Sequence[str], list[tuple[str, ...]]]]:
    """Returns tables of Workloads by ClusterQueue, of Pods by namespace, and of disruption budgets."""
    workloads = [(each["cluster_queue"], each["state"]) for each in content["workloads"]]
    pods = [(each["namespace"], each["state"]) for each in content["pods"]]
    budgets: list[tuple[str, ...]] = [
        (
            f"{each['namespace']}/{each['name']}",
            str(each["min_available"] or ""),
            str(each["max_unavailable"] or ""),
            f"{each['pods']:,}",
        )
        for each in content["disruption_budgets"]
    ]
    return [
        (("Workloads of queue", *_WORKLOADS), _counted(workloads, _WORKLOADS)),
        (("Pods of namespace", *_PODS), _counted(pods, _PODS)),
        (("PodDisruptionBudget", "minAvailable", "maxUnavailable", "pods"), budgets),
    ]


def _counted(several: Sequence[tuple[str, str]], states: Sequence[str]) -> list[tuple[str, ...]]:
    count = Counter(several)
    owners = dict.fromkeys(owner for owner, _ in several)
    return [(owner, *(f"{count[owner, state]:,}" for state in states)) for owner in owners]


def _state(workload: Workload) -> str:
    if workload.finished:
        return "finished"
    if not workload.active:
        return "deactivated"
    return _HOLDS if workload.holds_quota else _WAITS


def _cluster_queue(cluster: Cluster, workload: Workload) -> str:
    """Returns the ClusterQueue whose quota a Workload holds, or that of its LocalQueue, or "" if unknown."""
    if workload.admission is not None:
        return workload.admission.cluster_queue
    found = cluster.queue_of_object(workload.namespace, workload.queue)
    return found.name if found is not None else ""


def _pod_state(cluster: Cluster, pod: Pod) -> str:
    if pod.terminating:
        return "terminating"
    if not pod.node:
        return _WAITS
    return _RUNS if pod.node in cluster.nodes else "on an unknown node"


def _total(parts: Iterable[tuple[Mapping[str, int], int]]) -> dict[str, int]:
    found = summed((name, amount * count) for requests, count in parts for name, amount in requests.items())
    return {resource: amount for resource, amount in sorted(found.items()) if amount}


def _share(share: Share | None) -> int | str | None:
    return None if share is None else f"{share.value}%" if share.percent else share.value
