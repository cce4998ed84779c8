"""Finds the jobs that exceed their elastic quota even if no other pods use the quota."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

from harness import Cluster, Job, Never, Possible
from harness.models.cluster import CAPACITY, KOORDINATORS, QUOTA_NAME_LABEL, membership_of
from harness.models.elastic.quota import Quota
from harness.models.elastic.runtime_quotas import RuntimeQuotas, add_to
from harness.models.elastic.tree import Excess, QuotaTree
from harness.models.never import OverTime
from harness_plugins.elastic_quota.failure import in_words
from harness_plugins.elastic_quota.options import places_gangs, semantics_asked
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


def usage_of(cluster: Cluster, options: Mapping[str, Any]) -> QuotaUsage:
    """Returns the quotas of a cluster under the chosen semantics."""
    manifests, runtimes = cluster.elastic_quotas, None
    semantics = semantics_asked(cluster, options)
    if semantics == KOORDINATORS:
        runtimes = RuntimeQuotas(
            manifests,
            cluster.capacity,
            scales=options["enableMinQuotaScale"],
            quirks=options["quirks"],
            trees=options["multiQuotaTree"],
        )
    tree = QuotaTree(
        manifests,
        hierarchical=semantics != CAPACITY,
        runtimes=runtimes,
        asks_above=options["enableCheckParentQuota"],
    )
    return QuotaUsage(cluster, tree)


def never_by_quota(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Finds the jobs that exceed their quota even if no other pods use it.

    A job is checked on arrival and after each later change of quotas.
    """

    def judge(state: Cluster) -> Callable[[Job], Never | None]:
        return QuotaLimits(usage_of(state, options), state, options).never

    return OverTime(cluster, judge).first


@final
class QuotaLimits:
    """The largest quantities that jobs can request from their quotas."""

    def __init__(self, usage: QuotaUsage, cluster: Cluster, options: Mapping[str, Any]) -> None:
        self._usage = usage
        self._groups = cluster.pod_groups
        self._together = places_gangs(cluster, options)
        koordinators = semantics_asked(cluster, options) == KOORDINATORS
        quotas = cluster.elastic_quotas.items() if koordinators else ()
        self._parents = {name for name, quota in quotas if quota.is_parent}

    def never(self, job: Job) -> Never | None:
        """Returns the reason why a job exceeds its quota even without other pods, or None if it might fit."""
        together = self._together and job.gang and not self._in_group(job)
        asked: dict[Quota, dict[str, int]] = {}
        tree = self._usage.tree
        for pod_set in job.pod_sets:
            quota = self._usage.leaf_of(job.namespace, pod_set.labels, job.queue)
            if (named := pod_set.labels.get(QUOTA_NAME_LABEL)) in self._parents:
                return Never(
                    f"quota {named}", f"{named} is a parent, and Koordinator's webhook refuses its pods"
                )
            if quota is None:
                continue
            count = pod_set.count if together else 1
            amounts = {resource: count * amount for resource, amount in pod_set.requests.items()}
            if together:
                add_to(asked.setdefault(quota, {}), amounts)
            elif (excess := tree.never(quota, amounts)) is not None:
                return _beyond(quota, excess)
            firm = tree.is_firm(pod_set.labels)
            beyond = tree.over_firm(quota, pod_set.requests, alone=True) if firm else None
            if beyond is not None:
                return _beyond(quota, beyond)
        for quota, amounts in asked.items():
            excess = tree.never(quota, amounts)
            if excess is not None:
                return _beyond(quota, excess)
        return None

    def _in_group(self, job: Job) -> bool:
        return any(membership_of(job.namespace, each.labels, self._groups) for each in job.pod_sets)


def _beyond(quota: Quota, excess: Excess) -> Never:
    return Never(f"quota {quota.name}", f"even without other pods, {in_words(excess)}")
