"""Removes the fields and objects that have no effect in a release because their gate is off."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from harness.models.cluster import NO_TOPOLOGY, Cluster, ClusterQueue, Cohort, frozen
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.preemption_policy import BUFFERED

_T = TypeVar("_T", ClusterQueue, Cohort)


def as_read(cluster: Cluster, gates: Gates) -> Cluster:
    """Returns the cluster as Kueue reads it with these gates.

    If the gates change nothing, the result is the same object.
    """
    queues, cohorts = cluster.cluster_queues, cluster.cohorts
    if not gates.hierarchical_cohorts:
        cohorts = frozen({name: Cohort(name) for name in cohorts})
    if not gates.lending_limit:
        queues = frozen({name: _without_lending_limits(each) for name, each in queues.items()})
        cohorts = frozen({name: _without_lending_limits(each) for name, each in cohorts.items()})
    if gates.scheduler_timestamp_preemption_buffer:
        queues = frozen({name: _buffered(each) for name, each in queues.items()})
    if not gates.topology_aware_scheduling and any(map(_lacks_topology, queues.values())):
        queues = frozen(
            {
                name: replace(each, inactive="") if _lacks_topology(each) else each
                for name, each in queues.items()
            }
        )
    if queues is cluster.cluster_queues and cohorts is cluster.cohorts:
        return cluster
    return replace(cluster, cluster_queues=queues, cohorts=cohorts)


def _without_lending_limits(node: _T) -> _T:
    groups = tuple(
        group.with_quotas(lambda flavor, resource, quota: replace(quota, lending_limit=None))
        for group in node.resource_groups
    )
    return replace(node, resource_groups=groups)


def _lacks_topology(queue: ClusterQueue) -> bool:
    return queue.inactive.startswith(NO_TOPOLOGY)


def _buffered(queue: ClusterQueue) -> ClusterQueue:
    if queue.preemption.within_cluster_queue != "LowerOrNewerEqualPriority":
        return queue
    return replace(queue, preemption=replace(queue.preemption, within_cluster_queue=BUFFERED))
