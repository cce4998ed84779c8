"""Finds the reason why a ClusterQueue or a LocalQueue admits no workloads."""

from __future__ import annotations

from harness.models.cluster import Cluster
from harness.policy import Job


def why_inactive(cluster: Cluster, queue: str, job: Job) -> str:
    """Returns the reason why a job's LocalQueue or ClusterQueue is inactive, or "" if both are active."""
    local, spec = cluster.local_queues.get((job.namespace, job.queue)), cluster.cluster_queues.get(queue)
    if local is not None and local.stop_policy != "None":
        name = f"LocalQueue {job.namespace}/{job.queue}"
        return f"{name} is inactive: its stopPolicy is {local.stop_policy}"
    if spec is None:
        return f"ClusterQueue {queue} is inactive: it was deleted"
    if spec.stop_policy != "None":
        return f"ClusterQueue {queue} is inactive: its stopPolicy is {spec.stop_policy}"
    for quotas in (quotas for group in spec.resource_groups for quotas in group.flavors):
        if quotas.flavor not in cluster.flavors:
            return f"ClusterQueue {queue} is inactive: there is no ResourceFlavor {quotas.flavor}"
    return ""
