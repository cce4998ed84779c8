"""Implements Koordinator's elastic quotas, a tree in which each runtime depends on all requests.

A pod is admitted within the runtime of its quota, and preempts less important pods of its own quota. Quota
that was lent is taken back by `revoke.py`, not by preemption.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import of_lower_priority
from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Claim, waits_for_victims

NO_QUOTA = "a pod without a quota cannot preempt"
FIRM_PODS = "pods that must not be preempted leave too little of the quota's min"


@final
class KoordinatorRules:
    """The `Rules` of Koordinator.

    Args:
        usage: the quotas, with runtimes.
        quirks: whether dry runs have the properties of Koordinator that only its code explains. See
            `exceeded`.
    """

    names_nodes = False
    sorts_victims = False
    least_first = False
    keeps_room = False
    looks_ahead = False
    examines_all = True

    def __init__(self, usage: QuotaUsage, *, quirks: bool = True) -> None:
        self._usage = usage
        self._quirks = quirks

    @property
    def counts_twice(self) -> bool:
        """True with quirks, because Koordinator's code checks twice."""
        return self._quirks

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns False, because quotas do not reclaim guarantees by preemption."""
        return False

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns why preemption cannot help: the pod has no quota, or no pod of the quota is less important.

        Without quirks, a pod that must not be preempted does not preempt if it and other such pods would
        exceed the `min`, because preemption cannot change this.
        """
        pod, quota = request.pod, request.quota
        if quota is None:
            return NO_QUOTA
        if not self._usage.has_lower(quota, pod.priority):
            return "no pod of lower priority"
        if not self._quirks and self._usage.of(pod).firm and self._usage.tree.over_firm(quota, request.own):
            return FIRM_PODS
        return None

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Returns why a pod cannot preempt: it never preempts, or other pods of its quota terminate."""
        return waits_for_victims(request, expected, self._usage, reclaims=False)

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns the exceeded limits that count in a dry run.

        With quirks, a dry run checks the quota only when it puts victims back, and only the runtime of the
        requested resources. Admission can therefore refuse the pod after its victims are gone. The runtime is
        0 for a resource that only the `max` of siblings names. A pod that requests such a resource always
        exceeds it, although admission ignores the resource. Without quirks, all limits of admission count,
        even when all potential victims are removed.
        """
        tree, quota, own = self._usage.tree, request.quota, request.own
        excesses = request.excesses(tree)
        if not self._quirks:
            return Exceeded(excesses, excesses)
        found = [each for each in excesses if each[0] is quota and each[1] in own]
        unnamed = tree.runtimes.unnamed(quota.name) if tree.runtimes is not None and quota is not None else ()
        if unnamed:
            asked = request.pod.template.spec.requests.items()
            found += [(quota, name, amount) for name, amount in asked if amount and name in unnamed]
        return Exceeded(found, ())

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """See `KoordinatorClaim`."""
        return KoordinatorClaim(self._usage, request.quota)


@final
class KoordinatorClaim:
    """The potential victims of a pod, which are the less important pods of its own quota."""

    def __init__(self, usage: QuotaUsage, quota: Quota | None) -> None:
        self._usage = usage
        self._quota = quota

    def where(self) -> Collection[int]:
        """Returns the nodes with pods of the pod's quota, if it has one (`disableDefaultQuotaPreemption`)."""
        return () if self._quota is None else self._usage.nodes_of(self._quota)

    def eligible_pods(self, node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
        """Returns less important, preemptible pods of the same quota that are not in the same gang or job."""
        of = self._usage.of
        own = (each for each in of_lower_priority(node, preemptor) if of(each).quota is self._quota)
        return [each for each in own if not (of(each).firm or are_mates(each, preemptor))]
