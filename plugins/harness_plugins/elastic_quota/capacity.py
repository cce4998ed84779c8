"""Implements capacity scheduling, which has the rules of scheduler-plugins for preemption between quotas.

Quotas are flat, and each namespace has one quota. A pod that would borrow preempts within its namespace by
priority. A pod that stays within the guarantee of its quota preempts pods of any priority in namespaces that
borrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness_plugins.elastic_quota.dry_run import Claim, Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


@final
class CapacityRules:
    """The rules of capacity scheduling. See `AckRules`.

    Args:
        usage: the quotas, without a hierarchy.
    """

    by_usage = False
    names_nodes = True
    counts_twice = True
    sorts_victims = True
    least_first = False
    keeps_room = False
    looks_ahead = False
    examines_all = True

    def __init__(self, usage: QuotaUsage) -> None:
        self._usage = usage

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns True if `usage + request <= min` for the quota in the compared resources."""
        return quota is not None and quota.over_min(amounts) is None

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns the reason why preemption cannot help, or None if it might.

        Either no other quota borrows, or no pod of the pod's own quota is less important.

        For a pod outside of all quotas, only the other pods outside of quotas are considered.
        """
        usage, quota = self._usage, request.quota
        if not reclaims:
            return None if usage.has_lower(quota, request.pod.priority) else "no pod of lower priority"
        leaves = usage.tree.leaves.values()
        borrows = any(leaf is not quota and leaf.borrows() is not None for leaf in leaves)
        return None if borrows else "no other quota uses more than its min"

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Returns the reason why a pod cannot preempt now, or None if it can.

        The pod may never preempt, or it waits because pods on its nominated node are still terminating.
        """
        return waits_for_victims(request, expected, self._usage, reclaims=reclaims)

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns all limits that the pod exceeds.

        A dry run first removes all potential victims, and then ignores the requests of nominated pods. When
        it puts victims back, it counts these requests, as does the attempt that follows.
        """
        tree = self._usage.tree
        return Exceeded(request.excesses(tree), request.own_excesses(tree))

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """Returns the potential victims of a pod. If the pod reclaims, these are pods of borrowing quotas.

        Otherwise, they are less important pods of the pod's own quota.
        """
        usage, quota = self._usage, request.quota

        def eligible_pods(node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
            least_first = (each for each in reversed(node.by_importance()) if not are_mates(each, preemptor))
            if reclaims:
                return self._borrowers(least_first, quota)
            lower = (each for each in least_first if each.priority < preemptor.priority)
            return [each for each in lower if usage.quota_of(each) is quota]

        if not reclaims:
            return Claim(usage.nodes_of(quota), eligible_pods)
        leaves = usage.tree.leaves.values()
        losing = [leaf for leaf in leaves if leaf is not quota and leaf.borrows() is not None]
        return Claim({position for leaf in losing for position in usage.nodes_of(leaf)}, eligible_pods)

    def _borrowers(self, least_first: Iterable[PodInfo], claimant: Quota | None) -> list[PodInfo]:
        """Returns pods of each borrowing quota, least important first, until the quota no longer borrows."""
        usage, found = self._usage, []
        for each in least_first:
            theirs = usage.quota_of(each)
            if theirs is not None and theirs is not claimant and theirs.borrows() is not None:
                usage.refund(each)
                found.append(each)
        for each in found:
            usage.charge(each)
        return found


def waits_for_victims(
    request: QuotaRequest, expected: NodeInfo | None, usage: QuotaUsage, *, reclaims: bool
) -> str | None:
    """Returns the reason why a pod cannot preempt now, or None if it can.

    These are the rules of scheduler-plugins and Koordinator. The pod waits while certain pods on its node are
    terminating. They are less important pods of its quota or, if the pod reclaims, pods of a borrowing quota.
    The arguments are the same as those of `AckRules.why_not_eligible`.
    """
    pod, quota = request.pod, request.quota
    if not pod.preempts:
        return NEVER_PREEMPTS
    for other in expected.pods if expected is not None else ():
        if not other.terminating:
            continue
        theirs = usage.quota_of(other)
        if theirs is quota:
            waits = other.priority < pod.priority
        else:
            waits = theirs is not None and reclaims and theirs.borrows() is not None
        if waits:
            return VICTIMS_LEAVING
    return None
