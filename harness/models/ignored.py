"""Warns about manifest fields that policies ignore. The messages are the same for all policies."""

from __future__ import annotations

from collections.abc import Iterator

from harness.models.cluster import Cluster, GroupReference


def ignored_groups(cluster: Cluster, how: str) -> Iterator[str]:
    """Warns that the policy ignores PodGroup manifests, because it places pods in a different way."""
    if cluster.pod_groups:
        first = "/".join(next(iter(cluster.pod_groups)))
        more = f" and {len(cluster.pod_groups) - 1:,} more" if len(cluster.pod_groups) > 1 else ""
        yield f"PodGroup {first}{more}: spec.minMember has no effect: {how}"


def ignored_scheduling_groups(cluster: Cluster) -> Iterator[str]:
    """Warns that the policy ignores kube-scheduler's own pod groups, as if gang scheduling were off."""
    groups = cluster.scheduling_groups
    if groups:
        namespace, workload, name = next(iter(groups))
        first = GroupReference(name, workload).text(namespace)
        more = f" and {len(groups) - 1:,} more" if len(groups) > 1 else ""
        yield (
            f"{first}{more}: minCount has no effect, because kube-scheduler's own gangs are off. "
            "To approximate them, use the plugin default-preemption with the option gangScheduling=true"
        )


def stopped_queues(cluster: Cluster) -> Iterator[str]:
    """Warns that policies that use only quotas ignore the stop policies of queues."""
    stopped = {f"ClusterQueue {name}": queue.stop_policy for name, queue in cluster.cluster_queues.items()}
    stopped |= {
        f"LocalQueue {'/'.join(name)}": each.stop_policy for name, each in cluster.local_queues.items()
    }
    for name, policy in stopped.items():
        if policy != "None":
            yield f"{name}: spec.stopPolicy {policy} has no effect: quotas alone decide which jobs start"
