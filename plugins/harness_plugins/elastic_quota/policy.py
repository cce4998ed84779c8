"""The policies `elasticquota` and `auto`, which schedule pods like kube-scheduler, but within quotas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness import Cluster, Policy, Possible, View
from harness.base.errors import InputError
from harness.base.options import resolve
from harness.models.cluster import ACK, KOORDINATORS
from harness.models.evictions import LATENCY
from harness.models.kube.policy import PodPolicy
from harness.models.kube.preemption.budgets import Budgets
from harness_plugins.elastic_quota.ack import AckRules, Protection
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.koordinator import KoordinatorRules
from harness_plugins.elastic_quota.limits import never_by_quota, usage_of
from harness_plugins.elastic_quota.options import (
    BY_POD,
    BY_USAGE,
    OPTIONS_OF_AUTO,
    TRIED,
    parse_label,
    places_gangs,
    quotas_ever,
    semantics_asked,
    without_elastic_quotas,
)
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.revoke import Revocation
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.scheduler import QuotaScheduler
from harness_plugins.kube.policy import configuration_of, fits_no_node


def elastic_quota(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Returns a policy that preempts by quotas. Pods without a quota do not preempt.

    Raises:
        InputError: the cluster has no nodes, or no quotas.
    """
    _require_quotas(cluster)
    return _quota_policy(cluster, options, falls_back=False)


def _require_quotas(cluster: Cluster) -> None:
    if not quotas_ever(cluster):
        raise InputError(
            "elasticquota preempts by quotas, but the cluster has none",
            hint="add an ElasticQuotaTree or ElasticQuotas, or use the plugin auto",
        )


def auto(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Returns the policy for `preemptionAlgorithm`.

    By default, the policy uses quotas if there are any, or else priorities. Pods without a quota preempt by
    priority, unless the option `autoBy` makes one choice for all pods.

    Raises:
        InputError: the cluster has no nodes, or has no quotas although its configuration requires them.
    """
    match cluster.scheduler.plugin if cluster.scheduler is not None else "auto":
        case "elasticquota":
            return elastic_quota(cluster, view, options)
        case "default-preemption":
            return without_quotas(cluster, view, options)
        case "none":
            return without_quotas(cluster, view, {**options, "disablePreemption": True})
    falls_back = not quotas_ever(cluster) or options["autoBy"] == BY_POD
    return _quota_policy(cluster, options, falls_back=falls_back)


def without_quotas(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Returns a policy with default preemption that ignores quotas. Options determine how it places gangs.

    Args:
        cluster: the cluster, which must have nodes.
        view: not used.
        options: the options of this plugin or of `default-preemption`. Missing options have their defaults.

    Raises:
        InputError: the cluster has no nodes.
    """
    every = resolve(OPTIONS_OF_AUTO, options, owner="kube-scheduler with gangs")
    return _quota_policy(without_elastic_quotas(cluster), every, falls_back=True, by_quotas=False)


def impossible(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Finds the jobs that `elasticquota` rejects.

    These jobs exceed their quota even without other pods, or fit on no node.

    Raises:
        InputError: the cluster has no nodes, or no quotas.
    """
    _require_quotas(cluster)
    return _impossible(cluster, options)


def impossible_for_auto(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Finds the jobs that `auto` rejects. If it uses no quotas, jobs are only compared with the nodes."""
    return _impossible(cluster if by_quotas(cluster) else without_elastic_quotas(cluster), options)


def by_quotas(cluster: Cluster) -> bool:
    """Returns True if the cluster has elastic quotas and its configuration lets `auto` use them."""
    plugin = cluster.scheduler.plugin if cluster.scheduler is not None else "auto"
    return plugin in ("auto", "elasticquota") and bool(quotas_ever(cluster))


def _impossible(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    by_nodes = fits_no_node(cluster, options)
    by_quota = never_by_quota(cluster, options)
    return lambda job: by_quota(job) or by_nodes(job)


def _quota_policy(
    cluster: Cluster, options: Mapping[str, Any], *, falls_back: bool, by_quotas: bool = True
) -> PodPolicy:
    """Returns a policy that simulates jobs with the scheduler for quotas and gangs.

    If it `falls_back`, pods that belong to no quota use default preemption. `by_quotas` says whether quotas
    count, including quotas that the cluster gets later.
    """
    semantics = semantics_asked(cluster, options)
    usage = usage_of(cluster, options)
    protection = Protection(parse_label(options["protectedLabel"]), daemons=not options["evictDaemonSets"])

    def rules(usage: QuotaUsage, budgets: Budgets) -> Rules:
        if semantics == KOORDINATORS:
            return KoordinatorRules(usage, quirks=options["quirks"])
        if semantics == ACK:
            return AckRules(
                usage,
                budgets,
                protection,
                by_usage=options["claims"] == BY_USAGE,
                examines_all=options["cordonedNodes"] == TRIED,
            )
        return CapacityRules(usage)

    revocation = partial(Revocation, usage, options["revokeAfter"], options["quirks"])
    scheduler = QuotaScheduler(
        cluster,
        configuration_of(cluster, options),
        usage,
        rules,
        falls_back=falls_back,
        gangs=places_gangs(cluster, options),
        revocation=revocation if semantics == KOORDINATORS else None,
    )
    return PodPolicy(
        cluster,
        scheduler,
        never=never_by_quota(cluster, options),
        latency=options[LATENCY.name],
        lets_in=scheduler.lets_in,
        heard=scheduler.changed if by_quotas else None,
    )
