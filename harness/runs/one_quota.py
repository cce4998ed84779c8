"""Prepares the replay of a single quota, with only its jobs and only its nominal quota."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from harness.base.errors import OptionError
from harness.base.frozen import Frozen
from harness.base.options import did_you_mean
from harness.cluster.changes.edits import Instant, ever
from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota, leaves_of, semantics_of
from harness.cluster.model import UNLIMITED, Cluster, ClusterQueue, ResourceQuota, frozen
from harness.runs.tenants import elastic_quotas, tenants
from harness.trace.job_rows import filled
from harness.trace.quota_names import QUOTA_NAME, quota_names
from harness.trace.schema import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from harness.plugins.registries import PolicySpec
    from harness.runs.at_start import AtStart
    from harness.trace.trace import Trace


def alone(
    trace: Trace, cluster: Cluster, quota: str, *, by_elastic_quotas: bool = False
) -> tuple[Trace, Cluster]:
    """Returns the trace with only the jobs of a quota, and the cluster with only the quotas of these jobs.

    The queues in `trace` are queues of the cluster (`harness.trace.homes`). `quota` is a ClusterQueue or
    ElasticQuota. For `by_elastic_quotas`, see `tenants`.

    Raises:
        OptionError: the quota does not exist, or no job counts against it.
    """
    there = ever(cluster)
    known = {**leaves_of(there.elastic_quotas), **there.cluster_queues}
    if quota not in known:
        raise OptionError(
            f"alone: the cluster has no ClusterQueue or ElasticQuota {quota!r}",
            hint=did_you_mean(quota, list(known)),
        )
    rows = trace.frame
    named = quota_names(rows, there)
    doors = rows.select("job_id", "queue", filled(rows, "namespace", DEFAULT_NAMESPACE))
    doors = doors if named is None else doors.with_columns(named)
    jobs = doors if named is None else doors.with_columns(pl.col(QUOTA_NAME).first().over("job_id"))
    found = tenants(jobs, there, by_elastic_quotas=by_elastic_quotas)
    own = found.names.cast(pl.String).is_in(
        [name for name, behind in found.quotas.items() if behind == quota]
    )
    frame = rows.filter(own)
    if frame.is_empty():
        raise OptionError(f"alone: no job of {trace.path} counts against quota {quota!r}")
    return replace(trace, frame=frame), alone_on(cluster, quota, elastic_quotas(doors.filter(own), there))


def faults(policy: PolicySpec, begun: AtStart) -> Iterator[str]:
    """Yields the reasons why a quota can't be replayed alone with a policy."""
    if policy.record:
        yield "it repeats recorded events"
    if begun.takes_part:
        yield (
            "the replay includes work from the manifests, which belongs to all quotas (--at-start empty "
            "leaves it out)"
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
        group.with_quotas(lambda flavor, resource, quota: ResourceQuota(quota.nominal))
        for group in queue.resource_groups
    )
    return replace(queue, cohort="", resource_groups=groups)


def _bounded(quota: ElasticQuota, semantics: str) -> ElasticQuota:
    """Returns the quota without a parent and limited to its guarantee.

    The limits of other resources remain.
    """
    bound = dict.fromkeys(CORE_RESOURCES, UNLIMITED) if quota.max is None else quota.max
    return replace(quota, max=frozen({**bound, **(quota.min or {})}), parent="", semantics=semantics)
