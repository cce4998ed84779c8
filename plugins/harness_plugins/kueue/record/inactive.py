"""Describes why the queues of a job are inactive."""

from __future__ import annotations

from harness.models.cluster import Cluster
from harness.policy import Job
from harness_plugins.kueue.state.cluster_queue import inactive_reason


def why_inactive(cluster: Cluster, queue: str, job: Job) -> str:
    """Returns the reason why a job's LocalQueue or ClusterQueue is inactive, or "" if both are active."""
    local, spec = cluster.local_queues.get((job.namespace, job.queue)), cluster.cluster_queues.get(queue)
    if local is not None and local.stop_policy != "None":
        name = f"LocalQueue {job.namespace}/{job.queue}"
        policy = f"its stopPolicy is {local.stop_policy}"
        return f"{name} is inactive: {'its deletion has begun' if local.deleted else policy}"
    why = "it was deleted" if spec is None else inactive_reason(spec, cluster.flavors)
    return f"ClusterQueue {queue} is inactive: {why}" if why else ""
