"""Creates a cluster in which one quota is isolated, so that it can't borrow from other quotas."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from harness.base.frozen import Frozen
from harness.cluster.changes.edits import Instant, ever
from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota, semantics_of
from harness.cluster.model import (
    UNLIMITED,
    Cluster,
    ClusterQueue,
    FlavorQuotas,
    ResourceGroup,
    ResourceQuota,
    frozen,
)


def alone_on(cluster: Cluster, quota: str, elastic: Collection[str]) -> Cluster:
    """Returns a copy of the cluster that contains only the given quotas, which can't borrow.

    The ClusterQueue leaves its cohort. For each resource in the `min` of an ElasticQuota, the `max` becomes
    equal to the `min`. The semantics of elastic quotas stay those of the whole cluster.

    All nodes remain, because no node belongs to a single quota. Changes to nodes and to the given quotas
    happen at the same times as before.

    The jobs count against `quota` and, for plugins that use ElasticQuotas, against those in `elastic`.
    """
    semantics = semantics_of(ever(cluster).elastic_quotas)
    alone = before = _state(cluster, quota, elastic, semantics)
    instants = []
    for at, edits in cluster.changes:
        own = []
        for edit in edits:
            cluster = edit.on(cluster)
            after = _state(cluster, quota, elastic, semantics)
            own += [each for each in (edit.between(before, after),) if each is not None]
            before = after
        instants.append(Instant(at, tuple(own)))
    return replace(alone, changes=tuple(instants))


def _state(cluster: Cluster, quota: str, elastic: Collection[str], semantics: str) -> Cluster:
    """Returns the cluster with only these quotas, for a period without changes."""
    queue = cluster.cluster_queues.get(quota)
    doors = {key: local for key, local in cluster.local_queues.items() if local.cluster_queue == quota}
    return replace(
        cluster,
        cluster_queues=frozen({} if queue is None else {quota: _without_cohort(queue)}),
        cohorts=frozen({}),
        local_queues=Frozen(doors),
        elastic_quotas=frozen(
            {
                name: _bounded(each, semantics)
                for name, each in cluster.elastic_quotas.items()
                if name in elastic
            }
        ),
    )


def _without_cohort(queue: ClusterQueue) -> ClusterQueue:
    groups = tuple(
        ResourceGroup(
            group.covered_resources,
            tuple(
                FlavorQuotas(
                    each.flavor,
                    frozen({name: ResourceQuota(quota.nominal) for name, quota in each.resources.items()}),
                )
                for each in group.flavors
            ),
        )
        for group in queue.resource_groups
    )
    return replace(queue, cohort="", resource_groups=groups)


def _bounded(quota: ElasticQuota, semantics: str) -> ElasticQuota:
    """Returns the quota without a parent and limited to its guarantee.

    The limits of other resources remain.
    """
    bound = dict.fromkeys(CORE_RESOURCES, UNLIMITED) if quota.max is None else quota.max
    return replace(quota, max=frozen({**bound, **(quota.min or {})}), parent="", semantics=semantics)
