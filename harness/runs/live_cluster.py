"""Checks the dump of a live cluster, and chooses its scheduler."""

from __future__ import annotations

from harness.base.errors import InputError
from harness.base.text import counted
from harness.cluster.kinds.elastic import ACK, semantics_of
from harness.cluster.kinds.queues_missing import REMEDY, without_queues
from harness.cluster.model import Cluster
from harness.runs.inputs import default_plugin


def require_queues(cluster: Cluster) -> None:
    """Raises an error if Kueue's Workloads have no queues.

    Raises:
        InputError: the cluster has Workloads of Kueue, but no ClusterQueue.
    """
    lost = without_queues(cluster.workloads, cluster.cluster_queues)
    if lost:
        raise InputError(
            f"{cluster.source or 'the cluster'}: holds {counted(len(lost), 'Workload')} of Kueue that "
            f"{'has' if len(lost) == 1 else 'have'} not ended, and no ClusterQueue for them",
            hint=REMEDY,
        )


def scheduler_of(cluster: Cluster) -> str:
    """Returns the plugin for a live cluster, which is Kueue's if there are ClusterQueues.

    Kueue's Configuration determines whether fair sharing is on. Without ClusterQueues, elastic quotas decide,
    and ACK's preemption adapts to pods without a quota by default. Without any quotas, the plugin is
    kube-scheduler's. A KubeSchedulerConfiguration can name any plugin.
    """
    if cluster.scheduler is not None:
        return default_plugin(cluster)
    if cluster.cluster_queues:
        fair = cluster.kueue is not None and cluster.kueue.strategies is not None
        return "fairsharing" if fair else "kueue-classic"
    if cluster.elastic_quotas:
        return "auto" if semantics_of(cluster.elastic_quotas) == ACK else "elasticquota"
    return "default-preemption"
