"""The policies `elasticquota` and `auto`: jobs become pods, as for kube-scheduler, and quotas have a say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from harness import Cluster, Policy, Possible, View
from harness.base.errors import InputError
from harness.base.options import resolve
from harness.base.units import format_duration
from harness.models.cluster import ACK, KOORDINATORS, ElasticQuota, semantics_of
from harness.models.evictions import LATENCY
from harness.models.kube.policy import PodPolicy
from harness.models.kube.preemption.budgets import Budgets
from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.koordinator import KoordinatorRules
from harness_plugins.elastic_quota.limits import QuotaLimits, usage_of
from harness_plugins.elastic_quota.options import (
    BY_POD,
    BY_USAGE,
    OPTIONS_OF_AUTO,
    TRIED,
    parse_label,
    places_gangs,
)
from harness_plugins.elastic_quota.protection import Protection
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.revoke import Revocation
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.scheduler import QuotaScheduler
from harness_plugins.kube.policy import configuration_of, fits_no_node


def elastic_quota(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Preemption by quotas; pods without a quota preempt nobody.

    Raises:
        InputError: the cluster has no nodes, or no quotas.
    """
    _require_quotas(cluster)
    return _quota_policy(cluster, options, falls_back=False)


def _require_quotas(cluster: Cluster) -> None:
    if not cluster.elastic_quotas:
        raise InputError(
            "elasticquota preempts by quotas, and the cluster has none",
            hint="give an ElasticQuotaTree or ElasticQuotas, or use the plugin auto",
        )


def _require_constant_quotas(cluster: Cluster) -> None:
    for instant in cluster.changes:
        for edit in instant.edits:
            if cluster.elastic_quotas and edit.kind == "ElasticQuota":
                when = format_duration(instant.at)
                raise InputError(
                    f"{edit} changes {when} after the origin, and elastic quotas must stay as they are",
                    hint="leave harness/from and harness/until out of what is said of elastic quotas",
                )


def auto(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """What `preemptionAlgorithm` says; by default preemption by quotas where there are any, else by priority.

    Pods without a quota preempt by priority too, unless the option `autoBy` has the whole cluster decide.

    Raises:
        InputError: the cluster has no nodes, or no quotas where its configuration demands them.
    """
    match cluster.scheduler.plugin if cluster.scheduler is not None else "auto":
        case "elasticquota":
            return elastic_quota(cluster, view, options)
        case "default-preemption":
            return without_quotas(cluster, view, options)
        case "none":
            return without_quotas(cluster, view, {**options, "disablePreemption": True})
    falls_back = not cluster.elastic_quotas or options["autoBy"] == BY_POD
    return _quota_policy(cluster, options, falls_back=falls_back)


def without_quotas(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Default preemption, whatever quotas the cluster has; gangs as the options say.

    Args:
        cluster: must have nodes.
        view: not used.
        options: of this plugin or of `default-preemption`; the others have their defaults.

    Raises:
        InputError: the cluster has no nodes.
    """
    every = resolve(OPTIONS_OF_AUTO, options, owner="kube-scheduler with gangs")
    return _quota_policy(replace(cluster, elastic_quotas={}), every, falls_back=True)


def impossible(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Which jobs `elasticquota` rejects: beyond their quota even alone, or on no node even when it is empty.

    Raises:
        InputError: the cluster has no nodes, or no quotas.
    """
    _require_quotas(cluster)
    return _impossible(cluster, options)


def impossible_for_auto(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """The same for what `auto` chooses; where that is no plugin with quotas, nodes alone count."""
    return _impossible(replace(cluster, elastic_quotas=quotas_of_auto(cluster)), options)


def quotas_of_auto(cluster: Cluster) -> Mapping[str, ElasticQuota]:
    """The elastic quotas that `auto` goes by: those of the cluster, unless its configuration says none."""
    plugin = cluster.scheduler.plugin if cluster.scheduler is not None else "auto"
    return cluster.elastic_quotas if plugin in ("auto", "elasticquota") else {}


def _impossible(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    by_nodes = fits_no_node(cluster, options)
    usage = usage_of(cluster, options)
    by_quota = QuotaLimits(usage, cluster, options).never
    return lambda job: by_quota(job) or by_nodes(job)


def _quota_policy(cluster: Cluster, options: Mapping[str, Any], *, falls_back: bool) -> PodPolicy:
    """Replays jobs through the scheduler with quotas and gangs.

    Args:
        cluster: must have nodes.
        options: values of the plugin's options.
        falls_back: whether pods that belong to no quota preempt by default preemption.

    Raises:
        InputError: the cluster has no nodes.
    """
    _require_constant_quotas(cluster)
    semantics = semantics_of(cluster.elastic_quotas, options["semantics"])
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
    never = QuotaLimits(usage, cluster, options).never
    return PodPolicy(
        cluster, scheduler, never=never, latency=options[LATENCY.name], lets_in=scheduler.lets_in
    )
