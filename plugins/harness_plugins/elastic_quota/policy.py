"""The policies `elasticquota` and `auto`: jobs become pods, as for kube-scheduler, and quotas have a say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, final

from harness import Cluster, Decision, Job, PodSet, Policy, Reject, View, Why
from harness.cluster.elastic import ACK, KOORDINATORS, semantics_of
from harness.cluster.pod_groups import membership_of
from harness.errors import InputError
from harness.memo import Memo
from harness.options import resolve
from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.claim import add
from harness_plugins.elastic_quota.failure import in_words
from harness_plugins.elastic_quota.koordinator import KoordinatorRules, RuntimeTree
from harness_plugins.elastic_quota.options import (
    OPTIONS,
    parse_label,
    places_gangs,
)
from harness_plugins.elastic_quota.revoke import Revocation
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.scheduler import QuotaScheduler
from harness_plugins.elastic_quota.tree import Quota, QuotaTree
from harness_plugins.evictions import LATENCY
from harness_plugins.kube.budgets import Budgets
from harness_plugins.kube.policy import DefaultPreemption, configuration_of

_SHAPES = 1 << 16  # of jobs that are kept


def elastic_quota(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Preemption by quotas; pods without a quota preempt nobody.

    Raises:
        InputError: the cluster has no nodes, or no quotas.
    """
    if not cluster.elastic_quotas:
        raise InputError(
            "elasticquota preempts by quotas, and the cluster has none",
            hint="give an ElasticQuotaTree or ElasticQuotas, or use the plugin auto",
        )
    return QuotaPolicy(cluster, view, options, falls_back=False)


def auto(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """What `preemptionAlgorithm` says; by default preemption by quotas where there are any, else by priority.

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
    return QuotaPolicy(cluster, view, options, falls_back=True)


def without_quotas(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Default preemption, whatever quotas the cluster has; gangs as the options say.

    Args:
        cluster: must have nodes.
        view: not used.
        options: of this plugin or of `default-preemption`; the others have their defaults.

    Raises:
        InputError: the cluster has no nodes.
    """
    every = resolve(OPTIONS, options, owner="kube-scheduler with gangs")
    return QuotaPolicy(replace(cluster, elastic_quotas={}), view, every, falls_back=True)


@final
class QuotaPolicy:
    """Replays jobs through the scheduler with quotas and gangs.

    Args:
        cluster: must have nodes.
        view: not used: the scheduler keeps its own books, as it does in reality.
        options: values of the plugin's options.
        falls_back: whether pods that belong to no quota preempt by default preemption.

    Raises:
        InputError: the cluster has no nodes.
    """

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any], *, falls_back: bool) -> None:
        manifests = cluster.elastic_quotas
        semantics = semantics_of(manifests, options["semantics"])
        self._together = places_gangs(cluster, options)
        self._groups = cluster.pod_groups
        fair = RuntimeTree(manifests, cluster.capacity) if semantics == KOORDINATORS else None
        self.accounts = Accounts(cluster, fair or QuotaTree(manifests, hierarchical=semantics == ACK))
        protected = parse_label(options["protectedLabel"])

        def rules(accounts: Accounts, budgets: Budgets) -> Rules:
            if semantics == KOORDINATORS:
                return KoordinatorRules(accounts)
            return AckRules(accounts, budgets, protected) if semantics == ACK else CapacityRules(accounts)

        self.scheduler = QuotaScheduler(
            cluster,
            configuration_of(cluster, options),
            self.accounts,
            rules,
            falls_back=falls_back,
            gangs=self._together,
            revocation=partial(Revocation, self.accounts, fair, options["revokeAfter"]) if fair else None,
        )
        self._pods = DefaultPreemption(
            cluster, view, options, latency=options[LATENCY.name], scheduler=self.scheduler
        )
        self._rejected: list[tuple[Job, str]] = []
        self._never: Memo[tuple[tuple[PodSet, ...], str, str, bool], str] = Memo(_SHAPES)

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Pods wait; a job that its quota could never let in is remembered to be rejected."""
        why = self._why_never(job)
        if why:
            self._rejected.append((job, why))
        else:
            self._pods.submit(job, pods, now)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Pods are gone from their nodes."""
        self._pods.release(job, pods, now, why)

    def cycle(self, now: int) -> Iterator[Decision]:
        """Schedule pods and gangs until those that are left wait for something to happen."""
        for job, why in self._rejected:
            yield Reject(job, why)
        self._rejected.clear()
        yield from self._pods.cycle(now)

    def _why_never(self, job: Job) -> str:
        """Why a job's pods, or the gang, exceed their quota even when they are alone; "" if they do not."""
        together = self._together and job.gang and not self._in_group(job)
        key = (job.pod_sets, job.namespace, job.queue, together)
        why = self._never.get(key)
        if why is None:
            why = self._never[key] = self._too_large(job, together=together)
        return why

    def _in_group(self, job: Job) -> bool:
        """Whether pods of a job belong to a pod group, which may need fewer of them, or others besides."""
        return any(membership_of(job.namespace, each.labels, self._groups) for each in job.pod_sets)

    def _too_large(self, job: Job, *, together: bool) -> str:
        asked: dict[Quota, dict[str, int]] = {}
        for pod_set in job.pod_sets:
            quota = self.accounts.leaf_of(job.namespace, pod_set.labels, job.queue)
            if quota is None:
                continue
            count = pod_set.count if together else 1
            amounts = {resource: count * amount for resource, amount in pod_set.requests.items()}
            if together:
                add(asked.setdefault(quota, {}), amounts)
            elif (excess := self.accounts.tree.never(quota, amounts)) is not None:
                return f"even alone {in_words(excess)}"
        for quota, amounts in asked.items():
            excess = self.accounts.tree.never(quota, amounts)
            if excess is not None:
                return f"even alone {in_words(excess)}"
        return ""
