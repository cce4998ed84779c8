"""The policy for clusters with Kueue's ClusterQueues, which become Queues with their quotas as weights."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness import Cluster, Policy, PolicySpec, Possible, Register, View, hookimpl
from harness.models.manifests import Quota
from volcano_proportion import proportion, without_queue
from volcano_proportion.conversion import weights_of
from volcano_proportion.queue import KIND, Queue


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `volcano-of-cluster-queues`."""
    text = "volcano-proportion with a Queue for each ClusterQueue, weighted by its nominal quotas"
    register(
        PolicySpec("volcano-of-cluster-queues", of_cluster_queues, help=text, never=without_cluster_queue)
    )


def of_cluster_queues(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Make the policy; raise an `InputError` if the cluster has no nodes or no ClusterQueue."""
    return proportion(with_queues(cluster), view, options)


def without_cluster_queue(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Return a function that rejects jobs whose ClusterQueue does not exist."""
    return without_queue(with_queues(cluster), options)


def with_queues(cluster: Cluster) -> Cluster:
    """Return the cluster with a Queue for each ClusterQueue.

    For each resource, the nominal quota is divided by the sum of all quotas. The largest of these fractions
    is the weight of the Queue, in thousandths.
    """
    quotas: dict[str, Counter[str]] = {}
    for name, queue in cluster.cluster_queues.items():
        quotas[name] = Counter()
        for flavor in (each for group in queue.resource_groups for each in group.flavors):
            quotas[name].update({resource: quota.nominal for resource, quota in flavor.resources.items()})
    weights = weights_of({name: Quota(found) for name, found in quotas.items()})
    queues = {name: Queue(name, weight) for name, weight in weights.items()}
    return replace(cluster, custom_resources={**cluster.custom_resources, KIND: queues})
